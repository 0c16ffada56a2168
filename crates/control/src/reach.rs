//! Streams that come from other relays, while a receiver here wants them.

use std::fmt::Debug;
use std::sync::Arc;

use outflow_config::SourceUrl;
use outflow_engine::message::{ControlError, StreamId};
use outflow_packet::Level;
use outflow_relay::StreamOptions;

use crate::change::ConfigChange;
use crate::control::Control;
use crate::front::Task;
use crate::registry::StreamEntry;

/// Fetches streams of other relays.
pub trait Reach: Debug + Send + Sync {
    /// Waits until a stream comes from another relay, for a receiver that wants this level and will ask for it soon.
    ///
    /// # Errors
    /// No relay has it.
    fn reach(&self, stream: String, level: Level) -> Task<Result<(), ControlError>>;
}

/// What is known of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its number where its source is.
    pub number: StreamId,
    /// Whether it comes from other relays.
    pub is_of_relays: bool,
}

impl From<&StreamEntry> for Known {
    fn from(entry: &StreamEntry) -> Self {
        Known { number: entry.owner.stream, is_of_relays: entry.is_of_relays() }
    }
}

impl Control {
    /// The stream of this name, be it without a source.
    pub fn known(&self, stream: &str) -> Option<Known> {
        self.registry().get(stream).as_ref().map(Known::from)
    }

    /// The stream that has this number with any worker, and its name.
    pub fn known_by_number(&self, number: StreamId) -> Option<(String, Known)> {
        self.registry().of_number(number).map(|(name, entry)| (name, Known::from(&entry)))
    }

    /// Has streams of other relays fetched by this one from now on; the first one stays.
    pub fn set_reach(&self, reach: Arc<dyn Reach>) {
        // It is said once, when the relay starts.
        let _ = self.reached_by().set(reach);
    }

    /// Has a stream come from another relay, if it is one that does and no receiver wanted it so far.
    pub(crate) async fn reach(&self, stream: &str, level: Level) -> Result<(), ControlError> {
        let Some(others) = self.reached_by().get() else { return Ok(()) };
        match self.registry().get(stream) {
            Some(entry) if !entry.is_of_relays() => Ok(()),
            // Without a source, it is at least there.
            Some(_) => others.reach(stream.to_owned(), level).await.or(Ok(())),
            None => others.reach(stream.to_owned(), level).await,
        }
    }

    /// The same for a receiver that can wait at the stream itself, once that is there.
    pub(crate) async fn reach_unknown(&self, stream: &str, level: Level) -> Result<(), ControlError> {
        match self.reached_by().get() {
            Some(others) if self.registry().get(stream).is_none() => {
                others.reach(stream.to_owned(), level).await
            }
            _ => Ok(()),
        }
    }

    /// Makes a stream that is not configured, with a source that a receiver has asked for.
    ///
    /// # Errors
    /// It cannot be made.
    pub async fn adopt(&self, stream: &str, source: SourceUrl) -> Result<(), ControlError> {
        self.change(ConfigChange::Adopt { stream: stream.to_owned(), source }).await.map(drop)
    }

    /// Removes it again, if it has no receivers.
    pub async fn abandon(&self, stream: &str) {
        // A relay that ends removes all of them.
        let _ = self.change(ConfigChange::Abandon { stream: stream.to_owned() }).await;
    }

    /// The least number of layers that a stream has at its source, though fewer may come.
    pub fn set_layers(&self, stream: &str, layers: u8) {
        self.change_options(stream, |options| StreamOptions { layers, ..options });
    }
}
