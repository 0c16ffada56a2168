//! Multicast by IGMP and DVMRP: hosts that join the group of a stream, and routers that lead to some, are sent
//! it, where and at the level that they want it.
//!
//! One task ([`task`]) has the driver (`outflow-multicast`) and turns what it tells into receivers, as those
//! that the configuration names: what is wanted where ([`demand`]) and which stream is what group ([`plan`])
//! say which there are to be. What the kernel forwards the relay does not send, and the other way round: the
//! plan says for each group whose it is, and the driver is told.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

mod demand;
mod interfaces;
mod limits;
mod metrics;
mod pages;
mod plan;
mod settings;
mod state;
mod task;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use outflow_api::{Page, Pages};
use outflow_config::{Config, Protocol};
use outflow_control::{Control, Front, Started, Task};
use outflow_engine::message::ControlError;
use outflow_routing::Level;
use tokio::sync::{mpsc, oneshot};

use self::plan::Plan;
pub use self::state::{
    MulticastDvmrp, MulticastFlow, MulticastGroup, MulticastInterface, MulticastLevel, MulticastNeighbour,
    MulticastNeighbours, MulticastRoute, MulticastSaid, MulticastSent, MulticastState, MulticastUpstream,
};
use limits::MULTICAST_ASKS_MAX;

/// Multicast by IGMP and DVMRP: `[multicast]`.
pub fn front() -> Arc<dyn Front> {
    let (handle, asks) = Multicast::new();
    Arc::new(Groups { handle, asks: Mutex::new(Some(asks)) })
}

#[derive(Debug)]
struct Groups {
    handle: Multicast,
    /// What the task reads, once it runs.
    asks: Mutex<Option<mpsc::Receiver<Ask>>>,
}

impl Front for Groups {
    fn protocol(&self) -> Protocol {
        settings::protocol()
    }

    fn attach(&self, control: &Control) {
        // There is one front of a kind.
        let _ = control.shared::<Attached>().0.set(self.handle.clone());
        let measure = Some(metrics::measure as outflow_api::Measure);
        control.shared::<Pages>().add(Page { guarded: pages::guarded(), open: pages::open(), measure });
    }

    fn start(&self, control: Control) -> Started {
        let asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner).take();
        let run = |asks| Box::pin(task::run(control, asks)) as Task<()>;
        Box::pin(std::future::ready(Ok(asks.map(run).into_iter().collect())))
    }

    fn configure(&self, config: Arc<Config>) -> Task<Result<(), ControlError>> {
        let handle = self.handle.clone();
        Box::pin(async move { handle.set(&config).await })
    }
}

/// Where pages and metrics find the task.
#[derive(Debug, Default)]
pub(crate) struct Attached(OnceLock<Multicast>);

impl Attached {
    /// The handle of a relay's task.
    ///
    /// # Errors
    /// The relay is shutting down.
    pub(crate) fn of(control: &Control) -> Result<Multicast, ControlError> {
        control.shared::<Attached>().0.get().cloned().ok_or(ControlError::ShuttingDown)
    }
}

/// What can be asked of the task.
#[derive(Debug)]
pub(crate) enum Ask {
    /// To do as the configuration says from now on.
    Plan(Box<Plan>, oneshot::Sender<Result<(), ControlError>>),
    /// What there is.
    State(oneshot::Sender<MulticastState>),
    /// A host says which level it wants of a group.
    SayLevel(LevelSaid, oneshot::Sender<Result<MulticastSaid, ControlError>>),
}

/// Which level a host wants of a group that it is a member of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LevelSaid {
    pub(crate) host: Ipv4Addr,
    pub(crate) group: Ipv4Addr,
    pub(crate) level: Level,
}

/// A handle on the task; clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Multicast {
    asks: mpsc::Sender<Ask>,
}

impl Multicast {
    /// A handle, and what [`run`] reads.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Ask>) {
        let (asks, queue) = mpsc::channel(MULTICAST_ASKS_MAX);
        (Multicast { asks }, queue)
    }

    /// Does as this configuration says from now on. Interfaces that are not there are taken when they come.
    ///
    /// # Errors
    /// The system does not let the relay route multicast; it says why. It is tried again and again.
    pub(crate) async fn set(&self, config: &Config) -> Result<(), ControlError> {
        let (reply, answer) = oneshot::channel();
        let ask = Ask::Plan(Box::new(Plan::new(config)), reply);
        self.asks.send(ask).await.map_err(|_| ControlError::ShuttingDown)?;
        answer.await.map_err(|_| ControlError::ShuttingDown)?
    }

    /// A host wants this level from now on, as long as it is a member.
    ///
    /// # Errors
    /// It is not known as one, or says too much.
    pub(crate) async fn say_level(&self, said: LevelSaid) -> Result<MulticastSaid, ControlError> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(Ask::SayLevel(said, reply)).await.map_err(|_| ControlError::ShuttingDown)?;
        answer.await.map_err(|_| ControlError::ShuttingDown)?
    }

    /// What there is now.
    ///
    /// # Errors
    /// The relay is shutting down.
    pub(crate) async fn state(&self) -> Result<MulticastState, ControlError> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(Ask::State(reply)).await.map_err(|_| ControlError::ShuttingDown)?;
        answer.await.map_err(|_| ControlError::ShuttingDown)
    }
}
