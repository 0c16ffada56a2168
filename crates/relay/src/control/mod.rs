//! A stream as its driver sees it: what it is asked, what it answers.

mod audience;
mod branches;
mod distribution;
mod gap;
mod intake;
mod levels;
mod meter;
mod negotiation;
mod origin;
mod output;
mod renditions;
mod share;
mod source;
mod state;
mod stream;
#[cfg(test)]
mod tests;
mod view;

pub use branches::Far;
pub use levels::LevelBounds;
pub use meter::Meter;
pub use negotiation::{Asked, Granted, Refusal};
pub use output::{Event, Output, ReportTo, SinkEnd, Stages, Wake};
pub use share::{Handed, TrackClock};

pub use source::SourceCounters;
pub use state::State;
pub use stream::{Stream, StreamOptions};
