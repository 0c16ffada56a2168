use outflow_media::format::Codec;
use outflow_media::{AccessUnit, Track};

use super::*;
use crate::clock::pcr_distance;
use crate::pes::PesHeader;
use crate::{TsMux, TsOut, TsReader};

const FRAME: u64 = 3_600;
const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;

fn track(codec: Codec) -> Track {
    let encoding = String::new();
    Track {
        codec,
        payload_type: 96,
        clock_rate: 90_000,
        channels: 2,
        fmtp: String::new(),
        encoding,
        extensions: Vec::new(),
    }
}

/// `frames` frames from `start` on, with sound of another spacing.
fn clip(frames: u64, start: u64, sounds: u64) -> Bytes {
    let tracks = [track(Codec::H264 { sps: None, pps: None }), track(Codec::MpegAudio)];
    let (mut mux, mut out) = (TsMux::new(&tracks).unwrap(), TsOut::default());
    let mut bytes = BytesMut::new();
    for frame in 0..frames.max(sounds) {
        let data = [&[0, 0, 1, if frame == 0 { 0x65 } else { 0x41 }, 0x88, 0x84][..], &[7; 900]].concat();
        let dts = (start + frame * FRAME).cast_signed();
        if frame < frames {
            let unit = AccessUnit { track: 0, pts: dts + 7_200, dts, key: frame == 0, data: data.into() };
            mux.push(&unit, &mut out).unwrap();
        }
        if frame < sounds {
            let dts = (start + frame * 2_160).cast_signed();
            let data = Bytes::from_static(&[0xff, 0xfd, 0, 0]);
            let unit = AccessUnit { track: 1, pts: dts, dts, key: true, data };
            mux.push(&unit, &mut out).unwrap();
        }
        while let Some(datagram) = out.next_datagram() {
            bytes.extend_from_slice(&datagram);
        }
    }
    bytes.freeze()
}

/// All packets of `rounds` rounds, and when each datagram was due.
fn play(clip: Bytes, rounds: usize) -> (BytesMut, Vec<Duration>) {
    let length = clip.len();
    let mut player = TsLoop::new(clip).unwrap();
    let (mut out, mut due) = (BytesMut::new(), Vec::new());
    while out.len() < length * rounds {
        let before = out.len();
        due.push(player.next(&mut out));
        assert!((1..=super::super::DATAGRAM_BYTES).contains(&(out.len() - before)));
    }
    (out, due)
}

fn packets(bytes: &[u8]) -> impl Iterator<Item = Packet<'_>> {
    bytes.chunks_exact(PACKET_BYTES).map(|p| Packet::new_checked(p).unwrap())
}

fn stamps(bytes: &[u8], pid: u16) -> Vec<(u64, u64)> {
    let starts = packets(bytes).filter(|p| p.pid() == pid && p.unit_start());
    let headers = starts.map(|p| PesHeader::parse(p.payload()).unwrap());
    headers.map(|h| (h.pts.unwrap(), h.decoded_at().unwrap())).collect()
}

#[test]
fn time_stamps_and_counters_run_on() {
    // The clock wraps within the second round.
    let start = PTS_MODULUS - 15 * FRAME;
    let (bytes, _) = play(clip(10, start, 16), 4);
    let mut reader = TsReader::default();
    for datagram in bytes.chunks(PACKET_BYTES) {
        reader.read(datagram).unwrap();
    }
    assert_eq!((reader.continuity_errors(), reader.transport_errors()), (0, 0));
    let video = stamps(&bytes, VIDEO);
    let expected = (0..40).map(|frame| start + frame * FRAME);
    let expected: Vec<_> = expected.map(|dts| ((dts + 7_200) % PTS_MODULUS, dts % PTS_MODULUS)).collect();
    assert_eq!(video, expected);
    assert_eq!(stamps(&bytes, AUDIO)[16].0, pts_after(start, 10 * FRAME));
}

#[test]
fn the_clock_grows_and_packets_are_due_by_it() {
    let start = PTS_MODULUS - 15 * FRAME;
    let (bytes, due) = play(clip(10, start, 16), 5);
    assert_eq!(due[0], Duration::ZERO);
    assert!(due.is_sorted(), "{due:?}");
    let pcrs: Vec<_> = packets(&bytes).filter_map(|p| p.adaptation().pcr()).collect();
    assert!(pcrs.windows(2).all(|w| pcr_distance(w[0], w[1]) > 0));
    let rounds: i64 = pcrs.windows(2).map(|w| pcr_distance(w[0], w[1])).sum();
    let last = *due.last().unwrap();
    let apart = ticks(rounds.unsigned_abs()).abs_diff(last);
    assert!(apart < Duration::from_millis(40), "{apart:?} apart");
}

#[test]
fn every_round_begins_with_a_datagram_of_its_own() {
    let clip = clip(10, 0, 16);
    let mut player = TsLoop::new(clip.clone()).unwrap();
    assert_eq!(player.round(), Duration::from_millis(400));
    let datagrams = clip.len().div_ceil(super::super::DATAGRAM_BYTES);
    for round in 0..3 {
        let mut out = BytesMut::new();
        let due = player.next(&mut out);
        assert_eq!(due, player.round() * round);
        assert_eq!(packets(&out).next().unwrap().pid(), 0);
        for _ in 1..datagrams {
            player.next(&mut out);
        }
        assert_eq!(out.len(), clip.len());
    }
}

#[test]
fn another_one_goes_on_where_it_was() {
    let clip = clip(10, 0, 16);
    let mut player = TsLoop::new(clip.clone()).unwrap();
    let mut out = BytesMut::new();
    // Over many rounds, so that counters begin again.
    for _ in 0..500 {
        let mut other = TsLoop::new(clip.clone()).unwrap();
        assert!(other.go_on_at(player.place()));
        out.clear();
        let due = player.next(&mut out);
        let mut same = BytesMut::new();
        assert_eq!(other.next(&mut same), due);
        assert!(same == out, "at {:?}", player.place());
    }
    assert!(!player.go_on_at((0, clip.len() / PACKET_BYTES)), "it has no such packet");
}

#[test]
fn sound_that_is_longer_makes_the_round_longer_by_whole_frames() {
    // 20 times 24 ms: 456 ms from first to last.
    let player = TsLoop::new(clip(10, 0, 20)).unwrap();
    assert_eq!(player.round(), Duration::from_millis(480));
}

#[test]
fn what_is_around_the_packets_is_left_out() {
    let clip = clip(10, 0, 16);
    let around = [&[1, 2, 3][..], &clip, &clip[..100]].concat();
    let mut player = TsLoop::new(around.into()).unwrap();
    let mut out = BytesMut::new();
    while out.len() < clip.len() {
        player.next(&mut out);
    }
    assert!(out == clip);
}

#[test]
fn clips_that_cannot_be_played_are_refused() {
    let good = clip(10, 0, 16);
    let bad = |bytes: &[u8]| TsLoop::new(Bytes::copy_from_slice(bytes)).map(|_| ()).unwrap_err();
    bad(&[]);
    bad(&[0x47; 187]);
    bad(&[1; 4000]);
    assert!(bad(&good[2 * PACKET_BYTES..3 * PACKET_BYTES]).reason.contains("PAT"));
    assert!(bad(&good[..3 * PACKET_BYTES]).reason.contains("time stamps"));
    let mut misaligned = good.to_vec();
    misaligned[20 * PACKET_BYTES] = 0;
    assert_eq!(bad(&misaligned).offset, 20 * PACKET_BYTES);
    let backwards = [clip(10, 90_000, 0), clip(10, 0, 0)].concat();
    assert!(bad(&backwards).reason.contains("goes back"));
}
