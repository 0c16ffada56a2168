//! The sender's half of a flow: units that wait, that are under way, and what becomes of them.

mod again;
mod save;
mod shed;
mod unit;
mod write;

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use outflow_congestion::Controller;
use outflow_media::Time;
use outflow_petri::net::{Engine, Need, Verdict};
use outflow_petri::service::Flow;

use self::again::Again;
use self::shed::Shedder;
use self::unit::{Fate, Unit};
pub(super) use self::write::Draft;
use super::contents::Piece;
use super::spanset::SpanSet;
use super::{Event, NotSent, SendError, Violation, Worth};
use crate::limits::UNITS_OUTSTANDING_MAX;
use crate::packet::{Progress, Span};
use crate::recovery::{Piece as RepairPiece, Repair, RepairCounts, RepairSettings, Repairs, Rtt};

/// What the path allows.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathView<'a> {
    /// Half a round trip.
    pub(super) one_way: Duration,
    pub(super) controller: &'a Controller,
}

impl PathView<'_> {
    /// How many bytes get there before a time. An eighth of it is kept in case the path gets worse: a
    /// sender that finds out only then has sent what is missed less, and is late with what is missed most.
    fn affordable(&self, now: Time, until: Time) -> u64 {
        let time = until.since(now).saturating_sub(self.one_way);
        self.controller.affordable(now, time - time / 8)
    }

    /// Whether what is sent now comes too late.
    fn is_late(&self, now: Time, until: Option<Time>) -> bool {
        until.is_some_and(|until| now + self.one_way >= until)
    }
}

/// What became of units at their sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutgoingCounts {
    /// Units that the application gave.
    pub units: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Units that the receiver had, or had no use for any more, when it was done with them.
    pub delivered: u64,
    /// Units that it had not.
    pub lost: u64,
    /// Given up before they were sent as a whole: [`NotSent::TooLate`].
    pub too_late: u64,
    /// The same: [`NotSent::Overload`].
    pub overload: u64,
    /// The same: [`NotSent::Dependency`].
    pub dependency: u64,
    /// The same: [`NotSent::NotNeeded`].
    pub not_needed: u64,
    /// What was sent again, and what was not.
    pub repairs: RepairCounts,
}

#[derive(Debug)]
pub(super) struct Outgoing {
    flow: Flow,
    /// Runs as the receiver's does, as far as that is known.
    engine: Engine,
    /// From `base` on, up to `next`.
    units: VecDeque<Unit>,
    /// The peer is done with all below.
    base: u64,
    next: u64,
    /// All below were sent as a whole, or are not to be sent.
    cursor: u64,
    /// What the engine was told of, all below.
    told: u64,
    queued_bytes: u64,
    /// Bytes of units that the peer may keep.
    outstanding: u64,
    window_end: u64,
    repairs: Repairs,
    again: Again,
    shedder: Shedder,
    /// Given up, to be said.
    news: SpanSet,
    spans: Vec<Span>,
    counts: OutgoingCounts,
}

impl Outgoing {
    pub(super) fn new(now: Time, flow: Flow, repairs: RepairSettings) -> Self {
        let engine = Engine::new(flow.net.clone(), flow.rounds as usize, now);
        Outgoing {
            window_end: engine.window_end(),
            engine,
            units: VecDeque::new(),
            base: 0,
            next: 0,
            cursor: 0,
            told: 0,
            queued_bytes: 0,
            outstanding: 0,
            repairs: Repairs::new(repairs),
            again: Again::default(),
            shedder: Shedder::new(&flow),
            news: SpanSet::default(),
            spans: Vec::new(),
            counts: OutgoingCounts::default(),
            flow,
        }
    }

    /// The unit that comes next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn flow(&self) -> &Flow {
        &self.flow
    }

    pub(super) fn counts(&self) -> OutgoingCounts {
        OutgoingCounts { repairs: self.repairs.counts(), ..self.counts }
    }

    /// Bytes that wait to be sent for the first time.
    pub(super) fn queued_bytes(&self) -> u64 {
        self.queued_bytes
    }

    /// Bytes that wait to be sent, whether or not for the first time.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.queued_bytes + self.again.bytes()
    }

    /// Whether a unit of some size would be taken.
    pub(super) fn has_room(&self) -> bool {
        let half = u64::from(self.flow.buffer_bytes) / 2;
        self.queued_bytes <= half && self.units.len() <= UNITS_OUTSTANDING_MAX / 2
    }

    /// Whether the peer is done with everything.
    pub(super) fn is_done(&self) -> bool {
        self.base >= self.next && self.news.is_empty()
    }

    /// A unit to be sent. What is left out before it does not exist.
    pub(super) fn send(
        &mut self,
        now: Time,
        unit: u64,
        data: Bytes,
        worth: Worth,
        path: PathView<'_>,
        events: &mut VecDeque<Event>,
    ) -> Result<(), SendError> {
        self.check(unit, data.len())?;
        // However far it is, it comes nearer.
        self.skip(now, unit, events)?;
        if self.units.len() >= UNITS_OUTSTANDING_MAX {
            return Err(SendError::Full);
        }
        let (_, object) = self.flow.net.split(unit);
        let agreed = self.flow.class(object);
        let class = worth.class.map_or(agreed.repair, |class| class.max(agreed.repair));
        let valid = agreed.validity.map(|validity| now + path.one_way + validity);
        let until = worth.useful_for.map(|time| now + time).into_iter().chain(valid).min();
        self.counts.units += 1;
        self.counts.bytes += data.len() as u64;
        self.next = unit + 1;
        if unit < self.base {
            self.not_sent(unit, NotSent::NotNeeded, events);
            self.lose(unit, events);
            return Ok(());
        }
        self.queued_bytes += data.len() as u64;
        self.units.push_back(Unit::new(data, until, class));
        if self.shedder.is_orphan(unit) {
            self.give_up(now, unit, NotSent::Dependency, events);
            return Ok(());
        }
        self.shedder.note(unit, class, worth.rank);
        if let Some(until) = until {
            self.shed(now, until, path, events);
        }
        Ok(())
    }

    /// No more units come. Where some may wait for others behind them, those of the last round do not exist.
    pub(super) fn finish(&mut self, now: Time, events: &mut VecDeque<Event>) {
        let (round, object) = self.flow.net.split(self.next);
        if object > 0 && !self.flow.net.is_sent_in_order() {
            self.skip_to(now, self.flow.net.unit(round + 1, 0), events);
        }
    }

    /// The same, as far as there is room for them.
    pub(super) fn skip(
        &mut self,
        now: Time,
        unit: u64,
        events: &mut VecDeque<Event>,
    ) -> Result<(), SendError> {
        let room = UNITS_OUTSTANDING_MAX.saturating_sub(self.units.len());
        let last = self.next.max(self.base).saturating_add(room as u64);
        self.skip_to(now, unit.min(last), events);
        if unit <= last { Ok(()) } else { Err(SendError::Full) }
    }

    /// Units below this one that were not given do not exist.
    fn skip_to(&mut self, now: Time, unit: u64, events: &mut VecDeque<Event>) {
        if self.next >= unit {
            return;
        }
        // The peer went on without these already.
        (self.next..unit.min(self.base)).for_each(|unit| self.lose(unit, events));
        let first = self.next.max(self.base);
        if first < unit {
            self.news.insert(Span { first, last: unit - 1 });
        }
        for _ in first..unit {
            self.units.push_back(Unit::absent());
        }
        self.next = unit;
        self.pass_closed();
        self.tell_engine(now);
    }

    fn check(&self, unit: u64, bytes: usize) -> Result<(), SendError> {
        let most = self.flow.buffer_bytes;
        if bytes as u64 > u64::from(most) {
            return Err(SendError::TooLong { bytes, most });
        }
        if unit < self.next {
            return Err(SendError::Passed { unit, next: self.next });
        }
        let is_full = self.queued_bytes > 0 && self.queued_bytes + bytes as u64 > u64::from(most);
        if is_full { Err(SendError::Full) } else { Ok(()) }
    }

    /// Gives up what is worth least until the rest can be sent in time.
    fn shed(&mut self, now: Time, until: Time, path: PathView<'_>, events: &mut VecDeque<Event>) {
        let affordable = path.affordable(now, until);
        if self.waiting_bytes() <= affordable {
            return;
        }
        let is_begun = self.unit(self.cursor).is_some_and(|unit| unit.is_begun);
        let from = self.cursor + u64::from(is_begun);
        while self.waiting_bytes() > affordable {
            let Some(group) = self.shedder.take_least(from) else { return };
            self.give_up_all(now, group.first..=group.last, NotSent::Overload, events);
            while let Some(orphan) = self.shedder.take_orphan(from) {
                self.give_up_all(now, orphan.first..=orphan.last, NotSent::Dependency, events);
            }
        }
    }

    fn give_up_all(
        &mut self,
        now: Time,
        units: core::ops::RangeInclusive<u64>,
        why: NotSent,
        events: &mut VecDeque<Event>,
    ) {
        units.for_each(|unit| self.give_up(now, unit, why, events));
    }

    fn give_up(&mut self, now: Time, number: u64, why: NotSent, events: &mut VecDeque<Event>) {
        let Some(unit) = self.unit_mut(number).filter(|unit| unit.is_open()) else { return };
        let queued = unit.queued();
        unit.close(Fate::GivenUp);
        self.queued_bytes -= u64::from(queued);
        self.news.insert(Span::of(number));
        self.pass_closed();
        self.tell_engine(now);
        self.not_sent(number, why, events);
    }

    fn not_sent(&mut self, unit: u64, why: NotSent, events: &mut VecDeque<Event>) {
        match why {
            NotSent::TooLate => self.counts.too_late += 1,
            NotSent::Overload => self.counts.overload += 1,
            NotSent::Dependency => self.counts.dependency += 1,
            NotSent::NotNeeded => self.counts.not_needed += 1,
            NotSent::NotRepaired(_) => (),
        }
        events.push_back(Event::GivenUp { unit, why });
    }

    fn lose(&mut self, unit: u64, events: &mut VecDeque<Event>) {
        self.counts.lost += 1;
        events.push_back(Event::Lost { unit });
    }

    /// Tells the engine what is known from the lowest unit on that it does not know of.
    fn tell_engine(&mut self, now: Time) {
        while self.told < self.next {
            let is_over = self.told < self.base;
            let verdict = match self.unit(self.told).map(|unit| unit.fate) {
                Some(Fate::Open) => break,
                Some(Fate::Acked) if !is_over => self.engine.handle_received(now, self.told),
                _ => self.engine.handle_absent(now, self.told),
            };
            if verdict == Verdict::BeyondWindow {
                break;
            }
            self.told += 1;
        }
        while self.engine.poll().is_some() {}
    }

    /// When a copy of something lost is due.
    pub(super) fn next_copy(&self) -> Option<Time> {
        self.again.next_timeout()
    }

    /// From when on the next unit can no longer be sent in time: it is given up then.
    pub(super) fn next_late(&self, one_way: Duration) -> Option<Time> {
        let unit = self.unit(self.cursor).filter(|unit| unit.is_open() && !unit.is_begun)?;
        Some(unit.until? - one_way)
    }

    /// Gives up what cannot be sent in time any more.
    pub(super) fn handle_timeout(&mut self, now: Time, one_way: Duration, events: &mut VecDeque<Event>) {
        self.pass_closed();
        self.again.handle_timeout(now);
        while self.next_late(one_way).is_some_and(|late| late <= now) {
            self.give_up(now, self.cursor, NotSent::TooLate, events);
            self.pass_closed();
        }
    }

    /// A piece came.
    pub(super) fn handle_acked(&mut self, now: Time, piece: &Piece) {
        self.again.handle_over(piece);
        let Some(unit) = self.unit_mut(piece.unit).filter(|unit| unit.is_open()) else { return };
        unit.acked.insert(piece.offset, piece.offset + piece.bytes);
        if !unit.acked.is_full(unit.bytes) {
            return;
        }
        unit.close(Fate::Acked);
        if piece.unit > self.told {
            self.engine.handle_received(now, piece.unit);
        }
        self.tell_engine(now);
    }

    /// A piece was lost.
    pub(super) fn handle_lost(&mut self, now: Time, rtt: &Rtt, piece: &Piece, events: &mut VecDeque<Event>) {
        let is_last = self.again.handle_lost(piece);
        let to = piece.offset + piece.bytes;
        let unit = self.unit(piece.unit).filter(|unit| is_last && unit.lacks(piece.offset, to));
        let Some((class, useful_until)) = unit.map(|unit| (unit.class, unit.until)) else { return };
        self.engine.handle_timeout(now);
        while self.engine.poll().is_some() {}
        // The engine is told of what is sent when it is sent: it is ahead of the peer's by the way there.
        let need = match self.engine.need(piece.unit) {
            Need::Until(until) => Need::Until(until + rtt.smoothed() / 2),
            need => need,
        };
        let attempts = piece.attempts;
        let lost = RepairPiece { need, useful_until, class, attempts, bytes: piece.bytes };
        match self.repairs.decide(now, rtt, &lost) {
            Repair::Again { copies } => {
                self.again.push_back(Piece { attempts: attempts + 1, ..*piece }, copies);
            }
            Repair::GiveUp(why) => self.give_up(now, piece.unit, NotSent::NotRepaired(why), events),
        }
    }

    /// What may be missing is sent once more, to see whether the peer is there.
    pub(super) fn probe(&mut self, piece: &Piece) {
        if self.unit(piece.unit).is_some_and(Unit::is_open) {
            self.again.push_front(*piece, 1);
        }
    }

    /// The peer may not know that these were given up.
    pub(super) fn handle_news_lost(&mut self, span: Span) {
        let first = span.first.max(self.base);
        if first <= span.last {
            self.news.insert(Span { first, ..span });
        }
    }

    /// The peer says how far it is.
    pub(super) fn handle_progress(
        &mut self,
        now: Time,
        progress: &Progress<'_>,
        events: &mut VecDeque<Event>,
    ) -> Result<(), Violation> {
        let (from, to) = (self.base, progress.settled_below);
        let end_of = |unit: u64, rounds: u32| {
            let (round, _) = self.flow.net.split(unit);
            self.flow.net.unit(round.saturating_add(u64::from(rounds)), 0)
        };
        // Nothing is over before there was evidence of its round, and what is kept begins with what is not.
        if to > end_of(self.next.max(self.base), 1) || progress.window_end > end_of(to, self.flow.rounds) {
            return Err(Violation("says that it is done with what it was never sent"));
        }
        self.window_end = self.window_end.max(progress.window_end);
        if to <= from {
            return Ok(());
        }
        let mut lost = progress.lost.iter().peekable();
        for number in from..to {
            while lost.peek().is_some_and(|span| span.last < number) {
                lost.next();
            }
            let is_lost = lost.peek().is_some_and(|span| span.contains(number));
            if let Some(unit) = self.units.pop_front() {
                self.queued_bytes -= u64::from(unit.queued());
                self.outstanding -= if unit.is_begun { u64::from(unit.bytes) } else { 0 };
                if is_lost {
                    self.lose(number, events);
                } else {
                    self.counts.delivered += 1;
                }
            }
            self.base = number + 1;
        }
        self.cursor = self.cursor.max(self.base);
        self.pass_closed();
        self.shedder.forget_below(self.cursor);
        self.news.remove_below(self.base);
        self.tell_engine(now);
        Ok(())
    }

    fn unit(&self, number: u64) -> Option<&Unit> {
        self.units.get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    fn unit_mut(&mut self, number: u64) -> Option<&mut Unit> {
        self.units.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }
}

#[cfg(test)]
mod inspect;
