//! The bound by losses (section 6): what is lost lowers it, but not below what random losses cost.
//!
//! The section decides with each report of a receiver, about one in a second. Feedback about a transport comes more
//! often; so losses are counted over half a second, and more where few packets come. Those of packets that were sent
//! before count no more: the rate was another one then. The bound holds only where losses were seen, and is gone when
//! the rate by delay is no higher.

use core::time::Duration;

use outflow_media::Time;

use crate::ledger::Outcome;

/// It is decided after this time, once this number of packets has been told.
const DECIDED: Duration = Duration::from_millis(500);
const PACKETS_LEAST: u32 = 20;

/// More than that share is lost: it falls by half the share. Less than that: it grows. In between it stays.
const HIGH: f64 = 0.10;
const LOW: f64 = 0.02;

/// It grows so much with each decision: in two as much as the rate by delay in a second.
const GROWTH: f64 = 1.04;

/// What is lost, and what follows.
#[derive(Debug, Clone, Default)]
pub(super) struct Losses {
    /// When was decided last, and the estimate then.
    since: Option<(Time, f64)>,
    lost: u32,
    arrived: u32,
    bound_bps: Option<f64>,
    share: f64,
}

impl Losses {
    /// A packet arrived, or is lost.
    pub(super) fn note(&mut self, outcome: &Outcome) {
        if self.since.is_some_and(|(since, _)| outcome.sent < since) {
            return;
        }
        let is_lost = outcome.received_us.is_none();
        self.lost = self.lost.saturating_sub(outcome.was_lost.into()) + u32::from(is_lost);
        self.arrived += u32::from(!is_lost);
    }

    /// Feedback came; `delay_bps` is the rate by delay.
    pub(super) fn update(&mut self, now: Time, delay_bps: f64) {
        let (since, sent_bps) = *self.since.get_or_insert((now, delay_bps));
        let all = self.lost + self.arrived;
        if now.since(since) < DECIDED || all < PACKETS_LEAST {
            return;
        }
        self.share = f64::from(self.lost) / f64::from(all);
        self.bound_bps = match self.share {
            share if share > HIGH => Some(sent_bps * (1.0 - 0.5 * share)),
            share if share >= LOW => Some(sent_bps),
            _ => self.bound_bps.map(|bound| bound * GROWTH).filter(|bound| *bound < delay_bps),
        };
        let estimate_bps = self.bound_bps.map_or(delay_bps, |bound| bound.min(delay_bps));
        (self.since, self.lost, self.arrived) = (Some((now, estimate_bps)), 0, 0);
    }

    /// So much is known to fit.
    pub(super) fn raise(&mut self, bps: f64) {
        self.bound_bps = self.bound_bps.map(|bound| bound.max(bps));
    }

    /// No more than that many bits a second, if anything was lost.
    pub(super) fn bound_bps(&self) -> Option<f64> {
        self.bound_bps
    }

    /// The share of packets that was lost when that was decided last, from 0 to 1.
    pub(super) fn share(&self) -> f64 {
        self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(sent: Time, is_lost: bool, was_lost: bool) -> Outcome {
        let received_us = (!is_lost).then_some(0);
        Outcome { number: 1, bytes: 1000, sent, received_us, was_lost }
    }

    /// The bound after half-seconds in which `lost` of 100 packets were lost, at a rate by delay of 1 Mbit/s.
    fn after(losses: &mut Losses, from: u64, lost: &[u32]) -> Option<f64> {
        for (n, lost) in lost.iter().enumerate() {
            let now = Time::from_millis((from + n as u64) * 500);
            (0..100).for_each(|packet| losses.note(&outcome(now, packet < *lost, false)));
            losses.update(now, 1e6);
        }
        losses.bound_bps()
    }

    #[test]
    fn heavy_losses_lower_it_by_half_their_share_and_few_let_it_grow() {
        let mut losses = Losses::default();
        assert_eq!(after(&mut losses, 0, &[0, 1]), None);
        assert_eq!(after(&mut losses, 2, &[20]), Some(0.9e6));
        assert_eq!(losses.share(), 0.2);
        assert_eq!(after(&mut losses, 3, &[5, 2, 10]), Some(0.9e6));
        assert_eq!(after(&mut losses, 6, &[1]), Some(0.9e6 * 1.04));
        assert_eq!(after(&mut losses, 7, &[0; 10]), None, "it is above the rate by delay");
    }

    #[test]
    fn some_losses_hold_the_rate_where_it_is() {
        assert_eq!(after(&mut Losses::default(), 0, &[3, 3]), Some(1e6));
    }

    #[test]
    fn losses_of_what_was_sent_before_the_rate_fell_are_not_those_of_the_new_rate() {
        let mut losses = Losses::default();
        losses.update(Time::ZERO, 5e6);
        let (before, now) = (Time::from_millis(499), Time::from_millis(500));
        (0..100).for_each(|packet| losses.note(&outcome(before, packet < 80, false)));
        losses.update(now, 5e5);
        assert_eq!(losses.bound_bps(), Some(3e6));
        (0..100).for_each(|_| losses.note(&outcome(before, true, false)));
        (0..100).for_each(|_| losses.note(&outcome(now, false, false)));
        losses.update(Time::from_millis(1000), 5e5);
        assert_eq!(losses.bound_bps(), None);
    }

    #[test]
    fn what_arrives_after_all_was_not_lost() {
        let mut losses = Losses::default();
        losses.update(Time::ZERO, 1e6);
        (0..50).for_each(|_| losses.note(&outcome(Time::ZERO, true, false)));
        (0..50).for_each(|_| losses.note(&outcome(Time::ZERO, false, true)));
        losses.update(Time::from_millis(500), 1e6);
        assert_eq!((losses.share(), losses.bound_bps()), (0.0, None));
    }

    #[test]
    fn too_few_packets_say_nothing() {
        let mut losses = Losses::default();
        losses.update(Time::ZERO, 1e6);
        (0..19).for_each(|_| losses.note(&outcome(Time::ZERO, true, false)));
        losses.update(Time::from_millis(5000), 1e6);
        assert_eq!(losses.bound_bps(), None);
        losses.note(&outcome(Time::ZERO, true, false));
        losses.update(Time::from_millis(5001), 1e6);
        assert_eq!(losses.bound_bps(), Some(0.5e6));
    }
}
