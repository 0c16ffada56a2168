//! Every limit of the simulator, and what happens when it is reached.

/// The longest a run may last. Beyond, the scenario is refused.
pub(crate) const SECONDS_MAX: u64 = 1_000_000;

/// Flows of a network. With more, the scenario is refused.
pub(crate) const FLOWS_MAX: usize = 1_000_000;

/// Bytes of a capture, all of which is kept in memory while it is read. A larger one is refused.
pub(crate) const CAPTURE_BYTES_MAX: usize = 2 << 30;

/// Flows of a capture. Packets of further ones are skipped, and counted.
pub(crate) const CAPTURE_FLOWS_MAX: usize = 4096;

/// Seconds between two clock references of a transport stream. If it is more, or the clock goes back, it has
/// begun again, and the packets between the two are taken to have come at the rate before.
pub(crate) const CLOCK_STEP_SECONDS_MAX: u64 = 10;

/// How long outages of a link last on average at least: each is drawn by itself.
pub(crate) const OUTAGE_MIN: core::time::Duration = core::time::Duration::from_millis(1);

/// Flows of packets of IP. A further one takes the place of the one that was silent longest; where all have packets
/// on their way it is one with all further flows of its way, and data.
pub(crate) const PACKET_FLOWS_MAX: usize = 4096;

/// Flows of packets of which it is looked for at once what they are. Further ones are data.
pub(crate) const LOOKED_AT_FLOWS_MAX: usize = 64;

/// Ends and nodes of a network, and segments. With more, it is refused.
pub(crate) const PLACES_MAX: usize = 250;

/// Paths of a network. With more, it is refused.
pub(crate) const PATHS_MAX: usize = 1024;

/// Packets of IP that travel behind a link, and that wait at one. A further one is dropped, and counted (`full`).
pub(crate) const HELD_MAX: usize = 200_000;

/// For how long a packet is worth sending again: less than a round trip repairs nothing. The same as in
/// configurations of relays. Beyond, the scenario is refused.
pub(crate) const POC_LATENCY: core::ops::RangeInclusive<core::time::Duration> =
    core::time::Duration::from_millis(1)..=core::time::Duration::from_secs(30);
