//! What the driver tells: changes as they happen, and all of it when asked.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use outflow_kernel::thin;
use outflow_media::Prefix;
use outflow_routing::membership::{Level, Wants};
use tokio::sync::mpsc;

use crate::forwarder::UserCounts;
use crate::limits::EVENTS_MAX;
use crate::timing::Timing;

/// The name of an interface.
pub type Name = Arc<str>;

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A group is wanted on an interface, or wanted otherwise than before.
    Wanted {
        /// Where.
        interface: Name,
        /// The group.
        group: IpAddr,
        /// What of it.
        wanted: Wants,
    },
    /// A group is no longer wanted on an interface.
    Gone {
        /// Where.
        interface: Name,
        /// The group.
        group: IpAddr,
    },
    /// Another router is the querier of an interface, or this one. Only the querier forwards there.
    Querier {
        /// Where.
        interface: Name,
        /// Its address.
        querier: IpAddr,
        /// Whether it is this router.
        is_self: bool,
    },
    /// Packets of a source come in, or go elsewhere than before.
    Flow(Flow),
    /// What the relay sends itself is wanted elsewhere than before among routers of DVMRP.
    OwnFlow(OwnFlow),
    /// Nothing comes from a source any more.
    FlowGone {
        /// The source.
        source: IpAddr,
        /// Its group.
        group: IpAddr,
    },
    /// A router of DVMRP and this one hear each other.
    NeighbourUp {
        /// Where.
        interface: Name,
        /// Its address.
        neighbour: IpAddr,
    },
    /// That is over.
    NeighbourDown {
        /// Where.
        interface: Name,
        /// Its address.
        neighbour: IpAddr,
    },
    /// It was restarted, and has forgotten all.
    NeighbourRestarted {
        /// Where.
        interface: Name,
        /// Its address.
        neighbour: IpAddr,
    },
    /// An interface is gone, down or without address: all groups there are gone. When it is back, it takes
    /// part again.
    InterfaceGone {
        /// Which.
        interface: Name,
    },
    /// It is back, or has another address.
    InterfaceBack {
        /// Which.
        interface: Name,
        /// Its address.
        address: IpAddr,
    },
    /// This many events were left out, as they were not read in time: ask for a snapshot.
    Missed(u64),
}

/// Where packets of a source and a group go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// The source.
    pub source: IpAddr,
    /// Its group.
    pub group: IpAddr,
    /// Where they come in.
    pub from: Name,
    /// Where the kernel forwards them, whole.
    pub by_kernel: Vec<Name>,
    /// Where they are forwarded in user space, whole, as the kernel's table has no room for that interface, or for
    /// the one where they come in.
    pub by_user: Vec<Name>,
    /// Where they are forwarded without those that do not belong to this level, as far as they say that themselves
    /// ([`Mark`](outflow_packet::gmc::Mark)); others go there, too.
    pub thinned: Vec<(Name, Level)>,
    /// The kernel does that, by the filter; else user space.
    pub is_filtered: bool,
    /// Where they are wanted at a lower level that the relay is to serve, as it said ([`Relayed`](crate::Relayed)).
    pub by_relay: Vec<(Name, Level)>,
}

/// Where the relay is to send a group of its own ([`Relayed`](crate::Relayed)) because of neighbours: on interfaces
/// with neighbours, for all that want it there. Elsewhere, it follows from what hosts want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFlow {
    /// The group.
    pub group: Ipv4Addr,
    /// The address that it is to be sent from: neighbours know the way to it.
    pub source: Ipv4Addr,
    /// By which interfaces, and the best level that is wanted there; nowhere if empty.
    pub by: Vec<(Name, Level)>,
}

/// How often something had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Packets of IGMP or MLD that were read.
    pub packets: u64,
    /// Of these, those that came in by an interface that does not take part.
    pub elsewhere: u64,
    /// Upcalls that were read: of the kernel, or of user space, that packets come in of which nothing was set.
    pub upcalls: u64,
    /// Of these, those of a kind that was not asked for, or of an interface that is gone.
    pub upcalls_unknown: u64,
    /// Packets that could not be read.
    pub read_errors: u64,
    /// Packets that could not be sent.
    pub send_errors: u64,
    /// Flows that are more than [`FLOWS_MAX`](crate::limits::FLOWS_MAX).
    pub flows_refused: u64,
    /// Flows of a source that may not be where its packets come in.
    pub flows_misplaced: u64,
    /// Upcalls of packets that came in by another interface than those before, which still come.
    pub flows_doubled: u64,
    /// Flows that the kernel did not take.
    pub kernel_errors: u64,
    /// Groups that could not be joined upstream, as they are too many.
    pub upstream_refused: u64,
    /// Interfaces that were back, but did not take part again; it is tried again.
    pub interfaces_refused: u64,
    /// Events that were left out.
    pub events_missed: u64,
    /// Packets that are forwarded in user space.
    pub user: UserCounts,
    /// Packets that the kernel's filter has forwarded.
    pub filter: thin::Counts,
}

/// An interface with hosts.
#[derive(Debug, Clone)]
pub struct InterfaceState {
    /// Its name.
    pub name: Name,
    /// The querier's address.
    pub querier: IpAddr,
    /// Whether it is this router.
    pub is_querier: bool,
    /// What is wanted there.
    pub groups: Vec<(IpAddr, Wants)>,
    /// Groups, hosts and memberships that are remembered.
    pub usage: [usize; 3],
    /// Why messages had no effect, and how often, where any had none.
    pub refused: Vec<(&'static str, u64)>,
}

/// What follows from a level that was said ([`Multicast::say_level`](crate::Multicast::say_level)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelReported {
    /// Where the host is.
    pub interface: Name,
    /// The best level that a host there wants.
    pub best: Level,
}

/// A router of DVMRP that is heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeighbourState {
    /// Where.
    pub interface: Name,
    /// Its address.
    pub address: Ipv4Addr,
    /// Whether it hears this one, too.
    pub is_two_way: bool,
    /// Whether it understands levels.
    pub has_levels: bool,
}

/// A route of DVMRP: where sources are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteState {
    /// The network.
    pub network: Prefix,
    /// How far it is.
    pub metric: u8,
    /// Where its data comes in.
    pub interface: Name,
    /// The neighbour before it; none if the network is on the interface itself.
    pub via: Option<Ipv4Addr>,
}

/// What is known by DVMRP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbourhood {
    /// The neighbours that are heard, in order.
    pub neighbours: Vec<NeighbourState>,
    /// The address that the relay is a source by, if it sends or receives groups.
    pub own: Option<Ipv4Addr>,
    /// The best routes, in order.
    pub routes: Vec<RouteState>,
    /// Why messages and data had no effect, and how often, where any had none.
    pub refused: Vec<(&'static str, u64)>,
}

/// All that the driver knows.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The interfaces with hosts.
    pub interfaces: Vec<InterfaceState>,
    /// The interface on which groups are joined, and why messages there had no effect.
    pub upstream: Option<(Name, Vec<(&'static str, u64)>)>,
    /// What is known by DVMRP, if it runs.
    pub dvmrp: Option<Neighbourhood>,
    /// Where the relay is to send because of neighbours.
    pub own: Vec<OwnFlow>,
    /// Where packets go.
    pub flows: Vec<Flow>,
    /// What had no effect.
    pub counts: Counts,
    /// Why the kernel leaves out no packets of which less is wanted, if it does not: user space does.
    pub filter_refused: Option<String>,
    /// How long things took since the last snapshot, if that is noted
    /// ([`Options::timings`](crate::Options)); the last [`TIMINGS_MAX`](crate::limits::TIMINGS_MAX).
    pub timings: Vec<Timing>,
}

/// Where events go to: what finds no place is counted, and told of when there is one.
#[derive(Debug)]
pub(crate) struct Events {
    sender: mpsc::Sender<Event>,
    unsaid: u64,
    pub(crate) missed: u64,
}

impl Events {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        (Events { sender, unsaid: 0, missed: 0 }, receiver)
    }

    pub(crate) fn tell(&mut self, event: Event) {
        if self.unsaid > 0 && self.sender.try_send(Event::Missed(self.unsaid)).is_ok() {
            self.unsaid = 0;
        }
        // Behind one that was left out nothing goes before that is said.
        let is_said = self.unsaid == 0 && self.sender.try_send(event).is_ok();
        if !is_said && !self.sender.is_closed() {
            self.unsaid += 1;
            self.missed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_reads_too_late_is_told_how_much_is_missed() {
        let (mut events, mut receiver) = Events::new();
        let gone = Event::Gone { interface: "a".into(), group: IpAddr::from([239, 0, 0, 1]) };
        for _ in 0..EVENTS_MAX + 5 {
            events.tell(gone.clone());
        }
        assert_eq!(events.missed, 5);
        for _ in 0..EVENTS_MAX {
            assert_eq!(receiver.try_recv(), Ok(gone.clone()));
        }
        assert!(receiver.try_recv().is_err());
        events.tell(gone.clone());
        assert_eq!(receiver.try_recv(), Ok(Event::Missed(5)));
        assert_eq!(receiver.try_recv(), Ok(gone));
    }
}
