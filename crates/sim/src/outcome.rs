//! What came of a run.

use core::time::Duration;
use std::collections::BTreeMap;

use outflow_media::Time;

/// The result of a run. Equal for equal scenarios, bit for bit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Packets that the source sent.
    pub source_packets: u64,
    /// Deliveries to all receivers.
    pub delivered: u64,
    /// Packets that healthy receivers did not get, though they were there.
    pub healthy_lost: u64,
    /// Packets that all others did not get.
    pub others_lost: u64,
    /// Receivers that were let go.
    pub ended: u64,
    /// Frames that healthy receivers were to see and saw, and when.
    pub healthy: Viewing,
    /// The same of receivers that are slow or pause; those of stalled ones are not counted.
    pub lagging: Viewing,
    /// The largest number of bytes that the ring held.
    pub ring_bytes_most: usize,
    /// The largest delay of a delivery to a healthy receiver that had caught up, in nanoseconds.
    pub healthy_delay_most_ns: u64,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Covers every delivery: which receiver, which packet, when.
    pub digest: Digest,
    /// Covers the bytes of every packet, as the first receiver got it.
    pub content: Digest,
    /// What went through the elements of the relay's services, by name.
    pub elements: BTreeMap<String, Passed>,
}

/// What went through an element.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Passed {
    /// Packets that came in.
    pub packets_in: u64,
    /// Packets that went out.
    pub packets_out: u64,
    /// How often something went wrong.
    pub faults: u64,
    /// What went wrong last.
    pub fault: Option<String>,
}

/// What receivers of a kind could show of the stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Viewing {
    /// Receivers that got anything.
    pub receivers: u64,
    /// Frames from each receiver's first to the end of the run.
    pub frames: u64,
    /// Those of them that it got whole, and all that they depend on.
    pub decodable: u64,
    /// From a packet's arrival at the relay until it is through the receiver's path; of packets that
    /// came after the receiver had joined, and not while it paused.
    pub delays: Delays,
}

impl Viewing {
    /// Takes in what receivers of another run could show.
    pub fn merge(&mut self, other: &Viewing) {
        self.receivers += other.receivers;
        self.frames += other.frames;
        self.decodable += other.decodable;
        self.delays.merge(&other.delays);
    }

    /// The share of the frames that could be decoded; 1 if there were none.
    pub fn goodput(&self) -> f64 {
        if self.frames == 0 { 1.0 } else { self.decodable as f64 / self.frames as f64 }
    }
}

/// A histogram of delays, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delays(Vec<u64>);

impl Delays {
    fn merge(&mut self, other: &Delays) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    pub(crate) fn add(&mut self, delay: Duration) {
        let ms = delay.as_millis() as usize;
        self.0.resize(self.0.len().max(ms + 1), 0);
        self.0[ms] += 1;
    }

    /// The delay that a share `quantile` of the packets does not exceed, rounded up to the
    /// millisecond; 0 without packets.
    pub fn quantile_ms(&self, quantile: f64) -> u64 {
        let rank = (self.0.iter().sum::<u64>() as f64 * quantile).ceil() as u64;
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            seen >= rank.max(1)
        };
        self.0.iter().position(reached).map_or(0, |ms| ms as u64 + 1)
    }
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
            self.bytes(&word.to_le_bytes());
        }
    }

    /// Adds a number, all of its bytes at once.
    pub(crate) fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }

    /// Adds bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_rounded_up_to_the_millisecond() {
        let mut delays = Delays::default();
        assert_eq!(delays.quantile_ms(0.99), 0);
        for us in [100, 200, 1_500, 9_999] {
            delays.add(Duration::from_micros(us));
        }
        let quantiles = [0.0, 0.5, 0.75, 1.0].map(|quantile| delays.quantile_ms(quantile));
        assert_eq!(quantiles, [1, 1, 2, 10]);
    }
}
