//! Possible parents, known beforehand.

use core::time::Duration;
use std::collections::BTreeMap;

use outflow_media::Time;

use super::limits::{CANDIDATES_MAX, ENTRY_LIFE, FAILED_MEMORY, RESTING_MAX};
use super::path::{Location, Offer, RelayId};
use crate::Random;

/// What one more relay on the way costs, in microseconds of distance.
const HOP_US: u64 = 4_000;
/// What a full relay costs more than an empty one.
const LOAD_US: u64 = 16_000;

#[derive(Debug, Clone)]
struct Candidate {
    offer: Offer,
    seen: Time,
    /// When it may be asked again.
    rests_until: Time,
    /// Refusals since it was known to have the stream.
    refusals: u32,
    /// How often it agreed and did not send the stream, and when it did so last.
    failures: (u32, Time),
    measured: Option<Duration>,
    /// From relay to relay another, so that the children of a dead parent do not all choose the same.
    noise: u64,
}

impl Candidate {
    fn cost_us(&self, now: Time, here: Location) -> u64 {
        self.lasting_cost_us(now, here) + u64::from(self.offer.load) * LOAD_US / 255
    }

    fn has_failed(&self, now: Time) -> bool {
        self.failures.0 > 0 && now.since(self.failures.1) < FAILED_MEMORY
    }

    const fn resting(&self) -> Resting {
        Resting { until: self.rests_until, refusals: self.refusals, failures: self.failures }
    }

    /// The part that does not change with which other children are served.
    fn lasting_cost_us(&self, now: Time, here: Location) -> u64 {
        let distance = self.measured.unwrap_or_else(|| here.round_trip(self.offer.contact.location));
        let cost = distance.as_micros() as u64 + u64::from(self.offer.path.depth) * HOP_US;
        let is_old = now.since(self.seen) > ENTRY_LIFE;
        (cost + cost * self.noise / 1024) << u32::from(is_old)
    }
}

/// One that made room for others while it rested.
#[derive(Debug, Clone, Copy)]
struct Resting {
    until: Time,
    refusals: u32,
    failures: (u32, Time),
}

/// The possible parents of one stream.
#[derive(Debug, Clone)]
pub(super) struct Candidates {
    here: Location,
    known: BTreeMap<RelayId, Candidate>,
    /// Others go on naming these: without this, they would be asked again at once.
    resting: BTreeMap<RelayId, Resting>,
}

impl Candidates {
    pub(super) const fn new(here: Location) -> Self {
        Candidates { here, known: BTreeMap::new(), resting: BTreeMap::new() }
    }

    /// Another relay or the directory says that this one has the stream.
    pub(super) fn learn(&mut self, now: Time, offer: Offer, random: &mut Random) {
        let relay = offer.contact.relay;
        if let Some(candidate) = self.known.get_mut(&relay) {
            candidate.offer = offer;
            candidate.seen = now;
            return;
        }
        let rested = self.resting.get(&relay).copied();
        if rested.is_some_and(|resting| resting.until > now) {
            return;
        }
        self.resting.remove(&relay);
        let (refusals, failures) =
            rested.map_or((0, (0, now)), |resting| (resting.refusals, resting.failures));
        let noise = random.bits() % 256;
        let candidate =
            Candidate { offer, seen: now, rests_until: now, refusals, failures, measured: None, noise };
        self.known.insert(relay, candidate);
        if self.known.len() > CANDIDATES_MAX {
            self.forget_worst(now);
        }
    }

    fn forget_worst(&mut self, now: Time) {
        let key = |candidate: &Candidate| {
            let rests = candidate.rests_until > now;
            (rests, candidate.offer.path.root, candidate.cost_us(now, self.here))
        };
        let worst = self.known.iter().max_by_key(|(_, candidate)| key(candidate)).map(|(relay, _)| *relay);
        let Some((relay, worst)) = worst.and_then(|worst| self.known.remove_entry(&worst)) else { return };
        if worst.rests_until <= now {
            return;
        }
        self.resting.insert(relay, worst.resting());
        if self.resting.len() > RESTING_MAX {
            self.resting.retain(|_, resting| resting.until > now);
        }
        if self.resting.len() > RESTING_MAX {
            let first = self.resting.iter().min_by_key(|(_, resting)| resting.until);
            first.map(|(relay, _)| *relay).map(|first| self.resting.remove(&first));
        }
    }

    /// Not to be asked before then.
    pub(super) fn rest(&mut self, relay: RelayId, until: Time) {
        if let Some(candidate) = self.known.get_mut(&relay) {
            candidate.rests_until = until;
        }
    }

    /// It refused, and rests for longer each time.
    pub(super) fn refused(&mut self, relay: RelayId, now: Time, rest: Duration) {
        if let Some(candidate) = self.known.get_mut(&relay) {
            candidate.rests_until = now + rest * (1 << candidate.refusals.min(4));
            candidate.refusals += 1;
        }
    }

    /// It agreed, and the stream did not come; it rests for longer each time.
    pub(super) fn failed(&mut self, relay: RelayId, now: Time, rest: Duration) {
        if let Some(candidate) = self.known.get_mut(&relay) {
            let before = if candidate.has_failed(now) { candidate.failures.0 } else { 0 };
            candidate.rests_until = now + rest * (1 << before.min(4));
            candidate.failures = (before + 1, now);
        }
    }

    /// Whether it did not send what it had agreed to, not long ago.
    pub(super) fn has_failed(&self, now: Time, relay: RelayId) -> bool {
        self.known.get(&relay).is_some_and(|candidate| candidate.has_failed(now))
    }

    /// It has the stream.
    pub(super) fn measure(&mut self, relay: RelayId, round_trip: Duration) {
        if let Some(candidate) = self.known.get_mut(&relay) {
            candidate.refusals = 0;
            candidate.measured = Some(candidate.measured.map_or(round_trip, |least| least.min(round_trip)));
        }
    }

    /// The best that may be asked now: of the best source, one that has not failed, and then the nearest.
    pub(super) fn best(&self, now: Time, may: impl Fn(&Offer) -> bool) -> Option<&Offer> {
        let may = |candidate: &&Candidate| candidate.rests_until <= now && may(&candidate.offer);
        let able = self.known.values().filter(may);
        let key = |candidate: &&Candidate| {
            let has_failed = candidate.has_failed(now);
            (candidate.offer.path.root, has_failed, candidate.cost_us(now, self.here))
        };
        able.min_by_key(key).map(|candidate| &candidate.offer)
    }

    /// When one may be asked that may not be now.
    pub(super) fn next_rested(&self, now: Time) -> Option<Time> {
        self.known.values().map(|candidate| candidate.rests_until).filter(|until| *until > now).min()
    }

    /// What it costs, without its load, which changes with relays that move: two could move in turns forever.
    pub(super) fn cost_us(&self, now: Time, relay: RelayId) -> Option<u64> {
        self.known.get(&relay).map(|candidate| candidate.lasting_cost_us(now, self.here))
    }

    pub(super) fn offer(&self, relay: RelayId) -> Option<&Offer> {
        self.known.get(&relay).map(|candidate| &candidate.offer)
    }

    pub(super) fn offers(&self) -> impl Iterator<Item = &Offer> {
        self.known.values().map(|candidate| &candidate.offer)
    }

    pub(super) fn len(&self) -> usize {
        self.known.len() + self.resting.len()
    }
}
