//! Our policy: packets that arrive later and later say that they wait on the way, long before anything is lost
//! and long before a second is over; what gets through meanwhile says what the way carries.
//!
//! - **Down** as soon as packets wait longer than [`QUEUE_MAX`] more than at best, or are lost: to what fits into
//!   most of what gets through, and for as long as something waits, into half of it. What was sent before the
//!   change says nothing about it and is not listened to.
//! - **Up** by trying: first to what fits into what got through when it was too much. Beyond that one level
//!   after some time without waiting, which costs little more than the one before, so that a failure is not
//!   seen; if that went well, the way has changed, and it tries twice as many levels at once each time. A try
//!   that failed is repeated later and later, up to [`PATIENCE_MAX`].

use core::time::Duration;
use std::collections::VecDeque;

use outflow_media::Time;

use crate::waiting::Waiting;
use crate::{Arrival, Choice, Decision, Policy, Reason};

/// Packets that wait longer than that on the way, more than at best, wait because there are too many.
const QUEUE_MAX: Duration = Duration::from_millis(60);

/// Below that nothing waits.
const QUEUE_NONE: Duration = Duration::from_millis(25);

/// Over so long it is measured what gets through.
const WINDOW: Duration = Duration::from_millis(300);

/// Of what gets through so many percent are used; half of that as long as something waits.
const USED_PERCENT: u64 = 85;

/// So many percent are tried once nothing waits any more.
const TRIED_PERCENT: u64 = 95;

/// More lost packets than that, of a thousand, are too many.
const LOSS_PER_MILLE: u64 = 20;

/// After so long without waiting a better level is tried first; after failures later, up to the last.
const PATIENCE: Duration = Duration::from_millis(500);
const PATIENCE_MAX: Duration = Duration::from_millis(2500);

/// A try has succeeded if nothing has waited for so long since its first packets came.
const TRIED: Duration = Duration::from_millis(250);

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
    /// What was sent before is gone; something may still wait on the way.
    Draining,
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
    /// Bytes a second that got through over the last moments, or, if packets have begun to wait, since then.
    fn through(&self) -> u64 {
        let waited = self.seen.iter().rev().take_while(|seen| seen.waited).count();
        // The bytes of the one before count for the time before.
        let counted = if waited > 0 { waited + 1 } else { self.seen.len() };
        let mut counted = self.seen.iter().skip(self.seen.len().saturating_sub(counted));
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
        let (rate, per_mille) = (self.through(), self.lost());
        if self.queue > QUEUE_MAX {
            let queue_ms = self.queue.as_millis() as u64;
            return Some((Reason::Delayed { queue_ms, rate }, rate));
        }
        (per_mille > LOSS_PER_MILLE).then_some((Reason::Lossy { per_mille, rate }, rate))
    }

    /// Less: what fits into half of what gets through, until nothing waits any more.
    fn flee(&mut self, now: Time, choice: &Choice<'_>, (why, rate): (Reason, u64)) -> Option<Decision> {
        self.stage = Stage::Fleeing { media: self.media, until: now + ANSWERED_BY };
        self.step = 1;
        self.carries = Some(rate);
        let level = choice.affordable(rate * USED_PERCENT / 200).max(choice.current);
        (level != choice.current).then_some(Decision { level, why })
    }

    /// Back to what went well.
    fn give_up(&mut self, now: Time, from: u8, rate: u64) -> Decision {
        self.carries = Some(rate);
        self.stage = Stage::Fleeing { media: self.media, until: now + ANSWERED_BY };
        self.patience = (self.patience * 2).min(PATIENCE_MAX);
        self.step = 1;
        Decision { level: from, why: Reason::ProbeFailed }
    }

    /// A better level, so many steps.
    fn attempt(&mut self, now: Time, choice: &Choice<'_>) -> Option<Decision> {
        let fits = self.carries.map(|rate| choice.affordable(rate * TRIED_PERCENT / 100));
        let known = fits.filter(|level| *level < choice.current);
        let step = if self.carries.is_some() { 1 } else { self.step };
        let level = known.unwrap_or(choice.current.saturating_sub(step)).max(choice.ideal.max(1));
        if level >= choice.current {
            return None;
        }
        let (from, media, until) = (choice.current, self.media, now + ANSWERED_BY);
        self.stage = Stage::Trying { from, beyond: known.is_none(), media, until, since: None };
        Some(Decision { level, why: Reason::Probing })
    }

    fn well(&mut self, now: Time, since: Time, choice: &Choice<'_>) -> Option<Decision> {
        if let Some(trouble) = self.trouble() {
            return self.flee(now, choice, trouble);
        }
        if self.queue > QUEUE_NONE {
            self.stage = Stage::Well(now);
            return None;
        }
        if now.since(since) >= self.patience { self.attempt(now, choice) } else { None }
    }

    /// Something may wait; once it is gone, so much fits as got through meanwhile.
    fn draining(&mut self, now: Time, choice: &Choice<'_>) -> Option<Decision> {
        if self.queue <= QUEUE_NONE {
            self.stage = Stage::Well(now);
            let level = choice.affordable(self.carries? * USED_PERCENT / 100);
            return (level < choice.current).then_some(Decision { level, why: Reason::Drained });
        }
        let trouble = self.trouble()?;
        let is_base = choice.current >= choice.base();
        if is_base { None } else { self.flee(now, choice, trouble) }
    }

    fn trying(
        &mut self,
        now: Time,
        choice: &Choice<'_>,
        (from, beyond, since): (u8, bool, Option<Time>),
    ) -> Option<Decision> {
        if let Some((why, rate)) = self.trouble() {
            // Either it was too much, or the way has become another one meanwhile.
            let is_worse = choice.affordable(rate) > from;
            return if is_worse {
                self.flee(now, choice, (why, rate))
            } else {
                Some(self.give_up(now, from, rate))
            };
        }
        if since.is_some_and(|since| now.since(since) >= TRIED) && self.queue <= QUEUE_NONE {
            self.stage = Stage::Well(now);
            if beyond {
                self.step = self.step.saturating_mul(2);
                self.patience = PATIENCE;
                self.carries = None;
                return self.attempt(now, choice);
            }
        }
        None
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
                    self.stage = Stage::Draining;
                }
                None
            }
            Stage::Draining => self.draining(now, choice),
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
