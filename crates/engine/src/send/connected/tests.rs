//! Packets from sinks' own sockets and from the shared one: receivers see no difference.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use outflow_media::Time;
use outflow_packet::DropReason;
use outflow_relay::Report;
use outflow_uring::testing::ring;

use super::*;
use crate::message::Destination;
use crate::send::Worth;

/// What sends: a ring, both senders, and a port at `0.0.0.0`.
struct Relay {
    uring: Uring,
    udp: UdpSender,
    connected: ConnectedSender,
    ports: Slab<UdpPort>,
    routes: Vec<UdpRoute>,
}

fn receiver() -> UdpSocket {
    receiver_at("127.0.0.1:0").expect("IPv4")
}

fn receiver_at(at: &str) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    Ok(socket)
}

fn share(max: usize) -> Share {
    Share { taken: Box::leak(Box::default()), max }
}

impl Relay {
    fn new(uring: Uring, at: &str, max: usize, receivers: &[UdpSocket]) -> Self {
        let mut ports = Slab::new();
        let socket = UdpSocket::bind(at).expect("bind");
        socket.set_nonblocking(true).expect("nonblocking");
        ports.insert(UdpPort::new(socket, 0, None).expect("a socket"));
        let routes = receivers.iter().map(route).collect();
        Relay {
            uring,
            udp: UdpSender::new(),
            connected: ConnectedSender::with_share(share(max)),
            ports,
            routes,
        }
    }

    /// Sends packets of these bytes to all.
    fn send(&mut self, bodies: &[&[u8]]) {
        let pieces: Vec<_> = bodies
            .iter()
            .map(|body| Piece {
                seq: 7,
                track: 0,
                header: b"<",
                body,
                bytes: None,
                is_preamble: false,
                layer: None,
                ends: None,
                worth: Worth::most(Time::ZERO),
            })
            .collect();
        let sinks = self.routes.iter().enumerate().map(|(index, route)| (SinkKey(index), route));
        let count = self.routes.len();
        self.connected.send(&mut self.uring, &mut self.udp, &pieces, &mut self.ports, sinks, count);
    }

    /// Sends packets until all have their own sockets.
    fn warm_up(&mut self) {
        for _ in 0..self.routes.len().div_ceil(CONNECTED_PER_ORDER) {
            self.send(&[b"warm"]);
        }
    }

    fn own_sockets(&self) -> usize {
        self.connected.sockets.len()
    }
}

fn route(receiver: &UdpSocket) -> UdpRoute {
    UdpRoute::new(0, 0, vec![(0, receiver.local_addr().expect("address").into())])
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 2000];
    let (length, from) = socket.recv_from(&mut buffer).expect("a datagram");
    (buffer[..length].to_vec(), from)
}

#[test]
fn receivers_get_the_same_from_the_same_address_both_ways() {
    same_both_ways("0.0.0.0:0", "127.0.0.1:0");
}

#[test]
fn so_they_do_by_ipv6() {
    match receiver_at("[::1]:0") {
        Ok(_) => same_both_ways("[::]:0", "[::1]:0"),
        Err(error) => outflow_skip::skipped("connected sockets of IPv6", format!("no IPv6 here: {error}")),
    }
}

/// The relay's port is at `ours`, the receivers are at `theirs`.
fn same_both_ways(ours: &str, theirs: &str) {
    let receivers: Vec<_> = (0..30).map(|_| receiver_at(theirs).expect("a receiver")).collect();
    for uring in ring().into_iter().chain([Uring::without()]) {
        let rings = uring.works();
        let mut relay = Relay::new(uring, ours, 1000, &receivers);
        let shared = relay.ports[0].socket.local_addr().expect("address").port();
        let mut expected = Vec::new();
        let rounds = receivers.len().div_ceil(CONNECTED_PER_ORDER) + 2;
        for round in 0..rounds as u8 {
            relay.send(&[&[round; 100]]);
            expected.push([&b"<"[..], &[round; 100]].concat());
        }
        relay.send(&[b"two", b"at once"]);
        expected.extend([b"<two".to_vec(), b"<at once".to_vec()]);
        // What is cut, again and again, and one packet, which is smaller or larger than what was cut.
        for (length, packets) in
            [(50, 3), (50, 3), (50, 2), (100, 1), (100, 1), (50, 2), (30, 2), (30, 4), (10, 1)]
        {
            let body = vec![length; length.into()];
            relay.send(&vec![&body[..]; packets]);
            expected.extend(vec![[b"<", &body[..]].concat(); packets]);
        }
        assert_eq!(relay.udp.reports, []);
        assert_eq!(relay.own_sockets(), if rings { receivers.len() } else { 0 });
        // A packet of ten bytes goes as it is where 31 are cut.
        let mut cutting = relay.connected.sockets.iter_mut().map(|(_, own)| own);
        assert!(
            cutting.all(|own| own.cutting.fits(&own.socket, 31, 0) && !own.cutting.fits(&own.socket, 32, 0))
        );
        for receiver in &receivers {
            for expected in &expected {
                let (got, from) = receive(receiver);
                assert_eq!((got, from.port()), (expected.clone(), shared));
            }
        }
    }
}

#[test]
fn what_comes_from_elsewhere_reaches_the_shared_socket_and_what_comes_back_is_not_kept() {
    let Some(uring) = ring() else { return };
    let receivers: Vec<_> = (0..CONNECTED_SINKS_MIN).map(|_| receiver()).collect();
    let mut relay = Relay::new(uring, "0.0.0.0:0", 1000, &receivers);
    relay.warm_up();
    assert_eq!(relay.own_sockets(), receivers.len());
    let to = ("127.0.0.1", relay.ports[0].socket.local_addr().expect("address").port());
    receivers[0].send_to(b"from the sink's media port", to).expect("sent");
    let elsewhere = receiver();
    elsewhere.send_to(b"from elsewhere", to).expect("sent");
    let shared = &relay.ports[0].socket;
    shared.set_nonblocking(false).expect("blocking");
    shared.set_read_timeout(Some(Duration::from_secs(2))).expect("timeout");
    assert_eq!(receive(shared), (b"from elsewhere".to_vec(), elsewhere.local_addr().expect("address")));
    for (_, own) in &relay.connected.sockets {
        assert!(own.socket.recv(&mut [0; 100]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
    }
}

#[test]
fn no_other_can_bind_the_port() {
    let Some(uring) = ring() else { return };
    let receivers: Vec<_> = (0..CONNECTED_SINKS_MIN).map(|_| receiver()).collect();
    let mut relay = Relay::new(uring, "0.0.0.0:0", 1000, &receivers);
    relay.warm_up();
    let intruder = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("socket");
    intruder.set_reuse_address(true).expect("reuse");
    let at = relay.ports[0].socket.local_addr().expect("address");
    assert!(intruder.bind(&at.into()).is_err());
}

#[test]
fn sinks_beyond_the_share_of_descriptors_are_served_by_the_shared_socket() {
    let Some(uring) = ring() else { return };
    let receivers: Vec<_> = (0..20).map(|_| receiver()).collect();
    let mut relay = Relay::new(uring, "127.0.0.1:0", 5, &receivers);
    for _ in 0..10 {
        relay.send(&[b"one"]);
    }
    assert_eq!(relay.own_sockets(), 5);
    for receiver in &receivers {
        for _ in 0..10 {
            assert_eq!(receive(receiver).0, b"<one");
        }
    }
    for route in &relay.routes {
        relay.connected.forget(&mut relay.uring, route);
    }
    assert_eq!((relay.own_sockets(), relay.connected.share.taken.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn a_receiver_that_was_away_gets_the_first_packet_after_it_is_back() {
    let Some(uring) = ring() else { return };
    let mut receivers: Vec<_> = (0..CONNECTED_SINKS_MIN).map(|_| receiver()).collect();
    let mut relay = Relay::new(uring, "0.0.0.0:0", 1000, &receivers);
    relay.warm_up();
    let at = receivers[1].local_addr().expect("address");
    drop(receivers.remove(1));
    // The kernel learns that no socket is there, and would tell so at the next packet.
    relay.send(&[b"into the void"]);
    let back = UdpSocket::bind(at).expect("the same address");
    back.set_read_timeout(Some(Duration::from_secs(2))).expect("timeout");
    relay.send(&[b"again"]);
    assert_eq!(receive(&back).0, b"<again");
    assert_eq!(relay.udp.reports, []);
}

#[test]
fn what_does_not_go_is_reported_as_the_shared_socket_would() {
    let mut reports = Vec::new();
    for uring in ring().into_iter().chain([Uring::without()]) {
        let receivers: Vec<_> = (0..CONNECTED_SINKS_MIN).map(|_| receiver()).collect();
        let mut relay = Relay::new(uring, "0.0.0.0:0", 1000, &receivers);
        relay.warm_up();
        relay.routes.push(UdpRoute::new(0, 0, Vec::new()));
        let unreachable: SocketAddr = "[::1]:9".parse().expect("an address");
        relay.routes[1] = UdpRoute::new(0, 0, vec![(0, unreachable.into())]);
        let large = [0; 70_000];
        relay.send(&[b"small"]);
        let sockets = relay.own_sockets();
        relay.send(&[&large]);
        assert_eq!(relay.own_sockets(), sockets, "the packet was at fault, not the sockets");
        relay.ports[0].full = true;
        relay.send(&[b"full", b"too"]);
        reports.push(core::mem::take(&mut relay.udp.reports));
    }
    let lost = |key| (SinkKey(key), Report::Lost { reason: DropReason::System, packets: 1 });
    let blocked = |key| (SinkKey(key), Report::Blocked { next: 7 });
    let sort = |mut reports: Vec<(SinkKey, Report)>| {
        reports.sort_by_key(|(key, _)| *key);
        reports
    };
    let small = [lost(1)];
    let large = (0..CONNECTED_SINKS_MIN).map(lost);
    let full = (0..CONNECTED_SINKS_MIN).map(blocked);
    let expected: Vec<_> = sort(small.into_iter().chain(large).chain(full).collect());
    for reports in reports {
        assert_eq!(sort(reports), expected);
    }
}

#[test]
fn a_configured_receivers_own_socket_keeps_its_ttl() {
    let Some(uring) = ring() else { return };
    let receivers: Vec<_> = (0..CONNECTED_SINKS_MIN).map(|_| receiver()).collect();
    let mut relay = Relay::new(uring, "127.0.0.1:0", 1000, &receivers);
    let to = receivers[0].local_addr().expect("address");
    let push = Destination { to, from: None, ttl: Some(9), interface: Some("lo".to_owned()), loops: true };
    let socket = crate::send::open_push(&push).expect("a socket");
    let port = relay.ports.insert(UdpPort::new(socket, 0, Some(&push)).expect("a socket"));
    relay.routes[0].socket = port;
    relay.warm_up();
    assert_eq!(relay.own_sockets(), receivers.len());
    let ours = relay.ports[port].socket.local_addr().expect("address").port();
    assert_eq!(receive(&receivers[0]).1.port(), ours);
    let of_push = |socket: &UdpSocket| socket.local_addr().is_ok_and(|local| local.port() == ours);
    let ttls: BTreeSet<_> = relay
        .connected
        .sockets
        .iter()
        .filter(|(_, own)| of_push(&own.socket))
        .map(|(_, own)| own.socket.ttl().expect("a TTL"))
        .collect();
    assert_eq!(ttls, BTreeSet::from([9]));
}
