//! Multicast by IGMP and DVMRP: hosts that join the group of a stream, and routers that lead to some, are sent
//! it, where and at the level that they want it.
//!
//! One task ([`task`]) has the driver (`outflow-multicast`) and turns what it tells into receivers, as those
//! that the configuration names: what is wanted where ([`demand`]) and which stream is what group ([`plan`])
//! say which there are to be. What the kernel forwards the relay does not send, and the other way round: the
//! plan says for each group whose it is, and the driver is told.

mod demand;
mod interfaces;
mod plan;
mod state;
mod task;

use std::net::Ipv4Addr;

use outflow_config::Config;
use outflow_routing::Level;
use tokio::sync::{mpsc, oneshot};

use self::plan::Plan;
pub use self::state::{
    MulticastDvmrp, MulticastFlow, MulticastGroup, MulticastInterface, MulticastLevel, MulticastNeighbour,
    MulticastNeighbours, MulticastRoute, MulticastSaid, MulticastSent, MulticastState, MulticastUpstream,
};
pub(crate) use self::task::run;
use crate::control::ControlError;
use crate::limits::MULTICAST_ASKS_MAX;

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
