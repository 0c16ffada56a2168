//! Streams that come from other relays, while a receiver here wants them.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use outflow_engine::message::{ControlError, StreamId};
use outflow_packet::Level;

use crate::placing::StreamEntry;
use crate::registry::Registry;
use crate::task::Task;

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

/// What fetches streams of other relays, if there is such.
#[derive(Debug, Default)]
pub(crate) struct OtherRelays(OnceLock<Arc<dyn Reach>>);

impl OtherRelays {
    /// Has streams fetched by this one from now on; the first one stays.
    pub(crate) fn set(&self, reach: Arc<dyn Reach>) {
        // It is said once, when the relay starts.
        let _ = self.0.set(reach);
    }

    /// Has a stream come from another relay, if it is one that does and no receiver wanted it so far.
    pub(crate) async fn reach(
        &self,
        registry: &Registry,
        stream: &str,
        level: Level,
    ) -> Result<(), ControlError> {
        let Some(others) = self.0.get() else { return Ok(()) };
        match registry.get(stream) {
            Some(entry) if !entry.is_of_relays() => Ok(()),
            // Without a source, it is at least there.
            Some(_) => others.reach(stream.to_owned(), level).await.or(Ok(())),
            None => others.reach(stream.to_owned(), level).await,
        }
    }

    /// The same for a receiver that can wait at the stream itself, once that is there.
    pub(crate) async fn reach_unknown(
        &self,
        registry: &Registry,
        stream: &str,
        level: Level,
    ) -> Result<(), ControlError> {
        match self.0.get() {
            Some(others) if registry.get(stream).is_none() => others.reach(stream.to_owned(), level).await,
            _ => Ok(()),
        }
    }
}
