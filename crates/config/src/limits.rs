//! Every limit of a configuration. What lies outside is refused, with the limit in the message.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::{BitRate, ByteSize, Share};

/// Bytes of a configuration's text: room for as many receivers as there may be.
pub const TEXT_BYTES_MAX: usize = 64 << 20;
const _: () = assert!(TEXT_BYTES_MAX / 64 >= *COUNT.end());

/// Errors that are shown at once; the others are counted.
pub(crate) const ERRORS_SHOWN_MAX: usize = 20;

/// Columns of the offending line that are shown, before and after the mistake.
pub(crate) const SNIPPET_COLUMNS: usize = 80;

/// Bytes of a stream's name, all of its parts together.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Bytes of one part of a stream's name.
pub(crate) const NAME_PART_BYTES_MAX: usize = 64;

/// Bytes of a network interface's name (IFNAMSIZ of Linux, less its final zero).
pub(crate) const INTERFACE_BYTES_MAX: usize = 15;

/// How large a ring may be: ten minutes of 50 Mbit/s. A full one takes this much memory.
pub(crate) const RING: RangeInclusive<ByteSize> = ByteSize(64 << 10)..=ByteSize(4 << 30);

/// How much memory the relay may be given: as much as it takes with nothing to do, and more than a machine has.
pub(crate) const MEMORY: RangeInclusive<ByteSize> = ByteSize(16_000_000)..=ByteSize(1 << 46);

/// One in this many parts of the relay's memory is for the rings of all streams. A configuration that may take more is
/// refused; the rest is for what receivers, connections and services need.
pub(crate) const RINGS_ONE_IN: u64 = 2;

/// How long a receiver may be hopeless.
pub(crate) const HOPELESS_AFTER: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(3600);

/// How long a source may be silent.
pub(crate) const SOURCE_TIMEOUT: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

/// How long a publisher may send no media.
pub(crate) const PUBLISH_TIMEOUT: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

/// How long a packet may wait for company.
pub(crate) const LATENCY_BUDGET: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(10);

/// How much of a worker's time a stream may reserve, and all of them together: the rest is for what none reserves.
pub const RESERVE: RangeInclusive<Share> = Share(1_000)..=Share(80_000);

/// How much of a worker's time, or of a link, a class may be promised. Two are.
pub const CLASS_SHARE: RangeInclusive<Share> = Share(1_000)..=Share(45_000);

/// How slowly or fast bursts may be spread out.
pub(crate) const PACE: RangeInclusive<BitRate> = BitRate(8_000)..=BitRate(1_000_000_000_000);

/// How much a link may carry.
pub(crate) const LINK_RATE: RangeInclusive<BitRate> = BitRate(8_000)..=BitRate(1_000_000_000_000);

/// How much a receiver may reserve of a link.
pub(crate) const RESERVE_RATE: RangeInclusive<BitRate> = BitRate(1_000)..=BitRate(1_000_000_000_000);

/// How much a buffer of a link may hold: a packet of the usual size at least.
pub(crate) const LINK_BUFFER: RangeInclusive<ByteSize> = ByteSize(1_500)..=ByteSize(1 << 30);

/// What a stream, an application or a receiver may weigh: so the least has a thousandth of what the most has.
pub(crate) const WEIGHT: RangeInclusive<u32> = 1..=1000;

/// Renditions of a stream.
pub(crate) const RENDITIONS: RangeInclusive<usize> = 2..=16;

/// Receivers and connections.
pub(crate) const COUNT: RangeInclusive<usize> = 1..=1_000_000;

/// Worker threads; 0 stands for one a core.
pub(crate) const WORKERS: RangeInclusive<usize> = 0..=256;

/// How long a thread may look for packets before it sleeps.
pub(crate) const POLL: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(1);

/// How long a relay that is told to end may wait for its receivers.
pub(crate) const DRAIN: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(24 * 3600);

/// The fewest ports for RTP: two pairs, one for a stream's receivers and one for a publisher.
pub(crate) const RTP_PORTS_MIN: usize = 4;
