//! Publishers' turns at a stream: which one has it, when another one may take it over, and when it is over.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outflow_config::{StreamConfig, Takeover};
use outflow_door::Grant;
use outflow_engine::message::{CloseReason, LastMedia, SourceId};
use outflow_media::Time;
use serde::Serialize;

/// What a stream says of its publishers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnRules {
    takeover: Takeover,
    /// Silence that makes a source count as away.
    source_timeout: Duration,
    pub(crate) publish_timeout: Duration,
}

impl From<&StreamConfig> for TurnRules {
    fn from(config: &StreamConfig) -> Self {
        TurnRules {
            takeover: config.takeover,
            source_timeout: config.source_timeout,
            publish_timeout: config.publish_timeout,
        }
    }
}

/// A turn, as it is written down.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) source: SourceId,
    /// For people.
    pub(crate) peer: String,
    /// What it was let in for, if it is a peer.
    pub(crate) grant: Option<Grant>,
    begun: Time,
    media: LastMedia,
    ended: Arc<OnceLock<CloseReason>>,
}

impl Turn {
    /// One that begins now.
    pub(crate) fn new(source: SourceId, peer: &str, begun: Time) -> Self {
        Turn {
            source,
            peer: peer.to_owned(),
            grant: None,
            begun,
            media: LastMedia::default(),
            ended: Arc::new(OnceLock::new()),
        }
    }

    /// When it began.
    pub(crate) fn begun(&self) -> Time {
        self.begun
    }

    /// The same of a peer that was let in for it.
    pub(crate) fn of(self, grant: Option<&Grant>) -> Self {
        Turn { grant: grant.cloned(), ..self }
    }

    /// The same, for which that media counts as its own, too.
    pub(crate) fn heard_by(self, media: Option<LastMedia>) -> Self {
        Turn { media: media.unwrap_or(self.media), ..self }
    }

    /// Where its worker says that media has come.
    pub(crate) fn media(&self) -> LastMedia {
        self.media.clone()
    }

    /// Why it is over, once it is.
    pub(crate) fn ended(&self) -> Arc<OnceLock<CloseReason>> {
        Arc::clone(&self.ended)
    }

    /// It is over; the first reason holds.
    pub(crate) fn end(&self, why: CloseReason) {
        let _ = self.ended.set(why);
    }

    /// Whether another publisher may have the stream.
    pub(crate) fn may_be_taken_over(&self, rules: TurnRules, now: Time) -> bool {
        match rules.takeover {
            Takeover::Always => true,
            Takeover::Silent => now.since(self.media.at().unwrap_or(self.begun)) >= rules.source_timeout,
            Takeover::Never => false,
        }
    }

    /// When it is over if no media comes.
    pub(crate) fn until(&self, rules: TurnRules) -> Time {
        match self.media.at() {
            Some(at) => at + rules.publish_timeout.max(rules.source_timeout),
            None => self.begun + rules.publish_timeout,
        }
    }
}

/// How many publishers the relay has sent away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, utoipa::ToSchema)]
#[schema(as = EndedPublishers)]
pub struct EndedTurns {
    /// Another publisher has taken the stream over.
    pub taken_over: u64,
    /// They sent no media for `publish_timeout`.
    pub no_media: u64,
}

impl EndedTurns {
    pub(crate) fn count(&mut self, why: CloseReason) {
        match why {
            CloseReason::TakenOver => self.taken_over += 1,
            CloseReason::NoMedia => self.no_media += 1,
            _ => {}
        }
    }
}
