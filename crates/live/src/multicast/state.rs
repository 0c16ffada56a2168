//! What is shown of multicast.

use std::collections::BTreeMap;
use std::net::IpAddr;

use outflow_multicast::{Counts, Flow, InterfaceState, Name, Snapshot};
use outflow_routing::membership::Mode;
use serde::Serialize;
use utoipa::ToSchema;

/// Multicast by IGMP.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastState {
    /// Whether the relay has to do with IGMP: `[multicast]` names interfaces.
    pub on: bool,
    /// Why it does not run, if it does not.
    pub problem: Option<String>,
    /// Who forwards what comes in as a group already: "auto" or "relay".
    pub forward: &'static str,
    /// The number of the kernel's routing table; null for the usual one.
    pub table: Option<u32>,
    /// The interface on which is joined what hosts want.
    pub upstream: Option<MulticastUpstream>,
    /// The interfaces with hosts, by name.
    pub interfaces: Vec<MulticastInterface>,
    /// Packets of groups that come in, and where they are forwarded.
    pub flows: Vec<MulticastFlow>,
    /// What the driver counts, by name; all but `packets`, `upcalls`, `user_packets`, `user_bytes` and `user_copies`
    /// had no effect. Those of `user_` are of packets that are forwarded in user space.
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
    /// Why it is not used, if it is not.
    pub problem: Option<String>,
    /// Who asks hosts what they want.
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
    /// The best level that somebody wants, 1 is the best.
    pub level: u8,
    /// The stream that is this group.
    pub stream: Option<String>,
    /// Who brings it there: "relay", "kernel", or "user": the relay as a router, with all of it as it came. Null if
    /// nobody does, as nothing comes in or it is there already.
    pub served_by: Option<&'static str>,
    /// Why the relay cannot send it, if it cannot.
    pub problem: Option<String>,
}

/// Packets of a source to a group.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct MulticastFlow {
    /// Who sends.
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
    /// Adds what the driver knows.
    pub(super) fn add(&mut self, snapshot: Snapshot) {
        for state in snapshot.interfaces {
            if let Some(interface) = self.interfaces.iter_mut().find(|one| one.name == *state.name) {
                interface.add(&state, &snapshot.flows);
            }
        }
        if let (Some(upstream), Some((_, refused))) = (&mut self.upstream, snapshot.upstream) {
            upstream.refused = refused.into_iter().collect();
        }
        self.flows = snapshot.flows.iter().map(MulticastFlow::from).collect();
        self.counts = counts(&snapshot.counts);
    }
}

impl MulticastInterface {
    fn add(&mut self, state: &InterfaceState, flows: &[Flow]) {
        self.querier = Some(state.querier.to_string());
        self.is_querier = state.is_querier;
        self.hosts = state.usage[1];
        self.refused = state.refused.iter().copied().collect();
        let is_here = |names: &[Name]| names.iter().any(|name| **name == *self.name);
        let served_by = |group: &IpAddr| {
            let mut here = flows.iter().filter(|flow| IpAddr::V4(flow.group) == *group);
            here.find_map(|flow| match () {
                () if is_here(&flow.by_kernel) => Some("kernel"),
                () if is_here(&flow.by_user) => Some("user"),
                () => None,
            })
        };
        let shown = |(group, wanted): &(IpAddr, outflow_multicast::Wanted)| MulticastGroup {
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
        ("user_packets", counts.user.packets),
        ("user_bytes", counts.user.bytes),
        ("user_copies", counts.user.copies),
        ("user_lost", counts.user.lost),
        ("user_malformed", counts.user.malformed),
        ("user_ttl", counts.user.ttl),
        ("user_merged", counts.user.merged),
        ("user_unresolved", counts.user.unresolved),
        ("user_elsewhere", counts.user.elsewhere),
        ("user_too_long", counts.user.too_long),
        ("user_no_room", counts.user.no_room),
        ("user_send_errors", counts.user.send_errors),
    ])
}
