use proptest::prelude::*;

use super::*;
use crate::dvmrp::limits::REPORT_BYTES_MAX;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| (byte as char).to_digit(16).expect("hexadecimal") as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn address(text: &str) -> Ipv4Addr {
    text.parse().expect("an address")
}

fn prefix(text: &str) -> Prefix {
    let (network, length) = text.split_once('/').expect("a prefix");
    Prefix::of(address(network), length.parse().expect("a length"))
}

/// What the message is on the wire, without its checksum, which is checked by reading it again.
fn emitted(message: &Message<'_>, capabilities: u8) -> Vec<u8> {
    let mut packet = in_packet(message, capabilities);
    assert_eq!(checksum(0, &packet[IP_HEADER_BYTES..]), 0);
    let parsed = Packet::parse(&packet).expect("a packet");
    assert_eq!(parsed.message().as_ref(), Ok(message), "written and read");
    assert_eq!((parsed.capabilities, parsed.major, parsed.minor, parsed.ttl), (capabilities, 3, 0xff, 1));
    packet.drain(..IP_HEADER_BYTES);
    packet[2..4].fill(0);
    packet
}

fn in_packet(message: &Message<'_>, capabilities: u8) -> Vec<u8> {
    let (mut body, mut packet) = (Vec::new(), Vec::new());
    message.emit(capabilities, &mut body);
    emit_ip(address("10.0.1.1"), ALL_ROUTERS, body.len(), &mut packet);
    packet.extend(body);
    packet
}

const PAIR: Pair =
    Pair { source: Ipv4Addr::new(10, 0, 0, 0), group: Ipv4Addr::new(225, 1, 2, 3), mask: None };

/// Bytes of mrouted 4.6 from the wire.
#[test]
fn a_probe_is_that_of_mrouted() {
    let golden = hex("1301ede6 000eff03 f5030000 0a000102");
    assert_eq!(checksum(0, &golden), 0, "mrouted counts as we do");
    let probe = Message::Probe { generation: 0xf503_0000, neighbours: Addresses::new(&[[10, 0, 1, 2]]) };
    let mut out = Vec::new();
    probe.emit(0x0e, &mut out);
    assert_eq!(out, golden);
    assert_eq!(emitted(&probe, 0x0e)[4..], golden[4..]);
}

fn report(routes: &[(&str, u8)]) -> Vec<u8> {
    let mut writer = ReportWriter::default();
    for (network, metric) in routes {
        assert!(writer.push(Advertised { network: prefix(network), metric: *metric }));
    }
    emitted(&Message::Report(writer.routes()), 0x0f)
}

#[test]
fn a_report_is_that_of_mrouted() {
    let golden = hex("13020000 000fff03 ffff00 0a000001 0a0002a2");
    assert_eq!(report(&[("10.0.0.0/24", 1), ("10.0.2.0/24", 34)]), golden);
    assert_eq!(report(&[("172.16.0.0/16", 2)])[8..], hex("ff0000 ac1082"));
    assert_eq!(report(&[("0.0.0.0/0", 3)])[8..], hex("000000 0083"));
    assert_eq!(report(&[("0.0.0.0/0", 3), ("10.0.0.0/8", 4)])[8..], hex("000000 0003 0a84"));
    let two = report(&[("172.16.0.0/16", 2), ("10.0.0.128/25", 33)]);
    assert_eq!(two[8..], hex("ff0000 ac1082 ffff80 0a000080a1"));
}

#[test]
fn prunes_and_grafts_are_those_of_mrouted() {
    let prune = emitted(&Message::Prune(PAIR, 8173), 0x0e);
    assert_eq!(prune, hex("13070000 000eff03 0a000000 e1010203 00001fed"));
    let graft = emitted(&Message::Graft(PAIR), 0x0e);
    assert_eq!(graft, hex("13080000 000eff03 0a000000 e1010203"));
    assert_eq!(emitted(&Message::GraftAck(PAIR), 0x0e), hex("13090000 000eff03 0a000000 e1010203"));
    let masked = Pair { mask: Some(0xffff_ff00), ..PAIR };
    assert_eq!(emitted(&Message::Graft(masked), 0)[16..], hex("ffffff00"));
}

#[test]
fn our_own_messages_are_as_documented() {
    let (network, group, level) = (prefix("10.0.0.0/24"), PAIR.group, Level::new(8).expect("a level"));
    let demand = Demand { network, group, level, lifetime_s: 200, sequence: 7 };
    let written = emitted(&Message::Demand(demand), 0x4e);
    assert_eq!(written, hex("13700000 004eff03 0a000000 e1010203 08180000 000000c8 00000007"));
    let ack = DemandAck { network, group, level, sequence: 7 };
    let written = emitted(&Message::DemandAck(ack), 0x4e);
    assert_eq!(written, hex("13710000 004eff03 0a000000 e1010203 08180000 00000007"));
}

#[test]
fn the_ip_header_has_router_alert_a_ttl_of_one_and_network_control() {
    let packet = in_packet(&Message::AskNeighbours2, 0);
    assert_eq!(packet[..10], hex("46c00020 00000000 0102"));
    assert_eq!(packet[12..24], hex("0a000101 e0000004 94040000"));
}

#[test]
fn neighbours_are_read_by_interface() {
    let body = hex("0a000001 01010002 0a000002 0a000003 0a000101 01018000");
    let sections = Neighbours2::parse(&body).expect("well formed");
    assert_eq!(sections.map(|section| section.neighbours.iter().count()).collect::<Vec<_>>(), [2, 0]);
    assert!(emitted(&Message::Neighbours2(sections), 0).ends_with(&body));
    assert!(Neighbours2::parse(&body[..body.len() - 1]).is_err());
}

#[test]
fn what_is_not_as_it_has_to_be_is_refused_by_reason() {
    let good = in_packet(&Message::Graft(PAIR), 0);
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Packet::parse(&bytes).map(|_| ()).expect_err("refused")
    };
    assert_eq!(changed(8, 64), Unreadable::Checksum, "of the header");
    assert_eq!(changed(30, 1), Unreadable::Checksum, "of the message");
    assert_eq!(changed(9, 17), Unreadable::NotDvmrp);
    assert_eq!(changed(24, 0x11), Unreadable::NotDvmrp);
    assert!(matches!(changed(0, 0x65), Unreadable::Malformed(_)));
    assert!(matches!(changed(3, 255), Unreadable::Malformed(_)), "longer than it is");
    assert!(matches!(changed(6, 0x20), Unreadable::Malformed(_)), "a fragment");
    for length in 0..good.len() {
        assert!(Packet::parse(&good[..length]).is_err());
    }
}

#[test]
fn an_illegal_route_does_not_end_a_report() {
    // Gaps in the mask; bits behind it; multicast; the last one is right.
    let body = hex("00ff00 0a000081   f00000 0a0881   ff0000 e00001 ac1182");
    let routes: Vec<_> = Routes::parse(&body).expect("well formed").collect();
    assert_eq!(routes.iter().filter(|route| route.is_err()).count(), 3);
    assert_eq!(routes[3], Ok(Advertised { network: prefix("172.17.0.0/16"), metric: 2 }));
}

#[test]
fn a_report_takes_what_fits_and_not_more() {
    let mut writer = ReportWriter::default();
    let networks = (0..=255).map(|last| Prefix::of(Ipv4Addr::new(10, 1, 1, last), 32));
    let fits = networks.take_while(|network| writer.push(Advertised { network: *network, metric: 1 }));
    assert_eq!(fits.count(), (REPORT_BYTES_MAX - 3) / 5);
    assert!(writer.routes().bytes().len() <= REPORT_BYTES_MAX);
    let mut writer = ReportWriter::default();
    assert!(!writer.push(Advertised { network: prefix("64.0.0.0/2"), metric: 1 }), "no room for its mask");
}

fn any_pair() -> impl Strategy<Value = Pair> {
    (any::<u32>(), any::<u32>(), any::<Option<u32>>()).prop_map(|(source, group, mask)| Pair {
        source: Ipv4Addr::from_bits(source),
        group: Ipv4Addr::from_bits(group),
        mask,
    })
}

fn any_demand() -> impl Strategy<Value = Demand> {
    (any::<u32>(), 0_u8..=32, any::<u32>(), 1_u8..=127, any::<u32>(), any::<u32>()).prop_map(
        |(network, length, group, level, lifetime_s, sequence)| Demand {
            network: Prefix::of(Ipv4Addr::from_bits(network), length),
            group: Ipv4Addr::from_bits(group),
            level: Level::new(level).expect("a level"),
            lifetime_s,
            sequence,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        pair in any_pair(), demand in any_demand(), number: u32, addresses: Vec<[u8; 4]>, capabilities: u8,
    ) {
        let Demand { network, group, level, sequence, .. } = demand;
        for message in [
            Message::Probe { generation: number, neighbours: Addresses::new(&addresses) },
            Message::Prune(pair, number),
            Message::Graft(pair),
            Message::GraftAck(pair),
            Message::AskNeighbours2,
            Message::Demand(demand),
            Message::DemandAck(DemandAck { network, group, level, sequence }),
        ] {
            emitted(&message, capabilities);
        }
    }

    #[test]
    fn routes_that_are_written_are_read(
        mut routes in prop::collection::vec((any::<u32>(), 8_u8..=32, 1_u8..64), 0..200),
    ) {
        routes.sort_unstable_by_key(|(_, length, _)| *length);
        let (mut writer, mut written) = (ReportWriter::default(), Vec::new());
        for (network, length, metric) in routes {
            let route = Advertised { network: Prefix::of(Ipv4Addr::from_bits(network), length), metric };
            if writer.push(route) {
                written.push(Ok(route));
            }
        }
        let read = Routes::parse(writer.routes().bytes()).expect("well formed");
        prop_assert_eq!(read.collect::<Vec<_>>(), written);
        prop_assert!(writer.routes().bytes().len() <= REPORT_BYTES_MAX);
    }

    #[test]
    fn garbage_is_read_or_refused(code: u8, body: Vec<u8>) {
        let _ = Packet::parse(&body).map(|packet| packet.message());
        let mut message = vec![TYPE, code, 0, 0, 0, 0, MINOR, MAJOR];
        message.extend(&body);
        let sum = checksum(0, &message).to_be_bytes();
        message[2..4].copy_from_slice(&sum);
        let mut packet = Vec::new();
        emit_ip(PAIR.source, ALL_ROUTERS, message.len(), &mut packet);
        packet.extend(message);
        let packet = Packet::parse(&packet).expect("its headers are right");
        match packet.message() {
            Ok(Message::Report(routes)) => prop_assert!(routes.count() <= body.len()),
            Ok(Message::Neighbours2(sections)) => prop_assert!(sections.count() <= body.len()),
            Ok(_) => (),
            Err(error) => prop_assert!(error.offset <= body.len()),
        }
    }
}
