//! What can fail, and what to do about it.

use std::io;
use std::net::IpAddr;

use outflow_routing::membership::Family;

use crate::limits::PORTS_MAX;

/// Where opening failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Socket,
    Table,
    Init,
    Options,
}

/// Why the driver cannot do something. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Privileges lack.
    #[error(
        "multicast routing needs CAP_NET_ADMIN and CAP_NET_RAW: run as root, or give the program both \
         (`setcap cap_net_admin,cap_net_raw+ep PROGRAM`)"
    )]
    NotPermitted,
    /// Another program has the routing table.
    #[error(
        "another program routes multicast of {} here (as pimd, pim6sd, mrouted, igmpproxy or smcroute do; \
         `ss -lwp` shows what has a raw socket of {}): stop it, or use a table of your own and lead \
         interfaces to it with `{} add iif NAME table NUMBER`",
        name(*.0), protocol(*.0), rule(*.0)
    )]
    Taken(Family),
    /// The kernel lacks something.
    #[error("the kernel has no {0}: use one that was built with it")]
    Kernel(&'static str),
    /// A table's number is none.
    #[error("{0} is no number of a multicast routing table: use one from 1 to 999999999")]
    TableNumber(u32),
    /// Anything else, when it began.
    #[error("cannot open the multicast routing socket: {0}")]
    Open(#[source] io::Error),
    /// There is no such interface.
    #[error("there is no interface {0}: `ip link` shows those that there are")]
    NoInterface(String),
    /// It has no address.
    #[error("the interface {name} has no {}: add one (`ip address add`)", needed(*family))]
    NoAddress {
        /// Its name.
        name: String,
        /// Of which family.
        family: Family,
    },
    /// It is down.
    #[error("the interface {0} is down: set it up (`ip link set {0} up`)")]
    Down(String),
    /// They cannot be listed.
    #[error("cannot list the interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// It takes part already.
    #[error("the interface {0} takes part already: leave it out the second time")]
    Twice(String),
    /// It does not take part.
    #[error("the interface {0} does not take part: add it before")]
    Unknown(String),
    /// What is wanted is joined above as by a host, or routed as among routers.
    #[error(
        "{upstream} is where groups are joined as by a host (RFC 4605), and {neighbours} has routers of DVMRP \
         as neighbours: leave one of them out"
    )]
    UpstreamAndNeighbours {
        /// The interface upstream.
        upstream: String,
        /// One with neighbours.
        neighbours: String,
    },
    /// There are too many.
    #[error("multicast is routed among {PORTS_MAX} interfaces at most: remove one before adding {0}")]
    TooManyInterfaces(String),
    /// The kernel does not take it.
    #[error(
        "the kernel does not route multicast by the interface {name}: {error}; is it up, with MULTICAST?"
    )]
    AddInterface {
        /// Its name.
        name: String,
        /// What the kernel says.
        #[source]
        error: io::Error,
    },
    /// Packets cannot be read there, which the kernel's table has no room for.
    #[error(
        "cannot read packets of the interface {name}, which is more than the kernel routes multicast among: \
         {error}{}",
        hint(error)
    )]
    Watch {
        /// Its name.
        name: String,
        /// What the kernel says.
        #[source]
        error: io::Error,
    },
    /// The groups of routers cannot be joined there.
    #[error("cannot join the groups of routers on {name}: {error}{}", hint(error))]
    Join {
        /// Its name.
        name: String,
        /// What the kernel says.
        #[source]
        error: io::Error,
    },
    /// Routers of DVMRP have addresses of IPv4.
    #[error("DVMRP routes multicast of IPv4 alone: leave neighbours out for IPv6")]
    Dvmrp,
    /// A host that says a level is not known as one that receives it.
    #[error(
        "{host} is not known as a member of {group}: join the group first, with IGMP version 3 or MLD version 2, and say \
         the level then"
    )]
    NoMember {
        /// The host.
        host: IpAddr,
        /// The group.
        group: IpAddr,
    },
    /// A host says too much.
    #[error("{0} says more than is listened to: say less, or try again in a second")]
    TooOften(IpAddr),
    /// The task is gone.
    #[error("the multicast driver has ended, as its runtime has: start it again")]
    Ended,
}

const fn name(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

const fn protocol(family: Family) -> &'static str {
    match family {
        Family::V4 => "IGMP",
        Family::V6 => "ICMPv6",
    }
}

const fn rule(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip mrule",
        Family::V6 => "ip -6 mrule",
    }
}

/// The address that an interface needs.
const fn needed(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4 address, which IGMP needs",
        Family::V6 => "link-local IPv6 address, which MLD needs",
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOBUFS) => "; raise net.ipv4.igmp_max_memberships to 2 or more",
        Some(libc::ENODEV) => "; it is gone",
        Some(libc::EMFILE) => {
            "; raise the limit of open files (ulimit -n, LimitNOFILE=): three an interface suffice"
        }
        _ => "",
    }
}

impl Error {
    pub(crate) fn open(step: Step, (family, table): (Family, Option<u32>), error: io::Error) -> Self {
        match (step, error.raw_os_error(), table) {
            (_, Some(libc::EPERM | libc::EACCES), _) => Error::NotPermitted,
            (Step::Init, Some(libc::EADDRINUSE), _) => Error::Taken(family),
            (Step::Table, Some(libc::EINVAL), Some(table)) => Error::TableNumber(table),
            (Step::Table, Some(libc::ENOPROTOOPT), _) => Error::Kernel(match family {
                Family::V4 => "tables of multicast routing (CONFIG_IP_MROUTE_MULTIPLE_TABLES)",
                Family::V6 => "tables of multicast routing of IPv6 (CONFIG_IPV6_MROUTE_MULTIPLE_TABLES)",
            }),
            (Step::Init, Some(libc::ENOPROTOOPT | libc::EOPNOTSUPP), _) => Error::Kernel(match family {
                Family::V4 => "multicast routing (CONFIG_IP_MROUTE)",
                Family::V6 => "multicast routing of IPv6 (CONFIG_IPV6_MROUTE)",
            }),
            _ => Error::Open(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_opening_say_what_to_do() {
        let said = |step, number| {
            Error::open(step, (Family::V4, Some(7)), io::Error::from_raw_os_error(number)).to_string()
        };
        assert!(said(Step::Socket, libc::EPERM).contains("setcap"));
        assert!(said(Step::Init, libc::EADDRINUSE).contains("stop it"));
        assert!(said(Step::Table, libc::EINVAL).starts_with("7 is no number"));
        assert!(said(Step::Init, libc::ENOPROTOOPT).contains("CONFIG_IP_MROUTE"));
        assert!(said(Step::Options, libc::ENOMEM).contains("cannot open"));
    }
}
