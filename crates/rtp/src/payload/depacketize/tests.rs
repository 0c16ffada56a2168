use super::*;
use crate::PlainHeader;
use crate::limits::UNIT_BYTES_MAX;

fn track(codec: Codec, clock_rate: u32) -> Track {
    Track {
        codec,
        payload_type: 96,
        clock_rate,
        channels: 0,
        fmtp: String::new(),
        encoding: String::new(),
        extensions: Vec::new(),
    }
}

fn h264() -> Track {
    track(Codec::H264 { sps: None, pps: None }, 90_000)
}

fn aac() -> Track {
    let config = Bytes::from_static(&[0x11, 0x90]);
    track(Codec::Aac { config, size_length: 13, index_length: 3, index_delta_length: 3 }, 48_000)
}

/// A depacketizer, and what it told.
struct Receiver {
    depacketizer: Depacketizer,
    sequence: u16,
    units: Vec<DepacketizedUnit>,
}

impl Receiver {
    fn new(track: &Track) -> Self {
        let depacketizer = Depacketizer::new(track).expect("a codec that can be taken apart");
        Receiver { depacketizer, sequence: 65_533, units: Vec::new() }
    }

    fn send(&mut self, timestamp: u32, marker: bool, payload: &[u8]) {
        self.sequence = self.sequence.wrapping_add(1);
        self.send_as(self.sequence, timestamp, marker, payload);
    }

    fn send_as(&mut self, sequence: u16, timestamp: u32, marker: bool, payload: &[u8]) {
        let header = PlainHeader { marker, payload_type: 96, sequence, timestamp, ssrc: 1 };
        let packet = Bytes::from([&header.emit()[..], payload].concat());
        self.depacketizer.handle(packet, |unit| self.units.push(unit));
    }

    fn lose(&mut self) {
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Sends whole frames until a loss is given up, then takes what was told.
    fn settle(&mut self, payload: &[u8]) -> Vec<DepacketizedUnit> {
        for i in 0..10 {
            self.send(1_000_000 + i, true, payload);
        }
        let mut units = std::mem::take(&mut self.units);
        units.retain(|unit| unit.timestamp < 1_000_000);
        units
    }

    fn incomplete(&self) -> u64 {
        self.depacketizer.dropped().incomplete
    }
}

const IDR: [u8; 3] = [0x65, 0x88, 0x84];
const P: [u8; 3] = [0x41, 0x9a, 0x24];

fn unit(timestamp: u32, key: bool, data: &[u8]) -> DepacketizedUnit {
    DepacketizedUnit { timestamp, data: Bytes::copy_from_slice(data), key }
}

/// NAL units as a byte stream.
fn annex_b(units: &[&[u8]]) -> Vec<u8> {
    units.iter().flat_map(|unit| [&[0, 0, 0, 1][..], unit].concat()).collect()
}

#[test]
fn h264_units_are_put_together_from_all_structures() {
    let mut receiver = Receiver::new(&h264());
    receiver.send(0, false, &[0x09, 0xf0]);
    receiver.send(0, false, &[24, 0, 2, 0x67, 1, 0, 2, 0x68, 2]);
    receiver.send(0, false, &[0x7c, 0x85, 0x88]);
    receiver.send(0, false, &[0x7c, 0x05, 0x84]);
    receiver.send(0, true, &[0x7c, 0x45, 0x99]);
    receiver.send(3000, true, &P);
    let key = annex_b(&[&[0x67, 1], &[0x68, 2], &[0x65, 0x88, 0x84, 0x99]]);
    assert_eq!(receiver.units, [unit(0, true, &key), unit(3000, false, &annex_b(&[&P]))]);
    assert_eq!(receiver.depacketizer.dropped(), Dropped::default());
}

#[test]
fn parameter_sets_are_put_in_front_of_key_frames_that_lack_them() {
    let (sps, pps) = (Bytes::from_static(&[0x67, 1]), Bytes::from_static(&[0x68, 2]));
    let mut receiver = Receiver::new(&track(Codec::H264 { sps: Some(sps), pps: Some(pps) }, 90_000));
    receiver.send(0, true, &IDR);
    assert_eq!(receiver.units[0].data, annex_b(&[&[0x67, 1], &[0x68, 2], &IDR]));
    // New ones in a packet of their own, with a marker and a timestamp of their own even.
    receiver.send(3000, true, &[24, 0, 2, 0x67, 3, 0, 2, 0x68, 4]);
    receiver.send(6000, true, &IDR);
    receiver.send(9000, true, &P);
    receiver.send(12_000, true, &IDR);
    assert_eq!(receiver.units[1].data, annex_b(&[&[0x67, 3], &[0x68, 4], &IDR]));
    assert_eq!(receiver.units[2].data, annex_b(&[&P]));
    assert_eq!(receiver.units[3].data, annex_b(&[&[0x67, 3], &[0x68, 4], &IDR]));
}

#[test]
fn units_end_with_the_timestamp_where_there_is_no_marker() {
    let mut receiver = Receiver::new(&h264());
    receiver.send(0, false, &IDR);
    receiver.send(3000, false, &P);
    receiver.send(6000, false, &P);
    assert_eq!(receiver.units.len(), 2);
    receiver.depacketizer.flush(|unit| receiver.units.push(unit));
    assert_eq!(receiver.units.len(), 3);
}

#[test]
fn a_unit_with_a_lost_packet_is_dropped_as_a_whole() {
    let mut receiver = Receiver::new(&h264());
    receiver.send(0, true, &IDR);
    receiver.send(3000, false, &[0x5c, 0x81, 0x9a]);
    receiver.lose();
    receiver.send(3000, true, &[0x5c, 0x41, 9]);
    receiver.send(6000, true, &P);
    let timestamps: Vec<_> = receiver.settle(&P).iter().map(|u| u.timestamp).collect();
    assert_eq!(timestamps, [0, 6000]);
    assert_eq!(receiver.incomplete(), 1);
}

#[test]
fn a_unit_whose_head_or_tail_is_lost_is_dropped() {
    let mut receiver = Receiver::new(&h264());
    receiver.send(0, false, &[0x5c, 0x01, 9]);
    receiver.send(0, true, &[0x5c, 0x41, 9]);
    receiver.send(3000, false, &[0x5c, 0x81, 0x9a]);
    receiver.lose();
    receiver.send(6000, true, &P);
    let timestamps: Vec<_> = receiver.settle(&P).iter().map(|u| u.timestamp).collect();
    assert_eq!(timestamps, [6000]);
    assert_eq!(receiver.incomplete(), 2);
}

#[test]
fn reordered_packets_are_put_in_order() {
    let mut receiver = Receiver::new(&h264());
    receiver.send_as(1, 0, true, &IDR);
    receiver.send_as(4, 3000, true, &[0x5c, 0x41, 3]);
    receiver.send_as(3, 3000, false, &[0x5c, 0x01, 2]);
    receiver.send_as(2, 3000, false, &[0x5c, 0x81, 0x9a]);
    receiver.send_as(2, 3000, false, &[0x5c, 0x81, 0x9a]);
    assert_eq!(receiver.units[1], unit(3000, false, &annex_b(&[&[0x41, 0x9a, 2, 3]])));
    assert_eq!(receiver.depacketizer.dropped(), Dropped { late: 1, ..Dropped::default() });
}

#[test]
fn malformed_packets_spoil_their_unit_and_are_counted() {
    let mut receiver = Receiver::new(&h264());
    receiver.send(0, false, &IDR);
    receiver.send(0, true, &[24, 0, 9, 1]);
    receiver.send(3000, true, &P);
    assert_eq!(receiver.units, [unit(3000, false, &annex_b(&[&P]))]);
    let dropped = receiver.depacketizer.dropped();
    assert_eq!((dropped.malformed, dropped.incomplete), (1, 1));
    receiver.depacketizer.handle(Bytes::from_static(b"x"), |_| panic!("no unit"));
    assert_eq!(receiver.depacketizer.dropped().malformed, 2);
}

#[test]
fn units_without_end_do_not_grow_without_bound() {
    let mut receiver = Receiver::new(&h264());
    receiver.send(0, false, &[0x7c, 0x85, 0x88]);
    let fragment = [&[0x7c, 0x05][..], &[7; 60_000]].concat();
    for _ in 0..UNIT_BYTES_MAX / 60_000 + 10 {
        receiver.send(0, false, &fragment);
    }
    receiver.send(0, true, &[0x7c, 0x45, 9]);
    receiver.send(3000, true, &P);
    assert_eq!(receiver.units.len(), 1);
    assert_eq!(receiver.depacketizer.dropped(), Dropped { too_large: 1, ..Dropped::default() });
}

#[test]
fn another_source_begins_again() {
    let mut receiver = Receiver::new(&h264());
    receiver.send_as(100, 0, false, &IDR);
    let header = PlainHeader { marker: true, payload_type: 96, sequence: 90, timestamp: 5, ssrc: 2 };
    let packet = Bytes::from([&header.emit()[..], &IDR].concat());
    receiver.depacketizer.handle(packet, |unit| receiver.units.push(unit));
    assert_eq!(receiver.units.len(), 2);
}

#[test]
fn h265_units_are_put_together() {
    let mut receiver = Receiver::new(&track(Codec::H265 { vps: None, sps: None, pps: None }, 90_000));
    receiver.send(0, false, &[0x60, 1, 0, 2, 0x40, 1, 0, 2, 0x42, 1, 0, 2, 0x44, 1]);
    receiver.send(0, false, &[0x62, 1, 0x93, 0x80]);
    receiver.send(0, true, &[0x62, 1, 0x53, 7]);
    receiver.send(3000, true, &[0x02, 1, 0x80]);
    receiver.send(6000, true, &[0x26, 1, 0x80]);
    let sets: [&[u8]; 3] = [&[0x40, 1], &[0x42, 1], &[0x44, 1]];
    let first = annex_b(&[sets[0], sets[1], sets[2], &[0x26, 1, 0x80, 7]]);
    let third = annex_b(&[sets[0], sets[1], sets[2], &[0x26, 1, 0x80]]);
    let second = annex_b(&[&[0x02, 1, 0x80]]);
    assert_eq!(receiver.units, [unit(0, true, &first), unit(3000, false, &second), unit(6000, true, &third)]);
}

#[test]
fn mpeg_pictures_are_put_together() {
    let mut receiver = Receiver::new(&track(Codec::MpegVideo, 90_000));
    receiver.send(0, true, &[0, 0, 0x19, 0, 0, 0, 1, 5]);
    receiver.send(3000, false, &[0, 0, 0x11, 0, 0, 0, 1, 0, 0, 8]);
    receiver.send(3000, true, &[0, 0, 0x09, 0, 0, 0, 1, 1]);
    assert_eq!(receiver.units, [unit(3000, true, &[0, 0, 1, 0, 0, 8, 0, 0, 1, 1])]);
    assert_eq!(receiver.incomplete(), 1, "the one without its start");
}

#[test]
fn aac_packets_hold_several_frames_or_a_part_of_one() {
    let mut receiver = Receiver::new(&aac());
    // Two headers of 16 bits: sizes 2 and 3.
    receiver.send(0, true, &[0, 32, 0, 2 << 3, 0, 3 << 3, 1, 2, 3, 4, 5]);
    assert_eq!(receiver.units, [unit(0, true, &[1, 2]), unit(1024, true, &[3, 4, 5])]);
    // The second one after a gap of two frames (interleaving).
    receiver.send(4096, true, &[0, 32, 0, 1 << 3, 0, 1 << 3 | 2, 8, 9]);
    assert_eq!(receiver.units[3], unit(4096 + 3 * 1024, true, &[9]));
    receiver.units.clear();
    receiver.send(9000, false, &[0, 16, 0, 4 << 3, 1, 2]);
    receiver.send(9000, true, &[0, 16, 0, 4 << 3, 3, 4]);
    assert_eq!(receiver.units, [unit(9000, true, &[1, 2, 3, 4])]);
}

#[test]
fn aac_fragments_with_a_loss_and_malformed_headers_are_dropped() {
    let frame = [0, 16, 0, 1 << 3, 7];
    let mut receiver = Receiver::new(&aac());
    receiver.send(0, false, &[0, 16, 0, 6 << 3, 1, 2]);
    receiver.lose();
    receiver.send(0, true, &[0, 16, 0, 6 << 3, 5, 6]);
    assert_eq!(receiver.settle(&frame), []);
    assert_eq!(receiver.incomplete(), 1);
    for malformed in [&[0][..], &[0, 0], &[0, 16, 0], &[0, 32, 0, 8, 0, 0x80, 1], &[0xff, 0xff, 1]] {
        let before = receiver.depacketizer.dropped().malformed;
        receiver.send(0, true, malformed);
        assert_eq!(receiver.depacketizer.dropped().malformed, before + 1, "{malformed:?}");
    }
}

#[test]
fn mpeg_audio_is_passed_on_or_put_together() {
    let mut receiver = Receiver::new(&track(Codec::MpegAudio, 90_000));
    // Layer III, 44.1 kHz, 128 kbit/s: 417 bytes.
    let mut frame = vec![7; 417];
    frame[..3].copy_from_slice(&[0xff, 0xfb, 0x90]);
    receiver.send(0, false, &[&[0, 0, 0, 0][..], &frame].concat());
    receiver.send(2351, false, &[&[0, 0, 0, 0][..], &frame[..300]].concat());
    receiver.send(2351, false, &[&[0, 0, 1, 44][..], &frame[300..]].concat());
    assert_eq!(receiver.units, [unit(0, true, &frame), unit(2351, true, &frame)]);
    receiver.send(5000, false, &[&[0, 0, 0, 0][..], &frame[..300]].concat());
    receiver.send(7000, false, &[&[0, 0, 0, 0][..], &frame].concat());
    assert_eq!((receiver.units.len(), receiver.incomplete()), (3, 1));
}

#[test]
fn opus_packets_are_units() {
    let mut receiver = Receiver::new(&track(Codec::Opus, 48_000));
    receiver.send(960, true, b"abc");
    assert_eq!(receiver.units, [unit(960, true, b"abc")]);
    assert!(Depacketizer::new(&track(Codec::Mp2t, 90_000)).is_none());
    assert!(Depacketizer::new(&track(Codec::Other { video: true }, 90_000)).is_none());
}
