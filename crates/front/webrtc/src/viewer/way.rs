//! What a viewer's way carries, by what it says of each packet (`transport-cc`), and whether it carries more.

use core::time::Duration;

use outflow_congestion::{Bounds, Estimator, Ledger};
use outflow_media::Time;
use outflow_rtp::rtcp::transport_cc;

use super::filling::Filling;
use crate::limits::{
    ESTIMATE_EVERY, ESTIMATE_FALLS_PERCENT, ESTIMATE_SOONEST, PROBE_WANTED_PERCENT, TRIAL_AFTER,
    TRIAL_AFTER_MAX, TRIAL_FAILS_PERCENT, TRIAL_GAINS_PERCENT, TRIAL_JUDGED_AFTER,
};

/// The way of a viewer that says which packets came.
///
/// What an estimate says beyond what was carried so far is a guess, mostly by a few packets: a shaper that lets some through
/// at once makes it a wrong one. So the stream is told more only once a trial has shown it: for half a second, packets that
/// the viewer has already fill up what is sent.
#[derive(Debug)]
pub(super) struct Way {
    ledger: Ledger,
    /// Once something was said.
    estimator: Option<Box<Estimator>>,
    /// What was carried so far, or there is no reason to doubt.
    shown_bps: u64,
    /// When the stream was told what it carries, and how much.
    told: Option<(Time, u64)>,
    /// More was said since.
    is_news: bool,
    filling: Option<Filling>,
    trial: Option<Trial>,
    /// No trial before this time; and how long after one that has failed.
    next_trial: Time,
    patience: Duration,
}

/// Whether so much is carried.
#[derive(Debug, Clone, Copy)]
struct Trial {
    bps: u64,
    /// When it is judged.
    ends: Time,
}

impl Way {
    /// One whose packets have numbers from this one on.
    pub(super) fn new(next: u16) -> Self {
        Way {
            ledger: Ledger::new(next),
            estimator: None,
            shown_bps: u64::MAX,
            told: None,
            is_news: false,
            filling: None,
            trial: None,
            next_trial: Time::ZERO,
            patience: TRIAL_AFTER,
        }
    }

    /// The number of the next packet, of `bytes`, which is sent.
    pub(super) fn sent(&mut self, now: Time, bytes: usize) -> u16 {
        self.filling.iter_mut().for_each(|filling| filling.sent(bytes));
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
        self.judge(now);
    }

    /// What gets through, and a trial, have shown; and whether less is carried than was.
    fn judge(&mut self, now: Time) {
        let Some(estimator) = &self.estimator else { return };
        let estimate_bps = estimator.estimate_bps();
        self.shown_bps = self.shown_bps.max(estimator.through_bps().unwrap_or(0)).min(estimate_bps);
        let Some(trial) = self.trial else { return };
        if is_less(estimate_bps, trial.bps, TRIAL_FAILS_PERCENT) {
            (self.trial, self.filling) = (None, None);
            self.next_trial = now + self.patience;
            self.patience = (self.patience * 2).min(TRIAL_AFTER_MAX);
        } else if now >= trial.ends {
            (self.trial, self.patience) = (None, TRIAL_AFTER);
            self.shown_bps = self.shown_bps.max(trial.bps).min(estimate_bps);
        }
    }

    /// What it carries, in bits a second, if the stream is to be told now.
    pub(super) fn news(&mut self, now: Time) -> Option<u64> {
        let bps = Some(self.shown_bps).filter(|_| self.is_news)?;
        let is_due = self.told.is_none_or(|(told, before)| {
            let falls = is_less(bps, before, ESTIMATE_FALLS_PERCENT);
            now.since(told) >= if falls { ESTIMATE_SOONEST } else { ESTIMATE_EVERY }
        });
        if !is_due {
            return None;
        }
        (self.told, self.is_news) = (Some((now, bps)), false);
        Some(bps)
    }

    /// Begins to look for more if that is of use: the viewer has had streams of `most_bps`. What fills up has packets of
    /// `bytes`.
    pub(super) fn look_for_more(&mut self, now: Time, most_bps: u64, bytes: usize) {
        let is_idle = self.filling.is_none() && self.trial.is_none();
        let Some(estimator) = self.estimator.as_mut().filter(|_| is_idle) else { return };
        let wanted_bps = most_bps / 100 * PROBE_WANTED_PERCENT;
        let trial_bps = wanted_bps.min(estimator.estimate_bps());
        if now >= self.next_trial && is_less(self.shown_bps, trial_bps, TRIAL_GAINS_PERCENT) {
            let (filling, until) = Filling::trial(now, trial_bps, bytes);
            let trial = Trial { bps: trial_bps, ends: until + TRIAL_JUDGED_AFTER };
            (self.filling, self.trial) = (Some(filling), Some(trial));
        } else if let Some(bps) = estimator.probe_bps(now, wanted_bps) {
            let (filling, packets) = Filling::probe(now, bps, bytes);
            estimator.handle_probe(now, self.ledger.next_number(), packets, bps);
            self.filling = Some(filling);
        }
    }

    /// How many packets are due now that fill up what is sent. They are sent, or it says nothing.
    pub(super) fn due(&mut self, now: Time) -> u64 {
        let Some(filling) = &mut self.filling else { return 0 };
        let due = filling.due(now);
        if filling.next().is_none() {
            self.filling = None;
        }
        due
    }

    /// When the next of them are due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.filling.as_ref().and_then(Filling::next)
    }
}

/// Whether a rate is less than this share of another one.
fn is_less(bps: u64, than: u64, percent: u64) -> bool {
    u128::from(bps) * 100 < u128::from(than) * u128::from(percent)
}
