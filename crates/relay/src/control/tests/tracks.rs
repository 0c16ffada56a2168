//! Receivers that take the streams of a transport stream by RTP, as tracks of their own.

use outflow_media::{AccessUnit, Codec, Track};
use outflow_ts::{TsMux, TsOut};

use super::*;

const CLIP: &[u8] = include_bytes!("../../../../../assets/demo.ts");
const DATAGRAM: usize = 7 * 188;

struct Scene {
    stream: Stream,
    now: Time,
    /// What a receiver was sent: whether it is of a key frame, and the packet.
    sent: Vec<(bool, Vec<u8>)>,
    events: Vec<Event>,
}

impl Scene {
    fn new() -> Self {
        let stream = Stream::new(StreamOptions { ring_bytes: 1 << 20, ..options() });
        Scene { stream, now: Time::ZERO, sent: Vec::new(), events: Vec::new() }
    }

    fn spec() -> SinkSpec {
        SinkSpec::new(Encapsulation::Tracks, Transport::Stream)
    }

    fn join(&mut self) -> SinkKey {
        let key = self.stream.handle_join(self.now, 1, Self::spec());
        self.serve();
        key
    }

    fn sends(&mut self, packets: &[u8]) {
        for datagram in packets.chunks(DATAGRAM) {
            assert!(self.stream.handle_media(self.now, 0, BytesMut::from(datagram).into()));
            self.serve();
            self.now = self.now + Duration::from_millis(10);
        }
    }

    fn assert_that_numbers_run_on(&self) {
        let number = |(_, packet): &(bool, Vec<u8>)| RtpHeader::new_checked(packet).expect("RTP").sequence();
        let numbers: Vec<u16> = self.sent.iter().map(number).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{numbers:?}");
    }

    fn serve(&mut self) {
        loop {
            match self.stream.poll(self.now) {
                Output::Order(order) => {
                    let key = self.stream.members(&order)[0];
                    let share = self.stream.share(&order, key);
                    for (_, entry, back) in self.stream.packets(&order, share) {
                        let mut packet = entry.packet.bytes.to_vec();
                        let number = RtpHeader::new_checked(&packet).expect("RTP").sequence();
                        outflow_rtp::set_sequence(&mut packet, number.wrapping_sub(back));
                        self.sent.push((entry.packet.tag.key, packet));
                    }
                }
                Output::Event(event) => self.events.push(event),
                Output::Wait { .. } => return,
                _ => {}
            }
        }
    }
}

/// These pictures in a transport stream: their time of presentation, whether they are key frames, their bytes.
fn stream_of(track: Track, pictures: &[(i64, bool, Vec<u8>)]) -> Vec<u8> {
    let (mut mux, mut out) = (TsMux::new(&[track]).expect("it is carried"), TsOut::default());
    let mut bytes = Vec::new();
    for (number, (pts, key, data)) in (0..).zip(pictures) {
        let dts = 90_000 + 3_600 * number;
        let unit = AccessUnit { track: 0, pts: *pts, dts, key: *key, data: data.clone().into() };
        mux.push(&unit, &mut out).expect("it fits");
        while let Some(datagram) = out.next_datagram() {
            bytes.extend_from_slice(&datagram);
        }
    }
    bytes
}

/// A key frame of H.265 in a transport stream.
fn of_another_codec() -> Vec<u8> {
    let (vps, sps, pps) = (None, None, None);
    let track = Track { codec: Codec::H265 { vps, sps, pps }, ..Track::h264() };
    let data =
        [&[0, 0, 1, 0x40, 1, 1, 0, 0, 1, 0x42, 1, 1, 0, 0, 1, 0x26, 1, 0x80][..], &[7; 3_000]].concat();
    stream_of(track, &[(90_000, true, data.clone()), (93_600, true, data)])
}

/// Groups of pictures of H.264: I b P b P …, of which the b are shown before what they come behind.
fn with_b_pictures(groups: i64) -> Vec<u8> {
    let picture = |group: i64, number: i64, head: &[u8]| {
        let pts = 97_200 + 3_600 * (9 * group + number);
        (pts, number == 0, [&[0, 0, 1], head, &[7; 1_500]].concat())
    };
    let pictures = (0..groups).flat_map(|group| {
        let key = picture(group, 0, &[0x67, 66, 0, 30, 0, 0, 1, 0x68, 1, 0, 0, 1, 0x65, 0x88]);
        let pairs = (0..4).flat_map(move |pair| {
            let at = 2 * pair + 2;
            [picture(group, at, &[0x41, 0x9a]), picture(group, at - 1, &[0x01, 0x9e])]
        });
        core::iter::once(key).chain(pairs)
    });
    stream_of(Track::h264(), &pictures.collect::<Vec<_>>())
}

#[test]
fn a_receiver_begins_with_a_key_frame_and_gets_packets_that_run_on() {
    let mut scene = Scene::new();
    scene.stream.handle_source(scene.now, Format::Ts);
    let refused = scene.stream.offer(&Scene::spec()).expect_err("its tables have not come");
    assert!(refused.help.contains("try again"), "{refused}");
    scene.sends(&CLIP[..60 * DATAGRAM]);
    let Ok(Some(Format::Rtp(tracks))) = scene.stream.offer(&Scene::spec()) else { panic!("it is there") };
    assert_eq!(
        tracks.iter().map(|track| track.encoding.as_str()).collect::<Vec<_>>(),
        ["H264", "opus"],
        "AAC is coded again"
    );
    let key = scene.join();
    scene.sends(&CLIP[60 * DATAGRAM..90 * DATAGRAM]);
    assert!(scene.sent.len() > 30, "{}", scene.sent.len());
    assert!(scene.sent[..2].iter().any(|(is_key, _)| *is_key), "its first packets");
    let headers = || scene.sent.iter().map(|(_, packet)| RtpHeader::new_checked(packet).expect("RTP"));
    for track in tracks {
        let own = headers().filter(|header| header.payload_type() == track.payload_type);
        let numbers: Vec<u16> = own.map(|header| header.sequence()).collect();
        assert!(numbers.len() > 10, "{numbers:?}");
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{numbers:?}");
    }
    let branch = scene.stream.sink(key).and_then(|sink| sink.branch).expect("it is served");
    let sender = scene.stream.sender_report(scene.now, branch, 0).expect("it has begun");
    assert_eq!(
        Some(sender.ssrc),
        headers().find(|header| header.payload_type() == 96).map(|header| header.ssrc())
    );
}

#[test]
fn what_has_no_track_is_told() {
    let mut scene = Scene::new();
    scene.stream.handle_source(scene.now, Format::Ts);
    let opus = Track { codec: Codec::Opus, channels: 2, ..Track::mp2t() };
    let h265 = Track { codec: Codec::H265 { vps: None, sps: None, pps: None }, ..Track::h264() };
    let tracks = [Track::h264(), opus.clone(), opus, h265];
    let (mut mux, mut out) = (TsMux::new(&tracks).expect("they are carried"), TsOut::default());
    let head = [0, 0, 1, 0x67, 66, 0, 30, 0, 0, 1, 0x68, 1, 0, 0, 1, 0x65, 0x88];
    for number in 0..20 {
        let (pts, data) = (90_000 + 3_600 * number, [&head[..], &[7; 3_000]].concat().into());
        mux.push(&AccessUnit { track: 0, pts, dts: pts, key: true, data }, &mut out).expect("it fits");
    }
    while let Some(datagram) = out.next_datagram() {
        scene.sends(&datagram);
    }
    let key = scene.join();
    assert_eq!(scene.stream.left_out(key), ["Opus", "video H.265"], "of each kind the first goes");
}

#[test]
fn one_that_joins_before_the_source_is_served_once_it_says_what_it_carries() {
    let mut scene = Scene::new();
    scene.join();
    scene.stream.handle_source(scene.now, Format::Ts);
    scene.sends(&CLIP[..60 * DATAGRAM]);
    assert!(scene.sent.len() > 30, "{}", scene.sent.len());
}

#[test]
fn a_programme_with_another_codec_ends_receivers_and_is_there_for_the_next() {
    let mut scene = Scene::new();
    scene.stream.handle_source(scene.now, Format::Ts);
    scene.sends(&CLIP[..60 * DATAGRAM]);
    let key = scene.join();
    scene.sends(&of_another_codec());
    let ended = Event::SinkEnded { key, id: 1, end: SinkEnd::FormatChanged };
    assert!(scene.events.contains(&ended), "{:?}", scene.events);
    let Ok(Some(Format::Rtp(tracks))) = scene.stream.offer(&Scene::spec()) else { panic!("it is there") };
    assert_eq!(tracks[0].encoding, "H265");
}

#[test]
fn pictures_that_are_shown_before_those_they_come_behind_are_left_out_and_numbers_run_on() {
    let stream = with_b_pictures(8);
    let half = stream.len() / DATAGRAM / 2 * DATAGRAM;
    for joins_first in [true, false] {
        let mut scene = Scene::new();
        scene.stream.handle_source(scene.now, Format::Ts);
        if joins_first {
            scene.join();
        }
        scene.sends(&stream[..half]);
        if !joins_first {
            scene.join();
        }
        let learnt = scene.sent.len();
        scene.sends(&stream[half..]);
        let headers = scene.sent.iter().map(|(_, packet)| {
            let header = RtpHeader::new_checked(packet).expect("RTP");
            (header.timestamp(), header.payload()[0] & 0x1f)
        });
        let headers: Vec<_> = headers.collect();
        // One that was there before anything was known got the first of them.
        let from = if joins_first { learnt } else { 0 };
        let times: Vec<u32> = headers[from..].iter().map(|(timestamp, _)| *timestamp).collect();
        assert!(times.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]).cast_signed() >= 0), "{times:?}");
        assert!(times.windows(2).filter(|pair| pair[1] != pair[0]).count() >= 15, "{times:?}");
        scene.assert_that_numbers_run_on();
        let spec = scene.stream.sinks().next().map(|(_, sink)| sink.spec).expect("it is there");
        assert_eq!(spec.level.number(), 2);
    }
}

#[test]
fn sound_by_rtp_is_coded_again_for_receivers_that_have_opus_alone() {
    let mut scene = Scene::new();
    let encoding = "MPA".to_owned();
    let sound = Track { codec: Codec::MpegAudio, payload_type: 14, encoding, ..Track::h264() };
    let format = Format::Rtp(vec![Track::h264(), sound]);
    scene.stream.handle_source(scene.now, format.clone());
    let by_rtp = SinkSpec::new(Encapsulation::Rtp, Transport::Stream);
    assert_eq!(scene.stream.offer(&by_rtp), Ok(Some(format)), "others have it as it is");
    let Ok(Some(Format::Rtp(tracks))) = scene.stream.offer(&Scene::spec()) else { panic!("it is there") };
    assert_eq!(tracks.iter().map(|track| track.encoding.as_str()).collect::<Vec<_>>(), ["H264", "opus"]);
    scene.join();
    // Silence: layer III, 44.1 kHz, 128 kbit/s.
    let frame = [&[0, 0, 0, 0, 0xff, 0xfb, 0x90, 0][..], &[0; 413]].concat();
    for number in 0..40_u16 {
        let packet = |payload_type: u8, ssrc: u32, step: u32, payload: &[u8]| {
            let timestamp = step * u32::from(number);
            let header =
                outflow_rtp::PlainHeader { marker: true, payload_type, sequence: number, timestamp, ssrc };
            BytesMut::from(&[&header.emit()[..], payload].concat()[..])
        };
        let slice: &[u8] = if number % 10 == 0 { &[0x65, 0x88] } else { &[0x41, 0x9a] };
        for (track, packet) in [(0, packet(96, 1, 2_351, slice)), (1, packet(14, 2, 2_351, &frame))] {
            assert!(scene.stream.handle_media(scene.now, track, packet.into()));
            scene.serve();
        }
        scene.now = scene.now + Duration::from_millis(26);
    }
    let of = |ssrc: u32| {
        let headers = scene.sent.iter().map(|(_, packet)| RtpHeader::new_checked(packet).expect("RTP"));
        headers.filter(move |header| header.ssrc() == ssrc)
    };
    assert_eq!(of(1).count(), 40, "pictures as they came");
    let heard: Vec<_> = of(2).map(|header| (header.sequence(), header.timestamp())).collect();
    assert!((50..=52).contains(&heard.len()), "{} packets", heard.len());
    assert!(heard.windows(2).all(|pair| pair[1].1.wrapping_sub(pair[0].1) == 960), "{heard:?}");
}
