//! Packets that are sent faster than the estimate for a moment, to see whether so much fits.
//!
//! The draft has no probes; without them an application that does not use what there is never learns that there is
//! more. What a probe says is judged as by libwebrtc, whose figures these are.

use core::time::Duration;

use outflow_media::Time;

use crate::ledger::Outcome;
use crate::limits::PROBE_MAX;

/// So much of it has to be known to have arrived, in percent.
const ARRIVED_PERCENT: u64 = 80;

/// Where it arrives this much slower than it was sent, it was too much: so much of what arrived is used.
const SLOWER: f64 = 0.9;
const USED: f64 = 0.95;

/// What arrives so much faster than it was sent was held up: that says nothing.
const FASTER: f64 = 2.0;

/// A probe that gives so much of what it was for is followed by a next one; else that waits.
const SUCCEEDED: f64 = 0.7;
const PATIENCE: Duration = Duration::from_secs(5);

/// What is probed for is this multiple of the estimate.
const TIMES: f64 = 2.0;

/// What is known of a probe's packets.
#[derive(Debug, Clone, Copy)]
struct Probe {
    first: u64,
    last: u64,
    began: Time,
    target_bps: f64,
    packets: u64,
    bytes: u64,
    /// When the first and the last of them were sent and arrived, with their bytes.
    sent: Option<[(Time, u64); 2]>,
    received_us: Option<[(i64, u64); 2]>,
}

/// What a probe says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Found {
    /// This rate fits, in bits a second.
    Fits(f64),
    /// Nothing.
    Nothing,
}

/// Probes, one at a time.
#[derive(Debug, Clone, Default)]
pub(super) struct Probes {
    current: Option<Probe>,
    /// The next one may go then.
    next: Time,
}

impl Probes {
    /// At what rate to probe now, if at all, where the application could use `wanted_bps`.
    pub(super) fn wanted(&self, now: Time, estimate_bps: f64, wanted_bps: f64) -> Option<f64> {
        let is_waiting = self.current.is_some_and(|probe| now.since(probe.began) <= PROBE_MAX * 2);
        let is_due = !is_waiting && now >= self.next && wanted_bps > estimate_bps;
        is_due.then(|| wanted_bps.min(estimate_bps * TIMES))
    }

    /// `count` packets, from the number `first` on, are sent as a probe from now on.
    pub(super) fn begin(&mut self, now: Time, first: u64, count: u64, target_bps: f64) {
        let (last, packets, bytes) = (first.saturating_add(count.max(1) - 1), 0, 0);
        let (sent, received_us) = (None, None);
        let probe = Probe { first, last, began: now, target_bps, packets, bytes, sent, received_us };
        self.current = Some(probe);
        self.next = now + PATIENCE;
    }

    /// A packet arrived, or is lost.
    pub(super) fn note(&mut self, outcome: &Outcome) {
        let Some(probe) = &mut self.current else { return };
        let Some(received_us) = outcome.received_us else { return };
        if !(probe.first..=probe.last).contains(&outcome.number) {
            return;
        }
        probe.packets += 1;
        probe.bytes += outcome.bytes;
        let sent = (outcome.sent, outcome.bytes);
        let known = probe.sent.get_or_insert([sent; 2]);
        if sent.0 < known[0].0 {
            known[0] = sent;
        }
        if sent.0 >= known[1].0 {
            known[1] = sent;
        }
        let received = (received_us, outcome.bytes);
        let known = probe.received_us.get_or_insert([received; 2]);
        if received.0 < known[0].0 {
            known[0] = received;
        }
        if received.0 >= known[1].0 {
            known[1] = received;
        }
    }

    /// Feedback about packets up to this number came. What the probe says, once it is over.
    pub(super) fn found(&mut self, now: Time, newest: u64) -> Option<Found> {
        let probe = self.current.take_if(|probe| newest >= probe.last)?;
        let Some(bps) = probe.bps() else { return Some(Found::Nothing) };
        if bps >= probe.target_bps * SUCCEEDED {
            self.next = now;
        }
        Some(Found::Fits(bps))
    }
}

impl Probe {
    fn bps(&self) -> Option<f64> {
        let count = (self.last - self.first).saturating_add(1);
        if self.packets < 2 || self.packets.saturating_mul(100) < count.saturating_mul(ARRIVED_PERCENT) {
            return None;
        }
        let ([first_sent, last_sent], [first, last]) = (self.sent?, self.received_us?);
        let sent = last_sent.0.since(first_sent.0);
        let received = Duration::from_micros(u64::try_from(last.0.checked_sub(first.0)?).ok()?);
        let is_long = |time: Duration| time.is_zero() || time > PROBE_MAX;
        if is_long(sent) || is_long(received) {
            return None;
        }
        // The time that the last one takes to leave is not known, nor that of the first one to arrive.
        let bps = |bytes: u64, time: Duration| (self.bytes - bytes) as f64 * 8.0 / time.as_secs_f64();
        let (sent_bps, received_bps) = (bps(last_sent.1, sent), bps(first.1, received));
        match received_bps / sent_bps {
            ratio if ratio > FASTER || !ratio.is_finite() => None,
            ratio if ratio < SLOWER => Some(received_bps * USED),
            _ => Some(sent_bps.min(received_bps)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a probe of ten packets of 1000 bytes for 8 Mbit/s says, of which these arrive: sent one a millisecond,
    /// arrived `every_us` apart.
    fn found(packets: &[u64], every_us: i64) -> Option<Found> {
        let mut probes = Probes::default();
        probes.begin(Time::from_millis(100), 20, 10, 8e6);
        for number in packets {
            let sent = Time::from_millis(100 + number);
            let received_us = Some(*number as i64 * every_us);
            probes.note(&Outcome { number: *number, bytes: 1000, sent, received_us, was_lost: false });
        }
        probes.found(Time::from_millis(200), *packets.last()?)
    }

    fn fits(found: Option<Found>, bps: f64) -> bool {
        matches!(found, Some(Found::Fits(found)) if (found / bps - 1.0).abs() < 1e-6)
    }

    #[test]
    fn what_arrives_as_it_was_sent_fits() {
        let all: Vec<u64> = (15..35).collect();
        assert!(fits(found(&all, 1000), 8e6));
        assert!(fits(found(&all, 1050), 8e6 / 1.05));
    }

    #[test]
    fn what_arrives_slower_shows_what_fits() {
        assert!(fits(found(&(20..30).collect::<Vec<_>>(), 2000), 3.8e6));
    }

    #[test]
    fn what_is_lost_or_held_up_says_nothing() {
        assert!(fits(found(&[20, 21, 22, 23, 24, 25, 26, 29], 1000), 7.0 / 9.0 * 8e6));
        assert_eq!(found(&[20, 21, 22, 23, 24, 25, 29], 1000), Some(Found::Nothing));
        assert_eq!(found(&(20..30).collect::<Vec<_>>(), 100), Some(Found::Nothing));
        assert_eq!(found(&(20..30).collect::<Vec<_>>(), 0), Some(Found::Nothing));
        assert_eq!(found(&(20..30).collect::<Vec<_>>(), 200_000), Some(Found::Nothing));
        assert_eq!(found(&(20..29).collect::<Vec<_>>(), 1000), None, "it is not over");
    }

    #[test]
    fn the_next_one_follows_what_succeeded_and_else_waits() {
        let mut probes = Probes::default();
        let at = Time::from_millis;
        assert_eq!(probes.wanted(at(100), 1e6, 0.9e6), None, "there is enough");
        assert_eq!(probes.wanted(at(100), 1e6, 8e6), Some(2e6));
        assert_eq!(probes.wanted(at(100), 1e6, 1.2e6), Some(1.2e6));
        let probe = |probes: &mut Probes, from: u64, every_us: u64| {
            probes.begin(at(from), from, 10, 8e6);
            assert_eq!(probes.wanted(at(from + 50), 1e6, 8e6), None, "one at a time");
            for n in 0..10 {
                let (number, sent) = (from + n, at(from + n));
                let received_us = Some((n * every_us).cast_signed());
                probes.note(&Outcome { number, bytes: 1000, sent, received_us, was_lost: false });
            }
            probes.found(at(from + 100), from + 9).is_some()
        };
        assert!(probe(&mut probes, 1000, 1000));
        assert_eq!(probes.wanted(at(1100), 8e6, 10e6), Some(10e6));
        assert!(probe(&mut probes, 2000, 2000));
        assert_eq!(probes.wanted(at(6900), 4e6, 10e6), None);
        assert_eq!(probes.wanted(at(7000), 4e6, 10e6), Some(8e6));
        // One of which nothing is heard is over, too.
        probes.begin(at(8000), 8000, 10, 8e6);
        assert_eq!(probes.wanted(at(20_000), 4e6, 10e6), Some(8e6));
    }
}
