//! Every limit of multicast, with what happens when it is reached.

use core::time::Duration;

/// Questions to the task of multicast that wait. Further ones wait for a place.
pub(crate) const MULTICAST_ASKS_MAX: usize = 16;

/// How often it is looked which interfaces are there, and tried again what failed.
pub(crate) const MULTICAST_LOOK: Duration = Duration::from_secs(1);

/// Hops that packets to a group may take where routers are to carry them on, if the group says nothing.
pub(crate) const MULTICAST_ROUTED_TTL: u8 = 32;
