//! What came of a run.

use std::collections::BTreeMap;

use outflow_media::Time;

/// The result of a run. Equal for equal scenarios, bit for bit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Packets that the source sent.
    pub source_packets: u64,
    /// Deliveries to all receivers.
    pub delivered: u64,
    /// Packets that receivers which never stalled did not get, though they were there.
    pub healthy_lost: u64,
    /// Packets that stalled receivers did not get.
    pub stalled_lost: u64,
    /// Stalled receivers that were let go.
    pub ended: u64,
    /// The largest number of bytes that the ring held.
    pub ring_bytes_most: usize,
    /// The largest delay of a delivery to a healthy receiver that had caught up, in nanoseconds.
    pub healthy_delay_most_ns: u64,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Covers every delivery: to whom, which packet, when.
    pub digest: Digest,
}

/// An FNV-1a hash of 64 bits, which is the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a delivery.
    pub(crate) fn delivery(&mut self, to: u64, packet: u64, at: Time) {
        for word in [to, packet, at.as_nanos()] {
            for byte in word.to_le_bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
}
