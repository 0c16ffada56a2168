//! Every limit of groups, with what happens when it is reached.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Port of the groups that streams go to because a player asks for that (RFC 3551, section 8).
pub(crate) const GROUP_PORT: u16 = 5004;

/// For how long less has to be wanted before less is asked for of other relays.
pub(crate) const HOLD: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(600);

/// Hops that packets to groups may take.
pub(crate) const TTL: RangeInclusive<usize> = 1..=255;
