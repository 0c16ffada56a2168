//! What others read in what ours sends.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::time::Instant;

use outflow_routing::membership::{Level, Version};

use crate::hosts::{GROUP, SOURCE, member, say_level};
use crate::net::lacks;
use crate::peers::Chain;
use crate::relay::{PATIENCE, Relay};
use crate::wire::{Igmp, LEAVE, QUERY, REPORT_V2, REPORT_V3, Wire};

/// Raw IP in a capture (LINKTYPE_RAW).
const LINK_TYPE: u32 = 101;
/// Record types of IGMPv3.
const INCLUDES: u8 = 1;
const CHANGES_TO_EXCLUDE: u8 = 4;

/// A capture file's bytes.
fn capture(packets: &[Igmp]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, LINK_TYPE] {
        file.extend_from_slice(&u32::to_le_bytes(word));
    }
    for packet in packets {
        let length = packet.bytes.len() as u32;
        for word in [0, 0, length, length] {
            file.extend_from_slice(&u32::to_le_bytes(word));
        }
        file.extend_from_slice(&packet.bytes);
    }
    file
}

/// What tshark reads: for each packet its type, whether the checksums are right, and what it finds wrong.
fn dissect(packets: &[Igmp]) -> Vec<Vec<String>> {
    let fields =
        ["igmp.type", "ip.checksum.status", "igmp.checksum.status", "_ws.malformed", "_ws.expert.message"];
    let mut child = Command::new("tshark")
        .args(["-r", "-", "-n", "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
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
    let read = dissect(&all);
    assert_eq!(read.len(), all.len());
    for (packet, read) in all.iter().zip(&read) {
        let kind = format!("0x{:02x}", packet.code);
        assert_eq!(read[..3], [kind.as_str(), "1", "1"], "type and good checksums: {read:?} of {packet:?}");
        assert!(read[3..].iter().all(String::is_empty), "{read:?} of {packet:?}");
    }
}
