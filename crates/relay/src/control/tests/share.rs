//! A stream and its replica: a receiver gets the same from both.

use core::mem;

use outflow_ts::TsLoop;

use super::*;
use crate::control::Handed;
use crate::limits::GAP_HELD_PACKETS_MAX;

/// A stream with everything that its sinks were sent, as it goes on the wire.
struct Site {
    stream: Stream,
    sent: Vec<Vec<Bytes>>,
    events: Vec<Event>,
    handed: Vec<Handed>,
}

impl Site {
    fn new() -> Self {
        let (sent, events, handed) = (vec![Vec::new(); 8], Vec::new(), Vec::new());
        Site { stream: Stream::new(options()), sent, events, handed }
    }

    fn join(&mut self, now: Time, encapsulation: Encapsulation) -> SinkKey {
        let spec = SinkSpec::new(encapsulation, Transport::Stream);
        let key = self.stream.handle_join(now, 1, spec);
        self.serve(now);
        key
    }

    fn serve(&mut self, now: Time) {
        loop {
            match self.stream.poll(now) {
                Output::Order(order) => {
                    let members = self.stream.members(&order).to_vec();
                    let by_rtp = |key: &SinkKey| {
                        self.stream.spec(*key).is_some_and(|spec| spec.encapsulation == Encapsulation::Rtp)
                    };
                    let wrapped = self.stream.format() == Some(&Format::Ts) && members.iter().all(by_rtp);
                    let wire = |header: [u8; 12], body: &Bytes| {
                        Bytes::from([if wrapped { &header[..] } else { &[] }, body].concat())
                    };
                    let preamble = self.stream.preamble(&order);
                    let preamble = preamble.map(|(body, header)| wire(header, body));
                    let packets = self.stream.packets(&order, crate::Share::WHOLE);
                    let packets = packets.map(|(_, e, _)| wire(e.rtp_header, &e.packet.bytes));
                    let wire: Vec<_> = preamble.into_iter().chain(packets).collect();
                    members.iter().for_each(|key| self.sent[key.0].extend(wire.iter().cloned()));
                }
                Output::Event(event) => self.events.push(event),
                Output::HandOver(handed) => self.handed.extend(handed),
                Output::SenderReports(_) | Output::Feedback(_) | Output::Stages(_) | Output::GoOn => {}
                Output::Wait { until } => {
                    assert!(until.is_none_or(|(at, why)| at > now || why == Wake::CatchUp), "{until:?}");
                    return;
                }
            }
        }
    }
}

/// A stream with its owner with a replica.
struct Pair {
    owner: Site,
    replica: Site,
    now: Time,
    sequence: u16,
    ssrc: u32,
    frame: u32,
    clip: TsLoop,
}

impl Pair {
    fn new() -> Self {
        let clip = include_bytes!("../../../../../assets/demo.ts");
        Pair {
            owner: Site::new(),
            replica: Site::new(),
            now: Time::from_millis(1_000),
            sequence: 65_530,
            ssrc: 7,
            frame: 0,
            clip: TsLoop::new(Bytes::from_static(clip)).expect("the built-in clip"),
        }
    }

    fn of(format: Format) -> Self {
        let mut pair = Pair::new();
        pair.owner.stream.handle_source(pair.now, format);
        pair
    }

    /// The replica begins now.
    fn replicate(&mut self) {
        for handed in self.owner.stream.handle_replica().introduction {
            self.replica.stream.handle_handed(self.now, handed);
        }
        self.replica.serve(self.now);
    }

    /// The owner and the replica do what there is to do.
    fn serve(&mut self) {
        self.owner.serve(self.now);
        for handed in mem::take(&mut self.owner.handed) {
            self.replica.stream.handle_handed(self.now, handed);
        }
        self.replica.serve(self.now);
    }

    /// What is handed over now gets lost.
    fn lose(&mut self) {
        let mut missed = 0;
        self.owner.serve(self.now);
        for handed in mem::take(&mut self.owner.handed) {
            missed += u64::from(matches!(handed, Handed::Packet(_)));
        }
        self.replica.stream.handle_handed(self.now, Handed::Missed { track: 0, packets: missed });
        for handed in self.owner.stream.situation() {
            self.replica.stream.handle_handed(self.now, handed);
        }
    }

    /// One access unit in two RTP packets; what makes it a key frame is in the second.
    fn send_frame(&mut self, key: bool) {
        let nal: [u8; 2] = if key { [0x65, 0xb0] } else { [0x41, 0xc0] };
        for (marker, unit) in [(false, [0x09, 0xf0]), (true, nal)] {
            let timestamp = self.frame * 3_600;
            let (sequence, ssrc) = (self.sequence, self.ssrc);
            let header = PlainHeader { marker, payload_type: PAYLOAD_TYPE, sequence, timestamp, ssrc };
            let mut packet = BytesMut::from(&header.emit()[..]);
            packet.extend_from_slice(&unit);
            packet.resize(400, 0);
            self.sequence = self.sequence.wrapping_add(1);
            assert!(self.owner.stream.handle_media(self.now, 0, packet.into()));
        }
        self.frame += 1;
        self.now = self.now + Duration::from_millis(40);
    }

    fn frames(&mut self, count: u32) {
        for _ in 0..count {
            self.send_frame(self.frame.is_multiple_of(5));
            self.serve();
        }
    }

    fn send_ts(&mut self) {
        let mut datagram = BytesMut::new();
        self.now = self.now + self.clip.next(&mut datagram);
        self.owner.stream.handle_media(self.now, 0, datagram.into());
    }

    fn datagrams(&mut self, count: usize) {
        for _ in 0..count {
            self.send_ts();
            self.serve();
        }
    }

    fn join(&mut self, encapsulation: Encapsulation) -> [SinkKey; 2] {
        [self.owner.join(self.now, encapsulation), self.replica.join(self.now, encapsulation)]
    }

    #[track_caller]
    fn equal(&self, [owner, replica]: [SinkKey; 2]) -> usize {
        let (owner, replica) = (&self.owner.sent[owner.0], &self.replica.sent[replica.0]);
        assert_eq!(owner.len(), replica.len());
        assert!(owner == replica, "the same packets");
        owner.len()
    }

    #[track_caller]
    fn equal_reports(&self) {
        let of = |site: &Site| site.stream.sender_report(self.now, 0, 0);
        assert!(of(&self.owner).is_some());
        assert_eq!(of(&self.owner), of(&self.replica));
    }
}

#[test]
fn receivers_of_rtp_get_the_same_at_both_places() {
    let mut pair = Pair::of(format());
    pair.replicate();
    pair.frames(7);
    let first = pair.join(Encapsulation::Rtp);
    pair.frames(7);
    let second = pair.join(Encapsulation::Rtp);
    let starts = |site: &Site, key| site.stream.start_points(key);
    assert_eq!(starts(&pair.owner, second[0]), starts(&pair.replica, second[1]));
    pair.owner.stream.handle_sender_report(pair.now, 0, 9 << 32, 77);
    pair.frames(7);
    assert_eq!(pair.equal(first), 2 * 16, "from the key frame before it joined on");
    assert_eq!(pair.equal(second), 2 * 11);
    pair.equal_reports();
    assert!(pair.replica.events.is_empty(), "what happens to the source is told at owner");
}

#[test]
fn receivers_of_a_transport_stream_get_the_same_at_both_places() {
    let mut pair = Pair::of(Format::Ts);
    pair.replicate();
    pair.datagrams(400);
    let (bare, in_rtp) = (pair.join(Encapsulation::Ts), pair.join(Encapsulation::Rtp));
    pair.datagrams(400);
    assert_eq!(pair.equal(bare), pair.equal(in_rtp));
    assert_eq!(pair.owner.sent[bare[0].0][0].len(), 2 * 188, "it begins with the tables");
    pair.equal_reports();
}

#[test]
fn a_replica_that_begins_late_begins_with_the_newest_key_frame() {
    for (format, encapsulation) in [(format(), Encapsulation::Rtp), (Format::Ts, Encapsulation::Ts)] {
        let by_rtp = encapsulation == Encapsulation::Rtp;
        let mut pair = Pair::of(format);
        let go_on = |pair: &mut Pair| if by_rtp { pair.frames(8) } else { pair.datagrams(400) };
        go_on(&mut pair);
        pair.replicate();
        let keys = pair.join(encapsulation);
        assert!(pair.equal(keys) > 0, "a picture at once");
        go_on(&mut pair);
        pair.equal(keys);
        pair.equal_reports();
    }
}

#[test]
fn a_replica_makes_its_own_transport_stream_where_it_is_asked_for() {
    let mut pair = Pair::of(format());
    pair.replicate();
    pair.frames(7);
    let keys = pair.join(Encapsulation::Ts);
    pair.frames(7);
    assert!(pair.equal(keys) > 5);
}

#[test]
fn a_restart_and_an_absence_of_the_source_are_the_same_at_both_places() {
    let mut pair = Pair::of(format());
    pair.replicate();
    pair.frames(6);
    let keys = pair.join(Encapsulation::Rtp);
    pair.frames(1);
    pair.owner.stream.handle_source_end(pair.now);
    pair.serve();
    assert!(!pair.replica.stream.source_up().0);
    pair.now = pair.now + Duration::from_secs(3);
    pair.owner.stream.handle_source(pair.now, format());
    (pair.ssrc, pair.sequence, pair.frame) = (8, 40_000, 0);
    pair.owner.stream.handle_sender_report(pair.now, 0, 9 << 32, 77);
    pair.frames(7);
    pair.equal(keys);
    pair.equal_reports();
    pair.now = pair.now + Duration::from_secs(3);
    pair.serve();
    assert!(!pair.replica.stream.source_up().0, "a source that is silent");
    pair.frames(7);
    assert!(pair.replica.stream.source_up().0);
    pair.equal(keys);
}

#[test]
fn a_break_of_a_transport_stream_is_announced_at_both_places() {
    let mut pair = Pair::of(Format::Ts);
    pair.replicate();
    pair.datagrams(400);
    let keys = pair.join(Encapsulation::Rtp);
    pair.owner.stream.handle_source_end(pair.now);
    pair.owner.stream.handle_source(pair.now, Format::Ts);
    pair.datagrams(10);
    pair.equal(keys);
}

#[test]
fn another_format_ends_the_same_receivers_at_both_places() {
    let mut pair = Pair::of(format());
    pair.replicate();
    pair.frames(6);
    let (by_rtp, by_ts) = (pair.join(Encapsulation::Rtp), pair.join(Encapsulation::Ts));
    pair.owner.stream.handle_source(pair.now, Format::Ts);
    pair.serve();
    let ended = |key| Event::SinkEnded { key, id: 1, end: SinkEnd::FormatChanged };
    assert_eq!(pair.replica.events, [ended(by_rtp[1])]);
    let before = pair.owner.sent[by_ts[0].0].len();
    pair.datagrams(400);
    assert!(pair.equal(by_ts) > before);
}

#[test]
fn a_gap_is_counted_and_bridged_at_the_next_key_frame() {
    let mut pair = Pair::of(format());
    pair.replicate();
    pair.frames(6);
    let [owner, replica] = pair.join(Encapsulation::Rtp);
    pair.send_frame(false);
    pair.owner.serve(pair.now);
    pair.lose();
    let late = pair.replica.join(pair.now, Encapsulation::Rtp);
    pair.frames(9);
    assert_eq!(pair.replica.sent[late.0], pair.replica.sent[replica.0], "it joined at the key frame before");
    let (all, some) = (&pair.owner.sent[owner.0], &pair.replica.sent[replica.0]);
    assert_eq!(all.len(), 2 * 11);
    // Six frames were sent, the seventh is lost, the three after it are of no use; the tenth is a
    // key frame.
    assert_eq!(some[..2], all[..2]);
    assert_eq!(some[2..], all[2 * 5..]);
    let drops = |key| pair.replica.stream.sink(key).expect("it is there").drops;
    assert_eq!(drops(replica).get(DropReason::HandOverFull), 2 * 4);
    assert_eq!(drops(replica).total(), 2 * 4);
    assert_eq!(drops(late), drops(replica));
}

#[test]
fn a_frame_whose_kind_does_not_show_is_not_held_for_ever() {
    let mut pair = Pair::of(format());
    pair.replicate();
    pair.frames(6);
    let [_, replica] = pair.join(Encapsulation::Rtp);
    pair.lose();
    for _ in 0..2 * GAP_HELD_PACKETS_MAX {
        // One access unit that never ends.
        pair.frame = 99;
        pair.send_frame(false);
        pair.serve();
    }
    pair.frame = 100;
    pair.frames(1);
    let sink = pair.replica.stream.sink(replica).expect("it is there");
    assert_eq!(sink.drops.get(DropReason::HandOverFull), 4 * GAP_HELD_PACKETS_MAX as u64);
}

#[test]
fn a_format_that_came_back_during_a_gap_is_still_a_new_one() {
    let mut pair = Pair::of(format());
    pair.replicate();
    pair.frames(6);
    let [_, replica] = pair.join(Encapsulation::Rtp);
    pair.owner.stream.handle_source(pair.now, Format::Ts);
    pair.owner.stream.handle_source(pair.now, format());
    pair.lose();
    pair.serve();
    let ended = Event::SinkEnded { key: replica, id: 1, end: SinkEnd::FormatChanged };
    assert_eq!(pair.replica.events, [ended]);
}

#[test]
fn a_replica_that_rests_holds_nothing_and_can_be_introduced_again() {
    let mut pair = Pair::of(format());
    pair.replicate();
    pair.frames(6);
    let [_, replica] = pair.join(Encapsulation::Rtp);
    pair.frames(6);
    pair.replica.stream.handle_leave(pair.now, replica);
    let (sent, ..) = pair.replica.stream.past();
    pair.replica.stream.handle_rest(pair.now);
    assert_eq!(pair.replica.stream.ring_use(), (0, 0));
    assert_eq!(pair.replica.stream.past().0, sent, "what was sent is not forgotten");
    pair.replica.serve(pair.now);
    for _ in 0..7 {
        pair.send_frame(pair.frame.is_multiple_of(5));
        pair.owner.serve(pair.now);
    }
    pair.owner.stream.end_replicas();
    pair.owner.handed.clear();
    pair.replicate();
    pair.replica.sent[replica.0].clear();
    let keys = pair.join(Encapsulation::Rtp);
    pair.frames(6);
    pair.equal(keys);
    pair.equal_reports();
}

#[test]
fn poll_gives_once_what_there_is_to_hand_over() {
    let mut pair = Pair::new();
    pair.owner.stream.handle_replica();
    pair.owner.stream.handle_source(pair.now, Format::Ts);
    let told = |stream: &mut Stream, now: Time| {
        let outputs = core::iter::from_fn(|| Some(stream.poll(now)));
        let outputs = outputs.take_while(|output| !matches!(output, Output::Wait { .. }));
        let handed = outputs.filter_map(|output| match output {
            Output::HandOver(handed) => Some(handed.len()),
            _ => None,
        });
        handed.collect::<Vec<_>>()
    };
    assert_eq!(told(&mut pair.owner.stream, pair.now), [1], "the format");
    assert_eq!(told(&mut pair.owner.stream, pair.now), [], "it is taken");
    pair.owner.stream.handle_source(pair.now, Format::Data);
    assert_eq!(told(&mut pair.owner.stream, pair.now), [1]);
}
