//! How many TCP connections there may be, and what became of those that were not welcome.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use crate::control::Control;

/// Counts the connections of all listeners, in all and by address.
#[derive(Debug)]
pub(crate) struct Admission {
    control: Control,
    open: Mutex<Open>,
    accepted: AtomicU64,
    refused: AtomicU64,
    slow: AtomicU64,
    malformed: AtomicU64,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// What became of connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct ConnectionCounts {
    /// Open now.
    pub(crate) open: u64,
    /// Ever let in.
    pub(crate) accepted: u64,
    /// Closed at once, because a limit was reached.
    pub(crate) refused: u64,
    /// Closed because a request did not come in time.
    pub(crate) slow: u64,
    /// Closed because what came was no request.
    pub(crate) malformed: u64,
}

/// A place among the connections; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    address: IpAddr,
}

impl Admission {
    pub(crate) fn new(control: Control) -> Arc<Self> {
        Arc::new(Admission {
            control,
            open: Mutex::default(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
        })
    }

    /// A place for a connection from `address`; `None`, counted, if there are too many already.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Permit> {
        let limits = &self.control.config().limits;
        let address = address.to_canonical();
        let taken = self.open().take(address, limits.connections, limits.connections_per_address);
        let counter = if taken { &self.accepted } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        taken.then(|| Permit { admission: self.clone(), address })
    }

    /// What became of connections so far.
    pub(crate) fn counts(&self) -> ConnectionCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ConnectionCounts {
            open: self.open().total as u64,
            accepted: read(&self.accepted),
            refused: read(&self.refused),
            slow: read(&self.slow),
            malformed: read(&self.malformed),
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        // Numbers cannot be left half changed.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// The connection is ended because its request did not come in time.
    pub(crate) fn count_slow(&self) {
        self.admission.slow.fetch_add(1, Ordering::Relaxed);
    }

    /// The connection is ended because what came was no request.
    pub(crate) fn count_malformed(&self) {
        self.admission.malformed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.open().give_back(self.address);
    }
}

impl Open {
    fn take(&mut self, address: IpAddr, total_max: usize, address_max: usize) -> bool {
        let from_there = self.by_address.get(&address).copied().unwrap_or(0);
        if self.total >= total_max || from_there >= address_max {
            return false;
        }
        self.total += 1;
        self.by_address.insert(address, from_there + 1);
        true
    }

    fn give_back(&mut self, address: IpAddr) {
        self.total -= 1;
        if let Some(from_there) = self.by_address.get_mut(&address) {
            *from_there -= 1;
            if *from_there == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_limited_in_all_and_by_address() {
        let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut open = Open::default();
        assert!(open.take(a, 3, 2) && open.take(a, 3, 2) && !open.take(a, 3, 2));
        assert!(open.take(b, 3, 2) && !open.take(b, 3, 2));
        open.give_back(a);
        assert!(open.take(b, 3, 2));
        open.give_back(a);
        assert_eq!(open.by_address.len(), 1, "addresses without connections are forgotten");
    }
}
