//! The state of a group on an interface (RFC 3376 section 6.2, RFC 3810 section 7.2).

use std::net::IpAddr;

use outflow_media::Time;

use super::asking::{About, Asking};
use super::timing::Timing;
use super::wanted::{Source, Wanted};
use crate::membership::limits::{LATE_SEQUENCES, LATE_WITHIN, SOURCES_MAX};
use crate::membership::packet::{Addresses, Entry, RecordKind};
use crate::membership::{Level, Mode, Reason, Version};

/// What of a host reports: neither speaks for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reporter {
    /// Its kernel, which says no levels.
    Kernel,
    /// A program that says levels.
    Program,
}

/// A host that is a member.
#[derive(Debug)]
struct Member {
    address: IpAddr,
    /// Whether its kernel has reported it.
    is_plain: bool,
    level: Level,
    /// The sequence of the report that said the level, and when that was, if one did.
    said: Option<(u32, Time)>,
    /// Until when the level holds that is not said again, after one of its reporters has left.
    level_until: Option<Time>,
    until: Time,
}

impl Member {
    /// Whether it has another reporter than this one.
    const fn has_other(&self, than: Reporter) -> bool {
        match than {
            Reporter::Kernel => self.said.is_some(),
            Reporter::Program => self.is_plain,
        }
    }

    fn next_timeout(&self) -> Time {
        self.level_until.map_or(self.until, |until| until.min(self.until))
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.level_until.is_some_and(|until| until <= now) {
            (self.level, self.said, self.level_until) = (Level::BEST, None, None);
        }
    }
}

/// A group. In `Mode::Exclude` its timer runs.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) address: IpAddr,
    pub(super) timer: Option<Time>,
    /// In the order of their addresses.
    pub(super) sources: Vec<Source>,
    asking: Asking,
    members: Vec<Member>,
    /// Until when hosts count as present that report with IGMPv1, and with v2 or MLDv1.
    v1_until: Time,
    v2_until: Time,
    /// Until when there may be members that are not known individually.
    unknown_until: Time,
    level: Level,
    /// Whether the caller was told that it is wanted, and what was told has changed since.
    pub(super) is_told: bool,
    pub(super) is_changed: bool,
    /// Whether it waits in the queues for that.
    pub(super) is_dirty: bool,
    pub(super) is_queued: bool,
}

impl Group {
    pub(super) const fn new(address: IpAddr) -> Self {
        Group {
            address,
            timer: None,
            sources: Vec::new(),
            asking: Asking::new(),
            members: Vec::new(),
            v1_until: Time::ZERO,
            v2_until: Time::ZERO,
            unknown_until: Time::ZERO,
            level: Level::BEST,
            is_told: false,
            is_changed: false,
            is_dirty: false,
            is_queued: false,
        }
    }

    pub(super) const fn is_wanted(&self) -> bool {
        self.timer.is_some() || !self.sources.is_empty()
    }

    pub(super) const fn mode(&self) -> Mode {
        if self.timer.is_some() { Mode::Exclude } else { Mode::Include }
    }

    pub(super) fn wanted(&self) -> Option<Wanted<'_>> {
        let wanted = Wanted::new(self.mode(), self.level, &self.sources);
        self.is_wanted().then_some(wanted)
    }

    pub(super) fn member_count(&self) -> usize {
        self.members.len()
    }

    /// The group compatibility mode (RFC 3376 section 7.3.2).
    pub(super) fn compatibility(&self, now: Time) -> Version {
        match () {
            () if self.v1_until > now => Version::V1,
            () if self.v2_until > now => Version::V2,
            () => Version::V3,
        }
    }

    /// A host of an older version reported.
    pub(super) const fn hear_older(&mut self, version: Version, until: Time) {
        match version {
            Version::V1 => self.v1_until = until,
            _ => self.v2_until = until,
        }
    }

    /// Carries out a record (RFC 3376 section 6.4), and says how many sources there was no place for. A and B,
    /// X and Y are named as there.
    pub(super) fn apply(&mut self, kind: RecordKind, list: Addresses<'_>, timing: &Timing) -> u64 {
        use RecordKind::{Allow, Block, IsEx, IsIn, ToEx, ToIn};
        let until = timing.now + timing.membership;
        match (self.timer, kind) {
            (_, IsIn | Allow) => self.want(list, until),
            (None, Block) => {
                self.asking.ask_sources(&mut self.sources, timing, |source| list.contains(source));
                0
            }
            (None, ToIn) => {
                let refused = self.want(list, until);
                self.asking.ask_sources(&mut self.sources, timing, |source| !list.contains(source));
                refused
            }
            (Some(_), ToIn) => {
                self.asking.ask_sources(&mut self.sources, timing, |source| !list.contains(source));
                let refused = self.want(list, until);
                self.timer = self.asking.ask_group(self.timer, timing);
                refused
            }
            (Some(timer), Block) => {
                let refused = self.add(list, Some(timer));
                self.asking.ask_sources(&mut self.sources, timing, |source| list.contains(source));
                refused
            }
            (timer, IsEx | ToEx) => {
                let refused =
                    self.exclude(list, until, timer.map(|timer| if kind == ToEx { timer } else { until }));
                if kind == ToEx {
                    self.asking.ask_sources(&mut self.sources, timing, |_| true);
                }
                refused
            }
        }
    }

    /// Sources are wanted until then, whichever they were before.
    fn want(&mut self, list: Addresses<'_>, until: Time) -> u64 {
        let refused = self.add(list, Some(until));
        for address in list {
            let Ok(at) = self.find(address) else { continue };
            self.is_changed |= self.sources[at].timer.is_none();
            self.sources[at].timer = Some(until);
        }
        refused
    }

    /// All but these are wanted. New ones get a timer if the mode was this one before; then a host may still
    /// want them.
    fn exclude(&mut self, list: Addresses<'_>, until: Time, timer: Option<Time>) -> u64 {
        let before = self.sources.len();
        self.sources.retain(|source| list.contains(source.address));
        self.is_changed |= self.sources.len() != before || self.timer.is_none();
        self.timer = Some(until);
        self.add(list, timer)
    }

    /// Adds those of a list that are not there.
    fn add(&mut self, list: Addresses<'_>, timer: Option<Time>) -> u64 {
        let mut refused = 0;
        for address in list {
            let Err(at) = self.find(address) else { continue };
            if self.sources.len() < SOURCES_MAX {
                self.sources.insert(at, Source { address, timer, left: 0, is_due: false });
                self.is_changed = true;
            } else {
                refused += 1;
            }
        }
        refused
    }

    fn find(&self, address: IpAddr) -> Result<usize, usize> {
        self.sources.binary_search_by_key(&address, |source| source.address)
    }

    /// What a query that others may answer does to the timers (RFC 3376 section 6.6.1).
    pub(super) fn lower(&mut self, list: Addresses<'_>, until: Time) {
        if list.is_empty() {
            self.timer = self.timer.map(|timer| timer.min(until));
        }
        for address in list {
            let Ok(at) = self.find(address) else { continue };
            self.sources[at].timer = self.sources[at].timer.map(|timer| timer.min(until));
        }
    }

    /// Makes those queries due that are to be sent again, if it is time.
    pub(super) fn ask_again(&mut self, timing: &Timing) {
        self.asking.ask_again(&mut self.sources, timing);
    }

    /// Whether any query is due.
    pub(super) fn has_query(&self) -> bool {
        self.asking.has_query(&self.sources)
    }

    /// The next query that is due.
    pub(super) fn next_query(&self, last_chance: Time) -> Option<About> {
        self.asking.next_query(self.timer, &self.sources, last_chance)
    }

    /// The sources that a query is about.
    pub(super) fn asked(&self, about: About, last_chance: Time) -> impl Iterator<Item = IpAddr> {
        let is_asked = move |source: &&Source| about.names(source, last_chance);
        self.sources.iter().filter(is_asked).map(|source| source.address)
    }

    /// A query is sent.
    pub(super) fn sent(&mut self, about: About, last_chance: Time) {
        self.asking.sent(&mut self.sources, about, last_chance);
    }

    /// When something is due next: now, if a query waits to be sent.
    pub(super) fn deadline(&self, now: Time) -> Option<Time> {
        let sources = self.sources.iter().filter_map(|source| source.timer);
        let members = self.members.iter().map(Member::next_timeout);
        let unknown = Some(self.unknown_until).filter(|until| *until > now);
        self.timer.into_iter().chain(self.asking.next()).chain(unknown).chain(sources).chain(members).min()
    }

    /// What timers do that have run out (RFC 3376 sections 6.3 and 6.5). `left` is told which hosts are no
    /// longer members.
    pub(super) fn expire(&mut self, now: Time, mut left: impl FnMut(IpAddr)) {
        let has_expired = |timer: Option<Time>| timer.is_some_and(|timer| timer <= now);
        for source in self.sources.iter_mut().filter(|source| has_expired(source.timer)) {
            (source.timer, source.left, source.is_due) = (None, 0, false);
            self.is_changed = true;
        }
        if has_expired(self.timer) {
            self.timer = None;
            self.is_changed = true;
        }
        if self.timer.is_none() {
            self.sources.retain(|source| source.timer.is_some());
        }
        let is_wanted = self.is_wanted();
        self.members.retain_mut(|member| {
            member.handle_timeout(now);
            let stays = is_wanted && member.until > now;
            if !stays {
                left(member.address);
            }
            stays
        });
        if !is_wanted {
            (self.v1_until, self.v2_until, self.unknown_until) = (Time::ZERO, Time::ZERO, Time::ZERO);
            self.asking = Asking::new();
        }
    }

    /// Works out at which level it is wanted. If no member is known, as when the last known member has left
    /// and others are asked for, it stays as it is.
    pub(super) fn settle_level(&mut self, now: Time) {
        let known = self.members.iter().map(|member| member.level).min().unwrap_or(self.level);
        let level = if self.unknown_until > now { Level::BEST } else { known };
        self.is_changed |= level != self.level;
        self.level = level;
    }

    /// There are members that are not known individually.
    pub(super) fn has_unknown(&mut self, until: Time) {
        self.unknown_until = self.unknown_until.max(until);
    }

    /// Whether this host is the only member.
    pub(super) fn is_alone(&self, host: IpAddr, now: Time) -> bool {
        let is_known = self.unknown_until <= now && self.compatibility(now) == Version::V3;
        is_known && matches!(&self.members[..], [member] if member.address == host)
    }

    /// Whether a host that is a member has another reporter than this one.
    pub(super) fn has_other(&self, host: IpAddr, than: Reporter) -> bool {
        self.find_member(host).is_ok_and(|at| self.members[at].has_other(than))
    }

    /// A member is heard of. False if the host is not known as one.
    pub(super) fn refresh_member(&mut self, host: IpAddr, reporter: Reporter, until: Time) -> bool {
        let at = self.find_member(host);
        at.is_ok_and(|at| {
            let member = &mut self.members[at];
            member.until = until;
            member.is_plain |= reporter == Reporter::Kernel;
            true
        })
    }

    /// A host becomes a member that wants the best as long as it says nothing else.
    pub(super) fn add_member(&mut self, host: IpAddr, reporter: Reporter, until: Time) {
        if let Err(at) = self.find_member(host) {
            let is_plain = reporter == Reporter::Kernel;
            let (level, said, level_until) = (Level::BEST, None, None);
            self.members.insert(at, Member { address: host, is_plain, level, said, level_until, until });
        }
    }

    /// A reporter of a host leaves. If it has another one, that is asked: it has until then to say that it is a
    /// member still, and at which level. True if the host is a member no more.
    pub(super) fn leave_member(&mut self, host: IpAddr, reporter: Reporter, until: Time) -> bool {
        let Ok(at) = self.find_member(host) else { return false };
        let member = &mut self.members[at];
        if !member.has_other(reporter) {
            self.members.remove(at);
            return true;
        }
        match reporter {
            Reporter::Kernel => member.is_plain = false,
            Reporter::Program => member.said = None,
        }
        member.until = member.until.min(until);
        member.level_until.get_or_insert(until);
        false
    }

    /// A member says which level it wants, or that it is none.
    pub(super) fn set_level(&mut self, host: IpAddr, entry: &Entry, now: Time) -> Result<(), Reason> {
        let at = self.find_member(host).map_err(|_| Reason::LevelOfNoMember)?;
        let member = &mut self.members[at];
        if let Some((newest, said)) = member.said {
            let behind = newest.wrapping_sub(entry.sequence);
            if (1..=LATE_SEQUENCES).contains(&behind) && now.since(said) < LATE_WITHIN {
                return Err(Reason::LateLevel);
            }
        }
        member.said = Some((entry.sequence, now));
        if let Some(level) = Level::lowered(entry.level) {
            (member.level, member.level_until) = (level, None);
        }
        Ok(())
    }

    /// The same, said otherwise than by a report: it counts until the member says something else.
    pub(super) fn set_level_of(&mut self, host: IpAddr, level: Level) -> Result<(), Reason> {
        let at = self.find_member(host).map_err(|_| Reason::LevelOfNoMember)?;
        (self.members[at].level, self.members[at].level_until) = (level, None);
        Ok(())
    }

    fn find_member(&self, host: IpAddr) -> Result<usize, usize> {
        self.members.binary_search_by_key(&host, |member| member.address)
    }
}
