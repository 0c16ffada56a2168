//! Every limit, with what happens when it is reached.

/// Parts of the time are kept over this time, nanoseconds: what was not used longer ago is not made up for, and what
/// was had beyond it longer ago is forgotten.
pub const WINDOW: u64 = 40_000_000;

/// The largest weight; a larger one counts as this.
pub const WEIGHT_MAX: u32 = 1_000;
