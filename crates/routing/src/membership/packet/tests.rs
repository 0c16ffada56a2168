//! Golden bytes, what is refused and why, and properties of whatever comes.

use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::membership::limits::PACKET_BYTES_MAX;

mod properties;

pub(super) fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

pub(super) fn link(text: &str) -> Link {
    Link::new(address(text), 24)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).expect("digits"), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("hexadecimal")).collect()
}

/// A packet with a message whose checksum is written.
pub(super) fn wrap(source: &str, destination: &str, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut packet = Writer::new(address(source), address(destination), &mut out);
    packet.out().extend_from_slice(message);
    packet.finish();
    out
}

/// Why a packet is refused by 10.0.0.1/24.
fn refused(bytes: &[u8]) -> Option<Reason> {
    parse(bytes, &link("10.0.0.1")).err()
}

fn query(version: Version, group: Option<&str>) -> QueryHead {
    QueryHead {
        version,
        group: group.map(address),
        max_response: Duration::from_secs(10),
        suppress: false,
        robustness: 2,
        interval: Duration::from_secs(125),
    }
}

const V2_REPORT: &str = "46c0 0020 0000 0000 0102 3712 0a00 0002 e101 0203 9404 0000 1600 06fb e101 0203";

#[test]
fn an_igmpv2_report_is_that_of_rfc_2236() {
    let mut out = Vec::new();
    emit_old_report(Version::V2, address("10.0.0.2"), address("225.1.2.3"), &mut out);
    assert_eq!(out, hex(V2_REPORT));
    let packet = parse(&out, &link("10.0.0.1")).expect("well formed");
    let group = address("225.1.2.3");
    assert_eq!(packet.message, Message::OldReport { version: Version::V2, group });
    assert_eq!(packet.source, address("10.0.0.2"));
    emit_leave(address("10.0.0.2"), group, &mut out);
    assert_eq!(out[24..], hex("1700 05fb e101 0203"));
    assert_eq!(out[16..20], [224, 0, 0, 2]);
    assert_eq!(parse(&out, &link("10.0.0.1")).expect("well formed").message, Message::Leave { group });
}

#[test]
fn queries_are_those_of_their_versions() {
    let mut out = Vec::new();
    let group = Some("225.1.2.3");
    let golden = [
        (Version::V1, None, "1100 eeff 0000 0000"),
        (Version::V2, None, "1164 ee9b 0000 0000"),
        (Version::V3, None, "1164 ec1e 0000 0000 027d 0000"),
        (Version::V3, group, "1164 091a e101 0203 027d 0000"),
    ];
    for (version, group, bytes) in golden {
        emit_query(&query(version, group), address("10.0.0.2"), [], &mut out);
        assert_eq!(out[24..], hex(bytes), "{version:?}");
        let packet = parse(&out, &link("10.0.0.1")).expect("well formed");
        let Message::Query(read) = packet.message else { panic!("it is a query") };
        assert_eq!((read.head.version, read.head.max_response), (version, Duration::from_secs(10)));
        assert_eq!(read.head.group, group.map(address));
    }
    emit_query(&query(Version::V3, group), address("10.0.0.2"), [address("192.0.2.1")], &mut out);
    assert_eq!(out[24..], hex("1164 4717 e101 0203 027d 0001 c000 0201"));
    assert_eq!(out[16..20], [225, 1, 2, 3]);
}

#[test]
fn mld_messages_are_those_of_rfc_2710_and_3810() {
    let (source, group) = (address("fe80::2"), address("ff0e::1:2"));
    let mut out = Vec::new();
    emit_old_report(Version::V2, source, group, &mut out);
    let head = "6000 0000 0020 0001 fe80 0000 0000 0000 0000 0000 0000 0002";
    let head = format!("{head} ff0e 0000 0000 0000 0000 0000 0001 0002 3a00 0502 0000 0100");
    let body = "8300 8006 0000 0000 ff0e 0000 0000 0000 0000 0000 0001 0002";
    assert_eq!(out, hex(&format!("{head}{body}")));
    emit_query(&query(Version::V3, None), source, [], &mut out);
    assert_eq!(out[48..], hex(&format!("8200 5695 2710 0000 {} 027d 0000", "0000".repeat(8))));
    let packet = parse(&out, &link("fe80::1")).expect("well formed");
    let Message::Query(read) = packet.message else { panic!("it is a query") };
    assert_eq!(read.head, query(Version::V3, None));
    emit_leave(source, group, &mut out);
    let packet = parse(&out, &link("fe80::1")).expect("well formed");
    assert_eq!(packet.message, Message::Leave { group });
}

#[test]
fn a_report_with_levels_has_the_e_flag_and_one_tlv() {
    let (mut entries, mut out) = (Vec::new(), Vec::new());
    let mut writer = ReportWriter::new(address("10.0.0.2"), Some(0x0102_0304), &mut entries, &mut out);
    assert!(writer.push(RecordKind::ToEx, address("225.1.2.3"), [], Some(5)));
    assert!(writer.push(RecordKind::Allow, address("232.1.2.3"), [address("192.0.2.1")], None));
    assert!(writer.finish());
    let records = "0400 0000 e101 0203  0500 0001 e801 0203 c000 0201";
    let tlv = "fffe 0010 4f46 4c01 0102 0304 e101 0203 0500 0000";
    assert_eq!(out[24..], hex(&format!("2200 3e8f 8000 0002 {records} {tlv}")));
    let packet = parse(&out, &link("10.0.0.1")).expect("well formed");
    let Message::Report(report) = packet.message else { panic!("it is a report") };
    let entry = Entry { sequence: 0x0102_0304, group: address("225.1.2.3"), level: 5 };
    assert_eq!(report.extension.levels().collect::<Vec<_>>(), [entry]);
    assert_eq!(report.records.count(), 2);
}

#[test]
fn each_header_that_is_wrong_has_its_reason() {
    let good = hex(V2_REPORT);
    assert_eq!(refused(&good), None);
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        bytes[10..12].fill(0);
        let sum = checksum(0, &bytes[..24]).to_be_bytes();
        bytes[10..12].copy_from_slice(&sum);
        refused(&bytes)
    };
    assert_eq!(changed(0, 0x66), Some(Reason::NotIp));
    assert_eq!(changed(0, 0x44), Some(Reason::NotIp));
    assert_eq!(changed(3, 33), Some(Reason::Truncated));
    assert_eq!(changed(6, 0x20), Some(Reason::Fragment));
    assert_eq!(changed(8, 2), Some(Reason::HopLimit));
    assert_eq!(changed(9, 17), Some(Reason::OtherType));
    assert_eq!(changed(15, 1), Some(Reason::Own));
    assert_eq!(changed(14, 1), Some(Reason::Source));
    assert_eq!(changed(19, 4), Some(Reason::Destination));
    assert_eq!(changed(20, 0x82), Some(Reason::RouterAlert));
    assert_eq!(changed(24, 0x2a), Some(Reason::OtherType));
    assert_eq!(changed(25, 1), Some(Reason::Checksum));
    let mut bytes = good.clone();
    bytes[10] ^= 1;
    assert_eq!(refused(&bytes), Some(Reason::HeaderChecksum));
    assert_eq!(refused(&good[..31]), Some(Reason::Truncated));
    let padded = [&good[..], &[0; 14]].concat();
    assert_eq!(refused(&padded), None, "padding of a link is left out");
}

#[test]
fn each_message_that_is_wrong_has_its_reason() {
    let query = |to: &str, message: &str| refused(&wrap("10.0.0.2", to, &hex(message)));
    assert_eq!(query("224.0.0.1", "1164 0000 0000 0000"), None);
    assert_eq!(query("10.0.0.1", "1164 0000 0000 0000"), None, "RFC 3376 section 4.1.12");
    assert_eq!(query("225.1.2.3", "1164 0000 0000 0000"), Some(Reason::Destination));
    assert_eq!(query("224.0.0.1", "1164 0000 0000 0000 02"), Some(Reason::QueryLength));
    assert_eq!(query("224.0.0.1", "1164 0000 0000 00"), Some(Reason::Truncated));
    assert_eq!(query("224.0.0.1", "1164 0000 0a00 0001"), Some(Reason::NotMulticast));
    let sources = "1164 0000 0000 0000 027d 0001 c000 0201";
    assert_eq!(query("224.0.0.1", sources), Some(Reason::SourcesOfNoGroup));
    assert_eq!(query("225.1.2.3", "1164 0000 e101 0203 027d 0002 c000 0201"), Some(Reason::Truncated));
    let report = |message: &str| refused(&wrap("10.0.0.2", "224.0.0.22", &hex(message)));
    assert_eq!(report("2200 0000 0000 0001 0400 0000 e101 0203"), None);
    assert_eq!(report("2200 0000 0000 0002 0400 0000 e101 0203"), Some(Reason::Truncated));
    assert_eq!(report("2200 0000 0000 0001 0400 0001 e101 0203"), Some(Reason::Truncated));
    assert_eq!(report("2200 0000 0000 0001 0401 0000 e101 0203"), Some(Reason::Truncated));
    assert_eq!(
        refused(&wrap("10.0.0.2", "224.0.0.2", &hex("1700 0000 0a01 0203"))),
        Some(Reason::NotMulticast)
    );
}

#[test]
fn sources_are_on_the_link_or_have_no_address_yet() {
    let report = hex("2200 0000 0000 0001 0400 0000 e101 0203");
    assert_eq!(refused(&wrap("0.0.0.0", "224.0.0.22", &report)), None, "RFC 3376 section 4.2.13");
    assert_eq!(refused(&wrap("192.0.2.1", "224.0.0.22", &report)), Some(Reason::Source));
    let from =
        |source: &str| parse(&wrap(source, "ff02::16", &hex("8f00 0000 0000 0000")), &link("fe80::1")).err();
    assert_eq!(from("fe80::2"), None);
    assert_eq!(from("2001:db8::2"), Some(Reason::Source), "RFC 3810 section 5.2.13");
    assert_eq!(from("::"), Some(Reason::Source));
}

#[test]
fn a_version_1_report_needs_no_router_alert() {
    let mut bytes = hex("4500 001c 0000 0000 0102 0000 0a00 0002 e101 0203 1200 0afb e101 0203");
    let sum = checksum(0, &bytes[..20]).to_be_bytes();
    bytes[10..12].copy_from_slice(&sum);
    assert_eq!(refused(&bytes), None);
    bytes[20] = 0x16;
    bytes[22..24].copy_from_slice(&hex("06fb"));
    assert_eq!(refused(&bytes), Some(Reason::RouterAlert));
    let lenient = Link { needs_router_alert: false, ..link("10.0.0.1") };
    assert!(parse(&bytes, &lenient).is_ok());
}

#[test]
fn records_of_unknown_types_and_auxiliary_data_are_left_out() {
    let records = "0901 0000 e101 0203 ffff ffff  0402 0001 e101 0204 c000 0201 0000 0000 0000 0000";
    let bytes = wrap("10.0.0.2", "224.0.0.22", &hex(&format!("2200 0000 0000 0002 {records}")));
    let packet = parse(&bytes, &link("10.0.0.1")).expect("well formed");
    let Message::Report(report) = packet.message else { panic!("it is a report") };
    assert_eq!(report.unknown, 1);
    let records: Vec<_> = report.records.collect();
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].kind, records[0].group), (RecordKind::ToEx, address("225.1.2.4")));
    assert_eq!(records[0].sources.collect::<Vec<_>>(), [address("192.0.2.1")]);
}

#[test]
fn an_extension_that_does_not_end_with_the_packet_is_ignored_as_a_whole() {
    let levels = |flag: u8, extension: &str| {
        let message = format!("2200 0000 {flag:02x}00 0001 0400 0000 e101 0203 {extension}");
        let bytes = wrap("10.0.0.2", "224.0.0.22", &hex(&message));
        let packet = parse(&bytes, &link("10.0.0.1")).expect("well formed");
        let Message::Report(report) = packet.message else { panic!("it is a report") };
        (report.extension.is_malformed(), report.extension.levels().map(|entry| entry.level).collect())
    };
    let tlv = "fffe 0010 4f46 4c01 0000 0001 e101 0203 0700 0000";
    assert_eq!(levels(0x80, tlv), (false, vec![7]));
    assert_eq!(levels(0x00, tlv), (false, vec![]), "without the flag");
    assert_eq!(levels(0x80, &format!("0000 0001 ff 0042 0000 {tlv}")), (false, vec![7]), "behind others");
    assert_eq!(levels(0x80, &format!("{tlv} 0000 00")), (true, vec![]), "bytes behind the end");
    assert_eq!(levels(0x80, &format!("{tlv} 0000 0001")), (true, vec![]), "cut off");
    let other = "fffe 0010 4f46 4c02 0000 0001 e101 0203 0700 0000";
    assert_eq!(levels(0x80, &format!("{other} {tlv}")), (false, vec![7]), "another experiment");
    assert_eq!(levels(0x80, "fffe 0009 4f46 4c01 0000 0001 e1"), (false, vec![]), "less than an entry");
}
