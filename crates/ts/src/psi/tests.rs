use super::*;
use crate::packet::{PACKET_BYTES, Packet};

fn pmt(descriptors: usize) -> Vec<u8> {
    let streams = [(0x1b, 0x100, vec![]), (0x0f, 0x101, vec![0x0a; descriptors])];
    emit_pmt(1, 3, 0x100, &streams).unwrap()
}

fn packets(section: &[u8], pid: u16) -> BytesMut {
    let mut out = BytesMut::new();
    emit_packets(section, pid, &mut 14, &mut out);
    out
}

/// The sections told by the payloads of these packets.
fn sections(packets: &[u8]) -> Vec<Vec<u8>> {
    let mut assembler = SectionAssembler::default();
    let mut told = Vec::new();
    for bytes in packets.chunks_exact(PACKET_BYTES) {
        let packet = Packet::new_checked(bytes).unwrap();
        assembler.push(packet.payload(), packet.unit_start(), |s| told.push(s.to_vec()));
    }
    told
}

#[test]
fn the_checksum_is_that_of_the_catalogue() {
    assert_eq!(crc32(b"123456789"), 0x0376_e6e7);
}

#[test]
fn a_pat_is_read_as_it_was_written() {
    let section = emit_pat(7, 31, 1, 0x1000);
    let pat = Pat::new_checked(&section).unwrap();
    assert_eq!((pat.transport_stream(), pat.version(), pat.number()), (7, 31, 0));
    assert!(pat.is_current());
    assert_eq!(pat.programmes().collect::<Vec<_>>(), [(1, 0x1000)]);
}

#[test]
fn a_pmt_is_read_as_it_was_written() {
    let streams = [(0x1b, 0x100, vec![]), (0x06, 0x1ffe, vec![5, 4, b'O', b'p', b'u', b's', 0x7f, 0])];
    let section = emit_pmt(2, 1, 0x100, &streams).unwrap();
    let pmt = Pmt::new_checked(&section).unwrap();
    assert_eq!((pmt.programme(), pmt.version(), pmt.pcr_pid()), (2, 1, 0x100));
    assert_eq!(pmt.descriptors().count(), 0);
    let read: Vec<_> = pmt.streams().collect();
    assert_eq!((read[0].stream_type, read[0].pid), (0x1b, 0x100));
    assert_eq!((read[1].stream_type, read[1].pid), (0x06, 0x1ffe));
    let descriptors: Vec<_> = read[1].descriptors.collect();
    assert_eq!(descriptors, [(5, &b"Opus"[..]), (0x7f, &[][..])]);
}

#[test]
fn a_section_over_several_packets_is_put_together() {
    let section = pmt(600);
    let bytes = packets(&section, 0x1000);
    assert_eq!(bytes.len(), 4 * PACKET_BYTES);
    let continuity: Vec<_> =
        bytes.chunks_exact(PACKET_BYTES).map(|p| Packet::new_checked(p).unwrap().continuity()).collect();
    assert_eq!(continuity, [14, 15, 0, 1]);
    assert_eq!(sections(&bytes), [section]);
}

#[test]
fn sections_may_share_packets() {
    let (long, short) = (pmt(200), pmt(3));
    let all = [&long[..], &short, &short].concat();
    let (head, tail) = all.split_at(183);
    let mut assembler = SectionAssembler::default();
    let mut told = Vec::new();
    assembler.push(&[&[0], head].concat(), true, |s| told.push(s.to_vec()));
    assert!(assembler.is_inside() && told.is_empty());
    let pointer = u8::try_from(long.len() - head.len()).unwrap();
    assembler.push(&[&[pointer], tail, &[0xff; 9]].concat(), true, |s| told.push(s.to_vec()));
    assert_eq!(told, [long, short.clone(), short]);
    assert!(!assembler.is_inside());
}

#[test]
fn a_section_that_begins_with_the_last_byte_of_a_packet_is_read() {
    let short = pmt(0);
    let mut assembler = SectionAssembler::default();
    let mut told = 0;
    assembler.push(&[0, short[0]], true, |_| told += 1);
    assembler.push(&short[1..], false, |_| told += 1);
    assert_eq!(told, 1);
}

#[test]
fn nothing_is_told_of_a_section_whose_start_was_lost() {
    let bytes = packets(&pmt(600), 0x1000);
    assert_eq!(sections(&bytes[PACKET_BYTES..]).len(), 0);
    let twice = [&bytes[..2 * PACKET_BYTES], &bytes[..]].concat();
    assert_eq!(sections(&twice).len(), 1);
}

#[test]
fn lengths_beyond_the_limit_are_passed_over() {
    let mut assembler = SectionAssembler::default();
    let mut told = 0;
    for payload in [&[0, 2, 0xbf, 0xff, 1, 2, 3][..], &[200, 1], &[], &[0, 2, 0xb0, 0, 2, 0xb0, 0]] {
        assembler.push(payload, true, |_| told += 1);
        assembler.push(&[0; 184], false, |_| told += 1);
        assert!(assembler.buffer.len() <= SECTION_BYTES_MAX);
    }
    assert_eq!(told, 0);
}

#[test]
fn damaged_tables_are_refused() {
    let good = pmt(9);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        assert!(Pmt::new_checked(&bad).is_err(), "byte {at}");
        assert!(Pmt::new_checked(&good[..at]).is_err(), "cut at {at}");
    }
    assert!(Pat::new_checked(&good).is_err(), "another table");
    assert!(Pat::new_checked(&section(PAT_TABLE, 1, 0, &[0, 1, 2])).is_err());
    assert!(Pmt::new_checked(&section(PMT_TABLE, 1, 0, &[0xe1, 0, 0xf0, 9, 1])).is_err());
    assert!(
        Pmt::new_checked(&section(PMT_TABLE, 1, 0, &[0xe1, 0, 0xf0, 0, 0x1b, 0xe1, 0, 0xf0, 1])).is_err()
    );
    assert!(Pmt::new_checked(&section(PMT_TABLE, 1, 0, &[0xe1])).is_err());
}

#[test]
fn more_than_a_section_holds_is_not_written() {
    let streams: Vec<_> = (0..300).map(|i| (0x0f, 0x100 + i, vec![])).collect();
    assert_eq!(emit_pmt(1, 0, 0x100, &streams), None);
}
