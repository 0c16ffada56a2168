//! What receivers want of streams, on its way to the task that fetches them: of each stream the newest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use outflow_packet::Level;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::StreamId;

/// The best level of a stream that its receivers with one worker want; `None` if there are none.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    /// Its number there.
    pub stream: StreamId,
    /// The level.
    pub level: Option<Level>,
}

/// What tells of the streams of workers.
#[derive(Debug, Clone)]
pub struct Demanders(UnboundedSender<Arc<Wanted>>);

/// What was told and not heard yet: one demand a stream at most.
#[derive(Debug)]
pub struct DemandQueue(UnboundedReceiver<Arc<Wanted>>);

/// Tells what is wanted of a stream.
#[derive(Debug)]
pub(crate) struct Demander {
    wanted: Arc<Wanted>,
    told: Demanders,
}

#[derive(Debug)]
struct Wanted {
    stream: StreamId,
    /// The number of the level; 0 for none.
    level: AtomicU8,
    /// It stands in the queue.
    is_told: AtomicBool,
}

/// The two ends.
pub fn demands() -> (Demanders, DemandQueue) {
    // bounded: a stream stands there once.
    let (told, heard) = unbounded_channel();
    (Demanders(told), DemandQueue(heard))
}

impl Demanders {
    /// What tells of this stream.
    pub(crate) fn of(&self, stream: StreamId) -> Demander {
        let (level, is_told) = (AtomicU8::new(0), AtomicBool::new(false));
        Demander { wanted: Arc::new(Wanted { stream, level, is_told }), told: self.clone() }
    }
}

impl Demander {
    /// This is wanted now.
    pub(crate) fn tell(&self, level: Option<Level>) {
        self.wanted.level.store(level.map_or(0, Level::number), Ordering::Release);
        if !self.wanted.is_told.swap(true, Ordering::AcqRel) {
            // Where streams are not fetched, no task listens.
            let _ = self.told.0.send(Arc::clone(&self.wanted));
        }
    }
}

impl DemandQueue {
    /// The next stream of which something else is wanted, and what. None if there are no workers any more.
    pub async fn recv(&mut self) -> Option<Demand> {
        self.0.recv().await.map(|wanted| wanted.take())
    }

    #[cfg(test)]
    pub(crate) fn try_recv(&mut self) -> Option<Demand> {
        self.0.try_recv().ok().map(|wanted| wanted.take())
    }
}

impl Wanted {
    fn take(&self) -> Demand {
        self.is_told.swap(false, Ordering::AcqRel);
        Demand { stream: self.stream, level: Level::new(self.level.load(Ordering::Acquire)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_often_receivers_change_their_minds_a_stream_waits_once() {
        let (told, mut queue) = demands();
        let (one, other) = (told.of(1), told.of(2));
        let level = |number: u32| Level::new((number % 2 + 1) as u8);
        (0..1000).for_each(|number| one.tell(level(number)));
        other.tell(None);
        assert_eq!(queue.0.len(), 2);
        let mut next = || queue.try_recv().map(|demand| (demand.stream, demand.level));
        assert_eq!((next(), next(), next()), (Some((1, Level::new(2))), Some((2, None)), None));
        one.tell(None);
        assert_eq!(next(), Some((1, None)));
    }
}
