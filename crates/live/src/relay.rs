//! The whole relay: started from a configuration, ended by a signal or by whoever holds it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use outflow_config::Config;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::control::{Command, ConfigChange, ConfigRequest, Control, ControlError, Owner, RelayState};
use crate::limits::{REPLICA_LINGER, SNAPSHOT_EVERY};
use crate::message::together;
use crate::multicast::Multicast;
use crate::processors::Processors;
use crate::supervise::Supervisor;
use crate::system::{Usage, rss_bytes};
use crate::tree::Tree;
use crate::worker::WorkerHandle;

/// A running relay.
pub struct Relay {
    control: Control,
    threads: Vec<JoinHandle<()>>,
    tasks: JoinSet<()>,
}

/// Reads and checks a configuration file.
///
/// # Errors
/// It cannot be read, or is not valid; the text names every line that is wrong.
pub fn load(path: &Path) -> Result<Config, ControlError> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        ControlError::Configuration(format!(
            "{}: {e}: give the path of a file that can be read",
            path.display()
        ))
    })?;
    Config::parse(&text, &path.display().to_string()).map_err(|e| ControlError::Configuration(e.to_string()))
}

impl Relay {
    /// Starts everything that `config` says. `path` is its file, for reloading and for the files
    /// that it names.
    ///
    /// # Errors
    /// The first thing that cannot be done.
    pub async fn start(config: Config, path: Option<PathBuf>) -> Result<Self, ControlError> {
        crate::system::raise_descriptor_limit();
        let clock = Clock::start();
        let processors = Processors::of(&config.limits)?;
        processors.clear()?;
        let (mut workers, mut threads) = (Vec::new(), Vec::new());
        let (demands, wanted) = mpsc::unbounded_channel();
        for number in 0..processors.workers {
            let place = (number, processors.clone());
            let (worker, thread) = WorkerHandle::start(place, clock, &config, demands.clone())?;
            workers.push(worker);
            threads.push(thread);
        }
        let (state_told, state) = watch::channel(Arc::default());
        let (changes, requests) = mpsc::channel(4);
        let (multicast, asks) = Multicast::new();
        let control = Control::new(workers, Arc::new(config.clone()), state, (changes, multicast), clock);
        let mut tasks = JoinSet::new();
        tasks.spawn(crate::multicast::run(control.clone(), asks));
        tasks.spawn(show(control.clone(), clock, state_told));
        tasks.spawn(tend(control.clone()));
        if let Some((tree, driven)) = Tree::start(&control, wanted).await? {
            control.set_tree(tree);
            tasks.spawn(driven);
        }
        let mut supervisor = Supervisor::new(control.clone(), clock, path, processors.have_room());
        supervisor.start(&config).await?;
        tasks.spawn(supervise(supervisor, requests));
        let mut relay = Relay { control, threads, tasks };
        relay.listen().await?;
        Ok(relay)
    }

    /// What can be asked of it.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Ends everything: receivers and publishers are told, sockets closed, threads joined.
    pub fn shut_down(mut self) {
        self.tasks.abort_all();
        for worker in 0..self.threads.len() {
            self.control.tell(&Owner { worker, stream: 0 }, Command::Shutdown);
        }
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so on standard error.
            let _ = thread.join();
        }
    }

    /// Opens the servers.
    async fn listen(&mut self) -> Result<(), ControlError> {
        let config = self.control.config();
        let acceptor = |tls| outflow_door::tls::acceptor(tls, &["http/1.1"]);
        let tls = config.tls.as_ref().map(acceptor).transpose();
        let tls = tls.map_err(|error| ControlError::Configuration(error.to_string()))?;
        let listen = &config.listen;
        for (at, tls) in [(listen.rtsp, None), (listen.rtsps.filter(|_| tls.is_some()), tls.clone())] {
            if let Some(listener) = bind("RTSP", at).await? {
                self.tasks.spawn(crate::rtsp::serve(listener, tls, self.control.clone()));
            }
        }
        let router = crate::http::router(self.control.clone());
        for (at, tls) in [(listen.http, None), (listen.https.filter(|_| tls.is_some()), tls.clone())] {
            if let Some(listener) = bind("HTTP", at).await? {
                let (control, router) = (self.control.clone(), router.clone());
                self.tasks.spawn(crate::http::serve(listener, tls, control, router));
            }
        }
        if let Some(listener) = crate::poc::listen(&self.control)? {
            self.tasks.spawn(crate::poc::serve(listener, self.control.clone()));
        }
        Ok(())
    }
}

async fn bind(protocol: &str, at: Option<SocketAddr>) -> Result<Option<TcpListener>, ControlError> {
    let Some(at) = at else { return Ok(None) };
    let bound = TcpListener::bind(at).await;
    let listener = bound
        .map_err(|e| ControlError::system(format!("listening for {protocol} at {at} (see [listen])"), &e))?;
    tracing::info!(protocol, %at, "listening");
    Ok(Some(listener))
}

/// Puts the workers' snapshots together, a few times a second.
async fn show(control: Control, clock: Clock, told: watch::Sender<Arc<RelayState>>) {
    let mut usage = Usage::new();
    let mut ticks = tokio::time::interval(SNAPSHOT_EVERY);
    loop {
        ticks.tick().await;
        let parts: Vec<_> = control.workers().iter().map(WorkerHandle::states).collect();
        let streams = together(parts.iter().flat_map(|part| part.streams.iter()));
        let mut links: Vec<_> = parts.iter().flat_map(|part| part.links.iter().cloned()).collect();
        links.sort_by(|a, b| a.name.cmp(&b.name));
        told.send_replace(Arc::new(RelayState {
            version: env!("CARGO_PKG_VERSION"),
            uptime_ms: clock.now().as_millis(),
            cpu_percent: usage.cpu_percent(),
            rss_bytes: rss_bytes(),
            streams,
            links,
        }));
    }
}

/// Lets replicas of streams go that nobody needs any more.
async fn tend(control: Control) {
    let mut ticks = tokio::time::interval(REPLICA_LINGER / 5);
    loop {
        ticks.tick().await;
        control.rest_idle_replicas();
    }
}

/// Changes the configuration when asked to, and services as the rules say.
async fn supervise(mut supervisor: Supervisor, mut requests: mpsc::Receiver<ConfigRequest>) {
    let mut looks = tokio::time::interval(SNAPSHOT_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let request = tokio::select! {
            request = requests.recv() => request,
            _ = looks.tick() => {
                supervisor.look().await;
                continue;
            }
        };
        let Some(ConfigRequest { change, reply }) = request else { return };
        let result = match change {
            ConfigChange::Reload => supervisor.reload().await,
            ConfigChange::Limits { stream, limits } => supervisor.set_limits(&stream, limits).await,
            ConfigChange::Adopt { stream } => supervisor.adopt(&stream).await,
            ConfigChange::Abandon { stream } => supervisor.abandon(&stream).await,
            ConfigChange::Services { stream, elements, branches } => {
                supervisor.set_services(&stream, elements, branches).await
            }
        };
        // Whoever asked may be gone; the log has told the changes.
        let _ = reply.send(result);
    }
}
