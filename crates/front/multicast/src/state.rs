//! What is shown of multicast.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use outflow_multicast::{
    Counts, Flow, InterfaceState, Name, NeighbourState, Neighbourhood, OwnFlow, RouteState, Snapshot,
};
use outflow_routing::membership::Mode;
use serde::Serialize;
use utoipa::ToSchema;

/// What hosts speak: of IPv4, and of IPv6.
pub(super) const IGMP: &str = "igmp";
pub(super) const MLD: &str = "mld";

/// Multicast by IGMP, MLD and DVMRP.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastState {
    /// Whether the relay has to do with IGMP and MLD: `[multicast]` names interfaces.
    pub on: bool,
    /// Why it does not run, if it does not.
    pub problem: Option<String>,
    /// Why that of IPv6 does not run, if it does not and is to.
    pub mld_problem: Option<String>,
    /// What forwards a stream that comes in as a group already: "auto" or "relay".
    pub forward: &'static str,
    /// Why the kernel leaves out no packets that belong to better levels than an interface wants, if it does not: user
    /// space does.
    pub filter_problem: Option<String>,
    /// The number of the kernel's routing table; null for the usual one.
    pub table: Option<u32>,
    /// The interface on which is joined what hosts want.
    pub upstream: Option<MulticastUpstream>,
    /// The interfaces with hosts, by name; one where hosts join by IGMP and by MLD is here twice.
    pub interfaces: Vec<MulticastInterface>,
    /// What is known of routers of DVMRP, if there may be some.
    pub dvmrp: Option<MulticastDvmrp>,
    /// Packets of groups that come in, and where they are forwarded.
    pub flows: Vec<MulticastFlow>,
    /// What the driver counts, by name; all but `packets`, `upcalls`, and what was forwarded (`…_packets`, `…_bytes`,
    /// `…_copies`) had no effect. Those of `user_` are of packets that are forwarded in user space, those of `filter_` of
    /// packets that the kernel forwards as far as they are wanted.
    pub counts: BTreeMap<&'static str, u64>,
}

/// The interface on which groups are joined.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastUpstream {
    /// Its name.
    pub name: String,
    /// Why it is not used, if it is not.
    pub problem: Option<String>,
    /// Messages without effect, by reason.
    pub refused: BTreeMap<&'static str, u64>,
}

/// An interface with hosts.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastInterface {
    /// Its name.
    pub name: String,
    /// What hosts speak: "igmp" or "mld".
    pub protocol: &'static str,
    /// Why it is not used, if it is not.
    pub problem: Option<String>,
    /// The router that asks hosts what they want.
    pub querier: Option<String>,
    /// Whether that is this relay. Otherwise it sends and forwards nothing there.
    pub is_querier: bool,
    /// Hosts that are known individually.
    pub hosts: usize,
    /// Times that hosts began to want a group, since the relay started.
    pub joins: u64,
    /// Times that the last host left a group.
    pub leaves: u64,
    /// What is wanted.
    pub groups: Vec<MulticastGroup>,
    /// Messages, or parts of them, without effect, by reason.
    pub refused: BTreeMap<&'static str, u64>,
}

/// A group that is wanted on an interface.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastGroup {
    /// Its address.
    pub group: String,
    /// "exclude": all sources but those listed are wanted; "include": only those.
    pub mode: &'static str,
    /// Sources, as the mode says.
    pub sources: Vec<String>,
    /// The best level that a host wants, 1 is the best.
    pub level: u8,
    /// The stream that is this group.
    pub stream: Option<String>,
    /// What brings it there: "relay", or "kernel", or "user": the relay as a router. The latter two bring all of it as it
    /// came, or leave out packets that say that they belong to better levels. Null if nothing does, as nothing comes in or
    /// it is there already.
    pub served_by: Option<&'static str>,
    /// Why the relay cannot send it, if it cannot.
    pub problem: Option<String>,
}

/// Routers of DVMRP, and what they want of the relay's own.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastDvmrp {
    /// The address that the relay sends from where neighbours are: they know it as a network of its own.
    pub source: Option<String>,
    /// The interfaces with neighbours, by name.
    pub interfaces: Vec<MulticastNeighbours>,
    /// Where sources are.
    pub routes: Vec<MulticastRoute>,
    /// Messages, or parts of them, without effect, by reason.
    pub refused: BTreeMap<&'static str, u64>,
}

/// An interface with routers of DVMRP.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastNeighbours {
    /// Its name.
    pub name: String,
    /// Why it is not used, if it is not.
    pub problem: Option<String>,
    /// The neighbours that are heard.
    pub neighbours: Vec<MulticastNeighbour>,
    /// What the relay sends there itself, for neighbours and hosts.
    pub sent: Vec<MulticastSent>,
}

/// A router of DVMRP.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastNeighbour {
    /// Its address.
    pub address: String,
    /// Whether it hears this relay, too. Otherwise it is told nothing.
    pub two_way: bool,
    /// Whether it says which level it wants. Otherwise it gets the best.
    pub levels: bool,
}

/// A group that the relay sends where neighbours are.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastSent {
    /// Its address.
    pub group: String,
    /// The best level that is wanted, 1 is the best.
    pub level: u8,
    /// The stream that is this group.
    pub stream: Option<String>,
    /// Why the relay cannot send it, if it cannot.
    pub problem: Option<String>,
}

/// Where sources are, as routers of DVMRP tell.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastRoute {
    /// Their network.
    pub network: String,
    /// How far it is; 32 is out of reach.
    pub metric: u8,
    /// By which interface their packets come in.
    pub interface: String,
    /// The router before it; null if the network is the interface's own.
    pub via: Option<String>,
}

/// What follows from a level that a host said.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastReported {
    /// The host.
    pub host: String,
    /// The group.
    pub group: String,
    /// Where the host is a member.
    pub interface: String,
    /// The level that it wants.
    pub level: u8,
    /// The best one that a host there wants, which is sent. Hosts that speak an older version than IGMPv3 or
    /// MLDv2 are not known one by one, and count as wanting the best.
    pub best: u8,
}

/// Packets of a source to a group.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastFlow {
    /// The address that sends.
    pub source: String,
    /// The group.
    pub group: String,
    /// Where they come in.
    pub from: String,
    /// Where the kernel forwards them.
    pub by_kernel: Vec<String>,
    /// Where the relay forwards them as they came, as the kernel has no room for that interface, or for the one where
    /// they come in.
    pub by_user: Vec<String>,
    /// Where those are forwarded that belong to a level, as far as they say that themselves: those that a relay sends by
    /// RTP do.
    pub thinned: Vec<MulticastLevel>,
    /// What does that: "kernel" or "user"; null if nothing is.
    pub thinned_by: Option<&'static str>,
    /// Where the relay sends a lower level instead.
    pub by_relay: Vec<MulticastLevel>,
}

/// A level on an interface.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastLevel {
    /// The interface.
    pub interface: String,
    /// The level.
    pub level: u8,
}

impl MulticastState {
    /// Adds what the driver of a protocol knows.
    pub(super) fn add(&mut self, protocol: &str, snapshot: Snapshot) {
        for state in snapshot.interfaces {
            let mut all = self.interfaces.iter_mut();
            if let Some(interface) = all.find(|one| one.name == *state.name && one.protocol == protocol) {
                interface.add(&state, &snapshot.flows);
            }
        }
        if let (Some(upstream), Some((_, refused))) = (&mut self.upstream, snapshot.upstream) {
            refused.into_iter().for_each(|(why, n)| *upstream.refused.entry(why).or_default() += n);
        }
        if let (Some(dvmrp), Some(known)) = (&mut self.dvmrp, snapshot.dvmrp) {
            dvmrp.add(known, &snapshot.own);
        }
        self.flows.extend(snapshot.flows.iter().map(MulticastFlow::from));
        for (what, n) in counts(&snapshot.counts) {
            *self.counts.entry(what).or_default() += n;
        }
        // The families have one filter.
        self.filter_problem = self.filter_problem.take().or(snapshot.filter_refused);
    }

    /// Leaves out what does without a protocol, as it has no address for it: MLD; or IGMP where hosts speak MLD.
    pub(super) fn leave_out_of_other_family(&mut self) {
        let with_mld = self.interfaces.iter().filter(|one| one.protocol == MLD && one.querier.is_some());
        let with_mld: BTreeSet<_> = with_mld.map(|one| one.name.clone()).collect();
        self.interfaces.retain(|one| {
            let is_due = one.protocol == IGMP && !with_mld.contains(&one.name);
            is_due || one.problem.is_some() || one.querier.is_some()
        });
    }
}

impl MulticastInterface {
    fn add(&mut self, state: &InterfaceState, flows: &[Flow]) {
        self.querier = Some(state.querier.to_string());
        self.is_querier = state.is_querier;
        self.hosts = state.usage[1];
        self.refused = state.refused.iter().copied().collect();
        let is_here = |names: &[Name]| names.iter().any(|name| **name == *self.name);
        let is_thinned = |flow: &Flow| flow.thinned.iter().any(|(name, _)| **name == *self.name);
        let served_by = |group: &IpAddr| {
            let mut here = flows.iter().filter(|flow| flow.group == *group);
            here.find_map(|flow| match () {
                () if is_here(&flow.by_kernel) => Some("kernel"),
                () if is_here(&flow.by_user) => Some("user"),
                () if is_thinned(flow) => Some(thinned_by(flow)),
                () => None,
            })
        };
        let shown = |(group, wanted): &(IpAddr, outflow_multicast::Wants)| MulticastGroup {
            group: group.to_string(),
            mode: match wanted.mode {
                Mode::Include => "include",
                Mode::Exclude => "exclude",
            },
            sources: wanted.sources.iter().map(ToString::to_string).collect(),
            level: wanted.level.number(),
            served_by: served_by(group),
            ..MulticastGroup::default()
        };
        self.groups = state.groups.iter().map(shown).collect();
    }
}

impl MulticastDvmrp {
    fn add(&mut self, known: Neighbourhood, own: &[OwnFlow]) {
        self.source = known.own.map(|own| own.to_string());
        for interface in &mut self.interfaces {
            let neighbours = known.neighbours.iter().filter(|one| *one.interface == *interface.name);
            interface.neighbours = neighbours.map(MulticastNeighbour::from).collect();
            let sent = own.iter().filter_map(|flow| {
                let (_, level) = flow.by.iter().find(|(name, _)| **name == *interface.name)?;
                let (group, level) = (flow.group.to_string(), level.number());
                Some(MulticastSent { group, level, ..MulticastSent::default() })
            });
            interface.sent = sent.collect();
        }
        self.routes = known.routes.iter().map(MulticastRoute::from).collect();
        self.refused = known.refused.into_iter().collect();
    }
}

impl From<&NeighbourState> for MulticastNeighbour {
    fn from(one: &NeighbourState) -> Self {
        let (two_way, levels) = (one.is_two_way, one.has_levels);
        MulticastNeighbour { address: one.address.to_string(), two_way, levels }
    }
}

impl From<&RouteState> for MulticastRoute {
    fn from(route: &RouteState) -> Self {
        MulticastRoute {
            network: route.network.to_string(),
            metric: route.metric,
            interface: route.interface.to_string(),
            via: route.via.map(|via| via.to_string()),
        }
    }
}

fn thinned_by(flow: &Flow) -> &'static str {
    if flow.is_filtered { "kernel" } else { "user" }
}

impl From<&Flow> for MulticastFlow {
    fn from(flow: &Flow) -> Self {
        let level = |(interface, level): &(Name, outflow_routing::Level)| MulticastLevel {
            interface: interface.to_string(),
            level: level.number(),
        };
        MulticastFlow {
            source: flow.source.to_string(),
            group: flow.group.to_string(),
            from: flow.from.to_string(),
            by_kernel: flow.by_kernel.iter().map(ToString::to_string).collect(),
            by_user: flow.by_user.iter().map(ToString::to_string).collect(),
            thinned: flow.thinned.iter().map(level).collect(),
            thinned_by: (!flow.thinned.is_empty()).then(|| thinned_by(flow)),
            by_relay: flow.by_relay.iter().map(level).collect(),
        }
    }
}

fn counts(counts: &Counts) -> BTreeMap<&'static str, u64> {
    BTreeMap::from([
        ("packets", counts.packets),
        ("elsewhere", counts.elsewhere),
        ("upcalls", counts.upcalls),
        ("upcalls_unknown", counts.upcalls_unknown),
        ("read_errors", counts.read_errors),
        ("send_errors", counts.send_errors),
        ("flows_refused", counts.flows_refused),
        ("flows_misplaced", counts.flows_misplaced),
        ("flows_doubled", counts.flows_doubled),
        ("kernel_errors", counts.kernel_errors),
        ("upstream_refused", counts.upstream_refused),
        ("interfaces_refused", counts.interfaces_refused),
        ("events_missed", counts.events_missed),
        ("filter_packets", counts.filter.packets),
        ("filter_bytes", counts.filter.bytes),
        ("filter_copies", counts.filter.copies),
        ("filter_thinned", counts.filter.thinned),
        ("filter_failed", counts.filter.failed),
        ("filter_handed_over", counts.filter.handed_over),
        ("filter_unfit", counts.filter.unfit),
        ("user_packets", counts.user.packets),
        ("user_bytes", counts.user.bytes),
        ("user_copies", counts.user.copies),
        ("user_lost", counts.user.lost),
        ("user_malformed", counts.user.malformed),
        ("user_ttl", counts.user.ttl),
        ("user_merged", counts.user.merged),
        ("user_unresolved", counts.user.unresolved),
        ("user_elsewhere", counts.user.elsewhere),
        ("user_thinned", counts.user.thinned),
        ("user_too_long", counts.user.too_long),
        ("user_no_room", counts.user.no_room),
        ("user_send_errors", counts.user.send_errors),
    ])
}
