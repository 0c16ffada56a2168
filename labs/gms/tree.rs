//! Three levels of routers, and hosts behind the last ones.

use std::net::{Ipv4Addr, UdpSocket};

use anyhow::{Context, Result, ensure};
use outflow_labs::membership::LevelProgram;
use outflow_labs::net::{Namespace, link};
use outflow_labs::relay::{Relay, listen};
use outflow_labs::scene::wait_for;

/// Routers, in the order of [`PARENTS`].
const ROUTERS: usize = 7;
/// Hosts, each behind a router of the last level.
pub(crate) const HOSTS: usize = 4;
/// Links down from the root.
pub(crate) const LINKS: usize = ROUTERS - 1 + HOSTS;
/// Of each node but the root, the one above: routers first, then hosts. Link number `n` leads to node `n + 1`.
const PARENTS: [usize; LINKS] = [0, 0, 1, 1, 2, 2, 3, 4, 5, 6];
/// The first port, the same in all groups.
pub(crate) const PORT: u16 = 5200;

/// ```text
///                        A ┬ A1 ─ host 0
/// source ─ in0 R d0 ─ above A └ A2 ─ host 1
///               d1 ─ above B ┬ B1 ─ host 2
///                         └ B2 ─ host 3
/// ```
pub(crate) struct Tree {
    pub(crate) source: Namespace,
    /// The root first, then as in [`PARENTS`].
    nodes: Vec<Namespace>,
}

const fn on(link: usize, end: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 67, link as u8, end)
}

/// The source's own link has the number behind the last.
pub(crate) const SOURCE: Ipv4Addr = on(LINKS, 2);

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
    pub(crate) fn new() -> Result<Self> {
        let source = Namespace::new("source")?;
        let nodes =
            (0..=LINKS).map(|number| Namespace::new(&format!("n{number}"))).collect::<Result<Vec<_>>>()?;
        link(&source, ("eth0", SOURCE), &nodes[0], ("in0", on(LINKS, 1)))?;
        source.ip(&["route", "add", "224.0.0.0/4", "dev", "eth0"])?;
        let mut children = [0; ROUTERS];
        for (number, parent) in PARENTS.into_iter().enumerate() {
            let down = format!("d{}", children[parent]);
            children[parent] += 1;
            let up = if number < ROUTERS - 1 { "above" } else { "eth0" };
            link(&nodes[number + 1], (up, on(number, 2)), &nodes[parent], (&down, on(number, 1)))?;
        }
        Ok(Tree { source, nodes })
    }

    /// Starts all routers, and waits until the last ones know the way to the source.
    pub(crate) fn start(&self) -> Result<Vec<Relay<'_>>> {
        let start = |(number, node)| {
            let interfaces = match number {
                0 => "interfaces = [\"in0\"]\nneighbours = [\"d0\", \"d1\"]",
                1 | 2 => "neighbours = [\"above\", \"d0\", \"d1\"]",
                _ => "interfaces = [\"d0\"]\nneighbours = [\"above\"]",
            };
            let timers =
                "query_interval = \"4 s\"\nquery_response = \"1 s\"\nlast_member_interval = \"300 ms\"";
            Relay::start(node, &format!("{}[multicast]\n{interfaces}\n{timers}\n", listen()))
        };
        let routers = self.nodes.iter().take(ROUTERS).enumerate().map(start).collect::<Result<Vec<_>>>()?;
        for leaf in &routers[ROUTERS - HOSTS..] {
            wait_for("the last routers have routes", || {
                let routes = leaf.json("/api/v1/multicast")?["dvmrp"]["routes"].clone();
                let to = format!("{}/24", on(LINKS, 0));
                Ok(routes.as_array().context("routes")?.iter().any(|route| route["network"] == to))
            })?;
        }
        Ok(routers)
    }

    /// Where a link leads to, and the device there.
    pub(crate) fn end(&self, link: usize) -> (&Namespace, &'static str) {
        (&self.nodes[link + 1], if link < ROUTERS - 1 { "above" } else { "eth0" })
    }

    /// Starts what says levels at a host.
    pub(crate) fn program(&self, host: usize) -> Result<LevelProgram> {
        LevelProgram::start(&self.nodes[ROUTERS + host])
    }

    /// Joins a group at a host.
    pub(crate) fn join(&self, host: usize, group: Ipv4Addr) -> Result<UdpSocket> {
        let link = ROUTERS - 1 + host;
        self.nodes[link + 1].run(|| {
            let socket = UdpSocket::bind((group, PORT))?;
            socket.join_multicast_v4(&group, &on(link, 2))?;
            Ok(socket)
        })
    }
}

/// What routers have counted, all together.
pub(crate) fn counted(routers: &[Relay<'_>], what: &str) -> Result<u64> {
    let one = |router: &Relay<'_>| {
        let state = router.json("/api/v1/multicast")?;
        ensure!(
            state["filter_problem"].is_null(),
            "there is no filter in the kernel: {}",
            state["filter_problem"]
        );
        state["counts"][what].as_u64().with_context(|| format!("{what} is not counted"))
    };
    routers.iter().map(one).sum()
}
