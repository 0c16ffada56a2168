//! How many connections there may be, and what became of those that were not welcome.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use crate::refused::Refused;
use crate::spare::{Hurried, Spare};
use crate::subject::subject;

/// Counts the connections of all fronts, in all and by address.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    open: Mutex<Open>,
    accepted: AtomicU64,
    refused: AtomicU64,
    slow: AtomicU64,
    malformed: AtomicU64,
    hurried: AtomicU64,
    spare: Arc<Spare>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// What became of connections, and of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = ConnectionCounts)]
pub struct Counts {
    /// Open now.
    pub open: u64,
    /// Ever let in.
    pub accepted: u64,
    /// Refused, because a limit was reached.
    pub refused: u64,
    /// Closed because a request did not come in time.
    pub slow: u64,
    /// Closed because what came was no request.
    pub malformed: u64,
    /// Served in a hurry, because there were hardly any descriptors left.
    pub hurried: u64,
    /// Tokens and passwords that were wrong.
    pub wrong_tokens: u64,
    /// Requests refused because too many wrong tokens had come from their address.
    pub too_often: u64,
    /// Sessions ended because what had let them in holds no longer: a token was taken out, or has expired.
    pub revoked: u64,
    /// Questions to the hook of `[access.hook]` that it has not answered well.
    pub hook_failed: u64,
}

/// A place among the connections; given back when dropped.
#[derive(Debug)]
pub struct Permit {
    admission: Arc<Admission>,
    address: IpAddr,
    hurried: Option<Hurried>,
}

impl Admission {
    pub(crate) fn admit(
        self: &Arc<Self>,
        address: IpAddr,
        total_max: usize,
        address_max: usize,
    ) -> Result<Permit, Refused> {
        let address = subject(address);
        let taken = self.open().take(address, total_max, address_max);
        let counter = if taken.is_ok() { &self.accepted } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        taken.map(|()| Permit { admission: self.clone(), address, hurried: None })
    }

    /// A connection is closed though there is a place for it.
    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// What is kept for when descriptors run out.
    pub(crate) fn spare(&self) -> &Spare {
        &self.spare
    }

    pub(crate) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            open: self.open().total as u64,
            accepted: read(&self.accepted),
            refused: read(&self.refused),
            slow: read(&self.slow),
            malformed: read(&self.malformed),
            hurried: read(&self.hurried),
            ..Counts::default()
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        // Numbers cannot be left half changed.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// The connection is served in a hurry.
    pub(crate) fn hurry(mut self) -> Self {
        self.admission.hurried.fetch_add(1, Ordering::Relaxed);
        self.hurried = Some(self.admission.spare.hurry());
        self
    }

    /// Of a connection that is served in a hurry, what waits until its time is over; it is to be closed then.
    pub fn over(&mut self) -> Option<impl Future<Output = ()> + Send + use<>> {
        self.hurried.as_mut().map(Hurried::over)
    }

    /// The connection is ended because its request did not come in time.
    pub fn count_slow(&self) {
        self.admission.slow.fetch_add(1, Ordering::Relaxed);
    }

    /// The connection is ended because what came was no request.
    pub fn count_malformed(&self) {
        self.admission.malformed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.open().give_back(self.address);
    }
}

impl Open {
    fn take(&mut self, address: IpAddr, total_max: usize, address_max: usize) -> Result<(), Refused> {
        let from_there = self.by_address.get(&address).copied().unwrap_or(0);
        if self.total >= total_max {
            let (what, key) = ("the connections", "limits.connections");
            return Err(Refused::Full { what, limit: total_max, key });
        }
        if from_there >= address_max {
            let (what, key) = ("the connections from one address", "limits.connections_per_address");
            return Err(Refused::Full { what, limit: address_max, key });
        }
        self.total += 1;
        self.by_address.insert(address, from_there + 1);
        Ok(())
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
        let take = |open: &mut Open, address| open.take(address, 3, 2).is_ok();
        assert!(take(&mut open, a) && take(&mut open, a) && !take(&mut open, a));
        assert!(take(&mut open, b) && !take(&mut open, b));
        open.give_back(a);
        assert!(take(&mut open, b));
        open.give_back(a);
        assert_eq!(open.by_address.len(), 1, "addresses without connections are forgotten");
    }

    #[test]
    fn a_host_with_many_addresses_counts_once() {
        let admission = Arc::new(Admission::default());
        let admit = |text: &str| admission.admit(text.parse().expect("an address"), 9, 2);
        let _places =
            [admit("2001:db8:1:2::1").expect("a place"), admit("2001:db8:1:2::2").expect("a place")];
        assert!(admit("2001:db8:1:2:ffff::3").is_err());
        assert!(admit("2001:db8:1:3::1").is_ok());
    }
}
