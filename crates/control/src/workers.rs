//! The workers, as control speaks to them: what they are told and asked, and what connects them.

use std::sync::Arc;

use outflow_context::{Contexts, Line};
use outflow_engine::message::{Command, ControlError, Reply, StreamId};
use outflow_engine::{ReplicaEnd, WorkerHandle};
use outflow_vital::Vital;
use tokio::sync::oneshot;

/// Which worker a stream is with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) worker: usize,
    pub(crate) stream: StreamId,
}

/// The workers of a relay, and the contexts beside them.
#[derive(Debug)]
pub(crate) struct Workers {
    all: Vec<WorkerHandle>,
    contexts: Contexts,
}

impl Workers {
    /// These, and no contexts yet, of whose ends `vital` learns.
    pub(crate) fn new(all: Vec<WorkerHandle>, vital: Vital) -> Self {
        Workers { all, contexts: Contexts::new(vital) }
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &WorkerHandle> {
        self.all.iter()
    }

    /// The one of this number.
    pub(crate) fn get(&self, worker: usize) -> &WorkerHandle {
        &self.all[worker]
    }

    /// Sends a command whose effect needs no answer.
    pub(crate) fn tell(&self, owner: &Owner, command: Command) {
        self.get(owner.worker).send(command);
    }

    pub(crate) async fn ask<T>(
        &self,
        owner: &Owner,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, ControlError> {
        let (reply, answer) = oneshot::channel();
        self.tell(owner, command(reply));
        answer.await.map_err(|_| ControlError::ShuttingDown)?
    }

    /// Waits until the worker has done everything that it was told before.
    pub(crate) async fn settled(&self, owner: &Owner) {
        let (done, settled) = oneshot::channel();
        self.tell(owner, Command::Settle { done });
        // A worker that has ended has done all that it ever will.
        let _ = settled.await;
    }

    /// A line from a stream's worker through these contexts, and back.
    pub(crate) fn line(&self, owner: &Owner, contexts: &[(String, usize)]) -> Result<Line, ControlError> {
        let caller = Arc::new(self.get(owner.worker).caller(owner.stream));
        Ok(self.contexts.line(contexts, caller)?)
    }

    /// Lets streams hand their packets to another one, whose worker is told of the queues first. `knows`: that stream has
    /// all that has been before.
    pub(crate) fn feed(
        &self,
        from: &[Owner],
        (to, knows): (&Owner, bool),
        tell: impl FnOnce(Vec<ReplicaEnd>),
    ) {
        let queue = |owner: &Owner| {
            let upward = self.get(owner.worker).upward(owner.stream);
            self.get(to.worker).queue(to.stream, upward)
        };
        let (owner_ends, replica_ends): (Vec<_>, Vec<_>) = from.iter().map(queue).unzip();
        tell(replica_ends);
        for (owner, owner_end) in from.iter().zip(owner_ends) {
            self.tell(owner, Command::Share { stream: owner.stream, owner_end, knows });
        }
    }
}
