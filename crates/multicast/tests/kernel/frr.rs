//! Beside FRR: a PIM domain above ours, and elections with it.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use outflow_multicast::Event;

use crate::hosts::{GROUP, SOURCE, is_wanted, member, sender, sent_until_received};
use crate::net::{Namespace, Program, lacks, link};
use crate::relay::{PATIENCE, Relay};
use crate::wire::{Igmp, QUERY, Wire};

/// Where Debian has the daemons.
pub(crate) const DAEMONS: &str = "/usr/lib/frr";

/// zebra and pimd with files of their own, gone with this.
struct Frr {
    programs: Vec<Program>,
    folder: PathBuf,
}

impl Frr {
    /// Starts them with a configuration of pimd.
    fn start(namespace: &Namespace, pimd: &str) -> Self {
        let folder = std::env::temp_dir().join(&namespace.name);
        std::fs::create_dir(&folder).expect("a folder");
        let user = nix::unistd::User::from_name("frr").ok().flatten().expect("the package makes the user");
        let (user, group) = (user.uid.as_raw(), user.gid.as_raw());
        std::os::unix::fs::chown(&folder, Some(user), Some(group)).expect("root may");
        let mut frr = Frr { programs: Vec::new(), folder };
        for (name, text) in [("zebra", "hostname zebra\n"), ("pimd", pimd)] {
            let [configuration, pid, socket] =
                [&format!("{name}.conf"), &format!("{name}.pid"), "zserv.api"].map(|file| frr.path(file));
            std::fs::write(&configuration, text).expect("a file");
            let folder = frr.path("");
            let files = ["-f", &configuration, "-i", &pid, "-z", &socket, "--vty_socket", &folder];
            frr.programs.push(namespace.program(&format!("{DAEMONS}/{name}"), &files));
            frr.wait("its socket", |frr| Path::new(&frr.path(&format!("{name}.vty"))).exists());
        }
        frr
    }

    fn path(&self, file: &str) -> String {
        self.folder.join(file).display().to_string()
    }

    /// What pimd answers to commands.
    fn ask(&self, commands: &[&str]) -> String {
        let commands = commands.iter().flat_map(|command| ["-c", command]);
        let output = Command::new("vtysh").args(["--vty_socket", &self.path("")]).args(commands).output();
        let output = output.expect("vtysh, which comes along with the daemons");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn wait(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(
                Instant::now() < end,
                "{what} did not come: {}",
                self.ask(&["show ip igmp interface lan json"])
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until pimd says that this is the querier.
    fn wait_querier(&self, address: &str, is_itself: bool) {
        let role = if is_itself { "local" } else { "other" };
        self.wait(&format!("{address} as the querier"), |frr| {
            let said: String = frr.ask(&["show ip igmp interface lan json"]).split_whitespace().collect();
            let is_said = |key: &str, value: &str| said.contains(&format!("\"{key}\":\"{value}\""));
            is_said("querier", role) && is_said("querierIp", address)
        });
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        self.programs.clear();
        let _left = std::fs::remove_dir_all(&self.folder);
    }
}

/// The configuration of an interface that asks as often as ours do in tests. The interval comes behind the time
/// to answer, as it may not be shorter than that.
fn asking(name: &str) -> String {
    format!(
        "interface {name}\n ip igmp\n ip igmp version 3\n ip igmp query-max-response-time 10\n \
             ip igmp query-interval 2\n ip pim\n ip pim hello 1\n"
    )
}

fn is_self(event: &Event) -> bool {
    matches!(event, Event::Querier { is_self: true, .. })
}

fn is_query_of(packet: &Igmp, router: [u8; 4]) -> bool {
    packet.code == QUERY && packet.source == Ipv4Addr::from(router)
}

#[test]
fn frr_with_the_lower_address_asks_and_ours_takes_over() {
    if lacks("frr_with_the_lower_address_asks_and_ours_takes_over", "pimd", "frr") {
        return;
    }
    let (low, high) = (Namespace::new("low"), Namespace::new("high"));
    link(&low, ("lan", "10.2.0.1"), &high, ("lan", "10.2.0.2"));
    let relay = Relay::start(&high, &["lan"], None);
    relay.wait("ours asks first", is_self);
    let wire = Wire::listen(&high, "lan");
    let frr = Frr::start(&low, &asking("lan"));
    relay.wait("ours listens", |event| {
        matches!(event, Event::Querier { querier, is_self: false, .. } if querier.to_string() == "10.2.0.1")
    });
    frr.wait_querier("10.2.0.1", true);
    // How long ours waits for it follows from what it says, which is its configuration after a moment.
    wire.wait("its interval", |packet| {
        is_query_of(packet, [10, 2, 0, 1]) && packet.message().get(9) == Some(&2)
    });
    drop(frr);
    relay.wait("ours asks again", is_self);
}

#[test]
fn ours_with_the_lower_address_asks_and_frr_takes_over() {
    if lacks("ours_with_the_lower_address_asks_and_frr_takes_over", "pimd", "frr") {
        return;
    }
    let (low, high) = (Namespace::new("low"), Namespace::new("high"));
    link(&low, ("lan", "10.2.0.1"), &high, ("lan", "10.2.0.2"));
    let frr = Frr::start(&high, &asking("lan"));
    frr.wait_querier("10.2.0.2", true);
    let relay = Relay::start(&low, &["lan"], None);
    frr.wait_querier("10.2.0.1", false);
    assert!(relay.snapshot().interfaces[0].is_querier);
    // How long it waits for ours follows from the query before the last.
    let wire = Wire::listen(&high, "lan");
    (0..2).for_each(|_| _ = wire.wait("a query of ours", |packet| is_query_of(packet, [10, 2, 0, 1])));
    drop(relay);
    frr.wait_querier("10.2.0.2", true);
}

/// ```text
/// source          first         second         ours          host
///   eth0 ────── in0  core ──── core  mid ───── wan  lan ───── eth0
/// ```
/// The first router is the rendezvous point.
#[test]
fn what_hosts_want_is_joined_at_a_pim_domain() {
    if lacks("what_hosts_want_is_joined_at_a_pim_domain", "pimd", "frr") {
        return;
    }
    let [source, first, second, ours, host] =
        ["source", "first", "second", "ours", "host"].map(Namespace::new);
    link(&source, ("eth0", "10.1.0.2"), &first, ("in0", "10.1.0.1"));
    link(&first, ("core", "10.4.0.1"), &second, ("core", "10.4.0.2"));
    link(&second, ("mid", "10.2.0.1"), &ours, ("wan", "10.2.0.2"));
    link(&ours, ("lan", "10.3.0.1"), &host, ("eth0", "10.3.0.2"));
    second.ip(&["route", "add", "10.1.0.0/24", "via", "10.4.0.1"]);
    let domain = "ip pim rp 10.4.0.1\nip pim join-prune-interval 5\n";
    let frr = [(&first, ["in0", "core"]), (&second, ["core", "mid"])]
        .map(|(router, names)| Frr::start(router, &(domain.to_owned() + &names.map(asking).concat())));
    let relay = Relay::start(&ours, &["lan"], Some("wan"));
    let from = sender(&source, SOURCE);
    let socket = member(&host, Ipv4Addr::new(10, 3, 0, 2));
    relay.wait("wanted", is_wanted);
    let [_, at_edge] = &frr;
    let is_member = |frr: &Frr| frr.ask(&["show ip igmp groups"]).contains(&GROUP.to_string());
    at_edge.wait("a member", is_member);
    sent_until_received(&from, &socket);
    let flow = relay.snapshot().flows.first().cloned().expect("data came in");
    assert_eq!((flow.source, flow.group, &*flow.from), (SOURCE.into(), GROUP.into(), "wan"));
    drop(socket);
    at_edge.wait("no member", |frr| !is_member(frr));
}
