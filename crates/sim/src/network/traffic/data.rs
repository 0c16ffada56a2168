//! The paper's Data: packets of one size, exponential times between them, nothing known of what they mean.

use core::time::Duration;

use outflow_config::BitRate;
use outflow_media::{Kind, Tag, Time};
use serde::Deserialize;

use super::source::{Emission, Source};
use crate::network::quantity;

/// Packets at random (ABD, section 2.2).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataModel {
    /// The size of all packets.
    #[serde(default = "packet_bytes")]
    pub packet_bytes: usize,
    /// Mean rate of a flow.
    #[serde(default = "rate", deserialize_with = "quantity")]
    pub rate: BitRate,
}

fn packet_bytes() -> usize {
    576
}

/// As much as a flow of Video.
fn rate() -> BitRate {
    BitRate(608_000)
}

impl DataModel {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match self {
            _ if !(1..=65_535).contains(&self.packet_bytes) => Err("packet_bytes must be 1 to 65535"),
            _ if self.rate.0 == 0 => Err("rate must be above 0"),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
pub(super) struct Data {
    bytes: usize,
    mean_s: f64,
    at: Time,
    frame: u32,
    rng: fastrand::Rng,
}

impl Data {
    pub(super) fn new(model: &DataModel, start: Time, rng: fastrand::Rng) -> Self {
        let mean_s = model.packet_bytes as f64 * 8.0 / model.rate.0 as f64;
        let mut data = Data { bytes: model.packet_bytes, mean_s, at: start, frame: 0, rng };
        data.wait();
        data
    }

    fn wait(&mut self) {
        self.at = self.at + Duration::from_secs_f64(-self.mean_s * (1.0 - self.rng.f64()).ln());
    }
}

impl Source for Data {
    fn due(&self) -> Option<Time> {
        Some(self.at)
    }

    fn next(&mut self) -> Option<Emission> {
        self.wait();
        self.frame = self.frame.wrapping_add(1);
        let tag = Tag { frame: self.frame, kind: Kind::Data, first: true, last: true, ..Tag::default() };
        Some(Emission { tag, bytes: self.bytes, payload: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_its_rate_and_comes_at_random() {
        let model = DataModel { packet_bytes: 576, rate: BitRate(608_000) };
        let mut flow = Data::new(&model, Time::ZERO, fastrand::Rng::with_seed(1));
        let times: Vec<f64> = (0..50_000)
            .map(|_| flow.next().and(flow.due()).expect("endless").as_nanos() as f64 / 1e9)
            .collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean * 608_000.0 / (576.0 * 8.0) - 1.0).abs() < 0.02, "{mean}");
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "exponential");
    }
}
