//! A stream that is served from several places. It has one *home*, which has the source: there,
//! packets are received and parsed, once. *Replicas* are handed what comes out of that, and
//! serve sinks of their own with the very same packets.

use outflow_media::{Format, Time};
use outflow_packet::Parsed;

use super::branches::{ORIGINAL, held};
use super::gap::Gap;
use super::origin::Origin;
use super::state::State;
use super::stream::Stream;
use crate::schedule::Counters;
use crate::send::ReportClock;

/// What a replica is handed, in order.
#[derive(Debug, Clone)]
pub enum Handed {
    /// What the packets from now on are. `turn` tells a new format from the same one said again.
    Format {
        /// What receivers get.
        format: Format,
        /// How many formats there were before.
        turn: u64,
    },
    /// What a track's sender reports say from now on.
    Clock(TrackClock),
    /// The next packet.
    Packet(Parsed),
    /// The source is away; with its next packet it is back.
    Away,
    /// What comes now does not go on from what came before: no sink joins there any more.
    Break,
    /// This many packets of a track got lost on the way to the replica.
    Missed {
        /// The track.
        track: u8,
        /// How many.
        packets: u64,
    },
}

/// What sender reports of a track are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackClock {
    /// The track.
    pub track: u8,
    /// Its times.
    pub clock: ReportClock,
    /// Its sender.
    pub ssrc: u32,
    /// Packets and bytes before the next one.
    pub passed: Counters,
}

/// What is handed over: from a stream's home, or lost on the way to a replica.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    /// What replicas are to be handed, if there are any.
    handed: Option<Vec<Handed>>,
    /// The driver knows that there is something.
    is_told: bool,
    /// What got lost on the way to this replica.
    gap: Option<Box<Gap>>,
}

impl Sharing {
    /// Puts something down for the replicas.
    pub(super) fn hand(&mut self, what: Handed) {
        if let Some(handed) = &mut self.handed {
            handed.push(what);
        }
    }

    pub(super) fn hand_packet(&mut self, understood: &Parsed) {
        if let Some(handed) = &mut self.handed {
            handed.push(Handed::Packet(understood.clone()));
        }
    }

    /// Whether there is something to hand over that the driver was not told of.
    pub(super) fn is_due(&mut self) -> bool {
        let is_any = self.handed.as_ref().is_some_and(|handed| !handed.is_empty());
        is_any && !core::mem::replace(&mut self.is_told, true)
    }

    pub(super) fn gap_mut(&mut self) -> Option<&mut Gap> {
        self.gap.as_deref_mut()
    }

    pub(super) fn take_gap(&mut self) -> Option<Box<Gap>> {
        self.gap.take()
    }
}

/// At home.
impl Stream {
    /// From now on what replicas need is put down for [`Stream::handed`], or no longer.
    pub fn set_shared(&mut self, shared: bool) {
        let handed = &mut self.state.sharing.handed;
        match (shared, &handed) {
            (true, None) => *handed = Some(Vec::new()),
            (false, Some(_)) => *handed = None,
            _ => {}
        }
    }

    /// Takes out what replicas are to be handed; the driver does so when it is told to
    /// ([`Output::HandOver`](super::Output::HandOver)), or earlier, and gives it to each replica by
    /// [`Stream::handle_handed`].
    pub fn handed(&mut self) -> impl Iterator<Item = Handed> + '_ {
        self.state.sharing.is_told = false;
        self.state.sharing.handed.iter_mut().flat_map(|handed| handed.drain(..))
    }

    pub(super) fn hand_clock(&mut self, track: u8) {
        let State { out, sharing, .. } = &mut self.state;
        if let Some(clock) = out.clock(track) {
            sharing.hand(Handed::Clock(clock));
        }
    }

    pub(super) fn hand_clocks(&mut self) {
        for track in 0..self.state.out.origin.as_ref().map_or(0, Origin::tracks) {
            self.hand_clock(track);
        }
    }
}

impl State {
    /// All that a replica has to know when it begins, or has missed something: the format, the
    /// clocks, whether the source is away.
    pub fn situation(&self) -> Vec<Handed> {
        self.introduce(false)
    }

    /// The same with the packets from the newest key frame on, so that a sink that joins there is served
    /// at once.
    pub fn introduction(&self) -> Vec<Handed> {
        self.introduce(true)
    }

    fn introduce(&self, with_packets: bool) -> Vec<Handed> {
        let (Some(origin), Some(original)) = (&self.out.origin, self.out.branches.get(ORIGINAL)) else {
            return Vec::new();
        };
        let mut all = vec![Handed::Format { format: origin.format().clone(), turn: origin.turn() }];
        let ring = original.ring();
        if with_packets {
            all.extend(held(ring, ring.join_floor()).into_iter().map(Handed::Packet));
        }
        all.extend((0..origin.tracks()).filter_map(|track| self.out.clock(track)).map(Handed::Clock));
        if !self.source.is_up() {
            all.push(Handed::Away);
        }
        all
    }
}

/// In a replica.
impl Stream {
    /// Takes what the stream's home hands over. It begins with [`Stream::introduction`].
    pub fn handle_handed(&mut self, now: Time, handed: Handed) {
        match handed {
            Handed::Format { format, turn } => {
                let known = self.state.out.origin.as_ref();
                if known.is_none_or(|known| known.turn() != turn || *known.format() != format) {
                    self.settle_gap();
                    self.change_format(now, format, turn, None);
                }
            }
            Handed::Clock(clock) => self.take_clock(now, clock),
            Handed::Packet(understood) if self.state.sharing.gap.is_some() => {
                self.take_after_gap(now, understood)
            }
            Handed::Packet(understood) => self.take_understood(now, understood),
            Handed::Away => self.state.source.went_away(now),
            Handed::Break => self.break_off(),
            Handed::Missed { track, packets } => {
                self.state.sharing.gap.get_or_insert_with(|| Box::new(Gap::new())).miss(track, packets);
            }
        }
    }

    /// It has no sinks and will be handed nothing until it is introduced again: it forgets the
    /// source and its packets, but not what it has sent.
    pub fn handle_rest(&mut self, now: Time) {
        self.settle_gap();
        let State { source, intake, out, .. } = &mut self.state;
        out.rest(now);
        *intake = None;
        source.went_away(now);
    }

    pub(super) fn take_understood(&mut self, now: Time, understood: Parsed) {
        // By its arrival: those of an introduction come all at once, and make no rate.
        self.state.source.packet(understood.packet.arrived, understood.packet.bytes.len());
        self.spread(now, understood);
    }

    fn take_clock(&mut self, now: Time, told: TrackClock) {
        let out = &mut self.state.out;
        let (Some(origin), Some(original)) = (&mut out.origin, out.branches.get_mut(ORIGINAL)) else {
            return;
        };
        if origin.set_sender(&told) {
            original.set_passed(told.track, told.passed);
            out.tell_clock(now, told.track);
        }
    }
}
