//! Packets that say their layer, forwarded where it is wanted.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use outflow_multicast::{Counts, Event, Flow, Interface, Name, Snapshot};
use outflow_packet::gmc::Mark;
use outflow_routing::membership::{Family, Level};
use outflow_rtp::{PlainHeader, RtpHeader};

use crate::dvmrp::{Ends, Line};
use crate::hosts::{GROUP, PORT, SOURCE, member, sender, sent_until_received};
use crate::mld;
use crate::net::{Namespace, is_skipped, lacks_filter, link};
use crate::relay::{Relay, Thins};

/// Layers of the frames of a group of pictures, the first a key frame.
pub(crate) const LAYERS: [u8; 4] = [0, 2, 1, 2];

pub(crate) fn level(number: u8) -> Level {
    Level::new(number).expect("not zero")
}

/// A source whose frames are of one packet.
pub(crate) struct Layered<'a> {
    pub(crate) from: &'a UdpSocket,
    pub(crate) to: SocketAddr,
    pub(crate) sequence: u16,
}

impl Layered<'_> {
    /// Sends a number of groups of pictures.
    pub(crate) fn send(&mut self, groups: usize) {
        for layer in LAYERS.into_iter().cycle().take(groups * LAYERS.len()) {
            let (payload_type, timestamp, ssrc) = (96, u32::from(self.sequence) * 3600, 5);
            let header =
                PlainHeader { marker: true, payload_type, sequence: self.sequence, timestamp, ssrc }.emit();
            let opens = layer == 0;
            let mark = Mark {
                layer,
                layers: 3,
                grown: 0,
                first: true,
                opens,
                adds: false,
                opens_all: opens,
                ends: None,
            };
            let packet = mark.write(&header, b"media").expect("it has a place");
            self.from.send_to(&packet, self.to).expect("a way out");
            self.sequence = self.sequence.wrapping_add(1);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Numbers and layers of the packets that come until there are `count`, and a while longer.
pub(crate) fn come(at: &UdpSocket, count: usize) -> (Vec<u16>, Vec<u8>) {
    come_that_say(|packet| Some(Mark::read(packet)?.layer), at, count)
}

/// The same of packets of which `layer` tells the layer; others are left out.
pub(crate) fn come_that_say(
    layer: impl Fn(&[u8]) -> Option<u8>,
    at: &UdpSocket,
    count: usize,
) -> (Vec<u16>, Vec<u8>) {
    let (mut numbers, mut layers, mut buffer) = (Vec::new(), Vec::new(), [0; 200]);
    let mut end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end {
        let Ok(length) = at.recv(&mut buffer) else {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        };
        let packet = &buffer[..length];
        let Some(layer) = layer(packet) else { continue };
        numbers.push(RtpHeader::new_checked(packet).expect("RTP").sequence());
        layers.push(layer);
        if numbers.len() == count {
            end = Instant::now() + Duration::from_millis(300);
        }
    }
    (numbers, layers)
}

pub(crate) fn is_without_gap(numbers: &[u16]) -> bool {
    numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1))
}

/// A source, a router that thins in one way or the other, and two hosts: one on each link.
pub(crate) struct Fork {
    pub(crate) family: Family,
    pub(crate) source: Namespace,
    router: Namespace,
    hosts: [Namespace; 2],
    pub(crate) relay: Relay,
}

/// The host on a link of IPv4.
const fn host(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 2 + number as u8, 0, 2)
}

impl Fork {
    pub(crate) fn new(family: Family, thins: Thins) -> Self {
        let namespace = |role| match family {
            Family::V4 => Namespace::new(role),
            Family::V6 => mld::namespace(role),
        };
        let [source, router, a, b] = ["source", "router", "a", "b"].map(namespace);
        let fork = |of: u8, namespace, device| match family {
            Family::V4 => {
                let [here, there] = [2, 1].map(|end| Ipv4Addr::new(10, of, 0, end).to_string());
                link(namespace, ("eth0", &here), &router, (device, &there));
            }
            Family::V6 => mld::link((&router, device), (namespace, "eth0"), of.into()),
        };
        fork(1, &source, "in0");
        fork(2, &a, "out0");
        fork(3, &b, "out1");
        let relay = Relay::start_thinning(family, thins, &router, &["in0", "out0", "out1"]);
        Fork { family, source, router, hosts: [a, b], relay }
    }

    /// The second link takes no longer packets than this.
    pub(crate) fn narrow(&self, mtu: usize) {
        for (namespace, device) in [(&self.router, "out1"), (&self.hosts[1], "eth0")] {
            namespace.ip(&["link", "set", device, "mtu", &mtu.to_string()]);
        }
    }

    pub(crate) fn hosts(&self) -> [&Namespace; 2] {
        self.hosts.each_ref()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.relay.snapshot().counts
    }

    /// The group that hosts join.
    pub(crate) const fn group(&self) -> IpAddr {
        match self.family {
            Family::V4 => IpAddr::V4(GROUP),
            Family::V6 => IpAddr::V6(mld::GROUP),
        }
    }

    /// What sends to the group.
    pub(crate) fn sender(&self) -> UdpSocket {
        match self.family {
            Family::V4 => sender(&self.source, SOURCE),
            Family::V6 => mld::sender(&self.source, mld::address(1, 2)),
        }
    }

    /// Members on both links, once packets have come to both.
    pub(crate) fn members(&self, from: &UdpSocket) -> [UdpSocket; 2] {
        [0, 1].map(|number| match self.family {
            Family::V4 => {
                let member = member(&self.hosts[number], host(number));
                sent_until_received(from, &member);
                member
            }
            Family::V6 => {
                let member = mld::member(&self.hosts[number]);
                mld::sent_until_received(from, &member);
                member
            }
        })
    }

    /// What a host is known by to the router.
    fn known_as(&self, number: usize) -> IpAddr {
        match self.family {
            Family::V4 => host(number).into(),
            Family::V6 => {
                let interface = self.hosts[number].run(|| Interface::find(Family::V6, "eth0"));
                interface.expect("an interface").address
            }
        }
    }

    /// A host says its level, which holds when this returns.
    pub(crate) fn say(&self, host: usize, number: u8) -> Flow {
        let (at, wanted) = (("out0", "out1"), level(number));
        let device = if host == 0 { at.0 } else { at.1 };
        let said = self.relay.multicast.say_level(self.known_as(host), self.group(), wanted);
        self.relay.runtime.block_on(said).expect("a member");
        let is_at = |(name, level): &(Name, Level)| **name == *device && *level == wanted;
        let is_it = |event: &Event| matches!(event, Event::Flow(flow) if flow.thinned.iter().any(is_at));
        let Event::Flow(flow) = self.relay.wait("by its level", is_it) else { unreachable!() };
        flow
    }
}

#[test]
fn each_host_gets_the_layers_that_it_wants_by_the_kernel() {
    by_the_kernel("each_host_gets_the_layers_that_it_wants_by_the_kernel", Family::V4);
}

#[test]
fn each_host_gets_the_layers_that_it_wants_of_ipv6_by_the_kernel() {
    by_the_kernel("each_host_gets_the_layers_that_it_wants_of_ipv6_by_the_kernel", Family::V6);
}

fn by_the_kernel(test: &str, family: Family) {
    if !lacks_filter(test) {
        let counts = each_host_gets_the_layers_that_it_wants(family, Thins::Kernel);
        // Of each group of pictures two at the lower level, and then all, by one interface.
        let filter = counts.filter;
        assert_eq!((filter.copies, filter.thinned, filter.failed), (120, 40, 0), "{filter:?}");
        assert_eq!((filter.packets, filter.handed_over, counts.user.copies), (160, 0, 0), "{filter:?}");
    }
}

#[test]
fn each_host_gets_the_layers_that_it_wants_by_user_space() {
    if !is_skipped("each_host_gets_the_layers_that_it_wants_by_user_space") {
        let counts = each_host_gets_the_layers_that_it_wants(Family::V4, Thins::User);
        let user = counts.user;
        assert_eq!((user.thinned, user.no_room, user.send_errors, user.malformed), (40, 0, 0, 0), "{user:?}");
        assert_eq!((user.copies, counts.filter.packets), (120, 0));
    }
}

fn each_host_gets_the_layers_that_it_wants(family: Family, thins: Thins) -> Counts {
    let fork = Fork::new(family, thins);
    let from = fork.sender();
    let [at_a, at_b] = fork.members(&from);
    let flow = fork.say(1, 2);
    assert_eq!(flow.by_kernel, ["out0".into()], "what is wanted at its best stays the kernel's");
    let mut layered = Layered { from: &from, to: (fork.group(), PORT).into(), sequence: 65_500 };
    layered.send(20);
    let (numbers, layers) = come(&at_a, 80);
    assert_eq!((numbers.len(), is_without_gap(&numbers)), (80, true));
    assert_eq!(layers, LAYERS.repeat(20));
    let (before, layers) = come(&at_b, 40);
    // It had all of them up to now: the first is a key frame, from which on it has less.
    assert_eq!((layers, is_without_gap(&before)), ([0, 1].repeat(20), true));
    fork.say(1, 1);
    layered.send(20);
    let (numbers, layers) = come(&at_b, 80);
    assert_eq!(layers, LAYERS.repeat(20));
    assert!(is_without_gap(&[before, numbers].concat()), "one row of numbers over the change");
    let snapshot = fork.relay.snapshot();
    assert_eq!(snapshot.filter_refused.is_some(), thins == Thins::User, "{snapshot:?}");
    snapshot.counts
}

#[test]
fn over_three_routers_each_link_carries_the_best_that_is_wanted_behind_it() {
    if is_skipped("over_three_routers_each_link_carries_the_best_that_is_wanted_behind_it") {
        return;
    }
    let line = Line::new();
    let relays = line.start();
    let ends = Ends::new(&line.source);
    let socket = line.member();
    sent_until_received(&ends.from, &socket);
    let mut layered = Layered { from: &ends.from, to: (GROUP, PORT).into(), sequence: 1 };
    let mut received = Vec::new();
    for (number, expected) in [(3, vec![0]), (2, vec![0, 1]), (1, LAYERS.to_vec()), (3, vec![0])] {
        Line::wants(&relays, level(number));
        let packets = || {
            relays.each_ref().map(|relay| match relay.snapshot() {
                Snapshot { filter_refused: None, counts, .. } => counts.filter.packets,
                Snapshot { counts, .. } => counts.user.packets,
            })
        };
        let before = packets();
        layered.send(25);
        let (numbers, layers) = come(&socket, expected.len() * 25);
        assert_eq!(layers, expected.repeat(25), "level {number}");
        received.extend(numbers);
        let came = packets().iter().zip(before).map(|(now, before)| now - before).collect::<Vec<_>>();
        let wanted = expected.len() as u64 * 25;
        assert_eq!(came, [100, wanted, wanted], "what came in at each router, level {number}");
    }
    assert!(is_without_gap(&received), "one row of numbers, whatever was left out where: {received:?}");
}
