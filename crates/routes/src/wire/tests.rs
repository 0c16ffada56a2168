//! Messages as the kernel makes them, whole and damaged.

use netlink_packet_core::{DefaultNla, Emitable};
use netlink_packet_route::rule::RuleMessage;

use super::*;

const TO: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);

fn bytes(message: &impl Emitable) -> Vec<u8> {
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    bytes
}

fn link_message() -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = 3;
    message.header.link_layer_type = LinkLayerType::Ether;
    message.header.flags = LinkFlags::Up | LinkFlags::LowerUp | LinkFlags::Broadcast;
    message.attributes = vec![
        LinkAttribute::IfName("eth0".into()),
        LinkAttribute::Mtu(1500),
        LinkAttribute::Address(vec![2, 0, 0, 0, 0, 1]),
        LinkAttribute::Broadcast(vec![0xFF; 6]),
    ];
    message
}

fn neighbour_message(state: NeighbourState) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.ifindex = 3;
    message.header.state = state;
    message.attributes = vec![
        NeighbourAttribute::Destination(GATEWAY.into()),
        NeighbourAttribute::LinkLayerAddress(vec![2, 0, 0, 0, 0, 9]),
    ];
    message
}

fn route_message() -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.destination_prefix_length = 32;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![
        RouteAttribute::Destination(TO.into()),
        RouteAttribute::Oif(3),
        RouteAttribute::Gateway(GATEWAY.into()),
        RouteAttribute::PrefSource(Ipv4Addr::new(10, 0, 0, 1).into()),
        RouteAttribute::Metrics(vec![RouteMetric::Mtu(1280)]),
    ];
    message
}

fn flow() -> Flow {
    Flow { to: TO.into(), from: None, interface: None }
}

fn read_one(kind: u16, message: &impl Emitable) -> Option<Heard> {
    read(kind, &bytes(message)).expect("it is whole")
}

fn path(message: &RouteMessage) -> io::Result<Path> {
    read_path(&flow(), libc::RTM_NEWROUTE, &bytes(message))
}

#[test]
fn a_device_is_read_even_with_attributes_that_are_not_understood() {
    let mut message = link_message();
    message.attributes.insert(0, LinkAttribute::Other(DefaultNla::new(0x3F0, vec![1, 2, 3])));
    let mut damaged = bytes(&message);
    // Of an attribute that is known (IFLA_TXQLEN), with a length that it cannot have.
    damaged.extend_from_slice(&[5, 0, 13, 0, 1, 0, 0, 0]);
    let Ok(Some(Heard::Link { index: 3, link: Some(link) })) = read(libc::RTM_NEWLINK, &damaged) else {
        panic!("not a device: {:?}", read(libc::RTM_NEWLINK, &damaged));
    };
    assert_eq!(link, crate::tables::tests::link());
    assert_eq!(read_one(libc::RTM_DELLINK, &message), Some(Heard::Link { index: 3, link: None }));
}

#[test]
fn a_device_without_carrier_is_down_and_a_bridges_word_of_its_port_is_not_heard() {
    let mut message = link_message();
    message.header.flags = LinkFlags::Up;
    let heard = read_one(libc::RTM_NEWLINK, &message);
    assert!(matches!(heard, Some(Heard::Link { link: Some(Link { up: false, .. }), .. })), "{heard:?}");
    message.header.interface_family = AddressFamily::Bridge;
    assert_eq!(read_one(libc::RTM_DELLINK, &message), None);
}

#[test]
fn neighbours_are_known_as_long_as_the_kernel_sends_to_them() {
    use NeighbourState::{
        Delay, Failed, Incomplete, Noarp, None as Unknown, Permanent, Probe, Reachable, Stale,
    };
    let at = NextHop { ifindex: 3, address: GATEWAY.into() };
    let known = |fixed| Reach::Known { mac: [2, 0, 0, 0, 0, 9], fixed };
    for (states, reach) in [
        (&[Reachable, Stale, Delay, Probe][..], known(false)),
        (&[Permanent, Noarp], known(true)),
        (&[Incomplete, Unknown], Reach::Asked),
        (&[Failed], Reach::Failed),
    ] {
        for state in states {
            let heard = read_one(libc::RTM_NEWNEIGH, &neighbour_message(*state));
            assert_eq!(heard, Some(Heard::Neighbour { at, reach: Some(reach) }), "{state}");
        }
    }
    let gone = read_one(libc::RTM_DELNEIGH, &neighbour_message(Stale));
    assert_eq!(gone, Some(Heard::Neighbour { at, reach: None }));
    let mut learned = neighbour_message(Reachable);
    learned.header.flags = NeighbourFlags::ExtLearned;
    let heard = read_one(libc::RTM_NEWNEIGH, &learned);
    assert_eq!(heard, Some(Heard::Neighbour { at, reach: Some(known(true)) }));
    let mut proxied = neighbour_message(Reachable);
    proxied.header.flags = NeighbourFlags::Proxy;
    assert_eq!(read_one(libc::RTM_NEWNEIGH, &proxied), None);
    let mut forwarding = neighbour_message(Reachable);
    forwarding.header.family = AddressFamily::Bridge;
    assert_eq!(read_one(libc::RTM_NEWNEIGH, &forwarding), None);
}

#[test]
fn events_of_routes_say_which_prefix_and_those_of_rules_nothing() {
    let heard = read_one(libc::RTM_DELROUTE, &route_message());
    assert_eq!(heard, Some(Heard::Route { to: TO.into(), length: 32 }));
    let mut default = route_message();
    default.header.destination_prefix_length = 0;
    default.attributes.remove(0);
    let heard = read_one(libc::RTM_NEWROUTE, &default);
    assert_eq!(heard, Some(Heard::Route { to: Ipv4Addr::UNSPECIFIED.into(), length: 0 }));
    assert_eq!(read_one(libc::RTM_NEWRULE, &RuleMessage::default()), Some(Heard::Rules));
    assert_eq!(read(DELETE_NEXT_HOP, &[]).expect("nothing is read"), Some(Heard::NextHops));
    assert_eq!(read(libc::RTM_NEWQDISC, &[]).expect("nothing is read"), None);
}

#[test]
fn an_answer_leads_by_a_gateway_or_to_the_destination_itself() {
    let source = IpAddr::from([10, 0, 0, 1]);
    let by = |address| Path::Via { next: NextHop { ifindex: 3, address }, source, mtu: Some(1280) };
    assert_eq!(path(&route_message()).expect("a route"), by(GATEWAY.into()));
    let mut direct = route_message();
    direct.attributes.remove(2);
    assert_eq!(path(&direct).expect("a route"), by(TO.into()));
    let six = std::net::Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 1);
    direct.attributes.push(RouteAttribute::Via(six.into()));
    assert_eq!(path(&direct).expect("a route"), by(six.into()));
    let from = IpAddr::from([10, 0, 0, 7]);
    let asked = Flow { from: Some(from), ..flow() };
    let answer = read_path(&asked, libc::RTM_NEWROUTE, &bytes(&direct)).expect("a route");
    assert!(matches!(answer, Path::Via { source, .. } if source == from), "as it was asked for");
}

#[test]
fn an_answer_of_ipv6_leads_by_a_gateway_of_its_link() {
    let [to, gateway, own]: [Ipv6Addr; 3] =
        ["2001:db8:9::1", "fe80::1", "2001:db8::7"].map(|text| text.parse().expect("an address"));
    let asked = Flow { to: to.into(), from: None, interface: None };
    let mut message = route_message();
    message.header.address_family = AddressFamily::Inet6;
    message.header.destination_prefix_length = 128;
    message.attributes = vec![
        RouteAttribute::Destination(to.into()),
        RouteAttribute::Oif(3),
        RouteAttribute::PrefSource(own.into()),
    ];
    let by = |address: Ipv6Addr| Path::Via {
        next: NextHop { ifindex: 3, address: address.into() },
        source: own.into(),
        mtu: None,
    };
    let answer =
        |message: &RouteMessage| read_path(&asked, libc::RTM_NEWROUTE, &bytes(message)).expect("a route");
    assert_eq!(answer(&message), by(to));
    message.attributes.push(RouteAttribute::Gateway(gateway.into()));
    assert_eq!(answer(&message), by(gateway));
    let heard = read_one(libc::RTM_DELROUTE, &message);
    assert_eq!(heard, Some(Heard::Route { to: to.into(), length: 128 }));
    message.header.destination_prefix_length = 0;
    message.attributes.remove(0);
    let heard = read_one(libc::RTM_DELROUTE, &message);
    assert_eq!(heard, Some(Heard::Route { to: Ipv6Addr::UNSPECIFIED.into(), length: 0 }));
}

#[test]
fn an_address_of_ipv6_is_there_once_no_other_host_has_it() {
    let ip: IpAddr = "2001:db8::7".parse().expect("an address");
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet6;
    message.header.prefix_len = 64;
    message.header.index = 3;
    let mut heard = |kind, flags| {
        message.attributes = vec![AddressAttribute::Address(ip), AddressAttribute::Flags(flags)];
        read_one(kind, &message)
    };
    let said = |there| {
        let address = LocalAddress { ifindex: 3, ip, length: 64 };
        Some(Heard::Address { address, there })
    };
    let tentative = AddressFlags::Tentative;
    assert_eq!(heard(libc::RTM_NEWADDR, tentative), None);
    assert_eq!(heard(libc::RTM_NEWADDR, tentative | AddressFlags::Optimistic), said(true));
    assert_eq!(heard(libc::RTM_NEWADDR, AddressFlags::Permanent), said(true));
    assert_eq!(heard(libc::RTM_DELADDR, tentative), said(false));
}

/// An attribute with a value.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (ATTRIBUTE_HEADER_BYTES + value.len()) as u16;
    let mut bytes = [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[test]
fn the_mtu_of_ipv6_is_read_from_a_device_and_from_what_ipv6_says_of_it() {
    let settings = [1_u32, 64, 1400, 1].map(u32::to_ne_bytes).concat();
    let settings = [attribute(1, &[0; 4]), attribute(2, &settings)].concat();
    let families = [attribute(libc::AF_INET as u16, &[0; 8]), attribute(libc::AF_INET6 as u16, &settings)];
    let mut whole = bytes(&link_message());
    whole.extend(attribute(libc::IFLA_AF_SPEC, &families.concat()));
    let heard = read(libc::RTM_NEWLINK, &whole);
    let Ok(Some(Heard::Link { link: Some(link), .. })) = heard else { panic!("not a device: {heard:?}") };
    assert_eq!((link.mtu, link.mtu_v6), (1500, Some(1400)));

    let mut message = link_message();
    message.header.interface_family = AddressFamily::Inet6;
    assert_eq!(read_one(libc::RTM_NEWLINK, &message), None, "nothing about it");
    let mut whole = bytes(&message);
    whole.extend(attribute(libc::IFLA_PROTINFO, &settings));
    let heard = read(libc::RTM_NEWLINK, &whole).expect("it is whole");
    assert_eq!(heard, Some(Heard::MtuV6 { index: 3, mtu: 1400 }));
    for length in LINK_HEADER_BYTES..whole.len() {
        let _less = read(libc::RTM_NEWLINK, &whole[..length]).expect("its header is whole");
    }
}

#[test]
fn answers_that_lead_nowhere_past_the_kernel_say_why() {
    for (kind, expected) in [
        (RouteType::Local, Path::Local),
        (RouteType::Broadcast, Path::Broadcast),
        (RouteType::Anycast, Path::Broadcast),
        (RouteType::BlackHole, Path::Nowhere(libc::ENETUNREACH)),
    ] {
        let mut message = route_message();
        message.header.kind = kind;
        assert_eq!(path(&message).expect("a route"), expected);
    }
    let mut tunnelled = route_message();
    tunnelled.attributes.push(RouteAttribute::EncapType(1_u16.into()));
    assert_eq!(path(&tunnelled).expect("a route"), Path::Encapsulated);
    let mut nameless = route_message();
    nameless.attributes.remove(1);
    path(&nameless).expect_err("no device");
    let mut untried = route_message();
    untried.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::PrefSource(_)));
    assert_eq!(
        path(&untried).expect("a route"),
        Path::Nowhere(libc::EADDRNOTAVAIL),
        "no address to send from"
    );
    read_path(&flow(), libc::RTM_NEWLINK, &bytes(&route_message())).expect_err("no route");
}

#[test]
fn damaged_messages_are_refused_or_read_in_part_and_never_more() {
    let whole = [
        (libc::RTM_NEWLINK, bytes(&link_message())),
        (libc::RTM_NEWNEIGH, bytes(&neighbour_message(NeighbourState::Stale))),
        (libc::RTM_NEWROUTE, bytes(&route_message())),
        (libc::RTM_NEWADDR, bytes(&AddressMessage::default())),
    ];
    for (kind, whole) in &whole {
        for length in 0..whole.len() {
            let _either = (read(*kind, &whole[..length]), read_path(&flow(), *kind, &whole[..length]));
        }
        assert!(read(*kind, &whole[..4]).is_err(), "less than its header");
        for at in 0..whole.len() {
            for value in [0, 1, 3, 0x7F, 0xFF] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let _either = (read(*kind, &damaged), read_path(&flow(), *kind, &damaged));
            }
        }
    }
}
