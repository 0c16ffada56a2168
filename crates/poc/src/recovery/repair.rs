//! Whether what was lost is sent again.
//!
//! It is, as long as it can be of use: if `now + rtt/2 + variation` is before the time until which it is. If
//! the peer's answer to this attempt would come too late for another one, `now + 3·rtt/2 + variation`, then
//! this is the last, and it is worth more than one copy: a packet that is lost now is lost for good (Hairpin,
//! NSDI 2024, shows that redundancy is spent best on late rounds). Copies beyond the first are paid for from
//! a budget that is a share of what is sent.

use core::time::Duration;

use outflow_media::Time;
use outflow_petri::net::Need;
use outflow_petri::service::Class;

use super::Rtt;
use crate::limits::COPIES_MAX;

/// How much is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How often what is partially reliable is sent, with the first time.
    pub attempts_max: u32,
    /// Copies of what is sent for the last time, at most 4.
    pub copies: u32,
    /// What copies beyond the first may take of all bytes, in per cent.
    pub redundancy_pct: u32,
    /// Bytes of such copies that may be sent at once, when there were none for long.
    pub burst_bytes: u32,
}

impl Default for Settings {
    /// Three attempts; two copies of the last one, of 5 % of the bytes and ten packets at once.
    fn default() -> Self {
        Settings { attempts_max: 3, copies: 2, redundancy_pct: 5, burst_bytes: 12_000 }
    }
}

/// A piece of an object that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Until when the net needs the object.
    pub need: Need,
    /// Until when the application does, if it said so. The earlier one counts.
    pub useful_until: Option<Time>,
    /// How reliable it is.
    pub class: Class,
    /// How often it was sent, at least once; copies sent together count as once.
    pub attempts: u32,
    /// What it takes to send it again.
    pub bytes: u32,
}

impl Piece {
    /// Until when it is of use; `None` for ever, or as long as is known now.
    fn until(&self) -> Option<Time> {
        let Need::Until(until) = self.need else { return self.useful_until };
        Some(self.useful_until.map_or(until, |useful| useful.min(until)))
    }
}

/// What to do about a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Send it again.
    Again {
        /// So often, in as many packets: one or more.
        copies: u32,
    },
    /// Do not, and tell the peer.
    GiveUp(GiveUp),
}

/// Why something is not sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GiveUp {
    /// The net does not need it any more.
    NotNeeded,
    /// It would come too late.
    TooLate,
    /// Its class is sent once only.
    Unreliable,
    /// It was sent as often as its class allows.
    Attempts,
}

impl GiveUp {
    /// Its name among figures.
    pub const fn name(self) -> &'static str {
        match self {
            GiveUp::NotNeeded => "not_needed",
            GiveUp::TooLate => "too_late",
            GiveUp::Unreliable => "unreliable",
            GiveUp::Attempts => "attempts",
        }
    }
}

/// What was decided so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pieces sent again.
    pub again: u64,
    /// Copies of them beyond the first.
    pub copies: u64,
    /// The bytes of those copies.
    pub copied_bytes: u64,
    /// Copies that the budget did not allow.
    pub copies_refused: u64,
    /// Given up: [`GiveUp::NotNeeded`].
    pub not_needed: u64,
    /// Given up: [`GiveUp::TooLate`].
    pub too_late: u64,
    /// Given up: [`GiveUp::Unreliable`].
    pub unreliable: u64,
    /// Given up: [`GiveUp::Attempts`].
    pub attempts: u64,
}

impl Counts {
    /// How many pieces were given up for this reason.
    pub const fn given_up(&self, reason: GiveUp) -> u64 {
        match reason {
            GiveUp::NotNeeded => self.not_needed,
            GiveUp::TooLate => self.too_late,
            GiveUp::Unreliable => self.unreliable,
            GiveUp::Attempts => self.attempts,
        }
    }

    fn give_up(&mut self, reason: GiveUp) {
        *match reason {
            GiveUp::NotNeeded => &mut self.not_needed,
            GiveUp::TooLate => &mut self.too_late,
            GiveUp::Unreliable => &mut self.unreliable,
            GiveUp::Attempts => &mut self.attempts,
        } += 1;
    }
}

/// Decides what is sent again, and keeps the budget.
#[derive(Debug)]
pub struct Repairs {
    settings: Settings,
    /// Hundredths of bytes that copies may still take.
    budget: u64,
    counts: Counts,
}

impl Repairs {
    /// With a full budget.
    pub fn new(settings: Settings) -> Self {
        let settings = Settings { copies: settings.copies.clamp(1, COPIES_MAX), ..settings };
        Repairs { settings, budget: 100 * u64::from(settings.burst_bytes), counts: Counts::default() }
    }

    /// `bytes` bytes were sent, for the first time or again: the budget grows by its share of them. Copies
    /// beyond the first are left out.
    pub fn handle_sent(&mut self, bytes: u32) {
        let grown = self.budget + u64::from(bytes) * u64::from(self.settings.redundancy_pct);
        self.budget = grown.min(100 * u64::from(self.settings.burst_bytes));
    }

    /// What to do about a piece that was lost. What it says is done counts as done.
    pub fn decide(&mut self, now: Time, rtt: &Rtt, piece: &Piece) -> Repair {
        let margin = rtt.smoothed() / 2 + rtt.variation();
        let until = piece.until();
        let is_late = |wait: Duration| until.is_some_and(|until| now + wait >= until);
        let reason = match piece.class {
            _ if piece.need == Need::No => Some(GiveUp::NotNeeded),
            Class::Unreliable => Some(GiveUp::Unreliable),
            Class::Partial if piece.attempts >= self.settings.attempts_max => Some(GiveUp::Attempts),
            _ if is_late(margin) => Some(GiveUp::TooLate),
            _ => None,
        };
        if let Some(reason) = reason {
            self.counts.give_up(reason);
            return Repair::GiveUp(reason);
        }
        let is_last = is_late(margin + rtt.smoothed());
        let copies = if is_last { 1 + self.spend(self.settings.copies - 1, piece) } else { 1 };
        self.counts.again += 1;
        Repair::Again { copies }
    }

    /// Hundredths of bytes that copies may still take.
    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    /// The same with what was left of a budget, and what was decided before.
    pub(crate) fn go_on(self, budget: u64, counts: Counts) -> Self {
        let budget = budget.min(100 * u64::from(self.settings.burst_bytes));
        Repairs { budget, counts, ..self }
    }

    /// What was decided so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many of these copies the budget allows; they are paid for. What is partially reliable leaves half of
    /// it to the rest.
    fn spend(&mut self, copies: u32, piece: &Piece) -> u32 {
        let kept = if piece.class == Class::Partial { 50 * u64::from(self.settings.burst_bytes) } else { 0 };
        let (bytes, cost) = (piece.bytes, 100 * u64::from(piece.bytes.max(1)));
        let allowed = u64::from(copies).min(self.budget.saturating_sub(kept) / cost);
        self.budget -= allowed * cost;
        self.counts.copies += allowed;
        self.counts.copied_bytes += allowed * u64::from(bytes);
        self.counts.copies_refused += u64::from(copies) - allowed;
        allowed as u32
    }
}

#[cfg(test)]
mod tests;
