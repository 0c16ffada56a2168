//! A link with a rate and a drop-tail buffer.

use core::time::Duration;
use std::collections::VecDeque;

use outflow_media::Time;

/// A packet on the way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet {
    pub(super) flow: usize,
    pub(super) number: u64,
    pub(super) bytes: u64,
    pub(super) sent: Time,
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// From 0 to 1, without it.
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The link that all share.
#[derive(Debug)]
pub struct Link {
    pub(super) rate_bps: u64,
    buffer: u64,
    /// Share of packets that are lost behind the queue.
    loss: f64,
    random: Random,
    queue: VecDeque<Packet>,
    queued: u64,
}

impl Link {
    /// With room for `buffer` bytes.
    pub fn new(rate_bps: u64, buffer: u64) -> Self {
        Link { rate_bps, buffer, loss: 0.0, random: Random(1), queue: VecDeque::new(), queued: 0 }
    }

    /// With room for `buffer_ms` milliseconds at its rate.
    pub fn of_ms(rate_bps: u64, buffer_ms: u64) -> Self {
        Link::new(rate_bps, (rate_bps * buffer_ms / 8000).max(3000))
    }

    /// The same, but a share of the packets is lost behind the queue.
    pub fn lossy(self, loss: f64, seed: u64) -> Self {
        Link { loss, random: Random(seed), ..self }
    }

    /// Takes a packet, or drops it. Whether it is the only one.
    pub(super) fn offer(&mut self, packet: Packet) -> bool {
        if self.queued + packet.bytes > self.buffer {
            return false;
        }
        self.queued += packet.bytes;
        self.queue.push_back(packet);
        self.queue.len() == 1
    }

    /// How long the packet at the head takes.
    pub(super) fn serving(&self) -> Option<Duration> {
        self.queue.front().map(|packet| super::super::pacer::time_of(packet.bytes, self.rate_bps))
    }

    /// The packet at the head has gone; whether it arrives.
    pub(super) fn served(&mut self) -> (Packet, bool) {
        let packet = self.queue.pop_front().expect("a packet is served");
        self.queued -= packet.bytes;
        (packet, self.random.unit() >= self.loss)
    }

    /// How long a packet would wait.
    pub(super) fn queue(&self) -> Duration {
        super::super::pacer::time_of(self.queued, self.rate_bps)
    }
}
