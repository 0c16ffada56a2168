//! Receivers that change between renditions, of sources that interleave in any way.

mod receiver;
mod sound;

use core::time::Duration;

use bytes::{Bytes, BytesMut};
use outflow_media::{Codec, Format, Time, Track};
use outflow_packet::Level;
use outflow_rtp::{HEADER, PlainHeader};
use proptest::prelude::*;

use receiver::{Got, Receiver};

use crate::control::{Output, Stream, StreamOptions};
use crate::feedback::Feedback;
use crate::schedule::{Encapsulation, SinkKey, SinkSpec, Transport};
use crate::send::Report;

/// Payload types of the renditions' video differ; that of sound is the same.
const PAYLOAD_TYPES: [u8; 3] = [96, 97, 98];
const SOUND: u8 = 10;
const FRAME_TICKS: u32 = 3_600;
/// A frame of AAC in which nothing is heard, behind its length (RFC 3640, section 3.3.6).
const SILENCE: [u8; 10] = [0, 16, 0, 6 << 3, 0x21, 0x10, 0x04, 0x60, 0x8c, 0x1c];

/// What happens.
#[derive(Debug, Clone)]
enum Step {
    Join(u8),
    Request(usize, u8),
    /// It takes this many packets of its next order and no more, for this many frame times.
    Block(usize, u64, u32),
    Leave(usize),
    /// This many frame times.
    Frames(u32),
    /// The source of a rendition goes, or comes.
    Turn(usize),
}

/// How the sources are.
#[derive(Debug, Clone)]
struct Shape {
    /// By rendition: packets of a frame, frames of a group, and how much later it is, in ms.
    each: [(u8, u32, u64); 3],
    has_sound: bool,
    /// It is AAC, and receivers have Opus alone.
    is_coded: bool,
    has_sets: bool,
    /// Frames begin with a packet that does not show what they are.
    has_delimiters: bool,
}

/// A source, and the stream of its own that it is.
struct Source {
    owner: Stream,
    is_on: bool,
    sequence: u16,
    sound: u16,
    frame: u32,
    begun: u32,
}

struct Bench {
    stream: Stream,
    shape: Shape,
    sources: Vec<Source>,
    now: Time,
    /// Frame times that are over.
    times: u32,
    receivers: Vec<Receiver>,
    /// Key frames that were asked for: the rendition, and the track there.
    asked: Vec<(usize, u8)>,
}

fn format(rendition: usize, shape: &Shape) -> Format {
    let set = |byte: u8| shape.has_sets.then(|| Bytes::from(vec![byte, rendition as u8]));
    let video = Track {
        codec: Codec::H264 { sps: set(0x67), pps: set(0x68) },
        payload_type: PAYLOAD_TYPES[rendition],
        encoding: "H264".to_owned(),
        ..Track::mp2t()
    };
    let config = Bytes::from_static(&[0x11, 0x90]);
    let aac = Codec::Aac { config, size_length: 13, index_length: 3, index_delta_length: 3 };
    let codec = if shape.is_coded { aac } else { Codec::Opus };
    let sound = Track { codec, payload_type: SOUND, clock_rate: 48_000, channels: 2, ..Track::mp2t() };
    // Sound may stand first, or there may be none.
    let mut tracks = if shape.has_sound { vec![sound] } else { Vec::new() };
    tracks.insert(rendition % 2 * tracks.len(), video);
    Format::Rtp(tracks)
}

impl Bench {
    fn new(shape: &Shape) -> Self {
        let source = |rendition: usize| {
            let mut owner = Stream::new(StreamOptions::default());
            owner.handle_replica();
            owner.handle_source(Time::ZERO, format(rendition, shape));
            Source { owner, is_on: true, sequence: 65_500, sound: 65_530, frame: 0, begun: 0 }
        };
        let stream =
            Stream::of_renditions(StreamOptions { ssrc: 0x7fff_ff00, ..StreamOptions::default() }, 3);
        let sources = (0..3).map(source).collect();
        let (shape, now, receivers) = (shape.clone(), Time::from_millis(1000), Vec::new());
        let mut bench = Bench { stream, shape, sources, now, times: 0, receivers, asked: Vec::new() };
        bench.hand_over();
        bench
    }

    fn hand_over(&mut self) {
        for (index, source) in self.sources.iter_mut().enumerate() {
            // Time stands still there: no owner says that its source is away.
            let Output::HandOver(handed) = source.owner.poll(Time::ZERO) else { continue };
            handed.into_iter().for_each(|handed| self.stream.handle_rendition(self.now, index, handed));
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Join(level) => {
                let level = Level::new(level).expect("a level");
                let as_ = if self.shape.is_coded { Encapsulation::Tracks } else { Encapsulation::Rtp };
                let spec = SinkSpec { level, ..SinkSpec::new(as_, Transport::Stream) };
                let key = self.stream.handle_join(self.now, 1, spec);
                self.receivers.push(Receiver::new(key, &self.shape));
            }
            Step::Request(number, level) => {
                if let Some(at) = self.receiver(number) {
                    let level = Level::new(level).expect("a level");
                    assert_eq!(
                        self.stream.set_level(self.receivers[at].key, level).is_ok(),
                        level.number() <= 3
                    );
                }
            }
            Step::Block(number, packets, frames) => {
                if let Some(at) = self.receiver(number) {
                    self.receivers[at].block.get_or_insert((packets, frames));
                }
            }
            Step::Leave(number) => {
                if let Some(at) = self.receiver(number) {
                    self.stream.handle_leave(self.now, self.receivers[at].key);
                    self.receivers[at].is_there = false;
                }
            }
            Step::Frames(count) => (0..count).for_each(|_| self.frame_time()),
            Step::Turn(rendition) => self.turn(rendition),
        }
        self.serve();
    }

    fn receiver(&self, number: usize) -> Option<usize> {
        let there: Vec<_> = (0..self.receivers.len()).filter(|at| self.receivers[*at].is_there).collect();
        there.get(number % there.len().max(1)).copied()
    }

    /// A source goes away between two frames, or comes back with a key frame.
    fn turn(&mut self, rendition: usize) {
        let source = &mut self.sources[rendition];
        source.is_on = !source.is_on;
        match source.is_on {
            true => source.begun = source.frame,
            false => source.owner.handle_source_end(self.now),
        }
        self.hand_over();
    }

    /// A frame of each source, packet by packet as they come.
    fn frame_time(&mut self) {
        let mut packets = Vec::new();
        for (rendition, &(count, _, lag)) in self.shape.each.iter().enumerate() {
            for index in 0..count {
                packets.push((
                    lag * 1000 + u64::from(index) * 35_000 / u64::from(count),
                    rendition,
                    Some(index),
                ));
            }
            packets.push((5_000, rendition, None));
            packets.push((25_000, rendition, None));
        }
        packets.sort();
        let began = self.now;
        for (micros, rendition, index) in packets {
            self.now = began + Duration::from_micros(micros);
            self.packet(rendition, index);
            self.hand_over();
            // Packets may come several at a time.
            if micros % 3 > 0 {
                self.serve();
            }
        }
        self.now = began + Duration::from_millis(40);
        self.times += 1;
        self.sources.iter_mut().filter(|source| source.is_on).for_each(|source| source.frame += 1);
        for receiver in &mut self.receivers {
            match &mut receiver.block {
                Some((0, frames)) if *frames > 0 => *frames -= 1,
                Some((0, _)) => {
                    receiver.block = None;
                    self.stream.handle_report(receiver.key, Report::Writable);
                }
                _ => {}
            }
        }
        self.serve();
    }

    /// A packet of video, with its number, or one of sound.
    fn packet(&mut self, rendition: usize, index: Option<u8>) {
        let (count, group, _) = self.shape.each[rendition];
        let source = &mut self.sources[rendition];
        if !source.is_on || (index.is_none() && !self.shape.has_sound) {
            return;
        }
        let is_key = (source.frame - source.begun).is_multiple_of(group);
        let number = if index.is_some() { &mut source.sequence } else { &mut source.sound };
        let sequence = *number;
        *number = number.wrapping_add(1);
        let frame_ticks =
            (self.times * FRAME_TICKS).wrapping_add(if rendition == 2 { 0xfff0_0000 } else { 0 });
        let timestamp = match self.shape.is_coded && index.is_none() {
            // Two frames of sound while one of pictures comes.
            true => self.times * 2048 + u32::from(sequence % 2) * 1024,
            // Their clocks are those of one encoder, but for the last one's.
            false => frame_ticks,
        };
        let header = PlainHeader {
            marker: index.is_none_or(|index| index + 1 == count),
            payload_type: if index.is_some() { PAYLOAD_TYPES[rendition] } else { SOUND },
            sequence,
            timestamp,
            ssrc: 7 + rendition as u32 * 2 + u32::from(index.is_some()),
        };
        let mut packet = BytesMut::from(&header.emit()[..]);
        if let Some(index) = index {
            let nal = if is_key { 0x65 } else { 0x41 };
            let begins_at = u8::from(self.shape.has_delimiters && count > 1);
            let ends = u8::from(index == begins_at) << 7 | u8::from(index + 1 == count) << 6;
            let slice = [nal & 0x60 | 28, ends | nal & 0x1f, if is_key { 0xb0 } else { 0xc0 }];
            packet.extend_from_slice(if index < begins_at { &[9, 0xf0, 0] } else { &slice });
            packet.extend_from_slice(&[rendition as u8, u8::from(is_key)]);
        } else {
            packet.extend_from_slice(&[0, 0, 0, rendition as u8, 0]);
        }
        packet.extend_from_slice(&source.frame.to_be_bytes());
        packet.extend_from_slice(&[index.unwrap_or(0), count]);
        if index.is_none() && self.shape.is_coded {
            packet.truncate(HEADER);
            packet.extend_from_slice(&SILENCE);
        }
        let main = source.owner.main_track(0).unwrap_or(0);
        let track = if index.is_some() { main } else { 1 - main };
        assert!(source.owner.handle_media(self.now, track, packet.into()));
    }

    fn serve(&mut self) {
        loop {
            let order = match self.stream.poll(self.now) {
                Output::Order(order) => order,
                Output::Wait { .. } => return,
                Output::Feedback(Feedback::KeyFrame { rendition, track }) => {
                    self.asked.push((rendition, track));
                    continue;
                }
                _ => continue,
            };
            let members = self.stream.members(&order).to_vec();
            members.into_iter().for_each(|key| self.deliver(&order, key));
        }
    }

    fn deliver(&mut self, order: &crate::Order, key: SinkKey) {
        let is = |receiver: &&mut Receiver| receiver.key == key && receiver.is_there;
        let receiver = self.receivers.iter_mut().find(is).expect("one that left is sent nothing");
        let share = self.stream.share(order, key);
        let main = self.stream.main_track(order.branch);
        if let Some((bytes, header)) = self.stream.preamble(order) {
            receiver.take(true, header, share.sequence_offset, bytes);
        }
        let mut blocked = None;
        for (seq, entry, sequence_offset) in self.stream.packets(order, share) {
            match &mut receiver.block {
                Some((0, _)) => {
                    blocked = Some(seq);
                    break;
                }
                Some((left, _)) => *left -= 1,
                None => {}
            }
            let is_main = main == Some(entry.packet.tag.track);
            let header = entry.packet.rtp_header(&entry.rtp_header).expect("RTP");
            receiver.take(is_main, *header, sequence_offset, &entry.packet.bytes);
            receiver.note_left(order.leaves);
        }
        if let Some(next) = blocked {
            self.stream.handle_report(key, Report::Blocked { next });
        }
    }
}

fn shape() -> impl Strategy<Value = Shape> {
    let one = || (1..6_u8, 1..12_u32, prop_oneof![Just(0_u64), 1..60_u64]);
    ([one(), one(), one()], any::<[bool; 4]>()).prop_map(
        |(each, [has_sound, is_coded, has_sets, has_delimiters])| {
            let is_coded = has_sound && is_coded;
            Shape { each, has_sound, is_coded, has_sets, has_delimiters }
        },
    )
}

fn steps(turns: bool) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (1..4_u8).prop_map(Step::Join),
        4 => (0..8_usize, 1..5_u8).prop_map(|(number, level)| Step::Request(number, level)),
        1 => (0..8_usize, 0..20_u64, 0..20_u32).prop_map(|(number, packets, frames)| {
            Step::Block(number, packets, frames)
        }),
        1 => (0..8_usize).prop_map(Step::Leave),
        6 => (1..12_u32).prop_map(Step::Frames),
        u32::from(turns) => (0..3_usize).prop_map(Step::Turn),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #[test]
    fn whatever_is_wished_frames_are_whole_and_all_sound_comes(shape in shape(), steps in steps(false)) {
        let mut bench = Bench::new(&shape);
        steps.iter().for_each(|step| bench.step(step));
        bench.step(&Step::Frames(45));
        for receiver in &bench.receivers {
            let got = receiver.check();
            if receiver.is_there {
                let wish = bench.stream.spec(receiver.key).expect("it is there").level.number();
                let last = got.iter().rev().find(|got| !got.is_sound);
                prop_assert_eq!(last.map(|last| last.rendition + 1), Some(wish), "it has what it wishes");
            }
        }
    }

    #[test]
    fn one_that_has_lost_its_rendition_gets_another_one(shape in shape(), steps in steps(true)) {
        let mut bench = Bench::new(&shape);
        steps.iter().for_each(|step| bench.step(step));
        bench.step(&Step::Frames(45));
        let is_on: Vec<bool> = bench.sources.iter().map(|source| source.is_on).collect();
        for receiver in &bench.receivers {
            let got = receiver.check_pictures(true);
            if receiver.is_there && is_on.contains(&true) {
                let wish = usize::from(bench.stream.spec(receiver.key).expect("there").level.number()) - 1;
                let lower = (wish..3).find(|index| is_on[*index]);
                let expected = lower.or((0..wish).rev().find(|index| is_on[*index])).expect("one is on");
                let last = got.iter().rev().find(|got| !got.is_sound).expect("it gets something");
                prop_assert_eq!(usize::from(last.rendition), expected);
            }
        }
    }
}

const PLAIN: Shape = Shape {
    each: [(4, 10, 0), (2, 10, 3), (1, 10, 9)],
    has_sound: true,
    is_coded: false,
    has_sets: true,
    has_delimiters: false,
};

fn renditions(got: &[Got]) -> Vec<u8> {
    let mut all: Vec<u8> = got.iter().filter(|got| !got.is_sound).map(|got| got.rendition).collect();
    all.dedup();
    all
}

#[test]
fn a_change_comes_with_the_next_key_frame() {
    let mut bench = Bench::new(&PLAIN);
    bench.step(&Step::Frames(3));
    bench.step(&Step::Join(1));
    bench.step(&Step::Frames(3));
    bench.step(&Step::Request(0, 3));
    bench.step(&Step::Frames(3));
    assert_eq!(renditions(&bench.receivers[0].check()), [0], "there was none yet");
    bench.step(&Step::Frames(3));
    assert_eq!(renditions(&bench.receivers[0].check()), [0, 2]);
    bench.step(&Step::Request(0, 2));
    bench.step(&Step::Frames(20));
    assert_eq!(renditions(&bench.receivers[0].check()), [0, 2, 1]);
    let rates = bench.stream.rate_table(bench.now);
    assert!(rates.len() == 3 && rates[0] > rates[1] && rates[1] > rates[2], "{rates:?}");
    assert_eq!(bench.stream.describe(), "3 of 3 renditions");
}

#[test]
fn the_rendition_that_is_waited_for_is_asked_for_a_key_frame_and_no_other() {
    let mut bench = Bench::new(&Shape { each: [(4, 100, 0), (2, 100, 0), (1, 10, 0)], ..PLAIN });
    bench.step(&Step::Frames(3));
    bench.step(&Step::Join(1));
    bench.step(&Step::Frames(3));
    assert_eq!(bench.asked, [], "it has what it wants");
    bench.step(&Step::Request(0, 3));
    bench.step(&Step::Frames(10));
    assert_eq!(renditions(&bench.receivers[0].check()), [0, 2]);
    assert_eq!(core::mem::take(&mut bench.asked), [(2, 0)], "once, and not any more when it has come");
    bench.step(&Step::Request(0, 2));
    bench.step(&Step::Frames(40));
    assert_eq!(core::mem::take(&mut bench.asked), [(1, 1), (1, 1)], "as it is numbered there, once a second");
    let key = bench.receivers[0].key;
    let main = bench.stream.main_track(0).expect("video");
    bench.stream.handle_key_frame_request(key, main);
    bench.stream.handle_key_frame_request(key, 1 - main);
    bench.step(&Step::Request(0, 3));
    bench.step(&Step::Frames(1));
    assert_eq!(bench.asked, [(0, 1 - main), (2, 0)], "of what it receives: the picture, sound of the first");
}

#[test]
fn a_rendition_whose_picture_has_stopped_is_away_even_if_its_sound_goes_on() {
    let mut bench = Bench::new(&PLAIN);
    bench.step(&Step::Frames(3));
    bench.step(&Step::Join(1));
    bench.step(&Step::Frames(3));
    bench.shape.each[0].0 = 0;
    bench.step(&Step::Frames(80));
    assert_eq!(renditions(&bench.receivers[0].check_pictures(true)), [0, 1]);
    assert_eq!(bench.stream.describe(), "2 of 3 renditions");
    bench.shape.each[0].0 = 4;
    bench.step(&Step::Frames(20));
    assert_eq!(renditions(&bench.receivers[0].check_pictures(true)), [0, 1, 0], "it is back");
}

#[test]
fn a_rendition_of_another_codec_is_left_out_and_said() {
    let mut bench = Bench::new(&PLAIN);
    let track = Track { codec: Codec::Vp8, payload_type: 96, ..Track::mp2t() };
    bench.sources[1].owner.handle_source(bench.now, Format::Rtp(vec![track]));
    bench.hand_over();
    bench.step(&Step::Join(2));
    bench.sources[1].is_on = false;
    bench.step(&Step::Frames(3));
    assert_eq!(renditions(&bench.receivers[0].check()), [2], "the next lower one");
    assert_eq!(bench.stream.describe(), "2 of 3 renditions; number 2 has another codec");
}

#[test]
fn one_that_has_been_sent_parameter_sets_alone_gets_their_key_frame_before_it_changes() {
    let mut bench = Bench::new(&Shape { each: [(1, 1, 0); 3], has_sound: false, ..PLAIN });
    // It takes the parameter sets, and nothing of the packet behind them.
    let blocked = [Step::Join(1), Step::Block(0, 0, 2), Step::Frames(1)];
    blocked.iter().chain(&[Step::Request(0, 2), Step::Frames(45)]).for_each(|step| bench.step(step));
    let got = bench.receivers[0].check();
    assert_eq!(got[0].rendition, got[1].rendition, "the sets are followed by what they stand before");
}

#[test]
fn one_that_lags_is_not_sent_the_key_frame_of_the_rendition_that_it_leaves() {
    let mut bench = Bench::new(&Shape { has_sound: false, ..PLAIN });
    let lags = [Step::Frames(3), Step::Join(1), Step::Frames(3), Step::Request(0, 3), Step::Block(0, 0, 8)];
    lags.iter().chain(&[Step::Frames(30)]).for_each(|step| bench.step(step));
    let got = bench.receivers[0].check();
    assert_eq!(renditions(&got), [0, 2]);
    let pictures = || got.iter().filter(|got| !got.is_sets);
    let last = pictures().rfind(|got| got.rendition == 0).expect("it had some");
    let next = pictures().find(|got| got.rendition == 2).expect("it has some");
    let step = next.timestamp.wrapping_sub(last.timestamp).cast_signed();
    assert!(!last.is_key && step > FRAME_TICKS.cast_signed() / 2, "{last:?} and then {next:?}");
    // It is told in front of what it could do without.
    let before = got.iter().take_while(|got| got.rendition == 0).map(|got| got.is_left);
    assert!(before.is_sorted() && last.is_left && !got[0].is_left);
    assert!(got.iter().all(|got| got.rendition == 0 || !got.is_left));
}
