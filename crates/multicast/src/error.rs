//! What can fail, and what to do about it.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

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
        "another program routes multicast here (as pimd, mrouted, igmpproxy or smcroute do; `ss -lwp` shows \
         what has a raw IGMP socket): stop it, or use a table of your own and lead interfaces to it with \
         `ip mrule add iif NAME table NUMBER`"
    )]
    Taken,
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
    #[error("the interface {0} has no IPv4 address, which IGMP needs: add one (`ip address add`)")]
    NoAddress(String),
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
    /// An address of the wrong family.
    #[error("{0} is an IPv6 address: MLD is not driven yet, leave it out")]
    Family(IpAddr),
    /// A host that says a level is not known as one that receives it.
    #[error(
        "{host} is not known as a member of {group}: join the group first, with IGMP version 3, and say the level \
         then"
    )]
    NoMember {
        /// The host.
        host: Ipv4Addr,
        /// The group.
        group: Ipv4Addr,
    },
    /// A host says too much.
    #[error("{0} says more than is listened to: say less, or try again in a second")]
    TooOften(Ipv4Addr),
    /// The task is gone.
    #[error("the multicast driver has ended, as its runtime has: start it again")]
    Ended,
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
    pub(crate) fn open(step: Step, table: Option<u32>, error: io::Error) -> Self {
        match (step, error.raw_os_error(), table) {
            (_, Some(libc::EPERM | libc::EACCES), _) => Error::NotPermitted,
            (Step::Init, Some(libc::EADDRINUSE), _) => Error::Taken,
            (Step::Table, Some(libc::EINVAL), Some(table)) => Error::TableNumber(table),
            (Step::Table, Some(libc::ENOPROTOOPT), _) => {
                Error::Kernel("tables of multicast routing (CONFIG_IP_MROUTE_MULTIPLE_TABLES)")
            }
            (Step::Init, Some(libc::ENOPROTOOPT | libc::EOPNOTSUPP), _) => {
                Error::Kernel("multicast routing (CONFIG_IP_MROUTE)")
            }
            _ => Error::Open(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_opening_say_what_to_do() {
        let said =
            |step, number| Error::open(step, Some(7), io::Error::from_raw_os_error(number)).to_string();
        assert!(said(Step::Socket, libc::EPERM).contains("setcap"));
        assert!(said(Step::Init, libc::EADDRINUSE).contains("stop it"));
        assert!(said(Step::Table, libc::EINVAL).starts_with("7 is no number"));
        assert!(said(Step::Init, libc::ENOPROTOOPT).contains("CONFIG_IP_MROUTE"));
        assert!(said(Step::Options, libc::ENOMEM).contains("cannot open"));
    }
}
