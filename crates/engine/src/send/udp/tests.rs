//! Orders sent over loopback, and what comes in there.

use std::time::Duration;

use super::*;
use crate::send::Worth;
use outflow_media::Time;

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    socket.set_read_timeout(Some(Duration::from_secs(2))).expect("timeout");
    socket
}

fn ports() -> slab::Slab<UdpPort> {
    let mut ports = slab::Slab::new();
    ports.insert(UdpPort::new(socket(), 0, None).expect("a socket"));
    ports
}

fn route(receivers: &[(u8, &UdpSocket)]) -> UdpRoute {
    let address = |s: &UdpSocket| SockAddr::from(s.local_addr().expect("address"));
    UdpRoute::new(0, 0, receivers.iter().map(|(track, s)| (*track, address(s))).collect())
}

fn receive(socket: &UdpSocket, count: usize) -> Vec<Vec<u8>> {
    let mut buffer = [0; 70_000];
    (0..count)
        .map(|_| {
            let length = socket.recv(&mut buffer).expect("a datagram");
            buffer[..length].to_vec()
        })
        .collect()
}

fn piece<'a>(seq: Seq, track: u8, header: &'a [u8], body: &'a [u8]) -> Piece<'a> {
    Piece {
        seq,
        track,
        header,
        body,
        bytes: None,
        is_preamble: false,
        layer: None,
        ends: None,
        worth: Worth::most(Time::ZERO),
    }
}

#[test]
fn every_sink_gets_every_packet_whole_and_in_order() {
    let bodies: Vec<Vec<u8>> = [1316, 1316, 1316, 500, 1316, 9].iter().map(|n| vec![*n as u8; *n]).collect();
    let header = [0x80; 12];
    let pieces: Vec<_> = bodies.iter().enumerate().map(|(i, b)| piece(i as Seq, 0, &header, b)).collect();
    let receivers: Vec<_> = (0..300).map(|_| socket()).collect();
    let routes: Vec<_> = receivers.iter().map(|receiver| route(&[(0, receiver)])).collect();
    for (segment, count) in [(true, 300), (true, 1), (false, 300), (false, 1)] {
        let mut sender = UdpSender::new();
        sender.segment = segment;
        sender.send(&pieces, &mut ports(), routes.iter().enumerate().map(|(i, r)| (SinkKey(i), r)), count);
        assert_eq!(sender.reports, []);
        for receiver in &receivers {
            let got = receive(receiver, pieces.len());
            let expected: Vec<_> = bodies.iter().map(|body| [&header[..], body].concat()).collect();
            assert_eq!(got, expected, "segmented: {segment}, for {count}");
        }
    }
}

#[test]
fn a_run_comes_apart_into_its_packets() {
    let bodies = [[1; 100].as_slice(), &[2; 100], &[3; 40]];
    let pieces = bodies.map(|body| piece(0, 0, &[9; 12], body));
    for gather in [true, false] {
        let mut sender = UdpSender::new();
        sender.prepare(&pieces, gather);
        let run = &sender.runs[0];
        let apart = packets(&sender.iovecs[run.iovecs.clone()], run);
        let bytes = apart.iter().map(|packet| packet.iter().map(|vector| vector.iov_len).sum::<usize>());
        assert_eq!(bytes.collect::<Vec<_>>(), [112, 112, 52], "gathered: {gather}");
        let receiver = socket();
        let address = receiver.local_addr().expect("address").into();
        let message = sender.message(0, &address);
        sender.messages.push(message);
        sender.owners.push((SinkKey(0), 0));
        sender.send_singly(&socket(), 0);
        assert_eq!(receive(&receiver, 3), bodies.map(|body| [&[9; 12], body].concat()));
    }
}

#[test]
fn tracks_go_to_their_own_addresses_and_unwanted_ones_nowhere() {
    let (video, audio) = (socket(), socket());
    let pieces =
        [piece(0, 0, &[], b"v0"), piece(1, 1, &[], b"a1"), piece(2, 2, &[], b"x2"), piece(3, 0, &[], b"v3")];
    let mut sender = UdpSender::new();
    let route = route(&[(0, &video), (1, &audio)]);
    sender.send(&pieces, &mut ports(), [(SinkKey(0), &route)].into_iter(), 1);
    assert_eq!(receive(&video, 2), [b"v0", b"v3"]);
    assert_eq!(receive(&audio, 1), [b"a1"]);
}

#[test]
fn a_packet_that_cannot_go_is_reported_and_the_others_go() {
    let receiver = socket();
    let pieces = [piece(0, 0, &[], b"one")];
    let nowhere =
        UdpRoute::new(0, 0, vec![(0, "[::1]:9".parse::<std::net::SocketAddr>().expect("address").into())]);
    let fine = route(&[(0, &receiver)]);
    let mut sender = UdpSender::new();
    sender.send(&pieces, &mut ports(), [(SinkKey(0), &nowhere), (SinkKey(1), &fine)].into_iter(), 2);
    assert_eq!(receive(&receiver, 1), [b"one"]);
    assert!(
        matches!(sender.reports[..], [(SinkKey(0), Report::Lost { packets: 1, .. })]),
        "{:?}",
        sender.reports
    );
}

#[test]
fn a_full_socket_blocks_its_sinks_where_they_stand() {
    let receiver = socket();
    let pieces = [piece(7, 0, &[], b"one"), piece(8, 0, &[], b"2")];
    let route = route(&[(0, &receiver)]);
    let mut ports = ports();
    ports[0].full = true;
    let mut sender = UdpSender::new();
    sender.send(&pieces, &mut ports, [(SinkKey(0), &route), (SinkKey(1), &route)].into_iter(), 2);
    let blocked = |key| (SinkKey(key), Report::Blocked { next: 7 });
    assert_eq!(sender.reports, [blocked(0), blocked(1)]);
}

#[test]
fn runs_are_of_one_track_and_one_size_with_a_smaller_one_at_the_end() {
    let (long, short) = ([0; 100], [0; 50]);
    let p = |track, body| piece(0, track, &[], body);
    assert_eq!(run_length(&[p(0, &long[..]), p(0, &long), p(0, &short), p(0, &long)]), 3);
    assert_eq!(run_length(&[p(0, &short[..]), p(0, &long)]), 1);
    assert_eq!(run_length(&[p(0, &long[..]), p(1, &long)]), 1);
    let many = vec![p(0, &long[..]); 200];
    assert_eq!(run_length(&many), GSO_SEGMENTS_MAX);
    let large = [0; 20_000];
    assert_eq!(run_length(&[p(0, &large[..]), p(0, &large), p(0, &large), p(0, &large)]), 3);
}

#[test]
fn a_port_of_ipv6_has_the_hop_limit_and_the_class_of_its_socket() {
    let Ok(any) = UdpSocket::bind("[::]:0") else {
        return outflow_skip::skipped("ports of IPv6", "no IPv6 here");
    };
    let any = UdpPort::new(any, 0, None).expect("a socket");
    assert!(any.ttl > 1 && any.tos == 0, "what the system has for all: {any:?}");
    assert_eq!(any.own_address(), None);

    let own = UdpSocket::bind("[::1]:0").expect("there is IPv6");
    socket2::SockRef::from(&own).set_unicast_hops_v6(17).expect("a hop limit");
    socket2::SockRef::from(&own).set_tclass_v6(0xb8).expect("a class");
    let own = UdpPort::new(own, 0, None).expect("a socket");
    assert_eq!((own.ttl, own.tos), (17, 0xb8));
    assert_eq!(own.own_address(), Some(std::net::Ipv6Addr::LOCALHOST.into()));
}
