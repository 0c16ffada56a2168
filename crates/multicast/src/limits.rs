//! Every limit of the driver, with what happens when it is reached.

use std::time::Duration;

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
