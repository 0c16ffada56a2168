//! One receiver, as the core knows it.

use outflow_media::Time;
use outflow_packet::{Drops, Level, MaxLayer, TrackMask};

use super::counters::Counters;
use super::pace::{Pace, catch_up_bps};
use super::spec::{SinkSpec, Transport};
use super::splice::{Entered, Splice};
use crate::requests::Asked;
use outflow_ring::Seq;

/// All sinks of a stream.
pub type Sinks = slab::Slab<Sink>;

/// Where a sink stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It asked for a pause: nothing is owed to it.
    Paused,
    /// For a key frame to join at, or for the stream to begin at all.
    Waiting,
    /// At a position of its own.
    Behind(Seq),
    /// Up with the newest packet: in this cohort, at this index among its members.
    Live {
        /// Index of the cohort in its branch.
        cohort: usize,
        /// Index among the cohort's members.
        slot: usize,
    },
}

/// The level that a receiver would have without bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// The one that it asked for.
    pub asked: Level,
    /// The best one that its way carries, as it says.
    pub carried: Level,
}

impl Wish {
    /// This one, whatever the way carries.
    pub fn for_level(asked: Level) -> Self {
        Wish { asked, carried: Level::BEST }
    }

    /// No better than either.
    pub fn level(self) -> Level {
        self.asked.max(self.carried)
    }
}

/// Where a sink leaves its branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) at: Seq,
    /// What it goes on with needs nothing of this branch.
    pub(crate) begins_again: bool,
}

/// One receiver of a stream.
#[derive(Debug)]
pub struct Sink {
    /// The driver's name for it, for logs and the API; never given twice.
    pub id: u64,
    /// What it wants, as far as it gets that: a bound may lower the level.
    pub spec: SinkSpec,
    /// The level that it asked for, as far as its way carries that.
    pub wish: Wish,
    /// Index of its branch in the stream; `None` until the stream has a format.
    pub branch: Option<usize>,
    /// When it joined.
    pub joined: Time,
    /// Since when it loses packets without ever having been up with the newest one.
    pub lossy_since: Option<Time>,
    /// Packets that it should have had and did not get, its cohort's share not included: see
    /// [`super::Branch::drops`].
    pub(crate) drops: Drops,
    pub(crate) place: Place,
    /// The layers that it takes now.
    pub(crate) max_layer: MaxLayer,
    /// By how much its sequence numbers are lower than they came: in all, or, in a cohort, than those of its
    /// group there.
    pub(crate) sequence_offset: u16,
    /// The driver said that it takes nothing now.
    pub(crate) blocked: bool,
    /// It stands in a queue of its branch (ready, idle or resting) and is not to be queued again.
    pub(crate) queued: bool,
    /// Tracks of which it has lost something that what follows may need.
    pub(crate) broken: TrackMask,
    /// The next order to it begins with the preamble.
    pub(crate) needs_preamble: bool,
    /// It goes on elsewhere from this position of its branch on.
    pub(crate) stop: Option<Stop>,
    /// What it is sent before it goes on.
    pub(crate) splice: Splice,
    /// The frame at which it came from another branch. Positions do not tell: where a branch has nothing of
    /// several frames, they begin at the same one.
    pub(crate) came_at: Option<u32>,
    /// How it came from a branch that carries something else.
    pub(crate) entered: Option<Entered>,
    pub(crate) pace: Pace,
    /// What it has asked for over RTCP.
    pub asked: Asked,
    /// What it was sent on its own account; a cohort's share is added by [`super::Branch`].
    pub(crate) counters: Counters,
}

impl Sink {
    /// A sink that stands nowhere yet.
    pub(crate) fn new(id: u64, spec: SinkSpec, now: Time) -> Self {
        Sink {
            id,
            spec,
            wish: Wish::for_level(spec.level),
            branch: None,
            joined: now,
            lossy_since: None,
            drops: Drops::default(),
            place: Place::Waiting,
            max_layer: MaxLayer::ALL,
            sequence_offset: 0,
            blocked: spec.held,
            queued: false,
            broken: TrackMask::NONE,
            needs_preamble: true,
            stop: None,
            splice: Splice::default(),
            came_at: None,
            entered: None,
            pace: spec.timing.pace_bps.map_or_else(Pace::catch_up, Pace::smooth),
            asked: Asked::default(),
            counters: Counters::default(),
        }
    }

    /// How many bytes it may be sent now while it catches up, or when to ask again.
    pub(crate) fn allowance(&mut self, now: Time, stream_bps: u64) -> Result<usize, Time> {
        match (self.spec.timing.pace_bps, self.spec.transport) {
            (Some(bps), _) => self.pace.allowance(now, bps),
            (None, Transport::Datagram) => self.pace.allowance(now, catch_up_bps(stream_bps)),
            (None, Transport::Stream) => Ok(usize::MAX),
        }
    }

    /// Whether at a position there may be what it had where it came from.
    pub(super) fn is_entering(&self, at: Seq) -> bool {
        self.entered.is_some_and(|entered| at < entered.had)
    }

    /// The tracks of which it is sent the packet at a position.
    pub(super) fn tracks_at(&self, at: Seq, main: u8) -> TrackMask {
        let others = TrackMask::ALL.without(TrackMask::only(main));
        let had = if self.is_entering(at) { others } else { TrackMask::NONE };
        self.spec.tracks.without(had)
    }

    /// The layers that it takes now.
    pub fn max_layer(&self) -> MaxLayer {
        self.max_layer
    }

    /// By how much its sequence numbers are lower than those of others of its cohort that take the same.
    pub fn apart(&self) -> u16 {
        self.sequence_offset
    }

    /// Where it stands.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Whether the driver said that it takes nothing now.
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }
}
