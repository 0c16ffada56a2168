//! Receivers: each asks the relay beside it for a stream at a level, for another level, or leaves, as it is told.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use outflow_client::{Options, Received, Subscription, subscribe};
use outflow_labs::net::Namespace;
use outflow_poc_socket::Security;
use tokio::sync::{mpsc, watch};

use crate::scene::{PORT, address};
use crate::source::Stamp;

/// A receiver whose stream failed asks again after this time.
const AGAIN: Duration = Duration::from_millis(50);

/// What a receiver has got.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    /// Packets and when they came.
    pub(crate) packets: Vec<(u32, Instant)>,
    /// When it began to ask for the stream, each time.
    pub(crate) asked: Vec<Instant>,
    /// Why it had to ask again.
    pub(crate) failures: Vec<String>,
}

/// A receiver beside a relay.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) relay: usize,
    pub(crate) stream: u8,
    wanted: watch::Sender<Option<u8>>,
    log: Arc<Mutex<Log>>,
}

impl Receiver {
    /// Has it take this level from now on, or leave.
    pub(crate) fn want(&self, level: Option<u8>) {
        self.wanted.send_replace(level);
    }

    /// What it has got so far.
    pub(crate) fn log(&self) -> Log {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Task {
    url: String,
    seed: u64,
    wanted: watch::Receiver<Option<u8>>,
    log: Arc<Mutex<Log>>,
}

/// Where receivers are made: a thread for those beside each relay.
#[derive(Debug)]
pub(crate) struct Audience {
    doors: Vec<mpsc::UnboundedSender<Task>>,
    threads: Vec<JoinHandle<()>>,
    names: Vec<String>,
    seed: u64,
}

impl Audience {
    /// No receiver yet.
    pub(crate) fn new(namespaces: &[Namespace], names: Vec<String>) -> Result<Self> {
        let mut audience = Self { doors: Vec::new(), threads: Vec::new(), names, seed: 1 };
        for namespace in namespaces {
            let runtime =
                namespace.run(|| tokio::runtime::Builder::new_current_thread().enable_all().build())?;
            let (door, mut tasks) = mpsc::unbounded_channel::<Task>();
            let file = std::fs::File::open(format!("/run/netns/{}", namespace.name()))?;
            let serve = move || {
                nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).expect("root may enter");
                runtime.block_on(async move {
                    while let Some(task) = tasks.recv().await {
                        tokio::spawn(task.run());
                    }
                });
            };
            audience.doors.push(door);
            audience.threads.push(std::thread::spawn(serve));
        }
        Ok(audience)
    }

    /// One more receiver, which wants nothing yet.
    pub(crate) fn join(&mut self, relay: usize, stream: u8) -> Result<Receiver> {
        let (wanted, wishes) = watch::channel(None);
        let log = Arc::<Mutex<Log>>::default();
        let url = format!("poc://{}:{PORT}/{}", address(relay), self.names[usize::from(stream)]);
        self.seed += 1;
        let task = Task { url, seed: self.seed, wanted: wishes, log: Arc::clone(&log) };
        self.doors[relay].send(task).ok().context("the thread of receivers has ended")?;
        Ok(Receiver { relay, stream, wanted, log })
    }
}

impl Drop for Audience {
    fn drop(&mut self) {
        self.doors.clear();
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

impl Task {
    fn note(&self, what: impl FnOnce(&mut Log)) {
        what(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner));
    }

    async fn run(mut self) {
        loop {
            let Ok(level) = self.wanted.wait_for(Option::is_some).await.map(|level| *level) else { return };
            let Some(level) = level else { continue };
            self.note(|log| log.asked.push(Instant::now()));
            match self.subscribed(level).await {
                Ok(subscription) => {
                    if let Err(error) = self.receive(subscription, level).await {
                        self.note(|log| log.failures.push(error.to_string()));
                        tokio::time::sleep(AGAIN).await;
                    }
                }
                Err(error) => {
                    self.note(|log| log.failures.push(error.to_string()));
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    async fn subscribed(&self, level: u8) -> Result<Subscription, outflow_client::Error> {
        let poc = Some(outflow_poc_socket::Options::new(Security::Plain));
        let silence = Duration::from_secs(60);
        subscribe(
            &format!("{}?level={level}", self.url),
            Options { poc, seed: self.seed, silence, ..Options::default() },
        )
        .await
    }

    async fn receive(
        &mut self,
        mut subscription: Subscription,
        asked: u8,
    ) -> Result<(), outflow_client::Error> {
        let mut asked = asked;
        loop {
            let now = *self.wanted.borrow_and_update();
            match now {
                None => {
                    subscription.close().await;
                    return Ok(());
                }
                Some(level) if level != asked => {
                    subscription.ask_level(level)?;
                    asked = level;
                }
                Some(_) => {}
            }
            tokio::select! {
                changed = self.wanted.changed() => if changed.is_err() {
                    subscription.close().await;
                    return Ok(());
                },
                received = subscription.recv() => if let Received::Packet(packet) = received? {
                    let at = Instant::now();
                    let stamps = Stamp::all_in(&packet.bytes);
                    self.note(|log| log.packets.extend(stamps.iter().map(|stamp| (stamp.number, at))));
                },
            }
        }
    }
}
