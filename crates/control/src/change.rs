//! Changes of the configuration while the relay runs; they are carried out one after the other.

use std::time::Duration;

use outflow_config::{BitRate, Branches, ByteSize, Elements, Share, SourceUrl, StreamConfig, Weight};
use outflow_engine::message::{ControlError, Reply};

/// Limits of a stream to be changed; what is `None` stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamLimits {
    /// How many bytes are kept for receivers that lag.
    pub ring: Option<ByteSize>,
    /// A receiver that loses packets for that long without ever catching up is disconnected.
    pub hopeless_after: Option<Duration>,
    /// A source that is silent for that long is announced as away.
    pub source_timeout: Option<Duration>,
    /// How many receivers the stream may have.
    pub max_receivers: Option<usize>,
    /// What it weighs among streams.
    pub weight: Option<Weight>,
    /// The part of a worker's time that is kept for it, or that none is.
    pub reserve: Option<Option<Share>>,
    /// The rate that its receivers reserve of their links, or that none is said.
    pub reserve_rate: Option<Option<BitRate>>,
}

/// What is to be changed.
#[derive(Debug)]
pub(crate) enum ConfigChange {
    /// Whatever the file says differently now, even if that is nothing.
    Reload { allow_empty: bool },
    /// Limits of one stream.
    Limits { stream: String, limits: StreamLimits },
    /// A stream that is not configured is there from now on, as other relays have it.
    Adopt { stream: String, source: SourceUrl },
    /// Such a stream is not to be there any more, unless it has receivers.
    Abandon { stream: String },
    /// Another process is to go on with the relay.
    Upgrade,
    /// Services of one stream.
    Services { stream: String, elements: Elements, branches: Branches },
}

/// A change, and where its outcome goes.
#[derive(Debug)]
pub(crate) struct ConfigRequest {
    pub(crate) change: ConfigChange,
    pub(crate) reply: Reply<Changed>,
}

/// What a change of the configuration did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changed {
    /// A line for each thing that changed, and for each that needs a restart.
    pub lines: Vec<String>,
    /// A line for each thing that could not be made: it is as it was, and is tried again.
    pub failed: Vec<String>,
    /// How long packets waited for other services of their stream, the longest of all streams; `None`
    /// if none were put in place.
    pub waited: Option<Duration>,
}

impl StreamLimits {
    /// `config` with these limits.
    ///
    /// # Errors
    /// The first one that is not possible.
    pub(crate) fn applied_to(&self, config: &StreamConfig) -> Result<StreamConfig, ControlError> {
        let changed = StreamConfig {
            ring: self.ring.unwrap_or(config.ring),
            hopeless_after: self.hopeless_after.unwrap_or(config.hopeless_after),
            source_timeout: self.source_timeout.unwrap_or(config.source_timeout),
            max_receivers: self.max_receivers.unwrap_or(config.max_receivers),
            weight: self.weight.unwrap_or(config.weight),
            reserve: self.reserve.unwrap_or(config.reserve),
            reserve_rate: self.reserve_rate.unwrap_or(config.reserve_rate),
            ..config.clone()
        };
        match changed.out_of_range().into_iter().next() {
            Some((key, invalid)) => Err(ControlError::Configuration(format!("{key}: {invalid}"))),
            None => Ok(changed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_given_changes() {
        let config = StreamConfig::default();
        let limits = StreamLimits { max_receivers: Some(7), ..StreamLimits::default() };
        let changed = limits.applied_to(&config).expect("possible");
        assert_eq!(changed, StreamConfig { max_receivers: 7, ..config });
    }

    #[test]
    fn impossible_limits_are_refused_by_name() {
        let limits = StreamLimits { ring: Some(ByteSize(1)), ..StreamLimits::default() };
        let error = limits.applied_to(&StreamConfig::default()).expect_err("too small").to_string();
        assert!(error.starts_with("ring: 1 B is too little"), "{error}");
    }
}
