//! How long packets wait in the network: the least that any of the last ones did. A queue that only a key frame makes is
//! gone before the next picture; one that stands is of a way that carries less than it is sent (as CoDel has it, RFC 8289).

use core::time::Duration;

use outflow_media::Time;

use crate::limits::{STANDS_FOR, WAITS_COMPARED};

/// By when packets are sent and when they arrive, of clocks that need not agree.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The least time on the way in half a minute or more, ...
    least: Lowest,
    /// ... and in the last moments.
    recent: Lowest,
    heard: Time,
}

impl Waiting {
    pub(super) fn new() -> Self {
        Waiting { least: Lowest::of(WAITS_COMPARED), recent: Lowest::of(STANDS_FOR), heard: Time::ZERO }
    }

    /// A packet that was sent then has arrived at that time, in millionths of a second of the receiver's clock.
    pub(super) fn arrived(&mut self, now: Time, sent: Time, received_us: i64) {
        let way = received_us.wrapping_sub((sent.as_nanos() / 1_000).cast_signed());
        self.least.note(now, way);
        self.recent.note(now, way);
        self.heard = now;
    }

    /// How long every packet of the last moments has waited at least; nothing if none has come.
    pub(super) fn stands(&self, now: Time) -> Duration {
        let known = self.recent.lowest().zip(self.least.lowest());
        let known = known.filter(|_| now.since(self.heard) < 2 * STANDS_FOR);
        let waited = known.map_or(0, |(recent, least)| recent.wrapping_sub(least).max(0));
        Duration::from_micros(waited.cast_unsigned())
    }
}

/// The lowest of the values of a span of time, and of the span before.
#[derive(Debug)]
pub(super) struct Lowest {
    span: Duration,
    began: Option<Time>,
    now: Option<i64>,
    before: Option<i64>,
}

impl Lowest {
    pub(super) fn of(span: Duration) -> Self {
        Lowest { span, began: None, now: None, before: None }
    }

    pub(super) fn note(&mut self, now: Time, value: i64) {
        let passed = now.since(*self.began.get_or_insert(now));
        if passed >= self.span {
            let is_next = passed < 2 * self.span;
            (self.before, self.now, self.began) = (self.now.filter(|_| is_next), None, Some(now));
        }
        self.now = Some(self.now.map_or(value, |lowest| lowest.min(value)));
    }

    pub(super) fn lowest(&self) -> Option<i64> {
        self.now.into_iter().chain(self.before).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets each 10 ms, by a clock that is an hour ahead, which wait this many ms each.
    fn stands(waits: impl Iterator<Item = u64>) -> Duration {
        let (mut waiting, mut now) = (Waiting::new(), Time::from_millis(5_000));
        for ms in waits {
            let sent = now;
            now = now + Duration::from_millis(10);
            let received_us = (3_600_000 + sent.as_millis() + 20 + ms) * 1_000;
            waiting.arrived(now, sent, received_us.cast_signed());
        }
        waiting.stands(now)
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
        let mut waiting = Waiting::new();
        let at = Time::from_millis(5_000);
        assert_eq!(waiting.stands(at), Duration::ZERO);
        waiting.arrived(at, at, 0);
        let later = at + WAITS_COMPARED / 2;
        waiting.arrived(later, later, 15_300_000);
        assert_eq!(waiting.stands(later), Duration::from_millis(300));
        assert_eq!(waiting.stands(later + 2 * STANDS_FOR), Duration::ZERO);
    }
}
