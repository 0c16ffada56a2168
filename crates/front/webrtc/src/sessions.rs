//! Sessions of viewers and publishers, by the tokens that they were told.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_control::SessionToken;
use outflow_engine::message::{ControlError, ReceiverId};
use tokio::sync::oneshot;

use crate::restart::Restarts;
use crate::site::Names;

/// All of them.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<SessionToken, Session>>);

struct Session {
    /// Dropped when it is to end.
    _end: oneshot::Sender<()>,
    known: Known,
    /// The peer's end is told names by this.
    restarts: Restarts,
}

/// What is known of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its number at the port.
    pub(crate) id: ReceiverId,
    /// What the peer is called in checks.
    pub(crate) name: String,
    /// Counts the credentials that it has had.
    pub(crate) version: u32,
}

/// A session's place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    sessions: Arc<Sessions>,
    /// What its peer knows it by.
    pub(crate) token: SessionToken,
    /// Its peer wants it to end.
    pub(crate) ended: oneshot::Receiver<()>,
}

/// A place, and what the peer's end is told names by.
pub(crate) type Opened = (Place, Restarts);

impl Sessions {
    /// One more, of a peer with this number that is called so in checks.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn open(self: &Arc<Self>, id: ReceiverId, peer: &str) -> Result<Opened, ControlError> {
        Ok(self.resume(SessionToken::new()?, id, peer))
    }

    /// One of another process, which goes on.
    pub(crate) fn resume(self: &Arc<Self>, token: SessionToken, id: ReceiverId, peer: &str) -> Opened {
        let ((end, ended), restarts) = (oneshot::channel(), Restarts::default());
        let known = Known { id, name: peer.to_owned(), version: 1 };
        self.all().insert(token, Session { _end: end, known, restarts: restarts.clone() });
        (Place { sessions: Arc::clone(self), token, ended }, restarts)
    }

    /// The one of this token goes on by other names. Answers how many it has had then; none if there is no such session.
    pub(crate) fn restart(&self, token: &str, names: Names) -> Option<u32> {
        let mut all = self.all();
        let Session { known, restarts, .. } = all.get_mut(&token.parse().ok()?)?;
        (known.name, known.version) = (names.theirs.ufrag.clone(), known.version + 1);
        restarts.tell(names);
        Some(known.version)
    }

    /// Ends the one of this token. Answers whether there was one.
    pub(crate) fn end(&self, token: &str) -> bool {
        token.parse().is_ok_and(|token: SessionToken| self.all().remove(&token).is_some())
    }

    /// What is known of one.
    pub(crate) fn known(&self, token: &str) -> Option<Known> {
        self.all().get(&token.parse().ok()?).map(|session| session.known.clone())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SessionToken, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.sessions.all().remove(&self.token);
    }
}

/// There may be thousands.
impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_there_until_one_of_both_ends_it() {
        let sessions = Arc::<Sessions>::default();
        let open = |(id, peer)| sessions.open(id, peer).expect("randomness");
        let [(mut one, _), (other, _)] = [(1, "one"), (2, "other")].map(open);
        let name_of = |token: &str| sessions.known(token).map(|known| (known.id, known.name));
        let [first, second] = [&one, &other].map(|place| place.token.to_string());
        assert_ne!(first, second);
        assert_eq!(name_of(&first), Some((1, "one".to_owned())));
        assert!(one.ended.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        assert!(sessions.end(&first) && !sessions.end(&first));
        assert_eq!(one.ended.try_recv(), Err(oneshot::error::TryRecvError::Closed), "it is told");
        drop(other);
        assert_eq!(name_of(&second), None);
        let (place, _) = sessions.resume(second.parse().expect("a token"), 2, "other");
        assert_eq!((&place.token.to_string(), name_of(&second)), (&second, Some((2, "other".to_owned()))));
    }
}
