//! Limits of rings, with what happens when they are reached.

/// Packets that a ring holds, whatever their size. Beyond, the oldest go, as when its bytes are full.
pub const RING_PACKETS_MAX: usize = 1 << 18;

/// The smallest ring that can be asked for; a smaller wish is raised to it.
pub const RING_BYTES_MIN: usize = 64 << 10;

/// A full ring gives up this share of itself at once (one part in this many), so that the sinks
/// that lag are visited once for many packets, not for each.
pub const RING_GIVE_UP_PARTS: usize = 16;

/// Random early detection: what a packet changes the mean of what a ring owes, as a power of two
/// (w_q = 1/512; Floyd and Jacobson, 1993, section 6, advise 0.002).
pub const RED_WEIGHT_LOG2: u32 = 9;

/// Random early detection: the thresholds are this many of [`RED_PARTS`] parts of the ring. Below the
/// lower one nothing is refused, above the upper one everything. The upper is three times the lower
/// (Floyd, "RED: Discussions of Setting Parameters", 1997).
pub const RED_MIN_PARTS: u64 = 1;

/// See [`RED_MIN_PARTS`].
pub const RED_MAX_PARTS: u64 = 3;

/// See [`RED_MIN_PARTS`].
pub const RED_PARTS: u64 = 4;

/// Random early detection: just below the upper threshold, one packet in this many is marked to be
/// refused (1 / max_p; Floyd, 1997, advises 0.1).
pub const RED_ONE_IN: u64 = 10;

const _: () =
    assert!(RED_MIN_PARTS < RED_MAX_PARTS && RED_MAX_PARTS <= RED_PARTS, "thresholds lie in a ring");
const _: () = assert!(RING_BYTES_MIN / RING_GIVE_UP_PARTS >= 2048, "a full ring must give up a packet");
