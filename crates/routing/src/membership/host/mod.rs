//! The members' side of a link: by this a relay joins upstream like any host (RFC 2236 section 3, RFC 3376
//! section 5, RFC 3810 section 6).

mod membership;

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::IpAddr;

use outflow_media::Time;

use self::membership::Membership;
use super::limits::{JOINED_MAX, ROBUSTNESS_MAX, SOURCES_MAX};
use super::packet::{Message, Query, ReportWriter, emit_leave, emit_old_report};
use super::{Counters, Family, Level, Link, Mode, Random, Version, address, packet};

/// Unsolicited Report Interval of version 3 (RFC 3376 section 8.11), and of older ones (RFC 2236 section 8.10).
const REPORT_AGAIN: Duration = Duration::from_secs(1);
const OLD_REPORT_AGAIN: Duration = Duration::from_secs(10);

/// What a host is to do.
#[derive(Debug, Clone)]
pub struct HostSettings {
    /// The interface.
    pub link: Link,
    /// The newest version that is spoken. It speaks an older one while there is a querier of that.
    pub version: Version,
    /// How often a change is said, 1 to 7, unless the querier says another number (RFC 3376 section 8.1).
    pub robustness: u8,
    /// What delays are drawn from; it differs from host to host, and from start to start.
    pub seed: u64,
    /// Whether reports say levels. They then say all of them, as a router does not forget one because of a
    /// report without. A host that says none is a plain one, which gets the best.
    pub says_levels: bool,
}

impl HostSettings {
    /// What the RFCs recommend.
    pub const fn new(link: Link, seed: u64) -> Self {
        HostSettings { link, version: Version::V3, robustness: 2, seed, says_levels: true }
    }
}

/// What is wanted of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest<'a> {
    /// Whether only some sources are wanted, or all but some.
    pub mode: Mode,
    /// These. Nothing but no source at all is no membership.
    pub sources: &'a [IpAddr],
    /// The level of quality. Only version 3 can say it, and if `says_levels` is set.
    pub level: Level,
}

impl Interest<'_> {
    /// All sources.
    pub const fn all(level: Level) -> Self {
        Interest { mode: Mode::Exclude, sources: &[], level }
    }

    /// Nothing: the group is left.
    pub const fn nothing() -> Self {
        Interest { mode: Mode::Include, sources: &[], level: Level::BEST }
    }
}

/// Why a wish is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no group of this family of addresses.
    #[error("{0} is no multicast address of the interface's family: use one of the other interface's")]
    NotMulticast(IpAddr),
    /// Every host receives it, or it does not leave the host, so that it is not reported (RFC 3376 section 5).
    #[error("{0} is received without being asked for: leave it out")]
    NeverReported(IpAddr),
    /// A source is none of this family of addresses.
    #[error("{0} is no source of the interface's family of addresses")]
    NotSource(IpAddr),
    /// Too many groups.
    #[error("the interface is a member of {JOINED_MAX} groups already: leave some first")]
    TooManyGroups,
    /// Too many sources.
    #[error("{0} sources are more than the {SOURCES_MAX} that a group may have: join it without them")]
    TooManySources(usize),
}

/// The members' side of an interface.
///
/// Wishes are set ([`Host::set`]), and what comes in is handled ([`Host::handle_packet`],
/// [`Host::handle_timeout`]); after that packets are to be sent ([`Host::poll_transmit`]) until there are none,
/// and [`Host::next_timeout`] asked again.
#[derive(Debug)]
pub struct Host {
    settings: HostSettings,
    now: Time,
    random: Random,
    groups: BTreeMap<IpAddr, Membership>,
    /// The version that is spoken (RFC 3376 section 7.2.1), and until when there is a querier of older ones.
    version: Version,
    v1_until: Time,
    v2_until: Time,
    /// What the querier said last.
    robustness: u8,
    interval: Duration,
    /// When the answer to a general query is due.
    answer_at: Option<Time>,
    /// Counts changes of levels.
    sequence: u32,
    entries: Vec<u8>,
    counters: Counters,
}

impl Host {
    /// A host that is a member of nothing.
    pub fn new(now: Time, mut settings: HostSettings) -> Self {
        settings.robustness = settings.robustness.clamp(1, ROBUSTNESS_MAX);
        let mut random = Random::new(settings.seed);
        Host {
            now,
            groups: BTreeMap::new(),
            version: settings.version,
            v1_until: Time::ZERO,
            v2_until: Time::ZERO,
            robustness: settings.robustness,
            interval: Duration::from_secs(125),
            answer_at: None,
            sequence: random.bits() as u32,
            entries: Vec::new(),
            counters: Counters::default(),
            random,
            settings,
        }
    }

    /// Says what is wanted of a group from now on.
    ///
    /// # Errors
    ///
    /// If it cannot be said, or is more than the limits allow; then all stays as it was.
    pub fn set(&mut self, now: Time, group: IpAddr, wish: Interest<'_>) -> Result<(), Refused> {
        self.handle_timeout(now);
        self.check(group, &wish)?;
        if !self.groups.contains_key(&group) {
            if wish == (Interest { level: wish.level, ..Interest::nothing() }) {
                return Ok(());
            }
            if self.groups.len() >= JOINED_MAX {
                return Err(Refused::TooManyGroups);
            }
        }
        let membership = self.groups.entry(group).or_default();
        if membership.is_new_level(&wish) {
            self.sequence = self.sequence.wrapping_add(1);
        }
        match self.version {
            Version::V3 => membership.change(&wish, self.robustness, self.now),
            version => membership.change_old(&wish, version, self.robustness, self.now),
        }
        self.groups.retain(|_, membership| !membership.is_over());
        Ok(())
    }

    fn check(&self, group: IpAddr, wish: &Interest<'_>) -> Result<(), Refused> {
        let family = self.settings.link.family();
        let is_source = |source: &IpAddr| Family::of(*source) == family && !source.is_multicast();
        match wish.sources.iter().find(|source| !is_source(source)) {
            _ if Family::of(group) != family || !group.is_multicast() => Err(Refused::NotMulticast(group)),
            _ if address::is_never_reported(group) => Err(Refused::NeverReported(group)),
            Some(source) => Err(Refused::NotSource(*source)),
            None if wish.sources.len() > SOURCES_MAX => Err(Refused::TooManySources(wish.sources.len())),
            None => Ok(()),
        }
    }

    /// Takes a packet from the link, from its IP header on.
    pub fn handle_packet(&mut self, now: Time, bytes: &[u8]) {
        self.handle_timeout(now);
        match packet::parse(bytes, &self.settings.link).map(|packet| packet.message) {
            Ok(Message::Query(query)) => self.handle_query(&query),
            Ok(Message::OldReport { group, .. }) if self.version < Version::V3 => {
                if let Some(membership) = self.groups.get_mut(&group) {
                    membership.suppress();
                }
            }
            Ok(_) => (),
            Err(reason) => self.counters.count(reason),
        }
    }

    fn handle_query(&mut self, query: &Query<'_>) {
        let head = &query.head;
        let present = self.interval * u32::from(self.robustness) + head.max_response;
        match head.version {
            Version::V1 => self.v1_until = self.now + present,
            Version::V2 => self.v2_until = self.now + present,
            Version::V3 => {
                let said = head.robustness;
                self.robustness = if said == 0 { self.settings.robustness } else { said };
                if !head.interval.is_zero() {
                    self.interval = head.interval;
                }
            }
        }
        self.settle_version();
        let due = self.now + self.random.delay(head.max_response);
        if self.version == Version::V3 {
            self.schedule(query, due);
            return;
        }
        // Each group has its own timer (RFC 2236 section 3), which is only brought forward.
        let longest = self.now + head.max_response;
        for (group, membership) in &mut self.groups {
            let is_meant = head.group.is_none_or(|meant| meant == *group) && membership.is_member();
            if is_meant && membership.answer_at.is_none_or(|before| before > longest) {
                let due = self.now + self.random.delay(head.max_response);
                membership.answer(&[], due);
            }
        }
    }

    /// When a query is answered (RFC 3376 section 5.2).
    fn schedule(&mut self, query: &Query<'_>, due: Time) {
        if self.answer_at.is_some_and(|before| before <= due) {
            return;
        }
        let Some(group) = query.head.group else {
            self.answer_at = Some(due);
            return;
        };
        let Some(membership) = self.groups.get_mut(&group).filter(|one| one.is_member()) else { return };
        let mut list = [group; SOURCES_MAX];
        let count = list.iter_mut().zip(query.sources).map(|(place, source)| *place = source).count();
        // More than there is place for are answered with all.
        let all = query.sources.count() > SOURCES_MAX;
        membership.answer(if all { &[] } else { &list[..count] }, due);
    }

    /// Does what is due. It may be called at any time.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.settle_version();
        if self.answer_at.is_some_and(|due| due <= self.now) {
            self.answer_at = None;
            for membership in self.groups.values_mut().filter(|one| one.is_member()) {
                membership.answer(&[], self.now);
            }
        }
    }

    /// When [`Host::handle_timeout`] is to be called, if nothing else happens before.
    pub fn next_timeout(&self) -> Option<Time> {
        let older = [self.v1_until, self.v2_until].into_iter().filter(|until| *until > self.now);
        let groups = self.groups.values().flat_map(|one| [one.change_at, one.answer_at]).flatten();
        older.chain(groups).chain(self.answer_at).min()
    }

    /// Speaks the version of the oldest querier that there is. What was to be sent in another one is not
    /// (RFC 3376 section 7.2.1).
    fn settle_version(&mut self) {
        let heard = match () {
            () if self.v1_until > self.now => Version::V1,
            () if self.v2_until > self.now => Version::V2,
            () => Version::V3,
        };
        let version = heard.min(self.settings.version);
        if core::mem::replace(&mut self.version, version) != version {
            self.answer_at = None;
            self.groups.values_mut().for_each(Membership::cancel);
            self.groups.retain(|_, membership| !membership.is_over());
        }
    }

    /// Writes the next IP packet that is to be sent in place of what is in `out`, and says where it goes. The
    /// message begins behind [`Family::header_bytes`].
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<IpAddr> {
        if self.version == Version::V3 {
            let is_sent = self.write_report(out, Membership::write_change)
                || self.write_report(out, Membership::write_answer);
            self.groups.retain(|_, membership| !membership.is_over());
            return is_sent.then_some(self.settings.link.family().all_reports());
        }
        let source = self.settings.link.address;
        let (group, membership) = self.groups.iter_mut().find(|(_, one)| one.is_due(self.now))?;
        let group = *group;
        if membership.is_member() {
            emit_old_report(self.version, source, group, out);
            membership.sent_old(self.now + delay(&mut self.random, OLD_REPORT_AGAIN));
            return Some(group);
        }
        self.groups.remove(&group);
        emit_leave(source, group, out);
        Some(self.settings.link.family().all_routers())
    }

    /// Writes as many records of a kind as fit. False if there is none.
    fn write_report(&mut self, out: &mut Vec<u8>, write: WriteRecord) -> bool {
        let source = self.settings.link.address;
        let sequence = self.settings.says_levels.then_some(self.sequence);
        let mut writer = ReportWriter::new(source, sequence, &mut self.entries, out);
        for (group, membership) in &mut self.groups {
            let again = self.now + delay(&mut self.random, REPORT_AGAIN);
            if !write(membership, *group, self.now, again, &mut writer) {
                break;
            }
        }
        writer.finish()
    }

    /// The version that is spoken now.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Why messages had no effect.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Writes what is due of a group, and sets when it is due again. False if it does not fit.
type WriteRecord = fn(&mut Membership, IpAddr, Time, Time, &mut ReportWriter<'_>) -> bool;

/// A delay that is not zero, so that nothing is due twice at once.
fn delay(random: &mut Random, longest: Duration) -> Duration {
    random.delay(longest).max(Duration::from_micros(1))
}

#[cfg(test)]
mod tests;
