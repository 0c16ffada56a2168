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
    Flow { to: TO, from: None, interface: None }
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
    assert_eq!(heard, Some(Heard::Route { to: TO, length: 32 }));
    let mut default = route_message();
    default.header.destination_prefix_length = 0;
    default.attributes.remove(0);
    let heard = read_one(libc::RTM_NEWROUTE, &default);
    assert_eq!(heard, Some(Heard::Route { to: Ipv4Addr::UNSPECIFIED, length: 0 }));
    assert_eq!(read_one(libc::RTM_NEWRULE, &RuleMessage::default()), Some(Heard::Rules));
    assert_eq!(read(DELETE_NEXT_HOP, &[]).expect("nothing is read"), Some(Heard::NextHops));
    assert_eq!(read(libc::RTM_NEWQDISC, &[]).expect("nothing is read"), None);
}

#[test]
fn an_answer_leads_by_a_gateway_or_to_the_destination_itself() {
    let source = Ipv4Addr::new(10, 0, 0, 1);
    let by = |address| Path::Via { next: NextHop { ifindex: 3, address }, source, mtu: Some(1280) };
    assert_eq!(path(&route_message()).expect("a route"), by(GATEWAY.into()));
    let mut direct = route_message();
    direct.attributes.remove(2);
    assert_eq!(path(&direct).expect("a route"), by(TO.into()));
    let six = std::net::Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 1);
    direct.attributes.push(RouteAttribute::Via(six.into()));
    assert_eq!(path(&direct).expect("a route"), by(six.into()));
    let from = Ipv4Addr::new(10, 0, 0, 7);
    let asked = Flow { from: Some(from), ..flow() };
    let answer = read_path(&asked, libc::RTM_NEWROUTE, &bytes(&direct)).expect("a route");
    assert!(matches!(answer, Path::Via { source, .. } if source == from), "as it was asked for");
}

#[test]
fn answers_that_lead_nowhere_past_the_kernel_say_why() {
    for (kind, expected) in [
        (RouteType::Local, Path::Local),
        (RouteType::Broadcast, Path::Group),
        (RouteType::Multicast, Path::Group),
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
