//! What flows and classes may ask for.

use crate::limits::WEIGHT_MAX;

/// What a nanosecond of a flow of weight 1 counts, so that one of the largest weight does not vanish: a turn of
/// 10 us is 160 for it. A flow of weight 1 may work for 36 years.
const NANOSECOND: u64 = 16;

/// A part of the time, in thousandths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Part(u32);

/// All of the time.
const WHOLE: u32 = 100_000;

impl Part {
    /// Nothing.
    pub const NONE: Part = Part(0);

    /// This number of thousandths of a percent; the whole, if it is more than that.
    pub const fn of_100_000(parts: u32) -> Self {
        Part(if parts < WHOLE { parts } else { WHOLE })
    }

    /// This number of percent.
    pub const fn percent(percent: u8) -> Self {
        Part::of_100_000(percent as u32 * 1_000)
    }

    /// As much of this time.
    pub const fn of(self, time: u64) -> u64 {
        time / WHOLE as u64 * self.0 as u64 + time % WHOLE as u64 * self.0 as u64 / WHOLE as u64
    }
}

/// What a flow is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Its weight among the flows of its class: 1 to [`WEIGHT_MAX`].
    pub weight: u32,
    /// The part of the time within which it goes before all others.
    pub reserved: Part,
}

impl Claim {
    /// By how much time of this flow brings it back in its class.
    pub(crate) fn stride(&self, took: u64) -> u64 {
        took.saturating_mul(NANOSECOND) / u64::from(self.weight.clamp(1, WEIGHT_MAX))
    }
}

impl Default for Claim {
    fn default() -> Self {
        Claim { weight: 1, reserved: Part::NONE }
    }
}
