//! The file loaded again. Each thing that it says otherwise is made, or is as it was before: then the reload says
//! so, and it is tried again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_config::{Changes, Config, SinkConfig, StreamConfig, Unmade, diff};
use outflow_engine::message::ControlError;
use outflow_media::Backoff;

use super::{Supervisor, renditions_first};
use crate::change::Changed;
use crate::limits::{RELOAD_AGAIN, STREAMS_LEFT_OF, STREAMS_LEFT_ONE_IN};
use crate::load::{WRITE_THE_REST, load, refuse_empty};

/// What the file says and could not be made yet.
#[derive(Debug)]
pub(super) struct Pending {
    streams: BTreeMap<String, Arc<StreamConfig>>,
    sinks: BTreeMap<String, SinkConfig>,
    /// Fronts have not all taken on what it says.
    fronts: bool,
    again: Backoff,
    at: Instant,
}

impl Default for Pending {
    fn default() -> Self {
        let (streams, sinks) = (BTreeMap::new(), BTreeMap::new());
        Pending { streams, sinks, fronts: false, again: RELOAD_AGAIN, at: Instant::now() }
    }
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.sinks.is_empty() && !self.fronts
    }
}

/// What became of changes.
#[derive(Debug, Default)]
struct Made {
    failed: Vec<(Unmade, ControlError)>,
    waited: Option<Duration>,
}

impl Supervisor {
    /// Reads the file again and makes what changed. A file that removes every stream, or most of them, may be half
    /// written: it is taken only if that is said to be meant.
    ///
    /// # Errors
    /// The file cannot be read, is not valid, or removes too much; nothing has changed then.
    pub(crate) async fn reload(&mut self, allow_empty: bool) -> Result<Changed, ControlError> {
        let path = self.path.clone().ok_or_else(|| {
            ControlError::Configuration("this relay was started without a configuration file".to_owned())
        })?;
        let control = self.control.clone();
        // It waits for a file that is being written.
        let loaded = tokio::task::spawn_blocking(move || load(&path, control.protocols())).await;
        let mut new = loaded.map_err(|_| ControlError::ShuttingDown)??;
        if !allow_empty {
            refuse_empty(&new)?;
            self.refuse_removal(&new)?;
        }
        let adopted = self.adopted.clone();
        self.keep_adopted(&mut new);
        if let Err(too_much) = self.check_rings(&new) {
            self.adopted = adopted;
            return Err(too_much);
        }
        Ok(self.become_like(new, RELOAD_AGAIN).await)
    }

    fn refuse_removal(&self, new: &Config) -> Result<(), ControlError> {
        let old = self.control.config();
        let had = old.streams.keys().filter(|name| !self.adopted.contains_key(*name)).count();
        let left = new.streams.len();
        let are_few = had >= STREAMS_LEFT_OF && left * STREAMS_LEFT_ONE_IN < had;
        if had == 0 || (left > 0 && !are_few) {
            return Ok(());
        }
        let what = format!("the file may be half written: it leaves {left} of {had} streams");
        Err(ControlError::Configuration(format!("{what}: {WRITE_THE_REST}")))
    }

    /// Tries again what the last reload could not make, if it is time.
    pub(super) async fn try_again(&mut self) {
        if self.pending.is_empty() || Instant::now() < self.pending.at {
            return;
        }
        let Pending { streams, sinks, again, .. } = core::mem::take(&mut self.pending);
        let mut new = Config::clone(&self.control.config());
        new.sinks.retain(|sink| !sinks.contains_key(&sink.name));
        new.sinks.extend(sinks.into_values());
        let names: Vec<_> = streams.keys().cloned().collect();
        new.streams.extend(streams);
        self.become_like(new, again).await;
        for name in names.iter().filter(|name| !self.pending.streams.contains_key(*name)) {
            // It is configured now.
            self.adopted.remove(name);
        }
    }

    async fn become_like(&mut self, new: Config, again: Backoff) -> Changed {
        let old = self.control.config();
        let changes = diff(&old, &new);
        let Made { failed, waited } = self.apply(&old, &new, &changes).await;
        let mut in_force = new.clone();
        for (failed, _) in &failed {
            in_force.put_back(&old, failed);
        }
        for name in changes.links_removed.iter().filter(|name| !in_force.links.contains_key(*name)) {
            self.control.links().remove(self.control.workers(), name);
        }
        let lines = self.is_now(&diff(&old, &in_force), in_force);
        let failed = self.note_failed(&new, failed, again);
        Changed { lines, failed, waited }
    }

    /// Takes note of what could not be made. Returns a line for each.
    fn note_failed(
        &mut self,
        new: &Config,
        failed: Vec<(Unmade, ControlError)>,
        mut again: Backoff,
    ) -> Vec<String> {
        let mut pending = Pending::default();
        let mut lines = Vec::new();
        for (failed, error) in failed {
            lines.push(match failed {
                Unmade::Stream(name, _) => {
                    let line = format!("stream '{name}' is not as configured: {error}");
                    let wanted = new.streams.get(&name).cloned();
                    pending.streams.extend(wanted.map(|wanted| (name, wanted)));
                    line
                }
                Unmade::Sink(name, _) => {
                    let line = format!("sink '{name}' is not as configured: {error}");
                    let wanted = new.sinks.iter().find(|sink| sink.name == name).cloned();
                    pending.sinks.extend(wanted.map(|wanted| (name, wanted)));
                    line
                }
                Unmade::Protocol => {
                    pending.fronts = true;
                    format!("not as configured: {error}")
                }
            });
        }
        if !pending.is_empty() {
            pending.at = Instant::now() + again.wait();
        }
        for line in &lines {
            tracing::error!(change = line, "configuration not changed; it is tried again");
        }
        self.pending = Pending { again, ..pending };
        lines
    }

    /// Makes every change, whatever becomes of the others. What cannot be made is as it was.
    async fn apply(&mut self, old: &Config, new: &Config, changes: &Changes) -> Made {
        let mut made = Made::default();
        for name in changes.links_added.iter().chain(&changes.links_changed) {
            self.control.links().put(self.control.workers(), name, &new.links[name]);
        }
        for sink in changes.sinks_removed.iter().chain(&changes.sinks_changed) {
            self.remove_sink(sink);
        }
        for name in &changes.streams_removed {
            self.remove_stream(name).await;
        }
        for name in renditions_first(new, changes.streams_added.iter()) {
            if let Err(error) = self.add_stream(name, &new.streams[name]).await {
                // One that was replaced comes back.
                let before = old.streams.get(name);
                let is_back = match before {
                    Some(before) => self.add_stream(name, before).await.is_ok(),
                    None => false,
                };
                made.failed.push((Unmade::Stream(name.clone(), is_back), error));
            }
        }
        for name in &changes.streams_changed {
            let (old, new) = (&old.streams[name], &new.streams[name]);
            if let Err(error) = self.change_stream(name, old, new, &mut made.waited).await {
                made.failed.push((Unmade::Stream(name.clone(), true), error));
            }
        }
        for name in changes.sinks_added.iter().chain(&changes.sinks_changed) {
            let find = |config: &Config| config.sinks.iter().find(|sink| sink.name == *name).cloned();
            let Some(sink) = find(new) else { continue };
            if let Err(error) = self.add_sink(&sink).await {
                let is_back = match find(old) {
                    Some(before) => self.add_sink(&before).await.is_ok(),
                    None => false,
                };
                made.failed.push((Unmade::Sink(sink.name, is_back), error));
            }
        }
        made.failed.extend(self.configure(new).await.into_iter().map(|error| (Unmade::Protocol, error)));
        made
    }

    /// Fronts do as the configuration says. Returns why those do not that cannot.
    pub(super) async fn configure(&self, config: &Config) -> Vec<ControlError> {
        let config = Arc::new(config.clone());
        let mut failed = Vec::new();
        for front in self.control.fronts().iter() {
            failed.extend(front.configure(Arc::clone(&config)).await.err());
        }
        failed
    }
}
