//! What a hostile host on a link can do at the most: memory is bounded, and all is counted.

use core::net::Ipv4Addr;

use outflow_media::Prefix;
use proptest::prelude::*;

use super::peer::{Bench, GROUP, OURS, PLAIN, on, packet, pair};
use crate::dvmrp::limits::{
    FLOWS_OF_INTERFACE_MAX, GROUPS_OF_INTERFACE_MAX, MESSAGES_BURST, NEIGHBOURS_MAX, ROUTES_MAX,
    ROUTES_OF_NEIGHBOUR_MAX,
};
use crate::dvmrp::packet::{Advertised, Message, ReportWriter};
use crate::dvmrp::{Event, InterfaceId, Refusal};

#[test]
fn a_flood_of_neighbours_is_refused() {
    let mut bench = Bench::new();
    for last in 6..=250 {
        bench.probe(0, last, 1, true, PLAIN);
    }
    let refused = 245 - NEIGHBOURS_MAX;
    assert_eq!(bench.router.neighbours().count(), NEIGHBOURS_MAX);
    assert_eq!(bench.refused(Refusal::NeighboursFull), refused as u64);
    bench.probe(1, 9, 1, true, PLAIN);
    assert_eq!(bench.router.neighbours().count(), NEIGHBOURS_MAX + 1, "another link is not concerned");
}

fn flood_routes(bench: &mut Bench, last: u8, first: u32, count: u32) {
    let mut writer = ReportWriter::default();
    for number in first..first + count {
        let network = Prefix::of(Ipv4Addr::from_bits(0x2000_0000 + (number << 8)), 24);
        let route = Advertised { network, metric: 3 };
        if !writer.push(route) {
            bench.hear(0, last, &Message::Report(writer.routes()), PLAIN);
            writer = ReportWriter::default();
            writer.push(route);
        }
    }
    bench.hear(0, last, &Message::Report(writer.routes()), PLAIN);
}

#[test]
fn a_flood_of_routes_is_refused_and_goes_away() {
    let mut bench = Bench::new();
    for last in 7..10 {
        bench.probe(0, last, 1, true, PLAIN);
        flood_routes(&mut bench, last, u32::from(last) * 10_000, 6000);
    }
    assert_eq!(bench.router.routes().len(), ROUTES_MAX);
    assert_eq!(bench.refused(Refusal::NeighbourRoutesFull), 6000 - ROUTES_OF_NEIGHBOUR_MAX as u64);
    let learnt = ROUTES_MAX - 3;
    let routes_full = 18_000 - learnt as u64 - (6000 - ROUTES_OF_NEIGHBOUR_MAX as u64);
    assert_eq!(bench.refused(Refusal::RoutesFull), routes_full);
    bench.pass(170, &[], &[]);
    assert_eq!(bench.router.routes().len(), 3, "when the neighbours are gone, and after hold-down");
}

#[test]
fn messages_of_one_neighbour_are_limited() {
    let mut bench = Bench::new();
    bench.probe(0, 9, 1, true, PLAIN);
    bench.probe(0, 8, 1, true, PLAIN);
    for _ in 0..MESSAGES_BURST + 100 {
        bench.hear(0, 9, &Message::Graft(pair(on(1, 3))), PLAIN);
    }
    assert_eq!(bench.refused(Refusal::TooFast), 100);
    assert_eq!(bench.asked(0).len(), MESSAGES_BURST as usize, "acknowledgements");
    bench.hear(0, 8, &Message::Graft(pair(on(1, 3))), PLAIN);
    assert_eq!(bench.refused(Refusal::TooFast), 100, "others are not concerned");
    bench.pass(1, &[], &[]);
    bench.hear(0, 9, &Message::Graft(pair(on(1, 3))), PLAIN);
    assert_eq!(bench.refused(Refusal::TooFast), 100, "it may go on a little later");
}

#[test]
fn generations_that_change_all_the_time_are_refused() {
    let mut bench = Bench::new();
    bench.probe(0, 9, 0, true, PLAIN);
    bench.sent(0);
    for generation in 1..=1000 {
        bench.probe(0, 9, generation, true, PLAIN);
    }
    assert_eq!((bench.refused(Refusal::TooFast), bench.sent(0)), (999, vec![]));
    bench.pass(10, &[], &[]);
    bench.probe(0, 9, 1001, true, PLAIN);
    let restarts = bench.events.iter().filter(|event| matches!(event, Event::NeighbourRestarted(_)));
    assert_eq!(restarts.count(), 2);
}

#[test]
fn a_flood_of_data_makes_a_bounded_number_of_flows() {
    let mut bench = Bench::new();
    for number in 0..FLOWS_OF_INTERFACE_MAX as u32 + 10 {
        let group = Ipv4Addr::from_bits(GROUP.to_bits() + number);
        let told = bench.router.handle_data(bench.now, InterfaceId(0), on(0, 77), group);
        assert_eq!(told.is_ok(), number < FLOWS_OF_INTERFACE_MAX as u32);
    }
    assert_eq!(bench.refused(Refusal::FlowsFull), 10);
    assert!(bench.data(1, on(1, 77)).is_ok(), "another link is not concerned");
    bench.pass(310, &[], &[]);
    assert_eq!(bench.router.flows().count(), 0, "when nothing comes they are forgotten");
    assert!(bench.data(0, on(0, 77)).is_ok());
}

#[test]
fn groups_with_members_are_limited_and_those_of_a_link_are_not_routed() {
    let mut bench = Bench::new();
    let level = crate::demand::Level::new(3);
    for number in 0..GROUPS_OF_INTERFACE_MAX as u32 + 10 {
        let group = Ipv4Addr::from_bits(GROUP.to_bits() + number);
        let _ = bench.router.set_member(bench.now, InterfaceId(0), group, level);
    }
    assert_eq!(bench.refused(Refusal::GroupsFull), 10);
    let all_hosts = Ipv4Addr::new(224, 0, 0, 1);
    let told = bench.router.set_member(bench.now, InterfaceId(1), all_hosts, level);
    assert_eq!(told, Err(Refusal::NotRouted));
    let told = bench.router.handle_data(bench.now, InterfaceId(0), on(0, 77), all_hosts);
    assert_eq!(told.map(drop), Err(Refusal::NotRouted));
}

proptest! {
    #[test]
    fn garbage_from_neighbours_never_panics(
        messages in prop::collection::vec(
            (any::<u8>(), 0_u8..12, prop::collection::vec(any::<u8>(), 0..40)),
            1..60,
        ),
    ) {
        let mut bench = Bench::new();
        bench.probe(0, 9, 1, true, OURS);
        bench.probe(1, 9, 1, true, OURS);
        bench.data(0, on(0, 77)).expect("routed");
        for (what, code, body) in messages {
            let (interface, source) = (u32::from(what % 2), on(u32::from(what % 2), 9));
            let code = if code > 9 { 0x66 + code } else { code };
            let template = packet(source, on(interface, 5), &Message::Other(code), OURS);
            let mut bytes = template;
            bytes.extend(&body);
            let total = (bytes.len() as u16).to_be_bytes();
            bytes[2..4].copy_from_slice(&total);
            for (from, to, at) in [(0, 24, 10), (24, bytes.len(), 26)] {
                bytes[at..at + 2].fill(0);
                let sum = crate::ip::checksum(0, &bytes[from..to]).to_be_bytes();
                bytes[at..at + 2].copy_from_slice(&sum);
            }
            bench.receive(interface, &bytes);
            bench.receive(interface, &body);
            if what > 200 {
                bench.pass(u64::from(what - 200), &[], &[]);
            }
        }
        prop_assert!(bench.router.routes().len() <= 3 + 60 * 10, "no more than was told");
    }
}
