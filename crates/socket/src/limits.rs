//! Limits of the system.

/// Datagrams of one segmented send (UDP_MAX_SEGMENTS of the kernel is 64 before Linux 6.9).
pub const GSO_SEGMENTS_MAX: usize = 64;

/// Bytes of one segmented send, headers included.
pub const GSO_BYTES_MAX: usize = 65_000;
