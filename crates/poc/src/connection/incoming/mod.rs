//! The receiver's half of a flow: what came, what waits for its turn, and how far it is.

mod assembly;
mod save;
mod unread;

use std::collections::BTreeMap;

use bytes::Bytes;
use outflow_media::Time;
use outflow_petri::net;
use outflow_petri::net::{Engine, Need, Verdict};
use outflow_petri::service::Flow;

use self::assembly::Assembly;
use self::unread::Unread;
use super::spanset::SpanSet;
use super::{Event, Violation};
use crate::limits::SPANS_MAX;
use crate::packet::{Fragment, Progress, Span};

/// What became of units at their receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IncomingCounts {
    /// Units delivered.
    pub delivered: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Units that it went on without.
    pub lost: u64,
    /// Units that were there and not delivered, because their time had not come when it was over.
    pub deleted: u64,
    /// Units that the sender gave up in time.
    pub given_up: u64,
    /// Fragments of units that came before.
    pub duplicate: u64,
    /// Fragments of units that the receiver does not wait for any more.
    pub late: u64,
}

#[derive(Debug)]
pub(super) struct Incoming {
    flow: Flow,
    engine: Engine,
    assembling: BTreeMap<u64, Assembly>,
    /// Complete, and not to be delivered yet.
    held: BTreeMap<u64, Bytes>,
    /// Bytes of both, and of what was not read.
    buffered: u64,
    unread: Unread,
    /// Not delivered, of what the peer may not know of.
    lost: SpanSet,
    /// The peer knows of all below.
    known_below: u64,
    /// The first unit that the peer was not given room for, whatever the engine has.
    window_end: u64,
    /// What it was told last, if that may still come to it.
    told: Option<(u64, u64)>,
    counts: IncomingCounts,
}

impl Incoming {
    pub(super) fn new(now: Time, flow: Flow) -> Self {
        let engine = Engine::new(flow.net.clone(), flow.rounds as usize, now);
        Incoming {
            window_end: engine.window_end(),
            told: Some((0, engine.window_end())),
            engine,
            flow,
            assembling: BTreeMap::new(),
            held: BTreeMap::new(),
            buffered: 0,
            unread: Unread::default(),
            lost: SpanSet::default(),
            known_below: 0,
            counts: IncomingCounts::default(),
        }
    }

    pub(super) fn flow(&self) -> &Flow {
        &self.flow
    }

    pub(super) fn counts(&self) -> IncomingCounts {
        self.counts
    }

    /// Bytes of units that are kept, read or not.
    pub(super) fn buffered(&self) -> u64 {
        self.buffered
    }

    /// A piece of a unit came.
    pub(super) fn handle_fragment(&mut self, now: Time, fragment: &Fragment<'_>) -> Result<(), Violation> {
        let unit = fragment.unit;
        if unit >= self.window_end {
            return Err(Violation("sends more than it was given room for"));
        }
        self.engine.handle_timeout(now);
        self.follow(None);
        if self.engine.need(unit) == Need::No {
            let is_over = self.lost.contains(unit) || unit < self.known_below;
            *(if is_over { &mut self.counts.late } else { &mut self.counts.duplicate }) += 1;
            return Ok(());
        }
        let whole = if fragment.bytes.len() == fragment.unit_bytes as usize {
            self.forget(unit);
            self.room(fragment.unit_bytes)?;
            Bytes::copy_from_slice(fragment.bytes)
        } else {
            let Some(whole) = self.assemble(fragment)? else { return Ok(()) };
            whole
        };
        self.complete(now, unit, whole);
        Ok(())
    }

    /// Adds a piece of a unit of several. Answers the unit if it is complete.
    fn assemble(&mut self, fragment: &Fragment<'_>) -> Result<Option<Bytes>, Violation> {
        let unit = fragment.unit;
        if !self.assembling.contains_key(&unit) {
            self.room(fragment.unit_bytes)?;
            self.buffered += u64::from(fragment.unit_bytes);
            self.assembling.insert(unit, Assembly::new(fragment.unit_bytes));
        }
        let Some(assembly) = self.assembling.get_mut(&unit) else { return Ok(None) };
        if !assembly.add(fragment)? {
            return Ok(None);
        }
        self.buffered -= u64::from(fragment.unit_bytes);
        Ok(self.assembling.remove(&unit).map(Assembly::whole))
    }

    fn complete(&mut self, now: Time, unit: u64, whole: Bytes) {
        match self.engine.handle_received(now, unit) {
            Verdict::Deliver => self.follow(Some((unit, whole))),
            Verdict::Memorise => {
                self.buffered += whole.len() as u64;
                self.held.insert(unit, whole);
                self.follow(None);
            }
            Verdict::Duplicate => self.counts.duplicate += 1,
            Verdict::Late | Verdict::BeyondWindow => {
                self.counts.late += 1;
                self.follow(None);
            }
        }
    }

    /// What the engine says.
    fn follow(&mut self, mut current: Option<(u64, Bytes)>) {
        while let Some(event) = self.engine.poll() {
            match event {
                net::Event::Deliver(unit) => {
                    let is_current = current.as_ref().is_some_and(|(number, _)| *number == unit);
                    let whole =
                        if is_current { current.take().map(|(_, whole)| whole) } else { self.unhold(unit) };
                    let Some(whole) = whole else { continue };
                    self.counts.delivered += 1;
                    self.counts.bytes += whole.len() as u64;
                    self.buffered += whole.len() as u64;
                    self.unread.push(unit, Some(whole));
                }
                net::Event::Delete(unit) => {
                    self.unhold(unit);
                    self.counts.deleted += 1;
                    self.lose(unit);
                }
                net::Event::Lost(unit) => {
                    self.forget(unit);
                    self.counts.lost += 1;
                    self.lose(unit);
                }
                net::Event::Fired { .. } => (),
            }
        }
    }

    fn lose(&mut self, unit: u64) {
        self.lost.insert(Span::of(unit));
        self.unread.push(unit, None);
    }

    /// Takes out what was held.
    fn unhold(&mut self, unit: u64) -> Option<Bytes> {
        let whole = self.held.remove(&unit)?;
        self.buffered -= whole.len() as u64;
        Some(whole)
    }

    /// Throws away what came of a unit.
    fn forget(&mut self, unit: u64) {
        if let Some(assembly) = self.assembling.remove(&unit) {
            self.buffered -= u64::from(assembly.bytes());
        }
    }

    fn room(&self, bytes: u32) -> Result<(), Violation> {
        let is_kept = self.buffered + u64::from(bytes) <= u64::from(self.flow.buffer_bytes);
        if is_kept { Ok(()) } else { Err(Violation("sends more bytes than it was given room for")) }
    }

    /// Units will not come (any more). What came before is delivered all the same.
    pub(super) fn handle_given_up(&mut self, now: Time, span: Span) -> Result<(), Violation> {
        if span.last >= self.window_end {
            return Err(Violation("gives up what it was not given room for"));
        }
        for unit in span.first.max(self.engine.settled_below())..=span.last {
            if self.engine.handle_absent(now, unit) == Verdict::Memorise {
                self.forget(unit);
                self.counts.given_up += 1;
                self.lose(unit);
            }
            self.follow(None);
        }
        Ok(())
    }

    /// When something becomes deliverable, or is not waited for any more.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.engine.next_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.engine.handle_timeout(now);
        self.follow(None);
    }

    /// Whether the application has something to read.
    pub(super) fn has_unread(&self) -> bool {
        self.unread.lowest().is_some()
    }

    /// What the application is told next.
    pub(super) fn poll(&mut self) -> Option<Event> {
        let (unit, whole) = self.unread.pop()?;
        Some(match whole {
            Some(data) => {
                self.buffered -= data.len() as u64;
                Event::Delivered { unit, data }
            }
            None => Event::Missed { unit },
        })
    }

    /// How far it is: what is over and was read, no more of it than the list of what was lost has room for,
    /// and the end of the window, which begins with what is not. Both never go back.
    fn state(&self) -> (u64, u64) {
        let settled = self.engine.settled_below().min(self.unread.lowest().unwrap_or(u64::MAX));
        let beyond = self.lost.spans().get(SPANS_MAX).map_or(u64::MAX, |span| span.first);
        let settled = settled.min(beyond);
        let (round, _) = self.flow.net.split(settled);
        let end = self.flow.net.unit(round.saturating_add(u64::from(self.flow.rounds)), 0);
        (settled, end.min(self.engine.window_end()))
    }

    /// Whether there is something to tell.
    pub(super) fn has_news(&self) -> bool {
        self.told != Some(self.state())
    }

    /// What to tell now. What was lost is said until it is known to have come.
    pub(super) fn progress(&self, spans: &mut Vec<Span>) -> (u64, u64) {
        let (settled, window_end) = self.state();
        spans.clear();
        spans.extend(self.lost.spans().iter().filter(|span| span.first < settled).take(SPANS_MAX));
        if let Some(last) = spans.last_mut() {
            last.last = last.last.min(settled - 1);
        }
        (settled, window_end)
    }

    /// It was sent.
    pub(super) fn handle_told(&mut self, progress: &Progress<'_>) {
        self.told = Some((progress.settled_below, progress.window_end));
        self.window_end = self.window_end.max(progress.window_end);
    }

    /// It came.
    pub(super) fn handle_known(&mut self, settled: u64) {
        self.known_below = self.known_below.max(settled);
        self.lost.remove_below(self.known_below);
    }

    /// It may not have come.
    pub(super) fn handle_not_known(&mut self, settled: u64) {
        if settled >= self.known_below {
            self.told = None;
        }
    }
}

#[cfg(test)]
mod inspect;
