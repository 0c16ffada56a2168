//! By which of its addresses a machine was reached, for each peer: answers come from the same one, as peers take no
//! others, and routers on the way may not either.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use arrayvec::ArrayVec;

use crate::limits::{OWN_ADDRESSES_MAX, OWN_OF_PEER_MAX};

/// Own addresses by peer. Where a socket is bound to one, there is nothing to know.
#[derive(Debug, Default)]
pub struct OwnAddresses {
    by_peer: BTreeMap<SocketAddr, IpAddr>,
    /// The one that was noted last: most datagrams are of the same peer as those before.
    last: Option<(SocketAddr, IpAddr)>,
}

impl OwnAddresses {
    /// A peer has sent to this address.
    pub fn note(&mut self, peer: SocketAddr, own: IpAddr) {
        if self.last.replace((peer, own)) == Some((peer, own)) {
            return;
        }
        if self.by_peer.len() >= OWN_ADDRESSES_MAX && !self.by_peer.contains_key(&peer) {
            self.by_peer.clear();
        }
        self.by_peer.insert(peer, own);
    }

    /// From where to send to a peer; the system's choice if nothing is known.
    pub fn of(&self, peer: SocketAddr) -> Option<IpAddr> {
        match self.last {
            Some((last, own)) if last == peer => Some(own),
            _ => self.by_peer.get(&peer).copied(),
        }
    }

    /// All that is known.
    pub fn iter(&self) -> impl Iterator<Item = (SocketAddr, IpAddr)> {
        self.by_peer.iter().map(|(peer, own)| (*peer, *own))
    }
}

/// The same of one peer that is heard from several addresses.
#[derive(Debug, Default)]
pub struct OwnOfPeer(ArrayVec<(SocketAddr, IpAddr), OWN_OF_PEER_MAX>);

impl OwnOfPeer {
    /// It has sent to this address, from there.
    pub fn note(&mut self, peer: SocketAddr, own: IpAddr) {
        match self.0.iter_mut().find(|(known, _)| *known == peer) {
            Some((_, before)) => *before = own,
            None => {
                if self.0.is_full() {
                    self.0.remove(0);
                }
                self.0.push((peer, own));
            }
        }
    }

    /// From where to send there; the system's choice if nothing is known.
    pub fn of(&self, peer: SocketAddr) -> Option<IpAddr> {
        self.0.iter().find(|(known, _)| *known == peer).map(|(_, own)| *own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_peer_at_several_addresses_the_newest_are_known() {
        let mut own = OwnOfPeer::default();
        let at = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let here = |last: u16| IpAddr::from([10, 0, 0, last as u8]);
        for port in 1..=OWN_OF_PEER_MAX as u16 {
            own.note(at(port), here(port));
        }
        own.note(at(2), here(200));
        assert_eq!((own.of(at(1)), own.of(at(2))), (Some(here(1)), Some(here(200))));
        own.note(at(99), here(9));
        assert_eq!((own.of(at(1)), own.of(at(2)), own.of(at(99))), (None, Some(here(200)), Some(here(9))));
    }

    #[test]
    fn a_peer_is_answered_from_where_it_sent_to_last() {
        let mut own = OwnAddresses::default();
        let [peer, other] =
            ["192.0.2.1:1000", "192.0.2.2:1000"].map(|text| text.parse().expect("an address"));
        let [one, two] = [[10, 0, 0, 1], [10, 0, 1, 1]].map(IpAddr::from);
        assert_eq!(own.of(peer), None);
        own.note(peer, one);
        own.note(other, two);
        assert_eq!((own.of(peer), own.of(other)), (Some(one), Some(two)));
        own.note(peer, two);
        assert_eq!(own.of(peer), Some(two));
    }

    #[test]
    fn strangers_fill_no_memory() {
        let mut own = OwnAddresses::default();
        for port in 1..=u16::MAX {
            own.note(SocketAddr::from(([192, 0, 2, 1], port)), IpAddr::from([10, 0, 0, 1]));
        }
        assert!(own.by_peer.len() <= OWN_ADDRESSES_MAX);
        assert!(own.of(SocketAddr::from(([192, 0, 2, 1], u16::MAX))).is_some());
    }
}
