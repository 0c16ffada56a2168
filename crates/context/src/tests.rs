//! Lanes, stepped by hand in an order that chance draws: what threads may do, again and again the same.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use outflow_graph::{CoreOnly, ElementPlan, Graph, Input, Message, Plan, Setting, Settings, TrackTime};
use outflow_media::{Codec, Format, Tag, Time, Track};
use outflow_packet::Parsed;
use outflow_relay::control::Far;

use crate::hop::Hop;
use crate::limits::PLUGIN_CONTEXTS_MAX;
use crate::line::{Arrived, Line};
use crate::ringer::{Owner, Parked, Ringer};
use crate::{Contexts, PLUGIN_CONTEXT};

/// A line whose threads are this test.
struct Bench {
    graph: Graph,
    line: Line,
    hops: Vec<Hop>,
    rng: fastrand::Rng,
    now: Time,
    out: Vec<u32>,
    told: Vec<u32>,
    back: bool,
}

/// A context "x" and a context "y" with `lanes` lanes. In "x", the clocks of the source are changed.
fn plan(lanes: [usize; 2]) -> Plan {
    let settings = Settings::default().with("timestamp_offset", Setting::Whole(1));
    let element = |kind: &str, from: &str, settings: Settings, context: Option<&str>, lanes: usize| {
        let (kind, context) = (kind.to_owned(), context.map(str::to_owned));
        ElementPlan {
            kind,
            settings,
            inputs: vec![Input::parse(from)],
            context,
            lanes,
            ..ElementPlan::default()
        }
    };
    let none = Settings::default;
    Plan {
        elements: [
            ("owner".to_owned(), element("remark", "source", settings, None, 1)),
            ("a".to_owned(), element("pass", "owner", none(), Some("x"), lanes[0])),
            ("b".to_owned(), element("pass", "a", none(), Some("x"), 1)),
            ("c".to_owned(), element("pass", "b", none(), Some("y"), lanes[1])),
        ]
        .into(),
        branches: [("out".to_owned(), vec![Input::parse("c")])].into(),
    }
}

impl Bench {
    fn new(lanes: [usize; 2], seed: u64) -> Self {
        let mut graph = Graph::new(&plan(lanes), &mut CoreOnly).expect("it fits");
        let track = || Track { codec: Codec::Other { video: true }, ..Track::mp2t() };
        graph.bind(&Format::Rtp(vec![track(), track()]));
        graph.set_wanted(0, true);
        assert_eq!(graph.contexts().collect::<Vec<_>>(), [("x", lanes[0]), ("y", lanes[1])]);
        let ringer = || Ringer::Context(Arc::new(Parked::default()));
        let contexts: Vec<Vec<_>> =
            lanes.iter().map(|lanes| (0..*lanes).map(|_| ringer()).collect()).collect();
        let (mut line, hops) = Line::new(&contexts, ringer());
        line.launch(graph.take_stages());
        let (hops, rng) = (hops.into_iter().flatten().collect(), fastrand::Rng::with_seed(seed));
        Bench { graph, line, hops, rng, now: Time::ZERO, out: Vec::new(), told: Vec::new(), back: false }
    }

    fn packet(&mut self, number: u32, track: u8, (frame, last): (u32, bool)) {
        let tag = Tag { track, frame, last, ..Tag::default() };
        let bytes = Bytes::copy_from_slice(&[&[0x80, 96][..], &[0; 10], &number.to_be_bytes()].concat());
        let packet = outflow_packet::Packet { bytes, tag, arrived: self.now };
        self.graph.enter(Parsed { packet, rtp_header: [0; 12], preamble: None, found: None });
    }

    /// What came in goes to the contexts.
    fn serve(&mut self) {
        self.now = self.now + core::time::Duration::from_micros(1);
        let mut far = Vec::new();
        self.graph.run(self.now, None, &mut |to, item| far.push(Far::Packet(to, item)), &mut |_, _| {});
        far.push(Far::End(self.now));
        far.into_iter().for_each(|far| self.line.give(self.now, far));
    }

    fn tell(&mut self, rtp: u32) {
        let clock = Message::Clock(TrackTime { track: 0, ntp: 0, rtp, at: self.now, told: true });
        let (now, line) = (self.now, &mut self.line);
        let mut further = |to, message| line.give(now, Far::Message(now, to, message));
        self.graph.tell(now, clock, &mut further, &mut |_, _| panic!("it is behind the contexts"));
    }

    /// Some lanes work.
    fn step(&mut self) {
        for _ in 0..self.rng.usize(0..4) {
            let hop = self.rng.usize(0..self.hops.len());
            self.hops[hop].work();
        }
        while let Some(arrived) = self.line.take() {
            match arrived {
                Arrived::Packet(_, item) => {
                    let number = item.packet.bytes.last_chunk().expect("a number");
                    self.out.push(u32::from_be_bytes(*number));
                }
                Arrived::Messages(_, told) => {
                    let rtp = |message: &Message| match message {
                        Message::Clock(time) => time.rtp,
                        Message::Break => 0,
                    };
                    self.told.extend(told.iter().map(|(_, message)| rtp(message)));
                    self.out.extend(told.iter().map(|(_, message)| rtp(message)));
                }
                Arrived::Stages(stages) => {
                    self.graph.put_stages(stages);
                    self.back = true;
                }
            }
        }
    }
}

/// Frames of several packets, two tracks, batches and messages as chance draws them.
fn order_is_kept(lanes: [usize; 2], seed: u64) {
    let mut bench = Bench::new(lanes, seed);
    let (mut given, mut told) = (Vec::new(), 0);
    let mut left = [(0, 0); 2];
    for number in 0..2_000 {
        let track = bench.rng.u8(0..2);
        let (frame, packets) = &mut left[usize::from(track)];
        if *packets == 0 {
            (*frame, *packets) = (*frame + 1, bench.rng.u32(1..6));
        }
        *packets -= 1;
        let (frame, last) = (*frame, *packets == 0);
        bench.packet(number, track, (frame, last));
        given.push(number);
        if bench.rng.u32(0..5) == 0 {
            bench.serve();
            bench.step();
        }
        if bench.rng.u32(0..50) == 0 {
            bench.serve();
            bench.tell(1_000_000 + number);
            // Changed once, however many lanes have heard it.
            given.push(1_000_001 + number);
            told += 1;
        }
    }
    bench.serve();
    bench.line.recall();
    for _ in 0..10_000 {
        bench.step();
    }
    assert_eq!(bench.out, given, "lanes {lanes:?}, seed {seed}");
    assert_eq!(bench.told.len(), told);
    assert!(bench.back && bench.graph.is_whole(), "the stages came back");
    let reports: Vec<_> = bench.graph.report().map(|report| report.gauge.packets_in).collect();
    assert_eq!(reports, [2_000; 4], "what the lanes counted is counted together");
}

#[test]
fn packets_keep_their_order_in_any_number_of_lanes() {
    for lanes in [[1, 1], [3, 1], [1, 2], [2, 2], [3, 2], [2, 5], [4, 4]] {
        (0..5).for_each(|seed| order_is_kept(lanes, seed));
    }
}

#[test]
fn every_lane_has_its_turn_and_frames_stay_together() {
    let mut bench = Bench::new([3, 1], 1);
    for frame in 0..300 {
        for packet in 0..4 {
            bench.packet(frame * 4 + packet, 0, (frame, packet == 3));
        }
        if frame % 7 == 0 {
            bench.serve();
            for hop in &mut bench.hops {
                hop.work();
            }
        }
    }
    bench.serve();
    bench.hops.iter_mut().for_each(|hop| {
        hop.work();
        hop.show();
    });
    let each = |hop: &Hop| {
        let mut shown = Vec::new();
        hop.shown().add_to(&mut shown, 0);
        shown[0].0.gauge.packets_in
    };
    let of_lanes: Vec<u64> = bench.hops.iter().take(3).map(each).collect();
    assert!(of_lanes.iter().all(|packets| packets % 4 == 0 && (390..=410).contains(packets)), "{of_lanes:?}");
    // Together they are one element.
    bench.step();
    let reports = bench.line.reports();
    assert_eq!(reports.iter().map(|(report, ..)| &*report.name).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(reports[0].0.gauge.packets_in, 1200);
}

/// An owner that hears nothing.
#[derive(Debug)]
struct Deaf;

impl Owner for Deaf {
    fn ring(&self) {}
}

#[test]
fn when_too_many_streams_have_plug_ins_some_share_a_context() {
    let contexts = Contexts::default();
    for number in 0..2 * PLUGIN_CONTEXTS_MAX {
        let name = format!("{PLUGIN_CONTEXT}{number}");
        contexts.line(&[(name, 1)], Arc::new(Deaf)).expect("there is room");
    }
    let threads = contexts.threads.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(threads.len(), PLUGIN_CONTEXTS_MAX + 1);
}
