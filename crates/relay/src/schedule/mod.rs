//! Which sink is owed what, and which is served next.
//!
//! A [`Branch`] is one distinct output of a stream: a ring and the sinks that read it. Sinks that
//! are up with the newest packet stand in *cohorts*, which share one cursor, so that a packet
//! costs the core the same for one receiver and for thousands. Only those that lag have a cursor
//! of their own.

mod branch;
mod change;
mod cohort;
mod gather;
mod hop;
mod pace;
mod rates;
mod share;
mod sink;
mod slow;
mod stride;
#[cfg(test)]
mod tests;

use core::time::Duration;

use outflow_graph::View;
use outflow_packet::{Level, TrackMask};

pub use branch::{Branch, StartPoint};
pub(crate) use hop::{Entered, Greeting};
pub(crate) use rates::Rates;
pub use share::Share;
pub use sink::{Counters, Place, Sink};

use crate::limits::{DATAGRAMS_AS_ONE, WRITTEN_AS_ONE};

/// A receiver of a stream, as the driver and the core call it: an index that is small, so that
/// both can keep what they know of it in a table. It may be given again after the sink has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SinkKey(pub usize);

/// All sinks of a stream.
pub type Sinks = slab::Slab<Sink>;

/// What a receiver's packets are on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carriage {
    /// Transport stream packets and nothing around them.
    Ts,
    /// RTP packets.
    Rtp,
}

/// How a receiver is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// Each packet for itself (UDP): nothing holds the sender back, so catching up is paced.
    Datagram,
    /// A byte stream (TCP), which pushes back when the receiver is slow.
    Stream,
}

/// Which sink is served first. A class is served only when nothing is owed to the ones above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Before all others.
    High,
    /// What is not said otherwise.
    #[default]
    Normal,
    /// After all others.
    Low,
}

impl Priority {
    /// All classes, the first to be served first.
    pub const ALL: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];
}

/// When a receiver's packets go: at once where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timing {
    /// How long a packet may wait so that more go with it by one send.
    pub latency_budget: Duration,
    /// No faster than this many bits a second: bursts (key frames) are spread out.
    pub pace_bps: Option<u64>,
}

/// To how many sinks one order of a few packets may go, so that a higher class waits no longer than
/// that. An order of many packets goes to fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Sinks that are reached by datagrams.
    pub datagram: usize,
    /// Sinks that are reached by byte streams.
    pub stream: usize,
}

impl Room {
    /// As many as there are.
    pub const UNLIMITED: Room = Room { datagram: usize::MAX, stream: usize::MAX };

    /// One of `parts` parts of it, but one sink in any case.
    pub fn part(self, parts: usize) -> Self {
        let part = |sinks: usize| (sinks / parts).max(1);
        Room { datagram: part(self.datagram), stream: part(self.stream) }
    }

    /// Sinks for an order of this many packets.
    pub(crate) fn of(self, transport: Transport, packets: u64) -> usize {
        let (sinks, as_one) = match transport {
            Transport::Datagram => (self.datagram, DATAGRAMS_AS_ONE),
            Transport::Stream => (self.stream, WRITTEN_AS_ONE),
        };
        (sinks / (1 + (packets / as_one) as usize)).max(1)
    }
}

/// A link that sinks are behind ([`outflow_link`]), by the driver's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A branch that services make, by its number in the stream: see
/// [`Stream::branch_named`](crate::Stream::branch_named).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BranchId(pub u32);

/// What a receiver wants, given when it joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkSpec {
    /// Which branch it wants; the stream as it came in if none is named.
    pub branch: Option<BranchId>,
    /// What it wants to see of the branch's images; the default is all there is.
    pub view: View,
    /// The quality that it wants; the default is the best.
    pub level: Level,
    /// What its packets are on the wire.
    pub carriage: Carriage,
    /// How it is reached.
    pub transport: Transport,
    /// Which tracks it wants. A transport stream counts as track 0.
    pub tracks: TrackMask,
    /// Its class.
    pub priority: Priority,
    /// When its packets go.
    pub timing: Timing,
    /// The link that it is behind: the driver has its packets wait there.
    pub link: Option<LinkId>,
    /// Keep its place at the newest key frame, but send nothing until [`Report::Writable`]
    /// (the answer to its request has to go out first).
    ///
    /// [`Report::Writable`]: crate::Report::Writable
    pub held: bool,
}

impl SinkSpec {
    /// One that wants the stream as it came in, all tracks, at once.
    pub fn new(carriage: Carriage, transport: Transport) -> Self {
        SinkSpec {
            branch: None,
            view: View::default(),
            level: Level::BEST,
            carriage,
            transport,
            tracks: TrackMask::ALL,
            priority: Priority::Normal,
            timing: Timing::default(),
            link: None,
            held: false,
        }
    }
}
