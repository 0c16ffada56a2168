//! Beside mrouted: a neighbour above, and one below. It runs with `MROUTED=program`, or one on the PATH.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use outflow_skip::skipped;

use outflow_multicast::Flow;

use crate::dvmrp::{Ends, came_in, has};
use crate::hosts::{GROUP, PORT, member, sent_until_received};
use crate::net::{Namespace, Program, is_skipped, link};
use crate::relay::{PATIENCE, Relay};
use crate::thinned::{LAYERS, Layered, come, is_without_gap, level};

fn program() -> Option<PathBuf> {
    if let Some(said) = std::env::var_os("MROUTED") {
        return Some(said.into());
    }
    outflow_skip::program("mrouted")
}

fn found(test: &str) -> Option<PathBuf> {
    if is_skipped(test) {
        return None;
    }
    let program = program();
    if program.is_none() {
        skipped(test, "there is no mrouted: build 4.6 of it, and name the program with MROUTED=");
    }
    program
}

/// mrouted in a namespace, with files of its own.
struct Mrouted {
    program: PathBuf,
    files: [PathBuf; 3],
    _running: Program,
}

impl Mrouted {
    fn start(program: &Path, namespace: &Namespace) -> Self {
        let file = |end: &str| std::env::temp_dir().join(format!("{}.{end}", namespace.name));
        let files = ["conf", "pid", "sock"].map(file);
        std::fs::write(&files[0], "").expect("a file");
        let [settings, pid, socket] = files.each_ref().map(|path| path.to_str().expect("a plain name"));
        let name = program.to_str().expect("a plain name");
        let arguments = ["-n", "-f", settings, "-i", &namespace.name, "-p", pid, "-u", socket];
        let running = namespace.program(name, &arguments);
        Mrouted { program: program.to_owned(), files, _running: running }
    }

    /// What it says of itself.
    fn shows(&self, what: &str) -> String {
        let tool = self.program.with_file_name("mroutectl");
        let output =
            Command::new(tool).arg("-pt").arg("-u").arg(&self.files[2]).args(["show", what]).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }

    fn wait(&self, what: &str, text: &str) {
        let end = Instant::now() + 3 * PATIENCE;
        while !self.shows(what).contains(text) {
            assert!(Instant::now() < end, "{text} is not in: {}", self.shows(what));
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Mrouted {
    fn drop(&mut self) {
        for file in &self.files {
            let _left = std::fs::remove_file(file);
        }
    }
}

/// ```text
/// source         top          bottom       host
///   eth0 ──── in0 mid ──── wan   lan ──── eth0
/// ```
struct Chain {
    source: Namespace,
    top: Namespace,
    bottom: Namespace,
    host: Namespace,
}

impl Chain {
    fn new() -> Self {
        let [source, top, bottom, host] = ["source", "top", "bottom", "host"].map(Namespace::new);
        link(&source, ("eth0", "10.1.0.2"), &top, ("in0", "10.1.0.1"));
        link(&top, ("mid", "10.2.0.1"), &bottom, ("wan", "10.2.0.2"));
        link(&bottom, ("lan", "10.3.0.1"), &host, ("eth0", "10.3.0.2"));
        Chain { source, top, bottom, host }
    }

    /// Packets are pruned, come once when they are wanted, and are pruned and grafted again.
    fn prunes_and_grafts(&self) {
        let mut ends = Ends::new(&self.source);
        for _ in 0..2 {
            ends.sent_until_silent(|| came_in(&self.bottom, "wan"));
            let socket = member(&self.host, Ipv4Addr::new(10, 3, 0, 2));
            sent_until_received(&ends.from, &socket);
            assert_eq!(ends.copies(&socket, 200), [1; 200]);
        }
        ends.sent_until_silent(|| came_in(&self.bottom, "wan"));
    }
}

#[test]
fn mrouted_below_prunes_and_grafts_at_ours() {
    let Some(program) = found("mrouted_below_prunes_and_grafts_at_ours") else { return };
    let chain = Chain::new();
    let top = Relay::route(&chain.top, &["in0"], &["mid"]);
    let bottom = Mrouted::start(&program, &chain.bottom);
    top.wait_until("routes of mrouted", has(1, 3));
    bottom.wait("neighbor", "10.2.0.1");
    bottom.wait("routes", "10.1.0/24");
    chain.prunes_and_grafts();
    let refused = top.snapshot().dvmrp.map(|dvmrp| dvmrp.refused).unwrap_or_default();
    assert!(refused.iter().all(|(why, _)| *why == "not from a neighbour"), "{refused:?}");
}

#[test]
fn ours_below_prunes_and_grafts_at_mrouted() {
    let Some(program) = found("ours_below_prunes_and_grafts_at_mrouted") else { return };
    let chain = Chain::new();
    let top = Mrouted::start(&program, &chain.top);
    let bottom = Relay::route(&chain.bottom, &["lan"], &["wan"]);
    bottom.wait_until("routes of mrouted", has(1, 3));
    top.wait("neighbor", "10.2.0.2");
    top.wait("routes", "10.3.0/24");
    chain.prunes_and_grafts();
    let refused = bottom.snapshot().dvmrp.map(|dvmrp| dvmrp.refused).unwrap_or_default();
    assert!(refused.iter().all(|(why, _)| *why == "not from a neighbour"), "{refused:?}");
}

/// ```text
///                                    left         a
/// source        top        mrouted ─ wan lan0 ── eth0
///   eth0 ──── in0 mid ── above           lan1 ── eth0  b
///                                  ─ wan lan0 ── eth0  c
///                                    right
/// ```
struct Tree {
    source: Namespace,
    middle: Namespace,
    hosts: [Namespace; 3],
    top: Relay,
    lower: [Relay; 2],
    _mrouted: Mrouted,
    _routers: [Namespace; 3],
}

/// Where hosts are: the lower router, its interface, and their network.
const HOSTS: [(usize, &str, u8); 3] = [(0, "lan0", 5), (0, "lan1", 6), (1, "lan0", 7)];

impl Tree {
    fn new(program: &Path) -> Self {
        let [source, top, middle, left, right] =
            ["source", "top", "middle", "left", "right"].map(Namespace::new);
        let hosts = ["a", "b", "c"].map(Namespace::new);
        link(&source, ("eth0", "10.1.0.2"), &top, ("in0", "10.1.0.1"));
        link(&top, ("mid", "10.2.0.1"), &middle, ("above", "10.2.0.2"));
        link(&middle, ("left", "10.3.0.1"), &left, ("wan", "10.3.0.2"));
        link(&middle, ("right", "10.4.0.1"), &right, ("wan", "10.4.0.2"));
        for ((router, device, net), host) in HOSTS.into_iter().zip(&hosts) {
            let [here, there] = [2, 1].map(|end| Ipv4Addr::new(10, net, 0, end).to_string());
            link(host, ("eth0", &here), [&left, &right][router], (device, &there));
        }
        let mrouted = Mrouted::start(program, &middle);
        let lower =
            [Relay::route(&left, &["lan0", "lan1"], &["wan"]), Relay::route(&right, &["lan0"], &["wan"])];
        let relay = Relay::route(&top, &["in0"], &["mid"]);
        relay.wait_until("routes of mrouted", has(1, 7));
        lower.iter().for_each(|one| drop(one.wait_until("routes of mrouted", has(1, 7))));
        mrouted.wait("routes", "10.1.0/24");
        Tree { source, middle, hosts, top: relay, lower, _mrouted: mrouted, _routers: [top, left, right] }
    }

    /// A host joins, and data comes to it.
    fn joins(&self, host: usize, from: &UdpSocket) -> UdpSocket {
        let socket = member(&self.hosts[host], Ipv4Addr::new(10, HOSTS[host].2, 0, 2));
        sent_until_received(from, &socket);
        socket
    }

    /// A host says its level, which holds when this returns.
    fn says(&self, host: usize, number: u8) {
        let (router, device, net) = HOSTS[host];
        let relay = &self.lower[router];
        let said =
            relay.multicast.say_level(Ipv4Addr::new(10, net, 0, 2).into(), GROUP.into(), level(number));
        relay.runtime.block_on(said).expect("a member");
        // One that never had less stays the kernel's.
        let is_whole = |flow: &Flow| number == 1 && flow.by_kernel.contains(&device.into());
        let is_at = |flow: &Flow| is_whole(flow) || flow.thinned.contains(&(device.into(), level(number)));
        relay.wait_until("by its level", |now| {
            now.flows.iter().any(|flow| flow.group == GROUP && is_at(flow))
        });
    }
}

#[test]
fn over_mrouted_all_comes_and_ours_below_give_each_host_its_level() {
    let Some(program) = found("over_mrouted_all_comes_and_ours_below_give_each_host_its_level") else {
        return;
    };
    const GROUPS: usize = 25;
    let tree = Tree::new(&program);
    let ends = Ends::new(&tree.source);
    let mut layered = Layered { from: &ends.from, to: (GROUP, PORT).into(), sequence: 65_500 };
    let mut sockets = [0, 1, 2].map(|host| Some(tree.joins(host, &ends.from)));
    let mut numbers = [const { Vec::new() }; 3];
    // Levels that hosts say; nothing for one that is no member.
    let steps = [[Some(3), Some(1), Some(2)], [Some(1), Some(3), Some(1)], [Some(2), None, None]];
    for levels in steps {
        for (host, (socket, said)) in sockets.iter_mut().zip(levels).enumerate() {
            match said {
                Some(number) => tree.says(host, number),
                None => *socket = None,
            }
        }
        let before = came_in(&tree.middle, "above");
        layered.send(GROUPS);
        for (host, (socket, said)) in sockets.iter().zip(levels).enumerate() {
            let (Some(socket), Some(number)) = (socket, said) else { continue };
            let wanted = LAYERS.into_iter().filter(|layer| *layer <= 3 - number).collect::<Vec<_>>();
            let (came, layers) = come(socket, wanted.len() * GROUPS);
            assert_eq!(layers, wanted.repeat(GROUPS), "host {host} at level {number}");
            numbers[host].extend(came);
        }
        let came = came_in(&tree.middle, "above") - before;
        let sent = (GROUPS * LAYERS.len()) as u64;
        assert!((sent..sent + 20).contains(&came), "{came} came to mrouted, with some of DVMRP");
    }
    assert!(numbers.iter().all(|numbers| is_without_gap(numbers)), "one row each: {numbers:?}");
    let thinned = tree.top.snapshot().flows.into_iter().flat_map(|flow| flow.thinned).collect::<Vec<_>>();
    assert_eq!(thinned, [], "mrouted knows no levels: it counts as wanting the best");
    let again = tree.joins(2, &ends.from);
    layered.send(GROUPS);
    assert_eq!(come(&again, 100).1, LAYERS.repeat(GROUPS), "one that comes back is grafted, and gets all");
    drop((again, sockets));
    ends.sent_until_silent(|| came_in(&tree.middle, "above"));
    for relay in tree.lower.iter().chain([&tree.top]) {
        let refused = relay.snapshot().dvmrp.map(|dvmrp| dvmrp.refused).unwrap_or_default();
        assert!(refused.iter().all(|(why, _)| *why == "not from a neighbour"), "{refused:?}");
    }
}
