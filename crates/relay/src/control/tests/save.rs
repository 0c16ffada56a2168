//! A stream that goes on in another process: what comes out is what would have come out of it without that.

use std::collections::BTreeMap;

use fastrand::Rng;
use outflow_media::Codec;
use outflow_packet::Level;
use outflow_rtp::payload::vp8::Descriptor;

use super::*;
use crate::save::{SavedPlace, SavedStream};
use crate::schedule::{LinkClaim, Priority};

const VIDEO: u8 = 100;
const SOUND: u8 = 101;

/// Two layers of VP8, and sound.
fn layered() -> Format {
    let video = Track { codec: Codec::Vp8, payload_type: VIDEO, encoding: "VP8".to_owned(), ..Track::h264() };
    let sound = Track {
        codec: Codec::Opus,
        payload_type: SOUND,
        clock_rate: 48_000,
        channels: 2,
        encoding: "opus".to_owned(),
        ..Track::h264()
    };
    Format::Rtp(vec![video, sound])
}

/// What comes in, of a source that begins again now and then.
struct Camera {
    sequences: [u16; 2],
    frame: u32,
    ssrc: u32,
}

impl Camera {
    fn packet(&mut self, track: u8, (timestamp, marker): (u32, bool), payload: &[u8]) -> Bytes {
        let sequence = &mut self.sequences[usize::from(track)];
        *sequence = sequence.wrapping_add(1);
        let payload_type = if track == 0 { VIDEO } else { SOUND };
        let header = PlainHeader {
            marker,
            payload_type,
            sequence: *sequence,
            timestamp,
            ssrc: self.ssrc + u32::from(track),
        };
        Bytes::from([&header.emit()[..], payload].concat())
    }

    /// The packets of the next 20 ms.
    fn next(&mut self, rng: &mut Rng) -> Vec<(u8, Bytes)> {
        let sound = self.packet(1, (self.frame * 960, false), &[7; 40]);
        let is_key = self.frame.is_multiple_of(25);
        let layer = if is_key { 0 } else { (self.frame % 2) as u8 };
        let count = rng.usize(1..4);
        let mut all = vec![(1, sound)];
        for index in 0..count {
            let descriptor = Descriptor {
                starts_partition: index == 0,
                is_no_reference: layer == 1,
                temporal: Some((layer, true)),
                ..Descriptor::default()
            };
            let mut payload = Vec::new();
            descriptor.emit(&mut payload);
            payload.push(u8::from(!is_key));
            payload.resize(rng.usize(100..900), self.frame as u8);
            let packet = self.packet(0, (self.frame * 1_800, index + 1 == count), &payload);
            all.push((0, packet));
        }
        self.frame += 1;
        all
    }

    fn restart(&mut self, rng: &mut Rng) {
        *self = Camera { sequences: [rng.u16(..), rng.u16(..)], frame: 0, ssrc: rng.u32(..) };
    }
}

/// A stream, and what its receivers got of it.
struct Side {
    stream: Stream,
    keys: BTreeMap<u64, SinkKey>,
    got: BTreeMap<u64, Vec<Vec<u8>>>,
    /// The first sequence number of its video, since it joined: this may be any.
    first: BTreeMap<u64, u16>,
}

impl Side {
    fn new(options: StreamOptions) -> Self {
        Side {
            stream: Stream::new(options),
            keys: BTreeMap::new(),
            got: BTreeMap::new(),
            first: BTreeMap::new(),
        }
    }

    /// Does all there is to do. A receiver takes something, or not.
    fn serve(&mut self, now: Time, takes: &dyn Fn(u64) -> bool) {
        for (id, key) in &self.keys {
            if takes(*id) && self.stream.is_blocked(*key) {
                self.stream.handle_report(*key, Report::Writable);
            }
        }
        loop {
            match self.stream.poll(now) {
                Output::Order(order) => {
                    for key in self.stream.members(&order).to_vec() {
                        self.deliver(&order, key, takes);
                    }
                }
                Output::Wait { .. } => return,
                _ => {}
            }
        }
    }

    fn deliver(&mut self, order: &crate::Order, key: SinkKey, takes: &dyn Fn(u64) -> bool) {
        let id = self.stream.sink(key).expect("it is there").id;
        let by_rtp = self.stream.spec(key).is_some_and(|spec| spec.encapsulation == Encapsulation::Rtp);
        let share = self.stream.share(order, key);
        if let Some((bytes, _)) = self.stream.preamble(order) {
            self.got.entry(id).or_default().push(bytes.to_vec());
        }
        let mut next = None;
        for (seq, entry, sequence_offset) in self.stream.packets(order, share) {
            if !takes(id) {
                next = Some(seq);
                break;
            }
            let mut bytes = entry.packet.bytes.to_vec();
            if by_rtp {
                let sequence = u16::from_be_bytes([bytes[2], bytes[3]]).wrapping_sub(sequence_offset);
                let is_video = entry.packet.tag.track == 0;
                let first = if is_video { *self.first.entry(id).or_insert(sequence) } else { 0 };
                outflow_rtp::set_sequence(&mut bytes, sequence.wrapping_sub(first));
            }
            self.got.entry(id).or_default().push(bytes);
        }
        if let Some(next) = next {
            self.stream.handle_report(key, Report::Blocked { next });
        }
    }

    /// It goes on in another process.
    fn move_to(&mut self, now: Time, options: StreamOptions) {
        let counts = |stream: &Stream, key| (stream.sink_counters(key), stream.sink_drops(key));
        let before: BTreeMap<_, _> =
            self.keys.iter().map(|(id, key)| (*id, counts(&self.stream, *key))).collect();
        let saved = self.stream.save();
        let bytes = minicbor::to_vec(&saved).expect("memory does not fail");
        let read: SavedStream = minicbor::decode(&bytes).expect("what was written");
        assert_eq!(read, saved);
        // Of another seed and SSRC, as a driver makes them.
        self.stream = Stream::new(StreamOptions { ssrc: 7, seed: 7, ..options });
        self.keys = self.stream.restore(now, read).expect("it fits").into_iter().collect();
        let after = self.keys.iter().map(|(id, key)| (*id, counts(&self.stream, *key)));
        assert_eq!(after.collect::<BTreeMap<_, _>>(), before);
    }
}

/// A run, and the same with a move in it.
struct Run {
    rng: Rng,
    camera: Camera,
    now: Time,
    step: u64,
    sides: [Side; 2],
    next_id: u64,
    options: StreamOptions,
}

impl Run {
    fn new(seed: u64, ring_bytes: usize) -> Self {
        let options = StreamOptions { ring_bytes, ..options() };
        let mut rng = Rng::with_seed(seed);
        let camera = Camera { sequences: [rng.u16(..), rng.u16(..)], frame: 0, ssrc: rng.u32(..) };
        let mut sides = [Side::new(options), Side::new(options)];
        sides.iter_mut().for_each(|side| side.stream.handle_source(Time::ZERO, layered()));
        Run { rng, camera, now: Time::ZERO, step: 0, sides, next_id: 0, options }
    }

    fn each(&mut self, mut act: impl FnMut(&mut Side, Time)) {
        let now = self.now;
        self.sides.iter_mut().for_each(|side| act(side, now));
    }

    /// One of the receivers that are there.
    fn any(&mut self) -> Option<u64> {
        let all: Vec<u64> = self.sides[0].keys.keys().copied().collect();
        (!all.is_empty()).then(|| all[self.rng.usize(..all.len())])
    }

    fn join(&mut self) {
        let id = self.next_id;
        self.next_id += 1;
        let level = Level::new(self.rng.u8(1..3)).expect("a level");
        let priority = Priority::ALL[self.rng.usize(..3)];
        let claim = LinkClaim { weight: 1 + id as u32, reserve_bps: 1000 * id };
        let spec =
            SinkSpec { level, priority, claim, ..SinkSpec::new(Encapsulation::Rtp, Transport::Stream) };
        self.each(|side, now| {
            let key = side.stream.handle_join(now, id, spec);
            side.keys.insert(id, key);
        });
    }

    fn act(&mut self) {
        match (self.rng.u8(..40), self.any()) {
            (0..4, _) => self.join(),
            (4..6, Some(id)) => self.each(|side, now| {
                let key = side.keys.remove(&id).expect("it is there");
                side.stream.handle_leave(now, key);
            }),
            (12, Some(id)) => self.each(|side, _| side.stream.handle_pause(side.keys[&id])),
            (13..15, Some(id)) => self.each(|side, now| {
                side.first.remove(&id);
                side.stream.handle_resume(now, side.keys[&id]);
                side.stream.handle_report(side.keys[&id], Report::Writable);
            }),
            (15, _) => {
                self.camera.restart(&mut self.rng);
                self.each(|side, now| side.stream.handle_source(now, layered()));
            }
            _ => {}
        }
    }

    /// 20 ms. Some receivers take nothing in it.
    fn step(&mut self, all_take: bool) {
        self.now = self.now + Duration::from_millis(20);
        self.step += 1;
        self.act();
        let packets = self.camera.next(&mut self.rng);
        let epoch = self.step / 20;
        let takes = move |id: u64| all_take || Rng::with_seed((id << 32) | epoch).u8(..4) > 0;
        self.each(|side, now| {
            for (track, bytes) in &packets {
                side.stream.handle_media(now, *track, bytes.clone().into());
                side.serve(now, &takes);
            }
        });
    }

    fn settle(&mut self) {
        (0..10).for_each(|_| self.step(true));
    }
}

#[test]
fn what_comes_out_is_the_same_as_without_a_move() {
    for seed in 0..150 {
        let mut run = Run::new(seed, if seed % 3 == 0 { 64 << 10 } else { 1 << 20 });
        (0..4).for_each(|_| run.join());
        let moves = run.rng.u64(1..150);
        for step in 0..200 {
            run.step(false);
            if step == moves || step == moves + 40 {
                let (now, options) = (run.now, run.options);
                run.sides[1].move_to(now, options);
            }
        }
        run.settle();
        let [stays, moved] = &run.sides;
        assert_eq!(stays.got.keys().collect::<Vec<_>>(), moved.got.keys().collect::<Vec<_>>());
        for (id, got) in &stays.got {
            let at = got.iter().zip(&moved.got[id]).position(|(stays, moved)| stays != moved);
            assert_eq!((at, got.len()), (None, moved.got[id].len()), "receiver {id} of seed {seed}");
        }
        for (id, key) in &stays.keys {
            let of = |side: &Side, key| (side.stream.sink_counters(key), side.stream.sink_drops(key));
            assert_eq!(of(stays, *key), of(moved, moved.keys[id]), "receiver {id} of seed {seed}");
            let claim = |side: &Side, key| side.stream.spec(key).map(|spec| spec.claim);
            assert_eq!(claim(stays, *key), claim(moved, moved.keys[id]), "receiver {id} of seed {seed}");
        }
        assert_eq!(stays.stream.past(), moved.stream.past());
        for track in 0..2 {
            let report = |side: &Side| side.stream.sender_report(run.now, 0, track);
            assert_eq!(report(stays), report(moved));
        }
        let counters = |side: &Side| {
            let counters = side.stream.source_counters();
            (counters.packets, counters.bytes, counters.drops, counters.starts)
        };
        assert_eq!(counters(stays), counters(moved));
    }
}

/// A key frame of H.264 every half second, and sound.
fn coded(camera: &mut Camera) -> Vec<(u8, Bytes)> {
    let sound = camera.packet(1, (camera.frame * 960, false), &[7; 40]);
    let mut unit = if camera.frame.is_multiple_of(25) { vec![0x65, 0xb0] } else { vec![0x41, 0xc0] };
    unit.resize(800, camera.frame as u8);
    let picture = camera.packet(0, (camera.frame * 1_800, true), &unit);
    camera.frame += 1;
    vec![(1, sound), (0, picture)]
}

#[test]
fn a_transport_stream_that_is_made_of_rtp_goes_on_with_its_counters_and_clocks() {
    for seed in 0..30 {
        let mut run = Run::new(seed, 1 << 20);
        let format = match layered() {
            Format::Rtp(mut tracks) => {
                tracks[0] = Track { payload_type: VIDEO, ..Track::h264() };
                Format::Rtp(tracks)
            }
            other => other,
        };
        run.sides.iter_mut().for_each(|side| side.stream.handle_source(Time::ZERO, format.clone()));
        let moves = 40 + run.rng.u64(0..80);
        for step in 0..160_u64 {
            if step % 30 == 0 {
                let spec = SinkSpec::new(Encapsulation::Ts, Transport::Stream);
                run.each(|side, now| {
                    side.keys.insert(step, side.stream.handle_join(now, step, spec));
                });
            }
            run.now = run.now + Duration::from_millis(20);
            let packets = coded(&mut run.camera);
            // They take what they begin with, and all there is in the end.
            let takes = move |id: u64| {
                step < id + 20 || step >= 150 || Rng::with_seed((id << 32) | (step / 10)).u8(..3) > 0
            };
            run.each(|side, now| {
                for (track, bytes) in &packets {
                    side.stream.handle_media(now, *track, bytes.clone().into());
                    side.serve(now, &takes);
                }
            });
            if step == moves {
                let (now, options) = (run.now, run.options);
                run.sides[1].move_to(now, options);
            }
        }
        let [stays, moved] = &run.sides;
        for (id, got) in &stays.got {
            let (got, moved) = (got.concat(), moved.got[id].concat());
            [&got, &moved].into_iter().for_each(|stream| counters_go_on(stream));
            // One that joins later may find the clock with other packets of the picture that it begins with.
            if *id <= moves {
                let at = got.iter().zip(&moved).position(|(stays, moved)| stays != moved);
                assert_eq!(
                    (at, got.len()),
                    (None, moved.len()),
                    "receiver {id} of seed {seed}, moved at {moves}"
                );
            }
            assert!(got.len() > 160 * 188, "it was sent something");
        }
    }
}

/// Continuity counters of a transport stream have no gap.
fn counters_go_on(stream: &[u8]) {
    let mut last = BTreeMap::new();
    for packet in stream.chunks(188) {
        let pid = u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff;
        let (counter, counts) = (packet[3] & 15, packet[3] & 0x10 != 0);
        if let Some(before) = last.insert(pid, counter).filter(|_| [0x100, 0x101].contains(&pid)) {
            assert_eq!(counter, (before + u8::from(counts)) & 15, "{pid:#x}");
        }
    }
}

#[test]
fn a_stream_that_never_had_a_source_takes_its_receivers_along() {
    let mut side = Side::new(options());
    let spec = SinkSpec::new(Encapsulation::Rtp, Transport::Stream);
    side.keys.insert(5, side.stream.handle_join(Time::ZERO, 5, spec));
    side.move_to(Time::ZERO, options());
    side.stream.handle_source(Time::ZERO, layered());
    let mut camera = Camera { sequences: [0, 0], frame: 0, ssrc: 1 };
    for (track, bytes) in camera.next(&mut Rng::with_seed(1)) {
        side.stream.handle_media(Time::ZERO, track, bytes.into());
    }
    side.serve(Time::ZERO, &|_| true);
    assert!(side.got[&5].len() > 1);
}

#[test]
fn what_does_not_fit_is_refused_with_what_to_do() {
    let mut run = Run::new(1, 1 << 20);
    run.join();
    (0..30).for_each(|_| run.step(true));
    let saved = run.sides[0].stream.save();
    let refused = |change: fn(&mut SavedStream)| {
        let mut saved = saved.clone();
        change(&mut saved);
        Stream::new(options()).restore(run.now, saved).expect_err("it does not fit").to_string()
    };
    let carried = |saved: &mut SavedStream| saved.carried.take().expect("a source");
    let format = refused(|saved| {
        let mut was = saved.carried.take().expect("a source");
        was.format.kind = "smell".to_owned();
        saved.carried = Some(was);
    });
    assert!(format.contains("'smell'") && format.contains("drain"), "{format}");
    let branch = refused(|saved| saved.sinks[0].branch = Some("gone".to_owned()));
    assert!(branch.contains("gone"), "{branch}");
    let level = refused(|saved| saved.sinks[0].level = 0);
    assert!(level.contains('0') && level.contains("drain"), "{level}");
    // A position that there never was is one of a receiver that has lost all there was before.
    let mut odd = saved.clone();
    odd.sinks[0].place = SavedPlace::Behind(u64::MAX);
    Stream::new(options()).restore(run.now, odd).expect("it fits");
    let mut none = saved.clone();
    carried(&mut none);
    Stream::new(options()).restore(run.now, none).expect("it fits");
}
