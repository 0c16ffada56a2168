//! Relays that are talked to, and which of these are silent.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use outflow_media::Time;

use super::limits::{ALIVE_EVERY, CONNECT, IDLE, SILENCE};

/// A relay that is talked to.
#[derive(Debug, Clone, Copy)]
struct Peer {
    since: Time,
    heard: Option<Time>,
    said: Time,
    /// When something was said that is not only a sign of life.
    used: Time,
}

/// By address. Looked at every [`ALIVE_EVERY`].
#[derive(Debug, Default)]
pub(super) struct Peers {
    known: BTreeMap<Ipv4Addr, Peer>,
    look_at: Option<Time>,
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// These are silent, and not known any more.
    pub(super) lost: Vec<Ipv4Addr>,
    /// These are to be told that this relay is there.
    pub(super) greet: Vec<Ipv4Addr>,
}

impl Peers {
    fn used(&mut self, now: Time, peer: Ipv4Addr) -> &mut Peer {
        self.look_at.get_or_insert(now + ALIVE_EVERY);
        let peer = self.known.entry(peer).or_insert(Peer { since: now, heard: None, said: now, used: now });
        peer.used = now;
        peer
    }

    /// Something is said to a relay that is more than a sign of life.
    pub(super) fn say(&mut self, now: Time, to: Ipv4Addr) {
        self.used(now, to).said = now;
    }

    /// A relay has said something that is more than a sign of life.
    pub(super) fn hear(&mut self, now: Time, from: Ipv4Addr) {
        self.used(now, from).heard = Some(now);
    }

    /// There is a sign of life of a relay, which counts if it is talked to: a relay that is not says nothing, and is
    /// found silent by the other in its turn.
    pub(super) fn notice(&mut self, now: Time, from: Ipv4Addr) {
        if let Some(peer) = self.known.get_mut(&from) {
            peer.heard = Some(now);
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) const fn next_timeout(&self) -> Option<Time> {
        self.look_at
    }

    /// Looks which are silent, and which are to be greeted. Parents and children are known as long as they are heard.
    pub(super) fn handle_timeout(&mut self, now: Time, is_beside: impl Fn(Ipv4Addr) -> bool) -> Due {
        let mut due = Due::default();
        if self.look_at.is_none_or(|at| at > now) {
            return due;
        }
        self.known.retain(|address, peer| {
            let is_lost = match peer.heard {
                Some(heard) => now.since(heard) > SILENCE,
                None => now.since(peer.since) > CONNECT,
            };
            if is_lost {
                due.lost.push(*address);
            } else if now.since(peer.said) >= ALIVE_EVERY {
                peer.said = now;
                due.greet.push(*address);
            }
            !is_lost && (now.since(peer.used) <= IDLE || is_beside(*address))
        });
        self.look_at = (!self.known.is_empty()).then_some(now + ALIVE_EVERY);
        due
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn run(peers: &mut Peers, mut heard: impl FnMut(&mut Peers, Time)) -> (usize, Option<u64>) {
        let (mut greeted, mut lost) = (0, None);
        while let Some(at) = peers.next_timeout().filter(|at| at.as_millis() < 20_000) {
            heard(peers, at);
            let due = peers.handle_timeout(at, |_| false);
            greeted += due.greet.len();
            lost = lost.or_else(|| due.lost.first().map(|_| at.as_millis()));
        }
        (greeted, lost)
    }

    #[test]
    fn a_silent_relay_is_lost_and_one_that_is_of_no_use_is_left() {
        let peer = Ipv4Addr::LOCALHOST;
        let mut peers = Peers::default();
        peers.say(Time::ZERO, peer);
        assert_eq!(run(&mut peers, |_, _| ()), (15, Some(1_600)), "it never answers");
        peers.hear(Time::ZERO, peer);
        assert_eq!(run(&mut peers, |_, _| ()), (4, Some(500)), "it answers no more");
        peers.hear(Time::ZERO, peer);
        assert_eq!(run(&mut peers, |peers, now| peers.notice(now, peer)), (51, None), "it is of no use");
        assert_eq!(peers.next_timeout(), None);
        peers.notice(Time::ZERO + Duration::from_secs(9), peer);
        assert_eq!(peers.next_timeout(), None, "it is not talked to");
    }
}
