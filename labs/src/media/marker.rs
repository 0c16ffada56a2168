//! What the synthetic source writes into its packets, so that receivers can tell what they missed
//! and how long it took.
//!
//! A marker stands at the very end of a transport packet, within the slice data of a picture. All
//! its bytes are 0x80 or more, so it never looks like a start code:
//!
//! ```text
//! A5 F7 9C | datagram: 5 · 7 bits | sent: 9 · 7 bits | frame: 5 · 7 bits | flags
//! ```

/// Bytes of a marker.
pub const LENGTH: usize = MAGIC.len() + 5 + 9 + 5 + 1;

const MAGIC: [u8; 3] = [0xA5, 0xF7, 0x9C];
const KEY: u8 = 1;
const LAST: u8 = 2;

/// What a packet of the synthetic source says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Number of the datagram it was sent in, from 0.
    pub datagram: u32,
    /// When that was sent: nanoseconds since 1970.
    pub sent_nanos: u64,
    /// Number of its picture, from 0.
    pub frame: u32,
    /// Whether that picture is a key frame.
    pub key: bool,
    /// Whether the picture ends with this packet.
    pub last: bool,
}

impl Marker {
    /// Writes the marker to the end of a transport packet.
    pub fn emit(&self, packet: &mut [u8]) {
        let at = packet.len() - LENGTH;
        let bytes = &mut packet[at..];
        bytes[..3].copy_from_slice(&MAGIC);
        write_sevens(&mut bytes[3..8], u64::from(self.datagram));
        write_sevens(&mut bytes[8..17], self.sent_nanos);
        write_sevens(&mut bytes[17..22], u64::from(self.frame));
        bytes[22] = 0x80 | if self.key { KEY } else { 0 } | if self.last { LAST } else { 0 };
    }

    /// Reads the marker at the end of a transport packet, if there is one.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let bytes = packet.get(packet.len().checked_sub(LENGTH)?..)?;
        let body = bytes.strip_prefix(&MAGIC)?;
        if body.iter().any(|byte| byte & 0x80 == 0) {
            return None;
        }
        Some(Self {
            datagram: u32::try_from(read_sevens(&body[..5])).ok()?,
            sent_nanos: read_sevens(&body[5..14]),
            frame: u32::try_from(read_sevens(&body[14..19])).ok()?,
            key: body[19] & KEY != 0,
            last: body[19] & LAST != 0,
        })
    }

    /// The first marker among the transport packets of a datagram.
    pub fn find(datagram: &[u8]) -> Option<Self> {
        datagram.chunks_exact(super::TS_PACKET).find_map(Self::parse)
    }
}

fn write_sevens(bytes: &mut [u8], mut value: u64) {
    for byte in bytes.iter_mut().rev() {
        *byte = 0x80 | (value & 0x7F) as u8;
        value >>= 7;
    }
}

fn read_sevens(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7F))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_survives_and_never_looks_like_a_start_code() {
        let marker = Marker {
            datagram: u32::MAX,
            sent_nanos: super::super::wall_nanos(),
            frame: 0,
            key: true,
            last: false,
        };
        let mut packet = [0xFF; 188];
        marker.emit(&mut packet);
        assert_eq!(Marker::parse(&packet), Some(marker));
        assert!(packet.iter().all(|byte| *byte >= 0x80));
        assert_eq!(Marker::parse(&packet[1..187]), None);
        assert_eq!(Marker::parse(&[]), None);
    }
}
