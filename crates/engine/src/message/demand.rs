//! What receivers want of streams, on its way to the tasks that fetch them: of each stream the newest.

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

/// What tells of the streams of workers, to each task that listens.
#[derive(Debug, Clone)]
pub struct Demanders(Arc<[UnboundedSender<Arc<Wanted>>]>);

/// What was told and not heard yet: one demand a stream at most.
#[derive(Debug)]
pub struct DemandQueue(UnboundedReceiver<Arc<Wanted>>);

/// Tells what is wanted of a stream.
#[derive(Debug)]
pub(crate) struct Demander {
    /// As many as tasks that listen, each of which hears in its own time.
    wanted: Vec<Arc<Wanted>>,
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

/// The end that tells, and one that hears for each of the tasks that listen.
pub fn demands(listeners: usize) -> (Demanders, Vec<DemandQueue>) {
    // bounded: a stream stands there once.
    let ends = (0..listeners).map(|_| unbounded_channel());
    let (told, heard): (Vec<_>, Vec<_>) = ends.map(|(told, heard)| (told, DemandQueue(heard))).unzip();
    (Demanders(told.into()), heard)
}

impl Demanders {
    /// What tells of this stream.
    pub(crate) fn of(&self, stream: StreamId) -> Demander {
        let wanted = || Wanted { stream, level: AtomicU8::new(0), is_told: AtomicBool::new(false) };
        Demander { wanted: self.0.iter().map(|_| Arc::new(wanted())).collect(), told: self.clone() }
    }
}

impl Demander {
    /// This is wanted now.
    pub(crate) fn tell(&self, level: Option<Level>) {
        for (wanted, told) in self.wanted.iter().zip(&*self.told.0) {
            wanted.level.store(level.map_or(0, Level::number), Ordering::Release);
            if !wanted.is_told.swap(true, Ordering::AcqRel) {
                // Where streams are not fetched, no task listens.
                let _ = told.send(Arc::clone(wanted));
            }
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
        let (told, mut queues) = demands(2);
        let (mut late, mut queue) = (queues.pop().expect("two"), queues.pop().expect("two"));
        let (one, other) = (told.of(1), told.of(2));
        let level = |number: u32| Level::new((number % 2 + 1) as u8);
        (0..1000).for_each(|number| one.tell(level(number)));
        other.tell(None);
        assert_eq!(queue.0.len(), 2);
        let mut next = || queue.try_recv().map(|demand| (demand.stream, demand.level));
        assert_eq!((next(), next(), next()), (Some((1, Level::new(2))), Some((2, None)), None));
        one.tell(None);
        assert_eq!(next(), Some((1, None)));
        let mut next = || late.try_recv().map(|demand| (demand.stream, demand.level));
        assert_eq!((next(), next(), next()), (Some((1, None)), Some((2, None)), None), "each hears it all");
    }
}
