mod codestreams;

use bytes::Bytes;
use outflow_media::image;
use outflow_media::image::Rect;
use outflow_packet::{DropReason, Packet, Parsed};
use outflow_rtp::payload::raw_video::RawVideo;
use outflow_rtp::payload::{RtpReader, raw_video};
use outflow_rtp::{PlainHeader, RtpHeader};

use super::*;
use crate::{CoreOnly, ElementPlan, Graph, Input, Plan, Setting};

const PART: Rect = Rect { left: 6, top: 3, width: 20, height: 9 };

/// A graph of one element, and how its packets are read when they come in.
struct Bench {
    graph: Graph,
    readers: Vec<RtpReader>,
    sequence: u16,
}

impl Bench {
    fn new(kind: &str, settings: Settings, format: &Format) -> Self {
        let element = ElementPlan { kind: kind.to_owned(), settings, ..ElementPlan::default() };
        let plan = Plan {
            elements: [("it".to_owned(), element)].into(),
            branches: [("out".to_owned(), vec![Input::parse("it")])].into(),
        };
        let mut graph = Graph::new(&plan, &mut CoreOnly).unwrap();
        graph.bind(format);
        graph.set_wanted(0, true);
        let tracks = if let Format::Rtp(tracks) = format { &tracks[..] } else { &[] };
        let readers = tracks.iter().zip(0..).map(|(track, index)| RtpReader::new(index, track)).collect();
        Bench { graph, readers, sequence: 0xfff0 }
    }

    fn format(&self) -> Result<Format, Unfit> {
        self.graph.exit_format(0).cloned().map_err(Clone::clone)
    }

    fn enter(&mut self, bytes: Vec<u8>, track: u8) {
        let tag = self.readers.get_mut(usize::from(track)).map(|reader| reader.read(&bytes).unwrap());
        let packet = Packet { bytes: bytes.into(), tag: tag.unwrap_or_default(), arrived: Time::ZERO };
        self.graph.enter(Parsed { packet, rtp_header: [0; 12], preamble: None, found: None });
    }

    /// Payloads of a frame as RTP, but for those that get lost.
    fn enter_frame(&mut self, timestamp: u32, payloads: &[Vec<u8>], lost: &[usize]) {
        for (index, payload) in payloads.iter().enumerate() {
            let marker = index + 1 == payloads.len();
            let sequence = self.sequence;
            self.sequence = sequence.wrapping_add(1);
            if !lost.contains(&index) {
                let header = PlainHeader { marker, payload_type: 96, sequence, timestamp, ssrc: 5 };
                self.enter([&header.emit()[..], payload].concat(), 0);
            }
        }
    }

    fn run(&mut self) -> Vec<Parsed> {
        let mut out = Vec::new();
        let further = &mut |_, _| panic!("all stages are here");
        self.graph.run(Time::ZERO, None, further, &mut |_, parsed| out.push(parsed));
        out
    }

    fn drops(&self, reason: DropReason) -> u64 {
        self.graph.report().next().unwrap().drops.get(reason)
    }
}

/// All of a packet that came out.
fn whole(parsed: &Parsed) -> Vec<u8> {
    let Parsed { packet, rtp_header, .. } = parsed;
    let header = if rtp_header[0] == 0 { &[][..] } else { rtp_header };
    [header, &packet.bytes].concat()
}

fn raw(shape: Shape) -> Format {
    let sampling = if shape.pixels == Pixels::Rgb { "RGB" } else { "YCbCr-4:2:2" };
    let fmtp = format!("sampling={sampling}; width={}; height={}; depth=8", shape.width, shape.height);
    let codec = Codec::RawVideo(Some(shape));
    Format::Rtp(vec![Track { codec, fmtp, encoding: "raw".to_owned(), payload_type: 96, ..Track::mp2t() }])
}

fn picture(shape: Shape, seed: usize) -> Vec<u8> {
    (0..shape.bytes()).map(|at| (at * 31 % 253 + at / 7 + seed * 91) as u8).collect()
}

fn payloads(shape: Shape, image: &[u8], max: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    raw_video::emit(shape, image, max, 0x3_fff0, |payload, _| all.push(payload.to_vec())).unwrap();
    all
}

/// What a recipe does, with all of the image in one piece.
fn expected(recipe: Recipe, shape: Shape, image: &[u8]) -> (Shape, Vec<u8>) {
    let cpu = Cpu::detect();
    let (mut shape, mut image) = (shape, image.to_vec());
    if let Some(rect) = recipe.part.and_then(|part| part.within(shape)) {
        let mut out = Vec::new();
        image::crop(shape, &image, rect, &mut out);
        (shape, image) = (Shape { width: rect.width, height: rect.height, ..shape }, out);
    }
    if let Some(Size::Factor(factor)) = recipe.size {
        let mut out = Vec::new();
        shape = image::shrink(cpu, shape, &image, factor, &mut out).unwrap();
        image = out;
    }
    if recipe.gray {
        image::gray(cpu, shape.pixels, &mut image);
    }
    if let Some(pixels) = recipe.pixels {
        let to = Shape { pixels, ..shape };
        let mut out = vec![0; to.bytes()];
        let rows = image.chunks(shape.row_bytes()).zip(out.chunks_mut(to.row_bytes()));
        rows.for_each(|(row, out)| image::convert(cpu, (shape.pixels, row), (pixels, out)));
        (shape, image) = (to, out);
    }
    (shape, image)
}

/// The frames that packets make, by timestamp: their bytes, 0x55 where nothing came, and whether the
/// last packet has the marker.
fn frames(shape: Shape, packets: &[Parsed]) -> Vec<(u32, Vec<u8>, bool)> {
    let mut frames: Vec<(u32, Vec<u8>, bool)> = Vec::new();
    for parsed in packets {
        let packet = whole(parsed);
        let header = RtpHeader::new_checked(&packet).unwrap();
        let is_new = frames.last().is_none_or(|last| last.0 != header.timestamp());
        if is_new {
            frames.push((header.timestamp(), vec![0x55; shape.bytes()], false));
        }
        let tag = parsed.packet.tag;
        assert_eq!((tag.first, tag.last, tag.key), (is_new, header.marker(), true));
        let frame = frames.last_mut().unwrap();
        assert!(!frame.2, "a packet behind the marker");
        frame.2 = header.marker();
        let read = RawVideo::new_checked(header.payload()).unwrap();
        for part in read.parts() {
            let at = usize::from(part.line) * shape.row_bytes() + shape.pixels.row_bytes(part.offset.into());
            frame.1[at..at + part.bytes.len()].copy_from_slice(&header.payload()[part.bytes]);
        }
    }
    frames
}

fn sequences(packets: &[Parsed]) -> Vec<u32> {
    let read = |parsed: &Parsed| {
        let packet = whole(parsed);
        let header = RtpHeader::new_checked(&packet).unwrap();
        let extended = RawVideo::new_checked(header.payload()).unwrap().extended_sequence();
        u32::from(extended) << 16 | u32::from(header.sequence())
    };
    packets.iter().map(read).collect()
}

fn rect(left: usize, top: usize, width: usize, height: usize) -> Setting {
    Setting::Part(Rect { left, top, width, height })
}

/// Elements with their options and what they do to raw video, and whether pixels need no others.
fn cases(pixels: Pixels) -> Vec<(&'static str, Settings, Recipe, bool)> {
    let (none, nothing) = (Settings::default, Recipe::default());
    let other = if pixels == Pixels::Rgb { Pixels::Uyvy } else { Pixels::Rgb };
    let word = Setting::Text(if other == Pixels::Rgb { "rgb" } else { "uyvy" }.to_owned());
    let part = rect(PART.left, PART.top, PART.width, PART.height);
    let view = none().with("part", part.clone()).with("gray", Setting::Flag(true));
    let small = view.clone().with("size", Setting::Dimensions(10, 4));
    let cut = Recipe { part: Some(PART), ..nothing };
    vec![
        ("gray", none(), Recipe { gray: true, ..nothing }, true),
        ("crop", none().with("part", part), cut, true),
        (
            "shrink",
            none().with("factor", Setting::Whole(3)),
            Recipe { size: Some(Size::Factor(3)), ..nothing },
            false,
        ),
        (
            "convert",
            none().with("pixels", word),
            Recipe { pixels: Some(other), ..nothing },
            other == Pixels::Rgb,
        ),
        ("view", view, Recipe { gray: true, ..cut }, true),
        ("view", small, Recipe { gray: true, size: Some(Size::Factor(2)), ..cut }, false),
    ]
}

#[test]
fn all_ways_to_use_memory_make_the_same_frames() {
    for (pixels, max) in [(Pixels::Rgb, 60), (Pixels::Rgb, 1400), (Pixels::Uyvy, 60), (Pixels::Uyvy, 44)] {
        let shape = Shape { pixels, width: 34, height: 14 };
        for (kind, settings, recipe, alone) in cases(pixels) {
            for memory in ["auto", "fragments", "lines", "gather"] {
                let settings = settings.clone().with("memory", Setting::Text(memory.to_owned()));
                let mut bench = Bench::new(kind, settings, &raw(shape));
                let what = format!("{kind} {pixels:?} {max} {memory}");
                if memory == "fragments" && !alone {
                    assert!(bench.format().unwrap_err().what.contains("others"), "{what}");
                    continue;
                }
                let pictures = [picture(shape, 1), picture(shape, 2)];
                let (small, first) = expected(recipe, shape, &pictures[0]);
                let (_, second) = expected(recipe, shape, &pictures[1]);
                assert_eq!(bench.format(), Ok(raw(small)), "{what}");
                bench.enter_frame(1000, &payloads(shape, &pictures[0], max), &[]);
                bench.enter_frame(4000, &payloads(shape, &pictures[1], max), &[]);
                let out = bench.run();
                let frames = frames(small, &out);
                assert!(frames == [(1000, first, true), (4000, second, true)], "{what}: {frames:?}");
                if kind != "gray" || memory != "fragments" && memory != "auto" {
                    let sequences = sequences(&out);
                    assert!(sequences.windows(2).all(|two| two[0] + 1 == two[1]), "{what}: {sequences:x?}");
                }
                assert!(out.iter().all(|packet| whole(packet).len() <= 12 + max), "{what}");
                assert_eq!(bench.drops(DropReason::Incomplete), 0, "{what}");
            }
        }
    }
}

/// A frame of lines of two packets each, of which the first of line 4 gets lost; the next frame is whole.
fn with_loss(kind: &str, settings: Settings, memory: &str) -> (Bench, Vec<Parsed>) {
    let shape = Shape { pixels: Pixels::Rgb, width: 34, height: 14 };
    let settings = settings.with("memory", Setting::Text(memory.to_owned()));
    let mut bench = Bench::new(kind, settings, &raw(shape));
    let payloads = payloads(shape, &picture(shape, 1), 8 + 51);
    bench.enter_frame(1000, &payloads, &[8]);
    bench.enter_frame(4000, &payloads, &[]);
    let out = bench.run();
    (bench, out)
}

#[test]
fn in_fragments_a_lost_packet_takes_nothing_along() {
    let part = Settings::default().with("part", rect(0, 0, 34, 7));
    let (bench, out) = with_loss("crop", part, "fragments");
    assert_eq!((out.len(), bench.drops(DropReason::Filtered)), (13 + 14, 28));
    let shape = Shape { pixels: Pixels::Rgb, width: 34, height: 7 };
    let frames = frames(shape, &out);
    let differs = frames[0].1.iter().zip(&frames[1].1).filter(|(a, b)| a != b);
    assert!((45..=51).contains(&differs.count()));
    let gaps: Vec<_> = sequences(&out).windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(gaps.iter().position(|gap| *gap == 2), Some(7), "{gaps:?}");
    assert_eq!(gaps.iter().sum::<u32>(), 27, "{gaps:?}");
}

#[test]
fn in_lines_a_lost_packet_takes_its_line_along() {
    let (bench, out) = with_loss("gray", Settings::default(), "lines");
    assert_eq!((out.len(), bench.drops(DropReason::Incomplete)), (26 + 28, 1));
    let half = Settings::default().with("factor", Setting::Whole(2));
    let (bench, out) = with_loss("shrink", half, "auto");
    // A line of the result has half of the bytes of two.
    assert_eq!((out.len(), bench.drops(DropReason::Incomplete)), (6 + 7, 3));
}

#[test]
fn in_a_gathered_frame_a_lost_packet_takes_all_along() {
    let (bench, out) = with_loss("gray", Settings::default(), "gather");
    assert_eq!((out.len(), bench.drops(DropReason::Incomplete)), (28, 27));
    let shape = Shape { pixels: Pixels::Rgb, width: 34, height: 14 };
    assert_eq!(frames(shape, &out)[0].0, 4000);
}

#[test]
fn packets_that_come_twice_or_late_change_nothing() {
    let shape = Shape { pixels: Pixels::Rgb, width: 34, height: 4 };
    let mut bench = Bench::new(
        "gray",
        Settings::default().with("memory", Setting::Text("gather".to_owned())),
        &raw(shape),
    );
    let mut payloads = payloads(shape, &picture(shape, 1), 8 + 102);
    payloads.swap(1, 2);
    bench.enter_frame(1000, &payloads, &[]);
    bench.sequence = bench.sequence.wrapping_sub(4);
    bench.enter_frame(1000, &payloads, &[]);
    assert_eq!(bench.run().len(), 4);
    assert_eq!((bench.drops(DropReason::Late), bench.drops(DropReason::Incomplete)), (4, 0));
}

#[test]
fn several_parts_of_a_packet_stay_in_one() {
    let shape = Shape { pixels: Pixels::Rgb, width: 4, height: 3 };
    // Two lines and a half, with the pixels' numbers in them.
    let mut payload = vec![0, 0];
    for (index, (line, bytes)) in [(0, 12_u8), (1, 12), (2, 6)].into_iter().enumerate() {
        payload.extend([0, bytes, 0, line, if index < 2 { 0x80 } else { 0 }, 0]);
    }
    payload.extend((0..10).flat_map(|pixel| [pixel; 3]));
    let rest = vec![0, 0, 0, 6, 0, 2, 0, 2, 10, 10, 10, 11, 11, 11];
    let settings = Settings::default().with("part", rect(1, 1, 2, 2));
    let mut bench = Bench::new("crop", settings, &raw(shape));
    bench.enter_frame(0, &[payload, rest], &[]);
    let out = bench.run();
    assert_eq!(out.len(), 2);
    let small = Shape { width: 2, height: 2, ..shape };
    let expected: Vec<u8> = [5, 6, 9, 10].into_iter().flat_map(|pixel| [pixel; 3]).collect();
    assert_eq!(frames(small, &out), [(0, expected, true)]);
}

#[test]
fn what_is_malformed_is_counted() {
    let shape = Shape { pixels: Pixels::Rgb, width: 4, height: 3 };
    for memory in ["fragments", "gather"] {
        let settings = Settings::default().with("memory", Setting::Text(memory.to_owned()));
        let mut bench = Bench::new("gray", settings, &raw(shape));
        bench.enter_frame(0, &[vec![0; 7], vec![0, 0, 0, 1, 0, 0, 0, 0]], &[]);
        assert_eq!((bench.run().len(), bench.drops(DropReason::Malformed)), (0, 2), "{memory}");
    }
}

#[test]
fn images_come_out_as_images() {
    use outflow_media::image::ppm;
    for (pixels, to) in [(Pixels::Rgb, Pixels::Gray), (Pixels::Gray, Pixels::Rgb)] {
        let shape = Shape { pixels, width: 34, height: 14 };
        let image = picture(shape, 3);
        let mut bytes = Vec::new();
        ppm::emit(shape, &mut bytes).unwrap();
        bytes.extend_from_slice(&image);
        let word = Setting::Text(if to == Pixels::Gray { "gray" } else { "rgb" }.to_owned());
        let mut cases = cases(pixels);
        let convert = Settings::default().with("pixels", word);
        cases[3] = ("convert", convert, Recipe { pixels: Some(to), ..Recipe::default() }, true);
        for (kind, settings, recipe, _) in cases {
            let mut bench = Bench::new(kind, settings, &Format::Images);
            assert_eq!(bench.format(), Ok(Format::Images));
            bench.enter(bytes.clone(), 0);
            let out = bench.run();
            // Gray images are PGM.
            let recipe = if recipe.gray { Recipe { pixels: Some(Pixels::Gray), ..recipe } } else { recipe };
            let (small, pixels) = expected(recipe, shape, &image);
            let header = ppm::Header::parse(&out[0].packet.bytes).unwrap().unwrap();
            assert_eq!(header.shape, small, "{kind}");
            assert!(out[0].packet.bytes[header.bytes..] == pixels, "{kind} {pixels:?}");
        }
    }
    let mut bench = Bench::new("gray", Settings::default(), &Format::Images);
    bench.enter(b"P6 9 9 255\n...".to_vec(), 0);
    assert_eq!((bench.run().len(), bench.drops(DropReason::Malformed)), (0, 1));
}

#[test]
fn tracks_that_are_no_images_pass_as_they_are() {
    let shape = Shape { pixels: Pixels::Rgb, width: 4, height: 3 };
    let Format::Rtp(mut tracks) = raw(shape) else { unreachable!("it is RTP") };
    tracks.insert(0, Track { codec: Codec::Opus, ..Track::mp2t() });
    let settings = Settings::default().with("part", rect(0, 0, 2, 2));
    let mut bench = Bench::new("crop", settings, &Format::Rtp(tracks.clone()));
    let Format::Rtp(given) = bench.format().unwrap() else { unreachable!("it is RTP") };
    assert_eq!((given[0] == tracks[0], given[1] == tracks[1]), (true, false));
    let header = PlainHeader { marker: true, payload_type: 96, sequence: 9, timestamp: 7, ssrc: 5 };
    let packet = [&header.emit()[..], b"sound"].concat();
    bench.enter(packet.clone(), 0);
    assert_eq!(whole(&bench.run()[0]), packet);
}

#[test]
fn what_cannot_be_worked_on_is_refused_with_what_could_be() {
    let shape = Shape { pixels: Pixels::Rgb, width: 40, height: 30 };
    let said = |kind, settings, format: &Format| {
        Bench::new(kind, settings, format).format().unwrap_err().to_string()
    };
    let none = Settings::default;
    let Format::Rtp(mut tracks) = raw(shape) else { unreachable!("it is RTP") };
    tracks[0].codec = Codec::RawVideo(None);
    tracks.push(Track { codec: Codec::Opus, ..Track::mp2t() });
    assert!(said("gray", none(), &Format::Rtp(tracks)).contains("YCbCr-4:2:2 of 8 bits"));
    assert!(said("gray", none(), &Format::Ts).contains("no images"));
    let outside = none().with("part", rect(40, 0, 9, 9));
    assert!(said("crop", outside, &raw(shape)).contains("outside of an image of 40x30"));
    let tiny = none().with("factor", Setting::Whole(31));
    assert!(said("shrink", tiny, &raw(shape)).contains("31 times smaller"));
    let gray = none().with("pixels", Setting::Text("gray".to_owned()));
    assert!(said("convert", gray, &raw(shape)).contains("'gray'"));
    let uyvy = none().with("pixels", Setting::Text("uyvy".to_owned()));
    assert!(said("convert", uyvy, &Format::Images).contains("no such pixels"));
    let large = Shape { width: 32_000, height: 32_000, ..shape };
    let gather = none().with("memory", Setting::Text("gather".to_owned()));
    assert!(said("gray", gather, &raw(large)).contains("too large"));
    assert!(Bench::new("gray", none(), &raw(large)).format().is_ok(), "nothing is gathered");
}

#[test]
fn a_view_of_everything_is_everything() {
    let bench = Bench::new("view", Settings::default(), &Format::Ts);
    assert_eq!(bench.format(), Ok(Format::Ts));
}

#[test]
fn numbers_go_on_in_another_element() {
    let shape = Shape { pixels: Pixels::Rgb, width: 34, height: 4 };
    let element = |top| {
        let recipe = Recipe { part: Some(Rect { left: 0, top, width: 34, height: 2 }), ..Recipe::default() };
        let mut images = Images::new(recipe, Memory::Auto);
        images.bind(&raw(shape)).unwrap();
        images
    };
    let header = PlainHeader { marker: true, payload_type: 96, sequence: 4, timestamp: 7, ssrc: 5 };
    let worked = |element: &mut Images| {
        let payloads = payloads(shape, &picture(shape, 1), 8 + 102);
        let item = |payload: &Vec<u8>| {
            let mut item = Item::empty();
            item.packet.bytes = Bytes::from([&header.emit()[..], payload].concat());
            item
        };
        let mut batch = payloads.iter().map(item).collect();
        element.work(Time::ZERO, &mut batch, &mut Tally::default());
        batch.iter().map(|item| item.packet.bytes[3]).collect::<Vec<_>>()
    };
    let (mut before, mut after) = (element(0), element(2));
    assert_eq!(worked(&mut before), [4, 5]);
    after.resume(before.state().unwrap());
    assert_eq!(worked(&mut after), [6, 7]);
}

/// Any packet may be the one that makes a frame complete, all of which is worked on then.
#[test]
fn each_batch_is_timed_of_what_gathers_frames() {
    let shape = Shape { pixels: Pixels::Rgb, width: 34, height: 14 };
    for (memory, is_each) in [("gather", true), ("fragments", false)] {
        let settings = Settings::default().with("memory", Setting::Text(memory.to_owned()));
        let mut bench = Bench::new("gray", settings, &raw(shape));
        let payloads = payloads(shape, &picture(shape, 1), 60);
        for (at, payload) in payloads.iter().enumerate() {
            let header =
                PlainHeader { marker: false, payload_type: 96, sequence: at as u16, timestamp: 1, ssrc: 5 };
            bench.enter([&header.emit()[..], payload].concat(), 0);
            bench.graph.run(Time::ZERO, Some(|| 0), &mut |_, _| {}, &mut |_, _| {});
        }
        let gauge = bench.graph.report().next().unwrap().gauge;
        assert_eq!(gauge.sampled_packets == payloads.len() as u64, is_each, "{memory}: {gauge:?}");
    }
}
