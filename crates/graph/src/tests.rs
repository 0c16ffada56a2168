use core::time::Duration;

use bytes::Bytes;
use outflow_media::{Tag, Track};
use outflow_packet::{DropReason, Packet};
use outflow_rtp::PlainHeader;

use super::*;

/// What came out: branch and RTP sequence number.
type Out = Vec<(usize, u16)>;

fn plan(elements: &[(&str, &str, &[&str])], branches: &[(&str, &[&str])]) -> Plan {
    let inputs = |inputs: &[&str]| inputs.iter().map(|input| Input::parse(input)).collect();
    let element = |&(name, kind, from): &(&str, &str, &[&str])| {
        (
            name.to_owned(),
            ElementPlan { kind: kind.to_owned(), inputs: inputs(from), ..ElementPlan::default() },
        )
    };
    Plan {
        elements: elements.iter().map(element).collect(),
        branches: branches.iter().map(|(name, from)| ((*name).to_owned(), inputs(from))).collect(),
    }
}

fn rtp(sequence: u16) -> Parsed {
    let header = PlainHeader { marker: true, payload_type: 96, sequence, timestamp: 0, ssrc: 7 };
    let bytes = Bytes::from([&header.emit()[..], b"body"].concat());
    let packet = Packet { bytes, tag: Tag::default(), arrived: Time::ZERO };
    Parsed { packet, rtp_header: [0; 12], preamble: None, found: None }
}

fn video() -> Format {
    Format::Rtp(vec![Track { codec: outflow_media::Codec::Other { video: true }, ..Track::mp2t() }])
}

/// A graph whose branches are all wanted.
fn graph(plan: &Plan) -> Graph {
    let mut graph = Graph::new(plan, &mut CoreOnly).unwrap();
    graph.bind(&video());
    (0..graph.exits().count()).for_each(|exit| graph.set_wanted(exit, true));
    graph
}

fn sequence(parsed: &Parsed) -> u16 {
    let Parsed { packet, rtp_header, .. } = parsed;
    let header = if rtp_header[0] != 0 { &rtp_header[..] } else { &packet.bytes[..] };
    u16::from_be_bytes([header[2], header[3]])
}

fn run(graph: &mut Graph, sequences: impl IntoIterator<Item = u16>) -> Out {
    sequences.into_iter().for_each(|sequence| graph.enter(rtp(sequence)));
    let mut out = Out::new();
    graph.run(Time::ZERO, None, &mut |_, _| panic!("all stages are here"), &mut |exit, parsed| {
        out.push((exit, sequence(&parsed)));
    });
    out
}

#[test]
fn a_branch_without_elements_is_the_stream_itself() {
    let mut graph = graph(&plan(&[], &[("same", &[])]));
    assert_eq!(run(&mut graph, [5, 6]), [(0, 5), (0, 6)]);
    assert_eq!(graph.exit_format(0), Ok(&video()));
}

#[test]
fn where_flows_part_and_meet_again_packets_keep_their_order() {
    let elements: [(&str, &str, &[&str]); 4] = [
        ("a", "pass", &["source"]),
        ("b", "pass", &["a"]),
        ("c", "pass", &["a"]),
        ("m", "pass", &["c", "b"]),
    ];
    let mut graph = graph(&plan(&elements, &[("all", &["m"])]));
    let out = run(&mut graph, [1, 2, 3]);
    // Each came twice, and has a number of its own.
    assert_eq!(out, [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6)]);
}

#[test]
fn elements_of_which_nothing_is_wanted_rest() {
    let elements: [(&str, &str, &[&str]); 3] =
        [("a", "pass", &[]), ("b", "pass", &["a"]), ("c", "pass", &["a"])];
    let mut graph = graph(&plan(&elements, &[("b", &["b"]), ("c", &["c"])]));
    graph.set_wanted(1, false);
    assert_eq!(run(&mut graph, [1]), [(0, 1)]);
    let seen = |graph: &Graph| graph.report().map(|node| node.gauge.packets_in).collect::<Vec<_>>();
    assert_eq!(seen(&graph), [1, 1, 0]);
    graph.set_wanted(0, false);
    assert_eq!(run(&mut graph, [2]), []);
    assert_eq!(seen(&graph), [1, 1, 0]);
    assert!(!graph.shares(1), "nothing works for it");
    graph.set_wanted(0, true);
    assert!(graph.shares(1), "'a' works for the other");
}

#[test]
fn an_element_of_another_context_takes_its_packets_there() {
    let mut plan = plan(&[("a", "pass", &[]), ("b", "pass", &["a"])], &[("near", &["a"]), ("far", &["b"])]);
    plan.elements.get_mut("b").unwrap().context = Some("images".to_owned());
    let mut graph = graph(&plan);
    let mut stages = graph.take_stages();
    assert_eq!(stages.iter().map(Stage::context).collect::<Vec<_>>(), ["images"]);
    graph.enter(rtp(9));
    let (mut further, mut out) = (Vec::new(), Out::new());
    graph.run(Time::ZERO, None, &mut |to, item| further.push((to, item)), &mut |exit, parsed| {
        out.push((exit, sequence(&parsed)));
    });
    // Branches are in the order of their names.
    assert_eq!(out, [(1, 9)]);
    let mut left = Vec::new();
    for (to, item) in further {
        assert!(stages[0].take(to, item).is_none(), "it is for this stage");
    }
    stages[0].run(Time::ZERO, None, &mut |to, item| left.push((to, item)));
    let (to, item) = left.pop().unwrap();
    assert_eq!(to, Target::Exit(0));
    graph.leave(0, item, &mut |exit, parsed| out.push((exit, sequence(&parsed))));
    assert_eq!(out, [(1, 9), (0, 9)]);
}

#[test]
fn what_was_counted_goes_on_in_the_next_graph() {
    let plan = plan(&[("a", "pass", &[])], &[("all", &["a"])]);
    let mut before = graph(&plan);
    run(&mut before, [1, 2]);
    let mut after = Graph::new(&plan, &mut CoreOnly).unwrap();
    after.bind(&video());
    after.resume(&mut before);
    assert_eq!(run(&mut after, [3]), [(0, 3)]);
    assert_eq!(after.report().next().unwrap().gauge.packets_in, 3);
}

#[test]
fn work_is_timed_by_the_drivers_clock_and_counted() {
    static TICKS: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
    let probe: Probe = || TICKS.fetch_add(40, core::sync::atomic::Ordering::Relaxed);
    let mut graph = graph(&plan(&[("a", "pass", &[])], &[("all", &["a"])]));
    graph.enter(rtp(1));
    graph.enter(rtp(2));
    graph.run(Time::ZERO + Duration::from_secs(1), Some(probe), &mut |_, _| {}, &mut |_, _| {});
    let gauge = graph.report().next().unwrap().gauge;
    assert_eq!((gauge.packet_ns(), gauge.work_ns(), gauge.bytes_in), (20, 40, 32));
}

#[test]
fn an_element_that_took_long_is_watched_until_that_is_forgotten() {
    let mut gauge = Gauge { batches: 2, ..Gauge::default() };
    gauge.sampled(40, 1);
    assert!(!gauge.is_sampled());
    let long = limits::LONG.as_nanos() as u64 * 2;
    gauge.sampled(long, 1);
    assert_eq!((gauge.turn_ns, gauge.is_sampled()), (long, true));
    let mut since = 0;
    while gauge.is_sampled() {
        gauge.sampled(40, 1);
        since += 1;
    }
    assert!((5..=limits::FORGETS).contains(&since), "{since}");
    gauge.sampled(long - 1, 1);
    assert_eq!(gauge.turn_ns, long - 1);
    let longest = limits::LONG_TURN.as_nanos() as u64;
    [longest, longest + 1, 40].into_iter().for_each(|nanos| gauge.sampled(nanos, 1));
    assert_eq!(gauge.long_turns, 1);
}

fn errors(plan: &Plan, worlds: Contents) -> Vec<(At, String)> {
    let errors = plan.check(worlds).err().unwrap_or_default();
    errors.into_iter().map(|error| (error.at, format!("{}: {}", error.what, error.help))).collect()
}

#[test]
fn wires_to_nowhere_and_in_circles_are_refused() {
    let wrong = plan(&[("a", "pass", &["b.left", "x"]), ("b", "pas", &[])], &[("out", &["y"])]);
    let found = errors(&wrong, Contents::ANY);
    let at: Vec<_> = found.iter().map(|(at, _)| at.clone()).collect();
    assert_eq!(at, [At::Inputs("a".into()), At::Kind("b".into()), At::Branch("out".into())], "{found:?}");
    assert!(found[0].1.contains("possible: source, a, b"), "{found:?}");
    let circle = plan(&[("a", "pass", &["b"]), ("b", "pass", &["a"])], &[]);
    assert!(errors(&circle, Contents::ANY)[0].1.contains("circles"));
    let mut back = plan(&[("a", "pass", &[]), ("b", "pass", &["a"]), ("c", "pass", &["b"])], &[]);
    for (name, context) in [("a", "far"), ("b", "near"), ("c", "far")] {
        back.elements.get_mut(name).unwrap().context = Some(context.to_owned());
    }
    assert!(errors(&back, Contents::ANY)[0].1.contains("between the contexts far, near"));
}

#[test]
fn an_element_without_a_context_is_where_its_packets_come_from() {
    let elements: [(&str, &str, &[&str]); 4] =
        [("a", "pass", &[]), ("b", "pass", &["a"]), ("c", "pass", &["b"]), ("d", "pass", &["c", "source"])];
    let mut plan = plan(&elements, &[("out", &["d"])]);
    plan.elements.get_mut("b").unwrap().context = Some("x".to_owned());
    let checked = plan.check(Contents::ANY).unwrap();
    assert_eq!(checked.order, [("a", 0), ("b", 1), ("c", 1), ("d", 1)]);
    assert_eq!(checked.contexts, ["x"]);
}

#[test]
fn what_leaves_by_an_output_that_nothing_takes_is_counted() {
    let mut plan = plan(&[("f", "filter", &[])], &[("kept", &["f"])]);
    let chosen = Settings::default().with("kinds", Setting::Texts(vec!["intra".to_owned()]));
    plan.elements.get_mut("f").unwrap().settings = chosen;
    let mut graph = graph(&plan);
    assert_eq!(run(&mut graph, [1, 2, 3]), []);
    let report = graph.report().next().unwrap();
    assert_eq!((report.drops.get(DropReason::Filtered), report.drops.total()), (3, 3));
    assert_eq!((report.gauge.packets_in, report.gauge.packets_out, report.gauge.bytes_out), (3, 0, 0));
}

#[test]
fn what_leaves_by_an_output_whose_branch_nobody_wants_is_no_loss() {
    let mut plan = plan(&[("f", "filter", &[])], &[("kept", &["f"]), ("rest", &["f.rest"])]);
    let chosen = Settings::default().with("kinds", Setting::Texts(vec!["intra".to_owned()]));
    plan.elements.get_mut("f").unwrap().settings = chosen;
    let mut graph = graph(&plan);
    assert_eq!(run(&mut graph, [1]), [(1, 1)]);
    graph.set_wanted(1, false);
    assert_eq!(run(&mut graph, [2]), []);
    assert_eq!(graph.report().next().unwrap().drops.total(), 0);
}

#[test]
fn copies_that_are_left_out_leave_no_hole() {
    let mut plan = plan(&[("m", "merge", &[])], &[("all", &["m"])]);
    plan.elements.get_mut("m").unwrap().settings = Settings::default().with("dedupe", Setting::Flag(true));
    let mut graph = graph(&plan);
    // The source sends everything twice, and 4 was lost.
    assert_eq!(run(&mut graph, [1, 1, 2, 2, 3, 3, 5, 5]), [(0, 1), (0, 2), (0, 3), (0, 5)]);
}

#[test]
fn what_was_found_goes_along_to_a_branch_as_long_as_no_other_element_may_leave_something_out() {
    let elements: [(&str, &str, &[&str]); 2] = [("ts", "to-ts", &[]), ("p", "pass", &["ts"])];
    let branches: [(&str, &[&str]); 3] = [("all", &["ts"]), ("both", &["p", "ts"]), ("passed", &["p"])];
    let mut graph = graph(&plan(&elements, &branches));
    graph.bind(&Format::Rtp(vec![Track { codec: outflow_media::Codec::Opus, ..Track::mp2t() }]));
    graph.enter(rtp(1));
    let mut out = Vec::new();
    graph.run(Time::ZERO, None, &mut |_, _| panic!("all stages are here"), &mut |exit, parsed| {
        out.push((branches[exit].0, parsed.found.is_some()));
    });
    out.sort_unstable();
    assert_eq!(out, [("all", true), ("both", false), ("both", false), ("passed", false)]);
}

/// What comes out of a graph to which this is told.
fn told(graph: &mut Graph, message: Message) -> Vec<(usize, Message)> {
    let mut out = Vec::new();
    let mut far = |_, _| panic!("all stages are here");
    graph.tell(Time::ZERO, message, &mut far, &mut |exit, message| out.push((exit, message)));
    out
}

fn clock(rtp: u32) -> Message {
    Message::Clock(TrackTime { track: 0, ntp: 7, rtp, at: Time::ZERO, told: true })
}

#[test]
fn messages_go_where_packets_go_and_elements_do_with_them_what_their_contracts_say() {
    let elements: [(&str, &str, &[&str]); 5] = [
        ("a", "remark", &[]),
        ("b", "pass", &["a"]),
        ("c", "pass", &["a"]),
        ("m", "pass", &["b", "c"]),
        ("ts", "to-ts", &["m"]),
    ];
    let mut plan = plan(&elements, &[("later", &["m"]), ("muxed", &["ts"]), ("plain", &[])]);
    let later = Settings::default().with("timestamp_offset", Setting::Whole(90));
    plan.elements.get_mut("a").unwrap().settings = later;
    let mut graph = Graph::new(&plan, &mut CoreOnly).unwrap();
    graph.bind(&Format::Rtp(vec![Track { codec: outflow_media::Codec::Opus, ..Track::mp2t() }]));
    // By two ways, and yet once; a transport stream has its clocks inside.
    assert_eq!(told(&mut graph, clock(10)), [(2, clock(10)), (0, clock(100))]);
    let all = [(2, Message::Break), (0, Message::Break), (1, Message::Break)];
    assert_eq!(told(&mut graph, Message::Break), all);
    graph.set_bypass("a", true);
    assert_eq!(told(&mut graph, clock(10)), [(2, clock(10)), (0, clock(10))]);
}

#[test]
fn the_packets_of_a_frame_come_together() {
    let mut node = {
        let settings = Settings::default().with("unit", Setting::Text("frames".to_owned()));
        let plan = ElementPlan { settings, ..ElementPlan::default() };
        let Make::Core(make) = find("pass").unwrap().make else { panic!("the core makes it") };
        let element = make(&Settings::default()).unwrap();
        Node::new("f", find("wasm").unwrap(), &plan, (element, Vec::new()), 1)
    };
    let item = |sequence: u16, last: bool| {
        let mut parsed = rtp(sequence);
        (parsed.packet.tag.frame, parsed.packet.tag.last) = (u32::from(sequence) / 10, last);
        Item::entering(parsed, sequence.into())
    };
    node.batch = vec![item(10, false), item(11, false)];
    node.work(Time::ZERO, None, &mut None);
    assert!(node.batch.is_empty());
    node.batch.push(item(12, true));
    node.work(Time::ZERO, None, &mut None);
    assert_eq!(node.batch.len(), 3);
    // A restart cuts a frame off.
    node.batch = vec![item(20, false)];
    node.work(Time::ZERO, None, &mut None);
    assert_eq!(node.tell(Time::ZERO, Message::Break), Some(Message::Break));
    assert_eq!(node.tally.drops.get(DropReason::Incomplete), 1);
}

#[test]
fn messages_that_are_needed_are_to_come() {
    let elements: [(&str, &str, &[&str]); 3] =
        [("out", "external", &[]), ("p", "pass", &["out"]), ("w", "wasm", &["p"])];
    let mut plan = plan(&elements, &[("all", &["w"])]);
    let settings = |name: &str, setting| Settings::default().with(name, setting);
    let texts = |text: &str| Setting::Texts(vec![text.to_owned()]);
    plan.elements.get_mut("out").unwrap().settings = settings("command", texts("cat"));
    let file = || settings("file", Setting::Text("a.wasm".to_owned()));
    plan.elements.get_mut("w").unwrap().settings = file();
    assert_eq!(errors(&plan, Contents::ANY), []);
    plan.elements.get_mut("w").unwrap().settings = file().with("needs", texts("clock"));
    let error = "'w' needs messages (clock), which end at 'out': let it take from before 'out', or leave \
                 `needs` out";
    assert_eq!(errors(&plan, Contents::ANY), [(At::Inputs("w".to_owned()), error.to_owned())]);
}

#[test]
fn several_lanes_are_for_what_can_work_in_several() {
    let elements: [(&str, &str, &[&str]); 3] =
        [("g", "gray", &[]), ("p", "pass", &["g"]), ("f", "filter", &["p"])];
    let mut plan = plan(&elements, &[("all", &["f"])]);
    plan.elements.get_mut("g").unwrap().lanes = 3;
    let error = "'f' works on one packet after the other, and 'g' has several lanes: give it another \
                 `context`, or leave `lanes` out";
    assert_eq!(errors(&plan, Contents::PNM), [(At::Lanes("f".to_owned()), error.to_owned())]);
    plan.elements.get_mut("f").unwrap().context = Some("one".to_owned());
    let checked = plan.check(Contents::PNM).unwrap();
    assert_eq!((checked.contexts, checked.lanes), (vec!["g", "one"], vec![3, 1]));
    let error = "'g' works on PPM images in several lanes, but 'source' gives raw RGB video in RTP: leave \
                 `lanes` out";
    let raw = Contents::of(&[Content::RawRgb]);
    assert_eq!(errors(&plan, raw)[0], (At::Lanes("g".to_owned()), error.to_owned()));
}

#[test]
fn pixels_are_part_of_what_is_promised() {
    let elements: [(&str, &str, &[&str]); 2] = [("rgb", "convert", &[]), ("pgm", "convert", &["rgb"])];
    let mut plan = plan(&elements, &[("all", &["pgm"])]);
    let pixels = |pixels: &str| Settings::default().with("pixels", Setting::Text(pixels.to_owned()));
    plan.elements.get_mut("rgb").unwrap().settings = pixels("rgb");
    plan.elements.get_mut("pgm").unwrap().settings = pixels("gray");
    assert_eq!(errors(&plan, Contents::PNM), []);
    let raw = errors(&plan, Contents::of(&[Content::RawUyvy]));
    assert!(raw[0].1.starts_with("'pgm' takes PPM images, but 'rgb' gives raw RGB video in RTP"), "{raw:?}");
}

#[test]
fn what_an_element_makes_something_else_of_is_passed_by_only_when_bound_so() {
    let opus = Format::Rtp(vec![Track { codec: outflow_media::Codec::Opus, ..Track::mp2t() }]);
    let mut plan = plan(&[("ts", "to-ts", &[]), ("p", "pass", &["ts"])], &[("all", &["p"])]);
    let bound = |plan: &Plan| {
        let mut graph = Graph::new(plan, &mut CoreOnly).unwrap();
        graph.bind(&opus);
        graph
    };
    let graph = bound(&plan);
    assert_eq!((graph.exit_format(0), graph.turns("ts"), graph.turns("p")), (Ok(&Format::Ts), true, false));
    plan.elements.get_mut("ts").unwrap().bypass = true;
    let graph = bound(&plan);
    assert_eq!((graph.exit_format(0), graph.turns("ts")), (Ok(&opus), true));
}

#[test]
fn branches_know_which_tracks_have_no_place_in_them() {
    let track = |codec, encoding: &str| Track { codec, encoding: encoding.to_owned(), ..Track::mp2t() };
    let (av1, opus) = (track(outflow_media::Codec::Av1, "AV1"), track(outflow_media::Codec::Opus, "opus"));
    let elements: [(&str, &str, &[&str]); 3] =
        [("ts", "to-ts", &["source"]), ("p", "pass", &["ts"]), ("q", "pass", &["source"])];
    let mut plan = plan(&elements, &[("a", &["p"]), ("b", &["q"])]);
    let bound = |plan: &Plan, tracks: &[&Track]| {
        let mut graph = Graph::new(plan, &mut CoreOnly).unwrap();
        graph.bind(&Format::Rtp(tracks.iter().copied().cloned().collect()));
        [0, 1].map(|exit| graph.exit_left_out(exit).to_vec())
    };
    assert_eq!(bound(&plan, &[&av1, &opus]), [vec!["video AV1".to_owned()], vec![]]);
    assert!(bound(&plan, &[&opus]).concat().is_empty());
    plan.elements.get_mut("ts").unwrap().bypass = true;
    assert!(bound(&plan, &[&av1, &opus]).concat().is_empty(), "it is passed by");
}

#[test]
fn messages_that_were_on_their_way_go_on_when_stages_are_back() {
    let mut plan = plan(&[("a", "pass", &[]), ("b", "pass", &["a"])], &[("far", &["b"])]);
    plan.elements.get_mut("b").unwrap().context = Some("x".to_owned());
    let mut graph = graph(&plan);
    let stages = graph.take_stages();
    let mut late = Vec::new();
    let mut early = |_, _| panic!("it is behind the stage");
    graph.tell(Time::ZERO, Message::Break, &mut |to, message| late.push((to, message)), &mut early);
    graph.put_stages(stages);
    let mut out = Vec::new();
    let mut far = |_, _| panic!("all stages are here");
    graph.tell_on(Time::ZERO, late, &mut far, &mut |exit, message| out.push((exit, message)));
    assert_eq!(out, [(0, Message::Break)]);
}
