//! Whose datagrams are: peers of one socket are known by where they send from, and until then by the name in their
//! checks.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use arrayvec::ArrayVec;
use outflow_engine::message::ReceiverId;
use outflow_ice::Check;
use outflow_udp::{Dispatch, HandedOver, Inbox};

use crate::limits::{NAMES_MAX, PLACES_MAX};

/// The peers of a socket.
#[derive(Debug, Default)]
pub(super) struct Routes {
    peers: BTreeMap<ReceiverId, Route>,
    names: BTreeMap<String, ReceiverId>,
    places: BTreeMap<SocketAddr, Place>,
    dispatch: Dispatch,
}

/// Where datagrams for a peer go, and what it is known by.
#[derive(Debug)]
struct Route {
    inbox: Inbox,
    /// The newest is the last.
    names: ArrayVec<String, NAMES_MAX>,
    places: ArrayVec<SocketAddr, PLACES_MAX>,
}

/// Which peer an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    peer: ReceiverId,
    /// The peer has said so; else a check named it, which may have been forged.
    is_certain: bool,
}

impl Routes {
    /// A peer may come: its checks are for this name.
    pub(super) fn add(&mut self, peer: ReceiverId, name: String, inbox: Inbox) {
        self.remove(peer);
        self.peers.insert(peer, Route { inbox, names: ArrayVec::new(), places: ArrayVec::new() });
        self.name(peer, name);
    }

    /// Its checks are for this name, too, and not any more for the one before the one before.
    pub(super) fn name(&mut self, peer: ReceiverId, name: String) {
        let Some(route) = self.peers.get_mut(&peer) else { return };
        if route.names.is_full() {
            self.names.remove(&route.names.remove(0));
        }
        route.names.push(name.clone());
        self.names.insert(name, peer);
    }

    /// All of them.
    pub(super) fn peers(&self) -> Vec<ReceiverId> {
        self.peers.keys().copied().collect()
    }

    /// A peer has left.
    pub(super) fn remove(&mut self, peer: ReceiverId) {
        let Some(route) = self.peers.remove(&peer) else { return };
        for name in route.names {
            self.names.remove(&name);
        }
        for at in route.places {
            self.places.remove(&at);
        }
        if self.peers.is_empty() {
            self.dispatch.clear();
        }
    }

    /// A peer has shown that it is there.
    pub(super) fn confirm(&mut self, peer: ReceiverId, at: SocketAddr) {
        self.forget_unless(at, |place| place.peer == peer);
        let Some(route) = self.peers.get_mut(&peer) else { return };
        if !route.places.contains(&at) {
            if route.places.is_full() {
                self.places.remove(&route.places.remove(0));
            }
            route.places.push(at);
        }
        self.places.insert(at, Place { peer, is_certain: true });
    }

    /// It is not there any more.
    pub(super) fn forget(&mut self, peer: ReceiverId, at: SocketAddr) {
        self.forget_unless(at, |place| place.peer != peer);
    }

    fn forget_unless(&mut self, at: SocketAddr, stays: impl Fn(Place) -> bool) {
        let Some(place) = self.places.get(&at).copied().filter(|place| !stays(*place)) else { return };
        self.places.remove(&at);
        if let Some(route) = self.peers.get_mut(&place.peer) {
            route.places.retain(|known| *known != at);
        }
    }

    /// Puts a datagram down for its peer, whose number is filled in. Answers whether there is one.
    pub(super) fn put(&mut self, datagram: HandedOver<'_>) -> bool {
        let Some(peer) = self.whose(datagram.from, datagram.bytes) else { return false };
        let Some(route) = self.peers.get(&peer) else { return false };
        self.dispatch.put(&route.inbox, &HandedOver { peer, ..datagram });
        true
    }

    /// Hands over what was put down. Answers how many datagrams found no room.
    pub(super) fn hand_over(&mut self) -> u64 {
        self.dispatch.hand_over()
    }

    fn whose(&mut self, from: SocketAddr, datagram: &[u8]) -> Option<ReceiverId> {
        let named = Check::is_stun(datagram).then(|| Check::new_checked(datagram).ok()?.names()).flatten();
        let Some((name, _)) = named else { return self.places.get(&from).map(|place| place.peer) };
        let peer = *self.names.get(&name)?;
        self.guess(peer, from);
        Some(peer)
    }

    /// What follows a check comes from there, before the peer can say that it is there. A place that is certain stays:
    /// a check can be sent in the name of any address.
    fn guess(&mut self, peer: ReceiverId, from: SocketAddr) {
        if self.places.get(&from).is_some_and(|place| place.is_certain || place.peer == peer) {
            return;
        }
        self.forget_unless(from, |_| false);
        if let Some(route) = self.peers.get_mut(&peer)
            && route.places.try_push(from).is_ok()
        {
            self.places.insert(from, Place { peer, is_certain: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outflow_ice::Credentials;
    use outflow_ice::testing::request;
    use outflow_media::ecn::Mark;
    use outflow_udp::{Parcels, inbox};

    use super::*;

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 40_000))
    }

    fn check(name: &str) -> Vec<u8> {
        let key = Credentials { ufrag: name.to_owned(), password: "the password of the relay".to_owned() };
        request(&format!("{name}:peer"), &key, true)
    }

    /// Two peers, `one` and `two`.
    fn two() -> (Routes, Parcels) {
        let (inbox, parcels) = inbox(64, Arc::new(|| ()));
        let mut routes = Routes::default();
        routes.add(1, "one".to_owned(), inbox.clone());
        routes.add(2, "two".to_owned(), inbox);
        (routes, parcels)
    }

    fn send(routes: &mut Routes, from: SocketAddr, bytes: &[u8]) -> bool {
        let mut bytes = bytes.to_vec();
        routes.put(HandedOver { peer: 0, from, to: None, mark: Mark::None, bytes: &mut bytes })
    }

    fn came(routes: &mut Routes, parcels: &Parcels) -> Vec<(u64, usize)> {
        assert_eq!(routes.hand_over(), 0);
        let mut all = Vec::new();
        while let Some(mut parcel) = parcels.take() {
            all.extend(parcel.iter().map(|it| (it.peer, it.bytes.len())));
        }
        all
    }

    #[test]
    fn a_peer_is_known_by_its_name_and_from_then_on_by_its_address() {
        let (mut routes, parcels) = two();
        let media = [0x80; 20];
        assert!(!send(&mut routes, at(1), &media), "no peer is there");
        let checks = ["one", "two"].map(check);
        assert!(send(&mut routes, at(1), &checks[0]) && send(&mut routes, at(2), &checks[1]));
        assert!(send(&mut routes, at(1), &media) && send(&mut routes, at(2), &media));
        assert!(!send(&mut routes, at(3), &check("three")));
        let expected = [(1, checks[0].len()), (2, checks[1].len()), (1, 20), (2, 20)];
        assert_eq!(came(&mut routes, &parcels), expected);
        routes.confirm(1, at(5));
        assert!(send(&mut routes, at(5), &media));
        routes.forget(1, at(5));
        assert!(!send(&mut routes, at(5), &media));
        routes.remove(1);
        assert!(!send(&mut routes, at(1), &media) && !send(&mut routes, at(1), &checks[0]));
    }

    #[test]
    fn a_peer_that_has_another_name_is_known_by_the_one_before_until_the_next() {
        let (mut routes, _parcels) = two();
        let is_known = |routes: &mut Routes, name: &str| send(routes, at(9), &check(name));
        routes.name(1, "other".to_owned());
        assert!(is_known(&mut routes, "one") && is_known(&mut routes, "other"));
        routes.name(1, "third".to_owned());
        assert!(!is_known(&mut routes, "one") && is_known(&mut routes, "other"));
        routes.name(7, "of none".to_owned());
        assert!(is_known(&mut routes, "third") && !is_known(&mut routes, "of none"));
        routes.remove(1);
        assert!(!is_known(&mut routes, "third") && routes.names.len() == 1);
    }

    #[test]
    fn a_forged_check_takes_no_address_from_the_peer_that_is_there() {
        let (mut routes, parcels) = two();
        routes.confirm(1, at(1));
        assert!(send(&mut routes, at(1), &check("two")) && send(&mut routes, at(1), &[0x80; 20]));
        assert_eq!(came(&mut routes, &parcels)[1], (1, 20));
        // One that was there first by a forged check goes when the peer comes.
        assert!(send(&mut routes, at(2), &check("one")));
        routes.confirm(2, at(2));
        assert!(send(&mut routes, at(2), &[0x80; 20]));
        assert_eq!(came(&mut routes, &parcels)[1], (2, 20));
        assert_eq!((routes.peers[&1].places.len(), routes.peers[&2].places.len()), (1, 1));
    }

    #[test]
    fn checks_from_many_addresses_cost_a_few_places() {
        let (mut routes, _parcels) = two();
        let check = check("one");
        for last in 0..200 {
            assert!(send(&mut routes, at(last), &check));
        }
        assert_eq!((routes.places.len(), routes.peers[&1].places.len()), (PLACES_MAX, PLACES_MAX));
        routes.confirm(1, at(250));
        assert_eq!(routes.places.len(), PLACES_MAX);
        assert_eq!(routes.places.get(&at(250)), Some(&Place { peer: 1, is_certain: true }));
        routes.remove(1);
        assert!(routes.places.is_empty());
    }
}
