//! More interfaces than the kernel's table has room for.

use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::libc::{in_pktinfo, sock_extended_err};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use outflow_multicast::{Event, Flow, Snapshot};
use outflow_routing::membership::packet::checksum;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::dvmrp::{Ends, came_in, has};
use crate::hosts::{GROUP, PORT, SOURCE, is_gone, is_wanted, member, sender, sent_until_received};
use crate::net::{Namespace, is_skipped, link};
use crate::relay::{PATIENCE, Relay};
use crate::wire::Wire;

/// A source behind an interface without a number.
pub(crate) const FURTHER_SOURCE: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 2);

/// One whose address is of both networks.
const MOVING_SOURCE: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 2);

/// Sends numbered packets to the group by the device that has this address.
#[derive(Debug)]
pub(crate) struct Source {
    socket: UdpSocket,
    next: u32,
}

impl Source {
    pub(crate) fn new(namespace: &Namespace, address: Ipv4Addr) -> Self {
        Self::by(namespace, address, address)
    }

    /// The same by the device that has another address.
    fn by(namespace: &Namespace, address: Ipv4Addr, device: Ipv4Addr) -> Self {
        let socket = namespace.run(|| UdpSocket::bind((address, 0)).expect("a socket"));
        socket.set_multicast_ttl_v4(8).expect("an option");
        SockRef::from(&socket).set_multicast_if_v4(&device).expect("an option");
        Source { socket, next: 0 }
    }

    pub(crate) fn send(&self, payload: &[u8]) {
        self.socket.send_to(payload, (GROUP, PORT)).expect("a way out");
    }

    /// Sends `count` packets, with a length that is odd, and says their numbers.
    fn send_numbered(&mut self, count: u32) -> Vec<u32> {
        let numbers = (self.next..self.next + count).collect::<Vec<_>>();
        self.next += count;
        for number in &numbers {
            self.send(&[&number.to_be_bytes()[..], &[7; 97]].concat());
            std::thread::sleep(Duration::from_millis(1));
        }
        numbers
    }
}

/// A packet to the group as it came to a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    source: Ipv4Addr,
    number: u32,
    ttl: u8,
    /// Whether the checksum of UDP is there and right. It is not if the kernel forwarded it from one of this
    /// machine's namespaces to another one: then no device has completed it.
    is_good: bool,
    payload_bytes: usize,
}

/// Sees all packets to groups that devices of a namespace are members of.
#[derive(Debug)]
struct Witness(Socket);

impl Witness {
    fn new(namespace: &Namespace) -> Self {
        let socket = namespace.run(|| Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)));
        let socket = socket.expect("a raw socket");
        setsockopt(&socket, sockopt::Ipv4PacketInfo, &true).expect("an option");
        socket.set_recv_buffer_size(4 << 20).expect("an option");
        socket.set_nonblocking(true).expect("an option");
        Witness(socket)
    }

    fn next(&self) -> Option<(u32, Seen)> {
        let mut bytes = [0; 4096];
        let mut control = nix::cmsg_space!(in_pktinfo, sock_extended_err);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let fd = self.0.as_raw_fd();
        let message = recvmsg::<()>(fd, &mut parts, Some(&mut control), MsgFlags::empty()).ok()?;
        let place = message.cmsgs().expect("room").find_map(|part| match part {
            ControlMessageOwned::Ipv4PacketInfo(info) => Some(info.ipi_ifindex.cast_unsigned()),
            _ => None,
        });
        let length = message.bytes;
        let packet = bytes[..length].to_vec();
        let address = |at: usize| <[u8; 4]>::try_from(&packet[at..at + 4]).expect("four bytes");
        let datagram = &packet[20..];
        let pseudo =
            (12..20).step_by(2).map(|at| u32::from(u16::from_be_bytes([packet[at], packet[at + 1]])));
        let sum = checksum(pseudo.sum::<u32>() + 17 + datagram.len() as u32, datagram);
        let is_good = sum == 0 && datagram[6..8] != [0, 0] && checksum(0, &packet[..20]) == 0;
        let number = u32::from_be_bytes(address(28));
        let payload_bytes = datagram.len() - 8;
        let seen = Seen { source: address(12).into(), number, ttl: packet[8], is_good, payload_bytes };
        (address(16) == GROUP.octets()).then_some((place?, seen)).or_else(|| self.next())
    }

    /// What comes until there are `count`, and a while longer, by the index of the device.
    fn take(&self, count: usize) -> BTreeMap<u32, Vec<Seen>> {
        let (mut found, mut left): (BTreeMap<u32, Vec<Seen>>, _) = (BTreeMap::new(), count);
        let mut end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let Some((device, seen)) = self.next() else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            found.entry(device).or_default().push(seen);
            left = left.saturating_sub(1);
            if left == 0 {
                end = end.min(Instant::now() + Duration::from_millis(300));
            }
        }
        found.values_mut().for_each(|seen| seen.sort());
        found
    }
}

/// Members of the group by the devices with these addresses.
pub(crate) fn members(namespace: &Namespace, nets: impl IntoIterator<Item = u8> + Send) -> Vec<Socket> {
    let join = |net: u8| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
        socket.join_multicast_v4(&GROUP, &Ipv4Addr::new(10, 2, net, 2)).expect("a membership");
        socket
    };
    namespace.run(|| nets.into_iter().map(join).collect())
}

fn index(namespace: &Namespace, device: &str) -> u32 {
    namespace.run(|| nix::net::if_::if_nametoindex(device)).expect("a device")
}

pub(crate) fn has_groups(count: usize) -> impl Fn(&Snapshot) -> bool {
    move |snapshot| snapshot.interfaces.iter().map(|one| one.groups.len()).sum::<usize>() == count
}

/// Whether packets of a source go to `by_kernel` by the kernel and `by_user` in user space.
pub(crate) fn goes_to(source: Ipv4Addr, by_kernel: usize, by_user: usize) -> impl Fn(&Snapshot) -> bool {
    let is_it = move |flow: &Flow| (flow.by_kernel.len(), flow.by_user.len()) == (by_kernel, by_user);
    move |snapshot| snapshot.flows.iter().any(|flow| flow.source == source && is_it(flow))
}

/// A router with a source behind an interface of the kernel's, `v`, and one behind one of user space, `f`; and
/// networks with hosts, of which the last ones are user space's. All hosts are in one namespace.
///
/// ```text
/// source              router                hosts
///    s0 ────────────── v   n0 ────────────── h0
///    s1 ────────────── f   n1 ────────────── h1
///                           …                 …
/// ```
pub(crate) struct Crowded {
    pub(crate) router: Namespace,
    pub(crate) source: Namespace,
    pub(crate) hosts: Namespace,
    pub(crate) relay: Relay,
}

impl Crowded {
    /// With `networks` networks, some of which have numbers; what is left of these is taken by others.
    pub(crate) fn new(networks: u8, with_number: u8) -> Self {
        let [source, router, hosts] = ["source", "router", "hosts"].map(Namespace::new);
        link(&source, ("s0", "10.1.0.2"), &router, ("v", "10.1.0.1"));
        link(&source, ("s1", "10.3.0.2"), &router, ("f", "10.3.0.1"));
        source.ip(&["address", "add", &format!("{MOVING_SOURCE}/32"), "dev", "lo"]);
        for (device, address) in [("v", "10.8.0.8/24"), ("f", "10.8.0.9/24")] {
            router.ip(&["address", "add", address, "dev", device]);
        }
        for net in 0..networks {
            let (at_router, at_host) = (format!("n{net}"), format!("h{net}"));
            let (here, there) = (format!("10.2.{net}.9"), format!("10.2.{net}.2"));
            link(&router, (&at_router, &here), &hosts, (&at_host, &there));
        }
        let idle = idle(&router, 30 - with_number);
        let named = |nets: std::ops::Range<u8>| nets.map(|net| format!("n{net}"));
        let numbered = ["v".to_owned()].into_iter().chain(named(0..with_number)).chain(idle);
        let further = ["f".to_owned()].into_iter().chain(named(with_number..networks));
        let names = numbered.chain(further).collect::<Vec<_>>();
        let names = names.iter().map(String::as_str).collect::<Vec<_>>();
        let relay = Relay::start(&router, &names, None);
        Crowded { router, source, hosts, relay }
    }

    /// Sends packets and checks that each comes once to each of these networks, with a TTL that is one less.
    /// Those from `good_from` on have checksums.
    fn check(&self, from: &mut Source, witness: &Witness, nets: &[u8], good_from: u8) {
        witness.take(0);
        let numbers = from.send_numbered(100);
        let found = witness.take(numbers.len() * nets.len());
        assert_eq!(found.len(), nets.len(), "{:?}", found.keys());
        for net in nets {
            let seen = &found[&index(&self.hosts, &format!("h{net}"))];
            assert_eq!(seen.iter().map(|one| one.number).collect::<Vec<_>>(), numbers, "network {net}");
            assert!(seen.iter().all(|one| one.ttl == 7 && one.payload_bytes == 101), "network {net}");
            assert!(*net < good_from || seen.iter().all(|one| one.is_good), "network {net}");
        }
    }
}

/// Interfaces on which no host is.
fn idle(router: &Namespace, count: u8) -> Vec<String> {
    let make = |number: u8| {
        let name = format!("idle{number}");
        router.ip(&["link", "add", &name, "type", "bridge", "mcast_snooping", "0"]);
        router.ip(&["address", "add", &format!("10.9.{number}.1/24"), "dev", &name]);
        router.ip(&["link", "set", &name, "up", "multicast", "on"]);
        name
    };
    (0..count).map(make).collect()
}

#[test]
fn hosts_on_forty_interfaces_are_sent_each_packet_once() {
    if is_skipped("hosts_on_forty_interfaces_are_sent_each_packet_once") {
        return;
    }
    let crowded = Crowded::new(38, 30);
    let (relay, witness) = (&crowded.relay, Witness::new(&crowded.hosts));
    let mut joined = members(&crowded.hosts, 0..38);
    relay.wait_until("all joined", has_groups(38));
    let nets = (0..38).collect::<Vec<_>>();
    let mut from_number = Source::new(&crowded.source, SOURCE);
    let mut from_further = Source::new(&crowded.source, FURTHER_SOURCE);
    from_number.send(b"first");
    relay.wait_until("from a number, by both", goes_to(SOURCE, 30, 8));
    crowded.check(&mut from_number, &witness, &nets, 30);
    from_further.send(b"first");
    relay.wait_until("from none, in user space", goes_to(FURTHER_SOURCE, 0, 38));
    crowded.check(&mut from_further, &witness, &nets, 0);

    joined.pop();
    joined.remove(0);
    relay.wait_until("two have left", goes_to(SOURCE, 29, 7));
    relay.wait_until("here, too", goes_to(FURTHER_SOURCE, 0, 36));
    let wire = Wire::listen(&crowded.hosts, "h0");
    crowded.check(&mut from_number, &witness, &nets[1..37], 30);
    crowded.check(&mut from_further, &witness, &nets[1..37], 0);
    let went = wire.datagrams(GROUP);
    let wanted = (1..37).map(|net| (index(&crowded.hosts, &format!("h{net}")), 200));
    assert_eq!(went, wanted.collect(), "each one once where it is wanted, and none elsewhere");

    let counts = relay.snapshot().counts;
    assert_eq!((counts.kernel_errors, counts.flows_refused, counts.read_errors), (0, 0, 0), "{counts:?}");
    let user = counts.user;
    assert_eq!((user.lost, user.malformed, user.unresolved, user.elsewhere), (0, 0, 0, 0), "{user:?}");
    assert_eq!((user.no_room, user.too_long, user.send_errors), (0, 0, 0), "{user:?}");
    assert!(user.copies >= 100 * (8 + 38 + 7 + 36), "{user:?}");
}

#[test]
fn the_first_packet_comes_from_where_the_kernel_asks_nothing() {
    if is_skipped("the_first_packet_comes_from_where_the_kernel_asks_nothing") {
        return;
    }
    let crowded = Crowded::new(2, 1);
    let witness = Witness::new(&crowded.hosts);
    let _joined = members(&crowded.hosts, 0..2);
    crowded.relay.wait_until("all joined", has_groups(2));
    let mut from = Source::new(&crowded.source, FURTHER_SOURCE);
    from.socket.set_multicast_ttl_v4(1).expect("an option");
    from.send_numbered(3);
    from.socket.set_multicast_ttl_v4(8).expect("an option");
    let numbers = from.send_numbered(3);
    let found = witness.take(6);
    assert_eq!(found.len(), 2);
    for seen in found.values() {
        assert_eq!(seen.iter().map(|one| one.number).collect::<Vec<_>>(), numbers);
    }
    assert_eq!(crowded.relay.snapshot().counts.user.ttl, 3);
}

#[test]
fn long_packets_are_cut_or_counted_and_merged_ones_are_parted() {
    if is_skipped("long_packets_are_cut_or_counted_and_merged_ones_are_parted") {
        return;
    }
    let crowded = Crowded::new(2, 0);
    let witness = Witness::new(&crowded.hosts);
    let _joined = members(&crowded.hosts, 0..2);
    crowded.relay.wait_until("all joined", has_groups(2));
    crowded.router.ip(&["link", "set", "n1", "mtu", "1000"]);
    let from = Source::new(&crowded.source, FURTHER_SOURCE);
    let lengths = |count| {
        let found = witness.take(count);
        let at = |device| found.get(&index(&crowded.hosts, device)).cloned().unwrap_or_default();
        assert!(found.values().flatten().all(|seen| seen.is_good && seen.ttl == 7), "{found:?}");
        ["h0", "h1"].map(|device| at(device).iter().map(|seen| seen.payload_bytes).collect::<Vec<_>>())
    };
    // By default, Linux asks not to fragment.
    from.send(&[1; 1400]);
    assert_eq!(lengths(1), [vec![1400], vec![]]);
    assert_eq!(crowded.relay.snapshot().counts.user.too_long, 1);
    crowded.source.sysctl("net.ipv4.ip_no_pmtu_disc", "1");
    let from = Source::new(&crowded.source, FURTHER_SOURCE);
    from.send(&[1; 1400]);
    assert_eq!(lengths(2), [vec![1400], vec![1400]]);
    setsockopt(&from.socket, sockopt::UdpGsoSegment, &900).expect("an option");
    from.send(&[1; 4000]);
    let parts = vec![400, 900, 900, 900, 900];
    let [mut at_a, mut at_b] = lengths(10);
    at_a.sort_unstable();
    at_b.sort_unstable();
    assert_eq!((&at_a, &at_b), (&parts, &parts));
}

#[test]
fn a_host_of_version_2_is_heard_where_there_is_no_number() {
    if is_skipped("a_host_of_version_2_is_heard_where_there_is_no_number") {
        return;
    }
    let crowded = Crowded::new(1, 0);
    for version in ["2", "0"] {
        crowded.hosts.sysctl("net.ipv4.conf.h0.force_igmp_version", version);
        let joined = members(&crowded.hosts, [0]);
        crowded.relay.wait("join", is_wanted);
        drop(joined);
        crowded.relay.wait("leave", is_gone);
    }
    let snapshot = crowded.relay.snapshot();
    let here = snapshot.interfaces.iter().find(|one| &*one.name == "n0").expect("it takes part");
    assert_eq!((&here.refused, snapshot.counts.elsewhere), (&vec![], 0), "nothing is heard twice");
}

#[test]
fn another_querier_is_heard_where_there_is_no_number() {
    if is_skipped("another_querier_is_heard_where_there_is_no_number") {
        return;
    }
    let crowded = Crowded::new(1, 0);
    let is_self = |event: &Event| match event {
        Event::Querier { is_self, interface, .. } => *is_self && &**interface == "n0",
        _ => false,
    };
    crowded.relay.wait("it asks first", is_self);
    let other = Relay::start(&crowded.hosts, &["h0"], None);
    crowded.relay.wait("it listens", |event| {
        matches!(event, Event::Querier { querier, is_self: false, .. } if querier.to_string() == "10.2.0.2")
    });
    drop(other);
    crowded.relay.wait("it asks again", is_self);
}

#[test]
fn a_number_that_is_free_again_is_given_to_the_next_interface() {
    if is_skipped("a_number_that_is_free_again_is_given_to_the_next_interface") {
        return;
    }
    let crowded = Crowded::new(2, 1);
    let (relay, witness) = (&crowded.relay, Witness::new(&crowded.hosts));
    let _joined = members(&crowded.hosts, 0..2);
    relay.wait_until("all joined", has_groups(2));
    let mut from = Source::new(&crowded.source, SOURCE);
    from.send(b"first");
    relay.wait_until("by both", goes_to(SOURCE, 1, 1));
    crowded.router.ip(&["link", "delete", "n0"]);
    relay.wait("gone", |event| matches!(event, Event::InterfaceGone { .. }));
    relay.wait_until("by one", goes_to(SOURCE, 0, 1));
    link(&crowded.router, ("n2", "10.2.2.9"), &crowded.hosts, ("h2", "10.2.2.2"));
    relay.add(&crowded.router, "n2");
    let _joined_there = members(&crowded.hosts, [2]);
    relay.wait_until("by both again", goes_to(SOURCE, 1, 1));
    crowded.check(&mut from, &witness, &[1, 2], 3);
    crowded.router.ip(&["link", "set", "n1", "down"]);
    relay.wait_until("by the kernel alone", goes_to(SOURCE, 1, 0));
    crowded.check(&mut from, &witness, &[2], 3);
    crowded.router.ip(&["link", "set", "n1", "up"]);
    relay.wait_until("its host answers", goes_to(SOURCE, 1, 1));
    crowded.check(&mut from, &witness, &[1, 2], 3);
}

#[test]
fn a_source_may_move_to_where_there_is_no_number() {
    if is_skipped("a_source_may_move_to_where_there_is_no_number") {
        return;
    }
    let crowded = Crowded::new(2, 1);
    let (relay, witness) = (&crowded.relay, Witness::new(&crowded.hosts));
    let _joined = members(&crowded.hosts, 0..2);
    relay.wait_until("all joined", has_groups(2));
    let by = |device| Source::by(&crowded.source, MOVING_SOURCE, device);
    let mut from_number = by(SOURCE);
    let mut from_further = Source { next: 1000, ..by(FURTHER_SOURCE) };
    let sent_until = |from: &Source, what, is_it: &dyn Fn(&Snapshot) -> bool| {
        let end = Instant::now() + 3 * PATIENCE;
        while !is_it(&relay.snapshot()) {
            assert!(Instant::now() < end, "{what}: {:#?}", relay.snapshot());
            from.send(b"again");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    sent_until(&from_number, "from a number", &goes_to(MOVING_SOURCE, 1, 1));
    crowded.check(&mut from_number, &witness, &[0, 1], 1);
    sent_until(&from_further, "from none", &goes_to(MOVING_SOURCE, 0, 2));
    crowded.check(&mut from_further, &witness, &[0, 1], 0);
    sent_until(&from_number, "from a number again", &goes_to(MOVING_SOURCE, 1, 1));
    crowded.check(&mut from_number, &witness, &[0, 1], 1);
}

#[test]
fn routers_of_dvmrp_are_neighbours_where_there_is_no_number() {
    if is_skipped("routers_of_dvmrp_are_neighbours_where_there_is_no_number") {
        return;
    }
    let [a, b, left, right] = ["a", "b", "left", "right"].map(Namespace::new);
    link(&left, ("eth0", "10.1.0.2"), &a, ("in0", "10.1.0.1"));
    link(&a, ("ab", "10.2.0.1"), &b, ("ba", "10.2.0.2"));
    link(&b, ("lan", "10.4.0.1"), &right, ("eth0", "10.4.0.2"));
    let idle = idle(&a, 30);
    let hosts = idle.iter().map(String::as_str).chain(["in0"]).collect::<Vec<_>>();
    let (at_a, at_b) = (Relay::route(&a, &hosts, &["ab"]), Relay::route(&b, &["lan"], &["ba"]));
    at_b.wait_until("all routes", has(1, 33));
    at_a.wait_until("all routes at a", has(1, 33));
    let mut ends = Ends::new(&left);
    let socket = member(&right, Ipv4Addr::new(10, 4, 0, 2));
    sent_until_received(&ends.from, &socket);
    assert_eq!(ends.copies(&socket, 200), [1; 200]);
    let is_user = |flow: &Flow| flow.by_user == ["ab".into()] && flow.by_kernel.is_empty();
    assert!(at_a.snapshot().flows.iter().any(is_user));
    drop(socket);
    ends.sent_until_silent(|| came_in(&b, "ba"));
    // And the other way: from where there is no number.
    let (from, socket) = (sender(&right, Ipv4Addr::new(10, 4, 0, 2)), member(&left, SOURCE));
    sent_until_received(&from, &socket);
    let is_user = |flow: &Flow| &*flow.from == "ab" && flow.by_user == ["in0".into()];
    assert!(at_a.snapshot().flows.iter().any(is_user));
}
