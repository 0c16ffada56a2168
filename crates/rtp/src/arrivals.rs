//! When packets of a transport arrived, by the numbers that all of them share, until their sender is told
//! ([`transport_cc`](crate::rtcp::transport_cc)).
//!
//! When that is due goes by the rate of what comes, as with libwebrtc: messages take a twentieth of it, but 50 to
//! 250 ms pass between two of them; before the rate is known, 100 ms.

use core::time::Duration;
use std::collections::VecDeque;

use outflow_media::Time;

use super::sequence_distance;
use crate::limits::ARRIVALS_MAX;

/// Shortest and longest time between two messages, and the first one.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(250);
const FIRST: Duration = Duration::from_millis(100);

/// Bytes of a message with all headers, and what share of the rate messages may take.
const MESSAGE_BYTES: u32 = 68;
const SHARE: u32 = 20;

/// What was told is kept for so long: packets that come late are told with those behind them.
const KEPT: Duration = Duration::from_millis(500);

/// Packets that arrived, in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub struct Arrivals {
    /// Of the packets from `first` on; those that are not there have no time.
    times: VecDeque<Option<Time>>,
    /// The number, counted on where it wraps.
    first: u64,
    /// The number of the first packet of which nothing is told, or not that it came.
    untold: u64,
    /// When the first packet came that is untold.
    since: Option<Time>,
    /// When was told last, or the first packet came.
    told: Time,
    interval: Duration,
    /// Since then.
    bytes: u64,
}

impl Arrivals {
    /// A packet of `bytes` came. Of one that came before, the first time counts.
    pub fn handle(&mut self, now: Time, sequence: u16, bytes: usize) {
        self.bytes += bytes as u64;
        let Some(number) = self.place(now, sequence) else { return };
        let Some(time) = self.times.get_mut((number - self.first) as usize).filter(|time| time.is_none())
        else {
            return;
        };
        *time = Some(now);
        self.untold = self.untold.min(number);
        self.since.get_or_insert(now);
    }

    /// When to call [`poll`](Self::poll). [`handle`](Self::handle) may make it earlier.
    pub fn due(&self) -> Option<Time> {
        let since = self.since?;
        let untold = self.first + self.times.len() as u64 - self.untold;
        if untold >= ARRIVALS_MAX as u64 / 2 {
            return Some(since);
        }
        Some(since.max(self.told + self.interval))
    }

    /// What to tell, if that is due: the number of the first packet, and when the packets from there on came. It may
    /// begin with ones that were told before.
    pub fn poll(&mut self, now: Time) -> Option<(u16, &[Option<Time>])> {
        if self.due()? > now {
            return None;
        }
        self.forget(now);
        let passed = now.since(self.told);
        let bytes = u32::try_from(self.bytes).unwrap_or(u32::MAX).max(1);
        self.interval = (passed * (MESSAGE_BYTES * SHARE) / bytes).clamp(SHORTEST, LONGEST);
        (self.told, self.bytes, self.since) = (now, 0, None);
        let (first, from) = (self.untold, (self.untold - self.first) as usize);
        self.untold = self.first + self.times.len() as u64;
        Some((first as u16, &self.times.make_contiguous()[from..]))
    }

    /// The number of a packet, for which there is a place then; none if it is too old.
    fn place(&mut self, now: Time, sequence: u16) -> Option<u64> {
        if self.times.is_empty() {
            // So far from nothing that earlier ones have numbers, too.
            (self.told, self.interval) = (now, FIRST);
            return Some(self.begin(1 << 32 | u64::from(sequence)));
        }
        let newest = self.first + self.times.len() as u64 - 1;
        let number = newest.saturating_add_signed(sequence_distance(newest as u16, sequence).into());
        if number >= newest + ARRIVALS_MAX as u64 {
            return Some(self.begin(number));
        }
        for _ in newest..number {
            self.times.push_back(None);
        }
        self.drop_first(self.times.len().saturating_sub(ARRIVALS_MAX));
        (number >= self.first).then_some(number)
    }

    /// Begins with a number, and answers it.
    fn begin(&mut self, number: u64) -> u64 {
        self.times.clear();
        self.times.push_back(None);
        (self.first, self.untold, self.since) = (number, number, None);
        number
    }

    /// Forgets what was told some time ago, and what was lost before that.
    fn forget(&mut self, now: Time) {
        let told = (self.untold - self.first) as usize;
        let is_old = |time: &Option<Time>| time.is_some_and(|time| now.since(time) > KEPT);
        let last = self.times.range(..told).rposition(is_old);
        self.drop_first(last.map_or(0, |last| last + 1));
    }

    fn drop_first(&mut self, count: usize) {
        self.times.drain(..count);
        self.first += count as u64;
        self.untold = self.untold.max(self.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// One to which these packets came, of `bytes` each, at these milliseconds.
    fn with(packets: &[(u16, u64)], bytes: usize) -> Arrivals {
        let mut arrivals = Arrivals::default();
        packets.iter().for_each(|(sequence, ms)| arrivals.handle(at(*ms), *sequence, bytes));
        arrivals
    }

    /// What it tells when that is due.
    fn told(arrivals: &mut Arrivals) -> (u16, Vec<Option<u64>>) {
        let due = arrivals.due().expect("something is untold");
        let (first, times) = arrivals.poll(due).expect("it is due");
        (first, times.iter().map(|time| time.map(Time::as_millis)).collect())
    }

    #[test]
    fn packets_are_told_in_the_order_of_their_numbers() {
        let mut arrivals = with(&[(65_534, 10), (1, 12), (65_535, 14), (2, 15), (2, 99)], 1200);
        assert_eq!(arrivals.due(), Some(at(110)));
        assert_eq!(arrivals.poll(at(109)), None);
        assert_eq!(told(&mut arrivals), (65_534, vec![Some(10), Some(14), None, Some(12), Some(15)]));
        assert_eq!((arrivals.due(), arrivals.poll(at(9999))), (None, None), "all is told");
    }

    #[test]
    fn what_comes_late_is_told_with_all_behind_it() {
        let mut arrivals = with(&[(5, 10), (7, 12)], 1200);
        told(&mut arrivals);
        arrivals.handle(at(200), 7, 1200);
        assert_eq!(arrivals.due(), None, "it was told of");
        arrivals.handle(at(200), 6, 1200);
        arrivals.handle(at(201), 8, 1200);
        assert_eq!(told(&mut arrivals), (6, vec![Some(200), Some(12), Some(201)]));
        arrivals.handle(at(202), 9, 1200);
        assert_eq!(told(&mut arrivals), (9, vec![Some(202)]));
    }

    #[test]
    fn what_comes_before_the_first_is_too_late() {
        let mut arrivals = with(&[(5, 10), (4, 12), (6, 13)], 1200);
        assert_eq!(told(&mut arrivals), (5, vec![Some(10), Some(13)]));
    }

    #[test]
    fn messages_are_as_far_apart_as_the_rate_has_it() {
        // In milliseconds, of packets of these sizes, one in 10 ms: 800 kbit/s, 80 kbit/s, 8 kbit/s.
        for (bytes, interval) in [(1000, 50), (100, 136), (10, 250)] {
            let mut arrivals = Arrivals::default();
            let mut polls = Vec::new();
            for number in 0..200 {
                arrivals.handle(at(u64::from(number) * 10), number, bytes);
                while let Some(due) = arrivals.due().filter(|due| *due < at(u64::from(number + 1) * 10)) {
                    arrivals.poll(due).expect("it is due");
                    polls.push(due.as_millis());
                }
            }
            assert_eq!(polls[0], 100);
            let apart = polls[polls.len() - 1] - polls[polls.len() - 2];
            assert!(apart.abs_diff(interval) <= 10, "{bytes} bytes: {apart} ms");
        }
    }

    #[test]
    fn a_packet_after_a_pause_is_told_at_once() {
        let mut arrivals = with(&[(5, 10)], 1200);
        told(&mut arrivals);
        arrivals.handle(at(5000), 6, 1200);
        assert_eq!(arrivals.due(), Some(at(5000)));
    }

    #[test]
    fn no_more_are_kept_than_the_bound_and_half_of_it_is_told_at_once() {
        let half = ARRIVALS_MAX as u16 / 2;
        let mut arrivals = with(&(0..half - 1).map(|n| (n, 10)).collect::<Vec<_>>(), 1200);
        assert_eq!(arrivals.due(), Some(at(110)));
        arrivals.handle(at(11), half - 1, 1200);
        assert_eq!(arrivals.due(), Some(at(10)));
        // Where that is not asked for, the oldest are forgotten.
        (half..half * 2 + 7).for_each(|number| arrivals.handle(at(12), number, 1200));
        let (first, times) = told(&mut arrivals);
        assert_eq!((first, times.len()), (7, ARRIVALS_MAX));
        // A gap leaves room for what is missing in it; a leap does not.
        arrivals.handle(at(20), half * 4 + 5, 1200);
        assert_eq!(arrivals.times.len(), ARRIVALS_MAX);
        assert_eq!(told(&mut arrivals).1.len(), ARRIVALS_MAX - 1);
        arrivals.handle(at(21), 30_000, 1200);
        assert_eq!(told(&mut arrivals), (30_000, vec![Some(21)]));
    }

    #[test]
    fn what_was_told_is_forgotten_after_some_time() {
        let (mut arrivals, mut newest) = (Arrivals::default(), 0);
        for number in 0..10_000_u16 {
            if number % 7 != 3 {
                arrivals.handle(at(number.into()), number, 1200);
                newest = number;
            }
            if let Some((first, times)) = arrivals.poll(at(number.into())) {
                assert_eq!(usize::from(first) + times.len(), usize::from(newest) + 1);
                assert_eq!(times.last(), Some(&Some(at(newest.into()))));
            }
            assert!(arrivals.times.len() <= 660, "{}", arrivals.times.len());
        }
    }
}
