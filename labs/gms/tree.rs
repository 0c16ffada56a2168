//! Three levels of routers, and hosts behind the last ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use outflow_labs::membership::LevelProgram;
use outflow_labs::net::{Namespace, link};
use outflow_labs::relay::{Relay, listen};
use outflow_labs::scene::wait_for;
use outflow_routing::membership::Family;
use serde_json::Value;
use socket2::SockRef;

use super::plain::{Mrouted, mrouted};

/// Routers, in the order of [`PARENTS`].
const ROUTERS: usize = 7;
/// Hosts, each behind a router of the last level.
pub(crate) const HOSTS: usize = 4;
/// Links down from the root.
pub(crate) const LINKS: usize = ROUTERS - 1 + HOSTS;
/// Of each node but the root, the one above: routers first, then hosts. Link number `n` leads to node `n + 1`.
const PARENTS: [usize; LINKS] = [0, 0, 1, 1, 2, 2, 3, 4, 5, 6];
/// The router in whose place mrouted is, if that is there.
const PLAIN: usize = 2;
/// The first port, the same in all groups.
pub(crate) const PORT: u16 = 5200;

/// ```text
///                        A ┬ A1 ─ host 0
/// source ─ in0 R d0 ─ above A └ A2 ─ host 1
///               d1 ─ above B ┬ B1 ─ host 2
///                         └ B2 ─ host 3
/// ```
pub(crate) struct Tree {
    pub(crate) family: Family,
    pub(crate) source: Namespace,
    /// The root first, then as in [`PARENTS`].
    nodes: Vec<Namespace>,
    /// What is in the place of [`PLAIN`].
    plain: Option<PathBuf>,
}

/// The routers at work.
pub(crate) struct Routers<'t> {
    relays: Vec<Relay<'t>>,
    plain: Option<Mrouted>,
}

/// The address of an end of a link. The source's own link has the number behind the last.
const fn on(family: Family, link: usize, end: u8) -> IpAddr {
    match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::new(10, 67, link as u8, end)),
        Family::V6 => IpAddr::V6(Ipv6Addr::new(0xfd67, 0, 0, link as u16, 0, 0, 0, end as u16)),
    }
}

/// The links on the way from a host to the root, its own first.
pub(crate) fn way(host: usize) -> impl Iterator<Item = usize> {
    let above = |link: &usize| PARENTS[*link].checked_sub(1);
    std::iter::successors(Some(ROUTERS - 1 + host), above)
}

/// The hosts behind a link.
pub(crate) fn behind(link: usize) -> impl Iterator<Item = usize> {
    (0..HOSTS).filter(move |host| way(*host).any(|on| on == link))
}

/// The name of a link, for people.
pub(crate) fn name(link: usize) -> String {
    let names = ["R", "A", "B", "A1", "A2", "B1", "B2", "host 0", "host 1", "host 2", "host 3"];
    format!("{}-{}", names[PARENTS[link]], names[link + 1])
}

impl Tree {
    pub(crate) fn new(family: Family) -> Result<Self> {
        let on = |link, end| on(family, link, end);
        let source = Namespace::new("source")?;
        let nodes =
            (0..=LINKS).map(|number| Namespace::new(&format!("n{number}"))).collect::<Result<Vec<_>>>()?;
        link(&source, ("eth0", on(LINKS, 2)), &nodes[0], ("in0", on(LINKS, 1)))?;
        if family == Family::V4 {
            source.ip(&["route", "add", "224.0.0.0/4", "dev", "eth0"])?;
        }
        let mut children = [0; ROUTERS];
        for (number, parent) in PARENTS.into_iter().enumerate() {
            let down = format!("d{}", children[parent]);
            children[parent] += 1;
            let up = if number < ROUTERS - 1 { "above" } else { "eth0" };
            link(&nodes[number + 1], (up, on(number, 2)), &nodes[parent], (&down, on(number, 1)))?;
        }
        Ok(Tree { family, source, nodes, plain: mrouted().filter(|_| family == Family::V4) })
    }

    /// Whether one of the routers knows of no levels.
    pub(crate) const fn has_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// Whether all of a stream goes over a link, if any of it does: a router that knows of no levels is at an end of it.
    pub(crate) fn carries_all(&self, link: usize) -> bool {
        self.has_plain() && (link + 1 == PLAIN || PARENTS[link] == PLAIN)
    }

    /// The source's address.
    pub(crate) const fn source_address(&self) -> IpAddr {
        on(self.family, LINKS, 2)
    }

    /// What the configuration of a router says of its interfaces: routers of DVMRP are neighbours of each other, and of
    /// IPv6, which that does not route, each is a host of the one above.
    const fn interfaces(&self, router: usize) -> &'static str {
        match (self.family, router) {
            (Family::V4, 0) => "interfaces = [\"in0\"]\nneighbours = [\"d0\", \"d1\"]",
            (Family::V4, 1 | 2) => "neighbours = [\"above\", \"d0\", \"d1\"]",
            (Family::V4, _) => "interfaces = [\"d0\"]\nneighbours = [\"above\"]",
            (Family::V6, 0) => "mld = \"on\"\ninterfaces = [\"in0\", \"d0\", \"d1\"]",
            (Family::V6, 1 | 2) => "mld = \"on\"\nupstream = \"above\"\ninterfaces = [\"d0\", \"d1\"]",
            (Family::V6, _) => "mld = \"on\"\nupstream = \"above\"\ninterfaces = [\"d0\"]",
        }
    }

    /// Starts all routers, and waits until each does its part.
    pub(crate) fn start(&self) -> Result<Routers<'_>> {
        let plain =
            self.plain.as_ref().map(|program| Mrouted::start(program, &self.nodes[PLAIN])).transpose()?;
        let start = |(number, node)| {
            let interfaces = self.interfaces(number);
            let timers =
                "query_interval = \"4 s\"\nquery_response = \"1 s\"\nlast_member_interval = \"300 ms\"";
            Relay::start(node, &format!("{}[multicast]\n{interfaces}\n{timers}\n", listen()))
        };
        let nodes = self.nodes.iter().take(ROUTERS).enumerate();
        let levelled = nodes.filter(|(number, _)| *number != PLAIN || plain.is_none());
        let relays = levelled.map(start).collect::<Result<Vec<_>>>()?;
        for router in &relays {
            wait_for("all routers do their part", || {
                let state = router.json("/api/v1/multicast")?;
                match self.family {
                    Family::V4 => self.has_route(&state),
                    Family::V6 => asks_hosts(&state),
                }
            })?;
        }
        Ok(Routers { relays, plain })
    }

    /// Whether a router of DVMRP knows the way to the source.
    fn has_route(&self, state: &Value) -> Result<bool> {
        let routes = state["dvmrp"]["routes"].as_array().context("routes")?;
        let to = format!("{}/24", on(self.family, LINKS, 0));
        Ok(routes.iter().any(|route| route["network"] == to))
    }

    /// Where a link leads to, and the device there.
    pub(crate) fn end(&self, link: usize) -> (&Namespace, &'static str) {
        (&self.nodes[link + 1], if link < ROUTERS - 1 { "above" } else { "eth0" })
    }

    /// Starts what says levels at a host.
    pub(crate) fn program(&self, host: usize) -> Result<LevelProgram> {
        LevelProgram::start(&self.nodes[ROUTERS + host], self.family)
    }

    /// Joins a group at a host.
    pub(crate) fn join(&self, host: usize, group: IpAddr) -> Result<UdpSocket> {
        let link = ROUTERS - 1 + host;
        let own = on(self.family, link, 2);
        self.nodes[link + 1].run(|| join(group, own, "eth0"))
    }
}

/// A socket that is a member of a group, on a device with an address.
pub(crate) fn join(group: IpAddr, own: IpAddr, device: &str) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((group, PORT))?;
    match (group, own) {
        (IpAddr::V4(group), IpAddr::V4(own)) => socket.join_multicast_v4(&group, &own)?,
        (IpAddr::V6(group), _) => socket.join_multicast_v6(&group, nix::net::if_::if_nametoindex(device)?)?,
        _ => bail!("{group} and {own} are not of one family"),
    }
    Ok(socket)
}

/// A socket that sends to groups, over some routers.
pub(crate) fn sender(own: IpAddr, device: &str) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((own, 0))?;
    let options = SockRef::from(&socket);
    match own {
        IpAddr::V4(_) => socket.set_multicast_ttl_v4(8)?,
        IpAddr::V6(_) => {
            options.set_multicast_hops_v6(8)?;
            options.set_multicast_if_v6(nix::net::if_::if_nametoindex(device)?)?;
        }
    }
    Ok(socket)
}

/// Whether hosts of IPv6 are asked on all interfaces of a router that has some.
fn asks_hosts(state: &Value) -> Result<bool> {
    let interfaces = state["interfaces"].as_array().context("interfaces")?;
    let mut of = interfaces.iter().filter(|one| one["protocol"] == "mld").peekable();
    Ok(of.peek().is_some() && of.all(|one| one["is_querier"] == true))
}

impl Routers<'_> {
    /// What relays have counted, all together.
    pub(crate) fn counted(&self, what: &str) -> Result<u64> {
        let one = |router: &Relay<'_>| {
            let state = router.json("/api/v1/multicast")?;
            ensure!(
                state["filter_problem"].is_null(),
                "there is no filter in the kernel: {}",
                state["filter_problem"]
            );
            state["counts"][what].as_u64().with_context(|| format!("{what} is not counted"))
        };
        self.relays.iter().map(one).sum()
    }

    pub(crate) fn healthy(&mut self) -> Result<()> {
        self.plain.iter_mut().try_for_each(Mrouted::healthy)?;
        self.relays.iter_mut().try_for_each(Relay::healthy)
    }
}
