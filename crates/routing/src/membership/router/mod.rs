//! The router's side of a link: which hosts want which groups (RFC 2236 section 3, RFC 3376 section 6,
//! RFC 3810 section 7).

mod asking;
mod group;
mod groups;
mod hosts;
mod querier;
mod reports;
mod settings;
mod timers;
mod timing;
mod wanted;

use std::collections::VecDeque;
use std::net::IpAddr;

use outflow_media::Time;

pub use self::settings::RouterSettings;
pub use self::wanted::Wanted;

use self::group::Group;
use self::groups::Groups;
use self::hosts::Hosts;
use self::querier::Querier;
use self::timers::Timers;
use self::timing::{Asks, Timing};
use super::packet::{Message, Query, QueryHead, emit_query};
use super::{Counters, Level, Reason, Version, packet};

/// What has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A group is wanted, or it is wanted otherwise than before: [`Router::wanted`] says which sources.
    GroupWanted {
        /// The group.
        group: IpAddr,
        /// The best level that a host wants.
        level: Level,
    },
    /// A group is no longer wanted.
    GroupGone {
        /// The group.
        group: IpAddr,
    },
    /// Another router is the querier of the link, or this one.
    QuerierChanged {
        /// Its address.
        querier: IpAddr,
    },
}

/// The router's side of an interface.
///
/// What comes in is handled ([`Router::handle_packet`], [`Router::handle_timeout`]); after that, packets are
/// to be sent ([`Router::poll_transmit`]) and events to be read ([`Router::poll`]) until there are none, and
/// [`Router::next_timeout`] asked again. Nothing of this allocates for a group and a host that are known.
#[derive(Debug)]
pub struct Router {
    settings: RouterSettings,
    now: Time,
    querier: Querier,
    groups: Groups,
    timers: Timers,
    hosts: Hosts,
    /// Groups of which something is to be told, and to be sent.
    dirty: VecDeque<u32>,
    sends: VecDeque<u32>,
    counters: Counters,
}

impl Router {
    /// A router that begins now: as the querier, until it hears of another one (RFC 3376 section 6.6.2).
    pub fn new(now: Time, settings: RouterSettings) -> Self {
        let settings = settings.within_limits();
        Router {
            now,
            querier: Querier::new(now, &settings),
            groups: Groups::default(),
            timers: Timers::default(),
            hosts: Hosts::new(settings.hosts_max, settings.host_groups_max),
            dirty: VecDeque::with_capacity(64),
            sends: VecDeque::with_capacity(64),
            counters: Counters::default(),
            settings,
        }
    }

    /// Takes a packet from the link, from its IP header on. A packet that is refused is counted.
    pub fn handle_packet(&mut self, now: Time, bytes: &[u8]) {
        self.handle_timeout(now);
        let packet = match packet::parse(bytes, &self.settings.link) {
            Ok(packet) => packet,
            Err(reason) => return self.counters.count(reason),
        };
        match packet.message {
            Message::Query(query) => self.handle_query(packet.source, &query),
            message => self.handle_answer(packet.source, &message),
        }
    }

    /// Another router asks. Queries of groups that this router has begun to send are sent to their end, so that
    /// no leave is lost between two queriers (RFC 2236 section 3).
    fn handle_query(&mut self, source: IpAddr, query: &Query<'_>) {
        if source.is_unspecified() {
            return self.counters.count(Reason::QuerySource);
        }
        if query.head.version < self.settings.version {
            self.counters.count(Reason::OlderQuery);
        }
        if source < self.settings.link.address {
            self.querier.yield_to(source, query, self.now, &self.settings);
        }
        let Some(group) = query.head.group.filter(|_| !query.head.suppress) else { return };
        let until = self.now + query.head.max_response * u32::from(self.querier.robustness());
        let Some(slot) = self.groups.find(group) else { return };
        if let Some(group) = self.groups.get_mut(slot) {
            group.lower(query.sources, until);
        }
        self.settle(slot);
    }

    /// Does what is due. It may be called at any time.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.querier.handle_timeout(self.now, &self.settings);
        while let Some((_, slot)) = self.timers.first().filter(|(due, _)| *due <= self.now) {
            let timing = self.timing();
            if let Some(group) = self.groups.get_mut(slot) {
                group.ask_again(&timing);
            }
            self.settle(slot);
        }
    }

    /// When [`Router::handle_timeout`] is to be called. It changes with whatever is handled.
    pub fn next_timeout(&self) -> Time {
        let querier = self.querier.next_timeout();
        self.timers.first().map_or(querier, |(due, _)| due.min(querier))
    }

    /// Writes the next IP packet that is to be sent in place of what is in `out`, and says where it goes. The
    /// message begins behind [`Family::header_bytes`](super::Family::header_bytes).
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<IpAddr> {
        while let Some(slot) = self.sends.front() {
            if let Some(destination) = self.write_query(*slot, out) {
                return Some(destination);
            }
            self.sends.pop_front();
        }
        self.querier.take_general(&self.settings).map(|head| {
            let source = self.settings.link.address;
            emit_query(&head, source, [], out)
        })
    }

    /// Writes the next query of a group, if one is due.
    fn write_query(&mut self, slot: u32, out: &mut Vec<u8>) -> Option<IpAddr> {
        let (last_chance, settings) = (self.timing().last_chance(), &self.settings);
        let group = self.groups.get_mut(slot).filter(|group| group.is_queued)?;
        let Some(about) = group.next_query(last_chance) else {
            group.is_queued = false;
            return None;
        };
        let head = QueryHead {
            version: settings.version,
            group: Some(group.address),
            max_response: settings.last_member_interval,
            suppress: about.suppresses(),
            robustness: settings.robustness,
            interval: settings.query_interval,
        };
        let sources = group.asked(about, last_chance);
        let destination = emit_query(&head, settings.link.address, sources, out);
        group.sent(about, last_chance);
        Some(destination)
    }

    /// What has changed since the last call. Of a group, only what is now.
    pub fn poll(&mut self) -> Option<Event> {
        if let Some(querier) = self.querier.take_change(&self.settings) {
            return Some(Event::QuerierChanged { querier });
        }
        while let Some(slot) = self.dirty.pop_front() {
            let Some(group) = self.groups.get_mut(slot) else { continue };
            let was_told = core::mem::replace(&mut group.is_told, true);
            (group.is_dirty, group.is_changed) = (false, false);
            let address = group.address;
            if let Some(wanted) = group.wanted() {
                return Some(Event::GroupWanted { group: address, level: wanted.level });
            }
            self.timers.set(slot, None);
            self.groups.remove(slot);
            if was_told {
                return Some(Event::GroupGone { group: address });
            }
        }
        None
    }

    /// What is wanted of a group, if it is.
    pub fn wanted(&self, group: IpAddr) -> Option<Wanted<'_>> {
        self.groups.find(group).and_then(|slot| self.groups.get(slot)).and_then(Group::wanted)
    }

    /// The groups that are wanted, in the order of their addresses.
    pub fn groups(&self) -> impl Iterator<Item = (IpAddr, Wanted<'_>)> {
        self.groups.iter().filter_map(|group| Some((group.address, group.wanted()?)))
    }

    /// Groups, hosts and memberships of these that are remembered: what the memory is for.
    pub fn usage(&self) -> [usize; 3] {
        let members = self.groups.iter().map(Group::member_count).sum();
        [self.groups.len(), self.hosts.len(), members]
    }

    /// The address of the querier.
    pub const fn querier(&self) -> IpAddr {
        self.querier.address(&self.settings)
    }

    /// Whether this router is the querier.
    pub const fn is_querier(&self) -> bool {
        self.querier.is_self()
    }

    /// Why messages, or parts of them, had no effect.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    fn timing(&self) -> Timing {
        let asks = match self.settings.version {
            _ if !self.is_querier() => Asks::Nothing,
            Version::V1 => Asks::Nothing,
            Version::V2 => Asks::Groups,
            Version::V3 => Asks::All,
        };
        Timing {
            now: self.now,
            membership: self.querier.membership(&self.settings),
            last_member: self.settings.last_member_interval,
            count: self.querier.robustness(),
            asks,
        }
    }

    /// After a change of a group: what has run out, what is to be told and sent, and when it is due next.
    fn settle(&mut self, slot: u32) {
        let (now, hosts) = (self.now, &mut self.hosts);
        let Some(group) = self.groups.get_mut(slot) else { return self.timers.set(slot, None) };
        group.expire(now, |host| hosts.leave(host, now));
        group.settle_level(now);
        if group.is_changed && !core::mem::replace(&mut group.is_dirty, true) {
            self.dirty.push_back(slot);
        }
        if group.has_query() && !core::mem::replace(&mut group.is_queued, true) {
            self.sends.push_back(slot);
        }
        self.timers.set(slot, group.deadline(now));
    }
}

#[cfg(test)]
mod tests;
