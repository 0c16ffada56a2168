//! What is counted of a link.

use std::collections::BTreeMap;

use outflow_config::unit_name;
use outflow_link::{ApplicationId, Delays, Link, Waiting};
use outflow_media::{Growth, Time};
use outflow_packet::{DropReason, Drops};
use outflow_relay::schedule::Counters;

use crate::message::{LinkApplicationState, LinkState, named};

/// Counters of a link.
pub(super) struct Tally {
    applications: BTreeMap<ApplicationId, Of>,
    delays: Delays,
    offered: Growth,
    sent: Growth,
}

/// Counters of an application.
#[derive(Default)]
struct Of {
    offered: Counters,
    sent: Counters,
    drops: Drops,
    offered_rate: Growth,
    sent_rate: Growth,
}

impl Tally {
    pub(super) fn new(now: Time) -> Self {
        let delays = Delays::new(now);
        Tally { applications: BTreeMap::new(), delays, offered: Growth::default(), sent: Growth::default() }
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
            reserved_bps: None,
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
