//! Hosts of Linux's own, and data to them.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use outflow_media::Time;
use outflow_multicast::sys::Routing;
use outflow_multicast::{Event, Interface, Relayed};
use outflow_routing::membership::{Family, Host, HostSettings, Interest, Level, Mode};

use crate::net::{Namespace, is_skipped, link};
use crate::relay::{PATIENCE, Relay};
use crate::wire::{Igmp, LEAVE, QUERY, REPORT_V2, REPORT_V3, Wire};

pub(crate) const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
pub(crate) const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
pub(crate) const PORT: u16 = 5004;

pub(crate) fn is_wanted(event: &Event) -> bool {
    matches!(event, Event::Wanted { group, .. } if *group == GROUP)
}

pub(crate) fn is_gone(event: &Event) -> bool {
    matches!(event, Event::Gone { group, .. } if *group == GROUP)
}

/// A socket that is a member of the group on an interface with this address.
pub(crate) fn member(host: &Namespace, address: Ipv4Addr) -> UdpSocket {
    host.run(|| {
        let socket = UdpSocket::bind((GROUP, PORT)).expect("a socket");
        socket.join_multicast_v4(&GROUP, &address).expect("a membership");
        socket.set_nonblocking(true).expect("an option");
        socket
    })
}

/// A socket that sends to groups.
pub(crate) fn sender(host: &Namespace, address: Ipv4Addr) -> UdpSocket {
    host.ip(&["route", "replace", "224.0.0.0/4", "dev", "eth0"]);
    let socket = host.run(|| UdpSocket::bind((address, 0)).expect("a socket"));
    socket.set_multicast_ttl_v4(8).expect("an option");
    socket
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

fn one_host() -> (Namespace, Namespace, Relay) {
    let (router, host) = (Namespace::new("router"), Namespace::new("host"));
    link(&router, ("lan", "10.2.0.1"), &host, ("eth0", "10.2.0.2"));
    let relay = Relay::start(&router, &["lan"], None);
    (router, host, relay)
}

#[test]
fn a_host_that_joins_and_leaves_is_told_of() {
    if is_skipped("a_host_that_joins_and_leaves_is_told_of") {
        return;
    }
    let (_router, host, relay) = one_host();
    for version in ["0", "2"] {
        host.sysctl("net.ipv4.conf.eth0.force_igmp_version", version);
        let socket = member(&host, Ipv4Addr::new(10, 2, 0, 2));
        let Event::Wanted { interface, wanted, .. } = relay.wait("join", is_wanted) else { return };
        assert_eq!((&*interface, wanted.mode, wanted.level), ("lan", Mode::Exclude, Level::BEST));
        assert_eq!(relay.snapshot().interfaces[0].groups.len(), 1);
        drop(socket);
        relay.wait("leave", is_gone);
    }
}

#[test]
fn a_host_that_chooses_a_source_is_told_of_with_it() {
    if is_skipped("a_host_that_chooses_a_source_is_told_of_with_it") {
        return;
    }
    let (_router, host, relay) = one_host();
    let socket = host.run(|| UdpSocket::bind((GROUP, PORT)).expect("a socket"));
    let options = socket2::SockRef::from(&socket);
    let here = Ipv4Addr::new(10, 2, 0, 2);
    options.join_ssm_v4(&SOURCE, &GROUP, &here).expect("a membership");
    let Event::Wanted { wanted, .. } = relay.wait("join", is_wanted) else { return };
    assert_eq!((wanted.mode, wanted.sources), (Mode::Include, vec![IpAddr::V4(SOURCE)]));
    options.leave_ssm_v4(&SOURCE, &GROUP, &here).expect("a membership");
    relay.wait("leave", is_gone);
}

#[test]
fn a_group_stays_while_another_host_answers() {
    if is_skipped("a_group_stays_while_another_host_answers") {
        return;
    }
    let (router, lan) = (Namespace::new("router"), Namespace::new("lan"));
    let (one, two) = (Namespace::new("one"), Namespace::new("two"));
    lan.ip(&["link", "add", "bridge", "type", "bridge", "mcast_snooping", "0"]);
    lan.ip(&["link", "set", "bridge", "up"]);
    for (namespace, device, port, address) in [
        (&router, "lan", "p0", "10.2.0.1"),
        (&one, "eth0", "p1", "10.2.0.2"),
        (&two, "eth0", "p2", "10.2.0.3"),
    ] {
        link(namespace, (device, address), &lan, (port, "0.0.0.0"));
        lan.ip(&["link", "set", port, "master", "bridge"]);
        namespace.sysctl(&format!("net.ipv4.conf.{device}.force_igmp_version"), "2");
    }
    let relay = Relay::start(&router, &["lan"], None);
    let first = member(&one, Ipv4Addr::new(10, 2, 0, 2));
    relay.wait("join", is_wanted);
    let second = member(&two, Ipv4Addr::new(10, 2, 0, 3));
    let wire = Wire::listen(&router, "lan");
    drop(first);
    wire.wait("a leave", |packet| packet.code == LEAVE && packet.group == GROUP);
    let is_question = |packet: &Igmp| packet.code == QUERY && packet.group == GROUP;
    wire.wait("a question", is_question);
    wire.wait("another one", is_question);
    let is_answer = |packet: &Igmp| packet.code == REPORT_V2 && packet.source == Ipv4Addr::new(10, 2, 0, 3);
    wire.wait("the other host's answer", is_answer);
    for _ in 0..2 {
        // The second one is behind the end that the leave had set.
        wire.wait("a query of all", |packet| packet.code == QUERY && packet.group.is_unspecified());
    }
    assert_eq!(relay.snapshot().interfaces[0].groups.len(), 1, "the other host answers");
    assert_eq!(relay.told().iter().filter(|event| is_gone(event)).count(), 0);
    drop(second);
    relay.wait("leave", is_gone);
}

#[test]
fn the_lower_address_asks_and_the_other_one_takes_over() {
    if is_skipped("the_lower_address_asks_and_the_other_one_takes_over") {
        return;
    }
    let (low, high) = (Namespace::new("low"), Namespace::new("high"));
    link(&low, ("lan", "10.2.0.1"), &high, ("lan", "10.2.0.2"));
    let other = Relay::start(&high, &["lan"], None);
    let is_self = |event: &Event| matches!(event, Event::Querier { is_self: true, .. });
    other.wait("it asks first", is_self);
    let relay = Relay::start(&low, &["lan"], None);
    relay.wait("it asks, too", is_self);
    other.wait("it listens", |event| {
        matches!(event, Event::Querier { querier, is_self: false, .. } if querier.to_string() == "10.2.0.1")
    });
    drop(relay);
    other.wait("it asks again", is_self);
}

#[test]
fn data_goes_where_it_is_wanted_at_its_best_and_nowhere_else() {
    if is_skipped("data_goes_where_it_is_wanted_at_its_best_and_nowhere_else") {
        return;
    }
    let (source, router) = (Namespace::new("source"), Namespace::new("router"));
    let hosts = ["a", "b", "c"].map(Namespace::new);
    link(&source, ("eth0", "10.1.0.2"), &router, ("in0", "10.1.0.1"));
    for (number, host) in hosts.iter().enumerate() {
        let (net, device) = (number + 2, format!("out{number}"));
        link(&router, (&device, &format!("10.{net}.0.1")), host, ("eth0", &format!("10.{net}.0.2")));
    }
    let [a, b, c] = &hosts;
    let relay = Relay::start(&router, &["in0", "out0", "out1", "out2"], None);
    relay.send(GROUP, Relayed::Lower);
    let from = sender(&source, SOURCE);
    let at_a = member(a, Ipv4Addr::new(10, 2, 0, 2));
    sent_until_received(&from, &at_a);
    say_level(c, Level::new(3).expect("not zero"));
    let flow =
        relay.wait("lower level", |event| matches!(event, Event::Flow(flow) if !flow.by_relay.is_empty()));
    let Event::Flow(flow) = flow else { return };
    assert_eq!((&*flow.from, flow.by_kernel.len(), &*flow.by_kernel[0]), ("in0", 1, "out0"));
    assert_eq!((&*flow.by_relay[0].0, flow.by_relay[0].1.number()), ("out2", 3));
    let before = device_packets(b);
    for _ in 0..100 {
        from.send_to(b"data", (GROUP, PORT)).expect("a way out");
    }
    assert!(device_packets(b) - before < 50, "it is not wanted there");
    drop(at_a);
    relay.wait("none but c", |event| matches!(event, Event::Flow(flow) if flow.by_kernel.is_empty()));
    let again = member(b, Ipv4Addr::new(10, 3, 0, 2));
    sent_until_received(&from, &again);
    let counts = relay.snapshot().counts;
    assert_eq!((counts.kernel_errors, counts.send_errors, counts.flows_refused), (0, 0, 0), "{counts:?}");
}

/// Reports without levels that a host joins the group, or leaves it.
fn plain_reports(interface: &Interface, wishes: &[Interest<'_>]) -> Vec<(IpAddr, Vec<u8>)> {
    let settings = HostSettings { says_levels: false, ..HostSettings::new(interface.link(), 1) };
    let mut members = Host::new(Time::ZERO, settings);
    let (mut reports, mut packet) = (Vec::new(), Vec::new());
    for wish in wishes {
        members.set(Time::ZERO, GROUP.into(), *wish).expect("a group");
        while let Some(to) = members.poll_transmit(&mut packet) {
            reports.push((to, packet.clone()));
        }
    }
    reports
}

#[test]
fn what_a_host_reported_before_it_said_a_level_is_read_before() {
    if is_skipped("what_a_host_reported_before_it_said_a_level_is_read_before") {
        return;
    }
    let (router, host, relay) = one_host();
    let open = || {
        (
            Interface::find(Family::V4, "eth0").expect("an interface"),
            Routing::open(Family::V4, None).expect("its table"),
        )
    };
    let (interface, kernel) = host.run(open);
    let all = Interest::all(Level::BEST);
    let reports = plain_reports(&interface, &[all, Interest::nothing(), all]);
    let (here, index) = (interface.address, interface.index);
    let send = move |(to, bytes): &(IpAddr, Vec<u8>)| kernel.send(bytes, *to, index).expect("a way out");
    send(&reports[0]);
    relay.wait("join", is_wanted);
    let before = relay.snapshot().counts.packets;
    let (wire, multicast) = (Wire::listen(&router, "lan"), relay.multicast.clone());
    let level = Level::new(3).expect("not zero");
    // In the only thread of the runtime, so that the driver does not read them meanwhile.
    let said = relay.runtime.spawn(async move {
        // Behind the third, the first two are where the driver reads.
        for report in [&reports[1], &reports[2], &reports[2]] {
            send(report);
            wire.wait("a report", |packet| packet.code == REPORT_V3 && packet.source == here);
        }
        multicast.say_level(here, GROUP.into(), level).await
    });
    let said = relay.runtime.block_on(said).expect("no panic").expect("it is a member");
    assert_eq!(said.best, level);
    let snapshot = relay.wait_until("all is read", |now| now.counts.packets >= before + 3);
    assert_eq!(snapshot.interfaces[0].groups[0].1.level, level, "it has not left since");
}

/// Packets that came to a host.
pub(crate) fn device_packets(host: &Namespace) -> u64 {
    let text = host.run(|| std::fs::read_to_string("/proc/thread-self/net/dev")).expect("counters");
    let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).expect("the device");
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
}

/// Reports the group with a level, as our own hosts do.
pub(crate) fn say_level(host: &Namespace, level: Level) {
    host.run(|| {
        let interface = Interface::find(Family::V4, "eth0").expect("an interface");
        let kernel = Routing::open(Family::V4, None).expect("the table is free");
        let mut members = Host::new(Time::ZERO, HostSettings::new(interface.link(), 1));
        members.set(Time::ZERO, GROUP.into(), Interest::all(level)).expect("a group");
        let mut packet = Vec::new();
        while let Some(to) = members.poll_transmit(&mut packet) {
            kernel.send(&packet, to, interface.index).expect("a way out");
        }
    });
}
