//! Every limit of DVMRP, with what happens when it is reached, and its times.

use core::time::Duration;

use outflow_media::Backoff;

/// Bytes of a report behind its header: what every host takes without fragments, less the longest header of
/// IP and our own. Further routes go into the next one.
pub const REPORT_BYTES_MAX: usize = 576 - 60 - 8;

/// Routes in a report of ours: with a mask each, they still fit.
pub const REPORT_ROUTES_MAX: usize = REPORT_BYTES_MAX / 8;

/// Interfaces of a router. A further one is refused.
pub const INTERFACES_MAX: usize = 1024;

/// Neighbours of an interface, of which a point-to-point link has one. Probes of a further one are refused,
/// and counted, until another one is gone.
pub const NEIGHBOURS_MAX: usize = 64;

/// Routes of a router. One more that a neighbour tells of is refused, and counted.
pub const ROUTES_MAX: usize = 8192;

/// Routes that one neighbour is remembered to have told of. Further ones are refused, and counted.
pub const ROUTES_OF_NEIGHBOUR_MAX: usize = 4096;

/// Pairs of source network and group whose data comes from one interface. Data of a further one is refused
/// (it is not forwarded), and counted, until another one was idle.
pub const FLOWS_OF_INTERFACE_MAX: usize = 4096;

/// Groups with members on an interface. A further one is refused, and counted.
pub const GROUPS_OF_INTERFACE_MAX: usize = 4096;

/// Messages that wait to be sent. Further ones are dropped, and counted: what is not repeated in any case is
/// not acknowledged, and so is sent again.
pub const TRANSMITS_MAX: usize = 8192;

/// Events about neighbours that wait to be read. Of more, the oldest are dropped, and counted. Changes of
/// forwarding and routes are not limited by this: of each pair and network one waits.
pub const EVENTS_MAX: usize = 1024;

/// Messages of one neighbour that are read at once, probes not counted: a table of routes of full size, and
/// grafts. Further ones are refused, and counted, but for [`MESSAGES_A_SECOND`].
pub const MESSAGES_BURST: u32 = 2048;

/// Messages of one neighbour that are read in a second after a burst. Further ones are refused, and counted.
pub const MESSAGES_A_SECOND: u32 = 256;

/// Routes in a flash update. Further ones wait for the next.
pub const FLASH_ROUTES_MAX: usize = 1024;

/// From a probe to the next (section 3.2).
pub const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// A neighbour of which no probe is heard for so long is gone (section 3.2).
pub const NEIGHBOUR_TIMEOUT: Duration = Duration::from_secs(35);

/// A neighbour that has not heard of us for so long is not one both ways any more. The draft names no time;
/// mrouted waits for two probes.
pub const UNLISTED_TIMEOUT: Duration = Duration::from_secs(20);

/// From a restart of a neighbour to the next one. A probe of another generation in between is refused, and
/// counted: the one after it will do.
pub const RESTART_INTERVAL_MIN: Duration = Duration::from_secs(5);

/// From a full report to the next (section 3.4.2). It is spread over this time.
pub const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// From a flash update to the next, and from a copy of all routes for a neighbour to the next
/// (section 3.4.5).
pub const FLASH_INTERVAL_MIN: Duration = Duration::from_secs(5);

/// A route that is not told again for so long is not there any more (section 3.4.7).
pub const ROUTE_TIMEOUT: Duration = Duration::from_secs(140);

/// How long a route that is gone is told to be unreachable (section 3.4.8).
pub const HOLD_DOWN: Duration = Duration::from_secs(120);

/// How often routes are looked at, whether they are too old.
pub const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Shortest and longest lifetime of prunes that are sent, chosen at random (section 3.5.4), unless a prune
/// that came ends earlier.
pub const PRUNE_LIFETIME: (Duration, Duration) = (Duration::from_secs(3600), Duration::from_secs(7200));

/// Shortest lifetime of a prune that counts. A shorter one is refused, and counted, as mrouted does.
pub const PRUNE_LIFETIME_MIN: Duration = Duration::from_secs(5);

/// Longest lifetime of a prune that came: the longest that mrouted sends. A longer one is cut to it.
pub const PRUNE_LIFETIME_MAX: Duration = Duration::from_secs(10_800);

/// From a prune to its repetition if data still comes (section 3.5.5).
pub const PRUNE_AGAIN: Backoff = Backoff::new(Duration::from_secs(3), PRUNE_LIFETIME_MAX);

/// From a graft, or a demand, to its repetition if it is not acknowledged (section 3.6.1).
pub const GRAFT_AGAIN: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_secs(120));

/// From a demand to the next one that says the same: the interval of reports.
pub const DEMAND_INTERVAL: Duration = REPORT_INTERVAL;

/// How long a demand holds that is not said again: two may be lost.
pub const DEMAND_LIFETIME: Duration = Duration::from_secs(200);

/// Longest lifetime of a demand that came. A longer one is cut to it.
pub const DEMAND_LIFETIME_MAX: Duration = Duration::from_secs(3600);

/// A pair of source network and group without data for so long is forgotten, unless a prune or graft that
/// was sent for it still counts.
pub const FLOW_TIMEOUT: Duration = Duration::from_secs(300);

// What was learnt of a neighbour is not more than a router has room for, and times fit each other.
const _: () = assert!(ROUTES_OF_NEIGHBOUR_MAX <= ROUTES_MAX);
const _: () = assert!(UNLISTED_TIMEOUT.as_secs() > PROBE_INTERVAL.as_secs());
const _: () = assert!(ROUTE_TIMEOUT.as_secs() > 2 * REPORT_INTERVAL.as_secs());
const _: () = assert!(DEMAND_LIFETIME.as_secs() > 2 * DEMAND_INTERVAL.as_secs() + 60);
