//! Multicast by IGMP and DVMRP: interfaces with hosts and routers, and which stream is which group.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::str::FromStr;
use std::time::Duration;

use crate::address::interface;
use crate::section::section;
use crate::value::{Fault, Given, Value, list, words};
use crate::{DatagramSink, Invalid, SinkProtocol, SinkUrl, SourceUrl, StreamConfig};

section! {
    /// Where hosts join groups by IGMP and how they are asked, and where routers of DVMRP are.
    pub struct Multicast {
        /// Interfaces with hosts: the relay is a querier there.
        interfaces: Interfaces = Interfaces::default(),
        /// Interfaces on which routers of DVMRP are, or may be; they may have hosts, too.
        neighbours: Interfaces = Interfaces::default(),
        /// What a hop over these counts.
        metric: usize = 1,
        /// The interface on which is joined what hosts want (RFC 4605).
        upstream: Option<Interface> = None,
        /// Who forwards what comes in as a group already.
        forward: Forward = Forward::Auto,
        /// The number of the kernel's multicast routing table; the usual one if not given.
        table: Option<usize> = None,
        /// Between general queries (RFC 3376, section 8.2).
        query_interval: Duration = Duration::from_secs(125),
        /// How long hosts may take to answer these (section 8.3).
        query_response: Duration = Duration::from_secs(10),
        /// How long they may take when somebody has left (section 8.8).
        last_member_interval: Duration = Duration::from_secs(1),
        /// How many packets may be lost in a row, plus one (section 8.1).
        robustness: usize = 2,
        /// Whether a group ends at once when the only host that is known leaves it.
        fast_leave: bool = false,
        /// From where packets may come in at the interfaces, beside their own links.
        sources: Prefixes = Prefixes::default(),
    }
}

words! {
    /// Who forwards what comes in as a group already.
    pub enum Forward: "a way to forward" {
        /// The kernel, where all of it is wanted; the relay, where less is.
        Auto = "auto",
        /// The relay alone: groups that no stream has are not forwarded.
        Relay = "relay",
    }
}

impl Multicast {
    /// Whether the relay has anything to do with IGMP or DVMRP.
    pub fn is_on(&self) -> bool {
        self.with_hosts_or_neighbours().next().is_some()
    }

    /// Interfaces with hosts or neighbours, one that has both twice.
    pub fn with_hosts_or_neighbours(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.0.iter().chain(&self.neighbours.0)
    }

    /// Whether an interface is one with neighbours.
    pub fn has_neighbours_on(&self, name: &str) -> bool {
        self.neighbours.0.iter().any(|one| one.0 == name)
    }

    /// Whether an interface takes part.
    pub fn has(&self, name: &str) -> bool {
        self.with_hosts_or_neighbours().chain(&self.upstream).any(|one| one.0 == name)
    }
}

impl StreamConfig {
    /// Whether the stream is what comes in as its group, as it is, by an interface that takes part: the kernel
    /// can forward that.
    pub fn is_its_group(&self, multicast: &Multicast) -> bool {
        let Some(group) = &self.group else { return false };
        let source = match (&self.source, group.protocol) {
            (SourceUrl::Udp(source), SinkProtocol::Udp) | (SourceUrl::Rtp(source), SinkProtocol::Rtp) => {
                source
            }
            _ => return false,
        };
        source.at == SocketAddr::V4(group.to)
            && source.interface.as_ref().is_some_and(|name| multicast.has(name))
    }
}

/// The name of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface(pub String);

impl Interface {
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        interface(text).map(Interface)
    }
}

/// Names of interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interfaces(pub Vec<Interface>);

impl Value for Interfaces {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        list(given, "a list of interfaces", "[\"eth1\"]").map(Interfaces)
    }
}

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// One of them.
    pub address: Ipv4Addr,
    /// How many bits are alike, 32 at most.
    pub bits: u8,
}

impl Prefix {
    /// How many addresses begin so, and the first of them.
    fn span(self) -> (u64, u32) {
        let count = 1 << (32 - u32::from(self.bits));
        (count, (u64::from(u32::from(self.address)) & !(count - 1)) as u32)
    }

    /// Whether an address begins so.
    pub fn has(self, address: Ipv4Addr) -> bool {
        let (count, first) = self.span();
        address.to_bits().checked_sub(first).is_some_and(|above| u64::from(above) < count)
    }

    /// How many addresses begin so.
    pub fn count(self) -> u64 {
        self.span().0
    }

    /// One of these, counted from 0; behind the last one come the first ones again.
    pub fn nth(self, index: u64) -> Ipv4Addr {
        let (count, first) = self.span();
        Ipv4Addr::from_bits(first + (index % count) as u32)
    }
}

impl FromStr for Prefix {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
        match (address.parse(), bits.parse()) {
            (Ok(address), Ok(bits)) if bits <= 32 => Ok(Prefix { address, bits }),
            _ => {
                let what = format!("'{text}' is no range of IPv4 addresses");
                Err(Invalid::new(what, "write it like \"10.9.0.0/16\""))
            }
        }
    }
}

/// Ranges of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prefixes(pub Vec<Prefix>);

impl Value for Prefixes {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        list(given, "a list of addresses", "[\"10.9.0.0/16\"]").map(Prefixes)
    }
}

/// The group that is a stream, and how it goes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupUrl {
    /// What goes there.
    pub protocol: SinkProtocol,
    /// Group and port.
    pub to: SocketAddrV4,
    /// Hops that packets may take; 1 if not given.
    pub ttl: Option<u8>,
}

impl GroupUrl {
    /// Where it goes by an interface.
    pub fn by(&self, interface: &str) -> SinkUrl {
        let GroupUrl { protocol, to, ttl } = *self;
        let interface = Some(interface.to_owned());
        SinkUrl::Datagrams(DatagramSink { protocol, to: SocketAddr::V4(to), ttl, interface })
    }
}

impl FromStr for GroupUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let sink = match text.parse()? {
            SinkUrl::Datagrams(sink) => sink,
            SinkUrl::Poc(_) => {
                let what = "multicast is not for the partial-order transport";
                return Err(Invalid::new(what, "write udp://GROUP:PORT (MPEG-TS) or rtp://GROUP:PORT"));
            }
        };
        if sink.interface.is_some() {
            let what = "a group goes to all interfaces on which somebody joins it";
            return Err(Invalid::new(what, "leave interface out, and write it in [multicast] interfaces"));
        }
        let help = "choose one from 224.0.1.0 to 239.255.255.255, as udp://239.1.1.1:5000";
        match sink.to {
            SocketAddr::V4(to) if !to.ip().is_multicast() => {
                Err(Invalid::new(format!("{} is no multicast group", to.ip()), help))
            }
            SocketAddr::V4(to) if to.ip().octets()[..3] == [224, 0, 0] => {
                let what =
                    format!("{} is for the protocols of a link: nobody says that he joins it", to.ip());
                Err(Invalid::new(what, help))
            }
            SocketAddr::V4(to) => Ok(GroupUrl { protocol: sink.protocol, to, ttl: sink.ttl }),
            SocketAddr::V6(_) => Err(Invalid::new("only IPv4 groups are joined (there is no MLD yet)", help)),
        }
    }
}

impl fmt::Display for GroupUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupUrl { protocol, to, ttl } = *self;
        DatagramSink { protocol, to: SocketAddr::V4(to), ttl, interface: None }.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn groups_are_groups_that_hosts_join() {
        let group = |text: &str| text.parse::<GroupUrl>();
        let good = group("rtp://239.1.1.1:5004?ttl=8").expect("a group");
        assert_eq!(good.by("eth1").to_string(), "rtp://239.1.1.1:5004?ttl=8&interface=eth1");
        assert_eq!(good.to_string(), "rtp://239.1.1.1:5004?ttl=8");
        let what = |text: &str| group(text).expect_err(text).to_string();
        assert!(what("udp://10.0.0.1:5000").contains("no multicast group"));
        assert!(what("udp://224.0.0.251:5000").contains("nobody says"));
        assert!(what("udp://239.1.1.1:5000?interface=eth1").contains("leave interface out"));
        assert!(what("udp://[ff0e::1]:5000").contains("only IPv4"));
        assert!(what("poc://relay:7000/a").contains("udp://GROUP:PORT"));
    }

    #[test]
    fn ranges_of_addresses_have_bits() {
        let prefix = |text: &str| text.parse::<Prefix>();
        assert_eq!(prefix("10.9.0.0/16"), Ok(Prefix { address: Ipv4Addr::new(10, 9, 0, 0), bits: 16 }));
        assert_eq!(prefix("10.9.0.7").map(|one| one.bits), Ok(32));
        let groups = prefix("232.1.2.9/30").expect("a range");
        let all: Vec<_> = (0..5).map(|n| groups.nth(n).octets()[3]).collect();
        assert_eq!((groups.count(), all), (4, vec![8, 9, 10, 11, 8]));
        let has = |last| groups.has(Ipv4Addr::new(232, 1, 2, last));
        assert_eq!([7, 8, 11, 12].map(has), [false, true, true, false]);
        let all = prefix("0.0.0.0/0").expect("a range");
        assert!(all.has(Ipv4Addr::BROADCAST) && all.nth(u64::from(u32::MAX)) == Ipv4Addr::BROADCAST);
        for bad in ["10.9.0.0/33", "10.9/16", "::/0", ""] {
            assert!(prefix(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_kernel_can_forward_what_comes_in_as_the_group_by_an_interface_that_takes_part() {
        let is_its_group = |source: &str, group: &str| {
            let text = format!(
                "[multicast]\ninterfaces = [\"eth1\"]\nupstream = \"eth0\"\n[streams.a]\nsource = \"{source}\"\n\
                 group = \"{group}\"\n"
            );
            let config = Config::parse(&text, "o.toml").unwrap_or_else(|errors| panic!("{errors}"));
            config.streams["a"].is_its_group(&config.multicast)
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
