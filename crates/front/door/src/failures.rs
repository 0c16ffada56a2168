//! Wrong tokens, by address: each may be followed by others at a bounded rate.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use outflow_media::{Rate, Time, TokenBucket};
use tokio::time::Instant;

use crate::limits::{FAILING_ADDRESSES_MAX, FORGIVEN_EVERY, WRONG_TOKENS};
use crate::seldom::Seldom;
use crate::subject::subject;

/// How fast wrong tokens are forgiven.
const FORGIVEN: Rate = Rate::one_every(FORGIVEN_EVERY);

/// The wrong tokens that each address may still show.
#[derive(Debug)]
pub(crate) struct Failures {
    began: Instant,
    left: BTreeMap<IpAddr, Left>,
}

/// What an address has left.
#[derive(Debug)]
struct Left {
    tokens: TokenBucket,
    /// Each address has its own lines in the log, so that one that guesses hides no other.
    log: Seldom,
}

impl Failures {
    /// Without any, from `began` on.
    pub(crate) const fn new(began: Instant) -> Self {
        Failures { began, left: BTreeMap::new() }
    }

    /// How long `peer` has to wait before what it shows is looked at again; `None` if it need not.
    pub(crate) fn wait(&self, now: Instant, peer: IpAddr) -> Option<Duration> {
        let mut left = self.left.get(&subject(peer))?.tokens;
        left.fill(self.at(now), FORGIVEN);
        Some(left.wait_for(1, FORGIVEN)).filter(|wait| !wait.is_zero())
    }

    /// A wrong token has come from `peer`. If a line of the log may say so: how many have since the last one.
    pub(crate) fn count(&mut self, now: Instant, peer: IpAddr) -> Option<u64> {
        let (peer, at) = (subject(peer), self.at(now));
        if self.left.len() >= FAILING_ADDRESSES_MAX && !self.left.contains_key(&peer) {
            self.make_room(at);
        }
        let new = || Left { tokens: TokenBucket::new(WRONG_TOKENS.into()), log: Seldom::default() };
        let left = self.left.entry(peer).or_insert_with(new);
        left.tokens.fill(at, FORGIVEN);
        left.tokens.take(1);
        left.log.happened(now)
    }

    fn make_room(&mut self, now: Time) {
        self.left.retain(|_, left| {
            left.tokens.fill(now, FORGIVEN);
            !left.tokens.is_full()
        });
        if self.left.len() >= FAILING_ADDRESSES_MAX {
            let first = self.left.iter().min_by_key(|(_, left)| left.tokens.wait_until_full(FORGIVEN));
            let first = first.map(|(peer, _)| *peer);
            first.and_then(|peer| self.left.remove(&peer));
        }
    }

    fn at(&self, now: Instant) -> Time {
        Time::ZERO + now.saturating_duration_since(self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LOG_EVERY;

    const GUESSING: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[test]
    fn an_address_that_fails_too_often_waits_and_others_do_not() {
        let now = Instant::now();
        let mut failures = Failures::new(now);
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
        let mut failures = Failures::new(start);
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
        let mut failures = Failures::new(now);
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
        let mut failures = Failures::new(start);
        for _ in 0..WRONG_TOKENS {
            failures.count(start, GUESSING);
        }
        for n in 0..3 * FAILING_ADDRESSES_MAX as u32 {
            failures.count(start, IpAddr::from((0x0B00_0000 + n).to_be_bytes()));
        }
        assert_eq!(failures.left.len(), FAILING_ADDRESSES_MAX);
        assert!(failures.wait(start, GUESSING).is_some(), "it is still known");
        let later = start + FORGIVEN_EVERY * WRONG_TOKENS;
        failures.count(later, IpAddr::from([10, 0, 0, 9]));
        assert_eq!(failures.left.len(), 1, "what is forgiven takes no place");
    }

    #[test]
    fn each_address_has_its_own_lines_in_the_log() {
        let now = Instant::now();
        let mut failures = Failures::new(now);
        assert_eq!(failures.count(now, GUESSING), Some(1));
        assert!((0..9).all(|_| failures.count(now, GUESSING).is_none()));
        assert_eq!(failures.count(now, IpAddr::from([10, 0, 0, 2])), Some(1), "it is not hidden");
        assert_eq!(failures.count(now + LOG_EVERY, GUESSING), Some(10));
    }
}
