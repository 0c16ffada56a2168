//! Wrong tokens, by address: each may be followed by others at a bounded rate.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use tokio::time::Instant;

use crate::limits::{FAILING_ADDRESSES_MAX, FORGIVEN_EVERY, WRONG_TOKENS};

/// A token bucket for each address, as the time at which it is full again (GCRA): a failure puts that off.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    forgiven_at: BTreeMap<IpAddr, Instant>,
}

impl Failures {
    /// How long `peer` has to wait before what it shows is looked at again; `None` if it need not.
    pub(crate) fn wait(&self, now: Instant, peer: IpAddr) -> Option<Duration> {
        let forgiven_at = *self.forgiven_at.get(&subject(peer))?;
        let owed = forgiven_at.saturating_duration_since(now);
        owed.checked_sub(FORGIVEN_EVERY * (WRONG_TOKENS - 1)).filter(|wait| !wait.is_zero())
    }

    /// A wrong token has come from `peer`.
    pub(crate) fn count(&mut self, now: Instant, peer: IpAddr) {
        let peer = subject(peer);
        if self.forgiven_at.len() >= FAILING_ADDRESSES_MAX && !self.forgiven_at.contains_key(&peer) {
            self.make_room(now);
        }
        let forgiven_at = self.forgiven_at.entry(peer).or_insert(now);
        *forgiven_at = (*forgiven_at).max(now) + FORGIVEN_EVERY;
    }

    fn make_room(&mut self, now: Instant) {
        self.forgiven_at.retain(|_, forgiven_at| *forgiven_at > now);
        if self.forgiven_at.len() >= FAILING_ADDRESSES_MAX {
            let first = self.forgiven_at.iter().min_by_key(|(_, at)| **at).map(|(peer, _)| *peer);
            first.and_then(|peer| self.forgiven_at.remove(&peer));
        }
    }
}

/// What counts as one address: of IPv6, the network of 64 bits that one host may have all of.
fn subject(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(peer) => peer.into(),
        IpAddr::V6(peer) => Ipv6Addr::from_bits(peer.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUESSING: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[test]
    fn an_address_that_fails_too_often_waits_and_others_do_not() {
        let now = Instant::now();
        let mut failures = Failures::default();
        for _ in 0..WRONG_TOKENS {
            assert_eq!(failures.wait(now, GUESSING), None);
            failures.count(now, GUESSING);
        }
        assert_eq!(failures.wait(now, GUESSING), Some(FORGIVEN_EVERY));
        assert_eq!(failures.wait(now, IpAddr::from([10, 0, 0, 2])), None);
        let mapped = IpAddr::V6("::ffff:10.0.0.1".parse().expect("an address"));
        assert!(failures.wait(now, mapped).is_some(), "it is the same one");
    }

    #[test]
    fn an_address_that_goes_on_guessing_does_so_at_the_rate_of_forgiveness() {
        let start = Instant::now();
        let mut failures = Failures::default();
        let (mut now, mut tries) = (start, 0);
        while now < start + Duration::from_secs(600) {
            if failures.wait(now, GUESSING).is_none() {
                failures.count(now, GUESSING);
                tries += 1;
            }
            now += Duration::from_millis(100);
        }
        assert_eq!(tries, WRONG_TOKENS + 600 / FORGIVEN_EVERY.as_secs() as u32 - 1);
        let later = now + FORGIVEN_EVERY * WRONG_TOKENS;
        for _ in 0..WRONG_TOKENS {
            assert_eq!(failures.wait(later, GUESSING), None, "all is forgiven");
            failures.count(later, GUESSING);
        }
        assert!(failures.wait(later, GUESSING).is_some());
    }

    #[test]
    fn a_host_with_many_addresses_counts_once() {
        let now = Instant::now();
        let mut failures = Failures::default();
        let at = |text: &str| IpAddr::V6(text.parse().expect("an address"));
        for host in 0..WRONG_TOKENS {
            failures.count(now, at(&format!("2001:db8:1:2::{host:x}")));
        }
        assert!(failures.wait(now, at("2001:db8:1:2:ffff::1")).is_some());
        assert!(failures.wait(now, at("2001:db8:1:3::1")).is_none());
    }

    #[test]
    fn the_table_is_bounded_and_the_least_to_blame_are_forgotten_first() {
        let start = Instant::now();
        let mut failures = Failures::default();
        for _ in 0..WRONG_TOKENS {
            failures.count(start, GUESSING);
        }
        for n in 0..3 * FAILING_ADDRESSES_MAX as u32 {
            failures.count(start, IpAddr::from((0x0B00_0000 + n).to_be_bytes()));
        }
        assert_eq!(failures.forgiven_at.len(), FAILING_ADDRESSES_MAX);
        assert!(failures.wait(start, GUESSING).is_some(), "it is still known");
        let later = start + FORGIVEN_EVERY * WRONG_TOKENS;
        failures.count(later, IpAddr::from([10, 0, 0, 9]));
        assert_eq!(failures.forgiven_at.len(), 1, "what is forgiven takes no place");
    }
}
