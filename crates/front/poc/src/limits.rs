//! Every limit of receivers of the partial-order transport, with what happens when it is reached.

use core::ops::RangeInclusive;
use core::time::Duration;

/// Bytes of a file of keys. A longer one is none.
pub(crate) const KEY_BYTES_MAX: u64 = 64 << 10;

/// While a receiver catches up, the transport is given no more packets than it can send within this time.
/// The rest stays in the ring.
pub(crate) const POC_CATCH_UP: Duration = Duration::from_millis(20);

/// For how long a packet is worth sending again: less than a round trip repairs nothing.
pub(crate) const POC_LATENCY: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(30);
