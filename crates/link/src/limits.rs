//! Limits of links, with what happens when they are reached.

use core::time::Duration;

/// What was offered to a link's buffer counts half after that: so its share of the service follows it.
pub const OFFERED_HALVED_AFTER: Duration = Duration::from_secs(10);

/// What a class had before its turn, while those above it had nothing, is held against what it is promised as far back
/// as this many bytes of the link ...
pub const PRIORITY_WINDOW: u64 = 64 << 10;

/// ... and all classes below the highest that has something are promised no more than this together, in thousandths of a
/// percent: with more of them, each is promised less.
pub const LOWER_TOGETHER: u32 = 90_000;

/// Flows of one medium are alike whose mean rates are within this factor of each other ...
pub const SIMILAR_RATES: u64 = 4;

/// ... and whose frames a second are within this one.
pub const SIMILAR_FRAME_RATES: u64 = 2;

/// Over how long that is measured: a few groups of pictures.
pub const SIMILAR_WINDOW: Duration = Duration::from_secs(5);

/// Groups of flows of one medium that are told apart. A flow that is like none of them stays where it is.
pub const SIMILAR_GROUPS_MAX: u32 = 8;

/// How often the rate of a link that follows its receivers may change.
pub const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// How long it holds what a receiver said that its way carries: five times the longest that is usual between two
/// reports (RFC 3550, section 6.2: 5 s).
pub const FOLLOW_LIMIT_HOLDS: Duration = Duration::from_secs(25);

/// Packets that receivers must have reported on before: a share of fewer is chance.
pub const FOLLOW_EXPECTED_MIN: u64 = 20;

/// Quantiles of the time that packets wait at a link are of the last period this long, and the one before.
pub const DELAYS_OVER: Duration = Duration::from_secs(10);
