//! What is written is read again; whatever comes is read without a panic.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

fn group(family: Family) -> BoxedStrategy<IpAddr> {
    match family {
        Family::V4 => (0xe000_0000..0xf000_0000_u32).prop_map(|bits| Ipv4Addr::from(bits).into()).boxed(),
        Family::V6 => any::<u128>().prop_map(|bits| Ipv6Addr::from(bits | 0xff << 120).into()).boxed(),
    }
}

fn unicast(family: Family) -> BoxedStrategy<IpAddr> {
    match family {
        Family::V4 => any::<u32>().prop_map(|bits| Ipv4Addr::from(bits).into()).boxed(),
        Family::V6 => any::<u128>().prop_map(|bits| Ipv6Addr::from(bits).into()).boxed(),
    }
}

fn family() -> impl Strategy<Value = Family> {
    prop_oneof![Just(Family::V4), Just(Family::V6)]
}

fn ends(family: Family) -> (IpAddr, Link) {
    match family {
        Family::V4 => (address("10.0.0.2"), link("10.0.0.1")),
        Family::V6 => (address("fe80::2"), link("fe80::1")),
    }
}

type OneRecord = (usize, IpAddr, Vec<IpAddr>, Option<u8>);

fn records() -> impl Strategy<Value = (Family, Vec<OneRecord>)> {
    family().prop_flat_map(|family| {
        let sources = prop::collection::vec(unicast(family), 0..20);
        let record = (0..6_usize, group(family), sources, any::<Option<u8>>());
        (Just(family), prop::collection::vec(record, 0..30))
    })
}

fn queries() -> impl Strategy<Value = (Family, Vec<IpAddr>, QueryHead)> {
    let numbers = (any::<bool>(), 0..8_u8, 0..40_000_u64, 0..4_000_000_u64);
    family().prop_flat_map(move |family| {
        let sources = prop::collection::vec(unicast(family), 0..64);
        (Just(family), sources, prop::option::of(group(family)), numbers.clone()).prop_map(
            |(family, sources, group, (suppress, robustness, interval, response))| {
                let (max_response, interval) =
                    (Duration::from_millis(response), Duration::from_secs(interval));
                let version = Version::V3;
                let head = QueryHead { version, group, max_response, suppress, robustness, interval };
                (family, if group.is_some() { sources } else { Vec::new() }, head)
            },
        )
    })
}

proptest! {
    #[test]
    fn a_query_is_read_as_it_was_written((family, sources, head) in queries()) {
        let ((source, link), mut out) = (ends(family), Vec::new());
        emit_query(&head, source, sources.iter().copied(), &mut out);
        let packet = parse(&out, &link).expect("well formed");
        let Message::Query(query) = packet.message else { panic!("it is a query") };
        prop_assert_eq!(query.sources.collect::<Vec<_>>(), sources.clone());
        // Times were rounded down to what can be written; those can be.
        prop_assert!(query.head.max_response <= head.max_response && query.head.interval <= head.interval);
        let mut again = Vec::new();
        emit_query(&query.head, source, sources, &mut again);
        prop_assert_eq!(&again, &out);
        let same = QueryHead { max_response: head.max_response, interval: head.interval, ..query.head };
        prop_assert_eq!(same, head);
    }

    #[test]
    fn a_report_is_read_as_it_was_written((family, records) in records(), sequence in any::<u32>()) {
        let ((source, link), mut entries, mut out) = (ends(family), Vec::new(), Vec::new());
        let mut writer = ReportWriter::new(source, Some(sequence), &mut entries, &mut out);
        let mut written = Vec::new();
        for (kind, group, sources, level) in records {
            let kind = [RecordKind::IsIn, RecordKind::IsEx, RecordKind::ToIn, RecordKind::ToEx,
                RecordKind::Allow, RecordKind::Block][kind];
            if writer.push(kind, group, sources.iter().copied(), level) {
                written.push((kind, group, sources, level));
            }
        }
        prop_assert_eq!(writer.finish(), !written.is_empty());
        prop_assert!(out.len() <= PACKET_BYTES_MAX);
        let packet = parse(&out, &link).expect("well formed");
        let Message::Report(report) = packet.message else { panic!("it is a report") };
        let levels: Vec<_> = written
            .iter()
            .filter_map(|(_, group, _, level)| Some(Entry { sequence, group: *group, level: (*level)? }))
            .collect();
        prop_assert_eq!(report.extension.levels().collect::<Vec<_>>(), levels);
        prop_assert!(!report.extension.is_malformed() && report.unknown == 0);
        let read: Vec<_> = report.records.map(|one| (one.kind, one.group, one.sources.collect())).collect();
        let written: Vec<_> = written.into_iter().map(|(kind, group, list, _)| (kind, group, list)).collect();
        prop_assert_eq!(read, written);
    }

    #[test]
    fn whatever_comes_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for link in [link("10.0.0.1"), link("fe80::1")] {
            let _ = parse(&bytes, &link);
            // In a packet of its own, it gets as far as the message.
            let source = ends(link.family()).0;
            for destination in [link.family().all_nodes(), link.family().all_reports(), link.address] {
                let mut out = Vec::new();
                let mut packet = Writer::new(source, destination, &mut out);
                packet.out().extend_from_slice(&bytes);
                packet.finish();
                let Ok(packet) = parse(&out, &link) else { continue };
                if let Message::Report(report) = packet.message {
                    prop_assert!(report.records.map(|one| one.sources.count() * 4 + 8).sum::<usize>() <= 200);
                    prop_assert!(report.extension.levels().count() <= 200);
                }
            }
        }
    }
}
