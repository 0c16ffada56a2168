//! Our own routers of DVMRP, in a line and around a square.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use outflow_multicast::{Event, Flow, OwnFlow, Relayed, Snapshot};
use outflow_routing::membership::Level;

use crate::hosts::{GROUP, PORT, SOURCE, member, say_level, sender, sent_until_received};
use crate::net::{Namespace, is_skipped, link};
use crate::relay::{PATIENCE, Relay};

/// A host that sends, and one that receives.
pub(crate) struct Ends {
    pub(crate) from: UdpSocket,
    next: u32,
}

impl Ends {
    pub(crate) fn new(source: &Namespace) -> Self {
        Ends { from: sender(source, SOURCE), next: 0 }
    }

    /// Sends some packets, one each millisecond, and says how often each of them came at a socket.
    pub(crate) fn copies(&mut self, at: &UdpSocket, count: u32) -> Vec<usize> {
        let (first, mut copies) = (self.next, vec![0; count as usize]);
        self.next += count;
        let mut receive = || {
            let mut buffer = [0; 100];
            while let Ok(length) = at.recv(&mut buffer) {
                let number = buffer[..length].try_into().map(u32::from_be_bytes).ok();
                // Others are of before.
                let place = number.and_then(|number| number.checked_sub(first)).map(|place| place as usize);
                if let Some(copies) = place.and_then(|place| copies.get_mut(place)) {
                    *copies += 1;
                }
            }
        };
        for number in first..first + count {
            self.from.send_to(&number.to_be_bytes(), (GROUP, PORT)).expect("a way out");
            std::thread::sleep(Duration::from_millis(1));
            receive();
        }
        let end = Instant::now() + Duration::from_millis(500);
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
            receive();
        }
        copies
    }

    /// Sends until nothing comes at a device any more.
    pub(crate) fn sent_until_silent(&self, count: impl Fn() -> u64) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let before = count();
            for _ in 0..50 {
                self.from.send_to(b"data", (GROUP, PORT)).expect("a way out");
                std::thread::sleep(Duration::from_millis(1));
            }
            if count() - before < 10 {
                return;
            }
        }
        panic!("it was not pruned");
    }
}

/// Whether there are as many neighbours both ways, and routes, as these.
pub(crate) fn has(neighbours: usize, routes: usize) -> impl Fn(&Snapshot) -> bool {
    move |snapshot| {
        snapshot.dvmrp.as_ref().is_some_and(|dvmrp| {
            let both = dvmrp.neighbours.iter().filter(|one| one.is_two_way).count();
            both == neighbours && dvmrp.routes.iter().filter(|route| route.metric < 32).count() == routes
        })
    }
}

/// Packets that came in by a device.
pub(crate) fn came_in(namespace: &Namespace, device: &str) -> u64 {
    let text = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/dev")).expect("counters");
    let line =
        text.lines().find_map(|line| line.trim().strip_prefix(&format!("{device}:")).map(str::to_owned));
    let line = line.expect("the device");
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
}

/// ```text
/// source         a            b            c         host
///   eth0 ──── in0 ab ──── ba   bc ──── cb   lan ──── eth0
/// ```
pub(crate) struct Line {
    pub(crate) source: Namespace,
    pub(crate) routers: [Namespace; 3],
    host: Namespace,
}

impl Line {
    /// The address of the host.
    const MEMBER: Ipv4Addr = Ipv4Addr::new(10, 4, 0, 2);

    pub(crate) fn new() -> Self {
        let [source, a, b, c, host] = ["source", "a", "b", "c", "host"].map(Namespace::new);
        link(&source, ("eth0", "10.1.0.2"), &a, ("in0", "10.1.0.1"));
        link(&a, ("ab", "10.2.0.1"), &b, ("ba", "10.2.0.2"));
        link(&b, ("bc", "10.3.0.1"), &c, ("cb", "10.3.0.2"));
        link(&c, ("lan", "10.4.0.1"), &host, ("eth0", "10.4.0.2"));
        Line { source, routers: [a, b, c], host }
    }

    pub(crate) fn start(&self) -> [Relay; 3] {
        let [a, b, c] = &self.routers;
        let relays = [
            Relay::route(a, &["in0"], &["ab"]),
            Relay::route(b, &[], &["ba", "bc"]),
            Relay::route(c, &["lan"], &["cb"]),
        ];
        relays[0].wait_until("all routes at a", has(1, 4));
        relays[1].wait_until("all routes at b", has(2, 4));
        relays[2].wait_until("all routes at c", has(1, 4));
        relays
    }

    pub(crate) fn member(&self) -> UdpSocket {
        member(&self.host, Self::MEMBER)
    }

    /// The member wants a level, and each router forwards by that.
    pub(crate) fn wants(relays: &[Relay; 3], level: Level) {
        let said = relays[2].multicast.say_level(Self::MEMBER.into(), GROUP.into(), level);
        relays[2].runtime.block_on(said).expect("a member");
        for (relay, device) in relays.iter().zip(["ab", "bc", "lan"]) {
            relay.wait_until("by its level", |snapshot| {
                let mut flows = snapshot.flows.iter().filter(|flow| flow.group == GROUP);
                flows.any(|flow| flow.thinned == [(device.into(), level)])
            });
        }
    }
}

#[test]
fn a_join_brings_packets_once_over_three_routers_and_a_leave_prunes_them() {
    if is_skipped("a_join_brings_packets_once_over_three_routers_and_a_leave_prunes_them") {
        return;
    }
    let line = Line::new();
    let relays = line.start();
    let mut ends = Ends::new(&line.source);
    ends.sent_until_silent(|| came_in(&line.routers[1], "ba"));
    let socket = line.member();
    sent_until_received(&ends.from, &socket);
    assert_eq!(ends.copies(&socket, 200), [1; 200], "grafted");
    drop(socket);
    ends.sent_until_silent(|| came_in(&line.routers[1], "ba"));
    let socket = line.member();
    sent_until_received(&ends.from, &socket);
    assert_eq!(ends.copies(&socket, 200), [1; 200], "grafted again");
    for relay in &relays {
        let snapshot = relay.snapshot();
        let counts = snapshot.counts;
        assert_eq!(
            (counts.kernel_errors, counts.send_errors, counts.read_errors),
            (0, 0, 0),
            "{snapshot:#?}"
        );
    }
}

#[test]
fn a_router_that_was_killed_is_a_neighbour_again_and_forwards() {
    if is_skipped("a_router_that_was_killed_is_a_neighbour_again_and_forwards") {
        return;
    }
    let line = Line::new();
    let [a, b, c] = line.start();
    let mut ends = Ends::new(&line.source);
    let socket = line.member();
    sent_until_received(&ends.from, &socket);
    drop(b);
    // Without a word. Generations are seconds of the clock.
    std::thread::sleep(Duration::from_millis(1100));
    let b = Relay::route(&line.routers[1], &[], &["ba", "bc"]);
    let is_restarted = |event: &Event| matches!(event, Event::NeighbourRestarted { .. });
    a.wait("a sees another generation", is_restarted);
    c.wait("c sees another generation", is_restarted);
    b.wait_until("all routes at b", has(2, 4));
    c.wait_until("all routes at c", has(1, 4));
    sent_until_received(&ends.from, &socket);
    assert_eq!(ends.copies(&socket, 200), [1; 200]);
}

#[test]
fn the_level_that_is_wanted_goes_up_over_routers() {
    if is_skipped("the_level_that_is_wanted_goes_up_over_routers") {
        return;
    }
    let line = Line::new();
    let [a, b, c] = line.start();
    let ends = Ends::new(&line.source);
    let socket = line.member();
    sent_until_received(&ends.from, &socket);
    drop(socket);
    ends.sent_until_silent(|| came_in(&line.routers[1], "ba"));
    let low = Level::new(3).expect("not zero");
    let goes = |relay: &Relay, what, is_so: fn(&Flow) -> bool| {
        // No host answers queries: it is said again before it expires.
        say_level(&line.host, low);
        ends.from.send_to(b"data", (GROUP, PORT)).expect("a way out");
        relay.wait_until(what, |snapshot| {
            snapshot.flows.iter().any(|flow| flow.group == GROUP && is_so(flow))
        });
    };
    let is_whole = |flow: &Flow| flow.thinned.len() == 1 && flow.by_relay.is_empty();
    goes(&a, "no relay makes a lower level: a forwards to b what is of it", is_whole);
    [&a, &b, &c].into_iter().for_each(|relay| relay.send(GROUP, Relayed::Lower));
    let is_low = |flow: &Flow| flow.by_kernel.is_empty() && flow.by_relay.iter().any(|to| to.1.number() == 3);
    goes(&a, "a serves b at level 3", is_low);
    // What a forwards is for the relay to filter, and there is none: nothing more comes to b and c.
    let is_nowhere = |flow: &Flow| flow.by_kernel.is_empty() && flow.by_relay.is_empty();
    a.send(GROUP, Relayed::All);
    goes(&a, "the relay sends all of it to b", is_nowhere);
    a.send(GROUP, Relayed::Lower);
    goes(&a, "a serves b again", is_low);
    c.send(GROUP, Relayed::All);
    goes(&a, "c's relay has it from elsewhere: pruned", is_nowhere);
    assert!(c.snapshot().dvmrp.is_some_and(|dvmrp| dvmrp.neighbours.iter().all(|one| one.has_levels)));
}

/// ```text
///             ┌── b ──┐
/// source ── a ┤       ├ d ── host
///             └── c ──┘
/// ```
#[test]
fn around_a_square_packets_come_once_and_again_when_a_router_was_killed() {
    if is_skipped("around_a_square_packets_come_once_and_again_when_a_router_was_killed") {
        return;
    }
    let [source, a, b, c, d, host] = ["source", "a", "b", "c", "d", "host"].map(Namespace::new);
    link(&source, ("eth0", "10.1.0.2"), &a, ("in0", "10.1.0.1"));
    link(&a, ("ab", "10.2.0.1"), &b, ("ba", "10.2.0.2"));
    link(&a, ("ac", "10.3.0.1"), &c, ("ca", "10.3.0.2"));
    link(&b, ("bd", "10.5.0.1"), &d, ("db", "10.5.0.2"));
    link(&c, ("cd", "10.6.0.1"), &d, ("dc", "10.6.0.2"));
    link(&d, ("lan", "10.4.0.1"), &host, ("eth0", "10.4.0.2"));
    let at_a = Relay::route(&a, &["in0"], &["ab", "ac"]);
    let at_b = Relay::route(&b, &[], &["ba", "bd"]);
    let at_c = Relay::route(&c, &[], &["ca", "cd"]);
    let at_d = Relay::route(&d, &["lan"], &["db", "dc"]);
    for relay in [&at_a, &at_b, &at_c, &at_d] {
        relay.wait_until("all routes", has(2, 6));
    }
    let mut ends = Ends::new(&source);
    let socket = member(&host, Ipv4Addr::new(10, 4, 0, 2));
    sent_until_received(&ends.from, &socket);
    assert_eq!(ends.copies(&socket, 300), [1; 300]);
    let flow = at_d.snapshot().flows.first().cloned().expect("data came in");
    let (killed, namespace, its) =
        if &*flow.from == "db" { (at_b, &b, ["ba", "bd"]) } else { (at_c, &c, ["ca", "cd"]) };
    drop(killed);
    std::thread::sleep(Duration::from_millis(1100));
    let back = Relay::route(namespace, &[], &its);
    at_d.wait("another generation", |event| matches!(event, Event::NeighbourRestarted { .. }));
    back.wait_until("all routes again", has(2, 6));
    at_d.wait_until("all routes again at d", has(2, 6));
    sent_until_received(&ends.from, &socket);
    assert_eq!(ends.copies(&socket, 300), [1; 300]);
}

/// Sends as the relay is told to, and says whether it is.
fn sends_if_wanted(from: &UdpSocket, snapshot: &Snapshot) -> bool {
    let is_wanted = !snapshot.own.is_empty();
    if is_wanted {
        from.send_to(b"data", (GROUP, PORT)).expect("a way out");
    }
    is_wanted
}

#[test]
fn what_the_relay_sends_is_wanted_while_neighbours_lead_to_members() {
    if is_skipped("what_the_relay_sends_is_wanted_while_neighbours_lead_to_members") {
        return;
    }
    let line = Line::new();
    let [a, b, c] = line.start();
    a.send(GROUP, Relayed::All);
    let own = Ipv4Addr::new(10, 2, 0, 1);
    let from = line.routers[0].run(|| UdpSocket::bind((own, 0))).expect("its address");
    from.set_multicast_ttl_v4(8).and_then(|()| from.set_multicast_loop_v4(false)).expect("options");
    let mut ends = Ends { from, next: 0 };
    c.wait_until("a route to what a sends", has(1, 5));
    a.wait_until("it is sent to neighbours at first", |snapshot| sends_if_wanted(&ends.from, snapshot));
    a.wait_until("it is pruned", |snapshot| !sends_if_wanted(&ends.from, snapshot));
    let socket = line.member();
    let flow = OwnFlow { group: GROUP, source: own, by: vec![("ab".into(), Level::BEST)] };
    a.wait_until("it is grafted", |snapshot| snapshot.own == [flow.clone()]);
    sent_until_received(&ends.from, &socket);
    assert_eq!(ends.copies(&socket, 200), [1; 200]);
    drop(socket);
    a.wait_until("it is pruned again", |snapshot| !sends_if_wanted(&ends.from, snapshot));
    let receives = |level| {
        b.runtime.block_on(b.multicast.set_received([(GROUP.into(), level)].into())).expect("it runs")
    };
    let low = Level::new(3).expect("a level");
    receives(low);
    let at_low = OwnFlow { by: vec![("ab".into(), low)], ..flow.clone() };
    a.wait_until("b itself receives some of it", |snapshot| snapshot.own == [at_low.clone()]);
    receives(Level::BEST);
    a.wait_until("b itself receives it", |snapshot| snapshot.own == [flow.clone()]);
    let gone = Event::OwnFlow(OwnFlow { by: Vec::new(), ..flow.clone() });
    assert!(a.told().contains(&gone));
    a.runtime.block_on(a.multicast.remove("ab")).expect("it is there");
    a.wait("none is there any more", |event| *event == gone);
}
