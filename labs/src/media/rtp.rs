//! A stream of RTP packets of one exact size: H.264 in shape, as an SDP file describes it.
//!
//! Every picture has the same number of packets, sent back to back; that number and the pace are
//! what a fan-out is measured by. It cannot be viewed.

use super::Marker;
use super::marker;

const PAYLOAD_TYPE: u8 = 96;
const SSRC: u32 = 0x0F10_0F10;
const TICKS_PER_SECOND: u64 = 90_000;
/// Bytes of an RTP header (RFC 3550, section 5.1).
const HEADER: usize = 12;
/// Slice data. Not zero, so that no start code arises, and unlike a marker.
const FILLER: u8 = 0xAB;
/// NAL units (RFC 6184, section 1.3): a slice of an IDR picture, and of a P picture.
const IDR: u8 = 0x65;
const OTHER: u8 = 0x41;
/// How their slice headers begin.
const IDR_START: [u8; 2] = [0x88, 0x84];
const OTHER_START: [u8; 2] = [0x9A, 0x22];
/// Parameter sets of a 640x360 baseline picture.
const SETS: &str = "Z0LAH9oCgL/lwEQAAAMABAAAAwDIPGDKgA==,aM4PyA==";

/// What the packets are like, and when they are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pulses {
    /// Bytes of a datagram's payload, RTP header included.
    pub payload: u16,
    /// Packets of a picture, sent back to back.
    pub packets: u16,
    /// Pictures a second.
    pub per_second: f64,
}

impl Pulses {
    /// The smallest payload: headers, the beginning of a slice and a marker.
    pub const PAYLOAD_MIN: u16 = (HEADER + 4 + marker::LENGTH) as u16;

    /// Pictures of this many packets so often that the rate is met.
    pub fn of_rate(rate_bps: f64, payload: u16, packets: u16) -> Self {
        let per_second = rate_bps / 8.0 / f64::from(payload) / f64::from(packets);
        Self { payload, packets, per_second }
    }

    /// Pictures from one key frame to the next: a second's worth.
    fn gop(&self) -> u32 {
        (self.per_second.round() as u32).max(1)
    }
}

/// The description of the stream as it comes to this port (RFC 8866, RFC 6184 section 8.2).
pub fn description(port: u16) -> String {
    bare_description(port).trim_end().to_owned() + ";sprop-parameter-sets=" + SETS + "\n"
}

/// The same without parameter sets: a relay that puts them in front of each key frame has none to put there, and
/// each receiver gets what was sent, and nothing else.
pub fn bare_description(port: u16) -> String {
    format!(
        "v=0\no=- 0 0 IN IP4 0.0.0.0\ns=-\nc=IN IP4 0.0.0.0\nt=0 0\n\
         m=video {port} RTP/AVP {PAYLOAD_TYPE}\na=rtpmap:{PAYLOAD_TYPE} H264/90000\n\
         a=fmtp:{PAYLOAD_TYPE} packetization-mode=1\n"
    )
}

/// Makes the packets, one picture after the other.
#[derive(Debug)]
pub struct Pictures {
    shape: Pulses,
    packet: u32,
    picture: u32,
    bytes: Vec<u8>,
}

impl Pictures {
    /// The stream from its beginning.
    pub fn new(shape: Pulses) -> Self {
        assert!(shape.payload >= Pulses::PAYLOAD_MIN, "a payload has room for its headers and a marker");
        let bytes = vec![0; usize::from(shape.payload) * usize::from(shape.packets)];
        Self { shape, packet: 0, picture: 0, bytes }
    }

    /// The packets of the next picture, one behind the other, all marked as sent at `now_nanos`.
    pub fn next_picture(&mut self, now_nanos: u64) -> &[u8] {
        let key = self.picture.is_multiple_of(self.shape.gop());
        let count = usize::from(self.shape.packets);
        let ticks = (f64::from(self.picture) * TICKS_PER_SECOND as f64 / self.shape.per_second) as u64;
        for (index, packet) in self.bytes.chunks_exact_mut(usize::from(self.shape.payload)).enumerate() {
            let last = index + 1 == count;
            packet.fill(FILLER);
            packet[0] = 0x80;
            packet[1] = PAYLOAD_TYPE | if last { 0x80 } else { 0 };
            packet[2..4].copy_from_slice(&(self.packet as u16).to_be_bytes());
            packet[4..8].copy_from_slice(&(ticks as u32).to_be_bytes());
            packet[8..12].copy_from_slice(&SSRC.to_be_bytes());
            write_slice(&mut packet[HEADER..], key, (index == 0, last));
            let frame = self.picture;
            Marker { datagram: self.packet, sent_nanos: now_nanos, frame, key, last }.emit(packet);
            self.packet = self.packet.wrapping_add(1);
        }
        self.picture = self.picture.wrapping_add(1);
        &self.bytes
    }
}

/// Begins a payload: a NAL unit if it is first and last of its picture, else a fragment of one
/// (RFC 6184, sections 5.6 and 5.8).
fn write_slice(payload: &mut [u8], key: bool, (first, last): (bool, bool)) {
    let (unit, start) = if key { (IDR, IDR_START) } else { (OTHER, OTHER_START) };
    if first && last {
        payload[0] = unit;
        payload[1..3].copy_from_slice(&start);
        return;
    }
    payload[0] = unit & 0xE0 | 28;
    payload[1] = unit & 0x1F | if first { 0x80 } else { 0 } | if last { 0x40 } else { 0 };
    if first {
        payload[2..4].copy_from_slice(&start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_of_one_size_and_numbered() {
        let shape = Pulses { payload: 1400, packets: 10, per_second: 25.0 };
        let mut pictures = Pictures::new(shape);
        for picture in 0..60u32 {
            let bytes = pictures.next_picture(9).to_vec();
            assert_eq!(bytes.len(), 14_000);
            for (index, packet) in (0u32..).zip(bytes.chunks(1400)) {
                let marker = Marker::parse(packet).expect("every packet is marked");
                assert_eq!((marker.datagram, marker.frame), (picture * 10 + index, picture));
                assert_eq!((marker.key, marker.last), (picture % 25 == 0, index == 9));
                assert_eq!(packet[1] & 0x80 != 0, index == 9, "the RTP marker ends a picture");
                assert_eq!(packet[12] & 0x1F, 28, "fragments");
                assert_eq!((packet[13] & 0x80 != 0, packet[13] & 0x40 != 0), (index == 0, index == 9));
            }
        }
    }

    #[test]
    fn a_picture_of_one_packet_is_a_whole_unit() {
        let mut pictures = Pictures::new(Pulses::of_rate(256e3, Pulses::PAYLOAD_MIN, 1));
        let packet = pictures.next_picture(1).to_vec();
        assert_eq!((packet.len(), packet[12]), (usize::from(Pulses::PAYLOAD_MIN), IDR));
        assert!(Marker::parse(&packet).is_some_and(|marker| marker.sent_nanos == 1));
        assert_eq!(pictures.next_picture(1)[12], OTHER);
    }
}
