//! Places of peers: how many there may be, of all and of one host.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_door::subject;

/// How many of each host there are.
#[derive(Debug)]
pub(crate) struct Hosts {
    most: usize,
    most_of_host: usize,
    taken: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A place among them; given back when dropped.
#[derive(Debug)]
pub(crate) struct HostPlace {
    all: Arc<Hosts>,
    host: IpAddr,
}

impl Hosts {
    /// Room for this number, and for this one of one host (of IPv6, a network of 64 bits).
    pub(crate) fn new(most: usize, most_of_host: usize) -> Self {
        Hosts { most, most_of_host, taken: Mutex::default() }
    }

    /// A place for one from there, if there is room.
    pub(crate) fn enter(self: &Arc<Self>, from: IpAddr) -> Option<HostPlace> {
        let host = subject(from);
        let mut taken = self.taken();
        // There are as many hosts as peers at most.
        let of_host = taken.get(&host).copied().unwrap_or(0);
        if of_host >= self.most_of_host || taken.values().sum::<usize>() >= self.most {
            return None;
        }
        taken.insert(host, of_host + 1);
        Some(HostPlace { all: Arc::clone(self), host })
    }

    /// How many places are taken.
    pub(crate) fn count(&self) -> usize {
        self.taken().values().sum()
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HostPlace {
    fn drop(&mut self) {
        let mut taken = self.all.taken();
        match taken.get_mut(&self.host) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.host)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn one_host_leaves_room_for_others_and_all_have_an_end() {
        let (most, of_host) = (20, 4);
        let all = Arc::new(Hosts::new(most, of_host));
        let mut places: Vec<_> = (0..of_host).filter_map(|_| all.enter(host(0))).collect();
        assert_eq!(places.len(), of_host);
        assert!(all.enter(host(0)).is_none() && all.enter(host(1)).is_some());
        places.pop();
        places.extend(all.enter(host(0)));
        assert_eq!(places.len(), of_host);
        let mut hosts = (1..).map(host).flat_map(|host| [host; 4]);
        places.extend(core::iter::from_fn(|| all.enter(hosts.next()?)));
        assert_eq!((places.len(), all.count()), (most, most));
        places.clear();
        assert_eq!(all.count(), 0);
    }

    #[test]
    fn a_network_of_ipv6_is_one_host() {
        let all = Arc::new(Hosts::new(9, 1));
        let enter = |text: &str| all.enter(text.parse().expect("an address"));
        let _place = enter("2001:db8:1:2::1").expect("there is room");
        assert!(enter("2001:db8:1:2:ffff::3").is_none() && enter("2001:db8:1:3::1").is_some());
    }
}
