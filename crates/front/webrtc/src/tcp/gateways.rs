//! Which peer is behind which gateway.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use outflow_ice::Path;

/// The gateways of all connections. Workers ask it for each datagram that comes from one, so nothing waits here.
#[derive(Debug)]
pub(crate) struct Gateways {
    /// The relay's port, as gateways see it. All of them have its address.
    port: SocketAddr,
    /// Where the relay's port is bound.
    bound: SocketAddr,
    /// By the gateway's port, in order; another list takes the place of this one whenever one changes.
    // bounded: by `TCP_MAX`.
    peers: ArcSwap<Vec<(u16, SocketAddr)>>,
}

/// A gateway that is known; forgotten when dropped.
#[derive(Debug)]
pub(crate) struct Known {
    all: Arc<Gateways>,
    port: u16,
    peer: SocketAddr,
}

impl Gateways {
    /// Those of a port that is bound there.
    pub(crate) fn new(bound: SocketAddr) -> Self {
        let mut port = bound;
        if bound.ip().is_unspecified() {
            // One at `[::]` takes IPv4, too.
            port.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        Gateways { port, bound, peers: ArcSwap::default() }
    }

    /// Where the relay's port is bound.
    pub(super) fn bound(&self) -> SocketAddr {
        self.bound
    }

    /// Where gateways send to.
    pub(super) fn port(&self) -> SocketAddr {
        self.port
    }

    /// Whether gateways have this address; others on this machine may have it, too.
    pub(crate) fn are_at(&self, address: SocketAddr) -> bool {
        address.ip() == self.port.ip()
    }

    /// The path by which a datagram came that was received from there: what comes from a gateway came by a connection,
    /// from its peer's own address. A peer learns its address by a check, and Firefox believes none that is this machine's.
    pub(crate) fn path(&self, from: SocketAddr) -> Path {
        let peer = if self.are_at(from) { self.peer(from.port()) } else { None };
        match peer {
            Some(peer) => Path { own: from.port().into(), peer },
            None => Path { own: 0, peer: from },
        }
    }

    /// Where datagrams are sent that are to go by a path.
    pub(crate) fn place(&self, path: Path) -> SocketAddr {
        match u16::try_from(path.own) {
            Ok(0) | Err(_) => path.peer,
            Ok(port) => self.at(port),
        }
    }

    /// The gateway with this port.
    pub(super) fn at(&self, port: u16) -> SocketAddr {
        let mut at = self.port;
        at.set_port(port);
        at
    }

    /// The gateway with this port is a peer's.
    pub(super) fn enter(self: &Arc<Self>, port: u16, peer: SocketAddr) -> Known {
        self.change(port, |_| Some(peer));
        Known { all: Arc::clone(self), port, peer }
    }

    /// A peer goes on by this path, whose gateway another process has; none if that is no gateway's.
    pub(crate) fn adopt(self: &Arc<Self>, path: Path) -> Option<Known> {
        let port = u16::try_from(path.own).ok().filter(|port| *port > 0)?;
        Some(self.enter(port, path.peer))
    }

    fn peer(&self, port: u16) -> Option<SocketAddr> {
        let peers = self.peers.load();
        let place = peers.binary_search_by_key(&port, |(port, _)| *port).ok()?;
        peers.get(place).map(|(_, peer)| *peer)
    }

    /// Whose the gateway with this port is from now on, as this says of the peer whose it was.
    fn change(&self, port: u16, peer: impl Fn(Option<SocketAddr>) -> Option<SocketAddr>) {
        self.peers.rcu(|peers| {
            let mut peers = Vec::clone(peers);
            let place = peers.partition_point(|(other, _)| *other < port);
            let was = peers.get(place).filter(|(other, _)| *other == port).map(|(_, peer)| *peer);
            if was.is_some() {
                peers.remove(place);
            }
            if let Some(peer) = peer(was) {
                peers.insert(place, (port, peer));
            }
            peers
        });
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        // Where one of another process has ended, the system gives its port to others.
        self.all.change(self.port, |was| was.filter(|peer| *peer != self.peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn what_comes_from_a_gateway_came_from_its_peer_and_answers_go_back_there() {
        let all = Arc::new(Gateways::new(at("[::]:8189")));
        let [one, other] = ["192.0.2.1:40000", "[2001:db8::1]:40000"].map(at);
        let known = [(500, one), (400, other)].map(|(port, peer)| all.enter(port, peer));
        for (port, peer) in [(500, one), (400, other)] {
            let path = all.path(SocketAddr::from(([127, 0, 0, 1], port)));
            assert_eq!(path, Path { own: port.into(), peer });
            assert_eq!(all.place(path), SocketAddr::from(([127, 0, 0, 1], port)));
        }
        drop(known);
        for plain in ["127.0.0.1:500", "127.0.0.1:401", "192.0.2.1:500"].map(at) {
            let path = all.path(plain);
            assert_eq!((path, all.place(path)), (Path { own: 0, peer: plain }, plain));
        }
    }

    #[test]
    fn a_gateway_of_another_process_is_known_until_its_viewer_leaves_or_its_port_is_anothers() {
        let all = Arc::new(Gateways::new(at("0.0.0.0:8189")));
        let [one, other] = ["192.0.2.1:40000", "192.0.2.2:40000"].map(at);
        let path = Path { own: 500, peer: one };
        let at_gateway = all.place(path);
        let known = all.adopt(path).expect("it is a gateway's");
        assert_eq!(all.path(at_gateway), path);
        let entered = all.enter(500, other);
        drop(known);
        assert_eq!(all.path(at_gateway).peer, other);
        drop(entered);
        assert_eq!(all.path(at_gateway), Path { own: 0, peer: at_gateway });
        assert!(all.adopt(Path { own: 0, peer: one }).is_none(), "it comes by UDP");
    }

    #[test]
    fn gateways_are_where_the_port_can_be_reached() {
        for (bound, port) in [
            ("[::]:8189", "127.0.0.1:8189"),
            ("0.0.0.0:8189", "127.0.0.1:8189"),
            ("192.0.2.1:8189", "192.0.2.1:8189"),
            ("[2001:db8::1]:8189", "[2001:db8::1]:8189"),
        ] {
            let all = Gateways::new(at(bound));
            assert_eq!((all.port(), all.bound()), (at(port), at(bound)));
            assert!(all.are_at(all.at(1)) && !all.are_at(at("198.51.100.1:8189")));
        }
    }
}
