//! Random packets, and random bytes.

use proptest::prelude::*;

use super::*;

/// Frames that own what they hold.
#[derive(Debug, Clone)]
enum Owned {
    Ping,
    Ack(Vec<Span>, u64, Vec<Arrival>, Option<(u64, u64, u64)>),
    Fragment(u64, u32, u32, Vec<u8>),
    GivenUp(Vec<Span>),
    Progress(u64, u64, Vec<Span>),
    Challenge([u8; 8]),
    Response([u8; 8]),
    Close(u64, String),
}

impl Owned {
    fn frame(&self) -> Frame<'_> {
        match self {
            Owned::Ping => Frame::Ping,
            Owned::Ack(spans, delay, arrivals, ecn) => Frame::Ack(Ack {
                packets: Spans::new(spans),
                delay: Duration::from_micros(*delay),
                arrivals: Arrivals::new(arrivals),
                ecn: ecn.map(|(ect0, ect1, ce)| MarkCounts { ect0, ect1, ce }),
            }),
            Owned::Fragment(unit, offset, behind, bytes) => Frame::Fragment(Fragment {
                unit: *unit,
                offset: *offset,
                unit_bytes: offset + behind + bytes.len() as u32,
                bytes,
            }),
            Owned::GivenUp(spans) => Frame::GivenUp(Spans::new(spans)),
            Owned::Progress(settled, credit, lost) => Frame::Progress(Progress {
                settled_below: *settled,
                window_end: settled + credit,
                lost: Spans::new(lost),
            }),
            Owned::Challenge(bytes) => Frame::PathChallenge(*bytes),
            Owned::Response(bytes) => Frame::PathResponse(*bytes),
            Owned::Close(code, text) => Frame::Close(Close { code: Code(*code), text }),
        }
    }
}

/// Small ones mostly.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..300_u64, 2 => 0..5_000_000_u64, 1 => 0..1_u64 << 55]
}

fn spans(least: usize) -> impl Strategy<Value = Vec<Span>> {
    prop::collection::vec((number(), number()), least..33).prop_map(|steps| {
        let mut next = 0;
        let span = |(skipped, more): (u64, u64)| {
            let (first, last) = (next + skipped, next + skipped + more);
            next = last + 1;
            Span { first, last }
        };
        steps.into_iter().map(span).collect()
    })
}

fn ack() -> impl Strategy<Value = Owned> {
    let steps = prop::collection::vec((0..40_u64, 0..200_u64), 0..65);
    let ecn = prop::option::of((number(), number(), number()));
    (spans(1), number(), steps, number(), ecn).prop_map(|(spans, delay, steps, mut ticks, ecn)| {
        let largest = spans[spans.len() - 1].last;
        let arrival = |(i, (behind, pause)): (usize, (u64, u64))| {
            ticks += pause;
            // About in order: mostly the next one, some from elsewhere.
            let number = largest.saturating_sub(if behind < 30 { 64 - i as u64 } else { behind });
            Arrival { number, ticks }
        };
        let arrivals = steps.into_iter().enumerate().map(arrival).collect();
        Owned::Ack(spans, delay, arrivals, ecn)
    })
}

fn fragment() -> impl Strategy<Value = Owned> {
    let bytes = prop::collection::vec(any::<u8>(), 1..1500);
    let edge = || prop_oneof![Just(0_u32), 0..3_000_000_u32];
    (number(), edge(), edge(), bytes)
        .prop_map(|(unit, offset, behind, bytes)| Owned::Fragment(unit, offset, behind, bytes))
}

fn owned() -> impl Strategy<Value = Owned> {
    prop_oneof![
        1 => Just(Owned::Ping),
        3 => ack(),
        6 => fragment(),
        1 => spans(0).prop_map(Owned::GivenUp),
        1 => (number(), number(), spans(0))
            .prop_map(|(settled, credit, lost)| Owned::Progress(settled, credit, lost)),
        1 => any::<[u8; 8]>().prop_map(Owned::Challenge),
        1 => any::<[u8; 8]>().prop_map(Owned::Response),
        1 => (number(), "[a-zä]{0,60}").prop_map(|(code, text)| Owned::Close(code, text)),
    ]
}

/// Everything that can be read of it.
fn read(bytes: &[u8]) -> Result<Vec<Frame<'_>>, Malformed> {
    match parse(bytes)? {
        Datagram::Data(data) => data.frames.collect(),
        _ => Ok(Vec::new()),
    }
}

proptest! {
    #[test]
    fn packets_arrive_and_keep_to_their_size(
        frames in prop::collection::vec(owned(), 0..70),
        number in number(),
        bytes_max in 0..2000_usize,
    ) {
        let (mut out, mut written) = (Vec::new(), Vec::new());
        let mut writer = Writer::new(&mut out, ID, number, bytes_max);
        for frame in frames.iter().map(Owned::frame) {
            if writer.push(&frame) {
                written.push(frame);
            }
        }
        prop_assert_eq!(writer.is_empty(), written.is_empty());
        prop_assert!(out.len() <= bytes_max.max(64));
        prop_assert_eq!(read(&out), Ok(written.clone()));
        let Ok(Datagram::Data(mut data)) = parse(&out) else { panic!("{out:?}") };
        prop_assert_eq!((data.receiver, data.number), (ID, number));
        // What was read can be written again.
        let mut again = Vec::new();
        let mut writer = Writer::new(&mut again, ID, number, bytes_max);
        prop_assert!(data.frames.all(|frame| frame.is_ok_and(|frame| writer.push(&frame))));
        prop_assert_eq!(out, again);
    }

    #[test]
    fn cut_packets_arrive_and_keep_to_their_size(
        frames in prop::collection::vec(prop_oneof![ack(), fragment()], 1..20),
        bytes_max in 64..1500_usize,
    ) {
        let mut out = Vec::new();
        for owned in &frames {
            match owned.frame() {
                Frame::Ack(ack) => {
                    let mut writer = Writer::new(&mut out, ID, 5, bytes_max);
                    if writer.ack(&ack) {
                        let read = read(&out);
                        let Ok([Frame::Ack(read)]) = read.as_deref() else { panic!("{read:?}") };
                        prop_assert_eq!(read.largest(), ack.largest());
                        prop_assert_eq!(read.packets, ack.packets.highest(read.packets.len()));
                        prop_assert_eq!(read.arrivals, ack.arrivals.newest(read.arrivals.len()));
                    }
                    prop_assert!(out.len() <= bytes_max);
                }
                Frame::Fragment(mut fragment) => loop {
                    let mut writer = Writer::new(&mut out, ID, 5, bytes_max);
                    let left = writer.fragment(&fragment);
                    prop_assert!(out.len() <= bytes_max);
                    let read = read(&out);
                    if left == Some(fragment) {
                        prop_assert_eq!(read, Ok(Vec::new()));
                        break;
                    }
                    let Ok([Frame::Fragment(read)]) = read.as_deref() else { panic!("{read:?}") };
                    let (head, tail) = fragment.split_at(read.bytes.len());
                    prop_assert_eq!(read, &head);
                    prop_assert_eq!(left, (!tail.bytes.is_empty()).then_some(tail));
                    match left {
                        Some(tail) => fragment = tail,
                        None => break,
                    }
                },
                _ => (),
            }
        }
    }

    #[test]
    fn what_is_cut_off_never_panics(frames in prop::collection::vec(owned(), 1..6)) {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, ID, 300, 4000);
        frames.iter().for_each(|frame| _ = writer.push(&frame.frame()));
        let whole = read(&out).expect("well formed");
        for end in 0..out.len() {
            if let Ok(frames) = read(&out[..end]) {
                prop_assert!(frames.len() < whole.len() && frames == whole[..frames.len()]);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_datagram_or_malformed(
        kind in 8..14_u8,
        frames in prop::collection::vec(prop_oneof![0..25_u8, any::<u8>()], 0..200),
    ) {
        let bytes = [&[kind, VERSION, 2, 3, 4, 5, 6, 7, 8][..], &frames].concat();
        let long = [&bytes[..], &[0; 1200]].concat();
        for bytes in [&bytes, &long] {
            if let Ok(frames) = read(bytes) {
                prop_assert!(frames.len() <= FRAMES_MAX);
                prop_assert_ne!(format!("{:?}", frames), "");
            }
        }
    }
}
