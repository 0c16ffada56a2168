//! The rules of the draft, one by one. Behind interface 0 there is a source, 192.168.0.0/24, over 10.0.0.9;
//! neighbours on 1 and 2 depend on us.

use core::net::Ipv4Addr;
use core::time::Duration;

use outflow_media::Prefix;

use super::peer::{Bench, GROUP, OURS, PLAIN, Sent, lan, on, packet, pair};
use crate::dvmrp::packet::{ALL_ROUTERS, Message, Pair};
use crate::dvmrp::routes::Via;
use crate::dvmrp::{Event, InterfaceId, InterfaceSettings, Link, Peer, Refusal};

fn far() -> Prefix {
    Prefix::of(Ipv4Addr::new(192, 168, 0, 0), 24)
}

const SOURCE: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 3);

const fn peer(interface: u32, last: u8) -> Peer {
    Peer { interface: InterfaceId(interface), address: on(interface, last) }
}

/// With the neighbour above, and those given below, all of which hear us.
fn bench(below: &[(u32, u8)]) -> Bench {
    let mut bench = Bench::new();
    bench.probe(0, 9, 1, true, PLAIN);
    bench.report(0, 9, far(), 3);
    for (interface, last) in below {
        bench.probe(*interface, *last, 1, true, PLAIN);
        bench.report(*interface, *last, far(), 37);
    }
    bench.pass(1, &[], &[]);
    bench
}

#[test]
fn probes_name_those_heard_and_come_every_ten_seconds_3_2() {
    let mut bench = Bench::new();
    bench.pass(1, &[], &[]);
    assert_eq!(bench.sent(0), [(ALL_ROUTERS, Sent::Probe(vec![]))]);
    bench.probe(0, 9, 1, false, PLAIN);
    bench.probe(0, 7, 1, false, PLAIN);
    bench.pass(20, &[], &[]);
    let both = (ALL_ROUTERS, Sent::Probe(vec![on(0, 7), on(0, 9)]));
    assert_eq!(bench.sent(0), [both.clone(), both]);
    assert!(bench.sent(1).len() == 3, "on each interface");
}

#[test]
fn a_neighbour_is_up_when_it_hears_us_and_is_sent_all_routes_3_4_5() {
    let mut bench = Bench::new();
    bench.probe(0, 9, 1, false, PLAIN);
    bench.report(0, 9, far(), 3);
    assert_eq!(bench.refused(Refusal::UnknownNeighbour), 1, "reports wait for that (3.4.6)");
    assert!(!bench.events.contains(&Event::NeighbourUp(peer(0, 9))));
    bench.probe(0, 9, 1, true, PLAIN);
    assert!(bench.events.contains(&Event::NeighbourUp(peer(0, 9))));
    let copy = Sent::Report(vec![(lan(0), 33), (lan(1), 1), (lan(2), 1)]);
    // The probe first: a router that has not heard it takes no report of us (3.4.6).
    let probe = Sent::Probe(vec![on(0, 9)]);
    assert_eq!(bench.sent(0), [(ALL_ROUTERS, probe), (on(0, 9), copy)]);
}

#[test]
fn a_neighbour_that_is_silent_for_35_seconds_is_gone_3_2_4() {
    let mut bench = bench(&[]);
    bench.pass(33, &[], &[]);
    assert!(bench.router.routes().path(far()).is_some());
    bench.pass(2, &[], &[]);
    assert!(bench.events.contains(&Event::NeighbourDown(peer(0, 9))));
    assert_eq!(bench.router.routes().path(far()), None, "its routes are held down");
}

#[test]
fn a_neighbour_that_does_not_hear_us_any_more_is_given_two_probes() {
    let mut bench = bench(&[]);
    bench.probe(0, 9, 1, false, PLAIN);
    bench.pass(10, &[], &[]);
    bench.probe(0, 9, 1, false, PLAIN);
    assert!(bench.router.routes().path(far()).is_some());
    bench.pass(10, &[], &[]);
    assert!(bench.events.contains(&Event::NeighbourDown(peer(0, 9))));
}

#[test]
fn old_versions_are_refused_appendix_c() {
    let mut bench = Bench::new();
    bench.probe(0, 9, 1, true, 0);
    assert_eq!((bench.refused(Refusal::Version), bench.router.neighbours().count()), (1, 0));
}

#[test]
fn a_route_is_told_farther_and_poisoned_where_it_comes_from_3_4_4() {
    let mut bench = bench(&[(1, 9)]);
    assert_eq!(bench.told(0, far()), [36], "we depend on it: our metric and 32");
    assert_eq!(bench.told(1, far()), [4, 4], "in the copy for a new neighbour, and in a flash update");
}

#[test]
fn metrics_from_64_on_and_zero_are_illegal_3_4_6() {
    let mut bench = bench(&[]);
    let other = Prefix::of(Ipv4Addr::new(192, 168, 1, 0), 24);
    for metric in [0, 64, 127, 32, 40, 31] {
        bench.report(0, 9, other, metric);
    }
    assert_eq!(bench.refused(Refusal::IllegalRoute), 3);
    assert_eq!(bench.router.routes().path(other), None, "31 and a hop are 32");
    bench.report(0, 9, other, 30);
    assert_eq!(bench.router.routes().path(other).map(|path| path.metric), Some(31));
}

#[test]
fn the_nearer_neighbour_is_chosen_and_of_equal_ones_the_lower_address_3_4_6() {
    let mut bench = bench(&[]);
    let via = |bench: &Bench| bench.router.routes().path(far()).map(|path| path.via);
    bench.probe(1, 7, 1, true, PLAIN);
    bench.report(1, 7, far(), 4);
    assert_eq!(via(&bench), Some(Via::Neighbour(peer(0, 9))), "farther");
    bench.report(1, 7, far(), 2);
    assert_eq!(via(&bench), Some(Via::Neighbour(peer(1, 7))), "nearer");
    bench.probe(0, 4, 1, true, PLAIN);
    bench.report(0, 4, far(), 2);
    assert_eq!(via(&bench), Some(Via::Neighbour(peer(0, 4))), "as near, and lower");
    bench.report(0, 4, far(), 5);
    assert_eq!(via(&bench), Some(Via::Neighbour(peer(1, 7))), "farther than before");
}

#[test]
fn a_lost_route_is_told_to_be_unreachable_for_two_minutes_3_4_8() {
    let mut bench = bench(&[(1, 9)]);
    bench.probe(2, 9, 1, true, PLAIN);
    bench.report(2, 9, far(), 9);
    bench.told(1, far());
    bench.report(0, 9, far(), 32);
    let kept = [(0, 9, PLAIN), (1, 9, PLAIN), (2, 9, PLAIN)];
    bench.pass(110, &kept, &[(2, 9, far(), 9)]);
    assert_eq!(bench.router.routes().path(far()), None, "though another one knows a way");
    let told = bench.told(1, far());
    assert!(told.len() >= 2 && told.iter().all(|metric| *metric == 32), "{told:?}");
    bench.pass(20, &kept, &[]);
    assert_eq!(bench.router.routes().path(far()).map(|path| path.metric), Some(10));
    assert_eq!(bench.told(1, far()), [10]);
}

#[test]
fn only_the_same_router_with_the_same_metric_ends_a_hold_down_3_4_8() {
    let mut bench = bench(&[]);
    bench.report(0, 9, far(), 32);
    bench.report(0, 9, far(), 2);
    assert_eq!(bench.router.routes().path(far()), None, "another metric");
    bench.report(0, 9, far(), 3);
    assert_eq!(bench.router.routes().path(far()).map(|path| path.metric), Some(4));
}

#[test]
fn a_hold_down_ends_though_another_way_is_chosen_then_3_4_8() {
    let mut bench = bench(&[]);
    bench.report(0, 9, far(), 32);
    bench.probe(0, 4, 1, true, PLAIN);
    bench.report(0, 4, far(), 3);
    assert_eq!(bench.router.routes().path(far()), None, "it may be an echo");
    bench.report(0, 9, far(), 3);
    let via = bench.router.routes().path(far()).map(|path| path.via);
    assert_eq!(via, Some(Via::Neighbour(peer(0, 4))), "as near, and lower");
}

#[test]
fn a_route_that_is_not_told_again_expires_3_4_7() {
    let mut bench = bench(&[]);
    bench.pass(138, &[(0, 9, PLAIN)], &[]);
    assert!(bench.router.routes().path(far()).is_some());
    bench.pass(8, &[(0, 9, PLAIN)], &[]);
    assert_eq!(bench.router.routes().path(far()), None);
    bench.pass(126, &[(0, 9, PLAIN)], &[]);
    assert_eq!(bench.router.routes().len(), 3, "after its hold-down it is forgotten");
}

#[test]
fn poison_from_above_means_that_it_is_unreachable_3_4_6() {
    let mut bench = bench(&[]);
    bench.report(0, 9, far(), 36);
    assert_eq!(bench.router.routes().path(far()), None);
}

#[test]
fn flash_updates_are_five_seconds_apart_3_4_5() {
    let mut bench = bench(&[(1, 9)]);
    bench.sent(1);
    let kept = [(0, 9, PLAIN), (1, 9, PLAIN)];
    let mut updates = 0;
    for round in 0_u8..40 {
        bench.report(0, 9, far(), 4 + round % 2);
        bench.pass(1, &kept, &[]);
        updates += bench.told(1, far()).len();
    }
    assert!((7..=10).contains(&updates), "{updates} in 40 seconds, with one report or two");
}

#[test]
fn the_nearest_router_forwards_onto_a_link_3_3_1() {
    let mut bench = bench(&[(1, 9)]);
    let forwards = |bench: &Bench| bench.router.routes().is_forwarder(far(), InterfaceId(1));
    bench.probe(1, 7, 1, true, PLAIN);
    for (last, metric, ours) in [(7, 5, true), (7, 4, true), (7, 3, false), (7, 4, true), (7, 32, true)] {
        bench.report(1, last, far(), metric);
        assert_eq!(forwards(&bench), ours, "{last} at {metric}");
    }
    bench.probe(1, 3, 1, true, PLAIN);
    bench.report(1, 3, far(), 4);
    assert!(!forwards(&bench), "as near, and lower");
    let kept = [(0, 9, PLAIN), (1, 9, PLAIN)];
    bench.pass(36, &kept, &[]);
    assert!(forwards(&bench), "it is gone");
    assert!(!bench.router.routes().is_forwarder(far(), InterfaceId(0)), "data comes from there");
}

#[test]
fn the_default_route_is_for_all_that_no_other_one_contains_3_4_2() {
    let mut bench = bench(&[]);
    bench.probe(1, 9, 1, true, PLAIN);
    bench.report(1, 9, Prefix::ALL, 2);
    let via = |source| bench.router.routes().lookup(source).map(|(_, path)| path.via.interface().0);
    assert_eq!(via(Ipv4Addr::new(8, 8, 8, 8)), Some(1));
    assert_eq!(via(SOURCE), Some(0));
    assert_eq!(via(on(2, 77)), Some(2));
}

#[test]
fn data_goes_to_members_and_dependents_and_not_where_it_came_from_3_3_3() {
    let mut bench = bench(&[(1, 9)]);
    bench.member(0, Some(1));
    bench.member(2, Some(8));
    assert_eq!(bench.data(0, SOURCE), Ok(()));
    assert_eq!(bench.outgoing(far()), [(1, 1), (2, 8)]);
    assert_eq!(bench.data(1, SOURCE), Err(Refusal::WrongInterface));
    assert_eq!(bench.data(0, Ipv4Addr::new(8, 8, 8, 8)), Err(Refusal::NoRoute));
}

#[test]
fn what_is_not_wanted_is_pruned_and_again_after_twice_as_long_each_time_3_5() {
    let mut bench = bench(&[]);
    let mut pruned = Vec::new();
    for second in 0..60 {
        assert_eq!(bench.data(0, SOURCE), Ok(()));
        for (to, said) in bench.asked(0) {
            let Sent::Prune(what, lifetime_s) = said else { panic!("{said:?}") };
            assert_eq!((to, what), (on(0, 9), pair(SOURCE)));
            assert!((3000..7200).contains(&lifetime_s), "{lifetime_s}");
            pruned.push(second);
        }
        bench.pass(1, &[(0, 9, PLAIN)], &[(0, 9, far(), 3)]);
    }
    let waits: Vec<_> = pruned.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits.len(), 4, "{pruned:?}");
    assert!(waits.iter().zip([3, 6, 12, 24]).all(|(wait, least)| (least..=least * 5 / 4 + 1).contains(wait)));
}

#[test]
fn a_link_is_pruned_when_all_its_dependents_have_and_then_we_prune_3_5_3() {
    let mut bench = bench(&[(1, 9), (1, 8)]);
    let kept = [(0, 9, PLAIN), (1, 9, PLAIN), (1, 8, PLAIN)];
    bench.data(0, SOURCE).expect("routed");
    bench.hear(1, 9, &Message::Prune(pair(SOURCE), 600), PLAIN);
    assert_eq!(bench.outgoing(far()), [(1, 1)], "the other one wants it");
    bench.hear(1, 8, &Message::Prune(pair(far().network()), 300), PLAIN);
    assert_eq!(bench.outgoing(far()), []);
    bench.pass(3, &kept, &[]);
    let asked = bench.asked(0);
    let [(to, Sent::Prune(what, lifetime_s))] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((*to, *what), (on(0, 9), pair(SOURCE)));
    assert!(
        (290..=300).contains(lifetime_s),
        "the least that is left of those that came (2.6): {lifetime_s}"
    );
    for _ in 0..2 {
        bench.data(0, SOURCE).expect("routed");
        bench.pass(150, &kept, &[(0, 9, far(), 3), (1, 9, far(), 37), (1, 8, far(), 37)]);
    }
    assert_eq!(bench.outgoing(far()), [(1, 1)], "when it is over, data goes there again");
}

#[test]
fn prunes_count_only_from_dependents_for_data_that_is_known_3_5_3() {
    let mut bench = bench(&[(1, 9)]);
    let prune = Message::Prune(pair(SOURCE), 600);
    bench.hear(1, 9, &prune, PLAIN);
    assert_eq!(bench.refused(Refusal::UnknownFlow), 1);
    bench.data(0, SOURCE).expect("routed");
    bench.hear(1, 8, &prune, PLAIN);
    assert_eq!(bench.refused(Refusal::UnknownNeighbour), 1);
    bench.probe(2, 8, 1, true, PLAIN);
    bench.hear(2, 8, &prune, PLAIN);
    assert_eq!(bench.refused(Refusal::NotDependent), 1);
    bench.hear(1, 9, &Message::Prune(Pair { mask: Some(0xffff_0000), ..pair(SOURCE) }, 600), PLAIN);
    assert_eq!(bench.refused(Refusal::Netmask), 1, "3.5.2");
    bench.hear(1, 9, &Message::Prune(pair(SOURCE), 5), PLAIN);
    assert_eq!(bench.refused(Refusal::Lifetime), 1);
    assert_eq!(bench.outgoing(far()), [(1, 1)]);
}

/// Pruned by the one below, and so by us.
fn pruned() -> Bench {
    let mut bench = bench(&[(1, 9)]);
    bench.data(0, SOURCE).expect("routed");
    bench.hear(1, 9, &Message::Prune(pair(SOURCE), 6000), PLAIN);
    bench.pass(3, &[(0, 9, PLAIN), (1, 9, PLAIN)], &[]);
    assert!(matches!(bench.asked(0)[..], [(_, Sent::Prune(..))]));
    bench
}

#[test]
fn a_graft_is_acknowledged_and_sent_on_3_6_2() {
    let mut bench = pruned();
    bench.asked(1);
    bench.hear(1, 9, &Message::Graft(pair(SOURCE)), PLAIN);
    assert_eq!(bench.asked(1), [(on(1, 9), Sent::GraftAck(pair(SOURCE)))]);
    assert_eq!(bench.asked(0), [(on(0, 9), Sent::Graft(pair(SOURCE)))]);
    assert_eq!(bench.outgoing(far()), [(1, 1)]);
    bench.hear(1, 9, &Message::Graft(pair(SOURCE)), PLAIN);
    assert_eq!(bench.asked(1).len(), 1, "each one is (3.6.4)");
    assert_eq!(bench.asked(0), []);
}

#[test]
fn a_graft_is_repeated_after_twice_as_long_until_it_is_acknowledged_3_6_1() {
    let mut bench = pruned();
    bench.member(2, Some(4));
    let mut grafted = Vec::new();
    for second in 0..60 {
        grafted.extend(bench.asked(0).into_iter().map(|_| second));
        bench.pass(1, &[(0, 9, PLAIN), (1, 9, PLAIN)], &[]);
    }
    assert_eq!(grafted.len(), 4, "{grafted:?}");
    assert!((5..=7).contains(&grafted[1]) && (15..=20).contains(&grafted[2]), "{grafted:?}");
    bench.hear(0, 8, &Message::GraftAck(pair(SOURCE)), PLAIN);
    bench.hear(0, 9, &Message::GraftAck(pair(SOURCE)), PLAIN);
    bench.pass(100, &[(0, 9, PLAIN), (1, 9, PLAIN)], &[(0, 9, far(), 3)]);
    assert_eq!(bench.asked(0), []);
    bench.hear(0, 9, &Message::GraftAck(pair(SOURCE)), PLAIN);
    assert_eq!(bench.refused(Refusal::UnexpectedAck), 1, "3.6.5");
}

#[test]
fn somebody_new_below_a_pruned_branch_is_grafted_3_6() {
    let mut bench = pruned();
    bench.probe(2, 9, 1, true, PLAIN);
    bench.report(2, 9, far(), 37);
    assert_eq!(bench.asked(0), [(on(0, 9), Sent::Graft(pair(SOURCE)))]);
}

#[test]
fn what_a_restarted_neighbour_pruned_is_grafted_3_2_2() {
    let mut bench = pruned();
    bench.asked(1);
    bench.probe(1, 9, 2, true, PLAIN);
    assert!(bench.events.contains(&Event::NeighbourRestarted(peer(1, 9))));
    bench.report(1, 9, far(), 37);
    assert_eq!(bench.asked(0), [(on(0, 9), Sent::Graft(pair(SOURCE)))]);
}

#[test]
fn one_that_comes_back_above_is_grafted_since_it_may_remember_a_prune() {
    let mut bench = pruned();
    bench.report(0, 9, far(), 32);
    assert!(
        bench.events.contains(&Event::ForwardingEnded(crate::dvmrp::forwarding::Flow {
            source: far(),
            group: GROUP
        }))
    );
    bench.member(2, Some(4));
    assert_eq!(bench.asked(0), [], "none is there to be asked");
    bench.report(0, 9, far(), 3);
    assert_eq!(bench.asked(0), [(on(0, 9), Sent::Graft(pair(SOURCE)))]);
}

#[test]
fn a_new_interface_has_another_generation_3_7_1() {
    let mut bench = Bench::new();
    let generation = |bench: &mut Bench| {
        bench.router.handle_timeout(bench.now);
        let mut packet = Vec::new();
        let mut last = None;
        while let Some(to) = bench.router.poll_transmit(&mut packet) {
            let parsed = crate::dvmrp::packet::Packet::parse(&packet).expect("a packet");
            if let Ok(Message::Probe { generation, .. }) = parsed.message()
                && to.interface == InterfaceId(0)
            {
                last = Some(generation);
            }
        }
        last.expect("a probe is due")
    };
    let first = generation(&mut bench);
    bench.now = bench.now + Duration::from_secs(1);
    bench.router.remove_interface(bench.now, InterfaceId(0));
    bench.bring_up(0);
    assert!(generation(&mut bench) > first);
}

#[test]
fn an_interface_that_goes_down_takes_its_neighbours_routes_and_members_3_7_1() {
    let mut bench = bench(&[(1, 9)]);
    bench.data(0, SOURCE).expect("routed");
    bench.member(2, Some(4));
    bench.router.remove_interface(bench.now, InterfaceId(1));
    assert_eq!(bench.outgoing(far()), [(2, 4)]);
    bench.router.remove_interface(bench.now, InterfaceId(2));
    assert_eq!(bench.outgoing(far()), []);
    bench.router.remove_interface(bench.now, InterfaceId(0));
    assert_eq!(bench.router.routes().paths().count(), 0);
    bench.pass(400, &[], &[]);
    assert_eq!((bench.router.routes().len(), bench.router.next_timeout()), (0, None));
}

#[test]
fn a_router_that_ends_takes_back_what_it_told_3_4_9() {
    let mut bench = bench(&[(1, 9)]);
    bench.sent(1);
    bench.router.shut_down();
    bench.drain();
    assert_eq!(bench.told(1, far()), [32]);
}

#[test]
fn from_point_to_point_all_goes_to_all_routers_and_one_neighbour_is_enough_3_7() {
    let mut bench = Bench::new();
    let link = Link::PointToPoint { peer: None, network: None };
    let settings = InterfaceSettings { address: on(7, 5), link, metric: 1 };
    bench.router.add_interface(bench.now, InterfaceId(7), settings).expect("room");
    bench.probe(7, 9, 1, true, PLAIN);
    bench.probe(7, 8, 1, true, PLAIN);
    assert_eq!(bench.refused(Refusal::NeighboursFull), 1);
    bench.report(7, 9, far(), 3);
    bench.data(7, SOURCE).expect("routed");
    let to: Vec<_> = bench.sent(7).into_iter().map(|(to, _)| to).collect();
    assert!(to.len() >= 2 && to.iter().all(|to| *to == ALL_ROUTERS), "a copy of routes, and a prune");
}

#[test]
fn what_no_neighbour_sent_is_refused_by_reason() {
    let mut bench = bench(&[]);
    let probe = Message::Probe { generation: 1, neighbours: crate::dvmrp::packet::Addresses::new(&[]) };
    let mut refused = |interface, source, destination, change: &[(usize, u8)], why| {
        let mut bytes = packet(source, destination, &probe, OURS);
        for (at, byte) in change {
            bytes[*at] = *byte;
        }
        if !change.is_empty() {
            bytes[10..12].fill(0);
            let sum = crate::ip::checksum(0, &bytes[..24]).to_be_bytes();
            bytes[10..12].copy_from_slice(&sum);
        }
        let before = bench.refused(why);
        bench.receive(interface, &bytes);
        assert_eq!(bench.refused(why), before + 1, "{why}");
    };
    refused(1, on(2, 9), ALL_ROUTERS, &[], Refusal::SourceOffLink);
    refused(1, on(1, 0), ALL_ROUTERS, &[], Refusal::SourceOffLink);
    refused(1, on(1, 255), ALL_ROUTERS, &[], Refusal::SourceOffLink);
    refused(1, on(1, 5), ALL_ROUTERS, &[], Refusal::OwnAddress);
    refused(1, on(1, 9), on(1, 6), &[], Refusal::Destination);
    refused(1, on(1, 9), ALL_ROUTERS, &[(8, 64)], Refusal::Ttl);
    refused(1, on(1, 9), ALL_ROUTERS, &[(8, 255)], Refusal::Ttl);
    refused(1, on(1, 9), on(1, 5), &[(8, 2)], Refusal::Ttl);
    refused(9, on(1, 9), ALL_ROUTERS, &[], Refusal::UnknownInterface);
    refused(1, on(1, 9), ALL_ROUTERS, &[(9, 17)], Refusal::NotDvmrp);
    bench.hear(0, 9, &Message::AskNeighbours2, PLAIN);
    assert_eq!(bench.refused(Refusal::Code), 1);
}
