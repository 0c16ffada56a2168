//! What a receiver wants: of what, in which form, how fast, and before which others.

use core::time::Duration;

use outflow_graph::View;
use outflow_packet::{Level, TrackMask};

use super::ids::{BranchId, LinkId};

/// What a receiver's packets are on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encapsulation {
    /// Transport stream packets and nothing around them.
    Ts,
    /// RTP packets; a transport stream goes as one track.
    Rtp,
    /// RTP packets for a receiver that shows pictures in the order in which they come, as browsers do: it gets the best
    /// level that has them in that order. Of a transport stream, a picture and a sound go as tracks of their own.
    Tracks,
}

impl Encapsulation {
    /// Whether they are RTP packets.
    pub const fn is_rtp(self) -> bool {
        matches!(self, Encapsulation::Rtp | Encapsulation::Tracks)
    }
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

/// What a receiver has of the link that it is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkClaim {
    /// What each of its tracks weighs among those of its stream.
    pub weight: u32,
    /// The rate that it reserves whatever it is measured to take, bits a second; 0 if nothing is said.
    pub reserve_bps: u64,
}

impl Default for LinkClaim {
    fn default() -> Self {
        LinkClaim { weight: 1, reserve_bps: 0 }
    }
}

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
    pub encapsulation: Encapsulation,
    /// Its RTP packets say what they are ([`outflow_packet::gmc`]): routers are between that leave some out.
    pub marks: bool,
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
    /// What it has there, for the driver.
    pub claim: LinkClaim,
    /// Keep its place at the newest key frame, but send nothing until [`Report::Writable`]
    /// (the answer to its request has to go out first).
    ///
    /// [`Report::Writable`]: crate::Report::Writable
    pub held: bool,
}

impl SinkSpec {
    /// One that wants the stream as it came in, all tracks, at once.
    pub fn new(encapsulation: Encapsulation, transport: Transport) -> Self {
        SinkSpec {
            branch: None,
            view: View::default(),
            level: Level::BEST,
            encapsulation,
            marks: false,
            transport,
            tracks: TrackMask::ALL,
            priority: Priority::Normal,
            timing: Timing::default(),
            link: None,
            claim: LinkClaim::default(),
            held: false,
        }
    }

    /// Whether it wants the stream as it comes in, at whatever level.
    pub fn is_of_source(&self) -> bool {
        self.branch.is_none() && self.view == View::default()
    }
}
