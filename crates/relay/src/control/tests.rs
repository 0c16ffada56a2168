//! A stream from source to order, with RTP packets of H.264.

mod back;
mod feedback;
mod links;
mod marks;
mod save;
mod services;
mod share;
mod tracks;

use core::time::Duration;

use bytes::{Bytes, BytesMut};
use outflow_media::{Format, Time, Track};
use outflow_packet::DropReason;
use outflow_packet::gmc::Mark;
use outflow_rtp::{PlainHeader, RtpHeader};

use super::*;
use crate::feedback::{Feedback, KEY_FRAME_EVERY, Reception};
use crate::schedule::{Encapsulation, Place, SinkKey, SinkSpec, Transport};
use crate::send::Report;
use outflow_ring::WhenFull;

const PAYLOAD_TYPE: u8 = 96;

fn format() -> Format {
    Format::Rtp(vec![Track { payload_type: PAYLOAD_TYPE, ..Track::h264() }])
}

fn options() -> StreamOptions {
    StreamOptions {
        ring_bytes: 64 << 10,
        hopeless_after: Duration::from_secs(5),
        ssrc: 99,
        ..StreamOptions::default()
    }
}

/// A stream with the sender of its packets and everything that came out of it.
struct Bench {
    stream: Stream,
    now: Time,
    ssrc: u32,
    sequence: u16,
    frame: u32,
    events: Vec<Event>,
    orders: usize,
    reports: Vec<ReportTo>,
    feedback: Vec<Feedback>,
    /// Sequence numbers sent, by sink.
    sent: Vec<Vec<u16>>,
    /// What these packets say of themselves.
    said: Vec<Vec<Option<Mark>>>,
}

impl Bench {
    fn new() -> Self {
        let mut stream = Stream::new(options());
        stream.handle_source(Time::ZERO, format());
        Bench {
            stream,
            now: Time::ZERO,
            ssrc: 7,
            sequence: 0,
            frame: 0,
            events: Vec::new(),
            orders: 0,
            reports: Vec::new(),
            feedback: Vec::new(),
            sent: vec![Vec::new(); 16],
            said: vec![Vec::new(); 16],
        }
    }

    fn frame(&mut self, key: bool) {
        let nal = if key { [0x65, 0xb0] } else { [0x41, 0xc0] };
        let header = PlainHeader {
            marker: true,
            payload_type: PAYLOAD_TYPE,
            sequence: self.sequence,
            timestamp: self.frame * 3_600,
            ssrc: self.ssrc,
        };
        let mut packet = BytesMut::from(&header.emit()[..]);
        packet.extend_from_slice(&nal);
        packet.resize(1_000, 0);
        self.sequence = self.sequence.wrapping_add(1);
        self.frame += 1;
        self.stream.handle_media(self.now, 0, packet.into());
        self.poll();
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
        self.poll();
    }

    fn poll(&mut self) -> Option<(Time, Wake)> {
        loop {
            match self.stream.poll(self.now) {
                Output::Order(order) => {
                    self.orders += 1;
                    let members = self.stream.members(&order).to_vec();
                    for (_, entry, _) in self.stream.packets(&order, crate::Share::WHOLE) {
                        let header = RtpHeader::new_checked(&entry.packet.bytes).expect("RTP");
                        members.iter().for_each(|key| self.sent[key.0].push(header.sequence()));
                        let mark = Mark::read(&entry.packet.bytes);
                        members.iter().for_each(|key| self.said[key.0].push(mark));
                    }
                }
                Output::Event(event) => self.events.push(event),
                Output::SenderReports(to) => self.reports.push(to),
                Output::Feedback(feedback) => self.feedback.push(feedback),
                Output::HandOver(_) | Output::Stages(_) | Output::GoOn => {}
                Output::Wait { until } => return until,
            }
        }
    }

    fn join(&mut self, held: bool) -> SinkKey {
        let spec = SinkSpec { held, ..SinkSpec::new(Encapsulation::Rtp, Transport::Stream) };
        let key = self.stream.handle_join(self.now, 1, spec);
        self.poll();
        key
    }
}

#[test]
fn a_source_is_announced_when_it_comes_goes_and_comes_back() {
    let mut bench = Bench::new();
    bench.frame(true);
    assert_eq!(bench.events, [Event::SourceUp]);
    let until = bench.poll().expect("it waits for something");
    assert_eq!(until, (Time::from_millis(2_000), Wake::SourceTimeout));
    bench.wait(2_500);
    assert_eq!(bench.events[1..], [Event::SourceAway { silent: Duration::from_millis(2_500) }]);
    bench.frame(false);
    assert_eq!(bench.events[2..], [Event::SourceUp]);
    assert_eq!(bench.stream.source_counters().starts, 2);
}

#[test]
fn a_restarted_source_goes_on_where_it_ended_for_those_that_stayed() {
    let mut bench = Bench::new();
    bench.frame(true);
    let key = bench.join(false);
    bench.frame(false);
    bench.stream.handle_source_end(bench.now);
    bench.wait(5_000);
    bench.stream.handle_source(bench.now, format());
    (bench.ssrc, bench.sequence, bench.frame) = (8, 40_000, 0);
    bench.frame(true);
    bench.frame(false);
    assert_eq!(bench.sent[key.0], [0, 1, 2, 3], "no gap in the sequence numbers");
    let report = bench.stream.sender_report(bench.now, 0, 0).expect("packets have passed");
    assert_eq!(report.ssrc, 7, "and one SSRC");
}

#[test]
fn another_format_ends_rtp_receivers_and_lets_transport_stream_receivers_wait() {
    let mut bench = Bench::new();
    bench.frame(true);
    let rtp = bench.join(false);
    bench.stream.handle_source(bench.now, Format::Ts);
    bench.poll();
    let ended = Event::SinkEnded { key: rtp, id: 1, end: SinkEnd::FormatChanged };
    assert!(bench.events.contains(&ended), "{:?}", bench.events);
    assert_eq!(bench.stream.sinks().count(), 0);
}

#[test]
fn a_receiver_that_joins_before_the_source_is_served_when_it_comes() {
    let mut bench = Bench::new();
    bench.stream = Stream::new(options());
    let key = bench.join(false);
    bench.stream.handle_source(bench.now, format());
    bench.frame(false);
    bench.frame(true);
    bench.frame(false);
    assert_eq!(bench.sent[key.0], [1, 2]);
}

#[test]
fn a_held_sink_keeps_its_place_and_tells_where_it_begins() {
    let mut bench = Bench::new();
    bench.frame(false);
    bench.frame(true);
    let key = bench.join(true);
    assert!(bench.sent[key.0].is_empty());
    let starts = bench.stream.start_points(key);
    assert_eq!((starts[0].sequence, starts[0].timestamp), (1, 3_600));
    bench.frame(false);
    assert!(bench.sent[key.0].is_empty());
    bench.stream.handle_report(key, Report::Writable);
    bench.poll();
    assert_eq!(bench.sent[key.0], [1, 2]);
    assert!(bench.reports.contains(&ReportTo::One(key)), "a sender report so that tracks come together");
}

#[test]
fn a_paused_sink_gets_nothing_and_resumes_at_a_key_frame() {
    let mut bench = Bench::new();
    bench.frame(true);
    let key = bench.join(false);
    bench.stream.handle_pause(key);
    bench.frame(false);
    bench.frame(true);
    bench.frame(false);
    assert_eq!(bench.sent[key.0], [0]);
    bench.stream.handle_resume(bench.now, key);
    assert_eq!(bench.stream.start_points(key)[0].sequence, 2);
    bench.stream.handle_report(key, Report::Writable);
    bench.poll();
    assert_eq!(bench.sent[key.0], [0, 2, 3]);
}

#[test]
fn a_hopeless_sink_is_let_go_and_a_slow_one_that_catches_up_is_not() {
    let mut bench = Bench::new();
    bench.frame(true);
    let hopeless = bench.join(false);
    let slow = bench.join(false);
    for key in [hopeless, slow] {
        let next = 1;
        bench.stream.handle_report(key, Report::Blocked { next });
    }
    for _ in 0..100 {
        bench.now = bench.now + Duration::from_millis(40);
        bench.frame(bench.frame.is_multiple_of(10));
    }
    bench.stream.handle_report(slow, Report::Writable);
    bench.poll();
    let is_live = |bench: &Bench, key: SinkKey| {
        bench.stream.sinks().any(|(k, sink)| k == key && matches!(sink.place(), Place::Live { .. }))
    };
    assert!(is_live(&bench, slow));
    for _ in 0..100 {
        bench.now = bench.now + Duration::from_millis(40);
        bench.frame(bench.frame.is_multiple_of(10));
    }
    let ended: Vec<_> = bench.events.iter().filter(|e| matches!(e, Event::SinkEnded { .. })).collect();
    assert_eq!(ended, [&Event::SinkEnded { key: hopeless, id: 1, end: SinkEnd::Hopeless }]);
    assert!(is_live(&bench, slow));
    let (_, drops, _) = bench.stream.past();
    assert!(drops.get(DropReason::SlowSink) > 0, "what it lost is not forgotten");
}

#[test]
fn the_policy_of_a_full_ring_can_be_changed_while_packets_flow() {
    let mut bench = Bench::new();
    bench.frame(true);
    let (well, stalled) = (bench.join(false), bench.join(false));
    bench.stream.handle_report(stalled, Report::Blocked { next: 1 });
    let mut run = |when_full| {
        bench.stream.set_options(StreamOptions { when_full, ..options() });
        (0..100).for_each(|_| bench.frame(bench.frame.is_multiple_of(10)));
        bench.stream.sink_drops(well)
    };
    assert_eq!(run(WhenFull::SlowestSink).total(), 0);
    let lost = run(WhenFull::Tail);
    assert!(lost.get(DropReason::TailDrop) > 80, "the ring was full already: {lost:?}");
    assert_eq!(run(WhenFull::SlowestSink), lost, "and back: nothing more");
}

#[test]
fn one_that_takes_nothing_holds_up_a_ring_with_tail_drop_until_it_is_hopeless() {
    let mut bench = Bench::new();
    bench.stream.set_options(StreamOptions { when_full: WhenFull::Tail, ..options() });
    bench.frame(true);
    let (well, stalled) = (bench.join(false), bench.join(false));
    bench.stream.handle_report(stalled, Report::Blocked { next: 1 });
    let mut run = |frames: u32| {
        for _ in 0..frames {
            bench.now = bench.now + Duration::from_millis(40);
            bench.frame(bench.frame.is_multiple_of(10));
        }
        (bench.stream.sinks().count(), bench.stream.sink_drops(well).total())
    };
    let (sinks, lost) = run(150);
    assert_eq!(sinks, 2);
    assert!(lost > 80, "the ring holds 65 packets: {lost}");
    let (sinks, lost) = run(100);
    assert_eq!(sinks, 1, "5 s after the first loss");
    assert_eq!(run(100), (1, lost), "none loses anything any more");
}

#[test]
fn bad_packets_are_counted_and_nothing_else() {
    let mut bench = Bench::new();
    bench.frame(true);
    bench.stream.handle_media(bench.now, 0, Bytes::from_static(b"").into());
    bench.stream.handle_media(bench.now, 0, Bytes::from_static(&[0xff; 40]).into());
    bench.stream.handle_media(bench.now, 9, Bytes::from_static(&[0x80; 40]).into());
    let drops = bench.stream.source_counters().drops;
    assert_eq!(drops.get(DropReason::Malformed), 2);
    assert_eq!(drops.get(DropReason::UnknownTrack), 1);
    assert_eq!(drops.total(), 3);
    let mut early = Stream::new(options());
    early.handle_media(bench.now, 0, Bytes::from_static(&[0x80; 40]).into());
    assert_eq!(early.source_counters().drops.get(DropReason::NoFormat), 1);
}

#[test]
fn sender_reports_go_out_every_five_seconds() {
    let mut bench = Bench::new();
    for _ in 0..20 {
        bench.frame(true);
        bench.wait(1_000);
    }
    assert_eq!(
        bench.reports.iter().filter(|to| **to == ReportTo::All).count(),
        5,
        "at 0, 5, 10, 15 and 20 s"
    );
}
