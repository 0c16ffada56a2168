//! How many questions are open at once: in all, and for peers of one address, so that a stranger that asks for much
//! leaves places to others. Sessions have places of their own: they go on whatever strangers ask for.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{HOOK_OPEN_MAX, HOOK_OPEN_OF_ADDRESS, HOOK_OPEN_OF_SESSIONS};
use crate::subject::subject;

/// Places for questions of peers that want to come in.
#[derive(Debug)]
pub(super) struct Places {
    all: Arc<Semaphore>,
    /// Those of each address; as many as there are questions.
    of_address: Mutex<BTreeMap<IpAddr, Weak<Semaphore>>>,
}

/// A place; given back when dropped.
pub(super) struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_address: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new() -> Self {
        let all = Arc::new(Semaphore::new(HOOK_OPEN_MAX - HOOK_OPEN_OF_SESSIONS));
        Places { all, of_address: Mutex::default() }
    }

    /// Waits for a place. `None` if there will be none any more.
    pub(super) async fn take(&self, peer: IpAddr) -> Option<Place> {
        let own = self.of_address(subject(peer)).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Place { _of_all: of_all, _of_address: own })
    }

    fn of_address(&self, address: IpAddr) -> Arc<Semaphore> {
        // Each change is whole, or did not begin.
        let mut known = self.of_address.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, own| own.strong_count() > 0);
        let own = known.get(&address).and_then(Weak::upgrade);
        own.unwrap_or_else(|| {
            let own = Arc::new(Semaphore::new(HOOK_OPEN_OF_ADDRESS));
            known.insert(address, Arc::downgrade(&own));
            own
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn one_address_leaves_places_to_others() {
        let places = Places::new();
        let at = |host| IpAddr::from([10, 0, 0, host]);
        let take = |host| places.take(at(host)).now_or_never().flatten();
        let first: Vec<_> = std::iter::from_fn(|| take(1)).collect();
        assert_eq!(first.len(), HOOK_OPEN_OF_ADDRESS);
        let others: Vec<_> = (2..100).filter_map(take).collect();
        assert_eq!(first.len() + others.len(), HOOK_OPEN_MAX - HOOK_OPEN_OF_SESSIONS);
        drop(others);
        assert!(take(1).is_none() && take(2).is_some());
        drop(first);
        assert!(take(1).is_some());
        assert!(places.of_address.lock().expect("whole").len() <= 2, "what is given back takes no place");
    }
}
