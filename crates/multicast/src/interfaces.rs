//! The interfaces that take part, and what of their settings keeps packets away.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use outflow_media::Prefix;
use outflow_routing::membership::Link;

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
    /// All addresses that packets may be sent from.
    pub own: Vec<Ipv4Addr>,
    /// The networks on the link.
    pub prefixes: Vec<Prefix>,
}

impl Interface {
    /// The interface of this name in the network namespace of the thread that calls.
    ///
    /// # Errors
    ///
    /// If there is none, it is down, or it has no IPv4 address.
    pub fn find(name: &str) -> Result<Self, Error> {
        Addresses::list()?.find(name)
    }

    /// The link that the state machines see.
    pub fn link(&self) -> Link {
        let address = IpAddr::V4(self.address);
        Link { address, prefixes: self.prefixes.clone(), needs_router_alert: true }
    }

    /// Whether this is an address of the link.
    pub fn is_of_link(&self, address: Ipv4Addr) -> bool {
        self.prefixes.iter().any(|prefix| prefix.contains(address))
    }

    /// Whether this is an address of the interface itself.
    pub fn is_own(&self, address: Ipv4Addr) -> bool {
        self.own.contains(&address)
    }

    /// What keeps packets away, if anything does.
    pub fn warnings(&self) -> Vec<Warning> {
        let filters = ["all", self.name.as_str()].map(|scope| setting(scope, "rp_filter"));
        let is_filtered = filters.into_iter().flatten().max().is_some_and(|filter| filter > 0);
        is_filtered.then(|| Warning::ReversePath(self.name.clone())).into_iter().collect()
    }
}

/// An address of an interface.
#[derive(Debug)]
struct Address {
    interface: String,
    ip: Ipv4Addr,
    prefix: Prefix,
    is_up: bool,
}

/// The IPv4 addresses of the network namespace of the thread that calls, as they are now: to find many interfaces
/// by one look.
#[derive(Debug)]
pub struct Addresses(Vec<Address>);

impl Addresses {
    /// All of them.
    ///
    /// # Errors
    ///
    /// As the system says.
    pub fn list() -> Result<Self, Error> {
        let failed = |error: nix::Error| Error::Interfaces(error.into());
        let address = |one: InterfaceAddress| {
            let ip = one.address?.as_sockaddr_in()?.ip();
            let mask = one.netmask.and_then(|mask| Some(mask.as_sockaddr_in()?.ip()));
            let bits = mask.map_or(32, |mask| mask.to_bits().count_ones() as u8);
            let is_up = one.flags.contains(InterfaceFlags::IFF_UP);
            // A label (`eth0:1`) is a second address of the same interface.
            let interface = one.interface_name.split(':').next()?.to_owned();
            Some(Address { interface, ip, prefix: Prefix::of(ip, bits), is_up })
        };
        Ok(Addresses(getifaddrs().map_err(failed)?.filter_map(address).collect()))
    }

    /// The interface of this name.
    ///
    /// # Errors
    ///
    /// If there is none, it is down, or it has no IPv4 address.
    pub fn find(&self, name: &str) -> Result<Interface, Error> {
        let index = nix::net::if_::if_nametoindex(name).map_err(|_| Error::NoInterface(name.to_owned()))?;
        let found = self.of(name, index).ok_or_else(|| Error::NoAddress(name.to_owned()))?;
        if self.is_up(name) { Ok(found) } else { Err(Error::Down(name.to_owned())) }
    }

    /// The interface of this name, if it has an address.
    fn of(&self, name: &str, index: u32) -> Option<Interface> {
        let there = self.0.iter().filter(|one| one.interface == name);
        let (own, prefixes): (Vec<_>, Vec<_>) = there.map(|one| (one.ip, one.prefix)).unzip();
        let address = *own.first()?;
        Some(Interface { name: name.to_owned(), index, address, own, prefixes })
    }

    /// Whether an interface was set up. It need not have a carrier: hosts may come back.
    fn is_up(&self, name: &str) -> bool {
        self.0.iter().any(|one| one.interface == name && one.is_up)
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
