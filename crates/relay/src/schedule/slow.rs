//! Sinks that are slow: what they did not take is offered again, and what the ring can no longer
//! hold for them is lost to them and to no other sink; or, under other policies, what arrives is lost
//! to all.

use outflow_media::{Tag, Time};
use outflow_packet::limits::TRACKS_MAX;
use outflow_packet::{DropReason, Drops, Level, TrackMask};

use super::branch::Branch;
use super::ids::SinkKey;
use super::sink::{Place, Sink, Sinks};
use super::stride::Stride;
use outflow_ring::Seq;

impl Branch {
    /// Everything a sink should have had and did not get, its cohort's share included.
    pub fn drops(&self, sinks: &Sinks, key: SinkKey) -> Drops {
        let Some(sink) = sinks.get(key.0) else { return Drops::default() };
        let mut sum = sink.drops;
        if let Place::Live { cohort, slot } = sink.place {
            sum.merge(&self.cohorts[cohort].standing(slot, sink.max_layer).1);
        }
        sum
    }

    /// The oldest packet that is owed to a sink; the next to come, if none is.
    pub(super) fn owed_from(&self) -> Seq {
        let behind = self.behind.first().map(|(seq, _)| *seq);
        let up = self.cohorts.iter().filter(|c| !c.members.is_empty()).map(|c| c.cursor);
        up.chain(behind).min().unwrap_or(self.ring.head())
    }

    /// The driver said that a sink took nothing from `next` on.
    pub fn blocked(&mut self, sinks: &mut Sinks, key: SinkKey, next: Seq) {
        self.greet_again(sinks, key, next);
        let until = self.cursor(sinks, key);
        self.detach(sinks, key);
        let Some(sink) = sinks.get_mut(key.0) else { return };
        sink.blocked = true;
        let Some(until) = until else { return };
        let next = next.clamp(self.ring.first(), until);
        let mut untaken = Stride::default();
        self.ring.range(next, until).for_each(|at| untaken.count(&self.ring, sink, at));
        untaken.take_from(sink);
        if let Place::Behind(seq) = sink.place {
            self.behind.remove(&(seq, key));
        }
        sink.place = Place::Behind(next);
        self.behind.insert((next, key));
    }

    /// The ring refused a packet: all that want it have lost it. Policies that refuse are plain queues: what
    /// depends on the packet is sent nevertheless.
    pub(super) fn refuse(&mut self, now: Time, sinks: &mut Sinks, tag: &Tag, reason: DropReason) {
        let (ring, track) = (&self.ring, tag.track);
        for cohort in self.cohorts.iter_mut().filter(|cohort| cohort.class.tracks.has(track)) {
            for group in cohort.groups.iter_mut().filter(|group| ring.is_within(group.max_layer, tag)) {
                group.drops.add(reason, 1);
            }
        }
        for (_, key) in &self.behind {
            let Some(sink) = sinks.get_mut(key.0) else { continue };
            if sink.spec.tracks.has(track) && ring.is_within(sink.max_layer, tag) {
                sink.drops.add(reason, 1);
                sink.lossy_since.get_or_insert(now);
            }
        }
    }

    /// The ring is full: everything before `until` goes, and a sink that still needed it has lost it.
    pub(super) fn give_up(&mut self, now: Time, sinks: &mut Sinks, until: Seq) {
        let mut overtaken = core::mem::take(&mut self.lost_scratch);
        overtaken.clear();
        for index in 0..self.cohorts.len() {
            if self.cohorts[index].cursor < until {
                for key in self.cohorts[index].members.clone() {
                    let Some(cursor) = self.cursor(sinks, key) else { continue };
                    self.detach(sinks, key);
                    self.place_behind(sinks, key, cursor);
                }
            }
        }
        overtaken.extend(self.behind.iter().take_while(|(seq, _)| *seq < until).map(|(_, key)| *key));
        // From the newest on, so that each packet is counted once and not once a sink: a higher class
        // waits while this is done.
        let mut given_up = GivenUp::new(self.ring.main_track());
        let mut counted = until;
        for &key in overtaken.iter().rev() {
            let Some(sink) = sinks.get_mut(key.0) else { continue };
            let Place::Behind(from) = sink.place else { continue };
            for (_, entry) in self.ring.range(from, counted) {
                given_up.add(&entry.packet.tag);
            }
            counted = counted.min(from);
            given_up.take_from(sink);
            sink.lossy_since.get_or_insert(now);
            sink.place = Place::Behind(until);
        }
        self.behind = self.behind.split_off(&(until, SinkKey(0)));
        self.behind.extend(overtaken.iter().map(|&key| (until, key)));
        self.lost_scratch = overtaken;
        self.ring.forget_before(until);
    }
}

/// Packets that go, by track, and by layer of the main track.
struct GivenUp {
    main_track: u8,
    tracks: [u64; TRACKS_MAX],
    layers: [u64; Level::MAX as usize],
}

impl GivenUp {
    fn new(main_track: u8) -> Self {
        GivenUp { main_track, tracks: [0; TRACKS_MAX], layers: [0; Level::MAX as usize] }
    }

    fn add(&mut self, tag: &Tag) {
        self.tracks[usize::from(tag.track) % TRACKS_MAX] += 1;
        if tag.track == self.main_track {
            self.layers[usize::from(tag.layer % Level::MAX)] += 1;
        }
    }

    /// A sink has lost what it wanted of them.
    fn take_from(&self, sink: &mut Sink) {
        let above = &self.layers[usize::from(sink.max_layer.layer()) + 1..];
        let left_out: u64 = above.iter().sum();
        for (track, &packets) in (0..).zip(&self.tracks) {
            let of_main = track == self.main_track;
            let packets = packets - if of_main { left_out } else { 0 };
            if sink.spec.tracks.has(track) && packets > 0 {
                sink.drops.add(DropReason::SlowSink, packets);
                sink.broken = sink.broken.with(TrackMask::only(track));
            }
        }
        if sink.spec.tracks.has(self.main_track) {
            sink.drops.add(DropReason::Level, left_out);
            sink.sequence_offset = sink.sequence_offset.wrapping_add(left_out as u16);
        }
    }
}
