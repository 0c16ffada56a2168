//! What a stream that is served from several places hands over, and what got lost on the way. It has one *owner*,
//! which has the source: there, packets are received and parsed, once. *Replicas* are handed what comes out of
//! that, and serve sinks of their own with the very same packets.

use outflow_packet::Parsed;
use outflow_ts::{FindingsPool, Found};

use super::gap::Gap;
use super::handed::{Handed, TrackClock};
use crate::schedule::Sinks;

/// What is handed over: from a stream's owner, or lost on the way to a replica.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    /// What replicas are to be handed, if there are any.
    handed: Option<Vec<Handed>>,
    /// What goes with the datagrams of a transport stream.
    findings: FindingsPool,
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

    /// Puts a packet down for them, with what was found in it, if it was read here.
    pub(super) fn hand_packet(&mut self, parsed: &Parsed, found: &[Found]) {
        let Some(handed) = &mut self.handed else { return };
        let found = (!found.is_empty()).then(|| self.findings.lend(found));
        handed.push(Handed::Packet(Parsed { found, ..parsed.clone() }));
    }

    /// Puts down what a track's sender reports say, if that is known.
    pub(super) fn hand_clock(&mut self, clock: Option<TrackClock>) {
        clock.into_iter().for_each(|clock| self.hand(Handed::Clock(clock)));
    }

    /// From now on what replicas need is put down. Returns what was put down before.
    pub(super) fn begin(&mut self) -> Vec<Handed> {
        self.handed.replace(Vec::new()).unwrap_or_default()
    }

    /// There are no replicas any more.
    pub(super) fn end(&mut self) {
        self.handed = None;
    }

    /// Takes out what was put down, if that is anything. As much room is kept for what comes next.
    pub(super) fn take_handed(&mut self) -> Option<Vec<Handed>> {
        let handed = self.handed.as_mut().filter(|handed| !handed.is_empty())?;
        let room = Vec::with_capacity(handed.len());
        Some(core::mem::replace(handed, room))
    }

    /// Packets of a track got lost on the way to this replica.
    pub(super) fn miss(&mut self, track: u8, packets: u64) {
        self.gap.get_or_insert_with(|| Box::new(Gap::new())).miss(track, packets);
    }

    /// Whether some track waits for a key frame.
    pub(super) fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    /// A packet came while some track waits for a key frame. Returns what goes on, the gap being over with it or
    /// not.
    pub(super) fn take_after_gap(&mut self, sinks: &mut Sinks, parsed: Parsed) -> Vec<Parsed> {
        let Some(gap) = &mut self.gap else { return vec![parsed] };
        let passes = gap.judge(parsed);
        if !passes.is_empty() && gap.is_over() {
            self.settle_gap(sinks);
        }
        passes
    }

    /// The gap is over: it is counted for every sink that was served. One that joined meanwhile did so at a
    /// key frame before the gap, and did not get the rest either.
    pub(super) fn settle_gap(&mut self, sinks: &mut Sinks) {
        if let Some(gap) = self.gap.take() {
            gap.settle(sinks);
        }
    }
}
