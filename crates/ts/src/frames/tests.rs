use bytes::BytesMut;

use super::*;
use crate::packet::Header;
use crate::pes::PesHeader;
use crate::psi::{emit_packets, emit_pat, emit_pmt};
use crate::{PACKET_BYTES, TsReader};

const VIDEO: u16 = 0x100;
const PMT: u16 = 0x1000;

const DELIMITER: [u8; 6] = [0, 0, 0, 1, 9, 0xf0];
const IDR: [u8; 10] = [0, 0, 1, 0x65, 0x88, 0x84, 9, 9, 9, 9];
const P: [u8; 10] = [0, 0, 1, 0x41, 0x9a, 0x24, 9, 9, 9, 9];
const B: [u8; 10] = [0, 0, 1, 0x01, 0x9e, 0x41, 9, 9, 9, 9];

struct Bench {
    reader: TsReader,
    frames: TsFrames,
    continuity: u8,
    pts: u64,
}

impl Bench {
    fn new() -> Self {
        let mut bench =
            Bench { reader: TsReader::default(), frames: TsFrames::default(), continuity: 0, pts: 0 };
        let pmt = emit_pmt(1, 0, VIDEO, &[(0x1b, VIDEO, vec![])]).unwrap();
        for (section, pid) in [(emit_pat(1, 0, 1, PMT), 0), (pmt, PMT)] {
            let mut out = BytesMut::new();
            emit_packets(&section, pid, &mut 0, &mut out);
            bench.packet(&out);
        }
        bench
    }

    fn packet(&mut self, bytes: &[u8]) -> Part {
        let mut found = Vec::new();
        self.reader.read_into(bytes, &mut found).unwrap();
        self.frames.packet(bytes, &found[0])
    }

    /// The packets of a PES packet, with a time of its own or none.
    fn pes(&mut self, has_time: bool, data: &[u8]) -> Vec<Bytes> {
        self.pts += 3600;
        let mut pes = BytesMut::from(&[0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0][..]);
        if has_time {
            pes.clear();
            PesHeader::emit(0xe0, self.pts, self.pts, None, &mut pes).unwrap();
        }
        pes.extend_from_slice(data);
        let mut header = Header { pid: VIDEO, unit_start: true, ..Header::default() };
        let mut rest = &pes[..];
        let mut packets = Vec::new();
        while !rest.is_empty() {
            header.continuity = self.continuity;
            self.continuity = (self.continuity + 1) & 15;
            let mut out = BytesMut::new();
            header.emit(&mut out, &mut rest);
            packets.push(out.freeze());
            header.unit_start = false;
        }
        packets
    }

    /// What is told after each packet of one: whether a frame starts with it, and the layer.
    fn read(&mut self, packets: &[Bytes]) -> Vec<(bool, Option<u8>)> {
        let mut read = |packet: &Bytes| {
            let part = self.packet(packet);
            assert!(part.is_main);
            (part.starts, self.frames.told().map(|told| told.layer))
        };
        packets.iter().map(&mut read).collect()
    }

    fn picture(&mut self, has_time: bool, data: &[u8]) -> Vec<(bool, Option<u8>)> {
        let packets = self.pes(has_time, data);
        self.read(&packets)
    }
}

#[test]
fn frames_begin_with_their_pes_packets_and_show_their_layer_with_a_slice() {
    let mut bench = Bench::new();
    assert_eq!(bench.picture(true, &[&DELIMITER[..], &IDR].concat()), [(true, Some(0))]);
    let late = [&DELIMITER[..], &[0xff; 300], &P].concat();
    assert_eq!(bench.picture(true, &late), [(true, None), (false, Some(1))]);
    assert_eq!(bench.picture(true, &[&DELIMITER[..], &B].concat()), [(true, Some(2))]);
    assert_eq!((bench.frames.layers(), bench.frames.number(), bench.frames.counter()), (3, 3, Some(3)));
}

#[test]
fn a_pes_packet_without_a_time_goes_on_with_its_frame() {
    let mut bench = Bench::new();
    bench.picture(true, &[&DELIMITER[..], &IDR].concat());
    assert_eq!(bench.picture(false, &[0x55; 200]), [(false, Some(0)); 2]);
    let filled = bench.frames.fill(bench.continuity.wrapping_sub(1), 2);
    for packet in filled.chunks(PACKET_BYTES) {
        assert!(!bench.packet(packet).starts);
    }
    bench.continuity += 2;
    assert_eq!(bench.picture(true, &P), [(true, Some(1))]);
    assert_eq!(bench.frames.layers(), 3);
}

#[test]
fn two_access_units_in_a_pes_packet_are_not_parted_until_the_source_begins_again() {
    let mut bench = Bench::new();
    bench.picture(true, &[&DELIMITER[..], &IDR].concat());
    let both = [&DELIMITER[..], &P, &[9; 200], &DELIMITER, &B].concat();
    bench.picture(true, &both);
    assert_eq!(bench.frames.layers(), 1);
    assert_eq!(bench.picture(true, &P), [(true, Some(0))], "there is one layer");
    bench.frames.restart();
    bench.picture(true, &P);
    assert_eq!(bench.frames.layers(), 3);
    bench.picture(true, &[&P[..], &DELIMITER, &B].concat());
    assert_eq!(bench.frames.layers(), 1, "in one packet, too");
}

#[test]
fn what_a_loss_has_made_of_frames_is_no_reason() {
    let mut bench = Bench::new();
    bench.picture(true, &[&DELIMITER[..], &IDR].concat());
    let long = [&DELIMITER[..], &P, &[9; 400], &P].concat();
    let packets = bench.pes(true, &long);
    // Its first packet is lost: that a frame has begun shows within it.
    bench.read(&packets[1..]);
    assert_eq!(bench.frames.layers(), 3);
}

#[test]
fn what_a_silence_has_made_of_frames_is_no_reason() {
    let mut bench = Bench::new();
    bench.picture(true, &[&DELIMITER[..], &IDR].concat());
    let long = [&DELIMITER[..], &P, &[9; 400], &P].concat();
    let packets = bench.pes(true, &long);
    assert!(!bench.reader.resume(&packets[1]), "its first packet came while nothing was heard");
    bench.read(&packets[1..]);
    assert_eq!((bench.frames.layers(), bench.reader.continuity_errors()), (3, 0));
}

#[test]
fn scrambled_video_has_one_layer() {
    let mut bench = Bench::new();
    bench.picture(true, &[&DELIMITER[..], &IDR].concat());
    let mut packet = bench.pes(true, &P).remove(0).to_vec();
    packet[3] |= 0x80;
    bench.packet(&packet);
    assert_eq!((bench.frames.layers(), bench.frames.told().map(|told| told.layer)), (1, Some(0)));
}

#[test]
fn what_never_shows_counts_as_of_the_lowest_layer() {
    let mut bench = Bench::new();
    bench.picture(true, &[&DELIMITER[..], &IDR].concat());
    let told = bench.picture(true, &[&DELIMITER[..], &[0xff; 184 * UNTOLD_PACKETS_MAX]].concat());
    let shown = told.iter().position(|(_, layer)| *layer == Some(0));
    assert_eq!(shown, Some(UNTOLD_PACKETS_MAX - 1));
}
