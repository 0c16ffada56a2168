//! What the configuration says of multicast by IGMP and DVMRP: interfaces with hosts and routers, and which stream
//! is which group.

mod check;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use outflow_config::{
    DatagramSink, Files, Interface, Interfaces, Invalid, Protocol, SinkProtocol, SinkUrl, SourceUrl,
    StreamConfig, Table, Text, section, words,
};
use outflow_media::Network;
use outflow_routing::membership::Family;

section! {
    /// Where hosts join groups by IGMP and MLD and how they are asked, and where routers of DVMRP are.
    pub(crate) struct Multicast {
        /// Interfaces with hosts: the relay is a querier there.
        interfaces: Interfaces = Interfaces::default(),
        /// Interfaces on which routers of DVMRP are, or may be; they may have hosts, too.
        neighbours: Interfaces = Interfaces::default(),
        /// What a hop over these counts.
        metric: usize = 1,
        /// The interface on which is joined what hosts want (RFC 4605).
        upstream: Option<Interface> = None,
        /// Whether hosts join groups of IPv6, too, by MLD.
        mld: Mld = Mld::Auto,
        /// What forwards a stream that comes in as a group already.
        forward: Forward = Forward::Auto,
        /// What leaves out packets where less than all of a group is wanted.
        filter: FilterBy = FilterBy::Auto,
        /// The number of the kernel's multicast routing table; the usual one if not given.
        table: Option<usize> = None,
        /// Between general queries (RFC 3376, section 8.2; RFC 3810, section 9.2).
        query_interval: Duration = Duration::from_secs(125),
        /// How long hosts may take to answer these (section 8.3).
        query_response: Duration = Duration::from_secs(10),
        /// How long they may take after a host has left (section 8.8).
        last_member_interval: Duration = Duration::from_secs(1),
        /// How many packets may be lost in a row, plus one (section 8.1).
        robustness: usize = 2,
        /// Whether a group ends at once when the only host that is known leaves it.
        fast_leave: bool = false,
        /// From where packets may come in at the interfaces, beside their own links.
        sources: Vec<Network> = Vec::new(),
        /// Session descriptions of groups whose packets do not say themselves which layer they are.
        described: Files = Files::default(),
    }
}

words! {
    /// What leaves out packets that say that they belong to better levels than an interface wants.
    pub(crate) enum FilterBy: "a way to filter" {
        /// The kernel, where it can; else user space.
        Auto = "auto",
        /// User space.
        User = "user",
    }
}

words! {
    /// Whether hosts join groups of IPv6 by MLD.
    pub(crate) enum Mld: "a way to do MLD" {
        /// On interfaces that have an address for it, if the kernel routes multicast of IPv6.
        Auto = "auto",
        /// The same; where that cannot be, it is an error.
        On = "on",
        /// Only groups of IPv4.
        Off = "off",
    }
}

words! {
    /// What forwards a stream that comes in as a group already.
    pub(crate) enum Forward: "a way to forward" {
        /// The kernel, where all of it is wanted; the relay, where less is.
        Auto = "auto",
        /// The relay alone: groups that no stream has are not forwarded.
        Relay = "relay",
    }
}

impl Multicast {
    /// Whether the relay has anything to do with IGMP or DVMRP.
    pub(crate) fn is_on(&self) -> bool {
        self.with_hosts_or_neighbours().next().is_some()
    }

    /// Whether multicast of a family is to be routed.
    pub(crate) fn has(&self, family: Family) -> bool {
        self.is_on() && (family == Family::V4 || self.mld != Mld::Off)
    }

    /// Whether it is an error if it cannot be.
    pub(crate) fn needs(&self, family: Family) -> bool {
        family == Family::V4 || self.mld == Mld::On
    }

    /// Interfaces with hosts or neighbours, one that has both twice.
    pub(crate) fn with_hosts_or_neighbours(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.0.iter().chain(&self.neighbours.0)
    }

    /// Whether an interface is one with neighbours.
    pub(crate) fn has_neighbours_on(&self, name: &str) -> bool {
        self.neighbours.0.iter().any(|one| one.0 == name)
    }

    /// Whether an interface takes part.
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.with_hosts_or_neighbours().chain(&self.upstream).any(|one| one.0 == name)
    }
}

section! {
    /// What a stream is to hosts that join groups.
    pub(crate) struct Joined {
        /// The group that it is for hosts that join it on the interfaces of `[multicast]`.
        group: Option<GroupUrl> = None,
    }
}

/// The group of a stream.
pub(crate) fn group(stream: &StreamConfig) -> Option<GroupUrl> {
    stream.section::<Joined>().group
}

/// Whether a stream is what comes in as its group, as it is, by an interface that takes part: the kernel can
/// forward that.
pub(crate) fn is_its_group(stream: &StreamConfig, multicast: &Multicast) -> bool {
    let Some(group) = group(stream) else { return false };
    let source = match (&stream.source, group.protocol) {
        (SourceUrl::Udp(source), SinkProtocol::Udp) | (SourceUrl::Rtp(source), SinkProtocol::Rtp) => source,
        _ => return false,
    };
    source.at == group.to && source.interface.as_ref().is_some_and(|name| multicast.takes(name))
}

/// The group that is a stream, and how it goes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupUrl {
    /// What goes there.
    pub protocol: SinkProtocol,
    /// Group and port.
    pub to: SocketAddr,
    /// Hops that packets may take; 1 if not given.
    pub ttl: Option<u8>,
}

impl GroupUrl {
    /// Where it goes by an interface.
    pub(crate) fn by(&self, interface: &str) -> SinkUrl {
        let GroupUrl { protocol, to, ttl } = *self;
        // What is looped back the kernel would take for packets to be forwarded.
        let (interface, loops) = (Some(interface.to_owned()), false);
        SinkUrl::Datagrams(DatagramSink { protocol, to, ttl, interface, loops })
    }
}

impl FromStr for GroupUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let sink = DatagramSink::parse(text).unwrap_or_else(|| {
            let help = "write udp://GROUP:PORT (MPEG-TS) or rtp://GROUP:PORT";
            Err(Invalid::new(format!("'{text}' is no group to send to"), help))
        })?;
        if sink.interface.is_some() {
            let what = "a group goes to all interfaces on which somebody joins it";
            return Err(Invalid::new(what, "leave interface out, and write it in [multicast] interfaces"));
        }
        if !sink.loops {
            let what = "a group that hosts join never comes back to this machine";
            return Err(Invalid::new(what, "leave loop out"));
        }
        let help = match sink.to {
            SocketAddr::V4(_) => "choose one from 224.0.1.0 to 239.255.255.255, as udp://239.1.1.1:5000",
            SocketAddr::V6(_) => "choose one of a scope beyond the link, as udp://[ff15::1:5]:5000",
        };
        let ip = sink.to.ip();
        if !ip.is_multicast() {
            return Err(Invalid::new(format!("{ip} is no multicast group"), help));
        }
        if is_of_link(ip) {
            let what = format!("{ip} is for the protocols of a link: hosts do not report that they join it");
            return Err(Invalid::new(what, help));
        }
        Ok(GroupUrl { protocol: sink.protocol, to: sink.to, ttl: sink.ttl })
    }
}

/// Whether a group is never forwarded beyond a link (RFC 5771, section 4; RFC 4291, section 2.7).
fn is_of_link(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[..3] == [224, 0, 0],
        IpAddr::V6(group) => group.octets()[1] & 0x0f <= 2,
    }
}

impl fmt::Display for GroupUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupUrl { protocol, to, ttl } = *self;
        DatagramSink { protocol, to, ttl, interface: None, loops: true }.fmt(f)
    }
}

impl Text for GroupUrl {
    const KIND: &'static str = "a group";
    const EXAMPLE: &'static str = "udp://239.2.2.2:6000?ttl=4";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        text.parse()
    }
}

pub(crate) fn protocol() -> Protocol {
    Protocol {
        tables: vec![Table::of::<Multicast>("multicast").at_once(), Table::of_stream::<Joined>()],
        check: Some(check::check),
        ..Protocol::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outflow_config::{Config, Protocols};

    #[test]
    fn groups_are_groups_that_hosts_join() {
        let group = |text: &str| text.parse::<GroupUrl>();
        let good = group("rtp://239.1.1.1:5004?ttl=8").expect("a group");
        assert_eq!(good.by("eth1").to_string(), "rtp://239.1.1.1:5004?ttl=8&interface=eth1&loop=off");
        assert_eq!(good.to_string(), "rtp://239.1.1.1:5004?ttl=8");
        let what = |text: &str| group(text).expect_err(text).to_string();
        assert!(what("udp://10.0.0.1:5000").contains("no multicast group"));
        assert!(what("udp://224.0.0.251:5000").contains("hosts do not report"));
        assert!(what("udp://239.1.1.1:5000?interface=eth1").contains("leave interface out"));
        assert!(group("udp://[ff1e::1]:5000").is_ok());
        assert!(what("udp://[ff02::1]:5000").contains("hosts do not report"));
        assert!(what("udp://[2001:db8::1]:5000").contains("no multicast group"));
        assert!(what("poc://relay:7000/a").contains("udp://GROUP:PORT"));
    }

    #[test]
    fn the_kernel_can_forward_what_comes_in_as_the_group_by_an_interface_that_takes_part() {
        let is_its_group = |source: &str, group: &str| {
            let text = format!(
                "[multicast]\ninterfaces = [\"eth1\"]\nupstream = \"eth0\"\n[streams.a]\nsource = \"{source}\"\n\
                 group = \"{group}\"\n"
            );
            let known = Protocols::from_iter([protocol()]);
            let config = Config::parse(&text, "o.toml", &known).unwrap_or_else(|errors| panic!("{errors}"));
            super::is_its_group(&config.streams["a"], &config.section())
        };
        let udp = "udp://239.1.1.1:5000";
        assert!(is_its_group("udp://239.1.1.1:5000?interface=eth0", udp));
        assert!(is_its_group("udp://239.1.1.1:5000?interface=eth1", udp), "from hosts to others");
        assert!(!is_its_group("udp://239.1.1.1:5000", udp), "by which it comes is not known");
        assert!(!is_its_group("udp://239.1.1.1:5000?interface=eth9", udp));
        assert!(!is_its_group("udp://239.1.1.1:5002?interface=eth0", udp));
        assert!(!is_its_group("rtp://239.1.1.1:5000?interface=eth0", udp));
        assert!(!is_its_group("push", udp));
    }
}
