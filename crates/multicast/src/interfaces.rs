//! The interfaces that take part, and what of their settings keeps packets away.

use std::fmt;
use std::net::IpAddr;

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;
use outflow_media::Network;
use outflow_routing::membership::{Family, Link};

use crate::error::Error;

/// An interface with its addresses of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// The address that packets are sent from: the first; of IPv6, the first that is link-local.
    pub address: IpAddr,
    /// All addresses that packets may be sent from.
    pub own: Vec<IpAddr>,
    /// The networks on the link.
    pub networks: Vec<Network>,
}

impl Interface {
    /// The interface of this name in the network namespace of the thread that calls.
    ///
    /// # Errors
    ///
    /// If there is none, it is down, or it has no address of this family: of IPv6, no link-local one.
    pub fn find(family: Family, name: &str) -> Result<Self, Error> {
        Addresses::list(family)?.find(name)
    }

    /// The link that the state machines see.
    pub fn link(&self) -> Link {
        let prefixes = self.networks.iter().filter_map(Network::v4).collect();
        Link { address: self.address, prefixes, needs_router_alert: true }
    }

    /// Whether this is an address of the link.
    pub fn is_of_link(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Whether this is an address of the interface itself.
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.own.contains(&address)
    }

    /// The address that data is sent from there: of IPv6, one that is not link-local, if there is one.
    pub fn sends_from(&self) -> IpAddr {
        self.own.iter().find(|ip| !is_link_local(ip)).copied().unwrap_or(self.address)
    }

    /// What keeps packets away, if anything does.
    pub fn warnings(&self) -> Vec<Warning> {
        // The kernel filters packets of IPv4 alone.
        if self.address.is_ipv6() {
            return Vec::new();
        }
        let filters = ["all", self.name.as_str()].map(|scope| setting(scope, "rp_filter"));
        let is_filtered = filters.into_iter().flatten().max().is_some_and(|filter| filter > 0);
        is_filtered.then(|| Warning::ReversePath(self.name.clone())).into_iter().collect()
    }
}

/// An address of an interface.
#[derive(Debug)]
struct Address {
    interface: String,
    ip: IpAddr,
    network: Network,
    is_up: bool,
}

/// The addresses of one family of the network namespace of the thread that calls, as they are now: to find many interfaces
/// by one look.
#[derive(Debug)]
pub struct Addresses {
    family: Family,
    all: Vec<Address>,
}

impl Addresses {
    /// All of them.
    ///
    /// # Errors
    ///
    /// As the system says.
    pub fn list(family: Family) -> Result<Self, Error> {
        let failed = |error: nix::Error| Error::Interfaces(error.into());
        let address = |one: InterfaceAddress| {
            let ip = ip(&one.address?).filter(|ip| Family::of(*ip) == family)?;
            let bits = one.netmask.as_ref().and_then(bits_of).unwrap_or(u8::MAX);
            let is_up = one.flags.contains(InterfaceFlags::IFF_UP);
            // A label (`eth0:1`) is a second address of the same interface.
            let interface = one.interface_name.split(':').next()?.to_owned();
            Some(Address { interface, ip, network: Network::of(ip, bits), is_up })
        };
        Ok(Addresses { family, all: getifaddrs().map_err(failed)?.filter_map(address).collect() })
    }

    /// The interface of this name.
    ///
    /// # Errors
    ///
    /// If there is none, it is down, or it has no address of the family: of IPv6, no link-local one.
    pub fn find(&self, name: &str) -> Result<Interface, Error> {
        let index = nix::net::if_::if_nametoindex(name).map_err(|_| Error::NoInterface(name.to_owned()))?;
        let none = || Error::NoAddress { name: name.to_owned(), family: self.family };
        let found = self.of(name, index).ok_or_else(none)?;
        if self.is_up(name) { Ok(found) } else { Err(Error::Down(name.to_owned())) }
    }

    /// The interface of this name, if it has an address.
    fn of(&self, name: &str, index: u32) -> Option<Interface> {
        let there = self.all.iter().filter(|one| one.interface == name);
        let (own, networks): (Vec<_>, Vec<_>) = there.map(|one| (one.ip, one.network)).unzip();
        let sends = |ip: &&IpAddr| matches!(ip, IpAddr::V4(_)) || is_link_local(ip);
        let address = *own.iter().find(sends)?;
        Some(Interface { name: name.to_owned(), index, address, own, networks })
    }

    /// Whether an interface was set up. It need not have a carrier: hosts may come back.
    fn is_up(&self, name: &str) -> bool {
        self.all.iter().any(|one| one.interface == name && one.is_up)
    }
}

fn is_link_local(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|at| IpAddr::V4(at.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|at| IpAddr::V6(at.ip())))
}

/// How many bits of an address a mask has.
fn bits_of(mask: &SockaddrStorage) -> Option<u8> {
    Some(match ip(mask)? {
        IpAddr::V4(mask) => mask.to_bits().count_ones() as u8,
        IpAddr::V6(mask) => mask.to_bits().count_ones() as u8,
    })
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
