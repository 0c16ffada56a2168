//! The addresses of the sinks of a fan-out: a network behind the players' namespace.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use anyhow::Result;

use super::{Namespace, PLAYER, PLAYER_V6, Paths};
use crate::process::Program;

/// The first sink's address. The network has room for millions.
pub const SINKS_FIRST: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 0);
/// The sinks' network.
const NETWORK: &str = "10.128.0.0/9";
/// The same by IPv6: an address there ends in that of IPv4.
const NETWORK_V6: Ipv6Addr = Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, 0);
/// Sinks that share an address, so that ports matter.
pub const SINK_PORTS: u16 = 4;
/// The first port of an address; the others follow in steps of two, as RTP wants it.
pub const SINK_PORT: u16 = 6000;

/// The address of a sink by its number.
pub fn sink(number: usize) -> SocketAddrV4 {
    let ports = usize::from(SINK_PORTS);
    let address = SINKS_FIRST.to_bits().wrapping_add((number / ports) as u32);
    SocketAddrV4::new(Ipv4Addr::from_bits(address), SINK_PORT + 2 * (number % ports) as u16)
}

/// The address of a sink by its number, by IPv6.
pub fn sink_v6(number: usize) -> SocketAddrV6 {
    let v4 = sink(number);
    let address = NETWORK_V6.to_bits() | u128::from(v4.ip().to_bits());
    SocketAddrV6::new(Ipv6Addr::from_bits(address), v4.port(), 0, 0)
}

impl Paths {
    /// Puts the sinks' network behind the players' namespace. One neighbour, which is known, stands
    /// for all of them: on a link of their own each would need an entry (and the kernel keeps 1024).
    pub fn with_sinks(self) -> Result<Self> {
        let paths = self.with_ipv6()?;
        paths.relay.ip(&["route", "add", NETWORK, "via", &PLAYER.to_string()])?;
        let network = format!("{NETWORK_V6}/96");
        paths.relay.ip(&["-6", "route", "add", &network, "via", &PLAYER_V6.to_string()])?;
        Ok(paths)
    }

    /// Has the players' namespace take the sinks' addresses by IPv4 for its own: sockets can be bound to them.
    pub fn own_sinks(&self) -> Result<()> {
        self.players.ip(&["route", "replace", "local", NETWORK, "dev", "lo"]).map(drop)
    }

    /// Has all that comes to the relay handled on this core, as a network card whose interrupt is
    /// there would: on a veth pair, what is sent on one core is else received on the same core.
    pub fn relay_receives_on(&self, cpu: usize) -> Result<()> {
        ["in0", "out0"].iter().try_for_each(|device| receive_on(&self.relay, device, cpu))
    }

    /// Has all that comes to the players handled on this core.
    pub fn players_receive_on(&self, cpu: usize) -> Result<()> {
        receive_on(&self.players, "eth0", cpu)
    }
}

fn receive_on(namespace: &Namespace, device: &str, cpu: usize) -> Result<()> {
    let mask = format!("echo {:x} > /sys/class/net/{device}/queues/rx-0/rps_cpus", 1u64 << cpu);
    Program::new("sh").args(["-ec", &mask]).within(namespace).finish(crate::relay::PATIENCE)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sink_has_an_address_of_its_own() {
        assert_eq!(sink(0).to_string(), "10.128.0.0:6000");
        assert_eq!(sink(3).to_string(), "10.128.0.0:6006");
        assert_eq!(sink(4 * 256 + 1).to_string(), "10.128.1.0:6002");
        assert_eq!(sink_v6(4 * 256 + 1).to_string(), "[fd66::a80:100]:6002");
        let all: std::collections::BTreeSet<_> = (0..10_000).map(sink).collect();
        assert_eq!(all.len(), 10_000);
    }
}
