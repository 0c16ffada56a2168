//! IPv6: hosts of Linux's own that speak MLD, and data to them.

use std::net::{IpAddr, Ipv6Addr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use outflow_media::Time;
use outflow_multicast::sys::Routing;
use outflow_multicast::{Event, Flow, Interface};
use outflow_routing::membership::{Family, Host, HostSettings, Interest, Level};
use socket2::{Domain, SockRef, Socket, Type};

use crate::hosts::PORT;
use crate::net::{Namespace, is_skipped};
use crate::relay::{PATIENCE, Relay, Thins};
use crate::thinned::{LAYERS, Layered, come, is_without_gap, level};

pub(crate) const GROUP: Ipv6Addr = Ipv6Addr::new(0xff1e, 0, 0, 0, 0, 0, 0, 0x123);

pub(crate) fn is_wanted(event: &Event) -> bool {
    matches!(event, Event::Wanted { group, .. } if *group == GROUP)
}

pub(crate) fn is_gone(event: &Event) -> bool {
    matches!(event, Event::Gone { group, .. } if *group == GROUP)
}

/// A namespace whose addresses can be used at once.
pub(crate) fn namespace(role: &str) -> Namespace {
    let namespace = Namespace::new(role);
    for scope in ["all", "default"] {
        namespace.sysctl(&format!("net.ipv6.conf.{scope}.accept_dad"), "0");
    }
    namespace
}

/// Joins two namespaces by a pair of devices with addresses of a /64: a number of the network, and 1 and 2.
pub(crate) fn link(a: (&Namespace, &str), b: (&Namespace, &str), network: u16) {
    a.0.ip(&["link", "add", a.1, "type", "veth", "peer", "name", b.1, "netns", &b.0.name]);
    for ((namespace, device), host) in [(a, 1), (b, 2)] {
        let address = address(network, host).to_string() + "/64";
        namespace.ip(&["address", "add", &address, "dev", device, "nodad"]);
        namespace.ip(&["link", "set", device, "up"]);
    }
    // A device that has just got its carrier has addresses and routes a moment later.
    let end = Instant::now() + PATIENCE;
    for (namespace, device) in [a, b] {
        let route = format!("ff00::/8 dev {device}");
        while !namespace.ip(&["-6", "route", "show", "table", "local"]).contains(&route) {
            assert!(Instant::now() < end, "{device} has no route to groups");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub(crate) fn address(network: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, network, 0, 0, 0, host)
}

/// A socket that is a member of the group.
pub(crate) fn member(host: &Namespace) -> UdpSocket {
    host.run(|| {
        let index = nix::net::if_::if_nametoindex("eth0").expect("it is there");
        let socket = UdpSocket::bind((GROUP, PORT)).expect("a socket");
        socket.join_multicast_v6(&GROUP, index).expect("a membership");
        socket.set_nonblocking(true).expect("an option");
        socket
    })
}

/// A socket that sends to groups.
pub(crate) fn sender(host: &Namespace, from: Ipv6Addr) -> UdpSocket {
    host.run(|| {
        let socket = Socket::new(Domain::IPV6, Type::DGRAM, None).expect("a socket");
        socket.bind(&SocketAddrV6::new(from, 0, 0, 0).into()).expect("its address");
        socket.set_multicast_hops_v6(8).expect("an option");
        let index = nix::net::if_::if_nametoindex("eth0").expect("it is there");
        SockRef::from(&socket).set_multicast_if_v6(index).expect("an option");
        socket.into()
    })
}

/// Sends until one of the packets is received.
pub(crate) fn sent_until_received(from: &UdpSocket, at: &UdpSocket) {
    let (end, mut buffer) = (Instant::now() + PATIENCE, [0; 100]);
    while Instant::now() < end {
        from.send_to(b"data", (GROUP, PORT)).expect("a way out");
        std::thread::sleep(Duration::from_millis(20));
        if at.recv(&mut buffer).is_ok() {
            return;
        }
    }
    panic!("nothing was received");
}

/// ```text
/// source          top           bottom         host
///   eth0 ────── in0  mid ────── wan  lan ────── eth0
/// ```
pub(crate) struct Chain {
    source: Namespace,
    pub(crate) top: Namespace,
    pub(crate) bottom: Namespace,
    pub(crate) host: Namespace,
}

impl Chain {
    pub(crate) fn new() -> Self {
        let [source, top, bottom, host] = ["source", "top", "bottom", "host"].map(namespace);
        link((&top, "in0"), (&source, "eth0"), 1);
        link((&top, "mid"), (&bottom, "wan"), 2);
        link((&bottom, "lan"), (&host, "eth0"), 3);
        Chain { source, top, bottom, host }
    }
}

#[test]
fn hosts_that_join_by_mld_get_what_the_kernel_forwards() {
    if is_skipped("hosts_that_join_by_mld_get_what_the_kernel_forwards") {
        return;
    }
    let (router, source, host) = (namespace("router"), namespace("source"), namespace("host"));
    link((&router, "in0"), (&source, "eth0"), 1);
    link((&router, "out0"), (&host, "eth0"), 2);
    let relay = Relay::start_v6(&router, &["in0", "out0"], None);
    let at = member(&host);
    relay.wait("join", is_wanted);
    let from = sender(&source, address(1, 2));
    sent_until_received(&from, &at);
    let snapshot = relay.wait_until("it is forwarded", |now| !now.flows.is_empty());
    let flow = &snapshot.flows[0];
    assert_eq!((flow.source, flow.group), (IpAddr::V6(address(1, 2)), IpAddr::V6(GROUP)));
    assert_eq!(flow.by_kernel.iter().map(|name| &**name).collect::<Vec<_>>(), ["out0"]);
    let querier = snapshot.interfaces.iter().find(|one| &*one.name == "out0").expect("it is there");
    assert!(querier.is_querier && matches!(querier.querier, IpAddr::V6(ip) if ip.is_unicast_link_local()));
    drop(at);
    relay.wait("leave", is_gone);
    relay.wait_until("it goes nowhere", |now| now.flows.iter().all(|flow| flow.by_kernel.is_empty()));
    let counts = relay.snapshot().counts;
    assert_eq!((counts.kernel_errors, counts.send_errors, counts.flows_refused), (0, 0, 0), "{counts:?}");
}

#[test]
fn what_hosts_want_by_mld_is_joined_upstream() {
    if is_skipped("what_hosts_want_by_mld_is_joined_upstream") {
        return;
    }
    let chain = Chain::new();
    let above = Relay::start_v6(&chain.top, &["in0", "mid"], None);
    let below = Relay::start_v6(&chain.bottom, &["lan"], Some("wan"));
    let at = member(&chain.host);
    below.wait("join", is_wanted);
    above.wait("join above", is_wanted);
    let from = sender(&chain.source, address(1, 2));
    sent_until_received(&from, &at);
    say_level(&chain.host, level(3));
    let is_lower = |event: &Event| matches!(event, Event::Wanted { wanted, .. } if wanted.level == level(3));
    below.wait("its level", is_lower);
    above.wait("its level above", is_lower);
    drop(at);
    below.wait("leave", is_gone);
    above.wait("leave above", is_gone);
}

#[test]
fn hosts_that_join_by_mld_get_the_layers_that_they_want_by_user_space() {
    if is_skipped("hosts_that_join_by_mld_get_the_layers_that_they_want_by_user_space") {
        return;
    }
    let (router, source) = (namespace("router"), namespace("source"));
    let hosts = ["a", "b"].map(namespace);
    link((&router, "in0"), (&source, "eth0"), 1);
    link((&router, "out0"), (&hosts[0], "eth0"), 2);
    link((&router, "out1"), (&hosts[1], "eth0"), 3);
    let relay = Relay::start_thinning(Family::V6, Thins::User, &router, &["in0", "out0", "out1"]);
    let from = sender(&source, address(1, 2));
    let [at_a, at_b] = [member(&hosts[0]), member(&hosts[1])];
    [&at_a, &at_b].iter().for_each(|at| sent_until_received(&from, at));
    say_level(&hosts[1], level(2));
    let is_lower = |flow: &Flow| flow.thinned == [("out1".into(), level(2))];
    relay.wait("its level", |event| matches!(event, Event::Flow(flow) if is_lower(flow)));
    let mut layered = Layered { from: &from, to: (GROUP, PORT).into(), sequence: 65_500 };
    layered.send(20);
    let (numbers, layers) = come(&at_a, 80);
    assert_eq!((layers, is_without_gap(&numbers)), (LAYERS.repeat(20), true));
    let (numbers, layers) = come(&at_b, 40);
    assert_eq!((layers, is_without_gap(&numbers)), ([0, 1].repeat(20), true));
    let user = relay.snapshot().counts.user;
    assert_eq!((user.thinned, user.no_room, user.send_errors, user.malformed), (40, 0, 0, 0), "{user:?}");
}

#[test]
fn more_interfaces_than_the_kernel_has_room_for_take_part_by_mld() {
    if is_skipped("more_interfaces_than_the_kernel_has_room_for_take_part_by_mld") {
        return;
    }
    let (router, source, hosts) = (namespace("router"), namespace("source"), namespace("hosts"));
    link((&router, "in0"), (&source, "eth0"), 1);
    // One is kept for an interface upstream: the 32nd has no number in the kernel's table.
    let names: Vec<_> = (0..32).map(|number| format!("out{number}")).collect();
    for (number, name) in (2..).zip(&names) {
        let device = if number == 33 { "eth0".to_owned() } else { format!("h{number}") };
        link((&router, name), (&hosts, &device), number);
    }
    let all: Vec<_> = std::iter::once("in0").chain(names.iter().map(String::as_str)).collect();
    let relay = Relay::start_v6(&router, &all, None);
    let at = member(&hosts);
    relay.wait("join", is_wanted);
    let from = sender(&source, address(1, 2));
    sent_until_received(&from, &at);
    let snapshot = relay.wait_until("it is forwarded", |now| !now.flows.is_empty());
    assert_eq!(snapshot.flows[0].by_user, ["out31".into()], "{:?}", snapshot.flows);
}

/// Reports the group with a level, as our own hosts do.
pub(crate) fn say_level(host: &Namespace, level: Level) {
    host.run(|| {
        let interface = Interface::find(Family::V6, "eth0").expect("an interface");
        let kernel = Routing::open(Family::V6, None).expect("the table is free");
        let mut members = Host::new(Time::ZERO, HostSettings::new(interface.link(), 1));
        members.set(Time::ZERO, GROUP.into(), Interest::all(level)).expect("a group");
        let mut packet = Vec::new();
        while let Some(to) = members.poll_transmit(&mut packet) {
            kernel.send(&packet, to, interface.index).expect("a way out");
        }
    });
}
