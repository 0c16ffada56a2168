//! Packets that got lost between a stream's owner and a replica. Sinks there are served on from the
//! next key frame, for which the stream as a whole waits: it costs the same for one and for
//! thousands, and the ring has nothing in it that no sink can use.

use outflow_packet::limits::TRACKS_MAX;
use outflow_packet::{DropReason, Parsed, TrackMask};

use crate::limits::GAP_HELD_PACKETS_MAX;
use crate::schedule::{Place, Sinks};

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

    /// Takes a packet. Returns those that go on: it, with what was held of its track before it; none, or none yet.
    pub(super) fn judge(&mut self, parsed: Parsed) -> Vec<Parsed> {
        let tag = parsed.packet.tag;
        if !self.broken.has(tag.track) {
            return vec![parsed];
        }
        if tag.first {
            self.forget(tag.track);
        }
        let mut of_frame =
            self.held.iter().map(|held| held.packet.tag).filter(|held| held.track == tag.track);
        let begun = tag.first || of_frame.next().is_some_and(|held| held.frame == tag.frame);
        if !begun || self.held.len() >= GAP_HELD_PACKETS_MAX {
            self.missed[usize::from(tag.track) % TRACKS_MAX] += 1;
            return Vec::new();
        }
        self.held.push(parsed);
        if !tag.key {
            return Vec::new();
        }
        self.broken = self.broken.without(TrackMask::only(tag.track));
        let (passes, stays) =
            self.held.drain(..).partition(|held: &Parsed| held.packet.tag.track == tag.track);
        self.held = stays;
        passes
    }

    /// Whether no track waits any more.
    pub(super) fn is_over(&self) -> bool {
        self.broken.is_empty()
    }

    /// Counts for every sink that was served what it did not get.
    pub(super) fn settle(mut self, sinks: &mut Sinks) {
        (0..TRACKS_MAX as u8).for_each(|track| self.forget(track));
        for (_, sink) in sinks {
            if matches!(sink.place, Place::Behind(_) | Place::Live { .. }) {
                sink.drops.add(DropReason::HandOverFull, self.missed(sink.spec.tracks));
            }
        }
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
