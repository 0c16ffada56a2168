//! What a host wants of a group, and what of it is still to be said (RFC 3376 sections 5.1 and 5.2).

use std::net::IpAddr;

use outflow_media::Time;

use super::Interest;
use crate::membership::limits::SOURCES_MAX;
use crate::membership::packet::{RecordKind, ReportWriter};
use crate::membership::{Level, Mode, Version};

/// A source that is newly wanted, or no longer, and how often that is still to be said.
#[derive(Debug)]
struct Change {
    source: IpAddr,
    left: u8,
}

/// What a host wants of a group.
#[derive(Debug)]
pub(super) struct Membership {
    mode: Mode,
    /// In their order.
    sources: Vec<IpAddr>,
    level: Level,
    /// How often it is still to be said what is wanted from now on, and what is wanted now.
    mode_left: u8,
    state_left: u8,
    changes: Vec<Change>,
    /// When one of these is said next.
    pub(super) change_at: Option<Time>,
    /// When a query of the group is answered, and the sources that it was about; if none, all of it.
    pub(super) answer_at: Option<Time>,
    asked: Vec<IpAddr>,
}

impl Default for Membership {
    /// Nothing.
    fn default() -> Self {
        Membership {
            mode: Mode::Include,
            sources: Vec::new(),
            level: Level::BEST,
            mode_left: 0,
            state_left: 0,
            changes: Vec::new(),
            change_at: None,
            answer_at: None,
            asked: Vec::new(),
        }
    }
}

impl Membership {
    pub(super) const fn is_member(&self) -> bool {
        matches!(self.mode, Mode::Exclude) || !self.sources.is_empty()
    }

    /// Whether nothing is wanted and nothing is left to say.
    pub(super) const fn is_over(&self) -> bool {
        !self.is_member() && self.change_at.is_none()
    }

    /// Whether a wish has another level.
    pub(super) fn is_new_level(&self, wish: &Interest<'_>) -> bool {
        self.level != wish.level
    }

    /// Takes a wish over, and says what it was before: the mode and the sources.
    fn replace(&mut self, wish: &Interest<'_>) -> (Mode, Vec<IpAddr>) {
        let mut sources = wish.sources.to_vec();
        sources.sort_unstable();
        sources.dedup();
        self.level = wish.level;
        (core::mem::replace(&mut self.mode, wish.mode), core::mem::replace(&mut self.sources, sources))
    }

    /// A wish changes, and is to be said so often from now on (RFC 3376 section 5.1).
    pub(super) fn change(&mut self, wish: &Interest<'_>, robustness: u8, now: Time) {
        if self.is_new_level(wish) {
            (self.state_left, self.change_at) = (robustness, Some(now));
        }
        let (mode, before) = self.replace(wish);
        if self.mode == mode && self.sources == before {
            return;
        }
        self.change_at = Some(now);
        if self.mode != mode || self.mode_left > 0 {
            return self.say_mode(robustness);
        }
        let is_new = |source: &&IpAddr| before.binary_search(source).is_err();
        let is_gone = |source: &&IpAddr| self.sources.binary_search(source).is_err();
        let differ = self.sources.iter().filter(is_new).chain(before.iter().filter(is_gone));
        for source in differ {
            self.changes.retain(|change| change.source != *source);
            self.changes.push(Change { source: *source, left: robustness });
        }
        if self.changes.len() > SOURCES_MAX {
            self.say_mode(robustness);
        }
    }

    /// All of the list is to be said, which says the changes, too.
    fn say_mode(&mut self, robustness: u8) {
        self.mode_left = robustness;
        self.changes.clear();
    }

    /// A wish changes where only joins and leaves can be said. Version 1 says no leaves.
    pub(super) fn change_old(&mut self, wish: &Interest<'_>, version: Version, robustness: u8, now: Time) {
        let was_member = self.is_member();
        self.replace(wish);
        match (was_member, self.is_member()) {
            (false, true) => (self.mode_left, self.change_at) = (robustness, Some(now)),
            (true, false) => {
                self.cancel();
                self.change_at = (version == Version::V2).then_some(now);
            }
            (false, false) | (true, true) => (),
        }
    }

    /// Nothing is left to say.
    pub(super) fn cancel(&mut self) {
        (self.mode_left, self.state_left, self.change_at, self.answer_at) = (0, 0, None, None);
        self.changes.clear();
        self.asked.clear();
    }

    /// Another host of an older version reported the group, so that this one need not (RFC 2236 section 3): but
    /// if its level differs, it shall be heard of.
    pub(super) fn suppress(&mut self) {
        if self.is_member() && self.level == Level::BEST {
            self.cancel();
        }
    }

    /// Whether a message of an older version is due.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.change_at.is_some_and(|due| due <= now) || self.answer_at.is_some_and(|due| due <= now)
    }

    /// A report of an older version was sent.
    pub(super) fn sent_old(&mut self, again: Time) {
        self.answer_at = None;
        self.mode_left = self.mode_left.saturating_sub(1);
        self.change_at = (self.mode_left > 0).then_some(again);
    }

    /// A query of the group, or of some sources, is to be answered (RFC 3376 section 5.2, rules 3 to 5).
    pub(super) fn answer(&mut self, sources: &[IpAddr], due: Time) {
        let is_pending = self.answer_at.is_some();
        let covers_all = is_pending && self.asked.is_empty();
        self.answer_at = Some(self.answer_at.map_or(due, |before| before.min(due)));
        let new = sources.iter().filter(|source| !self.asked.contains(source)).count();
        if covers_all || sources.is_empty() || self.asked.len() + new > SOURCES_MAX {
            self.asked.clear();
            return;
        }
        for source in sources {
            if !self.asked.contains(source) {
                self.asked.push(*source);
            }
        }
    }

    /// The number of the level that goes with a record.
    const fn said_level(&self) -> u8 {
        if self.is_member() { self.level.number() } else { 0 }
    }

    /// Writes what has changed, if it is due.
    pub(super) fn write_change(
        &mut self,
        group: IpAddr,
        now: Time,
        again: Time,
        writer: &mut ReportWriter<'_>,
    ) -> bool {
        if self.change_at.is_none_or(|due| due > now) {
            return true;
        }
        let is_written = if self.mode_left > 0 {
            let kind = if self.mode == Mode::Include { RecordKind::ToIn } else { RecordKind::ToEx };
            writer.push(kind, group, self.sources.iter().copied(), Some(self.said_level()))
        } else if !self.changes.is_empty() {
            self.write_sources(group, writer)
        } else {
            let kind = if self.mode == Mode::Include { RecordKind::IsIn } else { RecordKind::IsEx };
            writer.push(kind, group, self.sources.iter().copied(), Some(self.said_level()))
        };
        if is_written {
            self.sent(again);
        }
        is_written
    }

    /// Writes ALLOW and BLOCK records, or none if they do not all fit.
    fn write_sources(&self, group: IpAddr, writer: &mut ReportWriter<'_>) -> bool {
        let is_listed = |change: &&Change| self.sources.binary_search(&change.source).is_ok();
        let wanted = self.changes.iter().filter(|change| is_listed(change) == (self.mode == Mode::Include));
        let blocked = self.changes.iter().filter(|change| is_listed(change) != (self.mode == Mode::Include));
        let allow = wanted.map(|change| change.source);
        let block = blocked.map(|change| change.source);
        let mut level = Some(self.said_level());
        if !writer.fits(2, self.changes.len(), 1) {
            return false;
        }
        if allow.clone().next().is_some() {
            writer.push(RecordKind::Allow, group, allow, level.take());
        }
        if block.clone().next().is_some() {
            writer.push(RecordKind::Block, group, block, level);
        }
        true
    }

    /// What was due has been said once.
    fn sent(&mut self, again: Time) {
        if self.mode_left > 0 {
            self.mode_left -= 1;
        } else {
            self.changes.iter_mut().for_each(|change| change.left -= 1);
            self.changes.retain(|change| change.left > 0);
        }
        // The level goes with each record.
        self.state_left = self.state_left.saturating_sub(1);
        let is_left = self.mode_left > 0 || !self.changes.is_empty() || self.state_left > 0;
        self.change_at = is_left.then_some(again);
    }

    /// Writes the answer to a query, if it is due.
    pub(super) fn write_answer(
        &mut self,
        group: IpAddr,
        now: Time,
        _: Time,
        writer: &mut ReportWriter<'_>,
    ) -> bool {
        if self.answer_at.is_none_or(|due| due > now) {
            return true;
        }
        let level = Some(self.said_level());
        let includes = self.mode == Mode::Include;
        let is_written = if !self.is_member() {
            true
        } else if self.asked.is_empty() {
            let kind = if includes { RecordKind::IsIn } else { RecordKind::IsEx };
            writer.push(kind, group, self.sources.iter().copied(), level)
        } else {
            let is_wanted = |source: &&IpAddr| self.sources.binary_search(source).is_ok() == includes;
            let wanted = self.asked.iter().filter(is_wanted).copied();
            wanted.clone().next().is_none() || writer.push(RecordKind::IsIn, group, wanted, level)
        };
        if is_written {
            self.answer_at = None;
            self.asked.clear();
        }
        is_written
    }
}
