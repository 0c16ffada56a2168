//! Limits of routes, with what happens when they are reached.

use core::time::Duration;

/// Bytes of one datagram of netlink. The kernel sends larger ones only where a device has hundreds
/// of virtual functions; such a one counts as lost, and the tables are read again.
pub const NETLINK_MESSAGE_BYTES: usize = 64 << 10;

/// Receive buffer that is asked of the kernel for netlink sockets. When events overrun it, the
/// tables are read again.
pub const NETLINK_BUFFER_BYTES: usize = 2 << 20;

/// Datagrams of events read from netlink before the streams have their turn.
pub const NETLINK_ROUNDS: usize = 256;

/// Destinations whose routes one worker knows. Receivers beyond are sent to through sockets.
pub const ROUTED_FLOWS_MAX: usize = 1 << 18;

/// How often the kernel is asked to make sure of a neighbour in use. It doubts one 15 to 45 s
/// after it was last confirmed (`base_reachable_time_ms`), and drops doubtful ones after 60 s
/// (`gc_stale_time`) if they are not used.
pub const NEIGHBOUR_CONFIRM_EVERY: Duration = Duration::from_secs(15);

/// Neighbours confirmed at once; the others wait a second.
pub const NEIGHBOURS_CONFIRMED_AT_ONCE: usize = 4_096;

/// How often each route is asked for again, since the kernel does not tell of path MTUs and
/// redirects.
pub const ROUTE_ASK_AGAIN: Duration = Duration::from_secs(60);

/// Routes asked for again at once, which takes half a millisecond or so; the others wait 20 ms.
pub const ROUTES_ASKED_AT_ONCE: usize = 128;

/// How long after a device or an address has come or gone routes are asked for again: the kernel
/// changes them a moment after its event, and says nothing of it.
pub const ROUTES_SETTLE: Duration = Duration::from_millis(100);
