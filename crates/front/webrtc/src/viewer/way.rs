//! What a viewer's way carries, by what it says of each packet (`transport-cc`), and whether it carries more.

use core::time::Duration;

use outflow_congestion::{Bounds, Estimator, Ledger};
use outflow_media::Time;
use outflow_rtp::rtcp::transport_cc;

use super::fec::Fec;
use super::filling::Filling;
use super::thin::is_less;
use crate::limits::{
    ESTIMATE_BREAKS_PERCENT, ESTIMATE_EVERY, ESTIMATE_FALLS_PERCENT, ESTIMATE_SOONEST, PROBE_WANTED_PERCENT,
    THIN_DRAINS_PERCENT, THIN_STANDS, THROUGH_OVER, TRIAL_AFTER, TRIAL_AFTER_MAX, TRIAL_COMES_PERCENT,
    TRIAL_FAILS_PERCENT, TRIAL_GAINS_PERCENT, TRIAL_JUDGED_AFTER,
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
    /// What gets through says nothing before: what fills up is in it.
    plain_from: Time,
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
    /// The most that got through meanwhile.
    through_bps: u64,
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
            plain_from: Time::ZERO,
            next_trial: Time::ZERO,
            patience: TRIAL_AFTER,
        }
    }

    /// The number of the next packet, and what is carried as far as is known, for another process.
    pub(super) fn save(&self) -> (u16, u64) {
        (self.ledger.next_number() as u16, self.shown_bps)
    }

    /// It goes on there. What the way carries is estimated from there.
    pub(super) fn resume((next, shown_bps): (u16, u64)) -> Self {
        Way { shown_bps, ..Way::new(next) }
    }

    /// The number of the next packet, of `bytes`, which is sent.
    pub(super) fn sent(&mut self, now: Time, bytes: usize) -> u16 {
        self.filling.iter_mut().for_each(|filling| filling.sent(bytes));
        self.ledger.handle_sent(now, bytes as u64) as u16
    }

    /// Reads what the viewer says of packets. The estimate begins at `initial_bps`: what it is sent anyway, and more. What
    /// covers packets hears of it, too.
    pub(super) fn hear(&mut self, now: Time, packet: &[u8], initial_bps: u64, mut fec: Option<&mut Fec>) {
        let initial_bps = initial_bps.min(self.shown_bps);
        let Way { ledger, estimator, is_news, .. } = self;
        let bounds = Bounds { initial_bps, ..Bounds::default() };
        // What stands before a malformed part holds.
        let _ = transport_cc::read(packet, |feedback| {
            let estimator = estimator.get_or_insert_with(|| Box::new(Estimator::new(bounds)));
            let outcomes = ledger.handle_feedback(now, feedback.reference(), feedback.statuses());
            let outcomes = outcomes.inspect(|outcome| {
                if let Some(fec) = &mut fec {
                    fec.hear(now, outcome);
                }
            });
            estimator.handle(now, outcomes);
            *is_news = true;
        });
        self.judge(now);
    }

    /// What gets through, and a trial, have shown; and whether less is carried than was.
    fn judge(&mut self, now: Time) {
        let Some(estimator) = &mut self.estimator else { return };
        let estimate_bps = estimator.estimate_bps();
        // A shaper lets some through at once: half a second of a trial says more than a moment.
        let through_bps = estimator.through_bps().filter(|_| now >= self.plain_from);
        self.shown_bps = self.shown_bps.max(through_bps.unwrap_or(0)).min(estimate_bps);
        let Some(trial) = &mut self.trial else { return };
        trial.through_bps = trial.through_bps.max(estimator.through_bps().unwrap_or(0));
        let (trial, is_over) = (*trial, now >= trial.ends);
        let falls = is_less(estimate_bps, trial.bps, TRIAL_FAILS_PERCENT);
        if falls || (is_over && is_less(trial.through_bps, trial.bps, TRIAL_COMES_PERCENT)) {
            (self.trial, self.filling) = (None, None);
            self.next_trial = now + self.patience;
            self.patience = (self.patience * 2).min(TRIAL_AFTER_MAX);
        } else if is_over {
            (self.trial, self.patience) = (None, TRIAL_AFTER);
            self.shown_bps = self.shown_bps.max(trial.bps).min(estimate_bps);
        }
    }

    /// What it carries, in bits a second, if the stream is to be told now.
    pub(super) fn news(&mut self, now: Time) -> Option<u64> {
        let bps = Some(self.shown_bps).filter(|_| self.is_news)?;
        let is_due = self.told.is_none_or(|(told, before)| {
            let wait = match bps {
                bps if is_less(bps, before, ESTIMATE_BREAKS_PERCENT) => Duration::ZERO,
                bps if is_less(bps, before, ESTIMATE_FALLS_PERCENT) => ESTIMATE_SOONEST,
                _ => ESTIMATE_EVERY,
            };
            now.since(told) >= wait
        });
        if !is_due {
            return None;
        }
        (self.told, self.is_news) = (Some((now, bps)), false);
        Some(bps)
    }

    /// What may be sent, in bits a second, so that nothing waits there: what the way carries, or less as long as something
    /// does. And whether that shows: packets wait there. None before anything was said.
    pub(super) fn carries(&self, now: Time) -> Option<(u64, bool)> {
        let estimator = self.estimator.as_ref()?;
        let through_bps = estimator.through_bps().unwrap_or(0);
        let carried_bps = estimator.carried_bps().unwrap_or(through_bps);
        Some(if estimator.is_overrun(now) {
            // The estimate is below what gets through, of which there is some of before.
            (through_bps.min(self.shown_bps), true)
        } else if estimator.waits(now) >= THIN_STANDS {
            (carried_bps / 100 * THIN_DRAINS_PERCENT, true)
        } else {
            (self.shown_bps.max(through_bps).max(carried_bps), false)
        })
    }

    /// Begins to look for more if that is of use: the viewer has had streams of `most_bps`. What fills up has packets of
    /// `bytes`; nothing can if there is no packet.
    pub(super) fn look_for_more(&mut self, now: Time, most_bps: u64, bytes: impl FnOnce() -> Option<usize>) {
        let is_idle = self.filling.is_none() && self.trial.is_none();
        let Some(estimator) = self.estimator.as_mut().filter(|_| is_idle) else { return };
        let Some(bytes) = bytes() else { return };
        let wanted_bps = most_bps / 100 * PROBE_WANTED_PERCENT;
        let trial_bps = wanted_bps.min(estimator.estimate_bps());
        if now >= self.next_trial && is_less(self.shown_bps, trial_bps, TRIAL_GAINS_PERCENT) {
            let (filling, until) = Filling::trial(now, trial_bps, bytes);
            let ends = until + TRIAL_JUDGED_AFTER;
            let trial = Trial { bps: trial_bps, ends, through_bps: 0 };
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
        self.plain_from = now + THROUGH_OVER;
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
