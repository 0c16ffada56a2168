//! A handle on the task: what can be asked of it, and where pages and metrics find it.

use std::net::IpAddr;
use std::sync::OnceLock;

use outflow_config::Config;
use outflow_control::Control;
use outflow_engine::message::ControlError;
use outflow_routing::Level;
use tokio::sync::{mpsc, oneshot};

use crate::described;
use crate::filtering::Filtering;
use crate::limits::MULTICAST_ASKS_MAX;
use crate::plan::Plan;
use crate::state::{MulticastReported, MulticastState};

/// Where pages and metrics find the task.
#[derive(Debug, Default)]
pub(crate) struct Attached(OnceLock<Handle>);

impl Attached {
    /// Pages and metrics find this one from now on; the first one stays.
    pub(crate) fn set(control: &Control, handle: Handle) {
        // There is one front of a kind.
        let _ = control.shared::<Attached>().0.set(handle);
    }

    /// The handle of a relay's task.
    ///
    /// # Errors
    /// The relay is shutting down.
    pub(crate) fn of(control: &Control) -> Result<Handle, ControlError> {
        control.shared::<Attached>().0.get().cloned().ok_or(ControlError::ShuttingDown)
    }
}

/// What can be asked of the task.
#[derive(Debug)]
pub(crate) enum Ask {
    /// To do as the configuration says from now on.
    Plan(Box<Plan>, Filtering, oneshot::Sender<Result<(), ControlError>>),
    /// What there is.
    State(oneshot::Sender<MulticastState>),
    /// A host says which level it wants of a group.
    SayLevel(ReportedLevel, oneshot::Sender<Result<MulticastReported, ControlError>>),
}

/// Which level a host wants of a group that it is a member of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReportedLevel {
    pub(crate) host: IpAddr,
    pub(crate) group: IpAddr,
    pub(crate) level: Level,
}

/// A handle on the task; clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    asks: mpsc::Sender<Ask>,
}

impl Handle {
    /// A handle, and what the task reads.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Ask>) {
        let (asks, queue) = mpsc::channel(MULTICAST_ASKS_MAX);
        (Handle { asks }, queue)
    }

    /// Does as this configuration says from now on. Interfaces that are not there are taken when they come.
    ///
    /// # Errors
    /// The system does not let the relay route multicast; it says why. It is tried again and again. Or a session
    /// description cannot be read.
    pub(crate) async fn set(&self, config: &Config, filter: Filtering) -> Result<(), ControlError> {
        let (reply, answer) = oneshot::channel();
        let plan = Plan::new(config);
        let described = described::read(&plan.settings)?;
        let ask = Ask::Plan(Box::new(Plan { described, ..plan }), filter, reply);
        self.asks.send(ask).await.map_err(|_| ControlError::ShuttingDown)?;
        answer.await.map_err(|_| ControlError::ShuttingDown)?
    }

    /// A host wants this level from now on, as long as it is a member.
    ///
    /// # Errors
    /// It is not known as one, or says too much.
    pub(crate) async fn say_level(&self, said: ReportedLevel) -> Result<MulticastReported, ControlError> {
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
