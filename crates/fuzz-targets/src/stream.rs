//! A whole stream and a replica of it, to which anything happens.

use core::time::Duration;
use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use outflow_graph::{CoreOnly, ElementPlan, Graph, Input, Plan, Stage};
use outflow_media::{Codec, Format, Time, Track};
use outflow_packet::{DropReason, Level};
use outflow_relay::control::Stages;
use outflow_relay::{
    Encapsulation, Event, Handed, Order, Output, Priority, Report, SinkKey, SinkSpec, Stream, StreamOptions,
    Transport, Wake,
};
use outflow_rtp::PlainHeader;

const CLIP: &[u8] = include_bytes!("../../../assets/demo.ts");
const DATAGRAM: usize = 7 * 188;
/// Sinks of a stream.
const SINKS_MAX: usize = 24;
/// What a stream may ask in a row, for each thing that was done to it: beyond, it never stops.
const OUTPUTS_MAX: usize = 4_000;

/// Steps: a byte that says what happens, one that says how, and for packets the bytes that they carry.
pub(crate) fn stream(data: &[u8]) {
    play(data, |_| {});
}

/// Takes the steps, and does something behind each.
pub(crate) fn play(data: &[u8], mut behind_each: impl FnMut(&mut Scene)) {
    let mut scene = Scene::new();
    let mut rest = data;
    while let [what, how, behind @ ..] = rest {
        let carried = if what % 20 < 4 { usize::from(*how).min(behind.len()) } else { 0 };
        let (carried, behind) = behind.split_at(carried);
        scene.step(*what, *how, carried);
        scene.serve();
        behind_each(&mut scene);
        rest = behind;
    }
}

/// A stream, and what its sinks have had.
struct Site {
    stream: Stream,
    sinks: Vec<SinkKey>,
    /// Behind what a sink had last, and in which branch.
    had: BTreeMap<usize, (usize, u64)>,
    /// A sink that takes no more than this many packets of its next order.
    full: Option<(SinkKey, usize)>,
    /// Stages that work elsewhere.
    stages: Option<Vec<Stage>>,
}

/// The stream at its owner, and a replica, if there is one.
pub(crate) struct Scene {
    now: Time,
    owner: Site,
    replica: Option<Site>,
    format: Format,
    /// What its services are.
    services: u8,
    sequence: u16,
    timestamp: u32,
    at: usize,
}

fn formats(how: u8) -> Format {
    let sound = Track { codec: Codec::Opus, payload_type: 97, clock_rate: 48_000, ..Track::mp2t() };
    match how % 4 {
        0 => Format::Ts,
        1 => Format::Rtp(vec![Track::h264()]),
        2 => Format::Rtp(vec![sound, Track::h264()]),
        _ => Format::Data,
    }
}

fn options(how: u8) -> StreamOptions {
    StreamOptions {
        ring_bytes: 20_000 + usize::from(how) * 1_000,
        hopeless_after: Duration::from_millis(500),
        source_timeout: Duration::from_millis(300),
        ..StreamOptions::default()
    }
}

/// A branch behind an element, which may be in another context.
fn services(how: u8) -> Option<Box<Graph>> {
    let context = (how & 2 != 0).then(|| "x".to_owned());
    let (kind, inputs) = ("pass".to_owned(), vec![Input::source()]);
    let element = ElementPlan { kind, inputs, context, ..ElementPlan::default() };
    let mut plan = Plan::default();
    plan.elements.insert("e".to_owned(), element);
    plan.branches.insert("b".to_owned(), vec![Input::parse("e")]);
    (how & 1 != 0).then(|| Box::new(Graph::new(&plan, &mut CoreOnly).expect("it fits")))
}

impl Scene {
    fn new() -> Self {
        let (now, format) = (Time::from_millis(1_000), Format::Ts);
        let mut owner = Site::new();
        owner.stream.handle_source(now, format.clone());
        Scene { now, owner, replica: None, format, services: 0, sequence: 0, timestamp: 0, at: 0 }
    }

    fn step(&mut self, what: u8, how: u8, carried: &[u8]) {
        let now = self.now;
        let is_elsewhere = what & 0x80 != 0;
        match what % 20 {
            0 => self.packet(how, carried),
            1 => drop(self.owner.stream.handle_media(now, how & 3, Bytes::copy_from_slice(carried).into())),
            2 | 3 => (0..=how % 8).for_each(|_| self.packet(how, carried)),
            4 => self.now = now + Duration::from_millis(u64::from(how) * 4),
            5 => self.source(how),
            6 => self.owner.stream.handle_source_end(now),
            7 => {
                let (ntp, rtp) = (u64::from(how) << 32, self.timestamp);
                self.owner.stream.handle_sender_report(now, how & 3, ntp, rtp);
            }
            8 => self.owner.stream.set_options(options(how)),
            9 => self.replicate(how),
            10 => {
                self.services = how;
                self.owner.services(now, services(how));
            }
            _ => {
                let site = self.replica.as_mut().filter(|_| is_elsewhere).unwrap_or(&mut self.owner);
                site.step(now, what, how);
            }
        }
    }

    fn source(&mut self, how: u8) {
        self.format = formats(how);
        self.owner.stream.handle_source(self.now, self.format.clone());
        self.owner.had.clear();
        if let Some(replica) = &mut self.replica {
            replica.had.clear();
        }
    }

    /// A packet of the stream: of the clip, or RTP that carries these bytes.
    fn packet(&mut self, how: u8, carried: &[u8]) {
        let tracks = match &self.format {
            Format::Rtp(tracks) => tracks,
            _ => {
                let end = (self.at + DATAGRAM).min(CLIP.len());
                let mut bytes = BytesMut::from(&CLIP[self.at..end]);
                // Some of it may be damaged.
                let head = carried.len().min(bytes.len() / 8);
                bytes[..head].iter_mut().zip(carried).for_each(|(byte, other)| *byte ^= other);
                self.at = if end == CLIP.len() { 0 } else { end };
                self.owner.stream.handle_media(self.now, 0, bytes.into());
                return;
            }
        };
        let track = usize::from(how >> 7) % tracks.len();
        let payload_type = tracks[track].payload_type;
        self.sequence = self.sequence.wrapping_add(if how & 0x40 != 0 { 3 } else { 1 });
        let marker = how & 0x20 != 0;
        let (sequence, timestamp) = (self.sequence, self.timestamp);
        self.timestamp = timestamp.wrapping_add(if marker { 3_600 } else { 0 });
        let header = PlainHeader { marker, payload_type, sequence, timestamp, ssrc: 7 };
        let mut packet = BytesMut::from(&header.emit()[..]);
        packet.extend_from_slice(if how & 0x10 != 0 { &[0x65, 0xb0] } else { &[0x41, 0xc0] });
        packet.extend_from_slice(carried);
        self.owner.stream.handle_media(self.now, track as u8, packet.into());
    }

    fn replicate(&mut self, how: u8) {
        if how & 1 == 0 {
            self.replica = None;
            self.owner.stream.end_replicas();
            return;
        }
        let mut replica = Site::new();
        let joining = self.owner.stream.handle_replica();
        joining.introduction.into_iter().for_each(|handed| replica.stream.handle_handed(self.now, handed));
        self.replica = Some(replica);
    }

    /// The stream goes on in another process, with those of its receivers whose names are their own.
    pub(crate) fn go_on_elsewhere(&mut self) {
        self.replica = None;
        self.owner.stream.end_replicas();
        let saved = minicbor::to_vec(self.owner.stream.save()).expect("memory does not fail");
        let mut site = Site::new();
        site.services(self.now, services(self.services));
        let read = minicbor::decode(&saved).expect("what was written");
        let keys = site.stream.restore(self.now, read).expect("what was saved fits");
        site.sinks = keys.into_iter().map(|(_, key)| key).collect();
        self.owner = site;
        self.serve();
    }

    fn serve(&mut self) {
        let Scene { now, owner, replica, .. } = self;
        let mut handed = Vec::new();
        owner.serve(*now, &mut handed);
        if let Some(replica) = replica {
            handed.into_iter().for_each(|handed| replica.stream.handle_handed(*now, handed));
            replica.serve(*now, &mut Vec::new());
        }
    }
}

impl Site {
    fn new() -> Self {
        let stream = Stream::new(options(0));
        Site { stream, sinks: Vec::new(), had: BTreeMap::new(), full: None, stages: None }
    }

    /// Something happens to a sink.
    fn step(&mut self, now: Time, what: u8, how: u8) {
        if what % 20 == 11 {
            return self.join(now, how);
        }
        let Some(key) = self.sinks.get(usize::from(how) % self.sinks.len().max(1)).copied() else { return };
        let level = Level::new(how % 8 + 1).unwrap_or(Level::BEST);
        match what % 20 {
            12 => {
                self.sinks.retain(|other| *other != key);
                self.had.remove(&key.0);
                self.stream.handle_leave(now, key);
            }
            13 => {
                self.had.remove(&key.0);
                self.stream.handle_pause(key);
                self.stream.handle_resume(now, key);
            }
            14 => self.full = Some((key, usize::from(how) / 16)),
            15 => self.stream.handle_report(key, Report::Writable),
            16 => drop(self.stream.set_level(key, level)),
            17 => self.stream.set_priority(key, Priority::ALL[usize::from(how) % Priority::ALL.len()]),
            18 => {
                self.stream.handle_key_frame_request(key, how & 3);
                self.stream.handle_loss(how);
                self.stream.handle_estimate(u64::from(how) * 10_000);
            }
            _ => {
                let reason = DropReason::ALL[usize::from(how) % DropReason::ALL.len()];
                self.stream.handle_report(key, Report::Lost { reason, packets: 1 });
            }
        }
    }

    fn join(&mut self, now: Time, how: u8) {
        let encapsulation = if how & 1 == 0 { Encapsulation::Ts } else { Encapsulation::Rtp };
        let transport = if how & 2 == 0 { Transport::Datagram } else { Transport::Stream };
        let mut spec = SinkSpec::new(encapsulation, transport);
        spec.branch = (how & 4 != 0).then(|| self.stream.branch_named("b").ok()).flatten();
        spec.level = Level::new(how / 32 + 1).unwrap_or(Level::BEST);
        spec.held = how & 8 != 0;
        if self.sinks.len() < SINKS_MAX && self.stream.offer(&spec).is_ok() {
            self.sinks.push(self.stream.handle_join(now, u64::from(how), spec));
        }
    }

    /// Other services. Stages that are elsewhere come back before.
    fn services(&mut self, now: Time, graph: Option<Box<Graph>>) {
        if let Some(stages) = self.stages.take() {
            drop(self.stream.hold_services(now));
            self.stream.put_stages(now, stages);
        }
        self.stream.set_services(now, graph);
        self.stream.release_services();
        self.had.clear();
    }

    /// Does all that the stream asks.
    fn serve(&mut self, now: Time, handed: &mut Vec<Handed>) {
        for _ in 0..OUTPUTS_MAX {
            match self.stream.poll(now) {
                Output::Order(order) => self.send(&order),
                Output::HandOver(some) => handed.extend(some),
                Output::Stages(Stages::TakeOut) => self.stages = Some(self.stream.take_stages()),
                Output::Stages(Stages::Recall) => {
                    drop(self.stream.hold_services(now));
                    self.stream.put_stages(now, self.stages.take().unwrap_or_default());
                    self.stream.release_services();
                }
                Output::Stages(Stages::Give(_))
                | Output::SenderReports(_)
                | Output::Feedback(_)
                | Output::GoOn => {}
                Output::Event(event) => {
                    if let Event::SinkEnded { key, .. } = event {
                        self.sinks.retain(|other| *other != key);
                        self.had.remove(&key.0);
                    }
                }
                Output::Wait { until } => {
                    let waits = until.is_none_or(|(at, why)| at > now || why == Wake::CatchUp);
                    assert!(waits, "it wants to be polled again at once: {until:?}");
                    return;
                }
            }
        }
        panic!("a stream asks without an end");
    }

    /// Each sink of the order gets packets in order, none twice.
    fn send(&mut self, order: &Order) {
        assert!(order.from <= order.to, "{order:?}");
        for key in self.stream.members(order).to_vec() {
            let last = self.had.get(&key.0).filter(|(branch, _)| *branch == order.branch);
            let mut next = last.map_or(order.from, |(_, next)| *next);
            assert!(order.from >= next, "{key:?} had what was before {next:?}, and gets {order:?}");
            let share = self.stream.share(order, key);
            let takes = self.full.take_if(|(full, _)| *full == key).map(|(_, packets)| packets);
            let mut blocked = None;
            for (taken, (seq, ..)) in self.stream.packets(order, share).enumerate() {
                assert!(seq >= next && seq < order.to, "{seq:?} of {order:?}, behind {next:?}");
                if takes.is_some_and(|takes| taken >= takes) {
                    blocked = Some(seq);
                    break;
                }
                next = seq + 1;
            }
            self.had.insert(key.0, (order.branch, blocked.unwrap_or(order.to)));
            if let Some(next) = blocked {
                self.stream.handle_report(key, Report::Blocked { next });
            }
        }
    }
}
