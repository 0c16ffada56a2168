//! The video of the experiment, coded and in packets.

use anyhow::Result;
use outflow_labs::programs::clip;
use outflow_labs::wavelet::{coded, pictures};
use outflow_wavelet::rtp::{CLOCK_RATE, PACKET_BYTES, Packetizer};
use outflow_wavelet::{Codestream, Picture};

/// Pictures a second.
pub(crate) const RATE: usize = 15;
/// Frames before the first that counts: meanwhile the client joins.
pub(crate) const LEAD: usize = 2 * RATE;
/// The scene changes after this many pictures: 18 seconds.
const SCENE: usize = LEAD + 18 * RATE;
/// Between the timestamps of two frames.
pub(crate) const TICKS: u32 = CLOCK_RATE / RATE as u32;
const SSRC: u32 = 0x0a0a_0a0a;

/// Pictures and what is sent of them.
pub(crate) struct Video {
    pub(crate) pictures: Vec<Picture>,
    pub(crate) frames: Vec<Codestream>,
    /// Of each frame.
    pub(crate) packets: Vec<Vec<Vec<u8>>>,
}

impl Video {
    /// `count` pictures, those before the first that counts included.
    pub(crate) fn new(count: usize) -> Result<Self> {
        let scaled = format!("fps={RATE},scale=352:288");
        let first = format!("-stream_loop -1 -i {} -vf {scaled}", clip().display());
        let mut all = pictures(&first, count.min(SCENE))?;
        if count > SCENE {
            let second = format!("-f lavfi -i mandelbrot=size=352x288:rate={RATE}");
            all.extend(pictures(&second, count - SCENE)?);
        }
        let frames = coded(&all)?;
        let mut packetizer = Packetizer::new(SSRC, 1, PACKET_BYTES);
        let mut packets = Vec::with_capacity(count);
        for (number, frame) in frames.iter().enumerate() {
            let mut of_frame = Vec::new();
            packetizer.packets(frame, number as u32 * TICKS, |packet| of_frame.push(packet.to_vec()))?;
            packets.push(of_frame);
        }
        Ok(Video { pictures: all, frames, packets })
    }

    /// Bytes a second of a level as they go over the link: with RTP, UDP, IP and Ethernet.
    pub(crate) fn rate_of(&self, level: usize) -> f64 {
        const HEADERS: usize = 42;
        let layers = self.frames[0].layers() + 1 - level;
        let of_packets: usize = self.packets.iter().flatten().map(|packet| packet.len() + HEADERS).sum();
        let all: usize = self.frames.iter().map(|frame| frame.length(frame.layers())).sum();
        let part: usize = self.frames.iter().map(|frame| frame.length(layers)).sum();
        // The overhead of packets is taken to be the same at every level.
        (part as f64 * of_packets as f64 / all as f64) * RATE as f64 / self.frames.len() as f64
    }
}
