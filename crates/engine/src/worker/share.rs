//! A stream too large for one worker: the one that has its source receives and understands its
//! packets, and hands them over, by reference, to others that serve receivers of it, too. Between
//! two workers there is a bounded queue with one writer and one reader, and neither ever waits: where
//! it is full, packets are dropped and counted, as on any other way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use outflow_media::Time;
use outflow_packet::limits::TRACKS_MAX;
use outflow_relay::{Handed, Priority, Stream, StreamOptions};
use rtrb::{Consumer, Producer, RingBuffer};
use tokio::sync::watch;

use super::Worker;
use super::feedback::Upward;
use super::stream::LiveStream;
use crate::bell::Bell;
use crate::limits::{HAND_OVER_PACKETS, INGEST_ROUND_PACKETS};
use crate::message::StreamId;

/// The home's end of a queue.
#[derive(Debug)]
pub struct Outlet {
    queue: Producer<Passed>,
    bell: Arc<Bell>,
    class: Arc<AtomicU8>,
    /// Packets that found the queue full, by track. Nothing is handed over before there is room
    /// again.
    missed: Option<[u64; TRACKS_MAX]>,
}

/// The replica's end of a queue.
#[derive(Debug)]
pub struct Inlet {
    queue: Consumer<Passed>,
    /// The class of the replica's most urgent sinks, for the home to read the source in.
    class: Arc<AtomicU8>,
    ready: watch::Sender<bool>,
    /// To the worker at the other end.
    pub(super) upward: Upward,
}

/// What is in a queue.
#[derive(Debug)]
enum Passed {
    /// All that has been before, which can be longer than the queue.
    Introduction(Vec<Handed>),
    Next(Handed),
}

/// A queue whose reader hears this bell.
pub(super) fn queue(bell: Arc<Bell>, upward: Upward) -> (Outlet, Inlet) {
    let (producer, consumer) = RingBuffer::new(HAND_OVER_PACKETS);
    let class = Arc::new(AtomicU8::new(Priority::Low as u8));
    let outlet = Outlet { queue: producer, bell, class: Arc::clone(&class), missed: None };
    (outlet, Inlet { queue: consumer, class, ready: watch::Sender::new(false), upward })
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
    /// Takes what has been handed over, but not more than `most` packets at once. Returns how many.
    fn take(&mut self, most: usize, each: &mut impl FnMut(Handed)) -> usize {
        for taken in 0..most {
            match self.queue.pop() {
                Ok(Passed::Next(handed)) => each(handed),
                Ok(Passed::Introduction(all)) => {
                    all.into_iter().for_each(&mut *each);
                    self.ready.send_replace(true);
                }
                Err(rtrb::PopError::Empty) => return taken,
            }
        }
        most
    }

    /// Becomes true when the replica has been introduced, and serves like its home.
    pub fn ready(&self) -> watch::Receiver<bool> {
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
        let is_of_renditions = self.core.rendition_count() > 0;
        let mut is_more = false;
        for (index, inlet) in self.inlets.iter_mut().enumerate() {
            let mut take = |handed| match is_of_renditions {
                true => self.core.handle_rendition(now, index, handed),
                false => self.core.handle_handed(now, handed),
            };
            let taken = inlet.take(INGEST_ROUND_PACKETS, &mut take);
            self.touched |= taken > 0;
            is_more |= taken == INGEST_ROUND_PACKETS;
        }
        is_more
    }

    /// Tells the streams that hand it packets how urgent its sinks are.
    pub(super) fn tell_class(&self) {
        for inlet in &self.inlets {
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
        inlets: Vec<Inlet>,
    ) {
        match self.find(id) {
            Ok(index) => self.streams[index].inlets = inlets,
            Err(_) => {
                let stream =
                    LiveStream::new((id, home), name, String::new(), options, inlets, self.told.clone());
                self.streams.insert(stream);
            }
        }
    }

    /// A replica has no receivers: its packets go.
    pub(super) fn rest(&mut self, id: StreamId) {
        let now = self.clock.now();
        if let Ok(index) = self.find(id) {
            self.streams[index].inlets.clear();
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

#[cfg(test)]
mod tests {

    use bytes::BytesMut;
    use outflow_media::{Codec, Format, Track};
    use outflow_packet::DropReason;
    use outflow_relay::control::Output;
    use outflow_relay::{Carriage, SinkKey, SinkSpec, Transport};
    use outflow_rtp::PlainHeader;

    use super::*;

    fn stream(id: StreamId) -> LiveStream {
        let (told, _) = tokio::sync::mpsc::unbounded_channel();
        LiveStream::new((id, 1), "live".to_owned(), String::new(), StreamOptions::default(), Vec::new(), told)
    }

    fn h264() -> Format {
        Format::Rtp(vec![Track {
            codec: Codec::H264 { sps: None, pps: None },
            payload_type: 96,
            clock_rate: 90_000,
            channels: 0,
            fmtp: String::new(),
            encoding: "H264".to_owned(),
            extensions: Vec::new(),
        }])
    }

    /// A home and its replica, which can be read at any time, as by two workers.
    struct Pair {
        home: LiveStream,
        replica: LiveStream,
        sent: u64,
    }

    impl Pair {
        fn new() -> Self {
            let bell = Arc::new(Bell::new().expect("an eventfd"));
            let (commands, _) = std::sync::mpsc::channel();
            let upward = Upward { stream: 1, commands, bell: Arc::clone(&bell) };
            let (outlet, inlet) = queue(bell, upward);
            let (mut home, mut replica) = (stream(1), stream(2));
            home.core.handle_source(Time::ZERO, h264());
            replica.inlets.push(inlet);
            home.share(outlet);
            let mut pair = Pair { home, replica, sent: 0 };
            pair.drain();
            pair
        }

        fn send(&mut self, count: usize, key: bool) {
            for _ in 0..count {
                // Time stands still here, and so does the clock but for what tells frames apart.
                let (sequence, timestamp) = (self.sent as u16, self.sent as u32);
                let header = PlainHeader { marker: true, payload_type: 96, sequence, timestamp, ssrc: 7 };
                let mut packet = BytesMut::from(&header.emit()[..]);
                packet.extend_from_slice(if key { &[0x65, 0xb0] } else { &[0x41, 0xc0] });
                self.home.core.handle_media(Time::ZERO, 0, packet.into());
                self.sent += 1;
            }
            self.home.hand_over();
        }

        fn drain(&mut self) {
            while self.replica.take_handed(Time::ZERO) {}
        }

        fn join(&mut self) -> SinkKey {
            let spec =
                SinkSpec { priority: Priority::High, ..SinkSpec::new(Carriage::Rtp, Transport::Stream) };
            self.replica.core.handle_join(Time::ZERO, 1, spec)
        }

        fn serve(&mut self) {
            while !matches!(self.replica.core.poll(Time::ZERO), Output::Wait { .. }) {}
        }
    }

    #[test]
    fn a_queue_that_is_full_drops_and_counts_and_goes_on_at_a_key_frame() {
        let mut pair = Pair::new();
        pair.send(1, true);
        pair.drain();
        let sink = pair.join();
        // One more than there is room for; beyond, nothing is handed over until half is free.
        pair.send(HAND_OVER_PACKETS - 1, false);
        pair.send(11, false);
        assert!(pair.home.outlets[0].missed.is_some());
        pair.drain();
        pair.send(5, false);
        assert!(pair.home.outlets[0].missed.is_none(), "there is room again");
        pair.send(3, false);
        pair.send(1, true);
        pair.drain();
        pair.serve();
        let packets = pair.replica.core.sink_counters(sink).packets;
        let drops = pair.replica.core.sink_drops(sink);
        // Of those sent last, three are of no use without those that are lost.
        let lost = drops.get(DropReason::HandOverFull);
        assert_eq!((packets + lost, drops.total()), (pair.sent, lost));
        assert!((10 + 5 + 3..20 + 5 + 3).contains(&lost), "{lost}");
        assert_eq!(pair.replica.core.sender_report(Time::ZERO, 0, 0).map(|report| report.ssrc), Some(7));
    }

    #[test]
    fn the_home_knows_how_urgent_it_is_elsewhere() {
        let mut pair = Pair::new();
        assert_eq!(pair.home.class(), Priority::Low, "nobody receives it");
        pair.join();
        pair.replica.tell_class();
        assert_eq!(pair.home.class(), Priority::High);
    }

    #[test]
    fn nothing_is_handed_to_whoever_has_gone() {
        let mut pair = Pair::new();
        pair.replica.inlets.clear();
        pair.send(1, true);
        assert!(pair.home.outlets.is_empty());
        assert_eq!(pair.home.core.handed().count(), 0);
    }
}
