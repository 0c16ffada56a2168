//! Chains of two routers: ours below ours, and each way with igmpproxy.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use crate::hosts::{GROUP, SOURCE, is_gone, is_wanted, member, sender, sent_until_received};
use crate::net::{Namespace, has_program, is_skipped, link, skipped};
use crate::relay::Relay;

/// ```text
/// source          top           bottom         host
///   eth0 ────── in0  mid ────── wan  lan ────── eth0
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

    /// A host joins, and gets data.
    fn reaches_the_host(&self) -> std::net::UdpSocket {
        let from = sender(&self.source, SOURCE);
        let socket = member(&self.host, Ipv4Addr::new(10, 3, 0, 2));
        sent_until_received(&from, &socket);
        socket
    }
}

/// A configuration of igmpproxy, gone with this.
struct Settings(PathBuf);

impl Settings {
    fn new(namespace: &Namespace, up: &str, down: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{}.conf", namespace.name));
        let text = format!(
            "quickleave\nphyint {up} upstream ratelimit 0 threshold 1\n    altnet 10.0.0.0/8\n\
             phyint {down} downstream ratelimit 0 threshold 1\nphyint lo disabled\n"
        );
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

fn lacks_igmpproxy(test: &str) -> bool {
    let lacks = !has_program("igmpproxy");
    if lacks {
        skipped(test, "igmpproxy is missing: apt-get install igmpproxy");
    }
    lacks || is_skipped(test)
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
    if lacks_igmpproxy("igmpproxy_below_joins_and_leaves_at_ours") {
        return;
    }
    let chain = Chain::new();
    let top = Relay::start(&chain.top, &["in0", "mid"], None);
    let settings = Settings::new(&chain.bottom, "wan", "lan");
    let _program = chain.bottom.program("igmpproxy", &["-n", settings.path()]);
    let socket = chain.reaches_the_host();
    top.wait("joined", is_wanted);
    drop(socket);
    top.wait("left", is_gone);
}

#[test]
fn ours_joins_at_igmpproxy_above() {
    if lacks_igmpproxy("ours_joins_at_igmpproxy_above") {
        return;
    }
    let chain = Chain::new();
    let settings = Settings::new(&chain.top, "in0", "mid");
    let _program = chain.top.program("igmpproxy", &["-n", settings.path()]);
    let bottom = Relay::start(&chain.bottom, &["lan"], Some("wan"));
    chain.reaches_the_host();
    let flow = bottom.snapshot().flows.first().cloned().expect("data came in");
    assert_eq!((flow.source, flow.group, &*flow.from), (SOURCE, GROUP, "wan"));
}
