//! Every limit of a configuration. What lies outside is refused, with the limit in the message.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::{BitRate, ByteSize};

/// Bytes of a configuration's text: room for as many receivers as there may be.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 20;
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

/// How large a ring may be.
pub(crate) const RING: RangeInclusive<ByteSize> = ByteSize(64 << 10)..=ByteSize(64 << 30);

/// How long a receiver may be hopeless.
pub(crate) const HOPELESS_AFTER: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(3600);

/// How long a source may be silent.
pub(crate) const SOURCE_TIMEOUT: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

/// How long a packet may wait for company.
pub(crate) const LATENCY_BUDGET: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(10);

/// For how long a packet is worth sending again: less than a round trip repairs nothing.
pub(crate) const POC_LATENCY: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(30);

/// For how long less has to be wanted before less is asked for of other relays.
pub(crate) const TREE_HOLD: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(600);

/// Hops that packets to groups may take.
pub(crate) const TTL: RangeInclusive<usize> = 1..=255;

/// Other relays that are served.
pub(crate) const CHILDREN: RangeInclusive<usize> = 0..=100_000;

/// How slowly or fast bursts may be spread out.
pub(crate) const PACE: RangeInclusive<BitRate> = BitRate(8_000)..=BitRate(1_000_000_000_000);

/// How much a link may carry.
pub(crate) const LINK_RATE: RangeInclusive<BitRate> = BitRate(8_000)..=BitRate(1_000_000_000_000);

/// How much a buffer of a link may hold: a packet of the usual size at least.
pub(crate) const LINK_BUFFER: RangeInclusive<ByteSize> = ByteSize(1_500)..=ByteSize(1 << 30);

/// Renditions of a stream.
pub(crate) const RENDITIONS: RangeInclusive<usize> = 2..=16;

/// Receivers and connections.
pub(crate) const COUNT: RangeInclusive<usize> = 1..=1_000_000;

/// Worker threads; 0 stands for one a core.
pub(crate) const WORKERS: RangeInclusive<usize> = 0..=256;

/// How long a thread may look for packets before it sleeps.
pub(crate) const POLL: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(1);

/// Interfaces with hosts: multicast is routed among 1024, and one may be that upstream.
pub(crate) const MULTICAST_INTERFACES_MAX: usize = 1023;

/// Numbers of the kernel's tables of multicast routing.
pub(crate) const MULTICAST_TABLE: RangeInclusive<usize> = 1..=999_999_999;

/// What a hop may count between routers of DVMRP: 32 is out of reach (draft-ietf-idmr-dvmrp-v3-11, section 3.4).
pub(crate) const DVMRP_METRIC: RangeInclusive<usize> = 1..=31;

/// How many packets of IGMP may be lost in a row, plus one (RFC 3376, section 4.1.6).
pub(crate) const ROBUSTNESS: RangeInclusive<usize> = 1..=7;

/// How often hosts are asked: what queries have room for (RFC 3376, section 4.1.7).
pub(crate) const QUERY_INTERVAL: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(31_744);

/// How long hosts may take to answer (RFC 3376, section 4.1.1).
pub(crate) const QUERY_RESPONSE: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3_174);

/// Ranges of sources that are compared with each flow that comes.
pub(crate) const MULTICAST_SOURCES_MAX: usize = 256;

/// The fewest ports for RTP: two pairs, one for a stream's receivers and one for a publisher.
pub(crate) const RTP_PORTS_MIN: usize = 4;
