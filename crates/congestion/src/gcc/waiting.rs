//! How long packets wait in the network. A queue that only a key frame makes is gone before the next picture; one that
//! stands is of a way that carries less than it is sent (as CoDel has it, RFC 8289). What comes while all packets wait is
//! what the way carries.

use core::time::Duration;

use outflow_media::Time;

use crate::Lowest;

/// A queue stands if the least that packets have waited is long over this number of milliseconds, or twice it ...
const STANDS_MS: u64 = 200;

/// ... compared with the least over this number, or twice it: clocks drift.
const COMPARED_MS: u64 = 30_000;

/// A way is full where packets wait for this time. What comes of them over the other time is what it carries.
const FULL_US: i64 = 50_000;
const FULL_FOR_US: i64 = 100_000;

/// By when packets are sent and when they arrive, of clocks that need not agree.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    /// The least time on the way in half a minute or more, ...
    least: Lowest<COMPARED_MS>,
    /// ... and in the last moments.
    recent: Lowest<STANDS_MS>,
    full: Option<Full>,
    heard: Time,
}

/// All packets have waited since this one came.
#[derive(Debug, Clone, Copy)]
struct Full {
    since_us: i64,
    /// Its time on the way.
    way_us: i64,
    /// Those behind it.
    bytes: u64,
}

/// What the way has carried while all packets waited there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) bps: u64,
    /// Packets waited longer and longer: more was sent.
    pub(super) is_overrun: bool,
}

impl Waiting {
    /// A packet of `bytes` that was sent then has arrived at that time, in millionths of a second of the receiver's clock.
    /// Answers what the way carries, each time that this is known.
    pub(super) fn arrived(&mut self, now: Time, sent: Time, received_us: i64, bytes: u64) -> Option<Carried> {
        let way_us = received_us.wrapping_sub((sent.as_nanos() / 1_000).cast_signed());
        self.least.note(now, way_us);
        self.recent.note(now, way_us);
        self.heard = now;
        let waited = self.least.lowest().map_or(0, |least| way_us.wrapping_sub(least));
        let is_full = waited >= FULL_US;
        let begins = Full { since_us: received_us, way_us, bytes: 0 };
        let Some(full) = self.full.as_mut().filter(|_| is_full) else {
            self.full = is_full.then_some(begins);
            return None;
        };
        full.bytes = full.bytes.saturating_add(bytes);
        let passed_us = received_us.wrapping_sub(full.since_us);
        if passed_us < FULL_FOR_US {
            return None;
        }
        let bps = u128::from(full.bytes) * 8_000_000 / u128::from(passed_us.unsigned_abs());
        let is_overrun = way_us.wrapping_sub(full.way_us) > 0;
        *full = begins;
        Some(Carried { bps: u64::try_from(bps).unwrap_or(u64::MAX), is_overrun })
    }

    /// How long every packet of the last moments has waited at least; nothing if none has come.
    pub(super) fn stands(&self, now: Time) -> Duration {
        let known = self.recent.lowest().zip(self.least.lowest());
        let known = known.filter(|_| now.since(self.heard) < Duration::from_millis(2 * STANDS_MS));
        let waited = known.map_or(0, |(recent, least)| recent.wrapping_sub(least).max(0));
        Duration::from_micros(waited.cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets each 10 ms, by a clock that is an hour ahead, which wait this many ms each.
    fn stands(waits: impl Iterator<Item = u64>) -> Duration {
        let (mut waiting, mut now) = (Waiting::default(), Time::from_millis(5_000));
        for ms in waits {
            let sent = now;
            now = now + Duration::from_millis(10);
            let received_us = (3_600_000 + sent.as_millis() + 20 + ms) * 1_000;
            waiting.arrived(now, sent, received_us.cast_signed(), 1_000);
        }
        waiting.stands(now)
    }

    #[test]
    fn what_is_carried_shows_while_all_packets_wait() {
        let (mut waiting, at) = (Waiting::default(), Time::from_millis(5_000));
        let mut come = |sent_ms: u64, came_ms: u64| {
            let sent = at + Duration::from_millis(sent_ms);
            let carried = waiting.arrived(at, sent, (came_ms * 1_000).cast_signed(), 1_250);
            carried.map(|carried| (carried.bps, carried.is_overrun))
        };
        assert!((0..50).all(|n| come(n * 10, n * 10 + 20).is_none()), "none waits");
        // One in 20 ms is half a megabit a second; they come each 5 ms.
        let told: Vec<_> = (0..20).map(|n| come(500 + n * 5, 520 + n * 20)).collect();
        let expected: Vec<_> = (0..20).map(|n| [9, 14, 19].contains(&n).then_some((500_000, true))).collect();
        assert_eq!(told, expected, "from the fifth on all wait");
        // One that does not wait ends that: a pause says nothing of the way.
        assert_eq!([come(1_000, 1_020), come(1_001, 1_080), come(1_002, 1_170)], [None; 3]);
    }

    #[test]
    fn a_queue_that_goes_does_not_stand() {
        let calm = || core::iter::repeat_n(0, 100);
        assert_eq!(stands(calm()), Duration::ZERO);
        let bursts = (0..300).map(|number| if number % 30 < 25 { 200 } else { 0 });
        assert_eq!(stands(calm().chain(bursts)), Duration::ZERO);
        let grows = (0..100).map(|number| 100 + number);
        assert_eq!(stands(calm().chain(grows)), Duration::from_millis(160), "the least of the last 400 ms");
    }

    #[test]
    fn what_is_heard_no_more_is_not_known() {
        let mut waiting = Waiting::default();
        let at = Time::from_millis(5_000);
        assert_eq!(waiting.stands(at), Duration::ZERO);
        waiting.arrived(at, at, 0, 1_000);
        let later = at + Duration::from_millis(COMPARED_MS / 2);
        waiting.arrived(later, later, 15_300_000, 1_000);
        assert_eq!(waiting.stands(later), Duration::from_millis(300));
        assert_eq!(waiting.stands(later + Duration::from_millis(2 * STANDS_MS)), Duration::ZERO);
    }
}
