//! Every limit of multicast, with what happens when it is reached.

use core::ops::RangeInclusive;
use core::time::Duration;

/// Questions to the task of multicast that wait. Further ones wait for a place.
pub(crate) const MULTICAST_ASKS_MAX: usize = 16;

/// How often the task looks which interfaces are there, and tries again what failed.
pub(crate) const MULTICAST_LOOK: Duration = Duration::from_secs(1);

/// Hops that packets to a group may take where routers are to carry them on, if the group says nothing.
pub(crate) const MULTICAST_ROUTED_TTL: u8 = 32;

/// Interfaces with hosts: multicast is routed among 1024, and one may be that upstream.
pub(crate) const MULTICAST_INTERFACES_MAX: usize = 1023;

/// Numbers of the kernel's tables of multicast routing.
pub(crate) const MULTICAST_TABLE: RangeInclusive<usize> = 1..=999_999_999;

/// What a hop may count between routers of DVMRP: 32 is out of reach (draft-ietf-idmr-dvmrp-v3-11, section 3.4).
pub(crate) const DVMRP_METRIC: RangeInclusive<usize> = 1..=31;

/// How many packets of IGMP may be lost in a row, plus one (RFC 3376, section 4.1.6).
pub(crate) const ROBUSTNESS: RangeInclusive<usize> = 1..=7;

/// How often hosts are asked: what queries have room for (RFC 3376, section 4.1.7).
pub(crate) const QUERY_INTERVAL: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(31_744);

/// How long hosts may take to answer (RFC 3376, section 4.1.1).
pub(crate) const QUERY_RESPONSE: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3_174);

/// Ranges of sources that are compared with each flow that comes.
pub(crate) const MULTICAST_SOURCES_MAX: usize = 256;
