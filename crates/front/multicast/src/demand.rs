//! What hosts and neighbours want, as the driver tells it, and what of it is to be sent by the relay. No I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use outflow_multicast::{Event, OwnFlow, Relayed, Snapshot, Wants};
use outflow_packet::Level;
use outflow_routing::membership;

use super::plan::Served;

/// What is wanted, by interface.
#[derive(Debug, Default)]
pub(super) struct Demand {
    interfaces: BTreeMap<String, Below>,
    /// Interfaces with neighbours: the driver says what goes there, hosts included.
    routed: BTreeSet<String>,
    /// What it says.
    own: BTreeMap<IpAddr, OwnFlow>,
}

/// How the relay is to send a group by an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) level: Level,
    /// From which address, if not from that of the interface.
    pub(super) from: Option<Ipv4Addr>,
}

/// What is wanted on an interface.
#[derive(Debug)]
struct Below {
    /// From where the relay sends there.
    address: IpAddr,
    /// Whether it is for this relay to serve: another router may.
    is_querier: bool,
    groups: BTreeMap<IpAddr, Wants>,
}

impl Below {
    /// Nothing is known of it any more.
    fn restart(&mut self) {
        self.is_querier = true;
        self.groups.clear();
    }
}

/// How often hosts began and ceased to want a group; kept while interfaces come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Changes {
    pub(super) joins: u64,
    pub(super) leaves: u64,
}

/// What an event changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Touched {
    Nothing,
    /// A group on an interface, of which this happened.
    Group(String, IpAddr, Changes),
    /// All groups of an interface.
    Interface(String),
    /// A group on all interfaces with neighbours.
    Routed(IpAddr),
    /// It is not known what: events are missing.
    Everything,
}

impl Demand {
    /// An interface takes part, or does with another address; nothing is known of it.
    pub(super) fn add(&mut self, name: &str, address: IpAddr) {
        let below = Below { address, is_querier: true, groups: BTreeMap::new() };
        self.interfaces.insert(name.to_owned(), below);
    }

    /// An interface takes part that has neighbours, whether it has hosts or not.
    pub(super) fn add_routed(&mut self, name: &str) {
        self.routed.insert(name.to_owned());
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.interfaces.remove(name);
        self.routed.remove(name);
    }

    /// Interfaces that take part.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = &String> {
        self.interfaces.keys().chain(&self.routed)
    }

    /// Those of them with neighbours.
    pub(super) fn routed(&self) -> impl Iterator<Item = &String> {
        self.routed.iter()
    }

    pub(super) fn handle(&mut self, event: Event) -> Touched {
        match event {
            Event::Wanted { interface, group, wanted } => {
                let Some(below) = self.interfaces.get_mut(&*interface) else { return Touched::Nothing };
                let is_new = below.groups.insert(group, wanted).is_none();
                let changes = Changes { joins: is_new.into(), leaves: 0 };
                Touched::Group(interface.to_string(), group, changes)
            }
            Event::Gone { interface, group } => {
                let Some(below) = self.interfaces.get_mut(&*interface) else { return Touched::Nothing };
                let was_there = below.groups.remove(&group).is_some();
                let changes = Changes { joins: 0, leaves: was_there.into() };
                Touched::Group(interface.to_string(), group, changes)
            }
            Event::Querier { interface, is_self, .. } => {
                let Some(below) = self.interfaces.get_mut(&*interface) else { return Touched::Nothing };
                below.is_querier = is_self;
                Touched::Interface(interface.to_string())
            }
            // When it is back, its querier begins again.
            Event::InterfaceGone { interface } => {
                let Some(below) = self.interfaces.get_mut(&*interface) else { return Touched::Nothing };
                below.restart();
                Touched::Interface(interface.to_string())
            }
            Event::OwnFlow(flow) => {
                let group = flow.group.into();
                self.own.insert(group, flow);
                Touched::Routed(group)
            }
            Event::Missed(_) => Touched::Everything,
            // Where packets go follows from what is wanted.
            _ => Touched::Nothing,
        }
    }

    /// All is as the driver says.
    pub(super) fn become_like(&mut self, snapshot: Snapshot) {
        self.interfaces.values_mut().for_each(Below::restart);
        self.own = snapshot.own.into_iter().map(|flow| (flow.group.into(), flow)).collect();
        for state in snapshot.interfaces {
            let Some(below) = self.interfaces.get_mut(&*state.name) else { continue };
            below.is_querier = state.is_querier;
            below.groups = state.groups.into_iter().collect();
        }
    }

    /// How the relay is to send a group by an interface, if it is to.
    pub(super) fn sent(&self, interface: &str, served: &Served) -> Option<Sent> {
        if served.comes_by.as_deref() == Some(interface) {
            return None;
        }
        if self.routed.contains(interface) {
            let flow = self.own.get(&served.group.to.ip())?;
            let (_, level) = flow.by.iter().find(|(name, _)| **name == *interface)?;
            return Some(Sent { level: Level::new(level.number())?, from: Some(flow.source) });
        }
        let below = self.interfaces.get(interface).filter(|below| below.is_querier)?;
        let wanted = below.groups.get(&served.group.to.ip())?;
        let is_forwarded = served.relayed == Relayed::Lower && wanted.level == membership::Level::BEST;
        let is_taken = wanted.receives(below.address);
        let level = Level::new(wanted.level.number()).filter(|_| is_taken && !is_forwarded)?;
        Some(Sent { level, from: None })
    }
}

#[cfg(test)]
mod tests {
    use outflow_routing::membership::Mode;

    use super::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);
    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

    fn served(relayed: Relayed, comes_by: Option<&str>) -> Served {
        let group = "udp://239.1.1.1:5000".parse().expect("a group");
        Served { stream: "a".to_owned(), group, relayed, comes_by: comes_by.map(str::to_owned) }
    }

    fn wants(level: u8, mode: Mode, sources: &[Ipv4Addr]) -> Event {
        let level = membership::Level::new(level).expect("not zero");
        let wanted = Wants { mode, sources: sources.iter().copied().map(IpAddr::V4).collect(), level };
        Event::Wanted { interface: "eth1".into(), group: GROUP.into(), wanted }
    }

    fn demand(event: Event) -> Demand {
        let mut demand = Demand::default();
        demand.add("eth1", OWN.into());
        demand.add("eth2", [10, 0, 2, 1].into());
        demand.handle(event);
        demand
    }

    fn sent(event: Event, served: &Served) -> Option<u8> {
        let demand = demand(event);
        assert_eq!(demand.sent("eth2", served), None, "it is not wanted there");
        demand.sent("eth1", served).map(|sent| sent.level.number())
    }

    #[test]
    fn the_relay_sends_what_the_kernel_does_not_forward() {
        let all = |level| wants(level, Mode::Exclude, &[]);
        assert_eq!(sent(all(1), &served(Relayed::All, None)), Some(1));
        assert_eq!(sent(all(3), &served(Relayed::All, None)), Some(3));
        assert_eq!(sent(all(1), &served(Relayed::Lower, Some("eth0"))), None);
        assert_eq!(sent(all(3), &served(Relayed::Lower, Some("eth0"))), Some(3));
        assert_eq!(sent(all(3), &served(Relayed::Lower, Some("eth1"))), None, "it is there");
    }

    #[test]
    fn no_receiver_is_sent_what_it_does_not_take_from_the_relay() {
        let source = Ipv4Addr::new(10, 9, 0, 1);
        let to = served(Relayed::All, None);
        assert_eq!(sent(wants(1, Mode::Include, &[source]), &to), None);
        assert_eq!(sent(wants(1, Mode::Include, &[source, OWN]), &to), Some(1));
        assert_eq!(sent(wants(1, Mode::Exclude, &[OWN]), &to), None);
        assert_eq!(sent(wants(1, Mode::Exclude, &[source]), &to), Some(1));
    }

    #[test]
    fn another_querier_serves_instead() {
        let mut demand = demand(wants(1, Mode::Exclude, &[]));
        let to = served(Relayed::All, None);
        for is_self in [false, true] {
            let querier = IpAddr::V4(OWN);
            let touched = demand.handle(Event::Querier { interface: "eth1".into(), querier, is_self });
            assert_eq!(touched, Touched::Interface("eth1".to_owned()));
            assert_eq!(demand.sent("eth1", &to).is_some(), is_self);
        }
    }

    #[test]
    fn an_interface_that_the_driver_brings_back_begins_again() {
        let mut demand = demand(wants(1, Mode::Exclude, &[]));
        let to = served(Relayed::All, None);
        let querier = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 0));
        demand.handle(Event::Querier { interface: "eth1".into(), querier, is_self: false });
        let touched = demand.handle(Event::InterfaceGone { interface: "eth1".into() });
        assert_eq!(touched, Touched::Interface("eth1".to_owned()));
        assert_eq!(demand.sent("eth1", &to), None, "its hosts are to answer");
        demand.handle(Event::InterfaceBack { interface: "eth1".into(), address: IpAddr::V4(OWN) });
        demand.handle(wants(1, Mode::Exclude, &[]));
        assert_eq!(demand.sent("eth1", &to).map(|sent| sent.level), Level::new(1));
    }

    #[test]
    fn what_is_no_longer_there_is_not_wanted_when_events_are_missing() {
        let mut demand = demand(wants(1, Mode::Exclude, &[]));
        demand.become_like(nothing());
        assert_eq!(demand.sent("eth1", &served(Relayed::All, None)), None);
    }

    fn nothing() -> Snapshot {
        let (interfaces, own, flows, timings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let counts = outflow_multicast::Counts::default();
        let filter_refused = None;
        Snapshot { interfaces, upstream: None, dvmrp: None, own, flows, counts, filter_refused, timings }
    }

    #[test]
    fn where_neighbours_are_the_driver_says_what_goes_there_and_from_where() {
        let mut demand = demand(wants(1, Mode::Exclude, &[]));
        demand.add_routed("eth1");
        demand.add_routed("eth3");
        let to = served(Relayed::All, None);
        assert_eq!(demand.sent("eth1", &to), None, "it counts hosts, too");
        let level = |number| membership::Level::new(number).expect("not zero");
        let flow = |by: &[(&str, u8)]| {
            let by = by.iter().map(|(name, number)| ((*name).into(), level(*number))).collect();
            Event::OwnFlow(OwnFlow { group: GROUP, source: OWN, by })
        };
        assert_eq!(demand.handle(flow(&[("eth1", 2), ("eth3", 3)])), Touched::Routed(GROUP.into()));
        let sent = |number| Some(Sent { level: Level::new(number).expect("not zero"), from: Some(OWN) });
        assert_eq!((demand.sent("eth1", &to), demand.sent("eth3", &to)), (sent(2), sent(3)));
        assert_eq!(demand.sent("eth1", &served(Relayed::All, Some("eth1"))), None, "it is there");
        demand.handle(flow(&[("eth3", 1)]));
        assert_eq!((demand.sent("eth1", &to), demand.sent("eth3", &to)), (None, sent(1)));
        demand.become_like(nothing());
        assert_eq!(demand.sent("eth3", &to), None);
    }

    #[test]
    fn joins_and_leaves_are_counted_once() {
        let mut demand = Demand::default();
        let gone = || Event::Gone { interface: "eth1".into(), group: GROUP.into() };
        assert_eq!(demand.handle(gone()), Touched::Nothing, "the interface does not take part");
        demand.add("eth1", OWN.into());
        let mut counts = |event| match demand.handle(event) {
            Touched::Group(_, _, Changes { joins, leaves }) => (joins, leaves),
            other => panic!("{other:?}"),
        };
        assert_eq!(counts(wants(1, Mode::Exclude, &[])), (1, 0));
        assert_eq!(counts(wants(2, Mode::Exclude, &[])), (0, 0));
        assert_eq!(counts(gone()), (0, 1));
        assert_eq!(counts(gone()), (0, 0));
    }
}
