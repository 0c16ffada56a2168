//! A stream too large for one worker: the one that has its source receives and understands its
//! packets, and hands them over, by reference, to others that serve receivers of it, too. Between
//! two workers there is a bounded queue with one writer and one reader, and nobody ever waits: where
//! it is full, packets are dropped and counted, as on any other way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use outflow_media::Time;
use outflow_relay::limits::TRACKS_MAX;
use outflow_relay::{Handed, Priority, Stream, StreamOptions};
use rtrb::{Consumer, Producer, RingBuffer};
use tokio::sync::watch;

use super::Worker;
use super::handle::Bell;
use super::stream::LiveStream;
use crate::limits::{HAND_OVER_PACKETS, INGEST_ROUND_PACKETS};
use crate::message::StreamId;

/// The home's end of a queue.
#[derive(Debug)]
pub(crate) struct Outlet {
    queue: Producer<Passed>,
    bell: Arc<Bell>,
    class: Arc<AtomicU8>,
    /// Packets that found the queue full, by track. Nothing is handed over before there is room
    /// again.
    missed: Option<[u64; TRACKS_MAX]>,
}

/// The replica's end of a queue.
#[derive(Debug)]
pub(crate) struct Inlet {
    queue: Consumer<Passed>,
    /// The class of the replica's most urgent sinks, for the home to read the source in.
    class: Arc<AtomicU8>,
    ready: watch::Sender<bool>,
}

/// What is in a queue.
#[derive(Debug)]
enum Passed {
    /// All that has been before, which can be longer than the queue.
    Introduction(Vec<Handed>),
    Next(Handed),
}

/// A queue whose reader hears this bell.
pub(super) fn queue(bell: Arc<Bell>) -> (Outlet, Inlet) {
    let (producer, consumer) = RingBuffer::new(HAND_OVER_PACKETS);
    let class = Arc::new(AtomicU8::new(Priority::Low as u8));
    let outlet = Outlet { queue: producer, bell, class: Arc::clone(&class), missed: None };
    (outlet, Inlet { queue: consumer, class, ready: watch::Sender::new(false) })
}

impl Outlet {
    /// The class of the most urgent sinks at the other end.
    pub(super) fn class(&self) -> Priority {
        let class = usize::from(self.class.load(Ordering::Relaxed));
        Priority::ALL.get(class).copied().unwrap_or_default()
    }

    fn give(&mut self, handed: &Handed) {
        if self.missed.is_none() && self.queue.push(Passed::Next(handed.clone())).is_ok() {
            return;
        }
        let missed = self.missed.get_or_insert([0; TRACKS_MAX]);
        if let Handed::Packet(understood) = handed {
            missed[usize::from(understood.packet.tag.track) % TRACKS_MAX] += 1;
        }
    }

    /// After packets were dropped: says so, and how things stand now, once there is room for that
    /// and for a good many packets more.
    fn go_on(&mut self, core: &Stream) {
        let Some(missed) = self.missed.filter(|_| self.queue.slots() >= HAND_OVER_PACKETS / 2) else {
            return;
        };
        self.missed = None;
        let missed = (0_u8..).zip(missed).filter(|(_, packets)| *packets > 0);
        let missed = missed.map(|(track, packets)| Handed::Missed { track, packets });
        for handed in missed.chain(core.situation()) {
            self.give(&handed);
        }
    }
}

impl Inlet {
    /// Becomes true when the replica has been introduced, and serves like its home.
    pub(crate) fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }
}

impl LiveStream {
    /// Hands over what has come since.
    pub(super) fn hand_over(&mut self) {
        if self.outlets.is_empty() {
            return;
        }
        self.outlets.retain(|outlet| !outlet.queue.is_abandoned());
        self.core.set_shared(!self.outlets.is_empty());
        let mut some = false;
        for handed in self.core.handed() {
            self.outlets.iter_mut().for_each(|outlet| outlet.give(&handed));
            some = true;
        }
        for outlet in self.outlets.iter_mut().filter(|_| some) {
            outlet.go_on(&self.core);
            outlet.bell.ring();
        }
    }

    /// Hands over to one more worker from now on.
    pub(super) fn share(&mut self, mut outlet: Outlet) {
        self.hand_over();
        self.core.set_shared(true);
        // A new queue is empty.
        let _ = outlet.queue.push(Passed::Introduction(self.core.introduction()));
        outlet.bell.ring();
        self.outlets.push(outlet);
    }

    /// Takes what its home has handed over. Returns whether there may be more.
    fn take_handed(&mut self, now: Time) -> bool {
        let Some(inlet) = &mut self.inlet else { return false };
        for _ in 0..INGEST_ROUND_PACKETS {
            match inlet.queue.pop() {
                Ok(Passed::Next(handed)) => self.core.handle_handed(now, handed),
                Ok(Passed::Introduction(all)) => {
                    all.into_iter().for_each(|handed| self.core.handle_handed(now, handed));
                    inlet.ready.send_replace(true);
                }
                Err(rtrb::PopError::Empty) => return false,
            }
            self.touched = true;
        }
        true
    }

    /// Tells its home how urgent its sinks are.
    pub(super) fn tell_class(&self) {
        if let Some(inlet) = &self.inlet {
            let class = self.core.classes().next().unwrap_or(Priority::Low);
            inlet.class.store(class as u8, Ordering::Relaxed);
        }
    }
}

impl Worker {
    /// Begins to serve a stream of another worker, or does so again.
    pub(super) fn replicate(
        &mut self,
        (id, home): (StreamId, StreamId),
        name: String,
        options: StreamOptions,
        inlet: Inlet,
    ) {
        let index = self
            .find(id)
            .unwrap_or_else(|_| self.streams.insert(LiveStream::new(id, home, name, String::new(), options)));
        self.streams[index].inlet = Some(inlet);
    }

    /// A replica has no receivers: its packets go.
    pub(super) fn rest(&mut self, id: StreamId) {
        let now = self.clock.now();
        if let Ok(index) = self.find(id) {
            self.streams[index].inlet = None;
            self.streams[index].core.handle_rest(now);
        }
    }

    /// Takes what other workers have handed over; what is left is taken in the next round.
    pub(super) fn take_handed(&mut self) {
        let now = self.clock.now();
        for (_, stream) in &mut self.streams {
            if stream.take_handed(now) {
                self.bell.ring();
            }
        }
    }
}
