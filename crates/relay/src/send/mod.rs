//! What the core asks the driver to send, and what the driver reports of it.

mod order;
mod sender_report;

pub use order::{Order, Recipients, Report};
pub use sender_report::{Anchor, ReportClock, align};
