//! A packet: its bytes, what they mean, and why it may be dropped.
//!
//! [`Receive`] brings what comes in into one form, a [`Parser`] gives it its tag. What comes of both is a
//! [`Packet`], which all that follows only refers to. [`gmc`] is what routers that know no format do with packets.

pub mod drops;
pub mod gmc;
mod layers;
pub mod limits;
mod openings;
mod packet;
mod parse;
mod rates;
pub mod receive;
mod sender_report;
mod tracks;

pub use drops::{DropReason, Drops};
pub use layers::{Level, MaxLayer, NoLevel};
pub use openings::Openings;
pub use packet::{Packet, Parsed};
pub use parse::{LayersShown, Parser, image_tag};
pub use rates::Rates;
pub use receive::{Incoming, Receive, SavedReceive};
pub use sender_report::{Anchor, ReportClock};
pub use tracks::TrackMask;
