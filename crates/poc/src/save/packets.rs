//! Packets that were sent and received, and what is known of the path.

use minicbor::{Decode, Encode};

use super::{SavedMarks, SavedSentCounts, SavedSpan};

/// Which packets were received: what comes again is known, and acknowledgements go on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedReceived {
    /// When the receiver began: times of arrival count from then.
    #[n(0)]
    pub start: u64,
    /// The numbers, ascending and apart.
    #[n(1)]
    pub spans: Vec<SavedSpan>,
    /// What is below counts as received.
    #[n(2)]
    pub floor: u64,
    /// What is below is not told any more.
    #[n(3)]
    pub told_below: u64,
    /// When the largest one came.
    #[n(4)]
    pub largest_at: u64,
    /// Those that are not in an acknowledgement yet, or are in the last one.
    #[n(5)]
    pub arrivals: Vec<SavedArrival>,
    /// Whether they are in the last one.
    #[n(6)]
    pub is_told: bool,
    /// How they were marked.
    #[n(7)]
    pub marks: SavedMarks,
    /// Packets to be acknowledged.
    #[n(8)]
    pub waiting: u32,
    /// When that is due.
    #[n(9)]
    pub due: Option<u64>,
    /// Packets that came behind the oldest gap that may not be taken for a loss yet.
    #[n(10)]
    pub behind_oldest: Option<u64>,
    /// Those behind the newest gap.
    #[n(11)]
    pub behind_newest: Option<u64>,
    /// How long an acknowledgement is put off, in nanoseconds.
    #[n(12)]
    pub delay: u64,
    /// How many came again.
    #[n(13)]
    #[cbor(default)]
    pub duplicates: u64,
}

/// When a packet came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedArrival {
    /// Its number.
    #[n(0)]
    pub number: u64,
    /// Steps of 1/8 ms since the receiver began.
    #[n(1)]
    pub ticks: u64,
}

/// Packets that were sent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedSent {
    /// The number of the next one: none is used twice.
    #[n(0)]
    pub next: u64,
    /// The first one on this path.
    #[n(1)]
    pub measured_from: u64,
    /// The largest one that was acknowledged.
    #[n(2)]
    pub largest_acked: Option<u64>,
    /// Those in flight, ascending.
    #[n(3)]
    pub packets: Vec<SavedPacket>,
    /// Round trips.
    #[n(4)]
    pub rtt: SavedRtt,
    /// When the oldest one is lost, if a later one was acknowledged.
    #[n(5)]
    pub loss_at: Option<u64>,
    /// What the next probe counts from.
    #[n(6)]
    pub probe_from: u64,
    /// How many there were since something was acknowledged.
    #[n(7)]
    pub probes: u32,
    /// Numbers that were left out: an acknowledgement of one is refused.
    #[n(8)]
    pub skipped: Vec<u64>,
    /// What the peer counted of marks.
    #[n(9)]
    pub marks: SavedMarks,
    /// What became of packets.
    #[n(10)]
    #[cbor(default)]
    pub counts: SavedSentCounts,
}

/// What is known of round trips, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedRtt {
    /// The last one.
    #[n(0)]
    pub latest: u64,
    /// The mean.
    #[n(1)]
    pub smoothed: u64,
    /// The mean distance from that.
    #[n(2)]
    pub variation: u64,
    /// The shortest.
    #[n(3)]
    pub min: u64,
    /// Whether anything was measured.
    #[n(4)]
    pub is_measured: bool,
}

/// A packet in flight.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedPacket {
    /// Its number.
    #[n(0)]
    pub number: u64,
    /// When it was sent.
    #[n(1)]
    pub sent: u64,
    /// How long it is.
    #[n(2)]
    pub bytes: u32,
    /// What is in it.
    #[n(3)]
    pub content: SavedContent,
}

/// What is in a packet.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedContent {
    /// Frames that matter after they were sent.
    #[n(0)]
    pub items: Vec<SavedItem>,
    /// Whether congestion control was told of it.
    #[n(1)]
    pub is_counted: bool,
    /// Whether it was marked as ECN-capable.
    #[n(2)]
    pub is_marked: bool,
    /// Its bytes, if it was sent to see whether a packet of that size gets through.
    #[n(3)]
    pub probed: Option<u16>,
}

/// A frame that matters after it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum SavedItem {
    /// A piece of a unit.
    #[n(0)]
    Fragment(#[n(0)] SavedPiece),
    /// Units that were given up.
    #[n(1)]
    GivenUp(#[n(0)] SavedSpan),
    /// Units below were settled.
    #[n(2)]
    Progress(#[n(0)] u64),
    /// The largest packet that was acknowledged.
    #[n(3)]
    Ack(#[n(0)] u64),
}

/// A piece of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedPiece {
    /// Which unit.
    #[n(0)]
    pub unit: u64,
    /// Where it begins.
    #[n(1)]
    pub offset: u32,
    /// How long it is.
    #[n(2)]
    pub bytes: u32,
    /// How often it was sent.
    #[n(3)]
    pub attempts: u32,
}

/// What congestion control knows of the delay, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedDelay {
    /// The round trip, smoothed.
    #[n(0)]
    pub smoothed: u64,
    /// How long packets are in flight, smoothed.
    #[n(1)]
    pub in_flight: u64,
    /// The shortest round trip of some seconds.
    #[n(2)]
    pub least: u64,
    /// The least of the peer's clock at an arrival less ours when that was sent.
    #[n(3)]
    pub least_one_way: i64,
}
