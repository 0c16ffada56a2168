//! Every limit of the driver, with what happens when it is reached.

use std::time::Duration;

use crate::sys::VIFS_MAX;

/// Bytes of packets and upcalls that wait in the kernel. Further ones are lost; hosts report again. (The
/// kernel lowers it to `net.core.rmem_max`.)
pub(crate) const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// Bytes of a packet that is read: no IP packet is longer.
pub(crate) const PACKET_BYTES_MAX: usize = 1 << 16;

/// Packets that are read before timers and commands have their turn again. The others wait.
pub(crate) const PACKETS_AT_ONCE: usize = 64;

/// Events that wait for their reader. Further ones are left out, and it is told so: it asks for a snapshot.
pub(crate) const EVENTS_MAX: usize = 4096;

/// Commands that wait. Further callers wait for a place.
pub(crate) const COMMANDS_MAX: usize = 16;

/// Pairs of source and group that are forwarded, or known not to be. The packets of further ones are
/// dropped by the kernel, and counted ([`Counts::flows_refused`](crate::Counts)).
pub const FLOWS_MAX: usize = 4096;

/// How often it is looked which pairs are still in use.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// Pairs of which nothing came for so long are removed; at most [`SWEEP_EVERY`] later.
pub(crate) const FLOW_IDLE: Duration = Duration::from_secs(60);

/// Pairs that go nowhere although they come from a neighbour: how often it is looked whether they still come,
/// so that he is told again.
pub(crate) const UNWANTED_EVERY: Duration = Duration::from_secs(1);

/// How often routers' trees of what the relay sends itself are said to be in use: well within the time after
/// which they are forgotten.
pub(crate) const OWN_EVERY: Duration = Duration::from_secs(60);

/// Interfaces that take part: those that the kernel's table has room for. A further one is refused.
pub const PORTS_MAX: usize = VIFS_MAX;

/// From one look at the machine's interfaces to the next, when they change all the time.
pub(crate) const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(200);

/// The same when nothing is known to have changed: what was refused is tried again.
pub(crate) const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Changes of interfaces that are read at once. The others wait.
pub(crate) const CHANGES_AT_ONCE: usize = 256;

/// Times that are kept until somebody asks for them. The oldest go first.
pub const TIMINGS_MAX: usize = 1024;
