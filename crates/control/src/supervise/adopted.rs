//! Streams that are not configured, and that there are while a receiver wants them.

use std::sync::Arc;

use outflow_config::{Config, SourceUrl, StreamConfig};
use outflow_engine::message::ControlError;

use super::Supervisor;
use crate::change::Changed;

impl Supervisor {
    /// Makes a stream of this source that is else as `[defaults]` says.
    pub(crate) async fn adopt(&mut self, stream: &str, source: SourceUrl) -> Result<Changed, ControlError> {
        let config = self.control.config();
        if config.streams.contains_key(stream) {
            return Ok(Changed::default());
        }
        let made = StreamConfig { source: source.clone(), ..config.defaults.clone() };
        if self.check_rings(&self.with(stream, made.clone())).is_err() {
            let (what, key) = ("the streams that there is memory for", "limits.memory");
            return Err(ControlError::Limit { what, limit: config.streams.len(), key });
        }
        self.add_stream(stream, &made).await?;
        self.adopted.insert(stream.to_owned(), source);
        Ok(Changed { lines: self.put_one(stream, Some(made)), ..Changed::default() })
    }

    /// Those that there are, with their sources.
    pub(crate) fn adopted(&self) -> Vec<(String, String)> {
        self.adopted.iter().map(|(stream, source)| (stream.clone(), source.to_string())).collect()
    }

    /// Makes those that another process had.
    ///
    /// # Errors
    /// One cannot be made, in words that name it.
    pub(crate) async fn adopt_all(&mut self, all: &[(String, String)]) -> Result<(), ControlError> {
        for (stream, source) in all {
            let source = SourceUrl::parse(source, self.control.protocols().vocabulary());
            let source = source
                .map_err(|invalid| ControlError::Configuration(format!("stream '{stream}': {invalid}")))?;
            self.adopt(stream, source).await?;
        }
        Ok(())
    }

    /// Removes a stream that was made by [`Supervisor::adopt`], unless it has receivers.
    pub(crate) async fn abandon(&mut self, stream: &str) -> Result<Changed, ControlError> {
        let has_receivers = self.control.entry(stream).is_ok_and(|entry| entry.receivers > 0);
        if has_receivers || self.adopted.remove(stream).is_none() {
            return Ok(Changed::default());
        }
        self.remove_stream(stream).await;
        Ok(Changed { lines: self.put_one(stream, None), ..Changed::default() })
    }

    /// No file knows of those; one that does has them its way.
    pub(super) fn keep_adopted(&mut self, new: &mut Config) {
        self.adopted.retain(|stream, _| !new.streams.contains_key(stream));
        for (stream, source) in &self.adopted {
            let config = StreamConfig { source: source.clone(), ..new.defaults.clone() };
            new.streams.insert(stream.clone(), Arc::new(config));
        }
    }
}
