//! What a stream is configured with.

use core::time::Duration;

use outflow_ring::WhenFull;

/// What a stream is configured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// How many bytes a ring holds.
    pub ring_bytes: usize,
    /// Which sink loses packets when a ring is full.
    pub when_full: WhenFull,
    /// A sink that loses packets for that long without ever catching up is let go.
    pub hopeless_after: Duration,
    /// No packet for that long, and the source counts as away.
    pub source_timeout: Duration,
    /// SSRC under which a transport stream goes out by RTP. Random, from the driver.
    pub ssrc: u32,
    /// All chance of the core comes from it. Random, from the driver.
    pub seed: u64,
    /// NTP time of [`Time::ZERO`](outflow_media::Time::ZERO), 32.32 fixed point seconds since 1900.
    pub ntp_at_zero: u64,
    /// How many layers the source has at least, though fewer may come: a relay that hands the stream on
    /// leaves out those no sink here wants, and levels mean the same here and there. 0 if packets say it.
    pub layers: u8,
    /// Other relays hand the source on, and may take turns at that.
    pub is_relayed: bool,
    /// Its weight among streams, for the driver: its share of a link, and of a worker's time within its class.
    pub weight: u32,
    /// The part of a worker's time within which it goes before all others, in thousandths of a percent; for the
    /// driver.
    pub reserve: u32,
    /// The rate that it is said to take at most, bits a second, for the driver; 0 if nothing is said.
    pub reserve_bps: u64,
}

/// What holds where a configuration says nothing; without chance.
impl Default for StreamOptions {
    fn default() -> Self {
        StreamOptions {
            ring_bytes: 8_000_000,
            when_full: WhenFull::SlowestSink,
            hopeless_after: Duration::from_secs(10),
            source_timeout: Duration::from_secs(2),
            ssrc: 1,
            seed: 1,
            ntp_at_zero: 0,
            layers: 0,
            is_relayed: false,
            weight: 1,
            reserve: 0,
            reserve_bps: 0,
        }
    }
}
