//! IGMP and MLD: packets, and what runs of messages do to a router and a host.

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use outflow_media::Time;
use outflow_routing::membership::packet::{Message, Writer, emit_leave, emit_old_report, emit_query, parse};
use outflow_routing::membership::{
    Family, Host, HostSettings, Interest, Level, Link, Router, RouterSettings, Version,
};

const GROUPS: usize = 20;
const HOSTS: usize = 5;
const GROUPS_OF_HOST: usize = 8;

/// Behind a byte of zero comes a packet: what is read can be written and read again. Behind another one come
/// messages for a router and a host, each behind three bytes: its sender and where it goes, how many
/// seconds pass before, and its length.
pub(crate) fn igmp(data: &[u8]) {
    membership(Family::V4, data);
}

/// See [`igmp`].
pub(crate) fn mld(data: &[u8]) {
    membership(Family::V6, data);
}

fn membership(family: Family, data: &[u8]) {
    match data.split_first() {
        Some((0, packet)) => read(family, packet),
        Some((_, messages)) => run(family, messages),
        None => (),
    }
}

fn node(family: Family, number: u8) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::new(10, 0, 0, number).into(),
        Family::V6 => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number.into()).into(),
    }
}

fn link(family: Family, number: u8) -> Link {
    Link::new(node(family, number), 24)
}

fn read(family: Family, bytes: &[u8]) {
    let link = link(family, 1);
    let Ok(packet) = parse(bytes, &link) else { return };
    let mut out = Vec::new();
    match packet.message {
        Message::Query(query) => {
            _ = emit_query(&query.head, node(family, 2), query.sources, &mut out);
            let Ok(again) = parse(&out, &link) else { panic!("it was a query") };
            let Message::Query(again) = again.message else { panic!("it was a query") };
            assert_eq!(again.head, query.head, "written and read");
            assert!(again.sources.eq(query.sources), "written and read");
            return;
        }
        Message::OldReport { version, group } => {
            emit_old_report(version, node(family, 2), group, &mut out);
        }
        Message::Leave { group } => emit_leave(node(family, 2), group, &mut out),
        Message::Report(report) => {
            let sources: usize = report.records.map(|record| record.sources.count()).sum();
            let levels = report.extension.levels().count();
            return assert!((sources + levels) * family.address_bytes() <= bytes.len());
        }
    }
    let again = parse(&out, &link).map(|again| again.message);
    assert_eq!(again, Ok(packet.message), "written and read");
}

/// The router is at 8, the host at 12; messages come from 1 to 16.
fn run(family: Family, mut data: &[u8]) {
    let mut now = Time::ZERO;
    let settings = RouterSettings {
        groups_max: GROUPS,
        hosts_max: HOSTS,
        host_groups_max: GROUPS_OF_HOST,
        fast_leave: data.len().is_multiple_of(2),
        ..RouterSettings::new(link(family, 8))
    };
    let mut router = Router::new(now, settings);
    let mut host = Host::new(now, HostSettings::new(link(family, 12), 1));
    let mut out = Vec::new();
    while let [how, wait, length, rest @ ..] = data {
        let (message, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        data = rest;
        now = pass(now, Duration::from_secs((*wait).into()), &mut router, &mut host);
        let group = message.get(family.address_bytes()..).and_then(|bytes| group(family, bytes));
        let destination = match how >> 4 {
            0..4 => family.all_nodes(),
            4..8 => family.all_routers(),
            8..12 => family.all_reports(),
            _ => group.unwrap_or(family.all_nodes()),
        };
        if let Some(group) = group {
            let level = Level::new(*wait).unwrap_or(Level::BEST);
            let wish = if how & 1 == 0 { Interest::all(level) } else { Interest::nothing() };
            _ = host.set(now, group, wish);
        }
        let mut packet = Writer::new(node(family, 1 + (how & 15)), destination, &mut out);
        packet.out().extend_from_slice(message);
        packet.finish();
        router.handle_packet(now, &out);
        host.handle_packet(now, &out);
        check(&mut router, &mut host, &mut out);
    }
    now = pass(now, Duration::from_secs(100_000), &mut router, &mut host);
    check(&mut router, &mut host, &mut out);
    assert!(router.next_timeout() > now, "it knows what is due next");
}

/// A group that the host is to join or leave: any bytes will do.
fn group(family: Family, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        Family::V4 => bytes.first_chunk::<4>().map(|bytes| IpAddr::from(*bytes)),
        Family::V6 => bytes.first_chunk::<16>().map(|bytes| IpAddr::from(*bytes)),
    }
}

/// Time passes. What is due is done, and then not due any more.
fn pass(now: Time, wait: Duration, router: &mut Router, host: &mut Host) -> Time {
    let (end, mut out) = (now + wait, Vec::new());
    for _ in 0..10_000 {
        let next = host.next_timeout().map_or(router.next_timeout(), |due| due.min(router.next_timeout()));
        if next > end {
            break;
        }
        router.handle_timeout(next);
        host.handle_timeout(next);
        check(router, host, &mut out);
        assert!(
            router.next_timeout() > next && host.next_timeout().is_none_or(|due| due > next),
            "it is done"
        );
    }
    end
}

/// All that is to be sent is well formed, and memory is bounded.
fn check(router: &mut Router, host: &mut Host, out: &mut Vec<u8>) {
    let listener = |of: IpAddr| link(Family::of(of), 99);
    while let Some(destination) = router.poll_transmit(out) {
        let packet = parse(out, &listener(destination)).expect("it is well formed");
        assert!(matches!(packet.message, Message::Query(query) if query.head.version == Version::V3));
    }
    while let Some(destination) = host.poll_transmit(out) {
        let packet = parse(out, &listener(destination)).expect("it is well formed");
        assert!(!matches!(packet.message, Message::Query(_)), "hosts ask nothing");
    }
    while router.poll().is_some() {}
    let [groups, hosts, members] = router.usage();
    assert!(groups <= GROUPS && hosts <= HOSTS && members <= HOSTS * GROUPS_OF_HOST, "memory is bounded");
}
