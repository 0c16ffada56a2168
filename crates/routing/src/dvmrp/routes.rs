//! Routes to the networks that sources are in (section 3.4).
//!
//! What each neighbour told of a network is remembered as it was told, and all else follows from it: the
//! best path, which router forwards onto a link (section 3.3.1), which routers depend on us (section 3.4.4).
//! So a designated forwarder that goes away is followed by the next best at once, and nothing has to be
//! learnt again. Since forwarder and choice of upstream go by the same order, of metric and address, a router
//! that depends on any on a link depends on its forwarder.
//!
//! Metrics: 1 to 31 reachable, 32 not, 33 to 63 (that of the path, and 32) to the router on the way: poison
//! reverse, which says that we depend on it.

use core::net::Ipv4Addr;
use core::ops::Bound;
use std::collections::{BTreeMap, BTreeSet};

use outflow_media::{Prefix, Time};

use super::limits::{HOLD_DOWN, ROUTE_TIMEOUT, ROUTES_MAX, ROUTES_OF_NEIGHBOUR_MAX, SWEEP_INTERVAL};
use super::packet::{Advertised, is_told};
use super::{InterfaceId, Peer, Refusal};

/// Not reachable (section 3.4.3).
pub const INFINITY: u8 = 32;

/// Where a network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Via {
    /// On this interface itself.
    Connected(InterfaceId),
    /// Behind this neighbour.
    Neighbour(Peer),
}

impl Via {
    /// Where data from there comes from.
    pub const fn interface(self) -> InterfaceId {
        match self {
            Via::Connected(interface) => interface,
            Via::Neighbour(peer) => peer.interface,
        }
    }
}

/// The best way to a network. The smaller one is the better one (section 3.4.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// How far it is, our own interface included.
    pub metric: u8,
    /// Where it begins.
    pub via: Via,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Up(Path),
    /// Gone, and told to be, until then (section 3.4.8).
    Held(Path, Time),
}

#[derive(Debug, Clone, Copy)]
struct Heard {
    metric: u8,
    until: Time,
}

#[derive(Debug)]
struct Route {
    connected: BTreeSet<InterfaceId>,
    heard: BTreeMap<Peer, Heard>,
    state: State,
}

/// What routes need to know of an interface.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) address: Ipv4Addr,
    pub(super) metric: u8,
}

/// All routes.
#[derive(Debug)]
pub struct RouteTable {
    links: BTreeMap<InterfaceId, Link>,
    routes: BTreeMap<Prefix, Route>,
    /// How many routes there are of each length, so that a look-up asks only for those.
    lengths: BTreeMap<u8, usize>,
    heard_of: BTreeMap<Peer, usize>,
    /// To be told in a flash update.
    changed: BTreeSet<Prefix>,
    /// Whose path, forwarders or dependents may be others.
    touched: BTreeSet<Prefix>,
    /// Whose path is another one, for the driver.
    moved: BTreeSet<Prefix>,
    sweep_at: Option<Time>,
}

impl RouteTable {
    pub(super) const fn new() -> Self {
        RouteTable {
            links: BTreeMap::new(),
            routes: BTreeMap::new(),
            lengths: BTreeMap::new(),
            heard_of: BTreeMap::new(),
            changed: BTreeSet::new(),
            touched: BTreeSet::new(),
            moved: BTreeSet::new(),
            sweep_at: None,
        }
    }

    pub(super) fn add_interface(&mut self, id: InterfaceId, link: Link, network: Option<Prefix>) {
        self.links.insert(id, link);
        if let Some(network) = network.filter(|network| is_told(*network)) {
            self.insert(network).connected.insert(id);
            self.settle_connected(network);
        }
    }

    fn insert(&mut self, network: Prefix) -> &mut Route {
        let lengths = &mut self.lengths;
        self.routes.entry(network).or_insert_with(|| {
            *lengths.entry(network.length()).or_default() += 1;
            Route { connected: BTreeSet::new(), heard: BTreeMap::new(), state: State::New }
        })
    }

    /// What is on an interface itself is known for certain, and needs no hold-down.
    fn settle_connected(&mut self, network: Prefix) {
        let Some(route) = self.routes.get_mut(&network) else { return };
        if let Some(best) = route.best(&self.links) {
            route.state = State::Up(best);
        }
        self.changed.insert(network);
        self.touched.insert(network);
        self.moved.insert(network);
    }

    /// All that was learnt there is gone, its own network, too.
    pub(super) fn remove_interface(&mut self, now: Time, id: InterfaceId) {
        let is_there = |route: &Route| {
            route.connected.contains(&id) || route.heard.keys().any(|peer| peer.interface == id)
        };
        let there: Vec<_> =
            self.routes.iter().filter(|(_, route)| is_there(route)).map(|(to, _)| *to).collect();
        self.links.remove(&id);
        for network in there {
            if let Some(route) = self.routes.get_mut(&network) {
                route.connected.remove(&id);
                route.heard.retain(|peer, _| peer.interface != id);
            }
            self.settle(now, network);
        }
        self.heard_of.retain(|peer, _| peer.interface != id);
    }

    /// A neighbour tells of a route (section 3.4.6).
    pub(super) fn handle_report(&mut self, now: Time, from: Peer, told: Advertised) -> Result<(), Refusal> {
        let Advertised { network, metric } = told;
        if metric == 0 || metric >= 2 * INFINITY || !is_told(network) {
            return Err(Refusal::IllegalRoute);
        }
        let known = self.routes.get_mut(&network);
        if known.is_none() && metric >= INFINITY {
            return Ok(());
        }
        if metric == INFINITY {
            self.unhear(now, from, network);
            return Ok(());
        }
        let heard = Heard { metric, until: now + ROUTE_TIMEOUT };
        if let Some(before) = known.and_then(|route| route.heard.get_mut(&from)) {
            let is_same = before.metric == metric;
            *before = heard;
            if is_same && !self.is_held(network) {
                return Ok(());
            }
        } else {
            self.admit(from, network)?;
            *self.heard_of.entry(from).or_default() += 1;
            self.sweep_at.get_or_insert(now + SWEEP_INTERVAL);
            self.insert(network).heard.insert(from, heard);
        }
        self.settle(now, network);
        Ok(())
    }

    fn admit(&self, from: Peer, network: Prefix) -> Result<(), Refusal> {
        if self.heard_of.get(&from).is_some_and(|count| *count >= ROUTES_OF_NEIGHBOUR_MAX) {
            return Err(Refusal::NeighbourRoutesFull);
        }
        let has_room = self.routes.len() < ROUTES_MAX || self.routes.contains_key(&network);
        if has_room { Ok(()) } else { Err(Refusal::RoutesFull) }
    }

    fn is_held(&self, network: Prefix) -> bool {
        self.routes.get(&network).is_some_and(|route| matches!(route.state, State::Held(..)))
    }

    /// Forgets what a neighbour told of one network.
    fn unhear(&mut self, now: Time, from: Peer, network: Prefix) {
        let Some(route) = self.routes.get_mut(&network) else { return };
        if route.heard.remove(&from).is_some() {
            if let Some(count) = self.heard_of.get_mut(&from) {
                *count -= 1;
            }
            self.settle(now, network);
        }
    }

    /// A neighbour is gone (section 3.2.4): so is all that it told.
    pub(super) fn forget_neighbour(&mut self, now: Time, gone: Peer) {
        let told = self.routes.iter().filter(|(_, route)| route.heard.contains_key(&gone));
        for network in told.map(|(network, _)| *network).collect::<Vec<_>>() {
            self.unhear(now, gone, network);
        }
        self.heard_of.remove(&gone);
    }

    /// Forgets what was not told again in time (section 3.4.7), and ends hold-downs.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.sweep_at.is_none_or(|at| now < at) {
            return;
        }
        let mut old = Vec::new();
        for (network, route) in &self.routes {
            let expired = route.heard.iter().filter(|(_, heard)| heard.until <= now);
            old.extend(expired.map(|(peer, _)| (*network, Some(*peer))));
            if matches!(route.state, State::Held(_, until) if until <= now) {
                old.push((*network, None));
            }
        }
        for (network, peer) in old {
            match peer {
                Some(peer) => self.unhear(now, peer, network),
                None => self.settle(now, network),
            }
        }
        let is_needed = |route: &Route| !route.heard.is_empty() || matches!(route.state, State::Held(..));
        self.sweep_at = self.routes.values().any(is_needed).then_some(now + SWEEP_INTERVAL);
    }

    pub(super) const fn next_timeout(&self) -> Option<Time> {
        self.sweep_at
    }

    /// Chooses the path of a network again.
    fn settle(&mut self, now: Time, network: Prefix) {
        let Some(route) = self.routes.get_mut(&network) else { return };
        self.touched.insert(network);
        let before = route.state;
        route.settle(now, &self.links);
        if matches!(route.state, State::Held(..)) {
            self.sweep_at.get_or_insert(now + SWEEP_INTERVAL);
        }
        let is_over = route.state == State::New;
        if before != route.state {
            self.changed.insert(network);
            self.moved.insert(network);
        }
        if is_over {
            self.remove(network);
        }
    }

    fn remove(&mut self, network: Prefix) {
        let Some(route) = self.routes.remove(&network) else { return };
        self.changed.remove(&network);
        for peer in route.heard.keys() {
            if let Some(count) = self.heard_of.get_mut(peer) {
                *count -= 1;
            }
        }
        if let Some(count) = self.lengths.get_mut(&network.length()) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&network.length());
            }
        }
    }

    /// The network that a source is in, as routes tell of it, and the best path there. The longest one
    /// counts, even if it cannot be reached: then nothing is found.
    pub fn lookup(&self, source: Ipv4Addr) -> Option<(Prefix, Path)> {
        let mut networks = self.lengths.keys().rev().map(|length| Prefix::of(source, *length));
        let found = networks.find(|network| self.routes.contains_key(network))?;
        Some((found, self.path(found)?))
    }

    /// The best path to exactly this network; nothing if it is not known, or held down.
    pub fn path(&self, network: Prefix) -> Option<Path> {
        match self.routes.get(&network)?.state {
            State::Up(path) => Some(path),
            _ => None,
        }
    }

    /// All networks that are known and can be reached, in order.
    pub fn paths(&self) -> impl Iterator<Item = (Prefix, Path)> {
        self.routes.keys().filter_map(|network| Some((*network, self.path(*network)?)))
    }

    /// Whether we are the one that forwards from this network onto this interface (section 3.3.1): no router
    /// there is nearer, or as near with a lower address, and it is not where its data comes from.
    pub fn is_forwarder(&self, network: Prefix, onto: InterfaceId) -> bool {
        let (Some(path), Some(link)) = (self.path(network), self.links.get(&onto)) else { return false };
        let ours = (path.metric, link.address);
        let better = |(peer, heard): (&Peer, &Heard)| (heard.metric, peer.address) < ours;
        path.via.interface() != onto && !self.heard_on(network, onto).any(better)
    }

    /// The routers on this interface that depend on us for data from this network, if we are its forwarder
    /// there (section 3.4.4).
    pub fn dependents(&self, network: Prefix, on: InterfaceId) -> impl Iterator<Item = Peer> {
        let depends = |(_, heard): &(&Peer, &Heard)| heard.metric > INFINITY;
        self.heard_on(network, on).filter(depends).map(|(peer, _)| *peer)
    }

    fn heard_on(&self, network: Prefix, on: InterfaceId) -> impl Iterator<Item = (&Peer, &Heard)> {
        let (first, last) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST);
        let range = Peer { interface: on, address: first }..=Peer { interface: on, address: last };
        self.routes.get(&network).into_iter().flat_map(move |route| route.heard.range(range.clone()))
    }

    /// Which metric is told of a network on an interface; nothing if the network is not known.
    pub(super) fn told(&self, network: Prefix, on: InterfaceId) -> Option<Advertised> {
        let metric = match self.routes.get(&network)?.state {
            State::Up(path) if path.via.interface() == on => path.metric + INFINITY,
            State::Up(path) => path.metric,
            State::Held(..) => INFINITY,
            State::New => return None,
        };
        Some(Advertised { network, metric })
    }

    /// Networks from behind this one on, in order.
    pub(super) fn behind(&self, last: Option<Prefix>) -> impl Iterator<Item = Prefix> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.routes.range((from, Bound::Unbounded)).map(|(network, _)| *network)
    }

    /// How many networks are known.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Whether a flash update is to be sent.
    pub(super) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    pub(super) fn take_changed(&mut self, most: usize) -> Vec<Prefix> {
        core::iter::from_fn(|| self.changed.pop_first()).take(most).collect()
    }

    pub(super) fn take_moved(&mut self) -> Option<Prefix> {
        self.moved.pop_first()
    }

    pub(super) fn take_touched(&mut self) -> BTreeSet<Prefix> {
        core::mem::take(&mut self.touched)
    }
}

impl Route {
    fn best(&self, links: &BTreeMap<InterfaceId, Link>) -> Option<Path> {
        let metric_of = |interface| links.get(interface).map(|link| link.metric);
        let connected = self.connected.iter().filter_map(|interface| {
            Some(Path { metric: metric_of(interface)?, via: Via::Connected(*interface) })
        });
        if let Some(path) = connected.min() {
            return Some(path);
        }
        let heard = self.heard.iter().filter(|(_, heard)| heard.metric < INFINITY);
        let paths = heard.filter_map(|(peer, heard)| {
            Some(Path { metric: heard.metric + metric_of(&peer.interface)?, via: Via::Neighbour(*peer) })
        });
        // Of equal ones, that of the lowest address, whichever interface it is on.
        let rank = |path: &Path| match path.via {
            Via::Neighbour(peer) => (path.metric, peer.address, peer.interface),
            Via::Connected(interface) => (path.metric, Ipv4Addr::UNSPECIFIED, interface),
        };
        paths.filter(|path| path.metric < INFINITY).min_by_key(rank)
    }

    /// Whether this very path is told of.
    fn has(&self, path: Path, links: &BTreeMap<InterfaceId, Link>) -> bool {
        match path.via {
            Via::Connected(interface) => self.connected.contains(&interface),
            Via::Neighbour(peer) => {
                let metric = |heard: &Heard| Some(heard.metric + links.get(&peer.interface)?.metric);
                self.heard.get(&peer).and_then(metric) == Some(path.metric)
            }
        }
    }

    /// Whether this path is still there, at whatever distance.
    fn leads(&self, via: Via) -> bool {
        match via {
            Via::Connected(interface) => self.connected.contains(&interface),
            Via::Neighbour(peer) => self.heard.get(&peer).is_some_and(|heard| heard.metric < INFINITY),
        }
    }

    fn settle(&mut self, now: Time, links: &BTreeMap<InterfaceId, Link>) {
        let best = self.best(links);
        self.state = match (self.state, best) {
            // A path that is lost is not replaced by what others tell, which may be an echo of it.
            (State::Up(was), best) if best.is_none() || !self.leads(was.via) => {
                State::Held(was, now + HOLD_DOWN)
            }
            // It may be taken out of hold-down early only by the same router with the same metric. Another
            // one that is as near and comes first may have told its route in the meantime.
            (State::Held(was, until), Some(best)) if self.has(was, links) || now >= until => State::Up(best),
            (State::Held(_, until), None) if now >= until => State::New,
            (held @ State::Held(..), _) => held,
            (_, Some(best)) => State::Up(best),
            (state, None) => state,
        };
    }
}
