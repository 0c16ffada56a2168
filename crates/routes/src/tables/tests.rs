//! Which flows a change concerns, with messages made up.

use super::*;

const DEVICE: u32 = 3;
const OTHER: u32 = 4;
const GATEWAY: NextHop = NextHop { ifindex: DEVICE, address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 254)) };
const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// An ordinary Ethernet device, up.
pub(crate) fn link() -> Link {
    Link {
        name: "eth0".into(),
        kind: LinkKind::Ethernet,
        mac: Some([2, 0, 0, 0, 0, 1]),
        broadcast: Some([0xFF; 6]),
        mtu: 1500,
        mtu_v6: None,
        up: true,
        no_arp: false,
        point_to_point: false,
    }
}

fn hear_link(tables: &mut Tables, index: u32, link: Link) {
    tables.hear(Heard::Link { index, link: Some(link) });
}

fn known(last: u8) -> Reach {
    Reach::Known { mac: [2, 0, 0, 0, 1, last], fixed: false }
}

fn hear_gateway(tables: &mut Tables, reach: Option<Reach>) {
    tables.hear(Heard::Neighbour { at: GATEWAY, reach });
}

fn flow(to: [u8; 4]) -> Flow {
    Flow { to: to.into(), from: None, interface: None }
}

fn by_gateway() -> Path {
    Path::Via { next: GATEWAY, source: OWN, mtu: None }
}

fn by_other() -> Path {
    Path::Via { next: NextHop { ifindex: OTHER, ..GATEWAY }, source: [10, 1, 0, 1].into(), mtu: None }
}

/// Two devices; `far` by the gateway of the first, `other` by the second.
fn tables(far: Flow, other: Flow) -> Tables {
    let mut tables = Tables::default();
    hear_link(&mut tables, DEVICE, link());
    hear_link(&mut tables, OTHER, link());
    hear_gateway(&mut tables, Some(known(1)));
    for (flow, path) in [(far, by_gateway()), (other, by_other())] {
        tables.learn(flow, path).expect("there is room");
        let _may_be_unresolved = tables.hop(path);
    }
    let _nobody_yet = tables.take_changes();
    tables.take_unsettled();
    tables
}

fn two() -> (Flow, Flow, Tables) {
    let (far, other) = (flow([192, 0, 2, 1]), flow([198, 51, 100, 1]));
    (far, other, tables(far, other))
}

fn only(flow: Flow) -> Changes {
    Changes { all: false, flows: vec![flow] }
}

#[test]
fn a_neighbour_matters_when_its_address_does_and_somebody_uses_it() {
    let (far, _, mut tables) = two();
    for (reach, matters) in [
        (Some(known(1)), false),
        (Some(Reach::Known { mac: [2, 0, 0, 0, 1, 1], fixed: true }), false),
        (Some(known(2)), true),
        (Some(Reach::Failed), true),
        (Some(Reach::Failed), false),
        (Some(Reach::Asked), true),
        (None, false),
        (Some(known(2)), true),
        (None, true),
    ] {
        hear_gateway(&mut tables, reach);
        let expected = if matters { only(far) } else { Changes::default() };
        assert_eq!(tables.take_changes(), expected, "{reach:?}");
    }
    let unused = NextHop { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)), ..GATEWAY };
    tables.hear(Heard::Neighbour { at: unused, reach: Some(known(7)) });
    assert!(tables.take_changes().is_empty(), "none is reached by it");
}

#[test]
fn a_hop_is_what_route_device_and_neighbour_say_together() {
    let (_, _, mut tables) = two();
    let hop = tables.hop(by_gateway()).expect("all is known");
    let expected = Hop {
        ifindex: DEVICE,
        source_mac: [2, 0, 0, 0, 0, 1],
        target_mac: [2, 0, 0, 0, 1, 1],
        source: OWN,
        mtu: 1500,
        xdp_transmit: false,
    };
    assert_eq!(hop, expected);
    for (route, device) in [(Some(1280), 1280), (Some(9000), 1500)] {
        let path = Path::Via { next: GATEWAY, source: OWN, mtu: route };
        assert_eq!(tables.hop(path).expect("as before").mtu, device);
    }
    hear_gateway(&mut tables, Some(Reach::Failed));
    assert!(matches!(tables.hop(by_gateway()), Err(NoHop::Unreachable(_))));
    hear_gateway(&mut tables, Some(Reach::Asked));
    assert!(matches!(tables.hop(by_gateway()), Err(NoHop::Unresolved(_))));
    hear_link(&mut tables, DEVICE, Link { no_arp: true, ..link() });
    assert_eq!(tables.hop(by_gateway()).expect("none is asked").target_mac, [2, 0, 0, 0, 0, 1]);
    hear_link(&mut tables, DEVICE, Link { point_to_point: true, ..link() });
    assert_eq!(tables.hop(by_gateway()).expect("none is asked").target_mac, [0xFF; 6]);
    hear_link(&mut tables, DEVICE, Link { kind: LinkKind::Other, ..link() });
    assert!(matches!(tables.hop(by_gateway()), Err(NoHop::NotEthernet(name)) if name == "eth0"));
    tables.hear(Heard::Link { index: DEVICE, link: None });
    assert!(matches!(tables.hop(by_gateway()), Err(NoHop::Unresolved(_))), "the event is on its way");
}

#[test]
fn a_route_matters_to_those_that_its_prefix_holds() {
    for (prefix, length, matters) in [
        ([192, 0, 2, 0], 24, true),
        ([192, 0, 2, 1], 32, true),
        ([128, 0, 0, 0], 1, true),
        ([192, 0, 2, 2], 32, false),
        ([192, 0, 3, 0], 24, false),
        ([0, 0, 0, 0], 1, false),
    ] {
        let (far, _, mut tables) = two();
        tables.hear(Heard::Route { to: prefix.into(), length });
        assert_eq!(tables.path(&far).is_none(), matters, "{prefix:?}/{length}: asked for again");
        assert_eq!(tables.take_changes().concern(far.to, None, None), matters, "{prefix:?}/{length}");
    }
    let bound = Flow { from: Some(OWN), interface: Some(DEVICE), ..flow([192, 0, 2, 1]) };
    let mut tables = tables(bound, flow([10, 9, 9, 9]));
    tables.hear(Heard::Route { to: [192, 0, 2, 0].into(), length: 24 });
    assert_eq!(tables.take_changes(), only(bound), "bound or not");
}

/// Two addresses of IPv6 by the gateway of IPv4, as if that could be.
fn two_v6() -> (Flow, Flow, Tables) {
    let [near, far] = ["2001:db8:1::1", "2001:db8:2::1"].map(|text| Flow {
        to: text.parse().expect("an address"),
        from: None,
        interface: None,
    });
    (near, far, tables(near, far))
}

#[test]
fn a_route_of_ipv6_matters_to_those_that_its_prefix_holds() {
    for (prefix, length, matters) in [
        ("2001:db8:1::", 64, true),
        ("2001:db8:1::1", 128, true),
        ("2001:db8::", 46, true),
        ("2001:db8:1::2", 128, false),
        ("2001:db8:3::", 48, false),
        ("32.1.13.184", 32, false),
        ("128.0.0.0", 1, false),
    ] {
        let (near, _, mut tables) = two_v6();
        tables.hear(Heard::Route { to: prefix.parse().expect("an address"), length });
        assert_eq!(tables.path(&near).is_none(), matters, "{prefix}/{length}: asked for again");
        assert_eq!(tables.take_changes().concern(near.to, None, None), matters, "{prefix}/{length}");
    }
    let (near, far, mut tables) = two_v6();
    tables.hear(Heard::Route { to: [192, 0, 2, 0].into(), length: 1 });
    assert!(tables.take_changes().is_empty(), "a route of IPv4");
    tables.hear(Heard::Route { to: "2000::".parse().expect("an address"), length: 3 });
    assert_eq!(tables.take_changes(), Changes { all: false, flows: vec![near, far] });
}

#[test]
fn the_mtu_of_ipv6_is_the_least_of_the_device_what_routers_tell_and_the_route() {
    let source = "2001:db8::1".parse().expect("an address");
    let path = |mtu| Path::Via { next: GATEWAY, source, mtu };
    let (near, _, mut tables) = two_v6();
    assert_eq!(tables.hop(path(None)).expect("all is known").mtu, 1500);
    tables.hear(Heard::MtuV6 { index: DEVICE, mtu: 1400 });
    assert_eq!(tables.take_changes(), only(near));
    tables.hear(Heard::MtuV6 { index: DEVICE, mtu: 1400 });
    assert!(tables.take_changes().is_empty(), "it says the same");
    for (route, mtu) in [(None, 1400), (Some(1280), 1280), (Some(1450), 1400)] {
        assert_eq!(tables.hop(path(route)).expect("as before").mtu, mtu);
    }
    assert_eq!(tables.hop(by_gateway()).expect("as before").mtu, 1500, "IPv4 is not concerned");
    // The event has what it was before.
    hear_link(&mut tables, DEVICE, Link { mtu: 1450, mtu_v6: Some(1400), ..link() });
    assert_eq!(
        tables.hop(path(None)).expect("as before").mtu,
        1450,
        "a device's new one is that of IPv6, too"
    );
    tables.hear(Heard::MtuV6 { index: 99, mtu: 1400 });
    assert_eq!(tables.take_changes(), only(near), "there is no such device");
}

#[test]
fn what_comes_of_ipv6_some_time_after_a_device_does_not_concern_flows_of_ipv4() {
    let (_, _, mut tables) = two();
    let ip = "fe80::1".parse().expect("an address");
    tables.hear(Heard::Address { address: LocalAddress { ifindex: DEVICE, ip, length: 64 }, there: true });
    tables.hear(Heard::MtuV6 { index: DEVICE, mtu: 1400 });
    hear_link(&mut tables, DEVICE, Link { mtu_v6: Some(1300), ..link() });
    assert!(tables.take_changes().is_empty());
    assert_eq!(tables.paths(), 2, "they are not asked for again");
    let (near, far, mut tables) = two_v6();
    tables.hear(Heard::Address { address: LocalAddress { ifindex: DEVICE, ip, length: 64 }, there: true });
    let changes = tables.take_changes();
    assert!(changes.concern(near.to, None, None) && !changes.concern(far.to, Some(OWN), None));
}

#[test]
fn the_default_route_and_rules_matter_to_all() {
    for heard in [Heard::Rules, Heard::Route { to: Ipv4Addr::UNSPECIFIED.into(), length: 0 }] {
        let (far, other, mut tables) = two();
        tables.hear(heard);
        let changes = tables.take_changes();
        assert!(changes.concern(far.to, None, None) && changes.concern(other.to, Some(OWN), None));
        assert_eq!(tables.paths(), 0, "they are asked for again");
        assert!(tables.take_changes().is_empty(), "told once");
    }
}

#[test]
fn a_device_matters_to_those_that_leave_by_it() {
    for change in [
        Link { mac: Some([2, 0, 0, 0, 0, 9]), ..link() },
        Link { mtu: 1400, ..link() },
        Link { no_arp: true, ..link() },
    ] {
        let (far, _, mut tables) = two();
        hear_link(&mut tables, DEVICE, link());
        assert!(tables.take_changes().is_empty(), "it says the same");
        hear_link(&mut tables, DEVICE, change);
        assert_eq!(tables.take_changes(), only(far));
        assert!(tables.path(&far).is_some() && !tables.take_unsettled(), "its route is the same");
    }
}

#[test]
fn routes_are_asked_for_again_when_their_device_comes_or_goes_and_once_more_later() {
    let down = Link { up: false, ..link() };
    let (far, other, mut tables) = two();
    hear_link(&mut tables, DEVICE, down.clone());
    assert_eq!(tables.take_changes(), only(far));
    assert!(tables.path(&far).is_none() && tables.path(&other).is_some());
    assert!(tables.take_unsettled() && !tables.take_unsettled());

    tables.learn(far, Path::Nowhere(libc::ENETUNREACH)).expect("there is room");
    hear_link(&mut tables, DEVICE, link());
    assert_eq!(tables.take_changes(), only(far), "there may be a route again");
    assert!(tables.take_unsettled());

    tables.learn(far, by_gateway()).expect("there is room");
    tables.hear(Heard::Link { index: DEVICE, link: None });
    assert_eq!(tables.take_changes(), only(far));
    hear_link(&mut tables, OTHER, down);
    assert_eq!(tables.take_changes(), only(other));
}

#[test]
fn an_address_matters_to_those_that_send_from_it_or_by_its_device() {
    let (far, _, mut tables) = two();
    let named = Flow { from: Some([10, 2, 0, 1].into()), ..flow([203, 0, 113, 1]) };
    tables.learn(named, Path::Nowhere(libc::EINVAL)).expect("there is room");
    let unused = LocalAddress { ifindex: 9, ip: [10, 2, 0, 1].into(), length: 24 };
    tables.hear(Heard::Address { address: unused, there: true });
    assert_eq!(tables.take_changes(), only(named), "it may be sent from now");
    tables.hear(Heard::Address { address: unused, there: true });
    assert!(tables.take_changes().is_empty(), "a lease that is renewed is no change");
    let [missed, by_device, elsewhere] = [(1, None), (2, Some(9)), (3, Some(8))]
        .map(|(last, interface)| Flow { interface, ..flow([203, 0, 113, last]) });
    for flow in [missed, by_device, elsewhere] {
        tables.learn(flow, Path::Nowhere(libc::EADDRNOTAVAIL)).expect("there is room");
    }
    let first = LocalAddress { ip: [10, 3, 0, 1].into(), ..unused };
    tables.hear(Heard::Address { address: first, there: true });
    let changes = tables.take_changes();
    let concerned = [missed, by_device, elsewhere].map(|flow| changes.concern(flow.to, None, flow.interface));
    assert_eq!(concerned, [true, true, false], "there may be something to send from now");
    let own = LocalAddress { ifindex: DEVICE, ip: OWN, length: 24 };
    tables.hear(Heard::Address { address: own, there: false });
    assert_eq!(tables.take_changes(), only(far));
    assert!(tables.take_unsettled(), "its routes go a moment later");
}

#[test]
fn lost_events_make_all_doubtful_and_the_tables_new() {
    let (far, _, mut tables) = two();
    tables.restart();
    hear_link(&mut tables, DEVICE, link());
    hear_gateway(&mut tables, Some(known(9)));
    let changes = tables.take_changes();
    assert!(changes.concern(far.to, None, None));
    assert_eq!(tables.hop(by_gateway()).expect("of the new tables").target_mac[5], 9);
    assert!(matches!(tables.hop(by_other()), Err(NoHop::Unresolved(_))));
}

#[test]
fn a_device_that_begins_to_transmit_xdp_frames_matters() {
    let (far, _, mut tables) = two();
    tables.hear_transmits(DEVICE, false);
    assert!(tables.take_changes().is_empty(), "the first answer is no change");
    tables.hear_transmits(DEVICE, true);
    assert_eq!(tables.take_changes(), only(far));
    assert!(tables.hop(by_gateway()).expect("all is known").xdp_transmit);
    hear_link(&mut tables, DEVICE, Link { mtu: 1400, ..link() });
    assert_eq!(tables.transmits(DEVICE), None, "asked again when it has changed");
}

#[test]
fn neighbours_in_use_are_confirmed_once_each_and_in_turn() {
    let (far, _, mut tables) = two();
    for i in 0..100 {
        let sharing = flow([192, 0, 3, i]);
        tables.learn(sharing, by_gateway()).expect("there is room");
        tables.hop(by_gateway()).expect("all is known");
    }
    let now = Time::from_millis(5);
    assert_eq!(tables.due_for_confirmation(now), [GATEWAY], "however many share it");
    assert_eq!(tables.due_for_confirmation(now + NEIGHBOUR_CONFIRM_EVERY / 2), []);
    let later = now + NEIGHBOUR_CONFIRM_EVERY;
    assert_eq!(tables.due_for_confirmation(later), [GATEWAY]);
    let later = later + NEIGHBOUR_CONFIRM_EVERY;
    for reach in [Reach::Failed, Reach::Asked, Reach::Known { mac: [2; 6], fixed: true }] {
        hear_gateway(&mut tables, Some(reach));
        assert_eq!(tables.due_for_confirmation(later), [], "{reach:?} needs no confirmation");
    }
    hear_gateway(&mut tables, Some(known(1)));
    tables.retain(|flow| flow.to == far.to);
    assert_eq!(tables.due_for_confirmation(later), [GATEWAY], "one still needs it");
    tables.retain(|_| false);
    assert_eq!(tables.due_for_confirmation(later + NEIGHBOUR_CONFIRM_EVERY), [], "none does");
}

#[test]
fn an_answer_that_differs_when_asked_again_is_a_change() {
    let (far, other, mut tables) = two();
    assert_eq!(tables.flows_after(None, 9), [far, other]);
    assert_eq!(tables.flows_after(Some(far), 9), [other]);
    assert_eq!(tables.flows_after(Some(other), 9), []);
    tables.learn_again(far, by_gateway());
    assert!(tables.take_changes().is_empty());
    let narrow = Path::Via { next: GATEWAY, source: OWN, mtu: Some(1280) };
    tables.learn_again(far, narrow);
    assert_eq!(tables.take_changes(), only(far));
    assert_eq!(tables.path(&far), Some(narrow));
    tables.learn_again(flow([1, 2, 3, 4]), narrow);
    assert_eq!(tables.path(&flow([1, 2, 3, 4])), None, "forgotten meanwhile");
}

#[test]
fn receivers_beyond_the_limit_are_refused_and_known_ones_are_not() {
    let mut tables = Tables::default();
    for i in 0..ROUTED_FLOWS_MAX as u32 {
        tables.learn(flow(i.to_be_bytes()), Path::Local).expect("there is room");
    }
    tables.learn(flow([255; 4]), Path::Local).expect_err("there is none left");
    tables.learn(flow([0; 4]), by_gateway()).expect("it is known");
    tables.retain(|flow| matches!(flow.to, IpAddr::V4(to) if to.octets()[3] == 0));
    tables.learn(flow([255; 4]), Path::Local).expect("there is room again");
}
