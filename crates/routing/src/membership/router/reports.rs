//! What hosts say: joins, leaves and levels (RFC 3376 sections 6.4 and 7.3.2).

use std::net::IpAddr;

use outflow_media::Time;

use super::Router;
use super::group::{Group, Reporter};
use super::hosts::Heard;
use super::timing::Asks;
use crate::membership::packet::{Addresses, Entry, Message, RecordKind};
use crate::membership::{Family, Level, Reason, Version, address};

/// A record, or what is the same of an older version.
#[derive(Clone, Copy)]
struct Reported<'a> {
    host: IpAddr,
    is_known: bool,
    reporter: Reporter,
    version: Version,
    kind: RecordKind,
    group: IpAddr,
    sources: Addresses<'a>,
}

impl Reported<'_> {
    /// Whether the host is a member because of it.
    const fn joins(&self) -> bool {
        match self.kind {
            RecordKind::IsEx | RecordKind::ToEx => true,
            RecordKind::IsIn | RecordKind::ToIn | RecordKind::Allow => !self.sources.is_empty(),
            RecordKind::Block => false,
        }
    }

    /// Whether it is none any more because of it.
    fn leaves(&self) -> bool {
        matches!(self.kind, RecordKind::IsIn | RecordKind::ToIn) && self.sources.is_empty()
    }
}

impl Router {
    /// A message of a host.
    pub(super) fn handle_answer(&mut self, host: IpAddr, message: &Message<'_>) {
        let is_known = match self.hosts.hear(host, self.now) {
            Heard::Known => true,
            Heard::Stranger => false,
            Heard::TooOften => return self.counters.count(Reason::RateLimit),
        };
        let none = Addresses::none(Family::of(host));
        let reporter = Reporter::Kernel;
        let old =
            |version, kind, group| Reported { host, is_known, reporter, version, kind, group, sources: none };
        match *message {
            Message::OldReport { version, group } => self.handle(old(version, RecordKind::IsEx, group)),
            Message::Leave { group } => self.handle(old(Version::V2, RecordKind::ToIn, group)),
            Message::Report(report) => {
                let has_levels = report.extension.levels().next().is_some();
                let reporter = if has_levels { Reporter::Program } else { Reporter::Kernel };
                for record in report.records {
                    let version = Version::V3;
                    let (kind, group, sources) = (record.kind, record.group, record.sources);
                    self.handle(Reported { host, is_known, reporter, version, kind, group, sources });
                }
                report.extension.levels().for_each(|entry| self.handle_level(host, &entry));
                self.counters.add(Reason::UnknownRecord, report.unknown.into());
                self.counters.add(Reason::Extension, report.extension.is_malformed().into());
            }
            Message::Query(_) => (),
        }
    }

    fn handle(&mut self, said: Reported<'_>) {
        if let Err(reason) = self.try_handle(said) {
            self.counters.count(reason);
        }
    }

    fn try_handle(&mut self, mut said: Reported<'_>) -> Result<(), Reason> {
        self.check_group(&said)?;
        let slot = self.slot_of(&said)?;
        let (now, mut timing) = (self.now, self.timing());
        let until = now + timing.membership;
        let group = self.groups.get_mut(slot).ok_or(Reason::UnknownGroup)?;
        if said.version < Version::V3 && said.kind == RecordKind::IsEx {
            group.hear_older(said.version, until);
        }
        ignore_for_older(group.compatibility(now), &mut said)?;
        let is_last = group.is_alone(said.host, now) && !group.has_other(said.host, said.reporter);
        if self.settings.fast_leave && is_last {
            timing.asks = Asks::AtOnce;
        }
        if said.joins() {
            let is_member = group.refresh_member(said.host, said.reporter, until);
            if !is_member && self.hosts.has_place(said.host) {
                group.add_member(said.host, said.reporter, until);
                self.hosts.join(said.host);
            } else if !is_member {
                group.has_unknown(until);
            }
            if said.version < Version::V3 || said.host.is_unspecified() {
                group.has_unknown(until);
            }
        } else if said.leaves() && group.leave_member(said.host, said.reporter, timing.last_chance()) {
            self.hosts.leave(said.host, now);
        }
        let refused = group.apply(said.kind, said.sources, &timing);
        self.counters.add(Reason::SourceLimit, refused);
        self.settle(slot);
        Ok(())
    }

    fn check_group(&self, said: &Reported<'_>) -> Result<(), Reason> {
        // A group of the source-specific range is taken only with sources to receive (RFC 4604 section 2.2).
        let is_specific = || address::is_source_specific(said.group);
        let excludes = matches!(said.kind, RecordKind::IsEx | RecordKind::ToEx);
        match () {
            () if !said.group.is_multicast() => Err(Reason::NotMulticast),
            () if address::is_local(said.group) => Err(Reason::LocalGroup),
            () if (said.version < Version::V3 || excludes) && is_specific() => Err(Reason::NotSourceSpecific),
            () => Ok(()),
        }
    }

    /// The slot of a group that is wanted, or that this makes wanted.
    fn slot_of(&mut self, said: &Reported<'_>) -> Result<u32, Reason> {
        let found = self.groups.find(said.group);
        let is_wanted = |slot: &u32| self.groups.get(*slot).is_some_and(Group::is_wanted);
        if let Some(slot) = found.filter(is_wanted) {
            return Ok(slot);
        }
        match () {
            () if !said.joins() => Err(Reason::UnknownGroup),
            () if !said.is_known => Err(Reason::HostLimit),
            () if !self.hosts.has_place(said.host) => Err(Reason::HostGroupLimit),
            // What is over stays until it is told.
            () if found.is_some() => found.ok_or(Reason::UnknownGroup),
            () if self.groups.len() >= self.settings.groups_max => Err(Reason::GroupLimit),
            () => Ok(self.groups.insert(said.group)),
        }
    }

    /// A host says by other means than a report which level it wants of a group that it is a member of, as a
    /// host without the right to write reports does. It holds until the host says something else, or is a
    /// member no more: reports without levels leave it. The caller knows which host it is. Refused if it is
    /// no member that is known, or says too much; that is counted, too.
    pub fn say_level(&mut self, now: Time, host: IpAddr, group: IpAddr, level: Level) -> Result<(), Reason> {
        self.handle_timeout(now);
        self.try_say_level(host, group, level).inspect_err(|reason| self.counters.count(*reason))
    }

    fn try_say_level(&mut self, host: IpAddr, group: IpAddr, level: Level) -> Result<(), Reason> {
        let slot = self.groups.find(group).ok_or(Reason::LevelOfNoMember)?;
        // No host takes a place by it.
        if self.hosts.is_known(host) && self.hosts.hear(host, self.now) == Heard::TooOften {
            return Err(Reason::RateLimit);
        }
        let group = self.groups.get_mut(slot).ok_or(Reason::LevelOfNoMember)?;
        group.set_level_of(host, level)?;
        self.settle(slot);
        Ok(())
    }

    /// A host says which level of a group it wants.
    fn handle_level(&mut self, host: IpAddr, entry: &Entry) {
        let (slot, now, until) = (self.groups.find(entry.group), self.now, self.timing().last_chance());
        let group = slot.and_then(|slot| Some((slot, self.groups.get_mut(slot)?)));
        let Some((slot, group)) = group else { return self.counters.count(Reason::LevelOfNoMember) };
        if let Err(reason) = group.set_level(host, entry, now) {
            return self.counters.count(reason);
        }
        if entry.level == 0 && group.leave_member(host, Reporter::Program, until) {
            self.hosts.leave(host, now);
        }
        self.settle(slot);
    }
}

/// What hosts of an older version cannot follow is ignored for a group that they are members of (RFC 3376
/// section 7.3.2).
fn ignore_for_older(version: Version, said: &mut Reported<'_>) -> Result<(), Reason> {
    match (version, said.kind) {
        (Version::V1 | Version::V2, RecordKind::Block) | (Version::V1, RecordKind::ToIn) => {
            Err(Reason::OlderHosts)
        }
        (Version::V1 | Version::V2, RecordKind::ToEx) => {
            said.sources = Addresses::none(Family::of(said.group));
            Ok(())
        }
        _ => Ok(()),
    }
}
