//! Media of our own making, and checks of media that arrives.

pub mod continuity;
pub mod marker;
pub mod pulse;
pub mod recorder;
pub mod rtp;
pub mod sender;
pub mod synthetic;

pub use continuity::Continuity;
pub use marker::Marker;
pub use pulse::Pulse;
pub use recorder::By;
pub use rtp::Pulses;
pub use sender::Sender;
pub use synthetic::{Shape, Synthetic};

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Bytes of a transport packet.
pub const TS_PACKET: usize = 188;
/// Transport packets in a datagram, as is usual (7 · 188 = 1316 bytes).
pub const PER_DATAGRAM: usize = 7;

/// Nanoseconds since 1970, the clock of the kernel's receive timestamps.
pub fn wall_nanos() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds on the monotonic clock, which is that of `bpf_ktime_get_ns`.
pub fn monotonic_nanos() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
