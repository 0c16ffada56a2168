//! A handle on the driver: what others ask of this relay's part of the tree, and where pages find it.

use std::net::SocketAddr;
use std::sync::OnceLock;

use outflow_control::{Control, Reach, Task};
use outflow_door::{Pass, Permit};
use outflow_engine::message::{ControlError, DemandQueue};
use outflow_packet::Level;
use outflow_poc_socket::PocSocket;
use tokio::sync::{mpsc, oneshot};

use super::driver::Driver;
use super::input::Input;
use super::places::look_up;
use super::survey::survey;
use super::view::RelayView;
use crate::limits::INPUTS_MAX;

/// Where pages and connections find the relay's place in the tree; nothing without `[tree]`.
#[derive(Debug, Default)]
pub(crate) struct Attached(OnceLock<Tree>);

impl Attached {
    /// Pages and connections find this one from now on.
    pub(crate) fn set(control: &Control, tree: Tree) {
        // There is one tree.
        let _ = control.shared::<Attached>().0.set(tree);
    }

    pub(crate) fn of(control: &Control) -> Option<Tree> {
        control.shared::<Attached>().0.get().cloned()
    }

    /// The whole tree of relays, as far as it can be seen from this one; nothing without `[tree]`.
    pub(crate) async fn survey(control: &Control) -> Vec<RelayView> {
        match Attached::of(control) {
            Some(tree) => tree.survey().await,
            None => Vec::new(),
        }
    }
}

/// What others ask of this relay's part of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    inputs: mpsc::Sender<Input>,
}

impl Tree {
    /// Begins. What drives it is to be run by the caller, until the relay ends.
    ///
    /// # Errors
    /// An address that cannot be looked up, or files that cannot be read.
    pub(crate) async fn start(
        control: &Control,
        (name, address): (&str, &str),
        demands: DemandQueue,
    ) -> Result<(Tree, impl Future<Output = ()> + Send + use<>), ControlError> {
        let at = look_up(address).await?;
        let (inputs, queue) = mpsc::channel(INPUTS_MAX);
        let driver = Driver::new(control.clone(), (name, at), inputs.clone())?;
        tracing::info!(name, %at, relay = %driver.relay(), "this relay is one of a tree");
        Ok((Tree { inputs }, driver.run(queue, demands)))
    }

    async fn fetched(&self, stream: &str, level: Level) -> Result<(), ControlError> {
        let (reply, answer) = oneshot::channel();
        let reach = Input::Reach { stream: stream.to_owned(), level, reply };
        self.inputs.send(reach).await.map_err(|_| ControlError::ShuttingDown)?;
        match answer.await.map_err(|_| ControlError::ShuttingDown)? {
            true => Ok(()),
            false => Err(ControlError::UnknownStream(stream.to_owned())),
        }
    }

    /// All of the tree that can be seen from here.
    pub(crate) async fn survey(&self) -> Vec<RelayView> {
        survey(&self.inputs).await
    }

    /// Talks to a relay that wants to, from now on.
    pub(crate) async fn accept(&self, socket: PocSocket, from: SocketAddr, admitted: (Permit, Pass)) {
        // If the driver has ended, so has the relay.
        let _ = self.inputs.send(Input::Accepted { socket, from, admitted: Box::new(admitted) }).await;
    }
}

impl Reach for Tree {
    fn reach(&self, stream: String, level: Level) -> Task<Result<(), ControlError>> {
        let tree = self.clone();
        Box::pin(async move { tree.fetched(&stream, level).await })
    }
}
