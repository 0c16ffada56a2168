//! What work is timed with.

/// Nanoseconds of the monotonic clock, to time work with.
pub fn probe() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
