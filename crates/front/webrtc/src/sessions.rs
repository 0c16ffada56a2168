//! Sessions of viewers, by the names that they were told.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_engine::system::random_bytes;
use tokio::sync::oneshot;

/// All of them.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<String, Session>>);

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
    name: String,
    /// Its peer wants it to end.
    pub(crate) ended: oneshot::Receiver<()>,
}

impl Sessions {
    /// One more, by a name that cannot be guessed, of a peer that is called so in checks.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn open(self: &Arc<Self>, peer: &str) -> std::io::Result<Place> {
        let name = format!("{:032x}", u128::from_be_bytes(random_bytes()?));
        let (end, ended) = oneshot::channel();
        self.all().insert(name.clone(), Session { _end: end, name: peer.to_owned() });
        Ok(Place { sessions: Arc::clone(self), name, ended })
    }

    /// Ends one. Answers whether there was one.
    pub(crate) fn end(&self, name: &str) -> bool {
        self.all().remove(name).is_some()
    }

    /// What the peer of one is called in checks.
    pub(crate) fn name_of(&self, name: &str) -> Option<String> {
        self.all().get(name).map(|session| session.name.clone())
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// What its peer knows it by.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.sessions.end(&self.name);
    }
}

/// Names are secrets of their peers.
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
        assert_ne!(one.name(), other.name());
        assert_eq!(sessions.name_of(one.name()).as_deref(), Some("one"));
        assert!(one.ended.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        assert!(sessions.end(one.name()) && !sessions.end(one.name()));
        assert_eq!(one.ended.try_recv(), Err(oneshot::error::TryRecvError::Closed), "it is told");
        let name = other.name().to_owned();
        drop(other);
        assert_eq!(sessions.name_of(&name), None);
    }
}
