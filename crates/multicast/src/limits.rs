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

/// How often the driver looks which pairs are still in use.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// Pairs of which nothing came for so long are removed; at most [`SWEEP_EVERY`] later.
pub(crate) const FLOW_IDLE: Duration = Duration::from_secs(60);

/// Pairs that go nowhere although they come from a neighbour: how often the driver looks whether they still
/// come, so that the neighbour is told again.
pub(crate) const UNWANTED_EVERY: Duration = Duration::from_secs(1);

/// How often routers' trees of what the relay sends itself are said to be in use: well within the time after
/// which they are forgotten.
pub(crate) const OWN_EVERY: Duration = Duration::from_secs(60);

/// Interfaces that take part. A further one is refused. The first [`VIFS_MAX`](crate::sys::VIFS_MAX) are the
/// kernel's, and packets from and to others are forwarded in user space.
pub const PORTS_MAX: usize = 1024;

/// Bytes of packets that wait to be forwarded in user space, from an interface; and as many to all. Further ones
/// are lost, and counted ([`UserCounts`](crate::UserCounts)).
pub(crate) const TAP_BUFFER_BYTES: usize = 8 << 20;

/// Tracks of layered packets that the kernel's filter knows, of all flows. Of further ones, those that were not used for
/// longest begin again.
pub(crate) const FILTER_TRACKS_MAX: u32 = 2048;

/// Copies of packets that one call sends. Further ones are for the next call.
pub(crate) const SENT_AT_ONCE: usize = 256;

/// News of packets forwarded in user space that wait for the driver. Further ones are told again later.
pub(crate) const ARRIVALS_MAX: usize = 256;

/// Pairs of which packets wait for the driver to say where they go. Packets of further ones are dropped.
pub(crate) const WAITING_PAIRS_MAX: usize = 256;

/// Packets of a pair that wait so; of the kernel's, there are as many. Further ones are dropped.
pub(crate) const WAITING_PACKETS_MAX: usize = 4;

/// How long they wait at most; and after that, the driver is told again.
pub(crate) const WAITING_MAX: Duration = Duration::from_secs(3);

/// Parts of a packet that was merged. The kernel merges no more (UDP_MAX_SEGMENTS); those of more are dropped.
pub(crate) const MERGED_MAX: usize = 128;

/// From one look at the machine's interfaces to the next, when they change all the time.
pub(crate) const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(200);

/// The same when nothing is known to have changed: what was refused is tried again.
pub(crate) const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Changes of interfaces that are read at once. The others wait.
pub(crate) const CHANGES_AT_ONCE: usize = 256;

/// Times that are kept until a caller asks for them. The oldest go first.
pub const TIMINGS_MAX: usize = 1024;
