use outflow_media::format::Codec;

use super::*;
use crate::packet::{PIDS, Packet};
use crate::{Coding, TsReader};

fn track(codec: Codec, encoding: &str) -> Track {
    Track {
        codec,
        payload_type: 96,
        clock_rate: 90_000,
        channels: 2,
        fmtp: String::new(),
        encoding: encoding.to_owned(),
        extensions: Vec::new(),
    }
}

fn h264() -> Track {
    let (sps, pps) = (Bytes::from_static(&[0x67, 0x42, 7]), Bytes::from_static(&[0x68, 0xce]));
    track(Codec::H264 { sps: Some(sps), pps: Some(pps) }, "H264")
}

fn aac() -> Track {
    let config = Bytes::from_static(&[0x11, 0x90]);
    let codec = Codec::Aac { config, size_length: 13, index_length: 3, index_delta_length: 3 };
    track(codec, "mpeg4-generic")
}

fn other() -> Track {
    track(Codec::Other { video: true }, "VP8")
}

const IDR: [u8; 9] = [0, 0, 1, 0x65, 0x88, 0x84, 9, 9, 9];
const P: [u8; 9] = [0, 0, 1, 0x41, 0x9a, 0x24, 9, 9, 9];

struct Sender {
    mux: TsMux,
    out: TsOut,
}

impl Sender {
    fn new(tracks: &[Track]) -> Self {
        Sender { mux: TsMux::new(tracks).unwrap(), out: TsOut::default() }
    }

    fn push(&mut self, track: usize, dts: u64, key: bool, data: &[u8]) -> Vec<u8> {
        let (time, data) = (dts.cast_signed(), Bytes::copy_from_slice(data));
        let unit = AccessUnit { track, pts: time, dts: time, key, data };
        self.mux.push(&unit, &mut self.out).unwrap();
        let mut all = Vec::new();
        while let Some(datagram) = self.out.next_datagram() {
            assert!(datagram.len() <= DATAGRAM_BYTES && datagram.len().is_multiple_of(PACKET_BYTES));
            all.extend_from_slice(&datagram);
        }
        all
    }
}

fn packets(bytes: &[u8]) -> impl Iterator<Item = Packet<'_>> {
    bytes.chunks_exact(PACKET_BYTES).map(|p| Packet::new_checked(p).unwrap())
}

fn pids(bytes: &[u8]) -> Vec<u16> {
    packets(bytes).map(|p| p.pid()).collect()
}

fn pcrs(bytes: &[u8]) -> Vec<u64> {
    packets(bytes).filter_map(|p| p.adaptation().pcr()).collect()
}

/// The elementary stream on a PID, without PES headers.
fn elementary(bytes: &[u8], pid: u16) -> Vec<u8> {
    let payload = |p: Packet<'_>| {
        let start = if p.unit_start() { PesHeader::parse(p.payload()).unwrap().header_bytes } else { 0 };
        p.payload()[start..].to_vec()
    };
    packets(bytes).filter(|p| p.pid() == pid).flat_map(payload).collect()
}

#[test]
fn the_reader_understands_what_the_mux_made() {
    let mut sender = Sender::new(&[h264(), aac()]);
    let mut reader = TsReader::default();
    for number in 0..50u64 {
        let key = number % 10 == 0;
        let mut data = if key { IDR.to_vec() } else { P.to_vec() };
        data.extend(vec![7; 300 * number as usize]);
        let video = sender.push(0, 90_000 + number * 3600, key, &data);
        for (index, datagram) in video.chunks(DATAGRAM_BYTES).enumerate() {
            let tag = reader.read(datagram).unwrap();
            assert_eq!((tag.frame, tag.first), (number as u32 + 1, index == 0));
            assert_eq!(tag.key, key, "known from the first datagram on");
        }
        let audio = sender.push(1, 90_000 + number * 3600, true, &[5; 400]);
        assert_eq!(reader.read(&audio).unwrap().kind, outflow_media::Kind::Data);
    }
    let programme = reader.programme().unwrap();
    let codings: Vec<_> = programme.streams.iter().map(|s| s.coding).collect();
    assert_eq!(codings, [Coding::H264, Coding::Audio("AAC")]);
    assert_eq!((reader.continuity_errors(), reader.transport_errors()), (0, 0));
    assert!(reader.preamble().is_some());
}

#[test]
fn elementary_streams_arrive_whole() {
    let mut sender = Sender::new(&[h264(), aac()]);
    for size in (0..1000).step_by(7) {
        let data = [&IDR[..], &vec![7; size]].concat();
        let video = elementary(&sender.push(0, 0, true, &data), 0x100);
        let expected =
            [&[0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x67, 0x42, 7, 0, 0, 0, 1, 0x68, 0xce], &data[..]].concat();
        assert!(video == expected, "{size} bytes of video");
        let audio = elementary(&sender.push(1, 0, true, &vec![3; size + 1]), 0x101);
        assert_eq!(audio[..4], [0xff, 0xf1, 0x4c, 0x80]);
        assert!(audio[7..] == vec![3; size + 1], "{size} bytes of audio");
    }
}

#[test]
fn tables_stand_before_key_frames_and_at_least_every_100_ms() {
    let mut sender = Sender::new(&[h264(), aac()]);
    assert_eq!(pids(&sender.push(0, 0, true, &IDR))[..2], [0, PMT_PID]);
    assert_eq!(pids(&sender.push(0, 3600, false, &P)), [0x100]);
    assert_eq!(pids(&sender.push(0, 7200, true, &IDR))[..2], [0, PMT_PID]);
    assert_eq!(pids(&sender.push(1, 7200 + 8999, true, &[1]))[..1], [0x100], "the clock alone");
    assert_eq!(pids(&sender.push(1, 7200 + 9000, true, &[1]))[..2], [0, PMT_PID]);
}

#[test]
fn the_clock_is_behind_and_never_goes_back() {
    let mut sender = Sender::new(&[aac(), h264()]);
    let dts = 900_000;
    assert_eq!(pcrs(&sender.push(1, dts, true, &IDR)), [(dts - CLOCK_DELAY) * 300]);
    assert_eq!(pcrs(&sender.push(0, dts + 3599, true, &[1])), [], "not yet");
    let alone = sender.push(0, dts + 3600, true, &[1]);
    assert_eq!(pids(&alone), [0x101, 0x100], "on the PID of the video");
    assert!(!packets(&alone).next().unwrap().has_payload());
    assert_eq!(pcrs(&alone), [(dts + 3600 - CLOCK_DELAY) * 300]);
    assert_eq!(pcrs(&sender.push(1, dts + 3000, false, &P)), [], "it would go back");
    assert_eq!(pcrs(&sender.push(1, dts + 7200, false, &P)).len(), 1);
    let mut continuity = super::super::continuity::Continuity::new();
    for packet in packets(&alone) {
        continuity.step(&packet);
    }
    assert_eq!(continuity.errors(), 0);
}

#[test]
fn time_that_begins_again_is_marked() {
    let mut sender = Sender::new(&[h264()]);
    sender.push(0, 9_000_000, true, &IDR);
    let out = sender.push(0, 0, false, &P);
    let packet = packets(&out).find(|p| p.pid() == 0x100).unwrap();
    assert!(packet.adaptation().discontinuity());
    assert_eq!(packet.adaptation().pcr(), Some((PTS_MODULUS - CLOCK_DELAY) * 300));
}

#[test]
fn tracks_that_cannot_be_carried_are_left_out() {
    let mut sender = Sender::new(&[other(), aac()]);
    assert!(!sender.mux.carries(0) && sender.mux.carries(1) && !sender.mux.carries(2));
    assert_eq!(sender.push(0, 0, true, &IDR), []);
    assert_eq!(sender.push(7, 0, true, &IDR), []);
    let audio = sender.push(1, 0, true, &[1, 2, 3]);
    assert_eq!(pids(&audio), [0, PMT_PID, 0x100]);
    assert_eq!(pcrs(&audio).len(), 1, "sound alone carries the clock");
    let error = TsMux::new(&[other()]).unwrap_err();
    assert!(error.to_string().contains("VP8"), "{error}");
    assert!(TsMux::new(&[]).is_err());
    assert!(TsMux::new(&vec![aac(); PIDS]).is_ok());
}

#[test]
fn units_that_cannot_be_carried_are_refused() {
    let mut mux =
        TsMux::new(&[h264(), aac(), track(Codec::MpegAudio, "MPA"), track(Codec::Opus, "opus")]).unwrap();
    let mut out = TsOut::default();
    let large = vec![0; 70_000];
    for (track, data) in
        [(0, &[][..]), (0, &[1, 2, 3]), (1, &large), (1, &[]), (2, &[0, 1]), (2, &[]), (3, &large), (3, &[])]
    {
        let unit = AccessUnit { track, pts: 0, dts: 0, key: true, data: Bytes::copy_from_slice(data) };
        assert!(mux.push(&unit, &mut out).is_err(), "track {track}, {} bytes", data.len());
    }
    assert_eq!(out.next_datagram(), None, "nothing half done");
}

#[test]
fn lower_sampling_frequencies_of_mpeg_audio_are_described() {
    let mut sender = Sender::new(&[track(Codec::MpegAudio, "MPA")]);
    let mut reader = TsReader::default();
    let mut stream_type = |sender: &mut Sender, second| {
        reader.read(&sender.push(0, 0, true, &[0xff, second, 0, 0])).unwrap();
        reader.programme().unwrap().streams[0].stream_type
    };
    assert_eq!(stream_type(&mut sender, 0xfd), 0x03);
    assert_eq!(stream_type(&mut sender, 0xf5), 0x04);
    assert_eq!(stream_type(&mut sender, 0xf5), 0x04);
}
