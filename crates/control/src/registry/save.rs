//! What another process has to know of streams, receivers and publishers.

use outflow_door::Grant;
use outflow_engine::message::{ControlError, ReceiverId, StreamId};

use super::Registry;
use crate::placing::{Admitted, Placing, Ready, Replication, Terms};
use crate::session::SessionToken;
use crate::turn::Turn;
use crate::workers::Owner;

/// A receiver, as it was written down.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) id: ReceiverId,
    pub(crate) stream: String,
    pub(crate) worker: usize,
    pub(crate) session: Option<SessionToken>,
    pub(crate) grant: Option<Grant>,
}

/// A publisher's turn, as it was written down.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) stream: String,
    pub(crate) turn: Turn,
    /// Whether the stream's source is what publishers bring.
    pub(crate) is_pushed: bool,
}

impl Registry {
    /// Streams, and the workers that own them.
    pub(crate) fn places(&self) -> Vec<(String, usize)> {
        let book = self.book();
        book.streams.iter().map(|(name, listed)| (name.clone(), listed.entry.owner.worker)).collect()
    }

    /// All receivers.
    pub(crate) fn entered(&self) -> Vec<Entered> {
        let book = self.book();
        let entered = book.receivers.iter().map(|(&id, receiver)| Entered {
            id,
            stream: receiver.stream.clone(),
            worker: receiver.owner.worker,
            session: receiver.session,
            grant: receiver.grant.clone(),
        });
        entered.collect()
    }

    /// How many receivers there are.
    pub(crate) fn receivers(&self) -> usize {
        self.book().receivers.len()
    }

    /// All turns of publishers.
    pub(crate) fn written(&self) -> Vec<Written> {
        let book = self.book();
        let written = book.streams.iter().filter_map(|(name, listed)| {
            let (stream, is_pushed) = (name.clone(), listed.entry.is_pushed);
            let turn = listed.entry.publisher.clone()?;
            Some(Written { stream, turn, is_pushed })
        });
        written.collect()
    }

    /// A receiver of another process is written down, wherever it was served. Its stream begins there if it is not.
    pub(crate) fn enter(
        &self,
        entered: Entered,
        number: impl FnOnce() -> StreamId,
        replicate: impl FnOnce(Replication) -> Ready,
    ) -> Result<Owner, ControlError> {
        let Entered { id, stream, worker, session, grant } = entered;
        let placing = Placing { workers: worker + 1, split: usize::MAX };
        let terms = Terms { relay_max: usize::MAX, placing, worker: Some(worker) };
        let Admitted { owner, .. } = self.admit(&stream, id, terms, number, replicate)?;
        self.keep(id, grant);
        session.into_iter().for_each(|session| self.open_session(id, session));
        Ok(owner)
    }

    /// A publisher of another process goes on with its turn.
    pub(crate) fn write(&self, stream: &str, turn: Turn) {
        self.update(stream, |entry| entry.publisher = Some(turn));
    }
}
