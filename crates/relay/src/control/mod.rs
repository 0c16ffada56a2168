//! A stream as its driver sees it: what it is asked, what it answers.

mod audience;
mod branches;
mod distribution;
mod gap;
mod handed;
mod intake;
mod levels;
mod media;
mod meter;
mod negotiation;
mod options;
mod origin;
mod output;
mod owner;
mod renditions;
mod replica;
mod save;
mod share;
mod source;
mod state;
mod stream;
#[cfg(test)]
mod tests;
mod view;

pub use branches::{Far, Stages};
pub use handed::{Handed, Joining, TrackClock};
pub use levels::LevelBounds;
pub use meter::Meter;
pub use negotiation::Granted;
pub use options::StreamOptions;
pub use output::{Event, Output, ReportTo, SinkEnd, Wake};
pub use source::SourceCounters;
pub use state::State;
pub use stream::Stream;
