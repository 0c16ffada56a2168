//! A stream as a value that another process takes up: what came in, and where each receiver stands.
//!
//! No structure of this crate is in it. A process that takes it up makes tags, branches and levels of the packets
//! by its own readers, so that the two need not be of one version; what receivers could see a break of (numbers,
//! clocks, positions) is said. All is CBOR (RFC 8949) in maps with numbered fields: one that is not known is passed
//! over, and a new one is optional. [`Stream::save`](crate::Stream) and [`Stream::restore`](crate::Stream::restore)
//! write and read it.

pub(crate) mod bytes;
mod carried;
mod sink;

use minicbor::{Decode, Encode};
use outflow_packet::Drops;

pub use carried::{SavedCarried, SavedFormat, SavedPacket, SavedSender};
pub use sink::{SavedAsked, SavedPlace, SavedSink, SavedSplice, SavedTsLevel};

use crate::schedule::Counters;

/// What to do where a stream cannot be taken up.
pub(crate) const UNFIT_HELP: &str =
    "the two versions do not understand each other: drain the relay, and start the new one";

/// A stream. Times are nanoseconds since the zero of the process that saved it, which the other takes for its own.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedStream {
    /// SSRC under which a transport stream goes out by RTP.
    #[n(0)]
    pub ssrc: u32,
    /// What all chance of it comes from.
    #[n(1)]
    pub seed: u64,
    /// What it carries, once there was a source.
    #[n(2)]
    pub carried: Option<SavedCarried>,
    /// Whether packets come, and how many.
    #[n(3)]
    pub source: SavedSource,
    /// Its receivers.
    #[n(4)]
    pub sinks: Vec<SavedSink>,
    /// What those were sent that have left.
    #[n(5)]
    pub past: SavedCounts,
    /// How many ever joined.
    #[n(6)]
    pub joins: u64,
    /// When sender reports go out next.
    #[n(7)]
    pub reports_due_ns: u64,
}

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedCounts {
    /// Packets.
    #[n(0)]
    pub packets: u64,
    /// Their bytes.
    #[n(1)]
    pub bytes: u64,
    /// Packets that were dropped, by reason.
    #[n(2)]
    pub drops: Vec<(String, u64)>,
}

impl SavedCounts {
    pub(crate) fn of(Counters { packets, bytes }: Counters, drops: &Drops) -> Self {
        SavedCounts { packets, bytes, drops: drops.save() }
    }

    /// What was counted, within what sums of it fit into.
    pub(crate) fn counted(&self) -> (Counters, Drops) {
        (counters(self.packets, self.bytes), Drops::restore(&self.drops))
    }
}

/// Packets and bytes from elsewhere, within what sums of them fit into.
pub(crate) fn counters(packets: u64, bytes: u64) -> Counters {
    Counters { packets: packets.min(1 << 56), bytes: bytes.min(1 << 60) }
}

/// What is known of a stream's source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedSource {
    /// What came.
    #[n(0)]
    pub counts: SavedCounts,
    /// How often it came.
    #[n(1)]
    pub starts: u64,
    /// It is there.
    #[n(2)]
    pub up: bool,
    /// When it last came or went.
    #[n(3)]
    pub since_ns: u64,
    /// When its newest packet came.
    #[n(4)]
    pub last_packet_ns: u64,
    /// When its newest key frame came.
    #[n(5)]
    pub last_key_ns: Option<u64>,
    /// Between its last two key frames; 0 before the second.
    #[n(6)]
    pub key_interval_ns: u64,
}
