//! The interface toward other routers: what is wanted below is joined there as by a host (RFC 4605).

use std::net::IpAddr;

use outflow_media::Time;
use outflow_routing::membership::{Host, HostSettings, Interest, Refused, Wants};

use crate::event::Name;
use crate::interfaces::Interface;

/// The members' side of an interface.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Name,
    pub(crate) interface: Interface,
    pub(crate) host: Host,
}

impl Upstream {
    pub(crate) fn new(now: Time, interface: Interface, seed: u64) -> Self {
        let host = Host::new(now, HostSettings::new(interface.link(), seed));
        Upstream { name: interface.name.as_str().into(), interface, host }
    }

    /// Says what is wanted of a group by all interfaces below together.
    pub(crate) fn set(&mut self, now: Time, group: IpAddr, wanted: Option<&Wants>) -> Result<(), Refused> {
        let wish = wanted.map_or(Interest::nothing(), Interest::from);
        self.host.set(now, group, wish)
    }
}
