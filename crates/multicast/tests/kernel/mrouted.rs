//! Beside mrouted: a neighbour above, and one below. It runs with `MROUTED=program`, or one on the PATH.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use outflow_skip::skipped;

use crate::dvmrp::{Ends, came_in, has};
use crate::hosts::{member, sent_until_received};
use crate::net::{Namespace, Program, is_skipped, link};
use crate::relay::{PATIENCE, Relay};

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
