//! Where what goes along a line goes into it: the queues to all lanes of what comes next.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outflow_graph::{Item, Target};
use outflow_media::{Tag, Time};
use rtrb::Producer;

use crate::limits::CONTEXT_RESERVE;
use crate::passed::{ForAll, Passed};
use crate::ringer::Ringer;

/// The writing ends of the queues from one lane to all lanes of what comes next.
///
/// Lanes have their turns one after the other, and the reader takes what they give in the same
/// order: so packets never change places. What is not a packet goes to all of them, and is acted upon
/// once it has come out of all.
#[derive(Debug)]
pub(super) struct Outlet {
    lanes: Vec<Outbound>,
    /// Whose turn it is, and how far the next turn is from it.
    turn: usize,
    step: usize,
    /// Where turns begin: by frames as they come, or as they came in.
    cut: Cut,
}

/// When it is the next lane's turn.
#[derive(Debug)]
enum Cut {
    /// Never: there is one lane after one lane.
    Never,
    /// When no frame is open.
    Frames(Open),
    /// When it was the next one's turn in the lanes before.
    AsBefore,
}

/// The frames of which not all packets came, by track.
#[derive(Debug, Default)]
struct Open {
    frames: Vec<Option<u32>>,
    /// A frame has ended since the turn began.
    any: bool,
}

/// The writing end of a queue.
#[derive(Debug)]
pub(super) struct Outbound {
    queue: Producer<Passed>,
    ringer: Ringer,
    /// What must not be lost waits here if the queue is full; nothing overtakes it.
    waiting: VecDeque<Passed>,
    dropped: Arc<AtomicU64>,
}

impl Outlet {
    /// From lane `lane` of `of`, through these queues.
    pub(super) fn new(lanes: Vec<Outbound>, (lane, of): (usize, usize)) -> Self {
        let cut = match (of, lanes.len()) {
            (1, 1) => Cut::Never,
            (1, _) => Cut::Frames(Open::default()),
            _ => Cut::AsBefore,
        };
        let (turn, step) = (lane % lanes.len(), of % lanes.len());
        Outlet { lanes, turn, step, cut }
    }

    /// Gives a packet on. Should it be the next lane's turn, the one before works at `now`.
    pub(super) fn packet(&mut self, now: Time, to: Target, item: Item) {
        let tag = item.packet.tag;
        if let Cut::Frames(open) = &self.cut
            && open.ends_before(&tag)
        {
            self.next(now);
        }
        self.lanes[self.turn].give(Passed::Packet(to, item));
        if let Cut::Frames(open) = &mut self.cut {
            open.note(&tag);
        }
    }

    /// The packets so far belong together.
    pub(super) fn end(&mut self, now: Time) {
        match &self.cut {
            Cut::Frames(open) if open.is_between_frames() => self.next(now),
            _ => self.lanes[self.turn].give(Passed::End(now)),
        }
    }

    /// The turn of the lane that came before is over.
    pub(super) fn turn(&mut self, now: Time) {
        match self.cut {
            Cut::AsBefore => self.next(now),
            Cut::Never | Cut::Frames(_) => self.end(now),
        }
    }

    /// Gives the same to all lanes.
    pub(super) fn all(&mut self, for_all: ForAll) {
        self.lanes.iter_mut().for_each(|lane| lane.give(Passed::ForAll(for_all.clone())));
    }

    pub(super) fn flush(&mut self) {
        self.lanes.iter_mut().for_each(Outbound::flush);
    }

    /// The readers may begin.
    pub(super) fn ring(&self) {
        self.lanes.iter().for_each(|lane| lane.ringer.ring());
    }

    fn next(&mut self, now: Time) {
        self.lanes[self.turn].give(Passed::Turn(now));
        self.turn = (self.turn + self.step) % self.lanes.len();
        if let Cut::Frames(open) = &mut self.cut {
            open.any = false;
        }
    }
}

impl Open {
    /// Whether the turn can end before this packet: it begins a frame, all those before it have ended,
    /// and there was one.
    fn ends_before(&self, tag: &Tag) -> bool {
        let others = |(track, open): (usize, &Option<u32>)| {
            open.is_none_or(|frame| track == usize::from(tag.track) && frame != tag.frame)
        };
        (self.any || self.frames.iter().any(Option::is_some)) && self.frames.iter().enumerate().all(others)
    }

    fn is_between_frames(&self) -> bool {
        self.any && self.frames.iter().all(Option::is_none)
    }

    fn note(&mut self, tag: &Tag) {
        let track = usize::from(tag.track);
        if self.frames.len() <= track {
            self.frames.resize(track + 1, None);
        }
        self.frames[track] = (!tag.last).then_some(tag.frame);
        self.any |= tag.last;
    }
}

impl Outbound {
    pub(super) fn new(queue: Producer<Passed>, ringer: Ringer, dropped: Arc<AtomicU64>) -> Self {
        Outbound { queue, ringer, waiting: VecDeque::new(), dropped }
    }

    fn give(&mut self, passed: Passed) {
        self.flush();
        let is_packet = matches!(passed, Passed::Packet(..));
        let room = self.queue.slots();
        if is_packet && (!self.waiting.is_empty() || room <= CONTEXT_RESERVE) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        } else if !self.waiting.is_empty() || room == 0 {
            self.waiting.push_back(passed);
        } else {
            // There is room.
            let _ = self.queue.push(passed);
        }
    }

    fn flush(&mut self) {
        while self.queue.slots() > 0
            && let Some(passed) = self.waiting.pop_front()
        {
            let _ = self.queue.push(passed);
        }
    }
}
