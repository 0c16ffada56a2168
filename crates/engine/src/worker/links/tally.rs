//! What is counted of a link.

use core::time::Duration;
use std::collections::BTreeMap;

use outflow_config::unit_name;
use outflow_link::{ApplicationId, Link, Waiting};
use outflow_media::Time;
use outflow_packet::{DropReason, Drops};
use outflow_relay::schedule::Counters;

use super::super::rate::Rate;
use crate::limits::LINK_DELAYS_OVER;
use crate::message::{LinkApplicationState, LinkState, named};

/// Counters of a link.
pub(super) struct Tally {
    applications: BTreeMap<ApplicationId, Of>,
    delays: Delays,
    offered: Rate,
    sent: Rate,
}

/// Counters of an application.
#[derive(Default)]
struct Of {
    offered: Counters,
    sent: Counters,
    drops: Drops,
    offered_rate: Rate,
    sent_rate: Rate,
}

impl Tally {
    pub(super) fn new(now: Time) -> Self {
        let delays = Delays { since: now, ..Delays::default() };
        Tally { applications: BTreeMap::new(), delays, offered: Rate::default(), sent: Rate::default() }
    }

    pub(super) fn offered(&mut self, application: ApplicationId, bytes: usize) {
        let of = self.applications.entry(application).or_default();
        of.offered.packets += 1;
        of.offered.bytes += bytes as u64;
    }

    pub(super) fn sent(&mut self, now: Time, application: ApplicationId, packet: &Waiting) {
        self.delays.add(now, now.since(packet.arrived));
        let of = self.applications.entry(application).or_default();
        of.sent.packets += 1;
        of.sent.bytes += packet.bytes as u64;
    }

    pub(super) fn dropped(&mut self, application: ApplicationId, reason: DropReason) {
        self.applications.entry(application).or_default().drops.add(reason, 1);
    }

    /// All that is shown of a link of this name: what is counted, and how it is now.
    pub(super) fn state<T>(&mut self, now: Time, (name, link): (&str, &Link<T>), follows: bool) -> LinkState {
        let (waiting_bytes, waiting_packets) = link.waiting();
        let options = *link.options();
        let (mut offered, mut sent, mut drops) = (Counters::default(), Counters::default(), Drops::default());
        let mut applications = Vec::new();
        for (id, of) in &mut self.applications {
            for (sum, counters) in [(&mut offered, of.offered), (&mut sent, of.sent)] {
                sum.packets += counters.packets;
                sum.bytes += counters.bytes;
            }
            drops.merge(&of.drops);
            applications.push(of.state(now, *id));
        }
        let [delay_p50_ms, delay_p99_ms] = self.delays.quantiles([0.5, 0.99]).map(|d| d.as_secs_f64() * 1e3);
        LinkState {
            name: name.to_owned(),
            rate_bps: options.rate_bps,
            follows,
            policy: options.policy.as_str(),
            scheduler: options.scheduling.as_str(),
            unit: unit_name(options.unit),
            flows: link.flows() as u64,
            waiting_bytes: waiting_bytes as u64,
            waiting_packets: waiting_packets as u64,
            offered_bps: self.offered.bps(now, offered.bytes),
            sent_bps: self.sent.bps(now, sent.bytes),
            offered_packets: offered.packets,
            offered_bytes: offered.bytes,
            sent_packets: sent.packets,
            sent_bytes: sent.bytes,
            delay_p50_ms,
            delay_p99_ms,
            delay_max_ms: self.delays.max().as_secs_f64() * 1e3,
            drops: named(&drops),
            applications,
        }
    }
}

impl Of {
    fn state(&mut self, now: Time, id: ApplicationId) -> LinkApplicationState {
        let medium = id.medium().as_str();
        let name = if id.group() == 0 { medium.to_owned() } else { format!("{medium}-{}", id.group() + 1) };
        LinkApplicationState {
            name,
            offered_bps: self.offered_rate.bps(now, self.offered.bytes),
            sent_bps: self.sent_rate.bps(now, self.sent.bytes),
            offered_packets: self.offered.packets,
            offered_bytes: self.offered.bytes,
            sent_packets: self.sent.packets,
            sent_bytes: self.sent.bytes,
            drops: named(&self.drops),
        }
    }
}

/// Buckets: four to each doubling, from 16 us on, so that a quantile is at most a quarter too high.
const BUCKETS: usize = 96;

/// How long packets waited, those of the last [`LINK_DELAYS_OVER`] and of as long before.
#[derive(Debug, Clone)]
struct Delays {
    since: Time,
    now: ([u64; BUCKETS], Duration),
    before: ([u64; BUCKETS], Duration),
}

impl Default for Delays {
    fn default() -> Self {
        let none = ([0; BUCKETS], Duration::ZERO);
        Delays { since: Time::ZERO, now: none, before: none }
    }
}

impl Delays {
    fn add(&mut self, now: Time, delay: Duration) {
        if now.since(self.since) >= LINK_DELAYS_OVER {
            *self = Delays { since: now, before: self.now, ..Delays::default() };
        }
        self.now.0[bucket(delay)] += 1;
        self.now.1 = self.now.1.max(delay);
    }

    fn max(&self) -> Duration {
        self.now.1.max(self.before.1)
    }

    fn quantiles<const N: usize>(&self, wanted: [f64; N]) -> [Duration; N] {
        let count = |bucket: usize| self.now.0[bucket] + self.before.0[bucket];
        let all: u64 = (0..BUCKETS).map(count).sum();
        wanted.map(|share| {
            let wanted = (all as f64 * share).ceil().max(1.0) as u64;
            let mut sum = 0;
            let found = (0..BUCKETS).find(|&bucket| {
                sum += count(bucket);
                sum >= wanted
            });
            found.map_or(Duration::ZERO, |bucket| upper(bucket).min(self.max()))
        })
    }
}

fn bucket(delay: Duration) -> usize {
    let parts = (delay.as_micros() / 4).max(4);
    // The highest bit, and the two behind it.
    let octave = parts.ilog2() - 2;
    let quarter = (parts >> octave) as usize & 3;
    (octave as usize * 4 + quarter).min(BUCKETS - 1)
}

/// The longest delay of a bucket.
fn upper(bucket: usize) -> Duration {
    let parts = (bucket as u64 % 4 + 5) << (bucket / 4);
    Duration::from_micros(parts * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_at_most_a_quarter_too_high() {
        for us in [0, 15, 16, 17, 100, 999, 5_000, 1_000_000, 90_000_000] {
            let delay = Duration::from_micros(us);
            let found = upper(bucket(delay));
            assert!(found >= delay, "{us}: {found:?}");
            assert!(
                found <= delay.max(Duration::from_micros(16)) * 5 / 4 + Duration::from_micros(4),
                "{us}: {found:?}"
            );
        }
    }

    #[test]
    fn quantiles_are_those_of_the_last_seconds() {
        let mut delays = Delays::default();
        (1..=100).for_each(|ms| delays.add(Time::ZERO, Duration::from_millis(ms)));
        let [half, most] = delays.quantiles([0.5, 0.99]);
        assert!((50..=63).contains(&half.as_millis()), "{half:?}");
        assert!((99..=100).contains(&most.as_millis()), "{most:?}");
        let mut now = Time::ZERO;
        for _ in 0..2 {
            now = now + LINK_DELAYS_OVER;
            delays.add(now, Duration::from_millis(1));
        }
        assert_eq!(delays.max(), Duration::from_millis(1), "the others are long ago");
    }
}
