//! Messages of DVMRP, and a router to which neighbours send anything.

use core::net::Ipv4Addr;
use core::time::Duration;

use outflow_media::{Prefix, Time};
use outflow_routing::demand;
use outflow_routing::demand::Level;
use outflow_routing::dvmrp::packet::{ALL_ROUTERS, IP_HEADER_BYTES, Message, Packet, emit_ip};
use outflow_routing::dvmrp::{InterfaceId, InterfaceSettings, Link, Router, Settings};

/// What our neighbours can do: prunes, generations and levels.
const CAPABILITIES: u8 = 0x46;

/// What is read can be written and read again. Behind a byte of zero come steps instead, each with its length
/// in a byte in front, for a router.
pub(crate) fn dvmrp(data: &[u8]) {
    match data.split_first() {
        Some((0, steps)) => router(steps),
        Some((code, body)) => {
            check(data);
            check(&packet(address(0, 9), ALL_ROUTERS, *code, body));
        }
        None => (),
    }
}

fn check(bytes: &[u8]) {
    let Ok(packet) = Packet::parse(bytes) else { return };
    let message = match packet.message() {
        Ok(message) => message,
        Err(error) => return assert!(error.offset <= bytes.len() && !error.reason.is_empty()),
    };
    let (mut body, mut again) = (Vec::new(), Vec::new());
    message.emit(packet.capabilities, &mut body);
    emit_ip(packet.source, packet.destination, body.len(), &mut again);
    again.extend(body);
    let read = Packet::parse(&again).expect("it was written here");
    match message {
        Message::Report(routes) => assert!(routes.count() <= bytes.len()),
        Message::Other(_) => return,
        _ => (),
    }
    assert_eq!(read.message(), Ok(message), "written and read");
}

const fn address(interface: u8, last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, interface, 0, last)
}

/// A packet with this code and body, and right checksums.
fn packet(source: Ipv4Addr, destination: Ipv4Addr, code: u8, body: &[u8]) -> Vec<u8> {
    let (mut message, mut packet) = (Vec::new(), Vec::new());
    Message::Other(code).emit(CAPABILITIES, &mut message);
    message.extend(body);
    message[2..4].fill(0);
    let pairs =
        message.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = pairs.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    message[2..4].copy_from_slice(&(!sum as u16).to_be_bytes());
    emit_ip(source, destination, message.len(), &mut packet);
    packet.extend(message);
    packet
}

/// A step begins with what it is: of 0xf0 time passes, 0xf1 data comes, 0xf2 members change, 0xf3 an interface
/// goes down or up; others are the codes of messages, from the neighbour of an interface.
fn router(mut steps: &[u8]) {
    let demand = demand::Settings::default();
    let mut router = Router::new(Settings { generation: 1, seed: 1, has_levels: true, demand });
    let mut now = Time::from_millis(1000);
    (0..3).for_each(|interface| bring_up(&mut router, now, interface));
    for interface in 0..3 {
        // Generation 1; we are named.
        let body = [0, 0, 0, 1, 10, interface, 0, 5];
        let probe = packet(address(interface, 9), ALL_ROUTERS, 1, &body);
        router.handle_packet(now, InterfaceId(u32::from(interface)), &probe);
    }
    while let Some((length, rest)) = steps.split_first() {
        let (step, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        steps = rest;
        if let [what, much, body @ ..] = step {
            apply(&mut router, &mut now, *what, *much, body);
            settle(&mut router, now);
        }
    }
}

fn bring_up(router: &mut Router, now: Time, interface: u8) {
    let link = Link::Lan(Prefix::of(address(interface, 0), 24));
    let settings = InterfaceSettings { address: address(interface, 5), link, metric: 1 };
    router.add_interface(now, InterfaceId(u32::from(interface)), settings).expect("three fit");
}

fn apply(router: &mut Router, now: &mut Time, what: u8, much: u8, body: &[u8]) {
    let (on, last) = (much % 3, 9 + (much >> 6));
    let interface = InterfaceId(u32::from(on));
    let group = Ipv4Addr::new(225, 1, 2, much >> 4);
    match what {
        0xf0 => *now = *now + Duration::from_secs(u64::from(much)),
        0xf1 => {
            let source = body.first_chunk().map_or(address(on, 77), |octets| Ipv4Addr::from_octets(*octets));
            _ = router.handle_data(*now, interface, source, group);
        }
        0xf2 => {
            _ = router.set_member(*now, interface, group, body.first().and_then(|level| Level::new(*level)))
        }
        0xf3 if body.is_empty() => router.remove_interface(*now, interface),
        0xf3 => bring_up(router, *now, on),
        code => {
            let bytes = packet(address(on, last), address(on, 5), code, body);
            router.handle_packet(*now, interface, &bytes);
        }
    }
}

/// What has to be true after each step.
fn settle(router: &mut Router, now: Time) {
    if router.next_timeout().is_some_and(|at| at <= now) {
        router.handle_timeout(now);
        assert!(router.next_timeout().is_none_or(|at| at > now), "it has done what was due");
    }
    let mut out = Vec::new();
    while router.poll_transmit(&mut out).is_some() {
        let sent = Packet::parse(&out).expect("what is sent can be read");
        assert!(sent.message().is_ok() && out.len() > IP_HEADER_BYTES);
    }
    while router.poll().is_some() {}
    for flow in router.flows().collect::<Vec<_>>() {
        let Some((upstream, outgoing)) = router.forwarding(flow) else { continue };
        let best = outgoing.iter().map(|outgoing| outgoing.level).min();
        assert!(outgoing.iter().all(|outgoing| outgoing.interface != upstream.interface()), "not back");
        assert!(
            best.is_none_or(|best| router.demand(flow).is_some_and(|demand| demand <= best)),
            "none starves"
        );
    }
}
