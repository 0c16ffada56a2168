//! Against the kernel, in namespaces that each test makes and removes.

use std::fs::File;
use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};

use super::*;

/// Long enough for the kernel on a busy machine; tests wait this long only when they fail.
const PATIENCE: Duration = Duration::from_secs(10);

/// A relay's namespace with its one wire to a neighbour's: `out` 10.7.0.1/24 here, 10.7.0.2/24
/// there. The test's thread is in the relay's.
struct Net {
    relay: String,
    neighbour: String,
}

impl Net {
    /// Says why if namespaces cannot be made here.
    fn new(test: &str) -> Option<Net> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: {test} (network namespaces need root)");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = |role: &str| format!("ofroutes-{}-{number}-{role}", std::process::id());
        let net = Net { relay: name("relay"), neighbour: name("neighbour") };
        if let Err(why) = try_ip(&["netns", "add", &net.relay]) {
            eprintln!("SKIPPED: {test} (`ip netns` does not work: {why})");
            return None;
        }
        ip(&["netns", "add", &net.neighbour]);
        let file = File::open(format!("/run/netns/{}", net.relay)).expect("the namespace has a name");
        nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).expect("root may enter it");
        net.wire("out", 7);
        net.relay(&["link", "set", "lo", "up"]);
        Some(net)
    }

    /// Another wire: `name` 10.x.0.1/24 here, 10.x.0.2/24 there.
    fn wire(&self, name: &str, x: u8) {
        let (near, far) = (format!("10.{x}.0.1/24"), format!("10.{x}.0.2/24"));
        self.relay(&["link", "add", name, "type", "veth", "peer", name, "netns", &self.neighbour]);
        self.relay(&["addr", "add", &near, "dev", name]);
        self.neighbour(&["addr", "add", &far, "dev", name]);
        self.relay(&["link", "set", name, "up"]);
        self.neighbour(&["link", "set", name, "up"]);
    }

    fn relay(&self, arguments: &[&str]) {
        ip(&[&["-n", &self.relay], arguments].concat());
    }

    fn neighbour(&self, arguments: &[&str]) {
        ip(&[&["-n", &self.neighbour], arguments].concat());
    }

    /// The MAC address of a device.
    fn mac(&self, namespace: &str, device: &str) -> hop::Mac {
        let text = try_ip(&["-n", namespace, "-br", "link", "show", device]).expect("it is there");
        let mac = text.split_whitespace().nth(2).expect("the third column");
        let bytes: Vec<u8> =
            mac.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("a number")).collect();
        bytes.try_into().expect("six of them")
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in [&self.relay, &self.neighbour] {
            let _never_made = try_ip(&["netns", "delete", name]);
        }
    }
}

fn try_ip(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn ip(arguments: &[&str]) -> String {
    try_ip(arguments).unwrap_or_else(|error| panic!("ip {}: {error}", arguments.join(" ")))
}

/// Makes the kernel ask for a neighbour, as the user path does.
fn send(to: Ipv4Addr) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("bind");
    let _may_be_unreachable = socket.send_to(b"!", (to, 9));
}

fn addr(text: &str) -> Ipv4Addr {
    text.parse().expect("an address")
}

/// What is resolved for an address once it is as wanted, by events and refreshing.
fn until(
    routes: &mut Routes,
    to: Ipv4Addr,
    what: &str,
    wanted: impl Fn(&Result<Hop, NoHop>) -> bool,
) -> Result<Hop, NoHop> {
    let start = Instant::now();
    let mut found = routes.resolve(to, None, None);
    while !wanted(&found) {
        assert!(start.elapsed() < PATIENCE, "{to} was not {what} in time, but {found:?}");
        let mut ready = [PollFd::new(&*routes, PollFlags::IN)];
        let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        poll(&mut ready, Some(&wait)).expect("poll");
        let mut concerned = routes.events().concern(to, None, None);
        concerned |= routes.refresh(Time::ZERO + start.elapsed()).concern(to, None, None);
        let before = core::mem::replace(&mut found, routes.resolve(to, None, None));
        let same = format!("{before:?}") == format!("{found:?}");
        assert!(concerned || same, "{before:?} became {found:?}, and nobody was told");
    }
    found
}

fn resolved(routes: &mut Routes, to: Ipv4Addr) -> Hop {
    until(routes, to, "resolved", Result::is_ok).expect("as waited for")
}

#[test]
fn a_neighbour_is_known_after_a_send_and_its_new_address_after_an_event() {
    let Some(net) = Net::new("resolving a neighbour") else { return };
    let mut routes = Routes::open().expect("open");
    let to = addr("10.7.0.2");
    let first = routes.resolve(to, None, None);
    assert!(matches!(first, Err(NoHop::Unresolved(IpAddr::V4(ip))) if ip == to), "{first:?}");
    send(to);
    let hop = resolved(&mut routes, to);
    let ifindex = rustix::net::netdevice::name_to_index(&routes.events, "out").expect("its index");
    let expected = Hop {
        ifindex,
        source_mac: net.mac(&net.relay, "out"),
        target_mac: net.mac(&net.neighbour, "out"),
        source: addr("10.7.0.1"),
        mtu: 1500,
        xdp_transmit: false,
    };
    assert_eq!(hop, expected);

    net.neighbour(&["link", "set", "out", "address", "02:00:00:00:00:42"]);
    net.relay(&["neigh", "flush", "dev", "out"]);
    send(to);
    let moved = until(&mut routes, to, "moved", |hop| {
        hop.as_ref().is_ok_and(|hop| hop.target_mac == [2, 0, 0, 0, 0, 0x42])
    });
    assert_eq!(moved.expect("as waited for"), Hop { target_mac: [2, 0, 0, 0, 0, 0x42], ..expected });

    net.relay(&["link", "set", "out", "mtu", "1400"]);
    let smaller = until(&mut routes, to, "smaller", |hop| hop.as_ref().is_ok_and(|hop| hop.mtu == 1400));
    assert!(smaller.is_ok());
}

#[test]
fn receivers_behind_a_gateway_are_reached_by_it_and_follow_their_route() {
    let Some(net) = Net::new("a route by a gateway") else { return };
    net.wire("other", 8);
    net.relay(&["route", "add", "10.9.0.0/16", "via", "10.7.0.2", "mtu", "1300"]);
    let mut routes = Routes::open().expect("open");
    let to = addr("10.9.1.2");
    send(to);
    let hop = resolved(&mut routes, to);
    assert_eq!(hop.target_mac, net.mac(&net.neighbour, "out"));
    assert_eq!((hop.source, hop.mtu), (addr("10.7.0.1"), 1300));

    net.relay(&["route", "replace", "10.9.1.0/24", "via", "10.8.0.2"]);
    let unknown = until(&mut routes, to, "moved", |hop| matches!(hop, Err(NoHop::Unresolved(_))));
    assert!(matches!(unknown, Err(NoHop::Unresolved(IpAddr::V4(ip))) if ip == addr("10.8.0.2")));
    send(to);
    let hop = resolved(&mut routes, to);
    assert_eq!(hop.target_mac, net.mac(&net.neighbour, "other"));
    assert_eq!((hop.source, hop.mtu), (addr("10.8.0.1"), 1500));

    // Given a source and a device, the answer is the kernel's for these.
    let bound = routes.resolve(addr("10.7.0.2"), Some(addr("10.8.0.1")), Some(hop.ifindex));
    assert!(matches!(bound, Err(NoHop::Unresolved(IpAddr::V4(ip))) if ip == addr("10.7.0.2")), "{bound:?}");
    let foreign = routes.resolve(to, Some(addr("10.99.0.1")), None);
    assert!(matches!(foreign, Err(NoHop::NoRoute(_))), "{foreign:?}");
}

#[test]
fn a_device_that_goes_down_and_up_is_left_and_used_again() {
    let Some(net) = Net::new("a device down and up") else { return };
    net.wire("spare", 8);
    net.relay(&["route", "add", "10.9.0.0/16", "via", "10.7.0.2"]);
    net.relay(&["route", "add", "10.9.0.0/16", "via", "10.8.0.2", "metric", "100"]);
    let mut routes = Routes::open().expect("open");
    let to = addr("10.9.1.2");
    send(to);
    let main = resolved(&mut routes, to);

    // Without a carrier the route stays, and leads nowhere.
    net.neighbour(&["link", "set", "out", "down"]);
    let down = until(&mut routes, to, "down", |hop| matches!(hop, Err(NoHop::Down(_))));
    assert!(matches!(down, Err(NoHop::Down(name)) if name == "out"));
    net.neighbour(&["link", "set", "out", "up"]);
    send(to);
    assert_eq!(resolved(&mut routes, to), main);

    // With the device its route goes.
    net.relay(&["link", "set", "out", "down"]);
    send(to);
    let spare = until(&mut routes, to, "by the spare", |hop| {
        send(to);
        hop.as_ref().is_ok_and(|hop| hop.ifindex != main.ifindex)
    });
    assert_eq!(spare.expect("as waited for").target_mac, net.mac(&net.neighbour, "spare"));
    net.relay(&["link", "del", "spare"]);
    let gone = until(&mut routes, to, "without a route", |hop| matches!(hop, Err(NoHop::NoRoute(_))));
    assert_eq!(
        gone.expect_err("as waited for").to_string(),
        "there is no route to it: Network is unreachable (os error 101)"
    );
    net.relay(&["link", "set", "out", "up"]);
    net.relay(&["route", "add", "10.9.0.0/16", "via", "10.7.0.2"]);
    until(&mut routes, to, "back", |hop| {
        send(to);
        hop.as_ref().is_ok_and(|hop| *hop == main)
    })
    .expect("as waited for");
}

#[test]
fn an_address_that_goes_takes_its_routes_along() {
    let Some(net) = Net::new("an address removed") else { return };
    net.relay(&["addr", "add", "10.6.0.1/32", "dev", "out"]);
    net.relay(&["route", "add", "10.9.0.0/16", "via", "10.7.0.2", "src", "10.6.0.1"]);
    let mut routes = Routes::open().expect("open");
    let to = addr("10.9.1.2");
    send(to);
    assert_eq!(resolved(&mut routes, to).source, addr("10.6.0.1"));
    net.relay(&["addr", "del", "10.6.0.1/32", "dev", "out"]);
    until(&mut routes, to, "without a route", |hop| matches!(hop, Err(NoHop::NoRoute(_))))
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
    let mut routes = Routes::open().expect("open");
    let mut text = |to: &str| {
        let error = routes.resolve(addr(to), None, None).expect_err(to);
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
    for group in ["239.1.2.3", "255.255.255.255", "10.7.0.255"] {
        assert_eq!(text(group), "its address is a multicast or broadcast one");
    }
}

#[test]
fn a_vlan_is_a_device_like_any_other() {
    let Some(net) = Net::new("a VLAN") else { return };
    net.relay(&["link", "add", "link", "out", "name", "out.5", "type", "vlan", "id", "5"]);
    net.relay(&["link", "set", "out.5", "address", "02:00:00:00:05:01", "up"]);
    net.relay(&["addr", "add", "10.5.0.1/24", "dev", "out.5"]);
    net.neighbour(&["link", "add", "link", "out", "name", "in.5", "type", "vlan", "id", "5"]);
    net.neighbour(&["link", "set", "in.5", "address", "02:00:00:00:05:02", "up"]);
    net.neighbour(&["addr", "add", "10.5.0.2/24", "dev", "in.5"]);
    let mut routes = Routes::open().expect("open");
    let to = addr("10.5.0.2");
    send(to);
    let hop = resolved(&mut routes, to);
    assert_eq!((hop.source_mac[5], hop.target_mac[5]), (1, 2));
    assert_eq!(hop.ifindex, rustix::net::netdevice::name_to_index(&routes.events, "out.5").expect("index"));
}

#[test]
fn whether_a_device_transmits_xdp_frames_is_told_and_changes_are() {
    let Some(net) = Net::new("XDP transmission") else { return };
    let mut routes = Routes::open().expect("open");
    if routes.netdev.is_none() {
        eprintln!("SKIPPED: XDP transmission (this kernel has no netdev family)");
        return;
    }
    let to = addr("10.7.0.2");
    send(to);
    assert!(!resolved(&mut routes, to).xdp_transmit);
    let gro = |state| {
        let line = ["netns", "exec", &net.neighbour, "ethtool", "-K", "out", "gro", state];
        try_ip(&line)
    };
    if let Err(why) = gro("on") {
        eprintln!("SKIPPED: XDP transmission (ethtool: {why})");
        return;
    }
    for (state, transmits) in [("on", true), ("off", false), ("on", true)] {
        gro(state).expect("it worked before");
        let hop = until(&mut routes, to, state, |hop| {
            hop.as_ref().is_ok_and(|hop| hop.xdp_transmit == transmits)
        });
        assert!(hop.is_ok());
    }
}

#[test]
fn a_neighbour_in_use_is_kept_fresh_and_found_out_when_it_is_gone() {
    let Some(net) = Net::new("refreshing neighbours") else { return };
    // Doubt it soon, and ask quickly.
    let parameters = [
        ("base_reachable_time_ms", "500"),
        ("delay_first_probe_time", "1"),
        ("retrans_time_ms", "100"),
        ("ucast_solicit", "2"),
    ];
    for (name, value) in parameters {
        std::fs::write(format!("/proc/sys/net/ipv4/neigh/out/{name}"), value).expect("a parameter");
    }
    let mut routes = Routes::open().expect("open");
    let to = addr("10.7.0.2");
    send(to);
    let hop = resolved(&mut routes, to);
    let state = || {
        let line = ip(&["-n", &net.relay, "neigh", "show", "10.7.0.2"]);
        line.split_whitespace().last().unwrap_or_default().to_owned()
    };
    // It becomes STALE, and stays so unless somebody uses it.
    let start = Instant::now();
    while state() != "STALE" {
        assert!(start.elapsed() < PATIENCE, "it is {}", state());
        std::thread::sleep(Duration::from_millis(50));
    }
    let idle = routes.events();
    assert!(idle.is_empty(), "doubt alone changes nothing: {idle:?}");
    let fresh = routes.refresh(Time::from_millis(1));
    assert!(fresh.is_empty());
    while state() != "REACHABLE" {
        assert!(start.elapsed() < PATIENCE, "it is {}", state());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(routes.events().is_empty(), "nor does its confirmation");
    assert_eq!(resolved(&mut routes, to), hop);

    net.neighbour(&["addr", "flush", "dev", "out"]);
    let mut now = Time::from_millis(1);
    until(&mut routes, to, "gone", |hop| matches!(hop, Err(NoHop::Unreachable(_)))).expect_err("it is gone");
    now = now + Duration::from_secs(60);
    net.neighbour(&["addr", "add", "10.7.0.2/24", "dev", "out"]);
    let _nothing = routes.refresh(now);
    send(to);
    assert_eq!(resolved(&mut routes, to), hop, "the user path brings it back");
}
