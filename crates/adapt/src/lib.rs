//! Which level a receiver asks for, as its network changes (GMS, section III.C): decided by the receiver, from
//! what arrives and from what each level costs.
//!
//! A [`Policy`] is told each packet that arrives, and says what to ask for. It has no clock and no sockets: the
//! receiving side (`outflow-client`) and the simulator give it time and packets.

mod adaptation;
pub mod energy;
mod gradient;
mod paper;
mod resources;
#[cfg(test)]
mod track;
mod waiting;

use core::fmt;

pub use adaptation::Adaptation;
pub use gradient::Gradient;
use outflow_media::Time;
pub use paper::Paper;
pub use resources::Resources;

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When its sender sent it, by the sender's clock: its RTP timestamp on a time line.
    pub media: Time,
    /// Its bytes, RTP header included: as the relay counts what levels cost.
    pub bytes: usize,
    /// Packets that were lost just before it.
    pub lost: u16,
}

/// What a receiver can choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice<'a> {
    /// Bytes a second of each level, the best first; not empty.
    pub rates: &'a [u64],
    /// The level that it gets, 1 is the best.
    pub current: u8,
    /// The level that it would like best.
    pub ideal: u8,
}

impl Choice<'_> {
    /// Bytes a second of a level; those of the base, of one that there is not.
    pub fn rate(&self, level: u8) -> u64 {
        let rate = self.rates.get(usize::from(level.max(1)) - 1).or(self.rates.last());
        rate.copied().unwrap_or(0)
    }

    /// The number of the base.
    pub fn base(&self) -> u8 {
        u8::try_from(self.rates.len()).unwrap_or(u8::MAX).max(1)
    }

    /// The best level, no better than the ideal one, that costs no more than `rate`; else the base.
    pub fn affordable(&self, rate: u64) -> u8 {
        let fits = |level: &u8| self.rate(*level) <= rate;
        (self.ideal.max(1)..=self.base()).find(fits).unwrap_or(self.base())
    }
}

/// Why another level is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Less arrives than the level costs.
    TooSlow {
        /// Bytes a second that arrive.
        rate: u64,
    },
    /// Packets arrive later and later.
    Delayed {
        /// By how many milliseconds more than at best.
        queue_ms: u64,
        /// Bytes a second that get through meanwhile.
        rate: u64,
    },
    /// Packets are lost.
    Lossy {
        /// Of a thousand.
        per_mille: u64,
        /// Bytes a second that get through meanwhile.
        rate: u64,
    },
    /// What waited on the way is gone: so much fits now.
    Drained,
    /// All has been well for some time: it tries a better one.
    Probing,
    /// The better one did too much: back.
    ProbeFailed,
    /// All has been well for as long as the paper waits: it tries the ideal one.
    Recovered,
    /// It is better than the user wants.
    Ideal,
    /// The CPU is busy.
    Busy {
        /// In percent of all cores.
        percent: u8,
    },
    /// Little charge is left.
    Charge {
        /// In percent.
        percent: u8,
    },
}

impl Reason {
    /// A word for it, in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::TooSlow { .. } => "too-slow",
            Reason::Delayed { .. } => "delayed",
            Reason::Lossy { .. } => "lossy",
            Reason::Drained => "drained",
            Reason::Probing => "probing",
            Reason::ProbeFailed => "probe-failed",
            Reason::Recovered => "recovered",
            Reason::Ideal => "ideal",
            Reason::Busy { .. } => "busy",
            Reason::Charge { .. } => "charge",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kbit = |rate: &u64| rate * 8 / 1000;
        match self {
            Reason::TooSlow { rate } => write!(f, "only {} kbit/s arrive", kbit(rate)),
            Reason::Delayed { queue_ms, rate } => {
                write!(f, "packets wait {queue_ms} ms on the way, {} kbit/s get through", kbit(rate))
            }
            Reason::Lossy { per_mille, rate } => {
                let (whole, tenths) = (per_mille / 10, per_mille % 10);
                write!(f, "{whole}.{tenths} % are lost, {} kbit/s get through", kbit(rate))
            }
            Reason::Drained => write!(f, "nothing waits on the way any more"),
            Reason::Probing => write!(f, "all has been well: a better level is tried"),
            Reason::ProbeFailed => write!(f, "the better level was too much"),
            Reason::Recovered => write!(f, "all has been well: the ideal level is tried"),
            Reason::Ideal => write!(f, "no better one is wanted"),
            Reason::Busy { percent } => write!(f, "{percent} % of the CPU are in use"),
            Reason::Charge { percent } => write!(f, "{percent} % of the charge are left"),
        }
    }
}

/// What a policy wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The level to ask for.
    pub level: u8,
    /// Why.
    pub why: Reason,
}

/// Decides which level to ask for.
pub trait Policy: fmt::Debug + Send {
    /// Notes a packet that arrived.
    fn arrived(&mut self, now: Time, arrival: Arrival);

    /// What to ask for now, if that is another level. To be called after each packet, and at [`Policy::due`];
    /// calls in between are harmless.
    fn decide(&mut self, now: Time, choice: &Choice<'_>) -> Option<Decision>;

    /// When it wants to decide again even if nothing arrives.
    fn due(&self) -> Option<Time>;
}
