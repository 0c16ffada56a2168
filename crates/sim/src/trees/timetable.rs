//! What is under way, and when it happens.

use core::time::Duration;

use outflow_media::Time;
use outflow_routing::tree::{Message, Offer, StreamId};
use slab::Slab;

use crate::agenda::Agenda;

/// What happens to a relay. A life that is over is told nothing any more.
#[derive(Debug)]
pub(super) enum Event {
    Wake { relay: usize },
    Message { from: usize, life: u64, to: usize, stream: StreamId, message: Message },
    Lost { relay: usize, life: u64, peer: usize, peer_life: u64 },
    Put { relay: usize, stream: StreamId, offer: Option<Offer> },
    Ask { relay: usize, life: u64, stream: StreamId },
    Offers { relay: usize, life: u64, stream: StreamId, offers: Vec<Offer> },
    Back { relay: usize, life: u64 },
    Change { relay: usize },
}

/// Events in the order of their times, and the virtual time.
#[derive(Debug)]
pub(super) struct Timetable {
    now: Time,
    agenda: Agenda<usize>,
    events: Slab<Event>,
    taken: u64,
}

impl Timetable {
    pub(super) fn new() -> Self {
        Timetable { now: Time::from_millis(1), agenda: Agenda::new(), events: Slab::new(), taken: 0 }
    }

    pub(super) const fn now(&self) -> Time {
        self.now
    }

    /// How many events there were.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn add(&mut self, after: Duration, event: Event) {
        let key = self.events.insert(event);
        self.agenda.add(self.now + after, key);
    }

    /// The next event, if it is not later than `end`: then it is its time now. Otherwise it is `end`.
    pub(super) fn take(&mut self, end: Time) -> Option<Event> {
        if self.agenda.next_at().is_none_or(|at| at > end) {
            self.now = end;
            return None;
        }
        let (at, key) = self.agenda.take()?;
        self.now = at;
        self.taken += 1;
        Some(self.events.remove(key))
    }
}
