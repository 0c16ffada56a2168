//! The configuration carried out: streams, sources and configured receivers are made, and, when
//! the configuration changes, whatever changed in it and nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outflow_config::{Config, SinkConfig, SinkScheme, SourceUrl, StreamConfig};
use outflow_media::{Codec, Format, Track};
use outflow_relay::{Carriage, Priority, StreamOptions};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::control::{
    CloseReason, Command, Control, ControlError, Feed, Owner, PublishOptions, PushRoute, SocketRole, SourceSocket,
    StreamEntry,
};
use crate::receive::bind_source;
use crate::source;

/// What runs because the configuration says so.
pub(crate) struct Supervisor {
    control: Control,
    clock: Clock,
    path: Option<PathBuf>,
    /// By stream: the task that keeps its source.
    sources: BTreeMap<String, JoinHandle<()>>,
    /// By name: the task that keeps a configured receiver.
    sinks: BTreeMap<String, JoinHandle<()>>,
}

impl Supervisor {
    /// `path` is the configuration's file, for reloading and for the files it names.
    pub(crate) fn new(control: Control, clock: Clock, path: Option<PathBuf>) -> Self {
        Supervisor { control, clock, path, sources: BTreeMap::new(), sinks: BTreeMap::new() }
    }

    /// Makes everything that the configuration says.
    ///
    /// # Errors
    /// The first thing that cannot be done, in words that name it.
    pub(crate) async fn start(&mut self, config: &Config) -> Result<(), ControlError> {
        for (name, stream) in &config.streams {
            self.add_stream(name, stream)?;
        }
        for sink in &config.sinks {
            self.add_sink(sink)?;
        }
        Ok(())
    }

    /// Reads the file again and makes what changed. Returns a line for each change.
    ///
    /// # Errors
    /// The file cannot be read or is not valid; nothing has changed then.
    pub(crate) async fn reload(&mut self) -> Result<Vec<String>, ControlError> {
        let path = self.path.clone().ok_or_else(|| {
            ControlError::Configuration("this relay was started without a configuration file".to_owned())
        })?;
        let new = crate::load(&path)?;
        let changes = outflow_config::diff(&self.control.config(), &new);
        self.apply(&new, &changes)?;
        self.control.set_config(Arc::new(new));
        let lines = changes.lines();
        for line in &lines {
            tracing::info!(change = line, "configuration reloaded");
        }
        Ok(lines)
    }

    fn apply(&mut self, new: &Config, changes: &outflow_config::Changes) -> Result<(), ControlError> {
        for sink in changes.sinks_removed.iter().chain(&changes.sinks_changed) {
            self.remove_sink(sink);
        }
        for name in &changes.streams_removed {
            self.remove_stream(name);
        }
        for name in &changes.streams_added {
            self.add_stream(name, &new.streams[name])?;
        }
        for name in &changes.streams_changed {
            self.change_stream(name, &self.control.config().streams[name].clone(), &new.streams[name])?;
        }
        let wanted = changes.sinks_added.iter().chain(&changes.sinks_changed);
        for name in wanted {
            if let Some(sink) = new.sinks.iter().find(|sink| sink.name == *name) {
                self.add_sink(sink)?;
            }
        }
        Ok(())
    }

    fn add_stream(&mut self, name: &str, config: &StreamConfig) -> Result<(), ControlError> {
        let control = &self.control;
        let load = control.registry().load(control.workers().len());
        let worker = load.iter().enumerate().min_by_key(|(_, load)| **load).map_or(0, |(worker, _)| worker);
        let owner = Owner { worker, stream: control.new_id() };
        let pushed = config.source == SourceUrl::Push;
        let entry = StreamEntry {
            owner,
            source: (!pushed).then(|| config.source.to_string()),
            receivers_max: config.max_receivers,
            receivers: 0,
            publisher: None,
        };
        control.registry().insert(name.to_owned(), entry);
        let (url, options) = (config.source.to_string(), self.options(config));
        control.tell(&owner, Command::AddStream { stream: owner.stream, name: name.to_owned(), url, options });
        self.start_source(name, config)
    }

    fn remove_stream(&mut self, name: &str) {
        if let Some(task) = self.sources.remove(name) {
            task.abort();
        }
        if let Some(entry) = self.control.registry().remove(name) {
            let reason = CloseReason::StreamRemoved;
            self.control.tell(&entry.owner, Command::RemoveStream { stream: entry.owner.stream, reason });
        }
    }

    /// Changes a stream while its packets flow on. Only another source means a new beginning, and
    /// even then receivers stay.
    fn change_stream(
        &mut self,
        name: &str,
        old: &StreamConfig,
        new: &StreamConfig,
    ) -> Result<(), ControlError> {
        let entry = self.control.entry(name)?;
        let options = self.options(new);
        self.control.tell(&entry.owner, Command::SetOptions { stream: entry.owner.stream, options });
        self.control.registry().update(name, |entry| entry.receivers_max = new.max_receivers);
        if (&old.source, &old.sdp, old.transport) == (&new.source, &new.sdp, new.transport) {
            return Ok(());
        }
        if let Some(task) = self.sources.remove(name) {
            task.abort();
        }
        let pushed = new.source == SourceUrl::Push;
        self.control
            .registry()
            .update(name, |entry| entry.source = (!pushed).then(|| new.source.to_string()));
        self.start_source(name, new)
    }

    fn options(&self, config: &StreamConfig) -> StreamOptions {
        StreamOptions {
            ring_bytes: config.ring.bytes() as usize,
            hopeless_after: config.hopeless_after,
            source_timeout: config.source_timeout,
            ssrc: random_ssrc(),
            ntp_at_zero: self.clock.ntp_at_zero(),
        }
    }

    fn start_source(&mut self, name: &str, config: &StreamConfig) -> Result<(), ControlError> {
        let control = self.control.clone();
        let stream = name.to_owned();
        let task = match &config.source {
            SourceUrl::Push => return Ok(()),
            SourceUrl::Demo => tokio::spawn(report(name, source::play_clip(control, stream))),
            SourceUrl::Rtsp { .. } => tokio::spawn(source::pull(control, stream, config.clone())),
            SourceUrl::Udp(at) => {
                let socket = bind_source(at.address, at.source, at.interface.as_deref())?;
                let sockets = vec![SourceSocket { socket, track: 0, role: SocketRole::Ts, from: None }];
                tokio::spawn(report(name, keep_open(control, stream, Format::Ts, at.to_string(), sockets)))
            }
            SourceUrl::Rtp(at) => {
                let tracks = self.tracks(config)?;
                let mut sockets = Vec::new();
                for (track, (_, port)) in tracks.iter().enumerate() {
                    let track = track as u8;
                    let rtp = std::net::SocketAddr::new(at.address.ip(), port.unwrap_or(at.address.port() + 2 * u16::from(track)));
                    let rtcp = std::net::SocketAddr::new(rtp.ip(), rtp.port() + 1);
                    for (at_port, role) in [(rtp, SocketRole::Rtp), (rtcp, SocketRole::Rtcp)] {
                        let socket = bind_source(at_port, at.source, at.interface.as_deref())?;
                        sockets.push(SourceSocket { socket, track, role, from: None });
                    }
                }
                let format = Format::Rtp(tracks.into_iter().map(|(track, _)| track).collect());
                tokio::spawn(report(name, keep_open(control, stream, format, at.to_string(), sockets)))
            }
        };
        self.sources.insert(name.to_owned(), task);
        Ok(())
    }
}
