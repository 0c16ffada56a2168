//! Round trips, sizes, and what is malformed.

mod properties;

use core::time::Duration;

use outflow_petri::leb128::TooLong;
use outflow_petri::limits::REASON_BYTES_MAX;

use super::*;
use crate::limits::{COOKIE_BYTES_MAX, FRAMES_MAX, HELLO_BYTES_MIN, SERVICE_BYTES_MAX};

const ID: ConnectionId = ConnectionId(*b"ours");

/// Bytes of what stands in front of the frames of a packet of a low number.
const HEAD: usize = 1 + ConnectionId::BYTES + 1;

fn reason(bytes: &[u8]) -> &'static str {
    match parse(bytes) {
        Ok(Datagram::Data(data)) => frames_reason(data),
        Ok(_) => "none",
        Err(error) => error.reason,
    }
}

fn frames_reason(data: Data<'_>) -> &'static str {
    data.frames.filter_map(Result::err).map(|error| error.reason).next().unwrap_or("none")
}

/// A packet of these bytes behind its head.
fn data(frames: &[u8]) -> Vec<u8> {
    [&[DATA], &ID.0[..], &[7], frames].concat()
}

#[test]
fn no_other_protocol_on_the_port_is_taken_for_ours() {
    // RFC 9443 section 2; the last one is MPEG-TS.
    for range in [0..=3_u8, 16..=19, 20..=63, 64..=79, 80..=127, 128..=191, 192..=255, 0x47..=0x47] {
        assert!(range.clone().all(|first| !is_ours(first)), "{range:?}");
    }
    assert!([HELLO, RETRY, ACCEPT, REFUSE, DATA, RESET].into_iter().all(is_ours));
}

#[test]
fn handshakes_arrive() {
    let (cookie, service) = (&b"cookie"[..], &b"service"[..]);
    let hello = Hello { client: ID, cookie, service };
    let retry = Retry { client: ID, cookie };
    let accept = Accept { client: ID, server: ConnectionId(*b"peer"), service };
    let refuse = Refuse { version: 7, client: ID, code: Code::SERVICE, text: "nö" };
    let mut out = [const { Vec::new() }; 5];
    hello.emit(&mut out[0]).expect("short");
    retry.emit(&mut out[1]).expect("short");
    accept.emit(&mut out[2]).expect("short");
    refuse.emit(&mut out[3]);
    emit_reset(ID, &mut out[4]);
    assert_eq!(parse(&out[0]), Ok(Datagram::Hello(hello)));
    assert_eq!(parse(&out[1]), Ok(Datagram::Retry(retry)));
    assert_eq!(parse(&out[2]), Ok(Datagram::Accept(accept)));
    assert_eq!(parse(&out[3]), Ok(Datagram::Refuse(refuse)));
    assert_eq!(parse(&out[4]), Ok(Datagram::Reset(ID)));
    for bytes in out {
        (0..bytes.len()).for_each(|end| assert!(parse(&bytes[..end]).is_err(), "{end} of {bytes:?}"));
        assert_eq!(reason(&[&bytes[..], &[1]].concat()), "bytes behind the end");
    }
}

#[test]
fn no_answer_is_longer_than_a_hello() {
    let (cookie, service) = ([1; COOKIE_BYTES_MAX], [2; SERVICE_BYTES_MAX]);
    let mut out = Vec::new();
    Hello { client: ID, cookie: &cookie, service: &service }.emit(&mut out).expect("short enough");
    assert_eq!(out.len(), HELLO_BYTES_MIN);
    out.clear();
    Accept { client: ID, server: ID, service: &service }.emit(&mut out).expect("short enough");
    assert!(out.len() < HELLO_BYTES_MIN);
    out.clear();
    let text = "é".repeat(REASON_BYTES_MAX);
    let refuse = Refuse { version: VERSION, client: ID, code: Code(u64::MAX), text: &text };
    refuse.emit(&mut out);
    assert!(out.len() < HELLO_BYTES_MIN);
    let Ok(Datagram::Refuse(refuse)) = parse(&out) else { panic!("{out:?}") };
    assert_eq!(refuse.text, &text[..REASON_BYTES_MAX]);
    out.clear();
    emit_reset(ID, &mut out);
    assert!(out.len() < data(&[]).len());
}

#[test]
fn what_is_too_long_is_not_sent() {
    let (cookie, service) = ([1; COOKIE_BYTES_MAX + 1], [2; SERVICE_BYTES_MAX + 1]);
    let mut out = Vec::new();
    let error = Hello { client: ID, cookie: &[], service: &service }.emit(&mut out);
    assert_eq!(error, Err(TooLong { what: "service", bytes: 1025, most: 1024 }));
    assert!(Accept { client: ID, server: ID, service: &service }.emit(&mut out).is_err());
    assert!(Retry { client: ID, cookie: &cookie }.emit(&mut out).is_err());
    assert!(out.is_empty());
}

#[test]
fn a_hello_of_another_version_can_be_refused() {
    let mut bytes = vec![HELLO, 9];
    bytes.extend_from_slice(&ID.0);
    bytes.resize(HELLO_BYTES_MIN, 0xee);
    assert_eq!(parse(&bytes), Ok(Datagram::OtherVersion { version: 9, client: ID }));
    let mut retry = vec![RETRY, 9];
    retry.extend_from_slice(&[0; 10]);
    let error = Malformed { format: "POC", offset: 1, reason: "a version that is not known" };
    assert_eq!(parse(&retry), Err(error));
}

#[test]
fn what_is_wrong_is_told() {
    assert_eq!(reason(&[]), "ends early");
    assert_eq!(reason(&[0x80, 0]), "a kind that is not known");
    assert_eq!(reason(&[HELLO, VERSION]), "a hello of less than 1200 bytes");
    let long = |kind: u8, ids: usize, length: &[u8]| {
        let head = [&[kind, VERSION][..], &[0; 16][..ConnectionId::BYTES * ids], length].concat();
        reason(&[&head[..], &[0xee; 1300]].concat())
    };
    assert_eq!(long(HELLO, 1, &[65]), "a cookie too long");
    assert_eq!(long(HELLO, 1, &[0, 0x81, 8]), "a service too long");
    assert_eq!(long(HELLO, 1, &[0, 2]), "bytes behind the end");
    assert_eq!(long(RETRY, 1, &[0]), "no cookie");
    assert_eq!(long(ACCEPT, 2, &[0x81, 8]), "a service too long");
    assert_eq!(long(REFUSE, 1, &[3, 0x81, 1]), "a text too long");
    assert_eq!(long(REFUSE, 1, &[3, 2]), "a text that is not UTF-8");
    let huge = [0xff; 8];
    let with = |head: &[u8], tail: &[u8]| reason(&data(&[head, &huge, &[0x7f], tail].concat()));
    assert_eq!(with(&[2, 2], &[0, 0, 0, 0, 0]), "a range that ends too high");
    assert_eq!(with(&[5], &[1, 0]), "a window that ends too high");
    assert_eq!(reason(&data(&[9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1])), {
        "a number of more than 63 bits"
    });
    for (frames, expected) in [
        (&[][..], "none"),
        (&[0, 0, 1, 0, 1], "none"),
        (&[6], "a frame that is not known"),
        (&[10], "a frame that is not known"),
        (&[24], "a frame that is not known"),
        (&[2, 33], "too many ranges"),
        (&[2, 0], "an acknowledgement of nothing"),
        (&[2, 1, 4, 0, 9, 65], "too many times of arrival"),
        (&[2, 1, 4, 0, 9, 1, 5, 0], "an arrival of no packet"),
        (&[2, 1, 4, 0, 9, 2, 4, 3, 0], "an arrival of no packet"),
        (&[2, 1, 4, 0, 9, 2, 0, 3, 1, 1], "an arrival of no packet"),
        (&[2, 1, 4, 0, 9, 2, 0, 3, 8], "an arrival before the beginning"),
        (&[2, 1, 4, 0, 9, 2, 0, 3, 6], "none"),
        (&[3, 1, 4, 0, 9, 0, 1, 2], "ends early"),
        (&[7, 1, 2, 3], "ends early"),
        (&[9, 0, 1, 0xff], "a text that is not UTF-8"),
        (&[0x11, 5, 2, 1], "ends early"),
        (&[0x12, 0x81, 0x80, 0x80, 4, 1], "a unit too long"),
        (&[0x14, 0x80, 0x80, 0x80, 4, 1, 1], "a unit too long"),
        (&[0x14, 1, 1], "a fragment of no bytes"),
        (&[0x10, 1], "none"),
        (&[1; FRAMES_MAX + 1], "too many frames"),
    ] {
        assert_eq!(reason(&data(frames)), expected, "{frames:?}");
    }
}

#[test]
fn after_a_malformed_frame_there_are_no_more() {
    let bytes = data(&[1, 99, 1, 1]);
    let Ok(Datagram::Data(data)) = parse(&bytes) else { panic!("{bytes:?}") };
    let error = Malformed { format: "POC", offset: HEAD + 1, reason: "a frame that is not known" };
    assert_eq!(data.frames.collect::<Vec<_>>(), [Ok(Frame::Ping), Err(error)]);
}

#[test]
fn a_slice_in_one_packet_takes_five_bytes_more() {
    let (slice, mut out) = ([7; 300], Vec::new());
    let mut writer = Writer::new(&mut out, ID, 1000, 1200);
    let before = writer.bytes();
    let fragment = Fragment::whole(1000, &slice).expect("short");
    assert_eq!(writer.fragment(&fragment), None);
    assert_eq!(writer.bytes() - before, slice.len() + 5);
}

#[test]
fn a_long_unit_is_cut_into_full_packets() {
    let unit: Vec<u8> = (0..5000).map(|i| i as u8).collect();
    let (mut left, mut packets, mut got) = (Fragment::whole(40, &unit), 0, vec![0; unit.len()]);
    let mut out = Vec::new();
    while let Some(fragment) = left {
        let mut writer = Writer::new(&mut out, ID, packets, 1200);
        left = writer.fragment(&fragment);
        assert_eq!(writer.room() == 0, left.is_some());
        assert!(left.is_none() || out.len() >= 1199);
        let Ok(Datagram::Data(data)) = parse(&out) else { panic!("{out:?}") };
        for frame in data.frames {
            let Ok(Frame::Fragment(fragment)) = frame else { panic!("{frame:?}") };
            assert_eq!((fragment.unit, fragment.unit_bytes), (40, 5000));
            got[fragment.offset as usize..][..fragment.bytes.len()].copy_from_slice(fragment.bytes);
        }
        packets += 1;
    }
    assert_eq!((packets, got == unit), (5, true));
}

#[test]
fn nothing_is_behind_a_fragment_without_its_length() {
    // Room for a packet's head, type, unit, and all but the length.
    let (mut out, unit) = (Vec::new(), [1; 100]);
    let mut writer = Writer::new(&mut out, ID, 0, HEAD + 2 + 100);
    assert_eq!(writer.fragment(&Fragment::whole(3, &unit).expect("short")), None);
    assert!(!writer.push(&Frame::Ping));
    // What is behind the piece takes a byte less than what is behind its beginning.
    let unit = [1; 200];
    let mut writer = Writer::new(&mut out, ID, 0, HEAD + 2 + 2 + 150);
    assert!(writer.fragment(&Fragment::whole(3, &unit).expect("short")).is_some());
    assert_eq!((writer.bytes(), writer.room(), writer.push(&Frame::Ping)), (HEAD + 153, 0, false));
    let Ok(Datagram::Data(mut data)) = parse(&out) else { panic!("{out:?}") };
    let Some(Ok(Frame::Fragment(read))) = data.frames.next() else { panic!("{out:?}") };
    assert_eq!((read.bytes.len(), read.unit_bytes), (150, 200));
}

#[test]
fn frames_of_a_packet_are_limited() {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, ID, 0, 1200);
    assert!((0..FRAMES_MAX).all(|_| writer.push(&Frame::Ping)));
    assert!(writer.room() == 0 && !writer.push(&Frame::Ping));
    assert_eq!(reason(&out), "none");
}

#[test]
fn no_piece_too_small_to_be_worth_it_is_sent() {
    let (mut out, unit) = (Vec::new(), [1; 100]);
    let mut writer = Writer::new(&mut out, ID, 0, 64);
    let ping = || core::iter::repeat_n(Frame::Ping, 30 - HEAD);
    assert!(ping().all(|frame| writer.push(&frame)));
    let fragment = Fragment::whole(3, &unit).expect("short");
    assert_eq!(writer.fragment(&fragment), Some(fragment));
    assert_eq!(writer.bytes(), 30);
}

#[test]
fn what_fits_of_an_acknowledgement_is_the_newest_of_it() {
    let spans: Vec<_> = (0..32).map(|i| Span { first: 1000 * i, last: 1000 * i + 300 }).collect();
    let arrivals: Vec<_> = (0..64).map(|i| Arrival { number: 31_237 + i, ticks: 9 * i }).collect();
    let delay = Duration::from_micros(70);
    let (packets, arrivals) = (Spans::new(&spans), Arrivals::new(&arrivals));
    let ack = Ack { packets, delay, arrivals, ecn: None };
    let mut kept = Vec::new();
    for size in [64, 100, 150, 200, 1200] {
        let mut out = Vec::new();
        assert!(Writer::new(&mut out, ID, 0, size).ack(&ack));
        let Ok(Datagram::Data(mut data)) = parse(&out) else { panic!("{out:?}") };
        let Some(Ok(Frame::Ack(read))) = data.frames.next() else { panic!("{out:?}") };
        kept.push((read.packets.len(), read.arrivals.len()));
        assert_eq!((read.largest(), read.delay), (31_300, delay));
        assert_eq!(read.packets, ack.packets.highest(read.packets.len()));
        assert_eq!(read.arrivals, ack.arrivals.newest(read.arrivals.len()));
        let twice = read.packets.highest(6).highest(3);
        assert_eq!((twice, twice.last()), (ack.packets.highest(3), Some(31_300)));
    }
    assert_eq!(kept, [(8, 0), (16, 0), (32, 8), (32, 32), (32, 64)]);
}

#[test]
fn arrivals_in_order_take_a_byte_each() {
    let arrivals: Vec<_> = (0..40).map(|i| Arrival { number: i, ticks: 1000 + 3 * i }).collect();
    let mut out = Vec::new();
    Arrivals::new(&arrivals).emit(39, &mut out);
    assert_eq!(out.len(), 1 + 1 + 2 + 39);
}

#[test]
fn a_list_longer_than_a_frame_is_cut() {
    let spans: Vec<_> = (0..50).map(|i| Span::of(2 * i)).collect();
    assert_eq!(Spans::new(&spans).last(), Some(62));
    let arrivals: Vec<_> = (0..100).map(|i| Arrival { number: i, ticks: i }).collect();
    assert_eq!(Arrivals::new(&arrivals).iter().last(), Some(Arrival { number: 36, ticks: 36 }));
}

#[test]
fn a_packet_is_padded_only_where_nothing_reaches_its_end() {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, ID, 0, 1200);
    assert!(writer.push(&Frame::PathChallenge([3; 8])));
    writer.pad();
    assert_eq!((writer.room(), out.len()), (0, 1200));
    let Ok(Datagram::Data(data)) = parse(&out) else { panic!("{out:?}") };
    assert_eq!(data.frames.collect::<Vec<_>>(), [Ok(Frame::PathChallenge([3; 8]))]);
    let unit = [1; 2000];
    let mut writer = Writer::new(&mut out, ID, 0, 1199);
    assert!(writer.fragment(&Fragment::whole(1, &unit).expect("short")).is_some());
    let bytes = writer.bytes();
    writer.pad();
    assert_eq!((out.len(), reason(&out)), (bytes, "none"));
}

#[test]
fn what_has_to_be_acknowledged_is_known() {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, ID, 0, 1200);
    let packets = [Span::of(3)];
    let ack = Ack {
        packets: Spans::new(&packets),
        delay: Duration::ZERO,
        arrivals: Arrivals::NONE,
        ecn: Some(MarkCounts { ect0: 1, ect1: 0, ce: 2 }),
    };
    assert!(writer.is_empty() && writer.ack(&ack) && !writer.elicits());
    assert!(writer.push(&Frame::Close(Close { code: Code::DONE, text: "" })) && !writer.elicits());
    assert!(writer.push(&Frame::Ping) && writer.elicits() && !writer.is_empty());
}
