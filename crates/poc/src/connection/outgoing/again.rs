//! Pieces to be sent again.

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use outflow_media::Time;

use super::super::contents::Piece;
use crate::save::{SavedCopy, SavedOutgoing, Unfit, check};

/// How long after a copy the next one goes, if there is time: losses come in bursts.
const APART: Duration = Duration::from_millis(10);

/// Copies of a piece that were saved: there are some of each loss, and few losses.
const COUNT_MAX: u32 = 1 << 16;

/// Pieces in the order in which they were lost, and how many copies of each are under way.
#[derive(Debug, Default)]
pub(super) struct Again {
    /// With the copies that are still to be sent, in a packet each.
    queue: VecDeque<(Piece, u32)>,
    /// Copies that are not due yet, by when they are.
    later: VecDeque<(Time, Piece, u32)>,
    bytes: u64,
    /// Of pieces with several copies, those under way and to come, by unit and offset.
    copies: BTreeMap<(u64, u32), u32>,
}

impl Again {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Bytes to be sent.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn push_back(&mut self, piece: Piece, copies: u32) {
        self.note(piece, copies);
        self.bytes += u64::from(piece.bytes) * u64::from(copies);
        self.queue.push_back((piece, copies));
    }

    pub(super) fn push_front(&mut self, piece: Piece, copies: u32) {
        self.note(piece, copies);
        self.put_back(piece, copies);
    }

    /// What was taken out and not sent.
    pub(super) fn put_back(&mut self, piece: Piece, copies: u32) {
        self.bytes += u64::from(piece.bytes) * u64::from(copies);
        self.queue.push_front((piece, copies));
    }

    fn note(&mut self, piece: Piece, copies: u32) {
        if copies > 1 {
            *self.copies.entry((piece.unit, piece.offset)).or_default() += copies;
        }
    }

    /// What another one needs to go on: what is to be sent again, and copies that are under way or to come.
    pub(super) fn save(&self) -> (Vec<SavedCopy>, Vec<SavedCopy>) {
        let copy = |piece: &Piece, count: u32, due| SavedCopy { piece: piece.save(), count, due };
        let queue = self.queue.iter().map(|(piece, count)| copy(piece, *count, None));
        let later = self.later.iter().map(|(due, piece, count)| copy(piece, *count, Some(due.as_nanos())));
        let copies = self.copies.iter().map(|((unit, offset), count)| {
            copy(&Piece { unit: *unit, offset: *offset, bytes: 0, attempts: 0 }, *count, None)
        });
        (queue.chain(later).collect(), copies.collect())
    }

    /// One that goes on. `knows` says whether there is such a piece.
    pub(super) fn restore(saved: &SavedOutgoing, knows: impl Fn(&Piece) -> bool) -> Result<Self, Unfit> {
        let mut again = Again::default();
        for SavedCopy { piece, count, due } in saved.again.iter().chain(&saved.copies) {
            let is_right = knows(&Piece::restore(piece)) && (1..=COUNT_MAX).contains(count);
            check(
                is_right && due.is_none_or(|due| due < u64::MAX),
                "piece to be sent again",
                "there is none",
            )?;
        }
        for SavedCopy { piece, count, due } in &saved.again {
            let (piece, count) = (Piece::restore(piece), *count);
            again.bytes += u64::from(piece.bytes) * u64::from(count);
            match due {
                Some(due) => again.later.push_back((Time::from_nanos(*due), piece, count)),
                None => again.queue.push_back((piece, count)),
            }
        }
        again.later.make_contiguous().sort_by_key(|(due, ..)| *due);
        let copies = saved.copies.iter().map(|copy| ((copy.piece.unit, copy.piece.offset), copy.count));
        again.copies = copies.collect();
        Ok(again)
    }

    /// Takes out the first piece, and how often it is to be sent.
    pub(super) fn pop(&mut self) -> Option<(Piece, u32)> {
        let (piece, copies) = self.queue.pop_front()?;
        self.bytes -= u64::from(piece.bytes) * u64::from(copies);
        Some((piece, copies))
    }

    /// A copy of it was sent. The others are for a while later, but not when it is too late: `left` is how
    /// long they may wait at most.
    pub(super) fn handle_sent(&mut self, now: Time, piece: Piece, copies: u32, left: Option<Duration>) {
        if copies > 1 {
            self.bytes += u64::from(piece.bytes) * u64::from(copies - 1);
            let due = now + left.map_or(APART, |left| APART.min(left / 2));
            let at = self.later.partition_point(|(other, ..)| *other <= due);
            self.later.insert(at, (due, piece, copies - 1));
        }
    }

    /// When the next copy is due.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.later.front().map(|(due, ..)| *due)
    }

    /// Copies that are due are sent next.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        while let Some((_, piece, copies)) = self.later.pop_front_if(|(due, ..)| *due <= now) {
            self.queue.push_back((piece, copies));
        }
    }

    /// A copy was lost. Whether no other one is under way.
    pub(super) fn handle_lost(&mut self, piece: &Piece) -> bool {
        let key = (piece.unit, piece.offset);
        let Some(copies) = self.copies.get_mut(&key) else { return true };
        *copies -= 1;
        if *copies == 0 {
            self.copies.remove(&key);
        }
        !self.copies.contains_key(&key)
    }

    #[cfg(test)]
    pub(super) fn check_accounts(&self) {
        let later = self.later.iter().map(|(_, piece, copies)| (piece, copies));
        let all = self.queue.iter().map(|(piece, copies)| (piece, copies)).chain(later);
        let bytes = all.map(|(piece, copies)| u64::from(piece.bytes) * u64::from(*copies));
        assert_eq!(self.bytes, bytes.sum::<u64>(), "bytes to be sent again");
        assert!(self.copies.values().all(|copies| *copies > 0));
    }

    /// It came.
    pub(super) fn handle_over(&mut self, piece: &Piece) {
        if !self.copies.is_empty() {
            self.copies.remove(&(piece.unit, piece.offset));
        }
    }
}
