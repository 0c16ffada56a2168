//! The hosts of an interface that are known individually.

use std::collections::BTreeMap;
use std::net::IpAddr;

use outflow_media::{Rate, Time, TokenBucket};

use crate::membership::limits::{MESSAGES_A_SECOND, MESSAGES_AT_ONCE, SWEEP_EVERY};

/// How fast a host's messages may come.
const RATE: Rate = Rate::per_second(MESSAGES_A_SECOND as u64);
/// Messages that may come at once.
const BURST: TokenBucket = TokenBucket::new(MESSAGES_AT_ONCE as u64);

#[derive(Debug)]
struct Host {
    groups: usize,
    messages: TokenBucket,
}

impl Host {
    /// Whether nothing is lost if it is forgotten.
    fn is_idle(&mut self, now: Time) -> bool {
        self.messages.fill(now, RATE);
        self.groups == 0 && self.messages.is_full()
    }
}

/// What is done with a message of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is known individually.
    Known,
    /// There is no place for it.
    Stranger,
    /// It is one message too many.
    TooOften,
}

/// The hosts, by the address that they send from.
#[derive(Debug)]
pub(super) struct Hosts {
    hosts: BTreeMap<IpAddr, Host>,
    hosts_max: usize,
    groups_max: usize,
    strangers: TokenBucket,
    swept: Time,
}

impl Hosts {
    pub(super) const fn new(hosts_max: usize, groups_max: usize) -> Self {
        Hosts { hosts: BTreeMap::new(), hosts_max, groups_max, strangers: BURST, swept: Time::ZERO }
    }

    pub(super) fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Counts a message, and remembers the host if there is a place.
    pub(super) fn hear(&mut self, address: IpAddr, now: Time) -> Heard {
        if !self.hosts.contains_key(&address) && self.hosts.len() >= self.hosts_max {
            if self.swept + SWEEP_EVERY <= now {
                self.swept = now;
                self.hosts.retain(|_, host| !host.is_idle(now));
            }
            if self.hosts.len() >= self.hosts_max {
                return if self.strangers.pass(now, RATE) { Heard::Stranger } else { Heard::TooOften };
            }
        }
        let host = self.hosts.entry(address).or_insert(Host { groups: 0, messages: BURST });
        if host.messages.pass(now, RATE) { Heard::Known } else { Heard::TooOften }
    }

    /// Whether a host is known.
    pub(super) fn is_known(&self, address: IpAddr) -> bool {
        self.hosts.contains_key(&address)
    }

    /// Whether a host is known, and may be a member of one more group.
    pub(super) fn has_place(&self, address: IpAddr) -> bool {
        self.hosts.get(&address).is_some_and(|host| host.groups < self.groups_max)
    }

    /// It became a member of a group.
    pub(super) fn join(&mut self, address: IpAddr) {
        if let Some(host) = self.hosts.get_mut(&address) {
            host.groups += 1;
        }
    }

    /// It is no longer a member of a group.
    pub(super) fn leave(&mut self, address: IpAddr, now: Time) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        host.groups -= 1;
        if host.is_idle(now) {
            self.hosts.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn host(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from(0x0a00_0000 + number).into()
    }

    #[test]
    fn a_host_that_floods_is_refused_and_others_are_not() {
        let (mut hosts, now) = (Hosts::new(10, 10), Time::from_millis(1));
        let taken = (0..5000).filter(|_| hosts.hear(host(1), now) == Heard::Known).count();
        assert_eq!(taken, MESSAGES_AT_ONCE as usize);
        assert_eq!(hosts.hear(host(2), now), Heard::Known);
        let later = now + Duration::from_secs(1);
        let taken = (0..5000).filter(|_| hosts.hear(host(1), later) == Heard::Known).count();
        assert_eq!(taken, MESSAGES_A_SECOND as usize);
    }

    #[test]
    fn hosts_of_no_group_make_place_for_others() {
        let mut hosts = Hosts::new(2, 1);
        let now = Time::from_millis(2000);
        assert_eq!([1, 2, 3].map(|number| hosts.hear(host(number), now)), {
            [Heard::Known, Heard::Known, Heard::Stranger]
        });
        hosts.join(host(1));
        assert!(!hosts.has_place(host(1)) && hosts.has_place(host(2)) && !hosts.has_place(host(3)));
        let later = now + SWEEP_EVERY;
        assert_eq!(hosts.hear(host(3), later), Heard::Known, "in the place of 2");
        assert_eq!(hosts.hear(host(2), later), Heard::Stranger);
        hosts.leave(host(1), later);
        assert_eq!(hosts.hear(host(2), later), Heard::Known);
        assert_eq!(hosts.len(), 2);
    }
}
