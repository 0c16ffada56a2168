use super::*;
use crate::psi::{emit_packets, emit_pat, emit_pmt};

/// PAT with these programmes (number, PID), and a valid checksum.
fn pat(programmes: &[(u16, u16)], version: u8) -> Vec<u8> {
    let mut section = emit_pat(1, version, 0, 0);
    section.truncate(8);
    for (number, pid) in programmes {
        section.extend(number.to_be_bytes());
        section.extend((0xe000 | pid).to_be_bytes());
    }
    section[2] = u8::try_from(section.len() + 4 - 3).unwrap();
    let crc = crate::psi::crc32(&section);
    section.extend(crc.to_be_bytes());
    section
}

fn pmt(number: u16, version: u8, stream_type: u8) -> Vec<u8> {
    emit_pmt(number, version, 0x100, &[(stream_type, 0x100, vec![])]).unwrap()
}

#[derive(Default)]
struct Stream {
    tables: Tables,
    continuity: u8,
}

impl Stream {
    /// Sends a section; whether the programme changed, and the packets.
    fn send(&mut self, section: &[u8], pid: u16) -> (bool, BytesMut) {
        let mut packets = BytesMut::new();
        emit_packets(section, pid, &mut self.continuity, &mut packets);
        let mut changed = false;
        for bytes in packets.chunks_exact(PACKET_BYTES) {
            changed |= self.tables.push(&Packet::new_checked(bytes).unwrap()) == Change::Programme;
        }
        (changed, packets)
    }

    fn number(&self) -> Option<u16> {
        self.tables.programme().map(|p| p.number)
    }
}

#[test]
fn the_preamble_is_the_newest_packets_as_they_came() {
    let mut stream = Stream::default();
    stream.send(&pat(&[(1, 0x1000)], 0), 0);
    assert_eq!(stream.tables.preamble(), None);
    assert!(stream.send(&pmt(1, 0, 0x1b), 0x1000).0);
    for _ in 0..3 {
        let (changed, pat) = stream.send(&pat(&[(1, 0x1000)], 0), 0);
        assert!(!changed);
        let (changed, pmt) = stream.send(&pmt(1, 0, 0x1b), 0x1000);
        assert!(!changed);
        assert_eq!(stream.tables.preamble().unwrap(), [&pat[..], &pmt].concat());
    }
}

#[test]
fn a_table_of_several_packets_is_kept_whole() {
    let mut stream = Stream::default();
    let (_, pat) = stream.send(&pat(&[(1, 0x1000)], 0), 0);
    let section = emit_pmt(1, 0, 0x100, &[(0x1b, 0x100, vec![0x0a; 700])]).unwrap();
    let (_, pmt) = stream.send(&section, 0x1000);
    assert_eq!(pmt.len(), 4 * PACKET_BYTES);
    assert_eq!(stream.tables.preamble().unwrap(), [&pat[..], &pmt].concat());
}

#[test]
fn the_first_programme_with_video_is_chosen_and_kept() {
    let mut stream = Stream::default();
    let programmes = [(0, 0x10), (7, 0x1000), (8, 0x1001), (9, 0x1002)];
    stream.send(&pat(&programmes, 0), 0);
    assert!(!stream.tables.is_table(0x10), "the network's PID");
    assert!(stream.tables.is_table(0x1001));
    stream.send(&pmt(7, 0, 0x0f), 0x1000);
    assert_eq!(stream.number(), Some(7), "sound, until there is a picture");
    stream.send(&pmt(9, 0, 0x1b), 0x1002);
    assert_eq!(stream.number(), Some(9));
    assert!(!stream.send(&pmt(8, 0, 0x1b), 0x1001).0);
    assert_eq!(stream.number(), Some(9));
    assert!(stream.send(&pat(&[(8, 0x1001)], 1), 0).0);
    assert_eq!(stream.number(), Some(8), "the other one has gone");
    assert!(!stream.tables.is_table(0x1002));
}

#[test]
fn a_changed_table_is_followed_even_if_its_version_is_not() {
    let mut stream = Stream::default();
    stream.send(&pat(&[(1, 0x1000)], 0), 0);
    stream.send(&pmt(1, 0, 0x1b), 0x1000);
    assert!(stream.send(&pmt(1, 0, 0x24), 0x1000).0);
    assert_eq!(stream.tables.programme().unwrap().codec_names(), ["H.265"]);
    assert!(stream.send(&pat(&[(1, 0x1001)], 0), 0).0);
    assert_eq!(stream.number(), None);
    assert_eq!(stream.tables.preamble(), None, "the old tables do not hold any more");
}

#[test]
fn tables_that_do_not_hold_yet_are_passed_over() {
    let mut stream = Stream::default();
    stream.send(&pat(&[(1, 0x1000)], 0), 0);
    let mut next = pmt(1, 0, 0x1b);
    next[5] &= !1;
    let end = next.len() - 4;
    next.truncate(end);
    let crc = crate::psi::crc32(&next);
    next.extend(crc.to_be_bytes());
    assert!(!stream.send(&next, 0x1000).0);
    assert_eq!(stream.number(), None);
    assert_eq!(stream.tables.errors(), 0);
    next[9] ^= 1;
    stream.send(&next, 0x1000);
    assert_eq!(stream.tables.errors(), 1);
}

#[test]
fn the_packets_kept_of_a_table_are_bounded() {
    let mut tables = Tables::default();
    let mut out = BytesMut::new();
    let header = crate::packet::Header { unit_start: true, ..Default::default() };
    header.emit(&mut out, &mut &[&[0, 0, 0xb3, 0xfd][..], &[0; 180]].concat()[..]);
    let start = out.split();
    crate::packet::Header::default().emit(&mut out, &mut &[7u8][..]);
    tables.push(&Packet::new_checked(&start).unwrap());
    for _ in 0..2000 {
        tables.push(&Packet::new_checked(&out).unwrap());
        assert!(tables.pat.packets.len() <= TABLE_PACKETS_BYTES_MAX);
    }
}
