//! Against the kernel, in namespaces that each test makes and removes.

use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Instant;

use nix::sched::{CloneFlags, setns, unshare};
use outflow_skip::skipped;
use rustix::event::{PollFd, PollFlags, poll};

use super::*;

mod groups;
mod v6;

/// Long enough for the kernel on a busy machine; tests wait this long only when they fail.
const PATIENCE: Duration = Duration::from_secs(10);

/// A network namespace, there as long as this handle is open.
struct Namespace(File);

impl Namespace {
    fn new() -> Result<Namespace, String> {
        let made = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|error| error.to_string())?;
            File::open("/proc/thread-self/ns/net").map_err(|error| error.to_string())
        });
        let namespace = Namespace(made.join().expect("it does not panic")?);
        namespace.run(|| try_run("ip", &["link", "set", "lo", "up"]))?;
        Ok(namespace)
    }

    /// Moves the calling thread into it.
    fn enter(&self) {
        setns(&self.0, CloneFlags::CLONE_NEWNET).expect("its maker may enter it");
    }

    /// Does something in it.
    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.enter();
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `ip` in it.
    fn ip(&self, arguments: &[&str]) -> String {
        let done = self.run(|| try_run("ip", arguments));
        done.unwrap_or_else(|error| panic!("ip {}: {error}", arguments.join(" ")))
    }

    /// The MAC address of a device.
    fn mac(&self, device: &str) -> hop::Mac {
        let text = self.ip(&["-br", "link", "show", device]);
        let mac = text.split_whitespace().nth(2).expect("the third column");
        let bytes: Vec<u8> =
            mac.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("a number")).collect();
        bytes.try_into().expect("six of them")
    }
}

/// A relay's namespace with one wire to a neighbour's: `out` 10.7.0.1/24 here, 10.7.0.2/24 there.
/// The test's thread is in the relay's.
struct Net {
    relay: Namespace,
    neighbour: Namespace,
}

impl Net {
    /// Says why if namespaces cannot be made here.
    fn new(test: &str) -> Option<Net> {
        let made = Namespace::new().and_then(|relay| Ok(Net { relay, neighbour: Namespace::new()? }));
        let net = made.inspect_err(|why| skipped(test, format!("no network namespaces: {why}"))).ok()?;
        net.wire("out", 7);
        net.relay.enter();
        Some(net)
    }

    /// Another wire: `name` 10.x.0.1/24 here, 10.x.0.2/24 there.
    fn wire(&self, name: &str, x: u8) {
        let (near, far) = (format!("10.{x}.0.1/24"), format!("10.{x}.0.2/24"));
        let there = format!("/proc/{}/fd/{}", std::process::id(), self.neighbour.0.as_raw_fd());
        self.relay.ip(&["link", "add", name, "type", "veth", "peer", name, "netns", &there]);
        self.relay.ip(&["addr", "add", &near, "dev", name]);
        self.neighbour.ip(&["addr", "add", &far, "dev", name]);
        self.relay.ip(&["link", "set", name, "up"]);
        self.neighbour.ip(&["link", "set", name, "up"]);
    }

    fn relay(&self, arguments: &[&str]) {
        self.relay.ip(arguments);
    }

    fn neighbour(&self, arguments: &[&str]) {
        self.neighbour.ip(arguments);
    }
}

/// Runs a program in the thread's namespace and returns what it printed.
fn try_run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|e| format!("{program}: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Makes the kernel ask for a neighbour, as the user path does.
fn send(to: IpAddr) {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).expect("bind");
    let _may_be_unreachable = socket.send_to(b"!", (to, 9));
}

fn addr(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// What is tested, with a clock that may go fast.
struct Relay {
    routes: Routes,
    start: Instant,
    speed: u32,
}

impl Relay {
    fn open() -> Relay {
        Relay { routes: Routes::open().expect("open"), start: Instant::now(), speed: 1 }
    }

    fn resolve(&mut self, to: IpAddr) -> Result<Hop, NoHop> {
        self.routes.resolve(to, None, None)
    }

    /// What is resolved for an address once it is as wanted, by events and refreshing alone.
    fn until(
        &mut self,
        to: IpAddr,
        what: &str,
        wanted: impl Fn(&Result<Hop, NoHop>) -> bool,
    ) -> Result<Hop, NoHop> {
        let start = Instant::now();
        let mut found = self.resolve(to);
        while !wanted(&found) {
            assert!(start.elapsed() < PATIENCE, "{to} was not {what} in time, but {found:?}");
            let mut ready = [PollFd::new(&self.routes, PollFlags::IN)];
            let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            poll(&mut ready, Some(&wait)).expect("poll");
            let mut concerned = self.routes.events().concern(to, None, None);
            let now = Time::ZERO + self.start.elapsed() * self.speed;
            concerned |= self.routes.refresh(now).concern(to, None, None);
            let before = core::mem::replace(&mut found, self.resolve(to));
            let same = format!("{before:?}") == format!("{found:?}");
            assert!(concerned || same, "{before:?} became {found:?}, and it was not told");
        }
        found
    }

    /// The hop once there is one.
    fn hop(&mut self, to: IpAddr) -> Hop {
        self.until(to, "resolved", Result::is_ok).expect("as waited for")
    }

    fn index(&self, device: &str) -> u32 {
        rustix::net::netdevice::name_to_index(&self.routes.events, device).expect("its index")
    }
}

#[test]
fn a_neighbour_is_known_after_a_send_and_its_new_address_after_an_event() {
    let Some(net) = Net::new("resolving a neighbour") else { return };
    let mut relay = Relay::open();
    let to = addr("10.7.0.2");
    let first = relay.resolve(to);
    assert!(matches!(first, Err(NoHop::Unresolved(ip)) if ip == to), "{first:?}");
    send(to);
    let hop = relay.hop(to);
    let expected = Hop {
        ifindex: relay.index("out"),
        source_mac: net.relay.mac("out"),
        target_mac: net.neighbour.mac("out"),
        source: addr("10.7.0.1"),
        mtu: 1500,
        xdp_transmit: false,
    };
    assert_eq!(hop, expected);

    net.neighbour(&["link", "set", "out", "address", "02:00:00:00:00:42"]);
    net.relay(&["neigh", "flush", "dev", "out"]);
    send(to);
    let moved =
        relay.until(to, "moved", |hop| hop.as_ref().is_ok_and(|hop| hop.target_mac == [2, 0, 0, 0, 0, 0x42]));
    assert_eq!(moved.expect("as waited for"), Hop { target_mac: [2, 0, 0, 0, 0, 0x42], ..expected });

    net.relay(&["link", "set", "out", "mtu", "1400"]);
    let smaller = relay.until(to, "smaller", |hop| hop.as_ref().is_ok_and(|hop| hop.mtu == 1400));
    assert!(smaller.is_ok());
}

#[test]
fn receivers_behind_a_gateway_are_reached_by_it_and_follow_their_route() {
    let Some(net) = Net::new("a route by a gateway") else { return };
    net.wire("other", 8);
    net.relay(&["route", "add", "10.9.0.0/16", "via", "10.7.0.2", "mtu", "1300"]);
    let mut relay = Relay::open();
    let to = addr("10.9.1.2");
    send(to);
    let hop = relay.hop(to);
    assert_eq!(hop.target_mac, net.neighbour.mac("out"));
    assert_eq!((hop.source, hop.mtu), (addr("10.7.0.1"), 1300));

    net.relay(&["route", "replace", "10.9.1.0/24", "via", "10.8.0.2"]);
    let unknown = relay.until(to, "moved", |hop| matches!(hop, Err(NoHop::Unresolved(_))));
    assert!(matches!(unknown, Err(NoHop::Unresolved(ip)) if ip == addr("10.8.0.2")));
    send(to);
    let hop = relay.hop(to);
    assert_eq!(hop.target_mac, net.neighbour.mac("other"));
    assert_eq!((hop.source, hop.mtu), (addr("10.8.0.1"), 1500));

    // Given a source and a device, the answer is the kernel's for these.
    let bound = relay.routes.resolve(addr("10.7.0.2"), Some(addr("10.8.0.1")), Some(hop.ifindex));
    assert!(matches!(bound, Err(NoHop::Unresolved(ip)) if ip == addr("10.7.0.2")), "{bound:?}");
    let foreign = relay.routes.resolve(to, Some(addr("10.99.0.1")), None);
    assert!(matches!(foreign, Err(NoHop::NoRoute(_))), "{foreign:?}");
}

#[test]
fn a_device_that_goes_down_and_up_is_left_and_used_again() {
    let Some(net) = Net::new("a device down and up") else { return };
    net.wire("spare", 8);
    net.relay(&["route", "add", "10.9.0.0/16", "via", "10.7.0.2"]);
    net.relay(&["route", "add", "10.9.0.0/16", "via", "10.8.0.2", "metric", "100"]);
    let mut relay = Relay::open();
    let to = addr("10.9.1.2");
    send(to);
    let main = relay.hop(to);

    // Without a carrier the route stays, and leads nowhere.
    net.neighbour(&["link", "set", "out", "down"]);
    let down = relay.until(to, "down", |hop| matches!(hop, Err(NoHop::Down(_))));
    assert!(matches!(down, Err(NoHop::Down(name)) if name == "out"));
    net.neighbour(&["link", "set", "out", "up"]);
    send(to);
    assert_eq!(relay.hop(to), main);

    // With the device its route goes.
    net.relay(&["link", "set", "out", "down"]);
    send(to);
    let spare = relay.until(to, "by the spare", |hop| {
        send(to);
        hop.as_ref().is_ok_and(|hop| hop.ifindex != main.ifindex)
    });
    assert_eq!(spare.expect("as waited for").target_mac, net.neighbour.mac("spare"));
    net.relay(&["link", "del", "spare"]);
    let gone = relay.until(to, "without a route", |hop| matches!(hop, Err(NoHop::NoRoute(_))));
    assert_eq!(
        gone.expect_err("as waited for").to_string(),
        "there is no route to it: Network is unreachable (os error 101)"
    );
    net.relay(&["link", "set", "out", "up"]);
    net.relay(&["route", "add", "10.9.0.0/16", "via", "10.7.0.2"]);
    relay
        .until(to, "back", |hop| {
            send(to);
            hop.as_ref().is_ok_and(|hop| *hop == main)
        })
        .expect("as waited for");
}

#[test]
fn a_route_changes_and_goes_with_its_next_hop_object() {
    let Some(net) = Net::new("a next hop object") else { return };
    net.wire("other", 8);
    if let Err(why) = try_run("ip", &["nexthop", "add", "id", "1", "via", "10.7.0.2", "dev", "out"]) {
        return skipped("a next hop object", &why);
    }
    net.relay(&["route", "add", "10.9.0.0/16", "nhid", "1"]);
    let mut relay = Relay::open();
    let to = addr("10.9.1.2");
    send(to);
    assert_eq!(relay.hop(to).ifindex, relay.index("out"));
    net.relay(&["nexthop", "replace", "id", "1", "via", "10.8.0.2", "dev", "other"]);
    let other = relay.index("other");
    let moved = relay.until(to, "moved", |hop| {
        send(to);
        hop.as_ref().is_ok_and(|hop| hop.ifindex == other)
    });
    assert_eq!(moved.expect("as waited for").source, addr("10.8.0.1"));
    net.relay(&["nexthop", "del", "id", "1"]);
    let gone = relay.until(to, "without a route", |hop| matches!(hop, Err(NoHop::NoRoute(_))));
    assert!(gone.is_err());
}

#[test]
fn an_ipv4_route_may_lead_by_an_ipv6_gateway() {
    let Some(net) = Net::new("a gateway of IPv6") else { return };
    if let Err(why) = try_run("ip", &["addr", "add", "fd00::1/64", "dev", "out", "nodad"]) {
        return skipped("a gateway of IPv6", &why);
    }
    net.neighbour(&["addr", "add", "fd00::2/64", "dev", "out", "nodad"]);
    net.relay(&["route", "add", "10.9.0.0/16", "via", "inet6", "fd00::2"]);
    let mut relay = Relay::open();
    let to = addr("10.9.1.2");
    let first = relay.resolve(to);
    assert!(matches!(first, Err(NoHop::Unresolved(IpAddr::V6(_)))), "{first:?}");
    send(to);
    assert_eq!(relay.hop(to).target_mac, net.neighbour.mac("out"));
}

#[test]
fn more_events_than_there_is_room_for_make_all_be_read_again() {
    let Some(net) = Net::new("lost events") else { return };
    let mut relay = Relay::open();
    let to = addr("10.7.0.2");
    send(to);
    relay.hop(to);
    let many: String =
        (0..20_000).map(|i| format!("route add 12.0.{}.{}/32 dev out\n", i / 256, i % 256)).collect();
    let mut batch = tempfile::NamedTempFile::new().expect("a file");
    batch.write_all(many.as_bytes()).expect("it takes them");
    net.relay(&["-batch", batch.path().to_str().expect("a plain name")]);
    net.relay(&["neigh", "replace", "10.7.0.2", "lladdr", "02:00:00:00:00:42", "dev", "out"]);
    let far = addr("192.0.2.1");
    assert!(relay.routes.events().concern(far, None, None), "events were lost, so it may be anybody");
    assert_eq!(relay.resolve(to).expect("it is known").target_mac, [2, 0, 0, 0, 0, 0x42]);
}

#[test]
fn an_address_that_goes_takes_its_routes_along() {
    let Some(net) = Net::new("an address removed") else { return };
    net.relay(&["addr", "add", "10.6.0.1/32", "dev", "out"]);
    net.relay(&["route", "add", "10.9.0.0/16", "via", "10.7.0.2", "src", "10.6.0.1"]);
    let mut relay = Relay::open();
    let to = addr("10.9.1.2");
    send(to);
    assert_eq!(relay.hop(to).source, addr("10.6.0.1"));
    net.relay(&["addr", "del", "10.6.0.1/32", "dev", "out"]);
    relay
        .until(to, "without a route", |hop| matches!(hop, Err(NoHop::NoRoute(_))))
        .expect_err("as waited for");
}

#[test]
fn what_is_not_reached_by_ethernet_says_so() {
    let Some(net) = Net::new("receivers without a hop") else { return };
    net.relay(&["route", "add", "blackhole", "10.20.0.0/16"]);
    net.relay(&["route", "add", "unreachable", "10.21.0.0/16"]);
    net.relay(&["route", "add", "prohibit", "10.22.0.0/16"]);
    net.relay(&["tuntap", "add", "tunnel", "mode", "tun"]);
    net.relay(&["addr", "add", "10.23.0.1/24", "dev", "tunnel"]);
    net.relay(&["link", "set", "tunnel", "up"]);
    let mut relay = Relay::open();
    let mut text = |to: &str| {
        let error = relay.resolve(addr(to)).expect_err(to);
        format!("{error}")
    };
    assert_eq!(text("10.20.0.1"), "there is no route to it: Invalid argument (os error 22)");
    assert_eq!(text("10.21.0.1"), "there is no route to it: No route to host (os error 113)");
    assert_eq!(text("10.22.0.1"), "there is no route to it: Permission denied (os error 13)");
    assert_eq!(text("10.24.0.1"), "there is no route to it: Network is unreachable (os error 101)");
    assert_eq!(text("10.23.0.2"), "the device tunnel is not an Ethernet one");
    for own in ["127.0.0.1", "127.1.2.3", "10.7.0.1"] {
        assert_eq!(text(own), "its address is one of this machine");
    }
    for all in ["255.255.255.255", "10.7.0.255"] {
        assert_eq!(text(all), "its address is a broadcast one");
    }
}

#[test]
fn a_vlan_is_a_device_like_any_other() {
    let Some(net) = Net::new("a VLAN") else { return };
    let vlan = ["link", "add", "link", "out", "name", "upper", "type", "vlan", "id", "5"];
    if let Err(why) = try_run("ip", &vlan) {
        return skipped("a VLAN", &why);
    }
    net.neighbour(&vlan);
    reached_by_upper_device(&net);
}

#[test]
fn a_bridge_is_a_device_like_any_other() {
    let Some(net) = Net::new("a bridge") else { return };
    let bridge = ["link", "add", "name", "upper", "type", "bridge"];
    if let Err(why) = try_run("ip", &bridge) {
        return skipped("a bridge", &why);
    }
    net.neighbour(&bridge);
    for enslave in [Net::relay, Net::neighbour] {
        enslave(&net, &["link", "set", "out", "master", "upper"]);
    }
    reached_by_upper_device(&net);
}

/// Gives the device `upper` at both ends addresses, and sees that it is what packets leave by.
fn reached_by_upper_device(net: &Net) {
    net.relay(&["link", "set", "upper", "address", "02:00:00:00:05:01", "up"]);
    net.relay(&["addr", "add", "10.5.0.1/24", "dev", "upper"]);
    net.neighbour(&["link", "set", "upper", "address", "02:00:00:00:05:02", "up"]);
    net.neighbour(&["addr", "add", "10.5.0.2/24", "dev", "upper"]);
    let mut relay = Relay::open();
    let to = addr("10.5.0.2");
    send(to);
    let hop = relay.hop(to);
    assert_eq!((hop.source_mac, hop.target_mac), ([2, 0, 0, 0, 5, 1], [2, 0, 0, 0, 5, 2]));
    assert_eq!((hop.ifindex, hop.source), (relay.index("upper"), addr("10.5.0.1")));
}

#[test]
fn whether_a_device_transmits_xdp_frames_is_told_and_changes_are() {
    let Some(net) = Net::new("XDP transmission") else { return };
    let mut relay = Relay::open();
    if relay.routes.netdev.is_none() {
        return skipped("XDP transmission", "this kernel has no netdev family");
    }
    let to = addr("10.7.0.2");
    send(to);
    assert!(!relay.hop(to).xdp_transmit);
    let gro = |state| net.neighbour.run(|| try_run("ethtool", &["-K", "out", "gro", state]));
    if let Err(why) = gro("on") {
        return skipped("XDP transmission", &why);
    }
    for (state, transmits) in [("on", true), ("off", false), ("on", true)] {
        gro(state).expect("it worked before");
        let hop = relay.until(to, state, |hop| hop.as_ref().is_ok_and(|hop| hop.xdp_transmit == transmits));
        assert!(hop.is_ok());
    }
}

#[test]
fn a_neighbour_in_use_is_kept_fresh_and_found_out_when_it_is_gone() {
    let Some(net) = Net::new("refreshing neighbours") else { return };
    // Doubt it soon, and ask quickly.
    let parameters = [
        ("base_reachable_time_ms", "1000"),
        ("delay_first_probe_time", "0"),
        ("retrans_time_ms", "100"),
        ("ucast_solicit", "2"),
    ];
    for (name, value) in parameters {
        std::fs::write(format!("/proc/sys/net/ipv4/neigh/out/{name}"), value).expect("a parameter");
    }
    let mut relay = Relay::open();
    relay.speed = 30;
    let to = addr("10.7.0.2");
    send(to);
    let hop = relay.hop(to);
    let wait_for = |wanted: &str| {
        let start = Instant::now();
        loop {
            let line = net.relay.ip(&["neigh", "show", "10.7.0.2"]);
            let state = line.split_whitespace().last().unwrap_or_default().to_owned();
            if state == wanted {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "it is {state}, not {wanted}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    // It stays in doubt unless it is used.
    wait_for("STALE");
    std::thread::sleep(Duration::from_millis(500));
    wait_for("STALE");
    let idle = relay.routes.events();
    assert!(idle.is_empty(), "doubt alone changes nothing: {idle:?}");
    let fresh = relay.routes.refresh(Time::ZERO + Duration::from_secs(3600));
    assert!(fresh.is_empty(), "nothing is different: {fresh:?}");
    wait_for("REACHABLE");
    let confirmed = relay.routes.events();
    assert!(confirmed.is_empty(), "nor does its confirmation: {confirmed:?}");
    assert_eq!(relay.resolve(to).expect("it is known"), hop);

    let mut relay = Relay { speed: 30, ..Relay::open() };
    net.neighbour(&["addr", "flush", "dev", "out"]);
    let gone = relay.until(to, "gone", |hop| matches!(hop, Err(NoHop::Unreachable(_))));
    assert_eq!(gone.expect_err("as waited for").to_string(), "10.7.0.2 does not answer on its link");
    net.neighbour(&["addr", "add", "10.7.0.2/24", "dev", "out"]);
    send(to);
    assert_eq!(relay.hop(to), hop, "the user path brings it back");
}
