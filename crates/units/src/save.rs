//! The timeline of tracks that are put together goes on in another process.

use minicbor::{Decode, Encode};
use outflow_ts::SavedMux;

/// How RTP tracks become one transport stream.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedToTs {
    /// The timeline, once it has begun.
    #[n(0)]
    pub clocks: Option<SavedClocks>,
    /// The multiplexer.
    #[n(1)]
    pub mux: SavedMux,
}

/// A timeline, in ticks of 90 kHz.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedClocks {
    /// When it began, in nanoseconds.
    #[n(0)]
    pub began_ns: u64,
    /// Of each track, its clock, once it has begun.
    #[n(1)]
    pub tracks: Vec<Option<SavedClock>>,
}

/// The clock of a track on a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedClock {
    /// The newest RTP timestamp, unwrapped.
    #[n(0)]
    pub newest: i64,
    /// What is added to a timestamp in ticks to make a time of the timeline.
    #[n(1)]
    pub offset: i64,
    /// What a sender report said: an NTP time in ticks, and an unwrapped timestamp.
    #[n(2)]
    pub report: Option<(i64, i64)>,
}
