//! What is simulated, as data.

use core::ops::RangeInclusive;

use outflow_config::ConfigErrors;
use outflow_graph::{Content, Contents, Plan, Unfit};
use outflow_relay::WhenFull;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};

/// No moment lies further away, in seconds.
const SECONDS_MAX: f64 = 1e6;

/// What can be on a byte stream's way. Half of it holds the largest packet: a sender waits until
/// half is free, and can then go on.
const BUFFER_BYTES: RangeInclusive<usize> = 2 * 65_536..=1_000_000_000;

/// Of an RTP packet without extensions (RFC 3550, section 5.1).
const RTP_HEADER_BYTES: f64 = 12.0;

const MOMENT: &str = "0 to a million seconds";
const SPAN: &str = "above 0, and at most a million seconds";

/// A scenario. All times are in seconds, all sizes in bytes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// All chance comes from it.
    pub seed: u64,
    /// How long it runs.
    pub duration: f64,
    /// The live source.
    pub source: SourceModel,
    /// The relay.
    pub relay: RelayModel,
    /// The receivers.
    pub receivers: Receivers,
}

/// A source of H.264 in RTP (RFC 6184).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceModel {
    /// Frames a second.
    pub frames_per_second: u32,
    /// Frames from one key frame to the next.
    pub gop_frames: u32,
    /// Mean size of a key frame.
    pub key_frame_bytes: usize,
    /// Mean size of the others.
    pub frame_bytes: usize,
    /// Sizes vary by so much of themselves, evenly.
    pub size_spread: f64,
    /// Payload of a packet.
    pub packet_bytes: usize,
}

/// The relay's options.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayModel {
    /// Size of the ring.
    pub ring_bytes: usize,
    /// What the ring does when it is full: a policy's name.
    #[serde(default = "slowest_sink", deserialize_with = "policy")]
    pub when_full: WhenFull,
    /// How long a receiver may lose packets.
    pub hopeless_after: f64,
    /// Its services: `[relay.elements.NAME]` and `[relay.branches.NAME]`, as in a configuration.
    #[serde(skip)]
    pub services: Plan,
    /// Read by `outflow_config`.
    #[serde(default)]
    elements: IgnoredAny,
    #[serde(default)]
    branches: IgnoredAny,
}

/// The receivers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receivers {
    /// How many.
    pub count: usize,
    /// The branch that they join; the stream as it comes in if none is named.
    pub branch: Option<String>,
    /// Share of those that get datagrams; the others are byte streams.
    pub datagram_share: f64,
    /// They join evenly over so long.
    pub join_spread: f64,
    /// Rate of a byte stream's path.
    pub link_bps: u64,
    /// What can be on a byte stream's way.
    pub buffer_bytes: usize,
    /// Share of the byte streams that stop reading.
    pub stalled_share: f64,
    /// When they do.
    pub stall_at: f64,
    /// Byte streams that are slower than the stream.
    pub slow: Option<Slow>,
    /// Byte streams that stop reading now and then.
    pub pausing: Option<Pausing>,
}

/// Receivers whose paths are slower than the stream.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slow {
    /// Share of the byte streams.
    pub share: f64,
    /// The slowest path, as a share of the stream's mean rate.
    pub rate_from: f64,
    /// The fastest of them; they lie evenly between.
    pub rate_to: f64,
}

/// Receivers that stop reading now and then. Times lie evenly between nothing and twice their mean.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pausing {
    /// Share of the byte streams.
    pub share: f64,
    /// Mean time that they read.
    pub every: f64,
    /// Mean time that they then do not.
    pub lasting: f64,
}

/// A scenario that cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// It is not TOML of the right shape.
    #[error("the scenario cannot be read: {0}")]
    Syntax(String),
    /// A value makes no sense.
    #[error("{key} must be {must}: correct it in the scenario")]
    Value {
        /// The value's name.
        key: &'static str,
        /// What it must be.
        must: &'static str,
    },
    /// Its services are wrong, or do not fit.
    #[error("{0}")]
    Services(#[from] ConfigErrors),
    /// An element cannot be made.
    #[error("element '{0}': {1}")]
    Element(String, Unfit),
    /// Nothing comes out of a branch, or there is none of that name.
    #[error("branch '{0}': {1}")]
    Branch(String, Unfit),
}

impl SourceModel {
    pub(crate) fn rules(&self) -> [Rule; 6] {
        [
            ("source.frames_per_second", (1..=1000).contains(&self.frames_per_second), "1 to 1000"),
            ("source.gop_frames", self.gop_frames > 0, "at least 1"),
            ("source.size_spread", share(self.size_spread), "0 to 1"),
            ("source.packet_bytes", (64..=65_000).contains(&self.packet_bytes), "64 to 65000"),
            ("source.key_frame_bytes", self.key_frame_bytes <= 10_000_000, "at most 10 million"),
            ("source.frame_bytes", self.frame_bytes <= 10_000_000, "at most 10 million"),
        ]
    }

    /// Mean bits a second, RTP headers included.
    pub fn mean_bps(&self) -> f64 {
        let frames = f64::from(self.gop_frames);
        let bytes = self.key_frame_bytes as f64 + (frames - 1.0) * self.frame_bytes as f64;
        let headers = 1.0 + RTP_HEADER_BYTES / self.packet_bytes as f64;
        bytes / frames * headers * f64::from(self.frames_per_second) * 8.0
    }
}

fn slowest_sink() -> WhenFull {
    WhenFull::SlowestSink
}

fn policy<'de, D: Deserializer<'de>>(given: D) -> Result<WhenFull, D::Error> {
    let name = String::deserialize(given)?;
    WhenFull::from_name(&name).ok_or_else(|| {
        let names: Vec<_> = WhenFull::ALL.iter().map(|policy| policy.as_str()).collect();
        D::Error::custom(format!("no policy is named '{name}': write one of {}", names.join(", ")))
    })
}

fn share(x: f64) -> bool {
    (0.0..=1.0).contains(&x)
}

fn span(x: f64) -> bool {
    x > 0.0 && x <= SECONDS_MAX
}

/// A value's name, whether it makes sense, and what it must be.
pub(crate) type Rule = (&'static str, bool, &'static str);

impl Slow {
    fn rules(&self) -> [Rule; 3] {
        let (from, to) = (self.rate_from, self.rate_to);
        [
            ("receivers.slow.share", share(self.share), "0 to 1"),
            ("receivers.slow.rate_from", from > 0.0 && from <= to, "above 0, and at most rate_to"),
            ("receivers.slow.rate_to", to > 0.0 && to <= 100.0, "above 0, and at most 100"),
        ]
    }
}

impl Pausing {
    fn rules(&self) -> [Rule; 3] {
        [
            ("receivers.pausing.share", share(self.share), "0 to 1"),
            ("receivers.pausing.every", span(self.every), SPAN),
            ("receivers.pausing.lasting", span(self.lasting), SPAN),
        ]
    }
}

impl Scenario {
    /// Reads a scenario. Files of its elements are made relative to the folder of `file_name`, which is
    /// otherwise only used in messages.
    ///
    /// # Errors
    /// It is not TOML, has unknown or missing keys, values that make no sense, or services that do not
    /// fit.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, ScenarioError> {
        let mut scenario: Scenario =
            toml::from_str(text).map_err(|e| ScenarioError::Syntax(e.to_string()))?;
        scenario.check()?;
        let worlds = Contents::of(&[Content::H264]);
        scenario.relay.services = outflow_config::plan(text, file_name, "relay", worlds)?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), ScenarioError> {
        let moment = |x: f64| (0.0..=SECONDS_MAX).contains(&x);
        let rules = [
            ("duration", span(self.duration), SPAN),
            ("relay.hopeless_after", span(self.relay.hopeless_after), SPAN),
            ("receivers.count", self.receivers.count <= 10_000_000, "at most 10 million"),
            ("receivers.datagram_share", share(self.receivers.datagram_share), "0 to 1"),
            ("receivers.stalled_share", share(self.receivers.stalled_share), "0 to 1"),
            ("receivers.join_spread", moment(self.receivers.join_spread), MOMENT),
            ("receivers.link_bps", self.receivers.link_bps > 0, "above 0"),
            (
                "receivers.buffer_bytes",
                BUFFER_BYTES.contains(&self.receivers.buffer_bytes),
                "128 KiB to 1 GB",
            ),
            ("receivers.stall_at", moment(self.receivers.stall_at), MOMENT),
        ];
        let at_times = self.receivers.slow.iter().flat_map(Slow::rules);
        let at_times = at_times.chain(self.receivers.pausing.iter().flat_map(Pausing::rules));
        let shares = [self.receivers.stalled_share]
            .into_iter()
            .chain(self.receivers.slow.iter().map(|slow| slow.share))
            .chain(self.receivers.pausing.iter().map(|pausing| pausing.share));
        let together =
            ("receivers.stalled_share", share(shares.sum()), "at most 1 together with slow and pausing");
        let rules = rules.into_iter().chain(self.source.rules());
        match rules.chain(at_times).chain([together]).find(|(_, holds, _)| !holds) {
            Some((key, _, must)) => Err(ScenarioError::Value { key, must }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FANOUT: &str = include_str!("../scenarios/fanout.toml");
    const POLICIES: &str = include_str!("../scenarios/policies.toml");

    fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        Scenario::parse(text, "scenario.toml")
    }

    #[test]
    fn the_shipped_scenarios_are_some() {
        parse(FANOUT).expect("valid");
        let policies = parse(POLICIES).expect("valid");
        assert!((3.5e6..3.6e6).contains(&policies.source.mean_bps()), "{}", policies.source.mean_bps());
    }

    #[test]
    fn errors_name_the_key() {
        let unknown = FANOUT.replace("count =", "cuont =");
        let error = parse(&unknown).expect_err("unknown key").to_string();
        assert!(error.contains("cuont"), "{error}");
        let wrong = FANOUT.replace("stalled_share = 0.1", "stalled_share = 2.0");
        let error = parse(&wrong).expect_err("no share").to_string();
        assert!(error.contains("receivers.stalled_share must be 0 to 1"), "{error}");
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        let both = [FANOUT, POLICIES].concat();
        let refused = |from: &str, to: &str| {
            assert!(both.contains(from), "{from}");
            for text in [FANOUT, POLICIES].iter().filter(|text| text.contains(from)) {
                parse(&text.replace(from, to)).expect_err(to);
            }
        };
        refused("share = 0.05", "share = 1.1");
        refused("when_full = \"slowest-sink\"", "when_full = \"head\"");
        refused("rate_from = 0.5", "rate_from = 0.0");
        refused("rate_from = 0.5", "rate_from = 0.95");
        refused("lasting = 2.0", "lasting = -1.0");
        refused("stalled_share = 0.0", "stalled_share = 0.99");
        refused("duration = 20.0", "duration = nan");
        refused("hopeless_after = 5.0", "hopeless_after = inf");
        refused("join_spread = 2.0", "join_spread = inf");
        refused("stall_at = 6.0", "stall_at = -1.0");
        // Less than half of it would be too small for a packet, and the sender would wait for ever.
        refused("buffer_bytes = 250000", "buffer_bytes = 65535");
        refused("buffer_bytes = 250000", "buffer_bytes = 3000000000");
    }
}
