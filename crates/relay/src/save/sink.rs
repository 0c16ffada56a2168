//! A receiver of a stream: what it wants, where it stands, how its packets are numbered.

use core::time::Duration;

use bytes::Bytes;
use minicbor::{Decode, Encode};
use outflow_graph::{Unfit, View};
use outflow_packet::{Level, TrackMask};

use super::{SavedCounts, UNFIT_HELP};
use crate::schedule::{BranchId, Encapsulation, LinkClaim, LinkId, Priority, SinkSpec, Timing, Transport};

/// A receiver.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedSink {
    /// The driver's name for it.
    #[n(0)]
    pub id: u64,
    /// The declared branch that it wants.
    #[n(1)]
    pub branch: Option<String>,
    /// What it wants to see, as the query of a URL.
    #[n(2)]
    pub view: String,
    /// The level that it gets, as soon as it can.
    #[n(3)]
    pub level: u8,
    /// The level that it asked for.
    #[n(4)]
    pub wanted_level: u8,
    /// Its packets go by RTP.
    #[n(5)]
    pub by_rtp: bool,
    /// It is reached by a byte stream.
    #[n(6)]
    pub by_stream: bool,
    /// The tracks that it wants, a bit each.
    #[n(7)]
    pub tracks: u32,
    /// Its class: 0 is served first.
    #[n(8)]
    pub class: u8,
    /// How long a packet may wait for others, in nanoseconds.
    #[n(9)]
    pub latency_budget_ns: u64,
    /// No faster than this.
    #[n(10)]
    pub pace_bps: Option<u64>,
    /// The link that it is behind, by the driver's number.
    #[n(11)]
    pub link: Option<u32>,
    /// It is sent nothing until it is reported writable.
    #[n(12)]
    pub held: bool,
    /// When it joined.
    #[n(13)]
    pub joined_ns: u64,
    /// Since when it loses packets.
    #[n(14)]
    pub lossy_since_ns: Option<u64>,
    /// What it was sent, and did not get.
    #[n(15)]
    pub counts: SavedCounts,
    /// Where it stands.
    #[n(16)]
    pub place: SavedPlace,
    /// The driver said that it takes nothing now.
    #[n(17)]
    pub blocked: bool,
    /// The highest layer of the main track that it takes.
    #[n(18)]
    pub max_layer: u8,
    /// By how much its sequence numbers are lower than they came.
    #[n(19)]
    pub sequence_offset: u16,
    /// Tracks of which it lacks something that what follows may need.
    #[n(20)]
    pub broken: u32,
    /// It begins with the tables of a transport stream.
    #[n(21)]
    pub needs_preamble: bool,
    /// What it alone is sent before it goes on.
    #[n(22)]
    pub splice: Vec<SavedSplice>,
    /// What it asked for.
    #[n(23)]
    pub asked: SavedAsked,
    /// Sequence number of the newest packet of the main track, where it gets another branch than the stream as it
    /// comes in.
    #[n(24)]
    pub newest_sequence: Option<u16>,
    /// The level of a transport stream that it gets now, if that is not all of it.
    #[n(25)]
    pub ts_level: Option<SavedTsLevel>,
    /// The frame at which it came to that, by how many frames there were since.
    #[n(26)]
    pub frames_since: Option<u32>,
    /// Its packets say what they are.
    #[n(27)]
    pub marks: Option<bool>,
    /// What it weighs at its link.
    #[n(28)]
    pub weight: Option<u32>,
    /// What it reserves there.
    #[n(29)]
    pub reserve_bps: Option<u64>,
    /// Of a transport stream, a picture and a sound go by RTP as tracks of their own.
    #[n(30)]
    pub as_tracks: Option<bool>,
    /// The best level that its way carries.
    #[n(31)]
    pub carried_level: Option<u8>,
}

/// A level of a transport stream, as another process has made it up to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedTsLevel {
    /// The highest layer of its frames.
    #[n(0)]
    pub max_layer: u8,
    /// By how much the main stream's continuity counter is lower than it came.
    #[n(1)]
    pub counter_offset: u8,
    /// RTP sequence number of its next datagram.
    #[n(2)]
    pub sequence: Option<u16>,
    /// Packets that wait for more, or for the end of their frame.
    #[n(3)]
    pub waiting: u8,
}

/// Where a receiver stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum SavedPlace {
    /// It asked for a pause.
    #[n(0)]
    Paused,
    /// It waits for a key frame, or for a source.
    #[n(1)]
    Waiting,
    /// It is owed this many packets of its branch.
    #[n(2)]
    Behind(#[n(0)] u64),
}

/// A datagram of a splice.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedSplice {
    /// Its RTP header, where it goes by RTP.
    #[n(0)]
    pub rtp_header: [u8; 12],
    /// The datagram.
    #[cbor(n(1), with = "crate::save::bytes")]
    pub bytes: Bytes,
}

/// What a receiver has asked for by RTCP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedAsked {
    /// Number of the newest request.
    #[n(0)]
    pub newest: Option<u16>,
    /// Requests that were taken.
    #[n(1)]
    pub taken: u64,
    /// Those that were refused, by reason.
    #[n(2)]
    pub refused: Vec<u64>,
}

impl SavedSink {
    /// What it wants, with the number that its branch has here.
    pub(crate) fn spec(&self, branch: Option<BranchId>) -> Result<SinkSpec, Unfit> {
        let level =
            |number: u8| Level::try_from(number).map_err(|error| Unfit::new(error.to_string(), UNFIT_HELP));
        let view: View = self.view.parse().map_err(|error| Unfit::new(format!("{error}"), UNFIT_HELP))?;
        let priority = Priority::ALL.get(usize::from(self.class)).copied();
        Ok(SinkSpec {
            branch,
            view,
            level: level(self.level)?,
            encapsulation: match (self.by_rtp, self.as_tracks) {
                (true, Some(true)) => Encapsulation::Tracks,
                (true, _) => Encapsulation::Rtp,
                (false, _) => Encapsulation::Ts,
            },
            marks: self.marks.unwrap_or(false),
            transport: if self.by_stream { Transport::Stream } else { Transport::Datagram },
            tracks: TrackMask(self.tracks),
            priority: priority
                .ok_or_else(|| Unfit::new(format!("class {} is none", self.class), UNFIT_HELP))?,
            timing: Timing {
                latency_budget: Duration::from_nanos(self.latency_budget_ns),
                pace_bps: self.pace_bps,
            },
            link: self.link.map(LinkId),
            claim: LinkClaim { weight: self.weight.unwrap_or(1), reserve_bps: self.reserve_bps.unwrap_or(0) },
            held: self.held,
        })
    }
}
