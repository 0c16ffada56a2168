//! The whole relay: started from a configuration, ended by a signal or by its holder.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use outflow_config::Config;
use outflow_engine::limits::SNAPSHOT_EVERY;
use outflow_engine::message::{Command, ControlError, Demanders, RelayState, demands, together};
use outflow_engine::system::rss_bytes;
use outflow_engine::{Clock, Processors, StartingWorker, WorkerHandle};
use outflow_handover::Line;
use outflow_vital::{Fatal, Vital};
use tokio::sync::{mpsc, watch};

use crate::change::{ConfigChange, ConfigRequest};
use crate::control::Control;
use crate::front::{Front, Fronts};
use crate::grants;
use crate::limits::{END_LOOK, END_WITHIN, REPLICA_LINGER};
use crate::shedding;
use crate::supervise::Supervisor;
use crate::tasks::Tasks;
use crate::upgrade::{self, Old, Upgrade};
use crate::usage::Usage;
use crate::workers::{Owner, Workers};

/// Why a relay has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to end.
    AsTold,
    /// Another process has it, of this number: what is left here ends without a word to any peer.
    HandedOver {
        /// The number of the process.
        pid: u32,
    },
}

/// A running relay.
pub struct Relay {
    control: Control,
    threads: Vec<JoinHandle<()>>,
    tasks: Tasks,
    vital: Vital,
}

impl Relay {
    /// Starts everything that `config` says, with these protocols. `path` is its file, for reloading and for
    /// the files that it names. `from` leads to a process with which all begins, and that ends then.
    ///
    /// # Errors
    /// The first thing that cannot be done.
    pub async fn start(
        config: Config,
        path: Option<PathBuf>,
        fronts: Vec<Arc<dyn Front>>,
        from: Option<Line>,
    ) -> Result<Self, ControlError> {
        let Some(line) = from else { return Relay::begin(config, path, fronts, None).await };
        let old = Old::greet(line).await?;
        let started = Relay::begin(config, path, fronts, Some(&old)).await;
        if let Err(error) = &started {
            old.refuse(error).await;
        }
        started
    }

    async fn begin(
        config: Config,
        path: Option<PathBuf>,
        fronts: Vec<Arc<dyn Front>>,
        old: Option<&Old>,
    ) -> Result<Self, ControlError> {
        outflow_engine::system::raise_descriptor_limit();
        let clock = old.map_or_else(Clock::start, Old::clock);
        let vital = Vital::default();
        let (told, wanted) = demands(fronts.len());
        let (workers, threads, processors) = start_workers(&config, (clock, &vital), &told)?;
        let (state_told, state) = watch::channel(Arc::default());
        let (changes, requests) = mpsc::channel(4);
        let known = (clock, Fronts::new(fronts), old.map_or(1, Old::next_id));
        let workers = Workers::new(workers, vital.clone());
        let control = Control::new(workers, Arc::new(config.clone()), state, changes, wanted, known);
        control.fronts().iter().for_each(|front| front.attach(&control));
        let mut tasks = watching(&control, show(control.clone(), clock, state_told));
        let mut supervisor = Supervisor::new(control.clone(), clock, path, processors.have_room());
        match old {
            None => {
                start_fronts(&control, &mut tasks).await?;
                supervisor.make(&config).await?;
                supervisor.begin(&config).await?;
                for front in control.fronts().iter() {
                    listen(&**front, &control, &mut tasks).await?;
                }
            }
            Some(old) => {
                old.begin(&control)?;
                supervisor.make(&config).await?;
                supervisor.adopt_all(old.adopted()).await?;
                old.go_on(&control).await?;
                // The old process has had until now what fronts start with. There is none any more to go back to.
                report(start_fronts(&control, &mut tasks).await);
                report(supervisor.begin(&config).await);
                for front in control.fronts().iter() {
                    report(listen(&**front, &control, &mut tasks).await);
                }
                control.shared::<Upgrade>().let_go_of_the_rest();
            }
        }
        // What fronts have not taken is not kept.
        while control.take_demands().is_some() {}
        tasks.run("the task that changes the configuration", supervise(supervisor, requests));
        Ok(Relay { control, threads, tasks, vital })
    }

    /// What can be asked of it.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Waits until it is time to end: the relay was told to ([`Ending::begin`](crate::Ending::begin)), and its
    /// receivers have left or had their time.
    ///
    /// # Errors
    /// Something has ended without which the relay cannot go on, a worker for example. Another process can
    /// ([`recover`](Self::recover)), or this one should end, with that reason.
    pub async fn ended(&mut self) -> Result<Ended, Fatal> {
        let upgrade = self.control.shared::<Upgrade>();
        tokio::select! {
            successor = upgrade.over() => successor.map(|pid| Ended::HandedOver { pid }),
            () = self.control.health().ending().over(self.control.watch()) => Ok(Ended::AsTold),
            fatal = self.vital.fatal() => Err(fatal),
            fatal = self.tasks.ended() => Err(fatal),
        }
    }

    /// Has another process go on with a relay of which something [has ended](Self::ended). What did not end goes on there
    /// as after an upgrade, and so do a worker's streams and receivers, as it left them.
    ///
    /// # Errors
    /// What has ended: no other process could go on, or one did less than a minute ago. This one should end.
    pub async fn recover(&self, fatal: Fatal) -> Result<Ended, Fatal> {
        upgrade::recover(&self.control, fatal).await.map(|pid| Ended::HandedOver { pid })
    }

    /// Waits until nothing goes on through this process any more, once another one has the relay. Fronts and all that
    /// looks after the relay end here.
    pub async fn lingers(&mut self) {
        self.tasks.abort();
        self.control.shared::<Upgrade>().lingers(&self.control).await;
    }

    /// Ends everything: receivers and publishers are told, sockets closed, threads joined. A thread that hangs is waited
    /// for no longer than [`END_WITHIN`]. Returns the names of threads that have not ended, or not well.
    pub fn shut_down(mut self) -> Vec<String> {
        self.tasks.abort();
        for worker in 0..self.threads.len() {
            self.control.workers().tell(&Owner { worker, stream: 0 }, Command::Shutdown);
        }
        let until = Instant::now() + END_WITHIN;
        let ends_well = |thread: JoinHandle<()>| {
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(END_LOOK);
            }
            thread.is_finished() && thread.join().is_ok()
        };
        let named = |thread: &JoinHandle<()>| thread.thread().name().unwrap_or("a thread").to_owned();
        let ended = self.threads.drain(..).map(|thread| (named(&thread), ends_well(thread)));
        ended.filter(|(_, well)| !well).map(|(name, _)| name).collect()
    }
}

/// Says what could not be begun after an upgrade: the relay goes on without it.
fn report(begun: Result<(), ControlError>) {
    if let Err(error) = begun {
        tracing::error!(%error, "not as configured after the upgrade; reload to try again");
    }
}

/// Workers, their threads, and which processors they have.
type Threads = (Vec<WorkerHandle>, Vec<JoinHandle<()>>, Processors);

fn start_workers(
    config: &Config,
    (clock, vital): (Clock, &Vital),
    told: &Demanders,
) -> Result<Threads, ControlError> {
    let processors = Processors::of(&config.limits)?;
    processors.clear()?;
    let start = |number: usize| {
        let place = (number, processors.clone());
        WorkerHandle::start(place, (clock, vital.clone()), config, told.clone())
    };
    // All at once: the kernel takes its time to check the programs of each.
    let starting = (0..processors.workers).map(start).collect::<Result<Vec<_>, _>>()?;
    let started = starting.into_iter().map(StartingWorker::ready).collect::<Result<Vec<_>, _>>()?;
    let (workers, threads) = started.into_iter().unzip();
    Ok((workers, threads, processors))
}

/// The tasks that look after what is there, whatever the fronts.
fn watching(control: &Control, show: impl Future<Output = ()> + Send + 'static) -> Tasks {
    let mut tasks = Tasks::default();
    tasks.run("the control task", show);
    tasks.run("the task that tends replicas", tend(control.clone()));
    tasks.run("the task that watches grants", grants::watch(control.clone()));
    tasks.run("the task that asks the hook", outflow_door::ask_again(control.door().clone()));
    tasks.run("the task that keeps keys", outflow_door::keep_keys(control.door().clone()));
    tasks.run("the task that looks for overload", shedding::watch(control.clone()));
    tasks
}

/// A front opens its listeners.
async fn listen(front: &dyn Front, control: &Control, tasks: &mut Tasks) -> Result<(), ControlError> {
    let listening = front.listen(control.clone()).await?;
    listening.into_iter().for_each(|task| tasks.run(format!("a listener of {}", name(front)), task));
    Ok(())
}

/// Begins what runs beside the streams.
async fn start_fronts(control: &Control, tasks: &mut Tasks) -> Result<(), ControlError> {
    for front in control.fronts().iter() {
        let started = front.start(control.clone()).await?;
        started.into_iter().for_each(|task| tasks.run(format!("a task of {}", name(&**front)), task));
    }
    Ok(())
}

/// What a front is called in the code, without what it holds.
fn name(front: &dyn Front) -> String {
    format!("{front:?}").chars().take_while(|char| char.is_alphanumeric()).collect()
}

/// Puts the workers' snapshots together, a few times a second.
async fn show(control: Control, clock: Clock, told: watch::Sender<Arc<RelayState>>) {
    let mut usage = Usage::start();
    let mut ticks = tokio::time::interval(SNAPSHOT_EVERY);
    loop {
        ticks.tick().await;
        control.health().control_goes_on();
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
            rtcp_strangers: parts.iter().map(|part| part.rtcp_strangers).sum(),
            as_of: parts.iter().map(|part| part.as_of).min().unwrap_or_default(),
        }));
    }
}

/// Lets replicas of streams go that no receiver needs any more.
async fn tend(control: Control) {
    let mut ticks = tokio::time::interval(REPLICA_LINGER / 5);
    loop {
        ticks.tick().await;
        let rest = |owner: Owner| control.workers().tell(&owner, Command::Rest { stream: owner.stream });
        control.registry().rest_idle(Instant::now(), rest);
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
            ConfigChange::Reload { allow_empty } => supervisor.reload(allow_empty).await,
            ConfigChange::Limits { stream, limits } => supervisor.set_limits(&stream, limits).await,
            ConfigChange::Adopt { stream, source } => supervisor.adopt(&stream, source).await,
            ConfigChange::Abandon { stream } => supervisor.abandon(&stream).await,
            ConfigChange::Upgrade => {
                let given = upgrade::give(supervisor.control(), supervisor.adopted()).await;
                let is_over = given.is_ok();
                if let Err(error) = &given {
                    tracing::error!(%error, "no upgrade");
                }
                let _ = reply.send(given);
                if is_over {
                    return decline(requests).await;
                }
                continue;
            }
            ConfigChange::Services { stream, elements, branches } => {
                supervisor.set_services(&stream, elements, branches).await
            }
        };
        // The caller that asked may be gone; the log has told the changes.
        let _ = reply.send(result);
    }
}

/// Another process has the relay, and is the one to be asked.
async fn decline(mut requests: mpsc::Receiver<ConfigRequest>) {
    while let Some(ConfigRequest { reply, .. }) = requests.recv().await {
        let _ = reply.send(Err(ControlError::HandedOver));
    }
}
