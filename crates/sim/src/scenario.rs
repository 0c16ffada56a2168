//! What is simulated, as data.

use core::ops::RangeInclusive;

use serde::Deserialize;

/// No moment lies further away, in seconds.
const SECONDS_MAX: f64 = 1e6;

/// What can be on a byte stream's way. Half of it holds the largest packet: a sender waits until
/// half is free, and can then go on.
const BUFFER_BYTES: RangeInclusive<usize> = 2 * 65_536..=1_000_000_000;

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
    /// How long a receiver may lose packets.
    pub hopeless_after: f64,
}

/// Who receives.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receivers {
    /// How many.
    pub count: usize,
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
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// It is not TOML, has unknown or missing keys, or values that make no sense.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Scenario = toml::from_str(text).map_err(|e| ScenarioError::Syntax(e.to_string()))?;
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), ScenarioError> {
        let share = |x: f64| (0.0..=1.0).contains(&x);
        let moment = |x: f64| (0.0..=SECONDS_MAX).contains(&x);
        let span = |x: f64| x > 0.0 && x <= SECONDS_MAX;
        let rules = [
            ("duration", span(self.duration), SPAN),
            ("source.frames_per_second", (1..=1000).contains(&self.source.frames_per_second), "1 to 1000"),
            ("source.gop_frames", self.source.gop_frames > 0, "at least 1"),
            ("source.size_spread", share(self.source.size_spread), "0 to 1"),
            ("source.packet_bytes", (64..=65_000).contains(&self.source.packet_bytes), "64 to 65000"),
            ("source.key_frame_bytes", self.source.key_frame_bytes <= 10_000_000, "at most 10 million"),
            ("source.frame_bytes", self.source.frame_bytes <= 10_000_000, "at most 10 million"),
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
        match rules.into_iter().find(|(_, holds, _)| !holds) {
            Some((key, _, must)) => Err(ScenarioError::Value { key, must }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FANOUT: &str = include_str!("../scenarios/fanout.toml");

    #[test]
    fn the_shipped_scenario_is_one() {
        Scenario::parse(FANOUT).expect("valid");
    }

    #[test]
    fn errors_name_the_key() {
        let unknown = FANOUT.replace("count =", "cuont =");
        let error = Scenario::parse(&unknown).expect_err("unknown key").to_string();
        assert!(error.contains("cuont"), "{error}");
        let wrong = FANOUT.replace("stalled_share = 0.1", "stalled_share = 2.0");
        let error = Scenario::parse(&wrong).expect_err("no share").to_string();
        assert!(error.contains("receivers.stalled_share must be 0 to 1"), "{error}");
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        let refused = |from: &str, to: &str| {
            assert!(FANOUT.contains(from), "{from}");
            Scenario::parse(&FANOUT.replace(from, to)).expect_err(to);
        };
        refused("duration = 20.0", "duration = nan");
        refused("hopeless_after = 5.0", "hopeless_after = inf");
        refused("join_spread = 2.0", "join_spread = inf");
        refused("stall_at = 6.0", "stall_at = -1.0");
        // Less than half of it would be too small for a packet, and the sender would wait for ever.
        refused("buffer_bytes = 250000", "buffer_bytes = 65535");
        refused("buffer_bytes = 250000", "buffer_bytes = 3000000000");
    }
}
