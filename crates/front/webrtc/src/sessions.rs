//! Sessions of viewers and publishers, by the tokens that they were told.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_control::SessionToken;
use outflow_engine::message::ControlError;
use tokio::sync::oneshot;

/// All of them.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<SessionToken, Session>>);

struct Session {
    /// Dropped when it is to end.
    _end: oneshot::Sender<()>,
    /// What the peer is called in checks.
    name: String,
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

impl Sessions {
    /// One more, of a peer that is called so in checks.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn open(self: &Arc<Self>, peer: &str) -> Result<Place, ControlError> {
        Ok(self.resume(SessionToken::new()?, peer))
    }

    /// One of another process, which goes on.
    pub(crate) fn resume(self: &Arc<Self>, token: SessionToken, peer: &str) -> Place {
        let (end, ended) = oneshot::channel();
        self.all().insert(token, Session { _end: end, name: peer.to_owned() });
        Place { sessions: Arc::clone(self), token, ended }
    }

    /// Ends the one of this token. Answers whether there was one.
    pub(crate) fn end(&self, token: &str) -> bool {
        token.parse().is_ok_and(|token: SessionToken| self.all().remove(&token).is_some())
    }

    /// What the peer of one is called in checks.
    pub(crate) fn name_of(&self, token: &str) -> Option<String> {
        self.all().get(&token.parse().ok()?).map(|session| session.name.clone())
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
        let [mut one, other] = ["one", "other"].map(|peer| sessions.open(peer).expect("randomness"));
        let [first, second] = [&one, &other].map(|place| place.token.to_string());
        assert_ne!(first, second);
        assert_eq!(sessions.name_of(&first).as_deref(), Some("one"));
        assert!(one.ended.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        assert!(sessions.end(&first) && !sessions.end(&first));
        assert_eq!(one.ended.try_recv(), Err(oneshot::error::TryRecvError::Closed), "it is told");
        drop(other);
        assert_eq!(sessions.name_of(&second), None);
        let place = sessions.resume(second.parse().expect("a token"), "other");
        assert_eq!(
            (place.token.to_string(), sessions.name_of(&second).as_deref()),
            (second.clone(), Some("other"))
        );
    }
}
