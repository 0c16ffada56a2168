//! Limits of conversions, with what happens when they are reached.

/// Seconds that a timestamp may be from where its arrival puts it when tracks are brought
/// together. One further away begins the track again; a sender report further away is not believed.
pub const CLOCK_DEVIATION_SECONDS_MAX: u32 = 10;
