//! The interfaces that take part, and what of their settings keeps packets away.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use outflow_routing::membership::{Link, Prefix};

use crate::error::Error;

/// An interface with its IPv4 addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// The address that packets are sent from: the first.
    pub address: Ipv4Addr,
    /// All addresses of the link.
    pub prefixes: Vec<Prefix>,
}

impl Interface {
    /// The interface of this name in the network namespace of the thread that calls.
    ///
    /// # Errors
    ///
    /// If there is none, or it has no IPv4 address.
    pub fn find(name: &str) -> Result<Self, Error> {
        let index = nix::net::if_::if_nametoindex(name).map_err(|_| Error::NoInterface(name.to_owned()))?;
        let all = if_addrs::get_if_addrs().map_err(Error::Interfaces)?;
        let addresses: Vec<_> = all
            .into_iter()
            // A label (`eth0:1`) is a second address of the same interface.
            .filter(|one| one.name == name || one.name.split(':').next() == Some(name))
            .filter_map(|one| match one.addr {
                if_addrs::IfAddr::V4(v4) => Some((v4.ip, v4.prefixlen)),
                if_addrs::IfAddr::V6(_) => None,
            })
            .collect();
        let Some((address, _)) = addresses.first().copied() else {
            return Err(Error::NoAddress(name.to_owned()));
        };
        let prefix = |(address, bits): (Ipv4Addr, u8)| Prefix { address: IpAddr::V4(address), bits };
        let prefixes = addresses.into_iter().map(prefix).collect();
        Ok(Interface { name: name.to_owned(), index, address, prefixes })
    }

    /// The link that the state machines see.
    pub fn link(&self) -> Link {
        let address = IpAddr::V4(self.address);
        Link { address, prefixes: self.prefixes.clone(), needs_router_alert: true }
    }

    /// Whether this is an address of the link.
    pub fn is_of_link(&self, address: Ipv4Addr) -> bool {
        self.prefixes.iter().any(|prefix| prefix.contains(address.into()))
    }

    /// What keeps packets away, if anything does.
    pub fn warnings(&self) -> Vec<Warning> {
        let filters = ["all", self.name.as_str()].map(|scope| setting(scope, "rp_filter"));
        let is_filtered = filters.into_iter().flatten().max().is_some_and(|filter| filter > 0);
        is_filtered.then(|| Warning::ReversePath(self.name.clone())).into_iter().collect()
    }
}

/// A number of the kernel's settings of an interface.
fn setting(scope: &str, key: &str) -> Option<u32> {
    // The separator of names in /proc/sys is the slash, so that dots of a name stay.
    let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{scope}/{key}")).ok()?;
    text.trim().parse().ok()
}

/// Something that is no error, but keeps packets away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// Packets from senders without a route back are dropped silently.
    ReversePath(String),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::ReversePath(name) => write!(
                f,
                "the kernel drops packets that come in by {name} from where it has no route to: add routes to \
                 the sources, or set net.ipv4.conf.all.rp_filter and net.ipv4.conf.{name}.rp_filter to 0"
            ),
        }
    }
}
