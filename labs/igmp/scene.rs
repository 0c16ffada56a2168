//! A router between a source and hosts, which the lab plays itself.
//!
//! ```text
//! source            router             hosts
//!   eth0 ────────── in0  lan ────────── eth0
//! ```

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use outflow_labs::net::Namespace;
use outflow_labs::process::{Program, Running};
use outflow_labs::relay::PATIENCE;

use crate::exchange::{FarEnd, Kind};
use crate::frr::Frr;
use crate::serve::Asking;

/// The interface with hosts.
pub(crate) const LAN: &str = "lan";
/// The interface with the source.
pub(crate) const IN: &str = "in0";
/// The processor of all: the lab waits while the router works, and neither waits for an idle processor.
pub(crate) const CPU: usize = 0;

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);

/// The program that routes.
#[derive(Debug)]
enum Implementation {
    Outflow { _program: Running, asking: Asking },
    Frr { _daemons: Frr },
}

/// A router at work. What is in the namespaces ends before they do.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) far_end: FarEnd,
    source: UdpSocket,
    implementation: Implementation,
    _namespaces: [Namespace; 3],
}

impl Scene {
    /// Outflow's querier.
    pub(crate) fn outflow() -> Result<Self> {
        Self::new("outflow", |router| {
            let program = Program::new(std::env::current_exe()?.display().to_string());
            let program = program.args(["--serve", LAN, IN]).within(router).on_cpu(CPU).preferred();
            let (program, input, output) = program.start_piped()?;
            let asking = Asking::new(input, output);
            let asking = asking.map_err(|error| error.context(program.account()))?;
            Ok(Implementation::Outflow { _program: program, asking })
        })
    }

    /// FRR's.
    pub(crate) fn frr() -> Result<Self> {
        Self::new("frr", |router| Ok(Implementation::Frr { _daemons: Frr::start(router)? }))
    }

    fn new(name: &str, start: impl FnOnce(&Namespace) -> Result<Implementation>) -> Result<Self> {
        let [source, router, hosts] =
            ["source", "router", "hosts"].map(|role| Namespace::new(&format!("{name}-{role}")));
        let (source, router, hosts) = (source?, router?, hosts?);
        link((&source, "eth0", "10.1.0.2/24"), (&router, IN, "10.1.0.1/24"))?;
        link((&hosts, "eth0", "10.2.0.2/24"), (&router, LAN, "10.2.0.1/24"))?;
        for scope in ["all", "default", LAN, IN] {
            router.sysctl(&format!("net.ipv4.conf.{scope}.rp_filter"), "0")?;
        }
        source.ip(&["route", "add", "224.0.0.0/4", "dev", "eth0"])?;
        let sender = source.run(|| UdpSocket::bind((SOURCE, 0)))?;
        sender.set_multicast_ttl_v4(8)?;
        let implementation = start(&router)?;
        let far_end = hosts.run(|| FarEnd::open(HOST))?;
        let mut scene =
            Scene { far_end, source: sender, implementation, _namespaces: [source, router, hosts] };
        scene.wait_ready()?;
        Ok(scene)
    }

    /// Waits until it answers.
    fn wait_ready(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if self.far_end.exchange(Kind::Leave, HOST, Ipv4Addr::new(239, 255, 0, 1))?.is_some() {
                return Ok(());
            }
        }
        bail!("{:?} did not answer", self.implementation)
    }

    /// A packet of the source to a group, so that the router has an entry for them.
    pub(crate) fn send(&self, group: Ipv4Addr) -> Result<()> {
        self.source.send_to(b"data", (group, 5004))?;
        Ok(())
    }

    /// What the router says of itself, if it is Outflow's.
    pub(crate) fn asking(&mut self) -> Option<&mut Asking> {
        match &mut self.implementation {
            Implementation::Outflow { asking, .. } => Some(asking),
            Implementation::Frr { .. } => None,
        }
    }
}

type At<'a> = (&'a Namespace, &'a str, &'a str);

/// Joins two namespaces.
fn link(one: At<'_>, other: At<'_>) -> Result<()> {
    one.0.ip(&["link", "add", one.1, "type", "veth", "peer", "name", other.1, "netns", other.0.name()])?;
    for (namespace, device, address) in [one, other] {
        namespace.ip(&["address", "add", address, "dev", device])?;
        namespace.ip(&["link", "set", device, "up"])?;
    }
    Ok(())
}

/// Waits until something holds.
pub(crate) fn wait(what: &str, holds: impl Fn() -> bool, account: impl Fn() -> String) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > until {
            bail!("{what} did not come: {}", account());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
