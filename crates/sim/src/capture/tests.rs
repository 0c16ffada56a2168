use outflow_media::{Format, Kind, Tag, Track};
use outflow_rtp::PlainHeader;
use outflow_rtp::payload::RtpReader;
use outflow_ts::{DATAGRAM_BYTES, PACKET_BYTES, TsReader};

use super::testing::{FROM, Form, PCAP, TO, capture, ethernet, flow, ip};
use super::*;
use crate::scenario::SourceModel;
use crate::source::Source;

const CLIP: &[u8] = include_bytes!("../../../../assets/demo.ts");

fn parse(bytes: &Bytes) -> Capture {
    Capture::parse(bytes, "test").expect("a capture")
}

fn refused(bytes: &[u8]) -> String {
    Capture::parse(&Bytes::copy_from_slice(bytes), "test").expect_err("no capture").to_string()
}

/// Frames of H.264 as RTP packets.
fn h264(frames: usize) -> Vec<Bytes> {
    let model = SourceModel {
        frames_per_second: 25,
        gop_frames: 4,
        key_frame_bytes: 5_000,
        frame_bytes: 2_000,
        size_spread: 0.5,
        packet_bytes: 1_000,
    };
    let (mut source, mut rng) = (Source::new(model), fastrand::Rng::with_seed(1));
    (0..frames).flat_map(|_| source.frame(&mut rng)).collect()
}

fn rtp(payload_type: u8, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let timestamp = u32::from(sequence) * 3_000;
    let header = PlainHeader { marker: true, payload_type, sequence, timestamp, ssrc: 7 };
    [&header.emit()[..], payload].concat()
}

fn tags(flow: &CapturedFlow) -> Vec<Tag> {
    flow.packets.iter().map(|packet| packet.tag).collect()
}

/// The tags that these packets of one track have alive.
fn live(track: &Track, packets: &[Bytes]) -> Vec<Tag> {
    let mut reader = RtpReader::new(0, track);
    packets.iter().map(|packet| reader.read(packet).expect("readable")).collect()
}

fn h264_track() -> Track {
    let Format::Rtp(tracks) = Source::format() else { unreachable!("it is RTP") };
    tracks[0].clone()
}

#[test]
fn all_forms_of_files_say_the_same() {
    // Times that all resolutions can write.
    let frames: Vec<_> = (0_u64..5)
        .map(|i| (1_700_000_000_000_000_000 + i * 15_625_000, ethernet(FROM, TO, &[i as u8; 100])))
        .collect();
    let expected = parse(&capture(PCAP, 1, usize::MAX, &frames));
    assert!(expected.skipped.is_empty());
    let [flow] = &expected.flows[..] else { panic!("{:?}", expected.flows) };
    assert_eq!((flow.name.as_str(), flow.kind), ("10.0.0.1:5004 > 10.0.0.2:6000", FlowKind::Data));
    let at: Vec<_> = flow.packets.iter().map(|packet| packet.at.as_micros()).collect();
    assert_eq!(at, [0, 15_625, 31_250, 46_875, 62_500]);
    assert!(flow.packets.iter().all(|packet| packet.bytes == 128));
    for big_endian in [false, true] {
        let pcap = [true, false].map(|nanos| Form::Pcap { big_endian, nanos });
        // The last one is 2^-20.
        let pcapng = [6, 9, 0x94].map(|resolution| Form::Pcapng { big_endian, resolution });
        for form in pcap.into_iter().chain(pcapng) {
            assert_eq!(parse(&capture(form, 1, usize::MAX, &frames)), expected, "{form:?}");
        }
    }
}

#[test]
fn sections_of_a_file_each_have_their_interfaces_and_order_of_bytes() {
    let frame = |at| (at, ethernet(FROM, TO, &[1; 10]));
    let little =
        capture(Form::Pcapng { big_endian: false, resolution: 9 }, 1, usize::MAX, &[frame(5), frame(6)]);
    let big = capture(Form::Pcapng { big_endian: true, resolution: 6 }, 1, usize::MAX, &[frame(7_000)]);
    let both = parse(&[little, big].concat().into());
    let at: Vec<_> = both.flows[0].packets.iter().map(|packet| packet.at.as_nanos()).collect();
    assert_eq!(at, [0, 1, 6_995]);
}

#[test]
fn all_link_layers_carry_the_same() {
    let packet = ip(FROM, TO, b"payload");
    let ethernet = ethernet(FROM, TO, b"payload");
    let behind = |header: &[u8]| [header, &packet].concat();
    let vlan = [&ethernet[..12], &[0x81, 0, 0, 5], &ethernet[12..]].concat();
    let two = [&ethernet[..12], &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5], &ethernet[12..]].concat();
    // Short frames are filled up to the least that Ethernet sends.
    let padded = [&ethernet[..], &[0; 11]].concat();
    let cooked = [&[0; 14][..], &[0x08, 0x00]].concat();
    let cooked2 = [&[0x08, 0x00][..], &[0; 18]].concat();
    let expected = parse(&capture(PCAP, 1, usize::MAX, &[(0, ethernet)]));
    for (link, frame) in [
        (1, vlan),
        (1, two),
        (1, padded),
        (113, behind(&cooked)),
        (276, behind(&cooked2)),
        (101, packet.clone()),
        (228, packet.clone()),
        (0, behind(&[2, 0, 0, 0])),
        (108, behind(&[0, 0, 0, 2])),
    ] {
        assert_eq!(parse(&capture(PCAP, link, usize::MAX, &[(0, frame)])), expected, "link layer {link}");
    }
    let six = super::testing::ethernet("[fd00::1]:5004", "[ff15::2]:6000", b"payload");
    let six = parse(&capture(PCAP, 1, usize::MAX, &[(0, six)]));
    assert_eq!(six.flows[0].name, "[fd00::1]:5004 > [ff15::2]:6000");
    assert_eq!((expected.flows[0].packets[0].bytes, six.flows[0].packets[0].bytes), (35, 55));
}

#[test]
fn what_is_no_datagram_is_counted_with_the_reason() {
    let good = ethernet(FROM, TO, b"payload");
    let changed = |at: usize, byte: u8| {
        let mut frame = good.clone();
        frame[at] = byte;
        frame
    };
    let frames = [
        good.clone(),
        // More fragments, a fragment further behind, TCP, ARP, nothing known, too short.
        changed(20, 0x20),
        changed(21, 9),
        changed(23, 6),
        [&good[..12], &[0x08, 0x06], &[0; 28]].concat(),
        changed(12, 0x99),
        good[..20].to_vec(),
        good[..3].to_vec(),
    ];
    let mut bytes = capture(PCAP, 1, usize::MAX, &frames.map(|frame| (0, frame))).as_ref().to_vec();
    bytes.extend([0; 9]);
    let read = parse(&bytes.into());
    assert_eq!(read.flows[0].packets.len(), 1);
    let counted: Vec<_> = read.skipped.iter().map(|(reason, count)| (*reason, *count)).collect();
    let expected = [
        ("fragment of an IP packet", 2),
        ("malformed IP packet", 1),
        ("malformed UDP packet", 1),
        ("malformed frame", 1),
        ("not IP", 2),
        ("the capture is cut off or damaged here", 1),
    ];
    assert_eq!(counted, expected);
    let other = capture(PCAP, 147, usize::MAX, &[(0, good)]);
    let error = refused(&other);
    assert!(error.contains("(link layer that is not known here: 1): capture with `tcpdump"), "{error}");
}

#[test]
fn packets_are_told_as_they_are_live_without_a_description() {
    let packets = h264(12);
    let read = parse(&flow(packets.iter().map(|packet| &packet[..])));
    let [flow] = &read.flows[..] else { panic!("{:?}", read.flows) };
    assert_eq!((flow.kind, flow.carries.as_str(), flow.not_understood), (FlowKind::Rtp, "RTP: H264", 0));
    assert_eq!(tags(flow), live(&h264_track(), &packets));
    assert!(tags(flow).iter().any(|tag| tag.key && tag.kind == Kind::Intra));
}

#[test]
fn h265_is_told_from_h264() {
    let units: [&[u8]; 6] = [
        // Parameter sets, aggregated; two fragments of an IDR picture; trailing pictures.
        &[0x60, 1, 0, 3, 0x40, 1, 7, 0, 3, 0x42, 1, 7, 0, 3, 0x44, 1, 7],
        &[0x62, 1, 0x93, 0xaf, 1, 2, 3],
        &[0x62, 1, 0x53, 1, 2, 3],
        &[0x02, 1, 0xd0, 1, 2],
        &[0x00, 1, 0xd0, 1, 2],
        &[0x02, 1, 0xd0, 1, 2],
    ];
    let packets: Vec<_> = (0..24).map(|i| rtp(96, i, units[usize::from(i) % 6])).collect();
    let read = parse(&flow(packets.iter().map(|packet| &packet[..])));
    assert_eq!(read.flows[0].carries, "RTP: H265");
    assert!(read.flows[0].packets.iter().any(|packet| packet.tag.key));
}

#[test]
fn what_is_not_certain_is_not_guessed() {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut random = |first: &[u8]| {
        let rest = std::iter::repeat_with(|| rng.u8(..)).take(60);
        first.iter().copied().chain(rest).collect::<Vec<u8>>()
    };
    // Whatever comes first in all packets, as with Opus, or with AAC's headers.
    for first in 0..=255 {
        let packets: Vec<_> = (0..40).map(|i| rtp(111, i, &random(&[first]))).collect();
        let read = parse(&flow(packets.iter().map(|packet| &packet[..])));
        let flow = &read.flows[0];
        assert_eq!((flow.kind, flow.carries.as_str()), (FlowKind::Rtp, "RTP: payload type 111"), "{first}");
        assert!(tags(flow).iter().all(|tag| tag.kind == Kind::Data && tag.needs.is_nothing()));
    }
    let static_type: Vec<_> = (0..40).map(|i| rtp(0, i, &random(&[]))).collect();
    assert_eq!(parse(&flow(static_type.iter().map(|packet| &packet[..]))).flows[0].carries, "RTP: PCMU");
}

#[test]
fn packets_without_numbers_are_no_rtp() {
    let mut rng = fastrand::Rng::with_seed(4);
    let jumps: Vec<_> = (0..99).map(|i| rtp(96, i * 3, &[1; 20])).collect();
    let noise: Vec<_> = (0..99).map(|_| (0..50).map(|_| rng.u8(..)).collect::<Vec<u8>>()).collect();
    for packets in [jumps, noise] {
        let read = parse(&flow(packets.iter().map(|packet| &packet[..])));
        let flow = &read.flows[0];
        assert_eq!((flow.kind, flow.format.clone()), (FlowKind::Data, None));
        let frames: Vec<_> = tags(flow).iter().map(|tag| (tag.frame, tag.kind, tag.last)).collect();
        assert_eq!(frames, (0..99).map(|i| (i, Kind::Data, true)).collect::<Vec<_>>(), "each stands alone");
    }
}

#[test]
fn reports_stand_alone_between_the_packets_of_media() {
    let packets = h264(8);
    let report = [0x80, 200, 0, 6, 0, 0, 0, 7];
    let mixed = packets.iter().flat_map(|packet| [&packet[..], &report]);
    let read = parse(&flow(mixed));
    let (media, reports): (Vec<_>, Vec<_>) = tags(&read.flows[0]).into_iter().partition(|tag| tag.track == 0);
    assert_eq!(media, live(&h264_track(), &packets));
    assert_eq!(reports.len(), packets.len());
    assert!(reports.iter().all(|tag| tag.track == 1 && tag.kind == Kind::Data));
}

#[test]
fn a_session_description_says_what_cannot_be_guessed() {
    // VP8 (RFC 7741): the first packet of a frame, a key frame every fourth.
    let packets: Vec<Bytes> = (0..20_u16)
        .map(|i| {
            rtp(97, i, &[0x10, if i % 4 == 0 { 0x10 } else { 0x11 }, 2, 0, 0x9d, 1, 0x2a, 0, 1, 0, 1]).into()
        })
        .collect();
    let bytes = flow(packets.iter().map(|packet| &packet[..]));
    assert_eq!(parse(&bytes).flows[0].carries, "RTP: payload type 97");
    let sdp = "s=-\r\nm=video 6000 RTP/AVP 97\r\na=rtpmap:97 VP8/90000\r\n";
    let read = Capture::parse_with(&bytes, "test", Some(sdp)).expect("described");
    let Some(Format::Rtp(tracks)) = &read.flows[0].format else { panic!("{:?}", read.flows[0].format) };
    assert_eq!(read.flows[0].carries, "RTP: VP8");
    assert_eq!(tags(&read.flows[0]), live(&tracks[0], &packets));
    // As RTSP describes it: without a port.
    let anywhere = sdp.replace("6000", "0");
    assert_eq!(Capture::parse_with(&bytes, "test", Some(&anywhere)).expect("described"), read);
    for other in [sdp.replace("6000", "6002"), sdp.replace("97", "98")] {
        let error = Capture::parse_with(&bytes, "test", Some(&other)).expect_err("of something else");
        assert!(error.to_string().contains("give the one of the session that was captured"), "{error}");
    }
    let error = Capture::parse_with(&bytes, "test", Some("nonsense")).expect_err("none");
    assert!(matches!(error, CaptureError::Sdp { .. }), "{error}");
}

#[test]
fn transport_streams_are_known_bare_and_in_rtp() {
    let datagrams: Vec<&[u8]> = CLIP.chunks_exact(DATAGRAM_BYTES).take(200).collect();
    let mut reader = TsReader::default();
    let expected: Vec<_> = datagrams.iter().map(|datagram| reader.read(datagram).expect("aligned")).collect();
    assert!(expected.iter().any(|tag| tag.key) && expected.iter().any(|tag| tag.kind == Kind::Bidirectional));
    let in_rtp: Vec<_> = (0..).zip(&datagrams).map(|(i, datagram)| rtp(33, i, datagram)).collect();
    let bare = parse(&flow(datagrams.iter().copied()));
    let in_rtp = parse(&flow(in_rtp.iter().map(|packet| &packet[..])));
    for (read, bytes) in [(&bare, 1344), (&in_rtp, 1356)] {
        let flow = &read.flows[0];
        assert_eq!((flow.kind, flow.format.clone()), (FlowKind::Ts, Some(Format::Ts)));
        assert!(flow.carries.starts_with("MPEG-TS: "), "{}", flow.carries);
        assert_eq!(tags(flow), expected);
        assert!(flow.packets.iter().all(|packet| packet.bytes == bytes));
    }
}

#[test]
fn what_was_not_captured_of_a_packet_counts_on_the_wire() {
    let packets = h264(12);
    let frames: Vec<_> = packets.iter().map(|packet| (0, ethernet(FROM, TO, packet))).collect();
    let whole = parse(&capture(PCAP, 1, usize::MAX, &frames));
    let headers = parse(&capture(PCAP, 1, 80, &frames));
    assert_eq!(headers.flows[0].cut_off, packets.iter().filter(|packet| packet.len() > 38).count() as u64);
    let changed = CapturedFlow { cut_off: 0, ..headers.flows[0].clone() };
    assert_eq!(changed, whole.flows[0], "headers are enough to understand H.264");
}

#[test]
fn flows_are_in_the_order_of_their_first_packets_and_packets_in_that_of_their_times() {
    let frame = |at, from, byte| (at, ethernet(from, TO, &[byte]));
    let frames =
        [frame(30, "10.0.0.9:1", 0), frame(20, FROM, 1), frame(10, "10.0.0.9:1", 2), frame(5, FROM, 3)];
    let read = parse(&capture(PCAP, 1, usize::MAX, &frames));
    let flows: Vec<_> = read.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(flows, ["10.0.0.9:1 > 10.0.0.2:6000", "10.0.0.1:5004 > 10.0.0.2:6000"]);
    let at = |flow: &CapturedFlow| flow.packets.iter().map(|packet| packet.at.as_nanos()).collect::<Vec<_>>();
    assert_eq!(read.flows.iter().map(at).collect::<Vec<_>>(), [[5, 25], [0, 15]]);
}

#[test]
fn errors_say_what_to_do() {
    for bytes in [&b""[..], b"\x1f\x8b\x08nonsense", &[0x47; 187]] {
        assert!(refused(bytes).contains("turned into pcapng by `editcap`"), "{bytes:?}");
    }
    let empty = capture(PCAP, 1, usize::MAX, &[]);
    assert!(refused(&empty).starts_with("test has no UDP packets: capture with"), "{}", refused(&empty));
    let missing = Capture::open(Path::new("/nowhere/at all.pcap")).expect_err("missing").to_string();
    assert!(missing.starts_with("cannot read /nowhere/at all.pcap: "), "{missing}");
    let mut without_clock = [[0x47, 0x1f, 0xff, 0x10].to_vec(), vec![0xff; 184]].concat().repeat(8);
    assert!(refused(&without_clock).contains("-f mpegts NEW"));
    without_clock[PACKET_BYTES] = 0;
    assert!(refused(&without_clock).contains("is no capture"));
}

mod ts_files {
    use outflow_ts::clock::PCR_MODULUS;
    use outflow_ts::packet::{Packet, set_pcr};

    use super::*;

    fn clip() -> Capture {
        parse(&Bytes::from_static(CLIP))
    }

    /// The clip, with its clock changed.
    fn with_clock(change: impl Fn(usize, u64) -> u64) -> Bytes {
        let mut bytes = CLIP.to_vec();
        for (index, packet) in bytes.chunks_exact_mut(PACKET_BYTES).enumerate() {
            let packet: &mut [u8; PACKET_BYTES] = packet.try_into().expect("its length");
            let pcr = Packet::new_checked(packet).expect("a packet").adaptation().pcr();
            if let Some(pcr) = pcr {
                set_pcr(packet, change(index, pcr));
            }
        }
        bytes.into()
    }

    fn millis(read: &Capture) -> Vec<u64> {
        read.flows[0].packets.iter().map(|packet| packet.at.as_millis()).collect()
    }

    #[test]
    fn packets_come_when_the_clock_says() {
        let read = clip();
        let [flow] = &read.flows[..] else { panic!("one flow") };
        assert_eq!((flow.name.as_str(), flow.kind, flow.not_understood), ("test", FlowKind::Ts, 0));
        assert_eq!(flow.packets.len(), (CLIP.len() / PACKET_BYTES).div_ceil(7));
        assert!(flow.packets[..flow.packets.len() - 1].iter().all(|packet| packet.bytes == 1344));
        let mut reader = TsReader::default();
        for (packet, datagram) in flow.packets.iter().zip(CLIP.chunks(DATAGRAM_BYTES)) {
            assert_eq!(packet.tag, reader.read(datagram).expect("aligned"));
        }
        assert!(millis(&read).is_sorted());
        // Where a datagram begins with a clock reference, it says when that is.
        let pcr = |packet: &[u8]| Packet::new_checked(packet).expect("a packet").adaptation().pcr();
        let clocks = flow.packets.iter().zip(CLIP.chunks(DATAGRAM_BYTES));
        let clocks: Vec<_> = clocks.filter_map(|(p, d)| Some((p.at, pcr(&d[..PACKET_BYTES])?))).collect();
        let [(first_at, first), .., (last_at, last)] = clocks[..] else { panic!("{clocks:?}") };
        let between = (last - first) * 1_000 / 27;
        assert!(last_at.since(first_at).as_nanos().abs_diff(u128::from(between)) <= 1, "{between}");
    }

    #[test]
    fn packets_behind_their_times_of_arrival_are_the_same() {
        let timed: Vec<u8> = CLIP
            .chunks_exact(PACKET_BYTES)
            .flat_map(|packet| [&[0x12, 0x47, 0x56, 0x78], packet].concat())
            .collect();
        assert_eq!(parse(&timed.into()), clip());
    }

    #[test]
    fn a_recording_may_begin_and_end_in_the_middle_of_a_packet() {
        let read = parse(&Bytes::from_static(&CLIP[100..CLIP.len() - 50]));
        assert_eq!(read.flows[0].packets.len(), (CLIP.len() / PACKET_BYTES - 2).div_ceil(7));
    }

    #[test]
    fn a_clock_that_begins_again_goes_on_at_the_rate_before() {
        let middle = CLIP.len() / PACKET_BYTES / 2;
        for offset in [-500_000_000_i64, 27_000_000 * 11] {
            let jump = |index, pcr: u64| if index < middle { pcr } else { pcr.wrapping_add_signed(offset) };
            let (jumped, straight) = (millis(&parse(&with_clock(jump))), millis(&clip()));
            assert!(jumped.is_sorted());
            // Within a gap between two references, the rate is another one.
            assert!(jumped.iter().zip(&straight).all(|(a, b)| a.abs_diff(*b) < 250), "{offset}");
        }
        let wrapping = with_clock(|_, pcr| pcr + PCR_MODULUS - 27_000_000);
        assert_eq!(millis(&parse(&wrapping)).last(), millis(&clip()).last(), "it wraps after a day");
    }

    #[test]
    fn a_file_is_opened_by_its_path() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/demo.ts");
        let read = Capture::open(&path).expect("a clip");
        assert_eq!(read.flows[0].packets, clip().flows[0].packets);
    }
}
