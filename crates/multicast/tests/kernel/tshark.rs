//! What others read in what ours sends.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::time::Instant;

use outflow_multicast::Event;
use outflow_routing::dvmrp::packet::{GENERATIONS, Message, PRUNES, Pair};
use outflow_routing::membership::packet::checksum;
use outflow_routing::membership::{Level, Version};

use crate::dvmrp::{Ends, Line, came_in};
use crate::hosts::{GROUP, SOURCE, member, say_level, sent_until_received};
use crate::mld;
use crate::net::lacks;
use crate::peers::Chain;
use crate::relay::{PATIENCE, Relay};
use crate::wire::{Igmp, LEAVE, QUERY, REPORT_V2, REPORT_V3, Wire};

/// Raw IP in a capture (LINKTYPE_RAW).
const LINK_TYPE: u32 = 101;
/// Record types of IGMPv3.
const INCLUDES: u8 = 1;
const CHANGES_TO_EXCLUDE: u8 = 4;
/// The protocol of IP, and the type of it that is DVMRP.
const IGMP: u8 = 2;
const DVMRP: u8 = 0x13;

/// A capture file's bytes.
fn capture<'a>(packets: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, LINK_TYPE] {
        file.extend_from_slice(&u32::to_le_bytes(word));
    }
    for packet in packets {
        let length = packet.len() as u32;
        for word in [0, 0, length, length] {
            file.extend_from_slice(&u32::to_le_bytes(word));
        }
        file.extend_from_slice(packet);
    }
    file
}

/// What tshark reads: for each packet these fields, and then what it finds wrong.
fn dissect<'a>(packets: impl IntoIterator<Item = &'a [u8]>, fields: &[&str]) -> Vec<Vec<String>> {
    let fields = fields.iter().chain(&["_ws.malformed", "_ws.expert.message"]);
    let mut child = Command::new("tshark")
        .args(["-r", "-", "-n", "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|"])
        .args(fields.flat_map(|field| ["-e", field]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("tshark");
    child.stdin.take().expect("a pipe").write_all(&capture(packets)).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "tshark reads the capture");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

/// Finds nothing wrong in packets but what is `known`: each has a good checksum, and there are all of these types.
fn are_clean(
    packets: &[Vec<u8>],
    [code, sum]: [&str; 2],
    types: &[&str],
    known: impl Fn(&[u8], &str) -> bool,
) {
    let read = dissect(packets.iter().map(Vec::as_slice), &[code, sum]);
    assert_eq!(read.len(), packets.len());
    for (packet, read) in packets.iter().zip(&read) {
        assert_eq!(read[1], "1", "a good checksum: {read:?} of {packet:02x?}");
        let is_fine = |found: &String| found.is_empty() || known(packet, found);
        assert!(read[2..].iter().all(is_fine), "{read:?} of {packet:02x?}");
    }
    let seen: BTreeSet<_> = read.iter().map(|read| read[0].as_str()).collect();
    assert!(types.iter().all(|one| seen.contains(one)), "{types:?} in {seen:?}");
}

/// What is looked for: its name, and how it is told.
type Sought<'a> = (&'a str, &'a dyn Fn(&Igmp) -> bool);

/// Takes what ours sends until all that is named was among it.
fn collect(wire: &Wire, ours: Ipv4Addr, wanted: &[Sought<'_>], all: &mut Vec<Igmp>) {
    let mut missing: BTreeSet<usize> = (0..wanted.len()).collect();
    let what = |missing: &BTreeSet<usize>| missing.iter().map(|which| wanted[*which].0).collect::<Vec<_>>();
    let end = Instant::now() + PATIENCE;
    while !missing.is_empty() {
        assert!(Instant::now() < end, "did not come: {:?}; but {all:?}", what(&missing));
        let packet = wire.wait(&format!("{:?}", what(&missing)), |packet| packet.source == ours);
        missing.retain(|which| !wanted[*which].1(&packet));
        all.push(packet);
    }
}

const TOP: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const BOTTOM: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);

/// Queries of each version, and what a proxy says above them.
fn said_in(version: Version, all: &mut Vec<Igmp>) {
    let chain = Chain::new();
    let wire = Wire::listen(&chain.top, "mid");
    let _top = Relay::start_as(version, &chain.top, &["mid"], None);
    let _bottom = Relay::start(&chain.bottom, &["lan"], Some("wan"));
    let is_general = |packet: &Igmp| packet.code == QUERY && packet.group.is_unspecified();
    let is_of_group = |packet: &Igmp| packet.code == QUERY && packet.group == GROUP;
    collect(&wire, TOP, &[("a query of all", &is_general)], all);
    let socket = member(&chain.host, Ipv4Addr::new(10, 3, 0, 2));
    if version == Version::V2 {
        let is_report = |packet: &Igmp| packet.code == REPORT_V2 && packet.group == GROUP;
        collect(&wire, BOTTOM, &[("a report of version 2", &is_report)], all);
        drop(socket);
        let is_leave = |packet: &Igmp| packet.code == LEAVE && packet.group == GROUP;
        collect(&wire, BOTTOM, &[("a leave", &is_leave)], all);
    } else {
        let is_join = |packet: &Igmp| is_record(packet, CHANGES_TO_EXCLUDE);
        collect(&wire, BOTTOM, &[("a join", &is_join)], all);
        drop(socket);
    }
    collect(&wire, TOP, &[("a query of the group", &is_of_group)], all);
}

fn is_record(packet: &Igmp, kind: u8) -> bool {
    packet.code == REPORT_V3 && packet.message().get(8) == Some(&kind)
}

/// Whether a report has an extension (RFC 9279 section 3) that says this level of the group.
fn says_level(packet: &Igmp, level: u8) -> bool {
    let [a, b, c, d] = GROUP.octets();
    let is_extended = packet.code == REPORT_V3 && packet.message()[4] & 0x80 != 0;
    is_extended && packet.message().windows(5).any(|bytes| bytes == [a, b, c, d, level])
}

/// Levels and sources, which only version 3 has.
fn said_of_levels_and_sources(all: &mut Vec<Igmp>) {
    let chain = Chain::new();
    let wire = Wire::listen(&chain.top, "mid");
    let _top = Relay::start(&chain.top, &["mid"], None);
    let _bottom = Relay::start(&chain.bottom, &["lan"], Some("wan"));
    collect(&wire, TOP, &[("a query of all", &|packet| packet.code == QUERY)], all);
    say_level(&chain.host, Level::new(3).expect("not zero"));
    collect(&wire, BOTTOM, &[("a level", &|packet| says_level(packet, 3))], all);
    let socket = chain.host.run(|| std::net::UdpSocket::bind(("0.0.0.0", 0)).expect("a socket"));
    let (options, here) = (socket2::SockRef::from(&socket), Ipv4Addr::new(10, 3, 0, 2));
    let group = Ipv4Addr::new(232, 1, 2, 3);
    options.join_ssm_v4(&SOURCE, &group, &here).expect("a membership");
    let is_included = |packet: &Igmp| packet.code == REPORT_V3 && contains(packet, SOURCE);
    collect(
        &wire,
        BOTTOM,
        &[
            ("a source", &is_included),
            ("an answer", &|packet| is_record(packet, INCLUDES) || is_record(packet, 2)),
        ],
        all,
    );
    options.leave_ssm_v4(&SOURCE, &group, &here).expect("a membership");
    let is_asked = |packet: &Igmp| packet.code == QUERY && packet.group == group && contains(packet, SOURCE);
    collect(&wire, TOP, &[("a query of the source", &is_asked)], all);
}

fn contains(packet: &Igmp, address: Ipv4Addr) -> bool {
    packet.message().windows(4).any(|bytes| bytes == address.octets())
}

#[test]
fn tshark_finds_nothing_wrong_in_what_ours_sends() {
    if lacks("tshark_finds_nothing_wrong_in_what_ours_sends", "tshark", "tshark") {
        return;
    }
    let mut all = Vec::new();
    said_in(Version::V2, &mut all);
    said_in(Version::V3, &mut all);
    said_of_levels_and_sources(&mut all);
    let fields = ["igmp.type", "ip.checksum.status", "igmp.checksum.status"];
    let read = dissect(all.iter().map(|packet| packet.bytes.as_slice()), &fields);
    assert_eq!(read.len(), all.len());
    for (packet, read) in all.iter().zip(&read) {
        let kind = format!("0x{:02x}", packet.code);
        assert_eq!(read[..3], [kind.as_str(), "1", "1"], "type and good checksums: {read:?} of {packet:?}");
        assert!(read[3..].iter().all(String::is_empty), "{read:?} of {packet:?}");
    }
}

#[test]
fn tshark_finds_nothing_wrong_in_what_ours_sends_of_dvmrp() {
    if lacks("tshark_finds_nothing_wrong_in_what_ours_sends_of_dvmrp", "tshark", "tshark") {
        return;
    }
    let line = Line::new();
    let wire = Wire::listen(&line.routers[0], "ab");
    let _relays = line.start();
    let mut ends = Ends::new(&line.source);
    ends.sent_until_silent(|| came_in(&line.routers[1], "ba"));
    let socket = line.member();
    sent_until_received(&ends.from, &socket);
    assert_eq!(ends.copies(&socket, 20), [1; 20], "grafted");
    drop(socket);
    ends.sent_until_silent(|| came_in(&line.routers[1], "ba"));
    let is_dvmrp = |packet: &Vec<u8>| {
        packet.get(9) == Some(&IGMP) && packet.get(usize::from(packet[0] & 0xf) * 4) == Some(&DVMRP)
    };
    let mut packets: Vec<_> = wire.all().into_iter().filter(is_dvmrp).collect();
    // What routers that know no levels are sent instead of demands.
    let pair = Pair { source: SOURCE, group: GROUP, mask: None };
    packets.extend([Message::Graft(pair), Message::GraftAck(pair)].map(|message| of_dvmrp(&message)));
    // Probes, reports, prunes; these; demands. What is for the next router alone goes no farther.
    let types = ["0x01", "0x02", "0x07", "0x08", "0x09", "0x70", "0x71"];
    let is_noted = |_: &[u8], found: &str| found == r#""Time To Live" only 1"#;
    are_clean(&packets, ["dvmrp.v3.code", "dvmrp.checksum.status"], &types, is_noted);
}

/// A message in a packet to the next router.
fn of_dvmrp(message: &Message<'_>) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 1, IGMP, 0, 0, 10, 2, 0, 1, 10, 2, 0, 2];
    message.emit(PRUNES | GENERATIONS, &mut packet);
    packet[3] = packet.len() as u8;
    let sum = checksum(0, &packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// What goes over the link between two of ours while a host behind them joins and leaves.
fn said_in_mld(version: Version) -> Vec<Vec<u8>> {
    let chain = mld::Chain::new();
    let wire = Wire::listen(&chain.top, "mid");
    // The proxy is there first: it hears the first query, by which it knows the version.
    let below = Relay::start_v6(&chain.bottom, &["lan"], Some("wan"));
    let above = Relay::start_v6_as(version, &chain.top, &["in0", "mid"], None);
    let at = mld::member(&chain.host);
    above.wait("join above", mld::is_wanted);
    if version == Version::V3 {
        mld::say_level(&chain.host, Level::new(3).expect("not zero"));
        let level =
            |event: &Event| matches!(event, Event::Wanted { wanted, .. } if wanted.level != Level::BEST);
        above.wait("its level above", level);
    }
    drop(at);
    below.wait("leave", mld::is_gone);
    above.wait("leave above", mld::is_gone);
    let is_mld = |packet: &Vec<u8>| {
        let code = packet.get(48).copied().unwrap_or_default();
        packet[0] >> 4 == 6 && packet[6] == 0 && matches!(code, 130..=132 | 143)
    };
    wire.all().into_iter().filter(is_mld).collect()
}

#[test]
fn tshark_finds_nothing_wrong_in_what_ours_sends_of_mld() {
    if lacks("tshark_finds_nothing_wrong_in_what_ours_sends_of_mld", "tshark", "tshark") {
        return;
    }
    let fields = ["icmpv6.type", "icmpv6.checksum.status"];
    // It takes what is behind the records for more of them, which readers are to pass over (RFC 3810 section 5.2.11).
    let is_extended = |packet: &[u8], _: &str| packet[48] == 143 && packet[52] & 0x80 != 0;
    are_clean(&said_in_mld(Version::V2), fields, &["130", "131", "132"], is_extended);
    are_clean(&said_in_mld(Version::V3), fields, &["130", "143"], is_extended);
}
