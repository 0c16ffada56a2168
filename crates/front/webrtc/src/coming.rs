//! Peers that have got an answer and have not come yet: how many there may be, of all and of one host.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_door::subject;

use crate::limits::{COMING_MAX, COMING_OF_HOST_MAX};

/// How many of each host there are.
#[derive(Debug, Default)]
pub(crate) struct Coming(Mutex<BTreeMap<IpAddr, usize>>);

/// A place among them; given back when dropped.
#[derive(Debug)]
pub(crate) struct ComingPlace {
    all: Arc<Coming>,
    host: IpAddr,
}

impl Coming {
    /// A place for one from there, if there is room.
    pub(crate) fn enter(self: &Arc<Self>, from: IpAddr) -> Option<ComingPlace> {
        let host = subject(from);
        let mut hosts = self.hosts();
        // There are as many hosts as peers at most.
        let of_host = hosts.get(&host).copied().unwrap_or(0);
        if of_host >= COMING_OF_HOST_MAX || hosts.values().sum::<usize>() >= COMING_MAX {
            return None;
        }
        hosts.insert(host, of_host + 1);
        Some(ComingPlace { all: Arc::clone(self), host })
    }

    /// Whether there are none.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.hosts().is_empty()
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ComingPlace {
    fn drop(&mut self) {
        let mut hosts = self.all.hosts();
        match hosts.get_mut(&self.host) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(hosts.remove(&self.host)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: usize) -> IpAddr {
        IpAddr::from([10, 0, (number >> 8) as u8, number as u8])
    }

    #[test]
    fn one_host_leaves_room_for_others_and_all_have_an_end() {
        let all = Arc::<Coming>::default();
        let mut places: Vec<_> = (0..COMING_OF_HOST_MAX).filter_map(|_| all.enter(host(0))).collect();
        assert_eq!(places.len(), COMING_OF_HOST_MAX);
        assert!(all.enter(host(0)).is_none() && all.enter(host(1)).is_some());
        places.pop();
        places.extend(all.enter(host(0)));
        assert_eq!(places.len(), COMING_OF_HOST_MAX);
        let mut hosts = (1..).map(host).flat_map(|host| [host; COMING_OF_HOST_MAX]);
        places.extend(core::iter::from_fn(|| all.enter(hosts.next()?)));
        assert_eq!(places.len(), COMING_MAX);
        places.clear();
        assert!(all.is_empty());
    }
}
