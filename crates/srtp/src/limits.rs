//! Limits of secure RTP, with what happens when they are reached.

/// Sources of one peer of which packets are opened. Packets of one more are refused: a publisher has two for each track and
/// layer, and one more that began again.
pub const SOURCES_MAX: usize = 32;

/// Packets back from the newest within which one that came twice is known. Older ones are refused (RFC 3711, section
/// 3.3.2: 64 at least).
pub const WINDOW: u64 = 512;

/// Packets of RTCP that one key may seal (RFC 3711, section 9.2). Behind them nothing more is sealed.
pub const CONTROL_PACKETS_MAX: u32 = 1 << 31;
