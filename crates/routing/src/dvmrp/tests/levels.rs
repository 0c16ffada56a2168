//! Levels between neighbours that understand them, and those that do not.

use core::net::Ipv4Addr;

use outflow_media::Prefix;

use super::peer::{Bench, GROUP, OURS, PLAIN, Sent, on, pair};
use crate::demand::Level;
use crate::dvmrp::Refusal;
use crate::dvmrp::packet::{Demand, DemandAck, Message};

fn far() -> Prefix {
    Prefix::of(Ipv4Addr::new(192, 168, 0, 0), 24)
}

const SOURCE: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 3);

fn demand(number: u8, sequence: u32) -> Demand {
    let level = Level::new(number).expect("a level");
    Demand { network: far(), group: GROUP, level, lifetime_s: 200, sequence }
}

fn wants(bench: &mut Bench, last: u8, number: u8, sequence: u32) {
    bench.hear(1, last, &Message::Demand(demand(number, sequence)), OURS);
}

/// The one above can do so much; those below are on interface 1.
fn bench(above: u8, below: &[(u8, u8)]) -> Bench {
    let mut bench = Bench::new();
    bench.probe(0, 9, 1, true, above);
    bench.report(0, 9, far(), 3);
    for (last, can) in below {
        bench.probe(1, *last, 1, true, *can);
        bench.report(1, *last, far(), 37);
    }
    bench.data(0, SOURCE).expect("routed");
    bench.pass(1, &[], &[]);
    bench.asked(0);
    bench.asked(1);
    bench
}

const KEPT: [(u32, u8, u8); 3] = [(0, 9, OURS), (1, 9, OURS), (1, 8, OURS)];

#[test]
fn the_best_that_is_wanted_is_asked_for_above() {
    let mut bench = bench(OURS, &[(9, OURS), (8, OURS)]);
    assert_eq!(bench.outgoing(far()), [(1, 1)], "one that has not said anything gets the best");
    wants(&mut bench, 9, 8, 1);
    assert_eq!(bench.asked(1), [(on(1, 9), Sent::DemandAck(1))]);
    wants(&mut bench, 8, 20, 1);
    assert_eq!(bench.outgoing(far()), [(1, 8)]);
    bench.pass(3, &KEPT, &[]);
    assert_eq!(bench.asked(0), [(on(0, 9), Sent::Demand(far(), 8, 1))], "after a hold");
    bench.member(2, Some(3));
    assert_eq!(bench.outgoing(far()), [(1, 8), (2, 3)]);
    assert_eq!(bench.asked(0), [(on(0, 9), Sent::Demand(far(), 3, 2))], "at once");
}

#[test]
fn a_plain_neighbour_below_wants_the_best_and_one_above_is_told_nothing() {
    let mut mixed = bench(OURS, &[(9, OURS), (8, PLAIN)]);
    wants(&mut mixed, 9, 8, 1);
    mixed.pass(3, &[], &[]);
    assert_eq!((mixed.outgoing(far()), mixed.asked(0)), (vec![(1, 1)], vec![]));
    let mut under_plain = bench(PLAIN, &[(9, OURS)]);
    wants(&mut under_plain, 9, 8, 1);
    under_plain.pass(3, &[], &[]);
    assert_eq!((under_plain.outgoing(far()), under_plain.asked(0)), (vec![(1, 8)], vec![]));
}

#[test]
fn a_demand_is_repeated_until_it_is_acknowledged_and_then_each_minute() {
    let mut bench = bench(OURS, &[(9, OURS)]);
    let routes = [(0, 9, far(), 3), (1, 9, far(), 37)];
    wants(&mut bench, 9, 8, 1);
    let mut said = Vec::new();
    for _ in 0..20 {
        bench.pass(1, &KEPT, &[]);
        said.extend(bench.asked(0));
    }
    let demanded = (on(0, 9), Sent::Demand(far(), 8, 1));
    assert!((2..=3).contains(&said.len()) && said.iter().all(|said| *said == demanded), "{said:?}");
    let ack = DemandAck { network: far(), group: GROUP, level: Level::BEST, sequence: 1 };
    bench.hear(0, 9, &Message::DemandAck(DemandAck { sequence: 2, ..ack }), OURS);
    assert_eq!(bench.refused(Refusal::UnexpectedAck), 1);
    bench.hear(0, 9, &Message::DemandAck(ack), OURS);
    bench.pass(55, &KEPT, &routes);
    assert_eq!(bench.asked(0), []);
    bench.pass(21, &KEPT, &routes);
    assert_eq!(bench.asked(0).first(), Some(&(on(0, 9), Sent::Demand(far(), 8, 2))));
}

#[test]
fn a_demand_that_is_not_repeated_becomes_the_best() {
    let mut bench = bench(OURS, &[(9, OURS)]);
    wants(&mut bench, 9, 8, 1);
    let routes = [(0, 9, far(), 3), (1, 9, far(), 37)];
    bench.pass(198, &KEPT, &routes);
    assert_eq!(bench.outgoing(far()), [(1, 8)]);
    bench.pass(3, &KEPT, &routes);
    assert_eq!(bench.outgoing(far()), [(1, 1)]);
}

#[test]
fn a_demand_takes_back_a_prune() {
    let mut bench = bench(OURS, &[(9, OURS)]);
    bench.hear(1, 9, &Message::Prune(pair(SOURCE), 600), OURS);
    bench.pass(3, &KEPT, &[]);
    assert!(matches!(bench.asked(0)[..], [(_, Sent::Prune(..))]));
    wants(&mut bench, 9, 8, 1);
    assert_eq!(bench.outgoing(far()), [(1, 8)]);
    assert_eq!(bench.asked(0), [(on(0, 9), Sent::Demand(far(), 8, 1))], "it is the graft, too");
}

#[test]
fn demands_count_only_from_dependents_and_in_order() {
    let mut bench = bench(OURS, &[(9, OURS)]);
    bench.probe(2, 9, 1, true, OURS);
    bench.hear(2, 9, &Message::Demand(demand(4, 1)), OURS);
    assert_eq!((bench.refused(Refusal::NotDependent), bench.asked(2)), (1, vec![]), "it says so again");
    wants(&mut bench, 9, 8, 5);
    wants(&mut bench, 9, 4, 4);
    assert_eq!((bench.refused(Refusal::Older), bench.outgoing(far())), (1, vec![(1, 8)]));
    bench.probe(1, 9, 2, true, OURS);
    bench.report(1, 9, far(), 37);
    assert_eq!(bench.outgoing(far()), [(1, 1)], "what a restarted one wanted is forgotten");
    wants(&mut bench, 9, 6, 1);
    assert_eq!(bench.outgoing(far()), [(1, 6)]);
}

#[test]
fn a_restarted_neighbour_above_is_told_the_level_again() {
    let mut bench = bench(OURS, &[(9, OURS)]);
    wants(&mut bench, 9, 8, 1);
    bench.pass(3, &[], &[]);
    bench.asked(0);
    bench.probe(0, 9, 2, true, OURS);
    bench.report(0, 9, far(), 3);
    wants(&mut bench, 9, 8, 2);
    bench.data(0, SOURCE).expect("routed");
    bench.report(1, 9, far(), 37);
    wants(&mut bench, 9, 8, 3);
    bench.pass(3, &[], &[]);
    assert!(bench.asked(0).iter().any(|(_, said)| matches!(said, Sent::Demand(_, 8, _))));
}
