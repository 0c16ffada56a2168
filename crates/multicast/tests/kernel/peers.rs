//! Chains of two routers: ours below ours, and each way with igmpproxy and smcroute.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use crate::hosts::{GROUP, SOURCE, is_gone, is_wanted, member, sender, sent_until_received};
use crate::net::{Namespace, Program, is_skipped, lacks, link};
use crate::relay::Relay;

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
        let [source, top, bottom, host] = ["source", "top", "bottom", "host"].map(Namespace::new);
        link(&source, ("eth0", "10.1.0.2"), &top, ("in0", "10.1.0.1"));
        link(&top, ("mid", "10.2.0.1"), &bottom, ("wan", "10.2.0.2"));
        link(&bottom, ("lan", "10.3.0.1"), &host, ("eth0", "10.3.0.2"));
        Chain { source, top, bottom, host }
    }

    /// A host joins, and gets data.
    fn reaches_the_host(&self) -> std::net::UdpSocket {
        let from = sender(&self.source, SOURCE);
        let socket = member(&self.host, Ipv4Addr::new(10, 3, 0, 2));
        sent_until_received(&from, &socket);
        socket
    }
}

/// A configuration of another daemon, gone with this.
struct Settings(PathBuf);

impl Settings {
    fn new(namespace: &Namespace, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{}.conf", namespace.name));
        std::fs::write(&path, text).expect("a file");
        Settings(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a plain name")
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        let _left = std::fs::remove_file(&self.0);
    }
}

/// igmpproxy between two interfaces.
fn igmpproxy(namespace: &Namespace, up: &str, down: &str) -> (Program, Settings) {
    let settings = Settings::new(
        namespace,
        &format!(
            "quickleave\nphyint {up} upstream ratelimit 0 threshold 1\n    altnet 10.0.0.0/8\n\
             phyint {down} downstream ratelimit 0 threshold 1\nphyint lo disabled\n"
        ),
    );
    (namespace.program("igmpproxy", &["-n", settings.path()]), settings)
}

/// smcroute that forwards the group from one interface to another, and joins it there if it `joins`.
fn smcroute(namespace: &Namespace, up: &str, down: &str, joins: bool) -> (Program, [Settings; 3]) {
    let join = if joins { format!("mgroup from {up} group {GROUP}\n") } else { String::new() };
    let settings = Settings::new(namespace, &format!("{join}mroute from {up} group {GROUP} to {down}\n"));
    let [socket, pid] = ["sock", "pid"].map(|ending| Settings(settings.0.with_extension(ending)));
    let arguments = ["-n", "-f", settings.path(), "-u", socket.path(), "-P", pid.path()];
    (namespace.program("smcrouted", &arguments), [settings, socket, pid])
}

#[test]
fn what_hosts_want_is_joined_upstream_and_left_again() {
    if is_skipped("what_hosts_want_is_joined_upstream_and_left_again") {
        return;
    }
    let chain = Chain::new();
    let top = Relay::start(&chain.top, &["in0", "mid"], None);
    let bottom = Relay::start(&chain.bottom, &["lan"], Some("wan"));
    let socket = chain.reaches_the_host();
    top.wait("joined", is_wanted);
    assert_eq!(top.snapshot().interfaces.iter().map(|one| one.groups.len()).sum::<usize>(), 1);
    assert_eq!(bottom.snapshot().flows[0].by_kernel, ["lan".into()]);
    drop(socket);
    top.wait("left", is_gone);
}

#[test]
fn igmpproxy_below_joins_and_leaves_at_ours() {
    if lacks("igmpproxy_below_joins_and_leaves_at_ours", "igmpproxy", "igmpproxy") {
        return;
    }
    let chain = Chain::new();
    let top = Relay::start(&chain.top, &["in0", "mid"], None);
    let _program = igmpproxy(&chain.bottom, "wan", "lan");
    let socket = chain.reaches_the_host();
    top.wait("joined", is_wanted);
    drop(socket);
    top.wait("left", is_gone);
}

#[test]
fn ours_joins_at_igmpproxy_above() {
    if lacks("ours_joins_at_igmpproxy_above", "igmpproxy", "igmpproxy") {
        return;
    }
    let chain = Chain::new();
    let _program = igmpproxy(&chain.top, "in0", "mid");
    let bottom = Relay::start(&chain.bottom, &["lan"], Some("wan"));
    chain.reaches_the_host();
    let flow = bottom.snapshot().flows.first().cloned().expect("data came in");
    assert_eq!((flow.source, flow.group, &*flow.from), (SOURCE.into(), GROUP.into(), "wan"));
}

#[test]
fn smcroute_below_joins_at_ours_and_leaves_when_it_ends() {
    if lacks("smcroute_below_joins_at_ours_and_leaves_when_it_ends", "smcrouted", "smcroute") {
        return;
    }
    let chain = Chain::new();
    let top = Relay::start(&chain.top, &["in0", "mid"], None);
    let program = smcroute(&chain.bottom, "wan", "lan", true);
    top.wait("joined", is_wanted);
    chain.reaches_the_host();
    drop(program);
    top.wait("left", is_gone);
}

#[test]
fn ours_gets_from_smcroute_above_what_it_joins() {
    if lacks("ours_gets_from_smcroute_above_what_it_joins", "smcrouted", "smcroute") {
        return;
    }
    let chain = Chain::new();
    let _program = smcroute(&chain.top, "in0", "mid", false);
    let bottom = Relay::start(&chain.bottom, &["lan"], Some("wan"));
    chain.reaches_the_host();
    let flow = bottom.snapshot().flows.first().cloned().expect("data came in");
    assert_eq!((flow.source, flow.group, &*flow.from), (SOURCE.into(), GROUP.into(), "wan"));
}
