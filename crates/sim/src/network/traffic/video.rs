//! The paper's Video: a repeating group of I, P and B frames at a fixed frame rate, their sizes at random.

use core::time::Duration;
use std::sync::{Arc, OnceLock};

use outflow_media::{Kind, Needs, Tag, Time};
use serde::{Deserialize, Deserializer};

use super::packet_size::PacketSize;
use super::source::{Emission, Source};
use crate::network::units::named;

/// Coded video (ABD, section 2.2 and Table 1).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoModel {
    /// Frames a second.
    #[serde(default = "frames_per_second")]
    pub frames_per_second: u32,
    /// Kinds of frames in a group, as "IBBPBBPBB".
    #[serde(default = "group")]
    pub group: String,
    /// How large packets are at most.
    #[serde(default = "packet_bytes")]
    pub packet_bytes: PacketSize,
    /// When the packets of a frame are sent.
    #[serde(default)]
    pub offering: Offering,
    /// How sizes are drawn.
    #[serde(default)]
    pub sizes: Sizes,
    /// A P frame needs the I or P before it, as coded video does; not the I of its group, as in the paper.
    #[serde(default)]
    pub chained: bool,
    /// What all of its flows share.
    #[serde(skip)]
    frames: OnceLock<Frames>,
}

/// By place in the group: how large frames are, and what they mean.
type Frames = Arc<[(Draw, Tag)]>;

/// When the packets of a frame are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offering {
    /// Evenly over the time until the next frame.
    #[default]
    Paced,
    /// At once.
    Burst,
}

/// How an exponential distribution is truncated (ABD, Table 1, does not say).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sizes {
    /// So that the mean between the limits is the one given.
    #[default]
    MeanFitted,
    /// What lies outside becomes the limit.
    Clamp,
    /// What lies outside is drawn again.
    Resample,
}

impl<'de> Deserialize<'de> for Offering {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        named(given, &[Offering::Paced, Offering::Burst], |one| match one {
            Offering::Paced => "paced",
            Offering::Burst => "burst",
        })
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        named(given, &[Sizes::MeanFitted, Sizes::Clamp, Sizes::Resample], |one| match one {
            Sizes::MeanFitted => "mean-fitted",
            Sizes::Clamp => "clamp",
            Sizes::Resample => "resample",
        })
    }
}

fn frames_per_second() -> u32 {
    30
}

fn group() -> String {
    "IBBPBBPBB".to_owned()
}

fn packet_bytes() -> PacketSize {
    PacketSize::Bytes(576)
}

/// Sizes of a kind of frame, in bytes: the least, the mean, the most (Table 1).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Distribution {
    least: f64,
    mean: f64,
    most: f64,
    exponential: bool,
}

const INTRA: Distribution =
    Distribution { least: 15_000.0, mean: 16_000.0, most: 17_000.0, exponential: false };
const PREDICTED: Distribution =
    Distribution { least: 512.0, mean: 1_900.0, most: 17_000.0, exponential: true };
const BIDIRECTIONAL: Distribution =
    Distribution { least: 128.0, mean: 500.0, most: 17_000.0, exponential: true };

impl Distribution {
    /// How fast the density falls so that its mean between the limits is the one given: found by halving.
    fn fitted_scale(&self) -> f64 {
        let (mut low, mut high) = (1.0, self.most);
        for _ in 0..100 {
            let scale = f64::midpoint(low, high);
            let width = self.most - self.least;
            let mean = self.least + scale - width / ((width / scale).exp() - 1.0);
            if mean < self.mean { low = scale } else { high = scale }
        }
        f64::midpoint(low, high)
    }
}

/// Draws sizes of a kind of frame.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Draw {
    distribution: Distribution,
    sizes: Sizes,
    scale: f64,
}

impl Draw {
    fn new(distribution: Distribution, sizes: Sizes) -> Self {
        let fits = distribution.exponential && sizes == Sizes::MeanFitted;
        let scale = if fits { distribution.fitted_scale() } else { distribution.mean };
        Draw { distribution, sizes, scale }
    }

    fn size(&self, rng: &mut fastrand::Rng) -> usize {
        let Distribution { least, most, exponential, .. } = self.distribution;
        if !exponential {
            return (least + (most - least) * rng.f64()).round() as usize;
        }
        let mut exponential = || -self.scale * (1.0 - rng.f64()).ln();
        let size = match self.sizes {
            Sizes::Clamp => exponential().clamp(least, most),
            Sizes::Resample => loop {
                let size = exponential();
                if (least..=most).contains(&size) {
                    break size;
                }
            },
            Sizes::MeanFitted => {
                let share = 1.0 - (-(most - least) / self.scale).exp();
                least - self.scale * (1.0 - rng.f64() * share).ln()
            }
        };
        size.round() as usize
    }

    /// The mean of what it draws.
    fn mean(&self) -> f64 {
        let Distribution { least, mean, most, exponential } = self.distribution;
        let beyond = |size: f64| (-size / mean).exp();
        match self.sizes {
            _ if !exponential => mean,
            Sizes::MeanFitted => mean,
            Sizes::Clamp => least + mean * (beyond(least) - beyond(most)),
            Sizes::Resample => {
                let width = most - least;
                least + mean - width / ((width / mean).exp() - 1.0)
            }
        }
    }
}

impl VideoModel {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let is_of_frames = self.group.bytes().all(|kind| b"IPB".contains(&kind));
        match self {
            _ if !(1..=1000).contains(&self.frames_per_second) => Err("frames_per_second must be 1 to 1000"),
            _ if !is_of_frames || !self.group.starts_with('I') => {
                Err("group must begin with I, and consist of I, P and B")
            }
            // Needs reach back no further.
            _ if self.group.len() > 32 => Err("group must have at most 32 frames"),
            _ => Ok(()),
        }
    }

    pub(super) fn mean_bps(&self) -> f64 {
        let mean = |kind: u8| draw(kind, self.sizes).mean();
        let bytes: f64 = self.group.bytes().map(mean).sum();
        bytes / self.group.len() as f64 * f64::from(self.frames_per_second) * 8.0
    }
}

fn draw(kind: u8, sizes: Sizes) -> Draw {
    let distribution = match kind {
        b'I' => INTRA,
        b'P' => PREDICTED,
        _ => BIDIRECTIONAL,
    };
    Draw::new(distribution, sizes)
}

/// A flow.
#[derive(Debug)]
pub(super) struct Video {
    frames: Frames,
    interval_ns: u64,
    packet_bytes: PacketSize,
    offering: Offering,
    start: Time,
    frame: u32,
    /// What is left of the frame: bytes, and packets sent and to send.
    left: usize,
    sent: u64,
    count: u64,
    rng: fastrand::Rng,
}

impl Video {
    pub(super) fn new(model: &VideoModel, start: Time, rng: fastrand::Rng) -> Self {
        let frames = || {
            let kinds = model.group.bytes().enumerate();
            kinds.map(|(at, kind)| (draw(kind, model.sizes), tag(model, at, kind))).collect()
        };
        Video {
            frames: Arc::clone(model.frames.get_or_init(frames)),
            interval_ns: 1_000_000_000 / u64::from(model.frames_per_second),
            packet_bytes: model.packet_bytes,
            offering: model.offering,
            start,
            frame: u32::MAX,
            left: 0,
            sent: 0,
            count: 0,
            rng,
        }
    }

    fn begin(&mut self) {
        self.frame = self.frame.wrapping_add(1);
        let (draw, _) = self.frames[self.frame as usize % self.frames.len()];
        self.left = draw.size(&mut self.rng).max(1);
        self.sent = 0;
        self.count = match self.packet_bytes {
            PacketSize::Bytes(most) => self.left.div_ceil(most) as u64,
            PacketSize::Frame => 1,
        };
    }
}

impl Source for Video {
    fn due(&self) -> Option<Time> {
        let (frame, into) = match self.offering {
            _ if self.left == 0 => (self.frame.wrapping_add(1), 0),
            Offering::Paced => (self.frame, self.interval_ns * self.sent / self.count),
            Offering::Burst => (self.frame, 0),
        };
        Some(self.start + Duration::from_nanos(u64::from(frame) * self.interval_ns + into))
    }

    fn next(&mut self) -> Option<Emission> {
        if self.left == 0 {
            self.begin();
        }
        let (_, tag) = self.frames[self.frame as usize % self.frames.len()];
        let bytes = match self.packet_bytes {
            PacketSize::Bytes(most) => most.min(self.left),
            PacketSize::Frame => self.left,
        };
        self.left -= bytes;
        self.sent += 1;
        let (first, last) = (self.sent == 1, self.left == 0);
        Some(Emission { tag: Tag { frame: self.frame, first, last, ..tag }, bytes, payload: None })
    }
}

/// What the packets of the frame at a place of the group mean.
fn tag(model: &VideoModel, at: usize, kind: u8) -> Tag {
    let before = |kinds: &[u8]| {
        let found = model.group.as_bytes()[..at].iter().rposition(|kind| kinds.contains(kind));
        found.map_or(Needs::NOTHING, |found| Needs::back((at - found) as u32))
    };
    let (kind, needs) = match kind {
        b'I' => (Kind::Intra, Needs::NOTHING),
        b'P' if model.chained => (Kind::Predicted, before(b"IP")),
        b'P' => (Kind::Predicted, before(b"I")),
        _ => (Kind::Bidirectional, before(b"IP")),
    };
    Tag { kind, needs, key: kind == Kind::Intra, ..Tag::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(text: &str) -> VideoModel {
        toml::from_str(text).expect("valid")
    }

    #[test]
    fn its_mean_is_that_of_table_1_if_it_is_fitted() {
        for (sizes, expected) in [("mean-fitted", 608_000.0), ("clamp", 613_800.0), ("resample", 655_800.0)] {
            let model = model(&format!("sizes = '{sizes}'"));
            let mut flow = Video::new(&model, Time::ZERO, fastrand::Rng::with_seed(7));
            let (mut bytes, mut at) = (0, Time::ZERO);
            for _ in 0..400_000 {
                at = flow.due().expect("endless");
                bytes += flow.next().expect("endless").bytes;
            }
            let bps = bytes as f64 * 8e9 / at.as_nanos() as f64;
            assert!((bps / model.mean_bps() - 1.0).abs() < 0.01, "{sizes}: {bps} of {}", model.mean_bps());
            assert!((bps / expected - 1.0).abs() < 0.02, "{sizes}: {bps}");
        }
    }

    #[test]
    fn packets_are_paced_or_come_at_once_and_say_what_they_need() {
        let mut paced = Video::new(&model(""), Time::from_millis(5), fastrand::Rng::with_seed(1));
        let mut burst = Video::new(&model("offering = 'burst'"), Time::ZERO, fastrand::Rng::with_seed(1));
        let mut whole = Video::new(&model("packet_bytes = 'frame'"), Time::ZERO, fastrand::Rng::with_seed(1));
        let frame = |flow: &mut Video| {
            let mut packets: Vec<(Time, Emission)> = Vec::new();
            while packets.last().is_none_or(|(_, packet)| !packet.tag.last) {
                packets.push((flow.due().expect("endless"), flow.next().expect("endless")));
            }
            packets
        };
        let needs: Vec<Vec<u32>> =
            (0..9).map(|_| frame(&mut whole)[0].1.tag.needs.distances().collect()).collect();
        assert_eq!(needs, [vec![], vec![1], vec![2], vec![3], vec![1], vec![2], vec![6], vec![1], vec![2]]);
        let (one, other) = (frame(&mut paced), frame(&mut burst));
        assert_eq!(one.len(), other.len());
        assert!((27..=30).contains(&one.len()) && one.iter().all(|(_, packet)| packet.bytes <= 576));
        assert!(other.iter().all(|(at, _)| *at == Time::ZERO));
        assert_eq!(one[0].0, Time::from_millis(5));
        let last = one[one.len() - 1].0.since(one[0].0).as_secs_f64();
        assert!((0.031..0.0334).contains(&last), "{last}");
        assert!(one[0].1.tag.first && one[0].1.tag.key && !one[1].1.tag.first);
    }
}
