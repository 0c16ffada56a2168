//! What of units is written to packets.

use std::collections::VecDeque;

use outflow_media::Time;

use super::super::contents::{Item, Piece};
use super::super::{Event, NotSent};
use super::unit::Unit;
use super::{Outgoing, PathView};
use crate::limits::SPANS_MAX;
use crate::packet::{Fragment, Frame, Spans, Writer};

/// A packet that is being written, with its items and the events that come of it.
pub(in crate::connection) struct Draft<'a, 'w> {
    pub(in crate::connection) now: Time,
    pub(in crate::connection) path: PathView<'a>,
    pub(in crate::connection) writer: &'a mut Writer<'w>,
    /// What is in it.
    pub(in crate::connection) items: &'a mut Vec<Item>,
    pub(in crate::connection) events: &'a mut VecDeque<Event>,
}

impl Outgoing {
    /// Whether there is anything to say of units.
    pub(in crate::connection) fn has_news(&self) -> bool {
        self.news.spans().first().is_some_and(|span| span.first < self.window_end)
    }

    /// Whether a unit waits that the peer has room for.
    pub(in crate::connection) fn has_data(&self) -> bool {
        !self.again.is_empty() || self.sendable().is_some()
    }

    /// The next unit to be sent, if the peer keeps it.
    fn sendable(&self) -> Option<&Unit> {
        let unit = self.unit(self.cursor)?;
        let buffered = self.outstanding + u64::from(unit.bytes);
        let is_kept = unit.is_begun || buffered <= u64::from(self.flow.buffer_bytes);
        (is_kept && self.cursor < self.window_end).then_some(unit)
    }

    /// Writes what was given up.
    pub(in crate::connection) fn write_news(&mut self, writer: &mut Writer<'_>, items: &mut Vec<Item>) {
        self.news.take(SPANS_MAX, self.window_end, &mut self.spans);
        if self.spans.is_empty() {
            return;
        }
        if writer.push(&Frame::GivenUp(Spans::new(&self.spans))) {
            items.extend(self.spans.iter().map(|span| Item::GivenUp(*span)));
        } else {
            self.spans.drain(..).for_each(|span| self.news.insert(span));
        }
    }

    /// Writes what is sent again, and behind it what is sent for the first time, as long as there is room.
    pub(in crate::connection) fn write_data(&mut self, mut draft: Draft<'_, '_>) {
        self.again.handle_timeout(draft.now);
        for _ in 0..self.again.len() {
            if !self.write_again(&mut draft) {
                return;
            }
        }
        while self.write_new(&mut draft) {}
    }

    /// Writes the next piece that is sent again, or as much of it as there is room for. Whether there may be
    /// room for more.
    fn write_again(&mut self, draft: &mut Draft<'_, '_>) -> bool {
        let Draft { now, path, .. } = *draft;
        let Some((piece, copies)) = self.again.pop() else { return false };
        let (from, to) = (piece.offset, piece.offset + piece.bytes);
        let unit = self.unit(piece.unit).filter(|unit| unit.lacks(from, to));
        let Some(unit) = unit else {
            self.again.handle_over(&piece);
            return true;
        };
        if path.is_late(now, unit.until) {
            self.again.handle_over(&piece);
            self.give_up(now, piece.unit, NotSent::TooLate, draft.events);
            return true;
        }
        let time = unit.until.map(|until| until.since(now + path.one_way));
        let bytes = &unit.data[from as usize..to as usize];
        let fragment = Fragment { unit: piece.unit, offset: from, unit_bytes: unit.bytes, bytes };
        let Some(rest) = draft.writer.fragment(&fragment) else {
            draft.items.push(Item::Fragment(piece));
            self.again.handle_sent(now, piece, copies, time);
            return true;
        };
        let left = rest.bytes.len() as u32;
        if left == piece.bytes {
            self.again.put_back(piece, copies);
            return false;
        }
        let head = Piece { bytes: piece.bytes - left, ..piece };
        draft.items.push(Item::Fragment(head));
        self.again.handle_sent(now, head, copies, time);
        self.again.push_front(Piece { offset: to - left, bytes: left, ..piece }, copies);
        false
    }

    /// Writes the next unit, or as much of it as there is room for. Whether there may be room for more.
    fn write_new(&mut self, draft: &mut Draft<'_, '_>) -> bool {
        let Draft { now, path, .. } = *draft;
        self.pass_closed();
        let number = self.cursor;
        let Some(unit) = self.sendable() else { return false };
        if !unit.is_begun && path.is_late(now, unit.until) {
            self.give_up(now, number, NotSent::TooLate, draft.events);
            return true;
        }
        let (offset, unit_bytes) = (unit.sent, unit.bytes);
        let fragment = Fragment { unit: number, offset, unit_bytes, bytes: &unit.data[offset as usize..] };
        let rest = draft.writer.fragment(&fragment);
        let left = rest.map_or(0, |rest| rest.bytes.len() as u32);
        if rest.is_some() && left == unit_bytes - offset {
            return false;
        }
        let bytes = unit_bytes - offset - left;
        draft.items.push(Item::Fragment(Piece { unit: number, offset, bytes, attempts: 1 }));
        self.repairs.handle_sent(bytes);
        self.queued_bytes -= u64::from(bytes);
        let index = (number - self.base) as usize;
        let unit = &mut self.units[index];
        unit.sent = offset + bytes;
        if !core::mem::replace(&mut unit.is_begun, true) {
            self.outstanding += u64::from(unit_bytes);
            self.engine.handle_announced(now, number);
            while self.engine.poll().is_some() {}
        }
        left == 0
    }

    /// Moves on behind what is not to be sent (any more).
    pub(super) fn pass_closed(&mut self) {
        let before = self.cursor;
        while let Some(unit) = self.unit(self.cursor) {
            if unit.is_open() && (unit.sent < unit.bytes || !unit.is_begun) {
                break;
            }
            self.cursor += 1;
        }
        if self.cursor != before {
            self.shedder.forget_below(self.cursor);
        }
    }
}
