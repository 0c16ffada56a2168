//! A constant-rate transport stream without a camera: H.264 in shape (parameter sets, key frames,
//! slices that reference each other), its picture data replaced by markers.
//!
//! Datagrams are full (seven packets) and the rate is exact, so that what a receiver should have
//! got is known to the byte. It cannot be viewed: real pictures are what `assets/demo.ts` is for.

use super::{Marker, PER_DATAGRAM, TS_PACKET};

const PMT_PID: u16 = 0x1000;
const VIDEO_PID: u16 = 0x0100;
/// Program tables are repeated once per this many pictures.
const TABLES_EVERY: u32 = 4;
/// How much larger than the others a key frame is.
const KEY_WEIGHT: u32 = 4;
/// Presentation is this much later than arrival, in ticks of 90 kHz: room for the large key frame.
const DELAY: u64 = 45_000;
/// Picture data. Not zero, so that no start code arises, and unlike a marker.
const FILLER: u8 = 0xAB;

/// Access unit delimiter, SPS and PPS of a 640x360 baseline picture, and the start of its slice.
#[rustfmt::skip]
const KEY_START: &[u8] = &[
    0, 0, 0, 1, 0x09, 0x10,
    0, 0, 0, 1, 0x67, 0x42, 0xC0, 0x1F, 0xDA, 0x02, 0x80, 0xBF, 0xE5, 0xC0, 0x44, 0x00, 0x00, 0x03,
    0x00, 0x04, 0x00, 0x00, 0x03, 0x00, 0xC8, 0x3C, 0x60, 0xCA, 0x80,
    0, 0, 0, 1, 0x68, 0xCE, 0x0F, 0xC8,
    0, 0, 0, 1, 0x65, 0x88, 0x84,
];
/// Access unit delimiter and the start of a P slice that is itself a reference.
const OTHER_START: &[u8] = &[0, 0, 0, 1, 0x09, 0x30, 0, 0, 0, 1, 0x41, 0x9A, 0x22];

/// What the stream looks like.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Bits a second, transport packets counted whole.
    pub rate_bps: u64,
    /// Pictures a second.
    pub fps: u32,
    /// Pictures from one key frame to the next.
    pub gop: u32,
}

impl Shape {
    /// 25 pictures a second, a key frame each second.
    pub const fn of_rate(rate_bps: u64) -> Self {
        Self { rate_bps, fps: 25, gop: 25 }
    }

    /// Datagrams a second.
    pub fn datagrams_per_second(&self) -> f64 {
        self.rate_bps as f64 / (8 * TS_PACKET * PER_DATAGRAM) as f64
    }

    /// The first group of pictures that begins after this many datagrams.
    pub fn group_after(&self, datagrams: u32) -> u32 {
        datagrams.div_ceil(self.packets_per_gop() / PER_DATAGRAM as u32)
    }

    /// Transport packets of one group of pictures: a whole number of datagrams.
    fn packets_per_gop(&self) -> u32 {
        let seconds = f64::from(self.gop) / f64::from(self.fps);
        let datagrams = (self.datagrams_per_second() * seconds) as u32;
        datagrams.max(self.gop) * PER_DATAGRAM as u32
    }
}

/// The stream's packets, one datagram after the other.
#[derive(Debug)]
pub struct Synthetic {
    shape: Shape,
    /// Packets of each picture of a group, tables included.
    sizes: Vec<u32>,
    datagram: [u8; TS_PACKET * PER_DATAGRAM],
    /// Number of the next datagram.
    number: u32,
    /// Number of the picture being sent, and how many of its packets are.
    frame: u32,
    sent: u32,
    counters: [u8; 3],
}

impl Synthetic {
    /// The stream from its beginning.
    pub fn new(shape: Shape) -> Self {
        let packets = shape.packets_per_gop();
        let share = packets / (shape.gop - 1 + KEY_WEIGHT);
        let key = packets - share * (shape.gop - 1);
        let sizes = (0..shape.gop).map(|frame| if frame == 0 { key } else { share }).collect();
        let datagram = [0; TS_PACKET * PER_DATAGRAM];
        Self { shape, sizes, datagram, number: 0, frame: 0, sent: 0, counters: [0; 3] }
    }

    /// The stream from this group of pictures on, as a source sends it that goes on for another one.
    pub fn from_group(shape: Shape, group: u32) -> Self {
        let datagrams = shape.packets_per_gop() / PER_DATAGRAM as u32;
        Self { number: group * datagrams, frame: group * shape.gop, ..Self::new(shape) }
    }

    /// The number of the next datagram, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The next datagram, marked as sent at `now_nanos` since 1970.
    pub fn next_datagram(&mut self, now_nanos: u64) -> &[u8] {
        let mut datagram = self.datagram;
        for packet in datagram.chunks_exact_mut(TS_PACKET) {
            self.write_packet(packet, now_nanos);
        }
        self.number = self.number.wrapping_add(1);
        self.datagram = datagram;
        &self.datagram
    }

    fn write_packet(&mut self, packet: &mut [u8], now_nanos: u64) {
        let tables = if self.frame.is_multiple_of(TABLES_EVERY) { 2 } else { 0 };
        match self.sent {
            0 if tables > 0 => self.write_pat(packet),
            1 if tables > 0 => self.write_pmt(packet),
            sent => self.write_picture(packet, sent == tables, now_nanos),
        }
        self.sent += 1;
        if self.sent == self.size() {
            self.sent = 0;
            self.frame += 1;
        }
    }

    /// Packets of the current picture.
    fn size(&self) -> u32 {
        self.sizes[(self.frame % self.shape.gop) as usize]
    }

    fn write_picture(&mut self, packet: &mut [u8], first: bool, now_nanos: u64) {
        let key = self.frame.is_multiple_of(self.shape.gop);
        packet.fill(FILLER);
        self.write_header(packet, VIDEO_PID, first, 2);
        if first {
            packet[3] |= 0x20;
            packet[4] = 7;
            packet[5] = 0x10 | if key { 0x40 } else { 0 };
            packet[6..12].copy_from_slice(&program_clock(self.clock()));
            let pes = 12;
            packet[pes..pes + 9].copy_from_slice(&[0, 0, 1, 0xE0, 0, 0, 0x80, 0x80, 5]);
            packet[pes + 9..pes + 14].copy_from_slice(&presentation(self.time()));
            let start = if key { KEY_START } else { OTHER_START };
            packet[pes + 14..pes + 14 + start.len()].copy_from_slice(start);
        }
        let last = self.sent + 1 == self.size();
        Marker { datagram: self.number, sent_nanos: now_nanos, frame: self.frame, key, last }.emit(packet);
    }

    /// Program clock of the packet being written, in ticks of 27 MHz.
    fn clock(&self) -> u64 {
        let bits = u64::from(self.number) * (PER_DATAGRAM * TS_PACKET * 8) as u64;
        (u128::from(bits) * 27_000_000 / u128::from(self.shape.rate_bps)) as u64
    }

    /// When the current picture is to be shown, in ticks of 90 kHz.
    fn time(&self) -> u64 {
        let gops = u64::from(self.frame / self.shape.gop);
        let bits = gops * u64::from(self.shape.packets_per_gop()) * (TS_PACKET * 8) as u64;
        let of_gop = bits * 90_000 / self.shape.rate_bps;
        of_gop + u64::from(self.frame % self.shape.gop) * 90_000 / u64::from(self.shape.fps) + DELAY
    }

    fn write_header(&mut self, packet: &mut [u8], pid: u16, start: bool, counter: usize) {
        let high = (pid >> 8) as u8 | if start { 0x40 } else { 0 };
        packet[..4].copy_from_slice(&[0x47, high, pid as u8, 0x10 | self.counters[counter]]);
        self.counters[counter] = (self.counters[counter] + 1) & 0x0F;
    }

    /// Program association: program 1 is described by the PMT (section 2.4.4.3).
    fn write_pat(&mut self, packet: &mut [u8]) {
        self.write_header(packet, 0, true, 0);
        let body = [0x00, 0xB0, 13, 0, 1, 0xC1, 0, 0, 0, 1, 0xE0 | (PMT_PID >> 8) as u8, PMT_PID as u8];
        write_section(packet, &body);
    }

    /// Program map: H.264 on the PID that also carries the clock (section 2.4.4.8).
    fn write_pmt(&mut self, packet: &mut [u8]) {
        self.write_header(packet, PMT_PID, true, 1);
        let pid = [0xE0 | (VIDEO_PID >> 8) as u8, VIDEO_PID as u8];
        #[rustfmt::skip]
        let body = [0x02, 0xB0, 18, 0, 1, 0xC1, 0, 0, pid[0], pid[1], 0xF0, 0,
                    0x1B, pid[0], pid[1], 0xF0, 0];
        write_section(packet, &body);
    }
}

/// A section and its CRC after the packet's header and pointer; the rest is stuffing.
fn write_section(packet: &mut [u8], body: &[u8]) {
    packet[4..].fill(0xFF);
    packet[4] = 0;
    packet[5..5 + body.len()].copy_from_slice(body);
    packet[5 + body.len()..][..4].copy_from_slice(&crc32(body).to_be_bytes());
}

/// CRC-32 of sections (ISO/IEC 13818-1, annex A).
fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0xFFFF_FFFF, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            if crc & 0x8000_0000 == 0 { crc << 1 } else { crc << 1 ^ 0x04C1_1DB7 }
        })
    })
}

/// A program clock reference (section 2.4.3.4).
fn program_clock(ticks: u64) -> [u8; 6] {
    let (base, extension) = (ticks / 300 % (1 << 33), ticks % 300);
    let bits = base << 15 | 0x3F << 9 | extension;
    let bytes = bits.to_be_bytes();
    [bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]
}

/// A presentation time stamp alone (section 2.4.3.6).
fn presentation(ticks: u64) -> [u8; 5] {
    let t = ticks % (1 << 33);
    [
        0x21 | ((t >> 30) as u8 & 0x07) << 1,
        (t >> 22) as u8,
        ((t >> 15) as u8) << 1 | 1,
        (t >> 7) as u8,
        (t as u8) << 1 | 1,
    ]
}

#[cfg(test)]
mod tests {
    use super::super::Continuity;
    use super::*;

    #[test]
    fn the_stream_is_continuous_and_its_rate_exact() {
        let shape = Shape::of_rate(4_000_000);
        let mut stream = Synthetic::new(shape);
        let mut continuity = Continuity::default();
        let gops = 4;
        for number in 0..gops * shape.packets_per_gop() / PER_DATAGRAM as u32 {
            let datagram = stream.next_datagram(7);
            continuity.push(datagram);
            let marker = Marker::find(datagram).expect("every datagram is marked");
            assert_eq!((marker.datagram, marker.sent_nanos), (number, 7));
        }
        assert_eq!((continuity.gaps, continuity.malformed), (0, 0));
        assert_eq!(continuity.random_access, u64::from(gops));
        assert_eq!(stream.frame, gops * shape.gop);
        let second = u64::from(shape.packets_per_gop()) * 188 * 8;
        assert!(second.abs_diff(shape.rate_bps) < 188 * 8 * 7, "{second}");
    }

    #[test]
    fn a_stream_goes_on_from_a_group_of_pictures() {
        let shape = Shape::of_rate(1_000_000);
        let mut whole = Synthetic::new(shape);
        let mut later = Synthetic::from_group(shape, 2);
        let (mut datagram, number) = (Vec::new(), later.number());
        for _ in 0..=number {
            datagram = whole.next_datagram(7).to_vec();
        }
        let continued = later.next_datagram(7);
        let marker = Marker::find(&datagram).expect("it is marked");
        assert!((marker.datagram, marker.key) == (number, true), "{marker:?}");
        assert_eq!([0, number, number + 1].map(|sent| shape.group_after(sent)), [0, 2, 3]);
        assert_eq!(Marker::find(continued), Some(marker));
    }

    #[test]
    fn sections_carry_the_checksum_that_everybody_expects() {
        // The PAT that ffmpeg writes for one program with its PMT at 0x1000.
        let body = [0x00, 0xB0, 0x0D, 0x00, 0x01, 0xC1, 0x00, 0x00, 0x00, 0x01, 0xF0, 0x00];
        assert_eq!(crc32(&body), 0x2AB1_04B2);
    }
}
