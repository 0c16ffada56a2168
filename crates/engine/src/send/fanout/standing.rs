//! Which way a receiver is reached, and why it is not a faster one.

use outflow_routes::NoHop;

/// How a receiver stands with the kernel's fan-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The kernel serves it, as a member of this cohort of this branch.
    Kernel {
        /// Index of the branch.
        branch: usize,
        /// Index of the cohort in it.
        cohort: usize,
    },
    /// The relay's own system calls do, because of this.
    User(&'static str),
}

pub(super) const OTHER_FAMILY: Standing = Standing::User("its route has a source of another family");
pub(super) const LOOPS: Standing = Standing::User("members of its group on this machine get it, too");
pub(super) const NO_PORT: Standing = Standing::User("the track has no address");
pub(super) const TABLE_FULL: Standing = Standing::User("the kernel path's table is full");

impl From<&NoHop> for Standing {
    fn from(no: &NoHop) -> Self {
        Standing::User(match no {
            NoHop::Unresolved(_) => "the next hop's MAC address is not known yet",
            NoHop::Unreachable(_) => "the next hop does not answer",
            NoHop::Local => "it is on this machine",
            NoHop::Broadcast => "its address is a broadcast one",
            NoHop::Mapped => "its address is one of IPv4, written as one of IPv6",
            NoHop::NotEthernet(_) => "its device is not an Ethernet one",
            NoHop::Encapsulated => "its route encapsulates packets",
            NoHop::Down(_) => "its device is down",
            NoHop::NoRoute(_) => "there is no route to it",
            NoHop::System(_) => "the kernel could not be asked for its route",
        })
    }
}
