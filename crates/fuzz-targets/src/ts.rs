//! Transport streams.

use bytes::{Bytes, BytesMut};
use outflow_ts::packet::{Packet, set_continuity, set_pcr};
use outflow_ts::pes::{PesHeader, rewrite_time_stamps};
use outflow_ts::psi::{Pat, Pmt, SectionAssembler, crc32};
use outflow_ts::{
    DATAGRAM_BYTES, PACKET_BYTES, TsFramer, TsFrames, TsLoop, TsReader, announce_discontinuity,
};

use crate::packets::packets;

/// Single packets, and the PES headers in them.
pub(crate) fn ts_packet(data: &[u8]) {
    for bytes in data.chunks(PACKET_BYTES) {
        let Ok(packet) = Packet::new_checked(bytes) else { continue };
        let adaptation = packet.adaptation();
        adaptation.discontinuity();
        adaptation.random_access();
        assert_eq!(packet.payload(), &bytes[bytes.len() - packet.payload().len()..]);
        if let Ok(mut changed) = <[u8; PACKET_BYTES]>::try_from(bytes) {
            let (pcr, continuity) = (adaptation.pcr(), packet.continuity());
            set_continuity(&mut changed, continuity.wrapping_add(1) & 15);
            set_pcr(&mut changed, 12_345);
            let read = Packet::new_checked(&changed).expect("no length was changed");
            assert_eq!(read.continuity(), continuity.wrapping_add(1) & 15);
            assert_eq!(read.adaptation().pcr(), pcr.map(|_| 12_345));
        }
        pes(packet.payload());
    }
    pes(data);
}

fn pes(data: &[u8]) {
    let Ok(header) = PesHeader::parse(data) else { return };
    let mut changed = data.to_vec();
    rewrite_time_stamps(&mut changed, |_| 77).expect("the header can be read");
    let read = PesHeader::parse(&changed).expect("no length was changed");
    assert_eq!((read.pts, read.dts), (header.pts.map(|_| 77), header.dts.map(|_| 77)));
}

/// Tables, as payloads of packets; and each payload as a section with the right checksum.
pub(crate) fn ts_psi(data: &[u8]) {
    let mut assembler = SectionAssembler::default();
    for payload in packets(data) {
        let unit_start = payload.len() % 2 == 1;
        assembler.push(payload, unit_start, section);
        let mut with_checksum = payload.to_vec();
        with_checksum.extend_from_slice(&crc32(payload).to_be_bytes());
        section(&with_checksum);
    }
}

fn section(section: &[u8]) {
    if let Ok(pat) = Pat::new_checked(section) {
        assert!(pat.programmes().count() <= section.len() / 4);
    }
    if let Ok(pmt) = Pmt::new_checked(section) {
        let streams = pmt.streams().map(|stream| stream.descriptors.count());
        assert!(streams.sum::<usize>() + pmt.descriptors().count() <= section.len());
    }
}

/// Datagrams of whole packets. Those of a seed begin with its tables.
pub(crate) fn ts_reader(data: &[u8]) {
    let mut reader = TsReader::default();
    for datagram in data.chunks(DATAGRAM_BYTES) {
        if let Ok(tag) = reader.read(datagram) {
            assert!(!tag.key || tag.needs.is_nothing());
            assert_eq!(tag.track, 0);
        }
        if let Some(preamble) = reader.preamble() {
            assert_eq!(preamble.len() % PACKET_BYTES, 0);
        }
    }
    reader.programme().map(|programme| programme.codec_names());
}

/// Packets, one after the other. Those of a seed begin with its tables.
pub(crate) fn ts_frames(data: &[u8]) {
    let (mut reader, mut frames) = (TsReader::default(), TsFrames::default());
    let mut found = Vec::new();
    for packet in data.chunks_exact(PACKET_BYTES) {
        let before = frames.number();
        found.clear();
        let is_read = reader.read_into(packet, &mut found).is_ok();
        assert_eq!(found.len(), usize::from(is_read));
        let Some(found) = found.first() else { continue };
        let part = frames.packet(packet, found);
        assert_eq!(part.starts, frames.number() != before);
        if let Some(told) = frames.told() {
            assert!(told.layer < told.layers.max(1));
        }
        let filled = frames.fill(7, 3);
        assert_eq!(filled.len() % PACKET_BYTES, 0);
    }
}

/// A byte stream in chunks of all lengths; the first byte chooses them.
pub(crate) fn ts_framer(data: &[u8]) {
    let Some((&step, rest)) = data.split_first() else { return };
    let mut framer = TsFramer::default();
    let (mut at, mut given) = (0, 0);
    while at < rest.len() {
        let length = (usize::from(step) * 7 + at % 5 + 1).min(rest.len() - at);
        framer.push(Bytes::copy_from_slice(&rest[at..at + length]));
        at += length;
        while let Some(datagram) = framer.next_datagram() {
            assert!(!datagram.is_empty() && datagram.len() <= DATAGRAM_BYTES);
            assert_eq!(datagram.len() % PACKET_BYTES, 0);
            given += datagram.len();
        }
    }
    assert!(given as u64 + framer.skipped() <= rest.len() as u64);
}

/// A clip, played for three rounds and a bit.
pub(crate) fn ts_loop(data: &[u8]) {
    let Ok(mut clip) = TsLoop::new(Bytes::copy_from_slice(data)) else { return };
    let mut reader = TsReader::default();
    let mut datagram = BytesMut::new();
    for _ in 0..data.len() / DATAGRAM_BYTES * 3 + 8 {
        datagram.clear();
        clip.next(&mut datagram);
        assert!(!datagram.is_empty() && datagram.len() <= DATAGRAM_BYTES);
        reader.read(&datagram).expect("packets that were whole before");
    }
    if let Some(programme) = reader.programme() {
        let announced = announce_discontinuity(programme, &datagram);
        assert_eq!(announced.len() % PACKET_BYTES, 0);
    }
}
