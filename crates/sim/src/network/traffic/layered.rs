//! Video of which each frame has all layers, as wavelet video has: packets of RTP that say what they are to routers.

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use outflow_config::BitRate;
use outflow_media::{Kind, Tag, Time};
use outflow_packet::Level;
use outflow_packet::gmc::Mark;
use outflow_rtp::PlainHeader;
use serde::Deserialize;

use super::live::HEADERS;
use super::source::{Emission, Source};
use crate::network::units::quantity;

const CLOCK_RATE: u32 = 90_000;
const PAYLOAD_TYPE: u8 = 96;

/// Frames that need no other one, all of the same size, and each layer of them, too.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayeredModel {
    /// Of each frame; level 1 has all of them.
    #[serde(default = "layers")]
    pub layers: u8,
    /// Frames a second.
    #[serde(default = "frames_per_second")]
    pub frames_per_second: u32,
    /// Of all layers together, without headers.
    #[serde(deserialize_with = "quantity")]
    pub rate: BitRate,
    /// What a packet holds at most.
    #[serde(default = "packet_bytes")]
    pub packet_bytes: usize,
}

const fn layers() -> u8 {
    33
}

const fn frames_per_second() -> u32 {
    25
}

const fn packet_bytes() -> usize {
    1200
}

impl LayeredModel {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match self {
            _ if !(2..=Level::MAX).contains(&self.layers) => Err("layers must be 2 to 128"),
            _ if !(1..=1000).contains(&self.frames_per_second) => Err("frames_per_second must be 1 to 1000"),
            _ if !(16..=1400).contains(&self.packet_bytes) => Err("packet_bytes must be 16 to 1400"),
            _ if self.layer_bytes() == 0 => Err("rate must be a byte or more for each layer of each frame"),
            _ => Ok(()),
        }
    }

    /// Bytes of a layer of a frame.
    fn layer_bytes(&self) -> usize {
        (self.rate.0 / 8 / u64::from(self.frames_per_second) / u64::from(self.layers)) as usize
    }
}

/// A flow. The packets of a frame are sent evenly over nine tenths of the time until the next one.
pub(super) struct Layered {
    model: LayeredModel,
    start: Time,
    ssrc: u32,
    frame: u32,
    sequence: u16,
    /// The packets of the frame that are to be sent, and how many it had.
    packets: VecDeque<(Tag, Bytes)>,
    count: u32,
}

impl Layered {
    pub(super) fn new(model: &LayeredModel, start: Time, mut rng: fastrand::Rng) -> Self {
        let (model, ssrc) = (model.clone(), rng.u32(..));
        Layered { model, start, ssrc, frame: 0, sequence: 0, packets: VecDeque::new(), count: 0 }
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(1) / self.model.frames_per_second
    }

    /// Makes the packets of the next frame.
    fn begin(&mut self) {
        let (bytes, most) = (self.model.layer_bytes(), self.model.packet_bytes);
        for layer in 0..self.model.layers {
            let parts = bytes.div_ceil(most);
            for part in 0..parts {
                let size = if part + 1 == parts { bytes - part * most } else { most };
                self.add(layer, (part == 0, part + 1 == parts), size);
            }
        }
        self.count = self.packets.len() as u32;
        self.frame = self.frame.wrapping_add(1);
    }

    fn add(&mut self, layer: u8, (is_first, is_last): (bool, bool), bytes: usize) {
        let layers = self.model.layers;
        let (first, is_top) = (layer == 0 && is_first, layer + 1 == layers);
        let ends = (is_last && !is_top).then_some(layer);
        let tag = Tag {
            frame: self.frame,
            kind: Kind::Intra,
            layer,
            layers,
            first,
            last: is_last && is_top,
            ends,
            opens: true,
            key: first,
            ..Tag::default()
        };
        let timestamp =
            (u64::from(self.frame) * u64::from(CLOCK_RATE) / u64::from(self.model.frames_per_second)) as u32;
        let header = PlainHeader {
            marker: tag.last,
            payload_type: PAYLOAD_TYPE,
            sequence: self.sequence,
            timestamp,
            ssrc: self.ssrc,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let mark = Mark::of(&tag, first);
        let packet = mark.and_then(|mark| mark.write(&header.emit(), &vec![0xa5; bytes]));
        self.packets.extend(packet.map(|packet| (tag, Bytes::from(packet))));
    }
}

impl Source for Layered {
    fn due(&self) -> Option<Time> {
        let left = self.packets.len() as u32;
        if left == 0 {
            return Some(self.start + self.interval() * self.frame);
        }
        let into = self.interval().mul_f64(0.9 * f64::from(self.count - left) / f64::from(self.count));
        Some(self.start + self.interval() * (self.frame - 1) + into)
    }

    fn next(&mut self) -> Option<Emission> {
        if self.packets.is_empty() {
            self.begin();
        }
        let (tag, payload) = self.packets.pop_front()?;
        Some(Emission { tag, bytes: payload.len() + HEADERS, payload: Some(payload) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_rate_is_that_of_the_model_and_its_packets_say_their_layers() {
        let model: LayeredModel = toml::from_str("rate = '8 Mbit/s'\nlayers = 4").expect("valid");
        assert_eq!(model.check(), Ok(()));
        let mut flow = Layered::new(&model, Time::ZERO, fastrand::Rng::with_seed(1));
        let (mut bytes, mut layers, mut before) = (0, Vec::new(), Time::ZERO);
        while flow.due().expect("endless") < Time::from_millis(1000) {
            let at = flow.due().expect("endless");
            assert!(at >= before);
            before = at;
            let packet = flow.next().expect("endless").payload.expect("it has one");
            bytes += packet.len() - Mark::BYTES - 12;
            layers.push(Mark::read(&packet).expect("it says it").layer);
        }
        assert_eq!((bytes, layers.len()), (1_000_000, 25 * 4 * 9));
        assert!(layers[..36].is_sorted() && layers[36] == 0);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, why) in [
            ("rate = '8 Mbit/s'\nlayers = 1", "layers"),
            ("rate = '1 kbit/s'", "rate"),
            ("rate = '1 Mbit/s'\npacket_bytes = 1401", "packet_bytes"),
            ("rate = '1 Mbit/s'\nframes_per_second = 0", "frames_per_second"),
        ] {
            let model: LayeredModel = toml::from_str(text).expect("valid");
            assert!(model.check().is_err_and(|must| must.starts_with(why)), "{text}");
        }
    }
}
