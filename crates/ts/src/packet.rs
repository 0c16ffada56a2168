//! One transport stream packet (ISO/IEC 13818-1 section 2.4.3.2).

use bytes::{Buf, BufMut, BytesMut};
use outflow_media::Malformed;

use super::clock::PCR_MODULUS;

/// Bytes of a transport packet.
pub const PACKET_BYTES: usize = 188;

/// What every transport packet begins with.
pub const SYNC: u8 = 0x47;

/// The PID of packets that only fill.
pub const NULL_PID: u16 = 0x1fff;

/// How many PIDs there are.
pub const PIDS: usize = 0x2000;

/// Bytes of a packet behind its header of four bytes.
const BODY_BYTES: usize = PACKET_BYTES - 4;

const fn malformed(offset: usize, reason: &'static str) -> Malformed {
    Malformed { format: "MPEG-TS", offset, reason }
}

/// Checks that `datagram` is a whole number of packets, at least one, each with its sync byte.
pub fn check_aligned(datagram: &[u8]) -> Result<(), Malformed> {
    if datagram.is_empty() {
        return Err(malformed(0, "no transport packet at all"));
    }
    if !datagram.len().is_multiple_of(PACKET_BYTES) {
        return Err(malformed(datagram.len(), "not a whole number of transport packets"));
    }
    match datagram.chunks_exact(PACKET_BYTES).position(|packet| packet[0] != SYNC) {
        Some(index) => Err(malformed(index * PACKET_BYTES, "no sync byte")),
        None => Ok(()),
    }
}

/// The packet identifier of bytes of which nothing else may be right; `None` if they are too few.
pub fn pid_of(bytes: &[u8]) -> Option<u16> {
    let &[_, high, low, ..] = bytes else { return None };
    Some(u16::from_be_bytes([high & 0x1f, low]))
}

/// A packet that was checked: its sync byte stands, and its adaptation field keeps within it.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    /// Where the payload begins; the length of the packet if it has none.
    payload: usize,
}

impl<'a> Packet<'a> {
    /// Reads a packet of [`PACKET_BYTES`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() != PACKET_BYTES {
            return Err(malformed(bytes.len(), "not the length of a transport packet"));
        }
        if bytes[0] != SYNC {
            return Err(malformed(0, "no sync byte"));
        }
        let payload = match (bytes[3] & 0x20 != 0, bytes[3] & 0x10 != 0) {
            (false, true) => 4,
            (true, with_payload) => {
                let end = 5 + usize::from(bytes[4]);
                if end > PACKET_BYTES {
                    return Err(malformed(4, "adaptation field is longer than the packet"));
                }
                if with_payload { end } else { PACKET_BYTES }
            }
            (false, false) => PACKET_BYTES,
        };
        Ok(Packet { bytes, payload })
    }

    /// The packet as it came.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The packet identifier, 13 bits.
    pub const fn pid(&self) -> u16 {
        u16::from_be_bytes([self.bytes[1] & 0x1f, self.bytes[2]])
    }

    /// `transport_error_indicator`: something before us knows that bits are wrong.
    pub const fn transport_error(&self) -> bool {
        self.bytes[1] & 0x80 != 0
    }

    /// `payload_unit_start_indicator`: a PES packet begins with the payload, or a section in it.
    pub const fn unit_start(&self) -> bool {
        self.bytes[1] & 0x40 != 0
    }

    /// Whether the payload is scrambled (`transport_scrambling_control` is not 0).
    pub const fn is_scrambled(&self) -> bool {
        self.bytes[3] & 0xc0 != 0
    }

    /// Whether there is a payload: only then does the continuity counter count.
    pub const fn has_payload(&self) -> bool {
        self.bytes[3] & 0x10 != 0
    }

    /// `continuity_counter`, 4 bits.
    pub const fn continuity(&self) -> u8 {
        self.bytes[3] & 0x0f
    }

    /// Whether its adaptation field has bytes that say nothing: they stand there because what it carries is shorter than the
    /// packet.
    pub fn is_filled_up(&self) -> bool {
        if self.bytes[3] & 0x20 == 0 {
            return false;
        }
        let adaptation = self.adaptation();
        adaptation.bytes.is_empty() || adaptation.said_bytes() < adaptation.bytes.len()
    }

    /// The adaptation field behind its length byte, empty if there is none.
    pub fn adaptation(&self) -> Adaptation<'a> {
        if self.bytes[3] & 0x20 == 0 {
            return Adaptation { bytes: &[] };
        }
        let end = 5 + usize::from(self.bytes[4]);
        Adaptation { bytes: self.bytes.get(5..end).unwrap_or(&[]) }
    }

    /// The payload, empty if there is none.
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(self.payload..).unwrap_or(&[])
    }

    /// Where in the packet the payload begins; [`PACKET_BYTES`] if there is none.
    pub const fn payload_offset(&self) -> usize {
        self.payload
    }
}

/// An adaptation field (section 2.4.3.4); an empty one says no to everything.
#[derive(Debug, Clone, Copy)]
pub struct Adaptation<'a> {
    bytes: &'a [u8],
}

impl Adaptation<'_> {
    fn flag(&self, mask: u8) -> bool {
        self.bytes.first().is_some_and(|flags| flags & mask != 0)
    }

    /// `discontinuity_indicator`: the continuity counter, or the time base, begins again here.
    pub fn discontinuity(&self) -> bool {
        self.flag(0x80)
    }

    /// `random_access_indicator`: decoding can start at the PES packet that begins here or next.
    pub fn random_access(&self) -> bool {
        self.flag(0x40)
    }

    /// Bytes of its flags and of what they announce; what is behind these fills up.
    fn said_bytes(&self) -> usize {
        let mut said = 1;
        for (mask, bytes) in [(0x10, 6), (0x08, 6), (0x04, 1)] {
            said += if self.flag(mask) { bytes } else { 0 };
        }
        // Private data, and an extension, say themselves how long they are.
        for mask in [0x02, 0x01] {
            if self.flag(mask) {
                said += 1 + self.bytes.get(said).map_or(0, |length| usize::from(*length));
            }
        }
        said
    }

    /// The programme clock reference in ticks of 27 MHz, less than [`PCR_MODULUS`].
    pub fn pcr(&self) -> Option<u64> {
        let &[flags, a, b, c, d, e, f, ..] = self.bytes else { return None };
        if flags & 0x10 == 0 {
            return None;
        }
        let base = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]) >> 7;
        let extension = u64::from(e & 1) << 8 | u64::from(f);
        Some((base * 300 + extension) % PCR_MODULUS)
    }
}

/// Bytes of a programme clock reference in an adaptation field.
fn pcr_bytes(pcr: u64) -> [u8; 6] {
    let pcr = pcr % PCR_MODULUS;
    let (base, extension) = (pcr / 300, pcr % 300);
    // 33 bits of base, 6 reserved ones, 9 bits of extension.
    let all = base << 15 | 0x7e00 | extension;
    let [_, _, bytes @ ..] = all.to_be_bytes();
    bytes
}

/// Changes the continuity counter of a packet in place.
pub fn set_continuity(packet: &mut [u8; PACKET_BYTES], continuity: u8) {
    packet[3] = packet[3] & 0xf0 | continuity & 0x0f;
}

/// Changes the programme clock reference of a packet in place; does nothing if it has none.
pub fn set_pcr(packet: &mut [u8; PACKET_BYTES], pcr: u64) {
    let has_adaptation = packet[3] & 0x20 != 0;
    if has_adaptation && packet[4] >= 7 && packet[5] & 0x10 != 0 {
        packet[6..12].copy_from_slice(&pcr_bytes(pcr));
    }
}

/// What stands before the payload of a packet that is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// The packet identifier.
    pub pid: u16,
    /// `payload_unit_start_indicator`.
    pub unit_start: bool,
    /// `continuity_counter`, 4 bits.
    pub continuity: u8,
    /// `discontinuity_indicator`.
    pub discontinuity: bool,
    /// `random_access_indicator`.
    pub random_access: bool,
    /// The programme clock reference in ticks of 27 MHz.
    pub pcr: Option<u64>,
}

impl Header {
    /// Appends one packet with as much of `payload` as fits, and takes that off it. A payload that
    /// does not fill the packet is preceded by stuffing; without any, the packet is its
    /// adaptation field alone.
    pub fn emit(&self, out: &mut BytesMut, payload: &mut impl Buf) {
        let flags = u8::from(self.discontinuity) << 7
            | u8::from(self.random_access) << 6
            | u8::from(self.pcr.is_some()) << 4;
        // With its length byte.
        let least = match (flags, self.pcr) {
            (_, Some(_)) => 8,
            (0, None) => 0,
            _ => 2,
        };
        let carried = payload.remaining().min(BODY_BYTES - least);
        let adaptation = BODY_BYTES - carried;
        let control = u8::from(adaptation > 0) << 5 | u8::from(carried > 0) << 4;
        let [high, low] = self.pid.to_be_bytes();
        out.reserve(PACKET_BYTES);
        out.put_slice(&[SYNC, u8::from(self.unit_start) << 6 | high & 0x1f, low]);
        out.put_u8(control | self.continuity & 0x0f);
        self.emit_adaptation(out, adaptation, flags);
        out.put(payload.take(carried));
    }

    /// An adaptation field of `length` bytes, its length byte included.
    fn emit_adaptation(&self, out: &mut BytesMut, length: usize, flags: u8) {
        let Some(behind) = length.checked_sub(1) else { return };
        // At most 183 by the size of a packet.
        out.put_u8(behind as u8);
        if behind == 0 {
            return;
        }
        out.put_u8(flags);
        let mut written = 1;
        if let Some(pcr) = self.pcr {
            out.put_slice(&pcr_bytes(pcr));
            written += 6;
        }
        out.put_bytes(0xff, behind - written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(header: Header, payload: &[u8]) -> (BytesMut, usize) {
        let mut out = BytesMut::new();
        let mut rest = payload;
        header.emit(&mut out, &mut rest);
        (out, payload.len() - rest.len())
    }

    #[test]
    fn a_packet_that_has_more_room_than_payload_is_filled_up() {
        let is_filled = |header, bytes: usize| {
            let (packet, _) = emitted(header, &vec![1; bytes]);
            Packet::new_checked(&packet).unwrap().is_filled_up()
        };
        let clock = Header { pcr: Some(5), random_access: true, ..Header::default() };
        for (header, room) in [(Header::default(), 184), (clock, 176)] {
            assert_eq!(
                [room - 1, room, room + 1].map(|bytes| is_filled(header, bytes)),
                [true, false, false]
            );
            assert!(is_filled(header, 1));
        }
        // Private data of two bytes and an extension of one, and nothing behind them; one byte.
        for (length, filled) in [(6, false), (7, true)] {
            let mut packet = [0xff; PACKET_BYTES];
            packet[..9].copy_from_slice(&[SYNC, 0, 9, 0x30, length, 0x03, 2, 9, 9]);
            packet[9..11].copy_from_slice(&[1, 9]);
            assert_eq!(Packet::new_checked(&packet).unwrap().is_filled_up(), filled, "{length}");
        }
    }

    #[test]
    fn what_is_emitted_is_read_again() {
        let header = Header {
            pid: 0x1abc,
            unit_start: true,
            continuity: 11,
            discontinuity: true,
            random_access: true,
            pcr: Some(PCR_MODULUS - 1),
        };
        let payload: Vec<u8> = (0..=255).collect();
        let (bytes, taken) = emitted(header, &payload);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!((packet.pid(), packet.continuity()), (0x1abc, 11));
        assert!(packet.unit_start() && packet.has_payload());
        assert!(!packet.transport_error() && !packet.is_scrambled());
        let adaptation = packet.adaptation();
        assert!(adaptation.discontinuity() && adaptation.random_access());
        assert_eq!(adaptation.pcr(), Some(PCR_MODULUS - 1));
        assert_eq!(taken, 184 - 8);
        assert_eq!(packet.payload(), &payload[..taken]);
    }

    #[test]
    fn short_payloads_are_preceded_by_stuffing() {
        for length in 0..=184usize {
            let payload = vec![0x5a; length];
            let (bytes, taken) = emitted(Header { pid: 7, ..Header::default() }, &payload);
            assert_eq!((bytes.len(), taken), (PACKET_BYTES, length));
            let packet = Packet::new_checked(&bytes).unwrap();
            assert_eq!(packet.payload(), payload, "{length}");
            assert_eq!(packet.has_payload(), length > 0);
            assert_eq!(packet.adaptation().pcr(), None);
            assert!(!packet.adaptation().random_access());
        }
    }

    #[test]
    fn counters_and_clocks_are_changed_in_place() {
        let header = Header { pid: 7, continuity: 3, pcr: Some(12_345), ..Header::default() };
        let (bytes, _) = emitted(header, &[1, 2, 3]);
        let mut bytes: [u8; PACKET_BYTES] = bytes[..].try_into().unwrap();
        set_continuity(&mut bytes, 0x1f);
        set_pcr(&mut bytes, 27_000_299);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!(packet.continuity(), 15);
        assert_eq!(packet.adaptation().pcr(), Some(27_000_299));
        assert_eq!(packet.payload(), [1, 2, 3]);

        let (plain, _) = emitted(Header::default(), &[9; 184]);
        let mut same: [u8; PACKET_BYTES] = plain[..].try_into().unwrap();
        set_pcr(&mut same, 1);
        assert_eq!(same[..], plain[..], "a packet without a clock is left alone");
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        assert!(Packet::new_checked(&[SYNC; 187]).is_err());
        assert!(Packet::new_checked(&[0; 188]).is_err());
        let mut bytes = [0xff; PACKET_BYTES];
        bytes[..5].copy_from_slice(&[SYNC, 0, 0, 0x30, 184]);
        assert_eq!(Packet::new_checked(&bytes).unwrap_err().offset, 4);
        bytes[4] = 183;
        assert_eq!(Packet::new_checked(&bytes).unwrap().payload(), []);
    }

    #[test]
    fn a_clock_that_does_not_fit_its_field_is_none() {
        let mut bytes = [0xff; PACKET_BYTES];
        bytes[..6].copy_from_slice(&[SYNC, 0, 0, 0x30, 6, 0x10]);
        assert_eq!(Packet::new_checked(&bytes).unwrap().adaptation().pcr(), None);
        bytes[4] = 7;
        assert!(Packet::new_checked(&bytes).unwrap().adaptation().pcr().is_some());
        bytes[4] = 0;
        assert!(!Packet::new_checked(&bytes).unwrap().adaptation().discontinuity());
    }

    #[test]
    fn alignment_is_checked_for_every_packet() {
        let mut datagram = [0; 3 * PACKET_BYTES];
        assert!(check_aligned(&[]).is_err());
        for packet in 0..3 {
            assert_eq!(check_aligned(&datagram).unwrap_err().offset, packet * PACKET_BYTES);
            datagram[packet * PACKET_BYTES] = SYNC;
        }
        assert!(check_aligned(&datagram).is_ok());
        assert!(check_aligned(&datagram[1..]).is_err());
    }
}
