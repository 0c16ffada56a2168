//! Every limit of congestion control, with what happens when it is reached.

use core::time::Duration;

/// Lowest and highest rate, in bits a second, that congestion control may be asked to keep to. A wish beyond
/// them is moved to them.
pub const RATE_BPS_LEAST: u64 = 8_000;
/// See [`RATE_BPS_LEAST`].
pub const RATE_BPS_MOST: u64 = 100_000_000_000;

/// Packets that may always be in flight (RFC 9002, section 7.2, and RFC 8085, section 3.1.1, for two of them). A
/// window is not cut below them: a path that carries less fills up, and is left to loss and time-outs.
pub const WINDOW_PACKETS_MIN: u64 = 2;

/// Longest burst that the pacer allows, as time at the current rate. A wish for more is lowered to it.
pub const BURST_MAX: Duration = Duration::from_millis(50);

/// Fewest and most bytes of a datagram that congestion control counts with. A wish beyond them is moved to them.
pub const DATAGRAM_BYTES_LEAST: u64 = 64;
/// See [`DATAGRAM_BYTES_LEAST`].
pub const DATAGRAM_BYTES_MOST: u64 = 65_535;

/// Changes of the congestion window that are kept until they are read. When one more comes, the oldest is
/// dropped and counted.
pub const CHANGES_MAX: usize = 64;

/// Packets that a ledger remembers of a receiver at first, and at most: two and 32 KiB. Where more are on the way than
/// that, the oldest are forgotten: nothing becomes of them.
pub const LEDGER_PACKETS: usize = 256;
/// See [`LEDGER_PACKETS`].
pub const LEDGER_PACKETS_MAX: usize = 4096;

/// A packet that was sent so long ago, and that nothing was said of, makes room for a new one.
pub const LEDGER_KEPT: Duration = Duration::from_secs(1);

/// Longest that a probe may last, at both ends. What takes longer is no probe.
pub const PROBE_MAX: Duration = Duration::from_secs(1);

const _: () = assert!(LEDGER_PACKETS.is_power_of_two() && LEDGER_PACKETS_MAX.is_power_of_two());
const _: () = assert!(LEDGER_PACKETS <= LEDGER_PACKETS_MAX && LEDGER_PACKETS_MAX < 1 << 16);
