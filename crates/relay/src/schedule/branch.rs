//! One output of a stream: its ring, the sinks that read it, and which is next.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use outflow_media::Time;
use outflow_packet::limits::TRACKS_MAX;
use outflow_packet::{Packet, Rates, TrackMask};

use super::cohort::{Class, Cohort};
use super::counters::Counters;
use super::ids::SinkKey;
use super::room::Room;
use super::share::Share;
use super::sink::{Place, Sinks};
use super::spec::Priority;
use super::splice::Splice;
use super::start_point::StartPoint;
use super::stride::{max_layer_from, mend, stride};
use crate::limits::{LOOKED_AT_A_SINK, LOOKED_AT_MAX};
use crate::send::{Order, Recipients};
use outflow_ring::{Entry, Ring, Seq, Verdict};

/// A ring and its readers.
#[derive(Debug)]
pub struct Branch {
    pub(super) index: usize,
    pub(super) ring: Ring,
    pub(super) cohorts: Vec<Cohort>,
    /// The cohort whose turn was the last.
    pub(super) last_cohort: usize,
    /// A cohort was served last: the next order goes to one that lags, if there is any.
    cohort_was_served: bool,
    /// All sinks with a position of their own, the slowest first.
    pub(super) behind: BTreeSet<(Seq, SinkKey)>,
    /// Sinks behind that can be served now, by priority.
    ready: [VecDeque<SinkKey>; Priority::ALL.len()],
    /// Sinks behind that have seen all there is but cannot join a cohort yet.
    idle: Vec<SinkKey>,
    /// Sinks behind that are paced, with the time of their next turn.
    resting: BTreeSet<(Time, SinkKey)>,
    /// Sinks that wait for a key frame.
    waiting: Vec<SinkKey>,
    /// How many layers the main track has, as its newest packet says; 0 before that.
    pub(super) layers: u8,
    /// What its levels cost.
    pub(super) rates: Rates,
    /// Sinks that take other layers than they want until they can change.
    pub(super) changing: Vec<SinkKey>,
    /// Sinks that are where they are to go on in another branch.
    pub(super) stopped: Vec<SinkKey>,
    /// Packets and bytes per track that went into the ring, for sender reports.
    passed: [Counters; TRACKS_MAX],
    /// Kept so that giving up packets does not allocate.
    pub(super) lost_scratch: Vec<SinkKey>,
}

impl Branch {
    /// A branch that is number `index` of its stream.
    pub fn new(index: usize, ring: Ring) -> Self {
        Branch {
            index,
            ring,
            cohorts: Vec::new(),
            last_cohort: 0,
            cohort_was_served: false,
            behind: BTreeSet::new(),
            ready: Default::default(),
            idle: Vec::new(),
            resting: BTreeSet::new(),
            waiting: Vec::new(),
            layers: 0,
            rates: Rates::default(),
            changing: Vec::new(),
            stopped: Vec::new(),
            passed: [Counters::default(); TRACKS_MAX],
            lost_scratch: Vec::new(),
        }
    }

    /// Its ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Its ring, to change the limit.
    pub fn ring_mut(&mut self) -> &mut Ring {
        &mut self.ring
    }

    /// What went into the ring of `track`.
    pub fn passed(&self, track: u8) -> Counters {
        self.passed[usize::from(track) % TRACKS_MAX]
    }

    /// Corrects what went into the ring of `track`, where it went into another's as well.
    pub(crate) fn set_passed(&mut self, track: u8, passed: Counters) {
        self.passed[usize::from(track) % TRACKS_MAX] = passed;
    }

    /// Members of a cohort.
    pub fn members(&self, cohort: usize) -> &[SinkKey] {
        self.cohorts.get(cohort).map_or(&[], |c| &c.members)
    }

    /// Everything a sink has been sent, its cohort's share included.
    pub fn counters(&self, sinks: &Sinks, key: SinkKey) -> Counters {
        let Some(sink) = sinks.get(key.0) else { return Counters::default() };
        let mut sum = sink.counters;
        if let Place::Live { cohort, slot } = sink.place {
            sum.add(self.cohorts[cohort].standing(slot, sink.max_layer).0);
        }
        sum
    }

    /// The next packet that is owed to a sink, if it has a place in the ring.
    pub fn cursor(&self, sinks: &Sinks, key: SinkKey) -> Option<Seq> {
        match sinks.get(key.0)?.place {
            Place::Behind(seq) => Some(seq),
            Place::Live { cohort, slot } => Some(self.cohorts[cohort].cursor_of(slot)),
            Place::Paused | Place::Waiting => None,
        }
    }

    /// Adds a packet if the ring's policy has it, gives up what no longer fits, and lets go what
    /// no sink needs.
    ///
    /// `rtp_header` is [`Entry::rtp_header`]; `preamble` is asked when a key frame begins.
    pub fn push(
        &mut self,
        now: Time,
        sinks: &mut Sinks,
        packet: Packet,
        rtp_header: [u8; 12],
        preamble: impl FnOnce() -> Option<Bytes>,
    ) {
        let verdict = self.ring.arrives(now, self.owed_from(), &packet);
        if let Verdict::Refuse(reason) = verdict {
            self.refuse(now, sinks, &packet.tag, reason);
            return;
        }
        self.put(sinks, packet, rtp_header, preamble);
        if let Some(until) = self.ring.overflow() {
            let may_take = verdict == Verdict::MakeRoom;
            self.give_up(now, sinks, if may_take { until } else { until.min(self.owed_from()) });
        }
        self.trim();
        self.wake_idle(sinks);
    }

    /// The same without a question to the policy, and nothing is let go.
    pub(crate) fn put(
        &mut self,
        sinks: &mut Sinks,
        packet: Packet,
        rtp_header: [u8; 12],
        preamble: impl FnOnce() -> Option<Bytes>,
    ) {
        self.look_at_layers(sinks, &packet.tag);
        let is_main = packet.tag.track == self.ring.main_track();
        self.rates.add(packet.arrived, if is_main { packet.tag.layer } else { 0 }, packet.bytes.len());
        let passed = &mut self.passed[usize::from(packet.tag.track) % TRACKS_MAX];
        passed.packets += 1;
        passed.bytes += packet.bytes.len() as u64;
        if let Some(start) = self.ring.push(packet, rtp_header, preamble) {
            while let Some(key) = self.waiting.pop() {
                self.begin(sinks, key, start);
            }
        }
    }

    /// Sinks that could not go on may be able to now.
    pub(super) fn wake_idle(&mut self, sinks: &mut Sinks) {
        while let Some(key) = self.idle.pop() {
            self.requeue(sinks, key);
        }
    }

    /// Puts a new or resumed sink at the newest whole key frame, or lets it wait for one.
    pub fn join(&mut self, sinks: &mut Sinks, key: SinkKey) {
        let Some(sink) = sinks.get_mut(key.0) else { return };
        sink.branch = Some(self.index);
        sink.needs_preamble = true;
        (sink.splice, sink.came_at, sink.entered) = (Splice::default(), None, None);
        sink.broken = TrackMask::NONE;
        match self.ring.join_point() {
            Some(start) => self.begin(sinks, key, start),
            None => {
                sink.place = Place::Waiting;
                self.waiting.push(key);
            }
        }
    }

    /// Where the tracks begin for a sink that has just joined; tracks without a packet yet are
    /// left out.
    pub fn start_points(&self, sinks: &Sinks, key: SinkKey) -> Vec<StartPoint> {
        let Some(sink) = sinks.get(key.0) else { return Vec::new() };
        let Place::Behind(from) = sink.place else { return Vec::new() };
        let mut seen = TrackMask::NONE;
        let mut points = Vec::new();
        for (_, entry) in self.ring.range(from, self.ring.head()) {
            let track = entry.packet.tag.track;
            if seen.has(track) || !sink.spec.tracks.has(track) {
                continue;
            }
            seen = seen.with(TrackMask::only(track));
            let apart = match &entry.preamble {
                Some(_) if entry.rtp_header[0] != 0 => entry.preamble_header(),
                _ => entry.rtp_header,
            };
            if let Some(header) = entry.packet.rtp_header(&apart) {
                let sequence_offset = if track == self.ring.main_track() { sink.sequence_offset } else { 0 };
                points.push(StartPoint {
                    track,
                    sequence: outflow_rtp::sequence(header).wrapping_sub(sequence_offset),
                    timestamp: outflow_rtp::timestamp(header),
                });
            }
        }
        points
    }

    /// Takes a sink out, wherever it stands. It is in no queue afterwards; its counters are whole.
    pub fn remove(&mut self, sinks: &mut Sinks, key: SinkKey) {
        self.detach(sinks, key);
        let Some(sink) = sinks.get_mut(key.0) else { return };
        match sink.place {
            Place::Waiting => self.waiting.retain(|&k| k != key),
            Place::Behind(seq) => {
                self.behind.remove(&(seq, key));
                if sink.queued {
                    self.ready.iter_mut().for_each(|queue| queue.retain(|&k| k != key));
                    self.idle.retain(|&k| k != key);
                    self.resting.retain(|&(_, k)| k != key);
                    sink.queued = false;
                }
            }
            Place::Live { .. } | Place::Paused => {}
        }
        sink.place = Place::Paused;
        sink.stop = None;
        self.changing.retain(|&k| k != key);
        self.stopped.retain(|&k| k != key);
        self.trim();
    }

    /// The next order of class `priority`, if anything is owed in it that can go now; it may have to be asked again
    /// ([`Branch::looks_on`]). Cohorts and sinks that lag take turns.
    pub fn next_order(
        &mut self,
        now: Time,
        sinks: &mut Sinks,
        priority: Priority,
        room: Room,
        stream_bps: u64,
    ) -> Option<Order> {
        let cohort_first = !core::mem::take(&mut self.cohort_was_served);
        if !cohort_first && let Some(order) = self.next_lagging_order(now, sinks, priority, stream_bps) {
            return Some(order);
        }
        if let Some(order) = self.next_cohort_order(now, sinks, priority, room) {
            self.cohort_was_served = true;
            return Some(order);
        }
        self.next_lagging_order(now, sinks, priority, stream_bps)
    }

    fn next_lagging_order(
        &mut self,
        now: Time,
        sinks: &mut Sinks,
        priority: Priority,
        stream_bps: u64,
    ) -> Option<Order> {
        while let Some(&(due, key)) = self.resting.first().filter(|(due, _)| *due <= now) {
            self.resting.remove(&(due, key));
            self.requeue(sinks, key);
        }
        let mut looked_at = 0;
        while looked_at < LOOKED_AT_MAX
            && let Some(key) = self.ready[priority as usize].pop_front()
        {
            if let Some(sink) = sinks.get_mut(key.0) {
                sink.queued = false;
            }
            let from = self.cursor(sinks, key);
            if let Some(order) = self.advance(now, sinks, key, stream_bps) {
                return Some(order);
            }
            let passed = from.zip(self.cursor(sinks, key)).map_or(0, |(from, to)| to - from);
            looked_at += passed as usize + LOOKED_AT_A_SINK;
        }
        None
    }

    /// Whether sinks of a class that lag are left to be looked at when there was no order: see [`LOOKED_AT_MAX`].
    pub fn looks_on(&self, priority: Priority) -> bool {
        !self.ready[priority as usize].is_empty()
    }

    /// The sinks that are not up with the newest packet, the slowest first.
    pub fn laggards(&self) -> impl Iterator<Item = SinkKey> + '_ {
        self.behind.iter().map(|(_, key)| *key)
    }

    /// When something has to go that waits for its time.
    pub fn next_turn(&self) -> Option<Time> {
        self.resting.first().map(|(due, _)| *due).into_iter().chain(self.next_gathered()).min()
    }

    /// The driver said that a sink takes packets again.
    pub fn writable(&mut self, sinks: &mut Sinks, key: SinkKey) {
        let Some(sink) = sinks.get_mut(key.0) else { return };
        sink.blocked = false;
        if matches!(sink.place, Place::Behind(_)) {
            self.make_ready(sinks, key);
        }
    }

    /// Changes a sink's class. What it is owed stays owed.
    pub fn set_priority(&mut self, sinks: &mut Sinks, key: SinkKey, priority: Priority) {
        let cursor = self.cursor(sinks, key);
        self.detach(sinks, key);
        let Some(sink) = sinks.get_mut(key.0) else { return };
        sink.spec.priority = priority;
        if let (Place::Paused, Some(cursor)) = (sink.place, cursor) {
            self.place_behind(sinks, key, cursor);
        }
    }

    /// The packets between two positions.
    pub fn range(&self, from: Seq, to: Seq) -> impl Iterator<Item = (Seq, &Entry)> {
        self.ring.range(from, to)
    }

    /// Moves a sink that lags on by one order, or to where it has to wait.
    fn advance(&mut self, now: Time, sinks: &mut Sinks, key: SinkKey, stream_bps: u64) -> Option<Order> {
        let sink = sinks.get_mut(key.0)?;
        let Place::Behind(from) = sink.place else { return None };
        if sink.blocked {
            return None;
        }
        if let Some(order) = self.greet(sinks, key, from) {
            return Some(order);
        }
        let sink = sinks.get_mut(key.0)?;
        let class = Class::of(&sink.spec);
        let front = match sink.stop {
            Some(stop) if from >= stop.at => {
                self.stopped.push(key);
                return None;
            }
            // Its cohort goes further than that.
            _ if sink.stop.is_some() || sink.is_entering(from) => self.ring.head(),
            _ => self.cohort_front(self.cohorts.iter().position(|cohort| cohort.class == class)),
        };
        if from >= front {
            self.catch_up(sinks, key, from);
            return None;
        }
        let room = match sink.allowance(now, stream_bps) {
            Ok(bytes) => bytes,
            Err(due) => {
                sink.queued = true;
                self.resting.insert((due, key));
                return None;
            }
        };
        if let Some(entry) = self.ring.get(from) {
            mend(&mut sink.broken, entry);
            sink.max_layer = max_layer_from(&self.ring, sink, entry);
        }
        let tracks = sink.tracks_at(from, self.ring.main_track()).without(sink.broken);
        let share = Share { max_layer: sink.max_layer, sequence_offset: sink.sequence_offset };
        let (to, stride) = stride(&self.ring, sink, from..front, room);
        let sent = stride.sent;
        stride.add_to(sink);
        sink.pace.spend(sent.bytes as usize);
        let has_preamble = self.ring.get(from).is_some_and(|entry| entry.preamble.is_some());
        let preamble = sink.needs_preamble && has_preamble && sent.packets > 0;
        let leaves = sink.stop.is_some_and(|stop| stop.begins_again);
        sink.needs_preamble &= !preamble;
        self.behind.remove(&(from, key));
        sink.place = Place::Behind(to);
        self.behind.insert((to, key));
        self.make_ready(sinks, key);
        (sent.packets > 0).then_some(Order {
            branch: self.index,
            recipients: Recipients::One(key),
            from,
            to,
            tracks,
            share: Some(share),
            preamble,
            leaves,
        })
    }

    /// A sink is where its cohort is: into it, if it is whole and no turn is going on.
    fn catch_up(&mut self, sinks: &mut Sinks, key: SinkKey, at: Seq) {
        let head = self.ring.head();
        let Some(sink) = sinks.get_mut(key.0) else { return };
        let class = Class::of(&sink.spec);
        let cohort = match self.cohorts.iter().position(|c| c.class == class) {
            Some(index) => index,
            None => {
                self.cohorts.push(Cohort::new(class, head));
                self.cohorts.len() - 1
            }
        };
        let state = &mut self.cohorts[cohort];
        if state.members.is_empty() {
            (state.cursor, state.turn) = (head, None);
        }
        if !sink.broken.is_empty() || !state.takes(at) {
            sink.queued = true;
            self.idle.push(key);
            return;
        }
        self.behind.remove(&(at, key));
        sink.lossy_since = None;
        sink.broken = TrackMask::NONE;
        let (slot, group) = state.add(key, sink.max_layer, sink.sequence_offset);
        sink.place = Place::Live { cohort, slot };
        sink.sequence_offset = sink.sequence_offset.wrapping_sub(group.sequence_offset);
        sink.counters.take_off(group.totals);
        sink.drops.take_off(&group.drops);
        if sink.max_layer != sink.spec.level.of(self.layers) {
            self.changing.push(key);
        }
    }

    /// Out of its cohort, if it is in one, with its counters made whole. Its place is then unset.
    pub(super) fn detach(&mut self, sinks: &mut Sinks, key: SinkKey) {
        let Some(sink) = sinks.get_mut(key.0) else { return };
        let Place::Live { cohort, slot } = sink.place else { return };
        let state = &mut self.cohorts[cohort];
        let (totals, drops, sequence_offset) = state.standing(slot, sink.max_layer);
        let apart = sink.sequence_offset;
        sink.sequence_offset = apart.wrapping_add(sequence_offset);
        sink.counters.add(totals);
        sink.drops.merge(&drops);
        sink.place = Place::Paused;
        sink.queued = false;
        state.remove(slot, sink.max_layer, apart, |moved, slot| {
            if let Some(moved) = sinks.get_mut(moved.0) {
                moved.place = Place::Live { cohort, slot };
            }
        });
    }

    pub(super) fn place_behind(&mut self, sinks: &mut Sinks, key: SinkKey, at: Seq) {
        let Some(sink) = sinks.get_mut(key.0) else { return };
        let at = at.max(self.ring.first());
        sink.place = Place::Behind(at);
        sink.queued = false;
        self.behind.insert((at, key));
        if !sink.blocked {
            self.make_ready(sinks, key);
        }
    }

    pub(super) fn make_ready(&mut self, sinks: &mut Sinks, key: SinkKey) {
        let Some(sink) = sinks.get_mut(key.0) else { return };
        if !core::mem::replace(&mut sink.queued, true) {
            self.ready[sink.spec.priority as usize].push_back(key);
        }
    }

    /// Makes ready a sink that was just taken out of another queue.
    fn requeue(&mut self, sinks: &mut Sinks, key: SinkKey) {
        if let Some(sink) = sinks.get_mut(key.0) {
            sink.queued = false;
        }
        self.make_ready(sinks, key);
    }

    /// Lets go what neither a sink nor the next to join needs.
    pub(super) fn trim(&mut self) {
        self.ring.forget_before(self.ring.join_floor().min(self.owed_from()));
    }
}
