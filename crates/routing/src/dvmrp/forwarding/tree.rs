//! What is known of one flow.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use outflow_media::{Backoff, Prefix, Time};

use super::flow::Outgoing;
use crate::demand::Level;
use crate::dvmrp::routes::{RouteTable, Via};
use crate::dvmrp::{InterfaceId, Peer, earliest};

/// What a dependent neighbour said. One that said nothing wants the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Below {
    Pruned { until: Time },
    Wants { level: Level, until: Time, sequence: u32 },
}

impl Below {
    const fn until(self) -> Time {
        match self {
            Below::Pruned { until } | Below::Wants { until, .. } => until,
        }
    }
}

/// What the neighbour above was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Above {
    /// Nothing: it serves us with the best.
    Nothing,
    /// It may remember something from the last time that we depended on it.
    Unknown,
    /// That nothing is wanted until then; if data comes, again after a while.
    Pruned { until: Time, again: Time, backoff: Backoff },
    /// That it is wanted after all, which it has not acknowledged.
    Graft { again: Time, backoff: Backoff },
    /// A level. Said again if it is not acknowledged, and later so that it is not forgotten.
    Level { level: Level, sequence: u32, is_acked: bool, again: Time, backoff: Backoff },
}

#[derive(Debug)]
pub(super) struct Tree {
    /// The source that was heard last, for which prunes and grafts are sent.
    pub(super) host: Ipv4Addr,
    pub(super) upstream: Via,
    /// Whether a route leads there. Without one, it is only kept for what neighbours may remember of it.
    pub(super) is_routed: bool,
    /// Where its first data came from, by which it is counted.
    pub(super) first_upstream: InterfaceId,
    pub(super) below: BTreeMap<Peer, Below>,
    pub(super) above: Above,
    /// Neighbours that were sent a prune, and may remember it so long, even if they are not above any more: if
    /// they are again, it has to be known that they need a graft.
    pub(super) pruned_at: BTreeMap<Peer, Time>,
    pub(super) outgoing: Vec<Outgoing>,
    pub(super) idle_at: Time,
    /// When it is to be looked after.
    pub(super) timer: Option<Time>,
}

impl Tree {
    pub(super) const fn new(host: Ipv4Addr, upstream: Via) -> Self {
        Tree {
            host,
            upstream,
            is_routed: true,
            first_upstream: upstream.interface(),
            below: BTreeMap::new(),
            above: Above::Nothing,
            pruned_at: BTreeMap::new(),
            outgoing: Vec::new(),
            idle_at: Time::ZERO,
            timer: None,
        }
    }

    /// What a dependent neighbour wants.
    pub(super) fn wanted(&self, peer: Peer) -> Option<Level> {
        match self.below.get(&peer) {
            None => Some(Level::BEST),
            Some(Below::Wants { level, .. }) => Some(*level),
            Some(Below::Pruned { .. }) => None,
        }
    }

    /// Forgets what was said by neighbours that do not depend on us any more.
    pub(super) fn forget_independent(&mut self, routes: &RouteTable, source: Prefix) {
        self.below.retain(|peer, _| routes.dependents(source, peer.interface).any(|other| other == *peer));
    }

    /// Whether anything was forgotten because it is too long ago.
    pub(super) fn expire_below(&mut self, now: Time) -> bool {
        let before = self.below.len();
        self.below.retain(|_, said| said.until() > now);
        before != self.below.len()
    }

    /// How long the first prune from below still holds.
    pub(super) fn pruned_until(&self) -> Option<Time> {
        let pruned = |said: &Below| match said {
            Below::Pruned { until } => Some(*until),
            Below::Wants { .. } => None,
        };
        self.below.values().filter_map(pruned).min()
    }

    /// Whether it can be forgotten: nothing came for long, and no neighbour waits for a graft, now or when a
    /// host joins what was pruned.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.ends_at().is_some_and(|at| at <= now)
    }

    fn ends_at(&self) -> Option<Time> {
        match self.above {
            Above::Graft { .. } | Above::Level { is_acked: false, .. } => None,
            _ => self.pruned_at.values().copied().chain([self.idle_at]).max(),
        }
    }

    /// Whether a neighbour may remember a prune.
    pub(super) fn is_pruned_somewhere(&self, now: Time) -> bool {
        self.pruned_at.values().any(|until| *until > now)
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        let below = self.below.values().map(|said| said.until()).min();
        let above = match self.above {
            Above::Nothing | Above::Unknown => None,
            Above::Pruned { until, .. } => Some(until),
            Above::Graft { again, .. } | Above::Level { again, .. } => Some(again),
        };
        earliest([below, above, self.ends_at()])
    }
}
