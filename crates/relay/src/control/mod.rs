//! A stream as its driver sees it: what it is asked, what it answers.

mod deadlines;
mod meter;
mod output;
mod source;
mod stream;
#[cfg(test)]
mod tests;
mod view;

pub use meter::Meter;
pub use output::{Event, Output, ReportTo, SinkEnd, Wake};
pub use source::SourceCounters;
pub use stream::{Stream, StreamOptions};
