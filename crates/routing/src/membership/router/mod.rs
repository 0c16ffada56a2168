//! The router's side of a link: which hosts want which groups (RFC 2236 section 3, RFC 3376 section 6,
//! RFC 3810 section 7).

mod asking;
mod group;
mod groups;
mod hosts;
mod querier;
mod reports;
mod timers;

use core::time::Duration;
use std::collections::VecDeque;
use std::net::IpAddr;

use outflow_media::Time;

use self::asking::About;
use self::group::{Asks, Group, Source, Timing};
use self::groups::Groups;
use self::hosts::Hosts;
use self::querier::Querier;
use self::timers::Timers;
use super::limits::{GROUPS_MAX, HOST_GROUPS_MAX, HOSTS_MAX, ROBUSTNESS_MAX};
use super::packet::{Message, QueryHead, emit_query};
use super::{Counters, Level, Link, Mode, Prefix, Version, packet};

/// What a router is to do. Times are those of RFC 3376 section 8 (RFC 3810 section 9).
#[derive(Debug, Clone)]
pub struct RouterSettings {
    /// The interface.
    pub link: Link,
    /// The version that queries are sent in: that of the oldest router of the link (section 7.3.1).
    pub version: Version,
    /// How many packets may be lost in a row, plus one; 1 to 7 (section 8.1). It is also how many queries are
    /// sent at the start, and when a host leaves.
    pub robustness: u8,
    /// Between general queries (section 8.2).
    pub query_interval: Duration,
    /// How long hosts may take to answer these; no longer than `query_interval` (section 8.3).
    pub query_response: Duration,
    /// How long they may take when a host has left, and when they are asked again (section 8.8).
    pub last_member_interval: Duration,
    /// Whether a group ends at once when its only host leaves it that is known, unless there may be others.
    /// A host of which all reports were lost since the last but one query goes without until the next one.
    pub fast_leave: bool,
    /// The groups that are taken only with sources to receive (RFC 4604 section 2.2).
    pub source_specific: Vec<Prefix>,
    /// Groups of the interface, [`GROUPS_MAX`] at most.
    pub groups_max: usize,
    /// Hosts that are known individually, [`HOSTS_MAX`] at most.
    pub hosts_max: usize,
    /// Groups of a host that it is known as a member of, [`HOST_GROUPS_MAX`] at most.
    pub host_groups_max: usize,
}

impl RouterSettings {
    /// What the RFCs recommend.
    pub fn new(link: Link) -> Self {
        RouterSettings {
            source_specific: link.family().source_specific(),
            link,
            version: Version::V3,
            robustness: 2,
            query_interval: Duration::from_secs(125),
            query_response: Duration::from_secs(10),
            last_member_interval: Duration::from_secs(1),
            fast_leave: false,
            groups_max: GROUPS_MAX,
            hosts_max: HOSTS_MAX,
            host_groups_max: HOST_GROUPS_MAX,
        }
    }

    fn within_limits(mut self) -> Self {
        self.robustness = self.robustness.clamp(1, ROBUSTNESS_MAX);
        self.query_response = self.query_response.min(self.query_interval);
        self.groups_max = self.groups_max.min(GROUPS_MAX);
        self.hosts_max = self.hosts_max.min(HOSTS_MAX);
        self.host_groups_max = self.host_groups_max.min(HOST_GROUPS_MAX);
        self
    }
}

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

/// What is wanted of a group (RFC 3376 section 6.3).
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Whether only some sources are wanted, or all but some.
    pub mode: Mode,
    /// The best level that a host wants.
    pub level: Level,
    sources: &'a [Source],
}

impl<'a> Wanted<'a> {
    /// The sources that the mode is about, in their order.
    pub fn sources(&self) -> impl Iterator<Item = IpAddr> + 'a {
        let mode = self.mode;
        let is_listed = move |source: &&Source| (mode == Mode::Include) == source.timer.is_some();
        self.sources.iter().filter(is_listed).map(|source| source.address)
    }

    /// Whether packets of this source are wanted.
    pub fn receives(&self, source: IpAddr) -> bool {
        self.sources().any(|one| one == source) == (self.mode == Mode::Include)
    }
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
        let (About::Group { suppress } | About::Sources { suppress }) = about;
        let head = QueryHead {
            version: settings.version,
            group: Some(group.address),
            max_response: settings.last_member_interval,
            suppress,
            robustness: settings.robustness,
            interval: settings.query_interval,
        };
        let is_asked = |source: &&Source| {
            matches!(about, About::Sources { .. }) && Group::is_asked(source, suppress, last_chance)
        };
        let sources = group.sources.iter().filter(is_asked).map(|source| source.address);
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
