//! Our policy: packets that arrive later and later say that they wait on the way, long before anything is lost
//! and long before a second is over; what gets through meanwhile says what the way carries.
//!
//! - **Down** as soon as packets wait longer than [`QUEUE_MAX`] more than at best, or are lost: to what fits into
//!   most of what gets through, and for as long as something waits, into half of it. What was sent before the
//!   change says nothing about it and is not listened to.
//! - **Up** by trying: first to what fits into what got through when it was too much. Beyond that one level
//!   after some time without waiting, which costs little more than the one before, so that a failure is not
//!   seen. Once more got through than did when it was too much, the way has changed, and it tries twice as
//!   many levels at once each time. A try that failed is repeated later and later, up to [`PATIENCE_MAX`].

use core::time::Duration;
use std::collections::VecDeque;

use outflow_media::Time;

use crate::waiting::Waiting;
use crate::{Arrival, Choice, Decision, Policy, Reason};

/// Packets that wait longer than that on the way, more than at best, wait because there are too many.
const QUEUE_MAX: Duration = Duration::from_millis(60);

/// Below that nothing waits.
const QUEUE_NONE: Duration = Duration::from_millis(25);

/// What is late for so long waits; what is late for less was only held up somewhere.
const STANDING: Duration = Duration::from_millis(80);

/// Over so long it is measured what gets through.
const WINDOW: Duration = Duration::from_millis(300);

/// The percentage of what gets through that is used; half of that as long as something waits.
const USED_PERCENT: u64 = 85;

/// The percentage of what gets through that is tried once nothing waits any more.
const TRIED_PERCENT: u64 = 95;

/// More lost packets than that, of a thousand, are too many.
const LOSS_PER_MILLE: u64 = 20;

/// After so long without waiting a better level is tried first; after failures later, up to the last.
const PATIENCE: Duration = Duration::from_millis(500);
const PATIENCE_MAX: Duration = Duration::from_millis(2000);

/// A try has succeeded if nothing waits so long after its first packets came; twice as long where it is near to
/// what was too much.
const TRIED: Duration = Duration::from_millis(250);

/// The percentage of what got through when it was too much that shows that the way has changed.
const CHANGED_PERCENT: u64 = 110;

/// A way on which this many levels less fit than went well has become another one.
const NARROWER: u8 = 3;

/// When what was asked for has not come by then, it is asked for as if for the first time.
const ANSWERED_BY: Duration = Duration::from_millis(1500);

/// Packets that are remembered at most.
const PACKETS_MAX: usize = 4096;

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Time,
    bytes: usize,
    lost: u16,
    /// It had waited on the way.
    waited: bool,
}

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// All is well since then.
    Well(Time),
    /// It asked for less at a moment of the sender's clock, and waits until what is sent then comes.
    Fleeing { media: Time, until: Time },
    /// What was sent before is gone; something may still wait on the way, no longer than that.
    Draining { queue: Duration },
    /// It tries a better level than it had, perhaps beyond what got through before.
    Trying { from: u8, beyond: bool, media: Time, until: Time, since: Option<Time> },
}

/// Adapts by delay and loss; the default.
#[derive(Debug, Clone)]
pub struct Gradient {
    seen: VecDeque<Seen>,
    /// Sender's clock of the newest packet.
    media: Time,
    waiting: Waiting,
    /// How much longer than at best the newest packet took.
    queue: Duration,
    stage: Stage,
    /// Bytes a second that got through when there was too much.
    carries: Option<u64>,
    /// How many levels to step at once.
    step: u8,
    patience: Duration,
}

impl Default for Gradient {
    fn default() -> Self {
        Gradient {
            seen: VecDeque::new(),
            media: Time::ZERO,
            waiting: Waiting::default(),
            queue: Duration::ZERO,
            stage: Stage::Well(Time::ZERO),
            carries: None,
            step: 1,
            patience: PATIENCE,
        }
    }
}

impl Gradient {
    /// Packets, the newest among them, that have waited.
    fn waited(&self) -> usize {
        self.seen.iter().rev().take_while(|seen| seen.waited).count()
    }

    /// Whether all packets have waited for some time.
    fn is_standing(&self) -> bool {
        let waited = self.waited();
        let first = self.seen.len().checked_sub(waited).and_then(|first| self.seen.get(first));
        let since = first.zip(self.seen.back()).map(|(first, last)| last.at.since(first.at));
        waited > 1 && since.is_some_and(|since| since >= STANDING)
    }

    /// Bytes a second that got through over the last moments, or, if packets have begun to wait, since then; or
    /// over the latter half of that, if that is more: what stood still comes in a burst afterwards.
    fn through(&self) -> u64 {
        match self.waited() {
            0 => self.rate_of(self.seen.len()),
            // The bytes of the one before count for the time before.
            waited => self.rate_of(waited + 1).max(self.rate_of(waited / 2 + 1)),
        }
    }

    /// Bytes a second from the first of the last `count` packets to the newest.
    fn rate_of(&self, count: usize) -> u64 {
        let mut counted = self.seen.iter().skip(self.seen.len().saturating_sub(count));
        let (Some(first), Some(last)) = (counted.next(), self.seen.back()) else { return 0 };
        let bytes: usize = counted.map(|seen| seen.bytes).sum();
        let span = last.at.since(first.at).max(Duration::from_millis(1));
        (bytes as u128 * 1_000_000_000 / span.as_nanos()) as u64
    }

    /// How many of a thousand packets were lost over the last moments.
    fn lost(&self) -> u64 {
        let lost: u64 = self.seen.iter().map(|seen| u64::from(seen.lost)).sum();
        lost * 1000 / (self.seen.len() as u64 + lost).max(1)
    }

    /// Whether it is too much, and what gets through.
    fn trouble(&self) -> Option<(Reason, u64)> {
        if self.queue > QUEUE_MAX && self.is_standing() {
            let (queue_ms, rate) = (self.queue.as_millis() as u64, self.through());
            return Some((Reason::Delayed { queue_ms, rate }, rate));
        }
        let per_mille = self.lost();
        (per_mille > LOSS_PER_MILLE).then(|| {
            let rate = self.through();
            (Reason::Lossy { per_mille, rate }, rate)
        })
    }

    /// Less: what fits into half of what gets through, until nothing waits any more.
    fn flee(&mut self, now: Time, choice: &Choice<'_>, (why, rate): (Reason, u64)) -> Option<Decision> {
        self.stage = Stage::Fleeing { media: self.media, until: now + ANSWERED_BY };
        self.step = 1;
        self.carries = Some(rate);
        let level = choice.affordable(rate * USED_PERCENT / 200).max(choice.current);
        (level != choice.current).then_some(Decision { level, why })
    }

    /// It is too much. Where the way has become much narrower than for level `went_well`, half of what gets
    /// through is used until nothing waits any more; else what fits is near, and little waits yet.
    fn retreat(
        &mut self,
        now: Time,
        choice: &Choice<'_>,
        went_well: u8,
        (why, rate): (Reason, u64),
    ) -> Option<Decision> {
        if choice.affordable(rate) >= went_well.saturating_add(NARROWER) {
            return self.flee(now, choice, (why, rate));
        }
        self.carries = Some(rate);
        self.stage = Stage::Fleeing { media: self.media, until: now + ANSWERED_BY };
        self.patience = (self.patience * 2).min(PATIENCE_MAX);
        self.step = 1;
        let fits =
            choice.affordable(rate * USED_PERCENT / 100).max(went_well).max(choice.current.saturating_add(1));
        let level = fits.min(choice.base());
        (level != choice.current).then_some(Decision { level, why })
    }

    /// A better level after a time without waiting: at once what is known to fit, beyond that `step` levels.
    fn attempt(&mut self, now: Time, choice: &Choice<'_>, well_for: Duration) -> Option<Decision> {
        let fits = self.carries.map(|rate| choice.affordable(rate * TRIED_PERCENT / 100));
        let known = fits.filter(|level| *level < choice.current);
        let step = if self.carries.is_some() { 1 } else { self.step };
        let level = known.unwrap_or(choice.current.saturating_sub(step)).max(choice.ideal.max(1));
        let patience = if known.is_some() { PATIENCE } else { self.patience };
        if level >= choice.current || well_for < patience {
            return None;
        }
        let (from, media, until) = (choice.current, self.media, now + ANSWERED_BY);
        self.stage = Stage::Trying { from, beyond: known.is_none(), media, until, since: None };
        Some(Decision { level, why: Reason::Probing })
    }

    fn well(&mut self, now: Time, since: Time, choice: &Choice<'_>) -> Option<Decision> {
        if let Some(trouble) = self.trouble() {
            return self.retreat(now, choice, choice.current, trouble);
        }
        if self.is_standing() {
            self.stage = Stage::Well(now);
            return None;
        }
        self.attempt(now, choice, now.since(since))
    }

    /// Something may wait; once it is gone, so much fits as got through meanwhile.
    fn draining(&mut self, now: Time, choice: &Choice<'_>, queue: Duration) -> Option<Decision> {
        if self.queue <= QUEUE_NONE {
            self.stage = Stage::Well(now);
            let level = choice.affordable(self.carries? * USED_PERCENT / 100);
            return (level < choice.current).then_some(Decision { level, why: Reason::Drained });
        }
        let trouble = self.trouble()?;
        let grows = self.queue > queue + QUEUE_MAX || matches!(trouble.0, Reason::Lossy { .. });
        if grows && choice.current < choice.base() { self.flee(now, choice, trouble) } else { None }
    }

    fn trying(
        &mut self,
        now: Time,
        choice: &Choice<'_>,
        (from, beyond, since): (u8, bool, Option<Time>),
    ) -> Option<Decision> {
        if let Some((_, rate)) = self.trouble() {
            return self.retreat(now, choice, from, (Reason::ProbeFailed, rate));
        }
        let is_near = beyond && self.carries.is_some();
        let after = if is_near { TRIED * 2 } else { TRIED };
        if since.is_some_and(|since| now.since(since) >= after) && self.queue <= QUEUE_NONE {
            self.stage = Stage::Well(now);
            return if beyond { self.succeeded(now, choice) } else { None };
        }
        None
    }

    /// More than what was known to fit went well.
    fn succeeded(&mut self, now: Time, choice: &Choice<'_>) -> Option<Decision> {
        self.patience = PATIENCE;
        let is_known = |carries: u64| choice.rate(choice.current) * 100 <= carries * CHANGED_PERCENT;
        if self.carries.is_some_and(is_known) {
            return None;
        }
        self.step = self.step.saturating_mul(2);
        self.carries = None;
        self.attempt(now, choice, Duration::MAX)
    }
}

impl Policy for Gradient {
    fn arrived(&mut self, now: Time, Arrival { media, bytes, lost }: Arrival) {
        self.queue = self.waiting.arrived(now, media);
        self.media = self.media.max(media);
        let waited = self.queue > QUEUE_NONE;
        self.seen.push_back(Seen { at: now, bytes, lost, waited });
        while self.seen.len() > PACKETS_MAX || self.seen.front().is_some_and(|s| now.since(s.at) > WINDOW) {
            self.seen.pop_front();
        }
    }

    fn decide(&mut self, now: Time, choice: &Choice<'_>) -> Option<Decision> {
        self.seen.back()?;
        match self.stage {
            Stage::Well(since) => self.well(now, since, choice),
            Stage::Fleeing { media, until } => {
                if self.media > media || now >= until {
                    self.stage = Stage::Draining { queue: self.queue };
                }
                None
            }
            Stage::Draining { queue } => self.draining(now, choice, queue),
            Stage::Trying { from, beyond, media, until, since } => {
                let since = since.or((self.media > media || now >= until).then_some(now));
                self.stage = Stage::Trying { from, beyond, media, until, since };
                self.trying(now, choice, (from, beyond, since))
            }
        }
    }

    fn due(&self) -> Option<Time> {
        None
    }
}

#[cfg(test)]
mod tests;
