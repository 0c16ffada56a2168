//! A stream too large for one worker: the one that has its source receives and parses its
//! packets, and hands them over, by reference, to others that serve receivers of it, too. Between
//! two workers there is a bounded queue with one writer and one reader, and neither ever waits: where
//! it is full, packets are dropped and counted, as on any other way.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, mpsc};

use outflow_media::Time;
use outflow_packet::limits::TRACKS_MAX;
use outflow_relay::control::Joining;
use outflow_relay::{Feedback, Handed, Priority, Stream};
use rtrb::{Consumer, Producer, RingBuffer};
use tokio::sync::watch;

use crate::bell::Bell;
use crate::calls::Caller;
use crate::limits::{HAND_OVER_PACKETS, INGEST_ROUND_PACKETS};
use crate::message::{Command, StreamId};

/// The owner's end of a queue.
#[derive(Debug)]
pub struct OwnerEnd {
    queue: Producer<Passed>,
    reader: Caller,
    class: Arc<AtomicU8>,
    /// Packets that found the queue full, by track. Nothing is handed over before there is room
    /// again.
    missed: Option<[u64; TRACKS_MAX]>,
}

/// The replica's end of a queue.
#[derive(Debug)]
pub struct ReplicaEnd {
    queue: Consumer<Passed>,
    /// The class of the replica's most urgent sinks, for the owner to read the source in.
    class: Arc<AtomicU8>,
    ready: watch::Sender<bool>,
    /// To the worker at the other end.
    upward: Upward,
}

/// The way from a replica to the stream that it is one of.
#[derive(Debug)]
pub struct Upward {
    stream: StreamId,
    commands: mpsc::Sender<Command>,
    bell: Arc<Bell>,
}

impl Upward {
    /// To this stream, of the worker that takes these commands.
    pub(super) fn new(stream: StreamId, commands: mpsc::Sender<Command>, bell: Arc<Bell>) -> Self {
        Upward { stream, commands, bell }
    }

    fn send(&self, feedback: Feedback) {
        // A worker that has ended has no source any more.
        if self.commands.send(Command::Feedback { stream: self.stream, feedback }).is_ok() {
            self.bell.ring();
        }
    }
}

/// What is in a queue.
#[derive(Debug)]
enum Passed {
    /// All that has been before, which can be longer than the queue.
    Introduction(Vec<Handed>),
    Next(Handed),
}

/// A queue whose reader is called by this.
pub(super) fn queue(reader: Caller, upward: Upward) -> (OwnerEnd, ReplicaEnd) {
    let (producer, consumer) = RingBuffer::new(HAND_OVER_PACKETS);
    let class = Arc::new(AtomicU8::new(Priority::Low as u8));
    let owner_end = OwnerEnd { queue: producer, reader, class: Arc::clone(&class), missed: None };
    (owner_end, ReplicaEnd { queue: consumer, class, ready: watch::Sender::new(false), upward })
}

impl OwnerEnd {
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
        if let Handed::Packet(parsed) = handed {
            missed[usize::from(parsed.packet.tag.track) % TRACKS_MAX] += 1;
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

impl ReplicaEnd {
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

    /// Becomes true when the replica has been introduced, and serves like its owner.
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }
}

/// A stream's ends of the queues between workers.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// To the workers that serve it, too.
    owner_ends: Vec<OwnerEnd>,
    /// From the streams that hand it packets: its renditions, or its owner, in a replica that does not rest.
    replica_ends: Vec<ReplicaEnd>,
}

impl Queues {
    /// Of a stream that is handed packets through these queues.
    pub(super) fn new(replica_ends: Vec<ReplicaEnd>) -> Self {
        Queues { owner_ends: Vec::new(), replica_ends }
    }

    /// Packets come through these queues from now on.
    pub(super) fn set_replica_ends(&mut self, replica_ends: Vec<ReplicaEnd>) {
        self.replica_ends = replica_ends;
    }

    /// The class of the most urgent sinks with other workers.
    pub(super) fn class(&self) -> Option<Priority> {
        self.owner_ends.iter().map(OwnerEnd::class).min()
    }

    /// Hands over what has come since.
    pub(super) fn hand_over(&mut self, core: &mut Stream, handed: Vec<Handed>) {
        self.owner_ends.retain(|owner_end| !owner_end.queue.is_abandoned());
        if self.owner_ends.is_empty() {
            return core.end_replicas();
        }
        for owner_end in &mut self.owner_ends {
            handed.iter().for_each(|handed| owner_end.give(handed));
            owner_end.go_on(core);
            owner_end.reader.ring();
        }
    }

    /// Hands over to one more worker from now on. `knows`: that has all that has been before.
    pub(super) fn share(&mut self, core: &mut Stream, mut owner_end: OwnerEnd, knows: bool) {
        let Joining { before, introduction } = core.handle_replica();
        if !before.is_empty() {
            self.hand_over(core, before);
        }
        let introduction = if knows { core.situation() } else { introduction };
        // A new queue is empty.
        let _ = owner_end.queue.push(Passed::Introduction(introduction));
        owner_end.reader.ring();
        self.owner_ends.push(owner_end);
    }

    /// Takes what was handed over. Returns whether there was anything, and whether there may be more.
    pub(super) fn take_handed(&mut self, core: &mut Stream, now: Time) -> (bool, bool) {
        let is_of_renditions = core.rendition_count() > 0;
        let (mut any, mut is_more) = (false, false);
        for (index, replica_end) in self.replica_ends.iter_mut().enumerate() {
            let mut take = |handed| match is_of_renditions {
                true => core.handle_rendition(now, index, handed),
                false => core.handle_handed(now, handed),
            };
            let taken = replica_end.take(INGEST_ROUND_PACKETS, &mut take);
            any |= taken > 0;
            is_more |= taken == INGEST_ROUND_PACKETS;
        }
        (any, is_more)
    }

    /// Tells the streams that hand it packets how urgent its sinks are.
    pub(super) fn tell_class(&self, core: &Stream) {
        for replica_end in &self.replica_ends {
            let class = core.classes().next().unwrap_or(Priority::Low);
            replica_end.class.store(class as u8, Ordering::Relaxed);
        }
    }

    /// Hands up what receivers say to the streams that hand it packets, or to the one that it is about.
    pub(super) fn hand_up(&self, feedback: Feedback) {
        let is_about = |index: usize| match feedback {
            Feedback::KeyFrame { rendition, .. } => rendition == index,
            Feedback::Reception(_) => true,
        };
        let about = self.replica_ends.iter().enumerate().filter(|(index, _)| is_about(*index));
        about.for_each(|(_, replica_end)| replica_end.upward.send(feedback));
    }
}

#[cfg(test)]
mod tests {

    use bytes::BytesMut;
    use outflow_media::{Format, Track};
    use outflow_packet::DropReason;
    use outflow_relay::control::Output;
    use outflow_relay::{Encapsulation, SinkKey, SinkSpec, StreamOptions, Transport};
    use outflow_rtp::PlainHeader;

    use super::*;
    use crate::worker::stream::LiveStream;

    fn stream(id: StreamId) -> LiveStream {
        let (told, _) = crate::message::demands(0);
        LiveStream::new((id, 1), "live".to_owned(), String::new(), StreamOptions::default(), Vec::new(), told)
    }

    fn h264() -> Format {
        Format::Rtp(vec![Track::h264()])
    }

    /// An owner and its replica, which can be read at any time, as by two workers.
    struct Pair {
        owner: LiveStream,
        replica: LiveStream,
        sent: u64,
    }

    impl Pair {
        fn new() -> Self {
            let bell = Arc::new(Bell::new().expect("an eventfd"));
            let (commands, _) = std::sync::mpsc::channel();
            let upward = Upward { stream: 1, commands, bell: Arc::clone(&bell) };
            let (owner_end, replica_end) = queue(crate::calls::calls(bell).0.to(2), upward);
            let (mut owner, mut replica) = (stream(1), stream(2));
            owner.core.handle_source(Time::ZERO, h264());
            replica.queues.replica_ends.push(replica_end);
            owner.share(owner_end, false);
            let mut pair = Pair { owner, replica, sent: 0 };
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
                self.owner.core.handle_media(Time::ZERO, 0, packet.into());
                self.sent += 1;
            }
            self.hand_over();
        }

        /// Returns whether there was anything.
        fn hand_over(&mut self) -> bool {
            let mut any = false;
            loop {
                match self.owner.core.poll(Time::ZERO) {
                    Output::HandOver(handed) => self.owner.hand_over(handed),
                    Output::Wait { .. } => return any,
                    _ => continue,
                }
                any = true;
            }
        }

        fn drain(&mut self) {
            while self.replica.take_handed(Time::ZERO) {}
        }

        fn join(&mut self) -> SinkKey {
            let spec =
                SinkSpec { priority: Priority::High, ..SinkSpec::new(Encapsulation::Rtp, Transport::Stream) };
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
        assert!(pair.owner.queues.owner_ends[0].missed.is_some());
        pair.drain();
        pair.send(5, false);
        assert!(pair.owner.queues.owner_ends[0].missed.is_none(), "there is room again");
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
        assert_eq!(pair.owner.class(), Priority::Low, "it has no receivers");
        pair.join();
        pair.replica.tell_class();
        assert_eq!(pair.owner.class(), Priority::High);
    }

    #[test]
    fn nothing_is_handed_to_one_that_has_gone() {
        let mut pair = Pair::new();
        pair.replica.queues.replica_ends.clear();
        pair.send(1, true);
        assert!(pair.owner.queues.owner_ends.is_empty());
        pair.send(1, false);
        assert!(!pair.hand_over(), "nothing is put down for replicas");
    }
}
