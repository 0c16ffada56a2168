//! Packets that got lost between a stream's home and a replica. Sinks there are served on from the
//! next key frame, for which the stream as a whole waits: it costs the same for one and for
//! thousands, and the ring has nothing in it that no sink can use.

use outflow_media::Time;
use outflow_packet::limits::TRACKS_MAX;
use outflow_packet::{DropReason, Parsed, TrackMask};

use super::stream::Stream;
use crate::limits::GAP_HELD_PACKETS_MAX;
use crate::schedule::Place;

/// What is missing, and what waits.
#[derive(Debug)]
pub(super) struct Gap {
    /// Packets that no sink gets, by track.
    missed: [u64; TRACKS_MAX],
    /// Tracks that wait for a key frame.
    broken: TrackMask,
    /// The first packets of broken tracks' newest frames, of which it is not known yet whether they
    /// are key frames.
    held: Vec<Parsed>,
}

/// What becomes of a packet after a gap.
enum Verdict {
    /// It goes on: with what was held of its track before it.
    Passes(Vec<Parsed>),
    /// Not, or not yet.
    Stays,
}

impl Gap {
    pub(super) fn new() -> Self {
        Gap { missed: [0; TRACKS_MAX], broken: TrackMask::NONE, held: Vec::new() }
    }

    /// Packets of a track are missing.
    pub(super) fn miss(&mut self, track: u8, packets: u64) {
        self.missed[usize::from(track) % TRACKS_MAX] += packets;
        self.broken = self.broken.with(TrackMask::only(track));
        self.forget(track);
    }

    fn judge(&mut self, understood: Parsed) -> Verdict {
        let tag = understood.packet.tag;
        if !self.broken.has(tag.track) {
            return Verdict::Passes(vec![understood]);
        }
        if tag.first {
            self.forget(tag.track);
        }
        let mut of_frame =
            self.held.iter().map(|held| held.packet.tag).filter(|held| held.track == tag.track);
        let begun = tag.first || of_frame.next().is_some_and(|held| held.frame == tag.frame);
        if !begun || self.held.len() >= GAP_HELD_PACKETS_MAX {
            self.missed[usize::from(tag.track) % TRACKS_MAX] += 1;
            return Verdict::Stays;
        }
        self.held.push(understood);
        if !tag.key {
            return Verdict::Stays;
        }
        self.broken = self.broken.without(TrackMask::only(tag.track));
        let (passes, stays) =
            self.held.drain(..).partition(|held: &Parsed| held.packet.tag.track == tag.track);
        self.held = stays;
        Verdict::Passes(passes)
    }

    /// What was held of a track is of no use.
    fn forget(&mut self, track: u8) {
        let before = self.held.len();
        self.held.retain(|held| held.packet.tag.track != track);
        self.missed[usize::from(track) % TRACKS_MAX] += (before - self.held.len()) as u64;
    }

    /// How many packets a sink of these tracks did not get.
    fn missed(&self, tracks: TrackMask) -> u64 {
        (0_u8..).zip(self.missed).filter(|(track, _)| tracks.has(*track)).map(|(_, missed)| missed).sum()
    }
}

impl Stream {
    /// Takes a packet while some track waits for a key frame.
    pub(super) fn take_after_gap(&mut self, now: Time, understood: Parsed) {
        let Some(gap) = self.state.sharing.gap_mut() else { return };
        let Verdict::Passes(packets) = gap.judge(understood) else { return };
        if gap.broken.is_empty() {
            self.settle_gap();
        }
        for understood in packets {
            self.take_understood(now, understood);
        }
    }

    /// The gap is over: it is counted for every sink that was served. One that joined meanwhile did so at a
    /// key frame before the gap, and did not get the rest either.
    pub(super) fn settle_gap(&mut self) {
        let Some(mut gap) = self.state.sharing.take_gap() else { return };
        for track in 0..TRACKS_MAX as u8 {
            gap.forget(track);
        }
        for (_, sink) in &mut self.state.out.sinks {
            if matches!(sink.place, Place::Behind(_) | Place::Live { .. }) {
                sink.drops.add(DropReason::HandOverFull, gap.missed(sink.spec.tracks));
            }
        }
    }
}
