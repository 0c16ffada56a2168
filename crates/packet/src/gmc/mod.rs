//! The paper's `gmc` between routers (GMS, section III.B): a table of ways down, each with the level that is wanted
//! there, and a layer that each packet says. A packet goes down a way if what is wanted there has its layer.
//!
//! A relay knows the format of its streams, and what each packet means. A router knows neither: it is told by the
//! packet itself ([`Mark`]), or by a session description ([`Described`]). What it does with that are the rules of a receiver of the relay
//! ([`MaxLayer`](crate::MaxLayer)): less from the next picture on, more where that can be decoded, and no gaps in the
//! sequence numbers.

mod closed;
mod described;
mod filter;
mod mark;
mod marks;
mod opened;
mod tally;
#[cfg(test)]
mod tests;

pub use closed::Closed;
pub use described::{Described, Prioritized};
pub use filter::{Sent, Ways};
pub use mark::Mark;
pub use marks::Marks;
