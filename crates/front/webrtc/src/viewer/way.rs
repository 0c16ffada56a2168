//! What a viewer's way carries, by what it says of each packet (`transport-cc`), and probes for more.

use core::time::Duration;

use outflow_congestion::{Bounds, Estimator, Ledger};
use outflow_media::Time;
use outflow_rtp::rtcp::transport_cc;

use crate::limits::{
    ESTIMATE_EVERY, ESTIMATE_FALLS_PERCENT, ESTIMATE_SOONEST, PROBE_FOR, PROBE_PACKETS_LEAST,
    PROBE_PACKETS_MAX, PROBE_WANTED_PERCENT,
};

/// The way of a viewer that says which packets came.
#[derive(Debug)]
pub(super) struct Way {
    ledger: Ledger,
    /// Once something was said.
    estimator: Option<Box<Estimator>>,
    /// When the stream was told what it carries, and how much.
    told: Option<(Time, u64)>,
    /// More was said since.
    is_news: bool,
    probe: Option<Probe>,
}

/// Packets that are sent for the sake of it.
#[derive(Debug, Clone, Copy)]
struct Probe {
    left: u64,
    next: Time,
    every: Duration,
}

impl Way {
    /// One whose packets have numbers from this one on.
    pub(super) fn new(next: u16) -> Self {
        Way { ledger: Ledger::new(next), estimator: None, told: None, is_news: false, probe: None }
    }

    /// The number of the next packet, of `bytes`, which is sent.
    pub(super) fn sent(&mut self, now: Time, bytes: usize) -> u16 {
        self.ledger.handle_sent(now, bytes as u64) as u16
    }

    /// Reads what the viewer says of packets. The estimate begins at `initial_bps`: what it is sent anyway, and more.
    pub(super) fn hear(&mut self, now: Time, packet: &[u8], initial_bps: u64) {
        let Way { ledger, estimator, is_news, .. } = self;
        let bounds = Bounds { initial_bps, ..Bounds::default() };
        // What stands before a malformed part holds.
        let _ = transport_cc::read(packet, |feedback| {
            let estimator = estimator.get_or_insert_with(|| Box::new(Estimator::new(bounds)));
            estimator.handle(now, ledger.handle_feedback(now, feedback.reference(), feedback.statuses()));
            *is_news = true;
        });
    }

    /// What it carries, in bits a second, if the stream is to be told now.
    pub(super) fn news(&mut self, now: Time) -> Option<u64> {
        let bps = self.estimator.as_ref().filter(|_| self.is_news)?.estimate_bps();
        let is_due = self.told.is_none_or(|(told, before)| {
            let falls = bps.saturating_mul(100) < before.saturating_mul(ESTIMATE_FALLS_PERCENT);
            now.since(told) >= if falls { ESTIMATE_SOONEST } else { ESTIMATE_EVERY }
        });
        if !is_due {
            return None;
        }
        (self.told, self.is_news) = (Some((now, bps)), false);
        Some(bps)
    }

    /// Begins to probe if that is of use: the viewer has had streams of `most_bps`, in packets of `bytes`.
    pub(super) fn probe(&mut self, now: Time, most_bps: u64, bytes: usize) {
        let Some(estimator) = self.estimator.as_mut().filter(|_| self.probe.is_none()) else { return };
        let wanted_bps = most_bps / 100 * PROBE_WANTED_PERCENT;
        let Some(bps) = estimator.probe_bps(now, wanted_bps) else { return };
        let every = Duration::from_nanos(bytes as u64 * 8_000_000_000 / bps.max(1));
        let packets = (PROBE_FOR.as_nanos() / every.as_nanos().max(1)) as u64;
        let left = packets.clamp(PROBE_PACKETS_LEAST, PROBE_PACKETS_MAX);
        estimator.handle_probe(now, self.ledger.next_number(), left, bps);
        self.probe = Some(Probe { left, next: now, every });
    }

    /// How many packets of a probe are due now. They are sent, or the probe says nothing.
    pub(super) fn due(&mut self, now: Time) -> u64 {
        let Some(probe) = &mut self.probe else { return 0 };
        let mut due = 0;
        while probe.left > 0 && probe.next <= now {
            (due, probe.left, probe.next) = (due + 1, probe.left - 1, probe.next + probe.every);
        }
        self.probe = self.probe.filter(|probe| probe.left > 0);
        due
    }

    /// When the next packet of a probe is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.probe.map(|probe| probe.next)
    }
}
