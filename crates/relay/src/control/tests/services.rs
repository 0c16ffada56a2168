//! Streams whose services are put in, changed and taken out while packets flow.

use outflow_graph::{CoreOnly, ElementPlan, Graph, Input, Plan, Setting, Settings, View};
use outflow_packet::Level;

use super::*;
use crate::control::Stages;

/// Services of one branch by this name, made by a chain of these elements.
fn services(branch: &str, chain: &[(&str, &str)]) -> Option<Box<Graph>> {
    let mut from = Input::source();
    let mut plan = Plan::default();
    for (name, kind) in chain {
        let element = ElementPlan { kind: (*kind).to_owned(), inputs: vec![from], ..ElementPlan::default() };
        plan.elements.insert((*name).to_owned(), element);
        from = Input::parse(name);
    }
    plan.branches.insert(branch.to_owned(), vec![from]);
    Some(Box::new(Graph::new(&plan, &mut CoreOnly).expect("it fits")))
}

fn join(bench: &mut Bench, branch: &str, encapsulation: Encapsulation) -> SinkKey {
    let branch = Some(bench.stream.branch_named(branch).expect("declared"));
    let spec = SinkSpec { branch, encapsulation, ..spec() };
    bench.stream.handle_join(bench.now, 5, spec)
}

fn spec() -> SinkSpec {
    SinkSpec::new(Encapsulation::Rtp, Transport::Stream)
}

#[test]
fn a_branch_begins_at_the_key_frame_that_the_stream_holds() {
    let mut bench = Bench::new();
    bench.stream.set_services(Time::ZERO, services("b", &[("p", "pass")]));
    bench.frame(true);
    bench.frame(false);
    let key = join(&mut bench, "b", Encapsulation::Rtp);
    bench.frame(false);
    assert_eq!(bench.sent[key.0], [0, 1, 2]);
    let report = bench.stream.services().and_then(|graph| graph.report().next()).expect("an element");
    assert_eq!((report.name.as_str(), report.gauge.packets_in), ("p", 3));
}

#[test]
fn services_change_between_two_packets_without_a_gap() {
    let mut bench = Bench::new();
    bench.stream.set_services(Time::ZERO, services("b", &[("p", "pass")]));
    bench.frame(true);
    let key = join(&mut bench, "b", Encapsulation::Rtp);
    for round in 0..10 {
        bench.frame(false);
        let chain: &[_] = if round % 2 == 0 { &[("p", "pass"), ("q", "pass")] } else { &[("p", "pass")] };
        let before = bench.stream.set_services(bench.now, services("b", chain));
        assert!(before.is_some_and(|graph| graph.exits().eq(["b"])), "what was there comes back");
    }
    bench.frame(false);
    assert_eq!(bench.sent[key.0], (0..12).collect::<Vec<_>>());
    let report = bench.stream.services().and_then(|graph| graph.report().next()).expect("an element");
    assert_eq!(report.gauge.packets_in, 12, "it goes on counting");
}

#[test]
fn receivers_end_with_their_branch_and_others_stay() {
    let mut bench = Bench::new();
    bench.stream.set_services(Time::ZERO, services("b", &[("p", "pass")]));
    bench.frame(true);
    let gone = join(&mut bench, "b", Encapsulation::Rtp);
    let stays = bench.join(false);
    bench.frame(false);
    bench.stream.set_services(bench.now, services("c", &[("p", "pass")]));
    bench.frame(false);
    assert_eq!(bench.sent[stays.0], [0, 1, 2]);
    let end = Event::SinkEnded { key: gone, id: 5, end: SinkEnd::BranchRemoved };
    assert!(bench.events.contains(&end), "{:?}", bench.events);
    let id = bench.stream.branch_named("b").expect("it was declared once");
    bench.stream.branch_named("x").expect_err("it never was");
    let offer = bench.stream.offer(&SinkSpec { branch: Some(id), ..spec() });
    assert_eq!(offer.expect_err("it is gone").to_string(), "the stream has no branch 'b': there are c");
}

#[test]
fn a_branch_can_be_had_as_a_transport_stream_too() {
    let mut bench = Bench::new();
    bench.stream.set_services(Time::ZERO, services("b", &[("p", "pass")]));
    bench.frame(true);
    let key = join(&mut bench, "b", Encapsulation::Ts);
    let index = bench.stream.sink(key).and_then(|sink| sink.branch).expect("it has a branch");
    assert_eq!(bench.stream.branch_format(index), Some(&Format::Ts));
    assert_eq!(bench.stream.branch_format(0), Some(&format()));
}

#[test]
fn a_branch_that_is_not_wanted_rests_after_a_while() {
    let mut bench = Bench::new();
    bench.stream.set_services(Time::ZERO, services("b", &[("p", "pass")]));
    bench.frame(true);
    let ts = join(&mut bench, "b", Encapsulation::Ts);
    bench.stream.handle_leave(bench.now, ts);
    let seen = |bench: &Bench| {
        let report = bench.stream.services().and_then(|graph| graph.report().next()).expect("an element");
        (report.wanted, report.gauge.packets_in)
    };
    bench.frame(false);
    assert_eq!(seen(&bench), (true, 2), "somebody may come back");
    // First what is derived from the branch, then the branch itself.
    bench.wait(5_100);
    bench.wait(5_100);
    bench.frame(false);
    assert_eq!(seen(&bench), (false, 2));
    let key = join(&mut bench, "b", Encapsulation::Rtp);
    bench.poll();
    assert_eq!(bench.sent[key.0].len(), 3, "it begins with what the stream holds");
}

fn ppm(width: usize, value: u8) -> Bytes {
    let mut image = format!("P6\n{width} 2\n255\n").into_bytes();
    image.resize(image.len() + width * 2 * 3, value);
    image.into()
}

/// What each sink got last: the image's first bytes.
fn shown(stream: &mut Stream, now: Time) -> Vec<(usize, String)> {
    let mut shown = Vec::new();
    loop {
        match stream.poll(now) {
            Output::Order(order) => {
                let members = stream.members(&order).to_vec();
                for (_, entry, _) in stream.packets(&order, crate::Share::WHOLE) {
                    let head: String = entry.packet.bytes[..6].iter().map(|b| char::from(*b)).collect();
                    shown.extend(members.iter().map(|key| (key.0, head.replace('\n', " "))));
                }
            }
            Output::Wait { .. } => return shown,
            _ => {}
        }
    }
}

#[test]
fn receivers_with_the_same_view_share_a_branch_that_comes_and_goes_with_them() {
    let mut stream = Stream::new(options());
    let now = Time::ZERO;
    stream.handle_source(now, Format::Images);
    let wish = |view: &str| SinkSpec {
        encapsulation: Encapsulation::Ts,
        transport: Transport::Datagram,
        view: view.parse().expect("a view"),
        ..spec()
    };
    let keys = ["", "gray=1", "gray=1"].map(|view| stream.handle_join(now, 1, wish(view)));
    stream.handle_media(now, 0, ppm(8, 9).into());
    let mut seen = shown(&mut stream, now);
    seen.sort();
    let head = |key: usize, kind: &str| (keys[key].0, format!("{kind} 8 2"));
    assert_eq!(seen, [head(0, "P6"), head(1, "P5"), head(2, "P5")]);
    let branch = |stream: &Stream, key: usize| stream.sink(keys[key]).and_then(|sink| sink.branch);
    assert_eq!(branch(&stream, 1), branch(&stream, 2));
    assert_ne!(branch(&stream, 0), branch(&stream, 1));
    // One changes what it sees, and begins with what there is.
    stream.set_view(now, keys[2], "size=4x1".parse().expect("a view")).expect("it can be had");
    assert_eq!(shown(&mut stream, now), [(keys[2].0, "P6 4 1".to_owned())]);
    stream.set_view(now, keys[1], View::default()).expect("all there is");
    shown(&mut stream, now);
    let later = now + Duration::from_secs(6);
    stream.handle_media(later, 0, ppm(8, 9).into());
    shown(&mut stream, later);
    assert!(stream.branch_format(1).is_none(), "none sees gray any more");
    assert!(stream.branch_format(2).is_some());
    let video = stream.set_view(later, keys[1], "part=64x64+900+900".parse().expect("a view"));
    assert_eq!(video, Ok(()), "what lies outside is found out with the image");
}

#[test]
fn what_is_no_image_has_no_views() {
    let bench = Bench::new();
    let view = "gray=1".parse().expect("a view");
    let refused = bench.stream.offer(&SinkSpec { view, ..spec() }).expect_err("H.264");
    assert!(refused.to_string().contains("only images have views"), "{refused}");
}

#[test]
fn the_number_of_views_of_a_stream_is_bounded() {
    let mut stream = Stream::new(options());
    stream.handle_source(Time::ZERO, Format::Images);
    let wish = |width: usize| SinkSpec {
        encapsulation: Encapsulation::Ts,
        view: View { size: Some((width, 1)), ..View::default() },
        ..spec()
    };
    for width in 1..=crate::limits::VIEWS_MAX {
        stream.offer(&wish(width)).expect("there is room");
        stream.handle_join(Time::ZERO, 1, wish(width));
    }
    let refused = stream.offer(&wish(1000)).expect_err("one too many");
    assert!(refused.to_string().contains("views already"), "{refused}");
    stream.offer(&wish(7)).expect("others have it");
}

#[test]
fn what_comes_encrypted_tells_no_time() {
    let mut bench = Bench::new();
    let Format::Rtp(mut tracks) = format() else { panic!("it has tracks") };
    tracks[0].codec = outflow_media::Codec::Srtp { video: true };
    bench.stream.handle_source(bench.now, Format::Rtp(tracks));
    bench.frame(true);
    let before = bench.stream.sender_report(bench.now, 0, 0);
    bench.stream.handle_sender_report(bench.now, 0, 0x1234_5678, 0x9abc_def0);
    assert_eq!(bench.stream.sender_report(bench.now, 0, 0), before);
}

#[test]
fn the_clock_of_a_branch_is_that_of_its_packets() {
    let mut bench = Bench::new();
    let mut plan = Plan::default();
    let later = Settings::default().with("timestamp_offset", Setting::Whole(90_000));
    let element = ElementPlan { kind: "remark".to_owned(), settings: later, ..ElementPlan::default() };
    plan.elements.insert("later".to_owned(), element);
    plan.branches.insert("b".to_owned(), vec![Input::parse("later")]);
    let graph = Graph::new(&plan, &mut CoreOnly).expect("it fits");
    bench.stream.set_services(Time::ZERO, Some(Box::new(graph)));
    bench.frame(true);
    let key = join(&mut bench, "b", Encapsulation::Rtp);
    let index = bench.stream.sink(key).and_then(|sink| sink.branch).expect("it has a branch");
    let reports = |bench: &Bench| {
        let report = |branch| bench.stream.sender_report(bench.now, branch, 0).expect("packets came");
        (report(0), report(index))
    };
    // No clock has been reported: both begin with what they have.
    let (own, later) = reports(&bench);
    assert_eq!((later.rtp.wrapping_sub(own.rtp), later.ntp, later.ssrc), (90_000, own.ntp, own.ssrc));
    bench.stream.handle_sender_report(bench.now, 0, 99 << 32, 5);
    let (own, later) = reports(&bench);
    assert_eq!((own.rtp, own.ntp, later.rtp, later.ntp), (5, 99 << 32, 90_005, 99 << 32));
    // A branch that comes later is told what was told before.
    let ts = join(&mut bench, "b", Encapsulation::Ts);
    bench.stream.set_services(bench.now, services("c", &[("p", "pass")]));
    assert!(bench.stream.sink(ts).is_none());
    let key = join(&mut bench, "c", Encapsulation::Rtp);
    let index = bench.stream.sink(key).and_then(|sink| sink.branch).expect("it has a branch");
    for _ in 0..2 {
        let report = |branch| bench.stream.sender_report(bench.now, branch, 0).expect("packets came");
        let (own, made) = (report(0), report(index));
        assert_eq!((own.ssrc, own.ntp, own.rtp), (made.ssrc, made.ntp, made.rtp));
        bench.frame(true);
    }
}

#[test]
fn a_level_can_be_bounded_for_receivers_of_a_branch_alone() {
    let mut bench = Bench::new();
    bench.stream.set_services(Time::ZERO, services("b", &[("p", "pass")]));
    bench.frame(true);
    let others = bench.join(false);
    let level = |number| Level::new(number).expect("a level");
    let mut bounds = LevelBounds::default();
    bounds.lower(Some("b"), level(3));
    bounds.lower(Some("b"), level(2));
    bench.stream.set_bounds(bounds.clone());
    let key = join(&mut bench, "b", Encapsulation::Rtp);
    let levels = |bench: &Bench| [key, others].map(|key| bench.stream.spec(key).expect("there").level);
    assert_eq!(levels(&bench), [level(3), Level::BEST], "the lowest that is said");
    bounds.lower(None, level(4));
    bench.stream.set_bounds(bounds);
    assert_eq!(levels(&bench), [level(4); 2]);
    bench.stream.set_bounds(LevelBounds::default());
    assert_eq!(levels(&bench), [Level::BEST; 2]);
}

#[test]
fn sinks_know_which_tracks_have_no_place_in_what_they_get() {
    let track = |codec, encoding: &str| Track { codec, encoding: encoding.to_owned(), ..Track::mp2t() };
    let (av1, opus) = (track(outflow_media::Codec::Av1, "AV1"), track(outflow_media::Codec::Opus, "opus"));
    let mut bench = Bench::new();
    bench.stream.set_services(Time::ZERO, services("b", &[("t", "to-ts")]));
    let ts = SinkSpec::new(Encapsulation::Ts, Transport::Datagram);
    let keys = [
        bench.stream.handle_join(bench.now, 1, ts),
        bench.stream.handle_join(bench.now, 2, SinkSpec { level: Level::new(2).expect("a level"), ..ts }),
        join(&mut bench, "b", Encapsulation::Ts),
    ];
    let lacks = |bench: &Bench, key| bench.stream.left_out(key);
    keys.iter().for_each(|key| assert!(lacks(&bench, *key).is_empty(), "of H.264 nothing is left out"));
    bench.stream.handle_source(bench.now, Format::Rtp(vec![av1.clone(), opus]));
    bench.poll();
    keys.iter().for_each(|key| assert_eq!(lacks(&bench, *key), ["video AV1"], "{key:?}"));
    let rtp = bench.stream.handle_join(bench.now, 4, spec());
    assert!(lacks(&bench, rtp).is_empty(), "RTP has a place for all");
    bench.stream.handle_source(bench.now, Format::Rtp(vec![av1]));
    bench.poll();
    assert_eq!(lacks(&bench, keys[0]), ["video AV1"], "it waits, and nothing is left");
}

#[test]
fn poll_says_what_is_to_be_done_for_stages_elsewhere() {
    let mut from = Input::source();
    let mut plan = Plan::default();
    for (name, context) in [("a", None), ("b", Some("x".to_owned()))] {
        let inputs = vec![from];
        let element = ElementPlan { kind: "pass".to_owned(), inputs, context, ..ElementPlan::default() };
        plan.elements.insert(name.to_owned(), element);
        from = Input::parse(name);
    }
    plan.branches.insert("b".to_owned(), vec![from]);
    let mut stream = Stream::new(StreamOptions::default());
    let now = Time::ZERO;
    let told = |stream: &mut Stream| {
        let outputs = core::iter::from_fn(|| Some(stream.poll(now)));
        let outputs = outputs.take_while(|output| !matches!(output, Output::Wait { .. }));
        let stages = outputs.filter_map(|output| match output {
            Output::Stages(Stages::TakeOut) => Some("take out"),
            Output::Stages(Stages::Recall) => Some("recall"),
            Output::Stages(Stages::Give(far)) => Some(if far.is_empty() { "nothing" } else { "give" }),
            _ => None,
        });
        stages.collect::<Vec<_>>()
    };
    stream.set_services(now, Some(Box::new(Graph::new(&plan, &mut CoreOnly).expect("it fits"))));
    assert!(told(&mut stream).is_empty(), "it is not known what comes in");
    stream.handle_source(now, format());
    assert_eq!(told(&mut stream), ["take out"]);
    let stages = stream.take_stages();
    assert_eq!((stages.len(), told(&mut stream)), (1, vec![]));
    let branch = Some(stream.branch_named("b").expect("declared"));
    stream.handle_join(now, 5, SinkSpec { branch, ..spec() });
    assert_eq!(told(&mut stream), ["give"], "what is wanted");
    stream.handle_source(now, Format::Ts);
    assert!(told(&mut stream).contains(&"recall"));
    stream.put_stages(now, stages);
    assert!(told(&mut stream).contains(&"take out"), "they may go again");
}

#[test]
fn what_is_signed_goes_on_being_counted_in_another_process() {
    let encrypts = || {
        let key = Setting::Text("4fl6DT4Bi+DWT6MsBt5BOQ7Gda1Jiv7rtpYLOqvm".to_owned());
        let (kind, settings) = ("encrypt".to_owned(), Settings::default().with("key", key));
        let mut plan = Plan::default();
        plan.elements.insert("e".to_owned(), ElementPlan { kind, settings, ..ElementPlan::default() });
        plan.branches.insert("b".to_owned(), vec![Input::parse("e")]);
        Some(Box::new(Graph::new(&plan, &mut CoreOnly).expect("it fits")))
    };
    let mut bench = Bench::new();
    bench.stream.set_services(Time::ZERO, encrypts());
    bench.frame(true);
    join(&mut bench, "b", Encapsulation::Rtp);
    bench.frame(false);
    let said = |stream: &Stream| stream.save().carried.and_then(|carried| carried.services);
    let before = said(&bench.stream);
    assert_eq!(before.as_ref().map(Vec::len), Some(1));
    let mut other = Stream::new(StreamOptions::default());
    other.set_services(Time::ZERO, encrypts());
    other.restore(bench.now, bench.stream.save()).expect("it fits");
    assert_eq!(said(&other), before);
}
