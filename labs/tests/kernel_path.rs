//! The kernel's fan-out when things go wrong around it: an affected receiver is served by system calls or
//! loses packets with a reason, and no other notices.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use outflow_labs::media::{Marker, Shape, Synthetic};
use outflow_labs::net::{Namespace, PLAYER, PLAYER_V6, Paths, RELAY_IN, SOURCE};
use outflow_labs::process::Program;
use outflow_labs::relay::{Relay, listen};
use outflow_labs::scene::{PATIENCE, scene, wait_for};
use serde_json::{Value, json};

const PORT: u16 = 5000;
/// A host that is not there.
const NOWHERE: Ipv4Addr = Ipv4Addr::new(10, 66, 2, 77);
/// A host behind others.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);

/// A relay with sinks, by the classifier; and a source that is sent by hand.
struct Bench<'n> {
    relay: Relay<'n>,
    source: UdpSocket,
    stream: Synthetic,
    /// Number of the next datagram.
    next: u32,
}

impl<'n> Bench<'n> {
    fn new(paths: &'n Paths, sinks: &[SocketAddr]) -> Result<Self> {
        Self::by("tc", paths, sinks)
    }

    fn by(way: &str, paths: &'n Paths, sinks: &[SocketAddr]) -> Result<Self> {
        let configuration = format!(
            "{}[fanout]\nudp = \"{way}\"\n[limits]\nworkers = 1\n\
             [streams.live]\nsource = \"udp://0.0.0.0:{PORT}\"\nsource_timeout = \"60 s\"\n",
            listen()
        );
        let relay = Relay::start(&paths.relay, &configuration)?;
        for to in sinks {
            let wish = json!({ "to": format!("udp://{to}"), "name": to.to_string() });
            relay.post("/api/v1/streams/live/sinks", &wish)?;
        }
        let source = paths.source.run(|| UdpSocket::bind((SOURCE, 0)))?;
        source.connect((RELAY_IN, PORT))?;
        Ok(Bench { relay, source, stream: Synthetic::new(Shape::of_rate(1_000_000)), next: 0 })
    }

    /// Sends for so long, a datagram each 5 ms.
    fn send(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.source.send(self.stream.next_datagram(0))?;
            self.next += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Sends until what the API shows of a sink is as expected.
    fn send_until(&mut self, to: SocketAddr, what: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
        wait_for(what, || {
            self.send(Duration::from_millis(200))?;
            Ok(is(&self.shown(to)?))
        })
        .with_context(|| format!("{to} is shown as {:?}", self.shown(to)))
    }

    /// Numbers of the datagrams that have come, when the newest that was sent is among them.
    fn all_come(&self, socket: &UdpSocket) -> Result<Vec<u32>> {
        let mut numbers = Vec::new();
        wait_for("the newest datagram comes", || {
            numbers.extend(come(socket));
            Ok(numbers.contains(&(self.next - 1)))
        })?;
        Ok(numbers)
    }

    fn shown(&self, to: SocketAddr) -> Result<Value> {
        let state = self.relay.stream("live")?;
        let receivers = state["receivers"].as_array().context("no receivers are shown")?;
        let found = receivers.iter().find(|receiver| receiver["to"] == to.to_string());
        // What is shown is up to half a second old.
        Ok(found.cloned().unwrap_or_default())
    }
}

fn by_tc(receiver: &Value) -> bool {
    receiver["path"] == "tc"
}

fn by_user(receiver: &Value) -> bool {
    receiver["path"] == "user" && receiver["path_because"].is_string()
}

/// Numbers of the datagrams that have come.
fn come(socket: &UdpSocket) -> Vec<u32> {
    let mut bytes = [0; 2048];
    let mut numbers = Vec::new();
    while let Ok(length) = socket.recv(&mut bytes) {
        numbers.extend(Marker::find(&bytes[..length]).map(|marker| marker.datagram));
    }
    numbers
}

fn listening(namespace: &Namespace, at: impl Into<SocketAddr>) -> Result<UdpSocket> {
    let at = at.into();
    let socket = namespace.run(|| UdpSocket::bind(at))?;
    setsockopt(&socket, sockopt::RcvBufForce, &(16 << 20))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Between the first and the last nothing is missing, nothing comes twice, and nothing changes places.
fn gapless(numbers: &[u32]) -> bool {
    !numbers.is_empty() && numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1))
}

#[test]
fn what_is_missing_comes_twice_or_late_is_a_gap() {
    assert!(gapless(&[7]) && gapless(&[7, 8, 9]) && gapless(&[u32::MAX, 0]));
    for numbers in [&[][..], &[7, 9], &[7, 7, 8], &[7, 9, 8], &[8, 7]] {
        assert!(!gapless(numbers), "{numbers:?}");
    }
}

#[test]
fn a_neighbour_that_does_not_answer_concerns_no_other() -> Result<()> {
    let Some(paths) = scene("a neighbour that does not answer", &[])? else { return Ok(()) };
    let (here, nowhere) = (SocketAddr::from((PLAYER, 6000)), SocketAddr::from((NOWHERE, 6000)));
    let socket = listening(&paths.players, (PLAYER, 6000))?;
    let mut bench = Bench::new(&paths, &[nowhere, here])?;
    bench.send_until(here, "the one that is there is reached by the kernel", by_tc)?;
    bench.send_until(nowhere, "the other one is not", by_user)?;
    bench.send(Duration::from_secs(1))?;
    let numbers = bench.all_come(&socket)?;
    ensure!(gapless(&numbers), "the one that is there does not get every packet once, in order: {numbers:?}");
    Ok(())
}

#[test]
fn a_device_that_goes_down_and_up() -> Result<()> {
    let Some(paths) = scene("a device that goes down and up", &[])? else { return Ok(()) };
    let here = SocketAddr::from((PLAYER, 6000));
    let socket = listening(&paths.players, (PLAYER, 6000))?;
    let mut bench = Bench::new(&paths, &[here])?;
    bench.send_until(here, "the kernel reaches it", by_tc)?;
    let before = bench.all_come(&socket)?;
    ensure!(gapless(&before), "something is wrong before anything happened: {before:?}");
    paths.relay.ip(&["link", "set", "out0", "down"])?;
    bench.send_until(here, "while the device is down, the relay tries by itself", by_user)?;
    let lost = bench.shown(here)?["drops"].clone();
    ensure!(lost["unreachable"].as_u64() > Some(0), "what was lost is not counted: {lost}");
    // The permanent entry went with the device: the kernel asks for the address now.
    paths.relay.ip(&["link", "set", "out0", "up"])?;
    bench.send_until(here, "the kernel reaches it again", by_tc)?;
    come(&socket);
    bench.send(Duration::from_millis(500))?;
    let after = bench.all_come(&socket)?;
    ensure!(after.len() > 50 && gapless(&after), "it does not get everything again: {after:?}");
    Ok(())
}

#[test]
fn a_route_that_changes_is_followed() -> Result<()> {
    let Some(paths) = scene("a route that changes", &[])? else { return Ok(()) };
    for namespace in [&paths.players, &paths.source] {
        namespace.ip(&["link", "set", "lo", "up"])?;
        namespace.ip(&["address", "add", &format!("{FAR}/32"), "dev", "lo"])?;
    }
    let far = SocketAddr::from((FAR, 6000));
    let sockets = [listening(&paths.players, (FAR, 6000))?, listening(&paths.source, (FAR, 6000))?];
    let route =
        |via: Ipv4Addr| paths.relay.ip(&["route", "replace", &format!("{FAR}/32"), "via", &via.to_string()]);
    route(PLAYER)?;
    let mut bench = Bench::new(&paths, &[far])?;
    bench.send_until(far, "the kernel reaches it", by_tc)?;
    bench.send(Duration::from_millis(500))?;
    route(SOURCE)?;
    bench.send(Duration::from_secs(1))?;
    let here = bench.all_come(&sockets[1])?;
    let there = come(&sockets[0]);
    ensure!(!there.is_empty() && here.len() > 100, "{} and {}", there.len(), here.len());
    let both = [there, here].concat();
    ensure!(gapless(&both), "not every packet came once, in order, where the route changed: {both:?}");
    ensure!(by_tc(&bench.shown(far)?), "it is not the kernel that sends: {}", bench.shown(far)?);
    Ok(())
}

/// The neighbour is one that the kernel has to ask for (NDP), and the relay has to be told.
#[test]
fn receivers_by_ipv6_are_reached_by_the_kernel_beside_those_by_ipv4() -> Result<()> {
    for way in ["tc", "xdp"] {
        let Some(paths) = scene("receivers by IPv6", &[])? else { return Ok(()) };
        let paths = paths.with_ipv6()?;
        paths.relay.ip(&["-6", "neigh", "del", &PLAYER_V6.to_string(), "dev", "out0"])?;
        let gro = Program::words("ethtool -K eth0 gro on").within(&paths.players);
        gro.finish(PATIENCE)?;
        let sinks: [SocketAddr; 3] =
            [(PLAYER_V6, 6000).into(), (PLAYER, 6000).into(), (PLAYER_V6, 6010).into()];
        let sockets = sinks.map(|at| listening(&paths.players, at));
        let mut bench = Bench::by(way, &paths, &sinks)?;
        for to in sinks {
            bench.send_until(to, "the kernel reaches it", |shown| shown["path"] == way)?;
            let because = bench.shown(to)?["path_because"].clone();
            ensure!(because.is_null(), "{to}: by {way}, and yet because of {because}");
        }
        bench.send(Duration::from_secs(1))?;
        for (to, socket) in sinks.iter().zip(sockets) {
            let numbers = bench.all_come(&socket?)?;
            ensure!(
                numbers.len() > 100 && gapless(&numbers),
                "{to} does not get every packet once, in order, by {way}: {numbers:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_receiver_by_ipv6_that_the_kernel_cannot_reach_says_why_and_concerns_no_other() -> Result<()> {
    let Some(paths) = scene("receivers by IPv6 that are not reached", &[])? else { return Ok(()) };
    let paths = paths.with_ipv6()?;
    let nowhere = Ipv6Addr::new(0xfd66, 0, 0, 2, 0, 0, 0, 0x77);
    let [here, nowhere, own]: [SocketAddr; 3] =
        [(PLAYER_V6, 6000).into(), (nowhere, 6000).into(), (Ipv6Addr::LOCALHOST, 6000).into()];
    let socket = listening(&paths.players, here)?;
    let _own = listening(&paths.relay, own)?;
    let mut bench = Bench::new(&paths, &[nowhere, here, own])?;
    bench.send_until(here, "the one that is there is reached by the kernel", by_tc)?;
    let because = |why: &'static str| move |shown: &Value| by_user(shown) && shown["path_because"] == why;
    bench.send_until(nowhere, "it does not answer", because("the next hop does not answer"))?;
    bench.send_until(own, "it is here", because("it is on this machine"))?;
    bench.send(Duration::from_secs(1))?;
    let numbers = bench.all_come(&socket)?;
    ensure!(gapless(&numbers), "the one that is there does not get every packet once, in order: {numbers:?}");
    Ok(())
}

#[test]
fn workers_have_no_privileges_left_and_neighbours_are_kept_fresh() -> Result<()> {
    let Some(paths) = scene("what a worker may do", &[])? else { return Ok(()) };
    let here = SocketAddr::from((PLAYER, 6000));
    let _socket = listening(&paths.players, (PLAYER, 6000))?;
    let mut bench = Bench::new(&paths, &[here])?;
    bench.send_until(here, "the kernel reaches it", by_tc)?;
    let mut workers = 0;
    for thread in std::fs::read_dir(format!("/proc/{}/task", bench.relay.process().pid()))? {
        let status = std::fs::read_to_string(thread?.path().join("status"))?;
        let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        if line("Name:").is_some_and(|name| name.starts_with("worker-")) {
            ensure!(
                line("CapPrm:") == Some("0000000000000000") && line("NoNewPrivs:") == Some("1"),
                "{status}"
            );
            workers += 1;
        }
    }
    ensure!(workers == 1, "there are {workers} workers");
    // The kernel believes the entry for good: now it doubts it. What it sends for the relay does not change that.
    paths.relay.ip(&["neigh", "change", &PLAYER.to_string(), "dev", "out0", "nud", "stale"])?;
    wait_for("the helper has the kernel make sure of the neighbour", || {
        bench.send(Duration::from_millis(200))?;
        let shown = Program::words(&format!("ip neigh show {PLAYER} dev out0")).within(&paths.relay);
        Ok(shown.finish(PATIENCE)?.stdout.contains("REACHABLE"))
    })?;
    ensure!(by_tc(&bench.shown(here)?), "the kernel reaches it no more");
    Ok(())
}
