//! The usual arrangement: a source, the relay and its players, each in a namespace of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::Result;

use super::Namespace;

/// The source's address.
pub const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 66, 1, 2);
/// A second address of the source's machine: packets from there come from another host.
pub const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 66, 1, 3);
/// The relay's address towards the source, on its interface `in0`.
pub const RELAY_IN: Ipv4Addr = Ipv4Addr::new(10, 66, 1, 1);
/// The relay's address towards the players, on its interface `out0`.
pub const RELAY_OUT: Ipv4Addr = Ipv4Addr::new(10, 66, 2, 1);
/// The players' address.
pub const PLAYER: Ipv4Addr = Ipv4Addr::new(10, 66, 2, 2);
/// The source's address, where it has IPv6.
pub const SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0xfd66, 0, 0, 1, 0, 0, 0, 2);
/// The relay's address towards the source there.
pub const RELAY_IN_V6: Ipv6Addr = Ipv6Addr::new(0xfd66, 0, 0, 1, 0, 0, 0, 1);
/// The relay's address towards the players, and theirs, where they have IPv6.
pub const RELAY_OUT_V6: Ipv6Addr = Ipv6Addr::new(0xfd66, 0, 0, 2, 0, 0, 0, 1);
/// The players' address there.
pub const PLAYER_V6: Ipv6Addr = Ipv6Addr::new(0xfd66, 0, 0, 2, 0, 0, 0, 2);

/// ```text
/// source           relay             players
///   eth0 ─────── in0   out0 ─────── eth0
///   .1.2,.1.3    .1.1   .2.1         .2.2     (10.66.0.0/16)
/// ```
///
/// Multicast goes the same way: each end has a route for 224.0.0.0/4. Source and players do not
/// reach each other, so what arrives has been relayed.
#[derive(Debug)]
pub struct Paths {
    /// Where publishers and cameras run.
    pub source: Namespace,
    /// Where the relay runs.
    pub relay: Namespace,
    /// Where receivers run.
    pub players: Namespace,
}

impl Paths {
    /// Makes the namespaces and the links between them.
    pub fn new() -> Result<Self> {
        let paths = Self {
            source: Namespace::new("source")?,
            relay: Namespace::new("relay")?,
            players: Namespace::new("players")?,
        };
        link(&paths.source, ("eth0", SOURCE), &paths.relay, ("in0", RELAY_IN))?;
        link(&paths.players, ("eth0", PLAYER), &paths.relay, ("out0", RELAY_OUT))?;
        paths.source.ip(&["address", "add", &format!("{STRANGER}/24"), "dev", "eth0"])?;
        for (namespace, device) in [(&paths.source, "eth0"), (&paths.players, "eth0"), (&paths.relay, "out0")]
        {
            namespace.ip(&["route", "add", "224.0.0.0/4", "dev", device])?;
        }
        Ok(paths)
    }

    /// Gives all of them addresses of IPv6, too, with neighbours known.
    pub fn with_ipv6(self) -> Result<Self> {
        let Paths { source, relay, players } = &self;
        let links = [
            [(source, "eth0", SOURCE_V6), (relay, "in0", RELAY_IN_V6)],
            [(players, "eth0", PLAYER_V6), (relay, "out0", RELAY_OUT_V6)],
        ];
        for [a, b] in links {
            for (namespace, device, address) in [a, b] {
                namespace.ip(&["address", "add", &format!("{address}/64"), "dev", device, "nodad"])?;
            }
            for ((here, device, _), (there, far, address)) in [(a, b), (b, a)] {
                know(here, device, address.into(), &mac_of(there, far)?)?;
            }
        }
        Ok(self)
    }
}

/// Joins two namespaces by a veth pair, up and with neighbours known, so that no first packet
/// waits for ARP or NDP.
pub fn link<A: Into<IpAddr> + Copy>(
    a: &Namespace,
    at_a: (&str, A),
    b: &Namespace,
    at_b: (&str, A),
) -> Result<()> {
    #[rustfmt::skip]
    a.ip(&["link", "add", at_a.0, "txqueuelen", "10000", "type", "veth",
           "peer", "name", at_b.0, "netns", b.name()])?;
    for (namespace, (device, address)) in [(a, at_a), (b, at_b)] {
        match address.into() {
            IpAddr::V4(address) => {
                namespace.sysctl(&format!("net.ipv4.conf.{device}.rp_filter"), "0")?;
                namespace.ip(&["address", "add", &format!("{address}/24"), "dev", device])?;
            }
            IpAddr::V6(address) => {
                namespace.sysctl(&format!("net.ipv6.conf.{device}.accept_dad"), "0")?;
                namespace.ip(&["address", "add", &format!("{address}/64"), "dev", device, "nodad"])?;
            }
        }
        namespace.ip(&["link", "set", device, "up"])?;
    }
    for (here, (device, _), there, (far, address)) in [(a, at_a, b, at_b), (b, at_b, a, at_a)] {
        know(here, device, address.into(), &mac_of(there, far)?)?;
    }
    Ok(())
}

/// Tells a neighbour's hardware address for good.
fn know(here: &Namespace, device: &str, neighbour: IpAddr, mac: &str) -> Result<()> {
    #[rustfmt::skip]
    here.ip(&["neighbour", "replace", &neighbour.to_string(), "lladdr", mac,
              "dev", device, "nud", "permanent"])?;
    Ok(())
}

/// The hardware address of a device.
fn mac_of(namespace: &Namespace, device: &str) -> Result<String> {
    let shown = namespace.ip(&["-brief", "link", "show", "dev", device])?;
    Ok(shown.split_whitespace().nth(2).unwrap_or_default().to_owned())
}
