//! Streams that come from other relays, while somebody here wants them.

use outflow_relay::{Level, StreamOptions};

use super::{ConfigChange, Control, ControlError};
use crate::tree::{RelayView, Tree};

impl Control {
    /// The relay's place among others.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        self.inner.tree.get()
    }

    pub(crate) fn set_tree(&self, tree: Tree) {
        // It is said once, when the relay starts.
        let _ = self.inner.tree.set(tree);
    }

    /// The whole tree of relays, as far as it can be seen from this one; none without `[tree]`.
    pub(crate) async fn survey(&self) -> Option<Vec<RelayView>> {
        Some(self.tree()?.survey().await)
    }

    /// Has a stream come from another relay, if it is one that does and nobody wanted it so far.
    pub(super) async fn reach(&self, stream: &str, level: Level) -> Result<(), ControlError> {
        let Some(tree) = self.tree() else { return Ok(()) };
        match self.registry().get(stream) {
            Some(entry) if entry.source.as_deref() != Some("tree") => Ok(()),
            // Without a source, it is at least there.
            Some(_) => tree.reach(stream, level).await.or(Ok(())),
            None => tree.reach(stream, level).await,
        }
    }

    /// The same for whoever may wait at the stream itself, once that is there.
    pub(super) async fn reach_unknown(&self, stream: &str, level: Level) -> Result<(), ControlError> {
        match self.tree() {
            Some(tree) if self.registry().get(stream).is_none() => tree.reach(stream, level).await,
            _ => Ok(()),
        }
    }

    /// Makes a stream that nobody configured.
    pub(crate) async fn adopt(&self, stream: &str) -> Result<(), ControlError> {
        self.change(ConfigChange::Adopt { stream: stream.to_owned() }).await.map(drop)
    }

    /// Removes it again, if nobody receives it.
    pub(crate) async fn abandon(&self, stream: &str) {
        // A relay that ends removes all of them.
        let _ = self.change(ConfigChange::Abandon { stream: stream.to_owned() }).await;
    }

    /// A stream has so many layers at least, though fewer may come.
    pub(crate) fn set_layers(&self, stream: &str, layers: u8) {
        self.change_options(stream, |options| StreamOptions { layers, ..options });
    }
}
