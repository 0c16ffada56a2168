//! Opus in PES packets (ETSI TS 103 491, annex B; what ffmpeg writes): each Opus packet behind a control header that says how
//! long it is.

use bytes::{BufMut, Bytes, BytesMut};

/// The 11 bits that a control header begins with, and those that announce more in it.
const PREFIX: [u8; 2] = [0x7f, 0xe0];
const START_TRIM: u8 = 0x10;
const END_TRIM: u8 = 0x08;
const EXTENSION: u8 = 0x04;

/// Writes the header of a packet of this many bytes: nothing trimmed, then the size in bytes of 255 and a last one that is
/// less.
pub(super) fn emit_header(size: usize, out: &mut BytesMut) {
    out.put_slice(&PREFIX);
    out.put_bytes(0xff, size / 255);
    out.put_u8((size % 255) as u8);
}

/// The Opus packets that a PES packet holds.
#[derive(Debug)]
pub struct OpusPackets {
    rest: Bytes,
}

impl OpusPackets {
    /// Those in what stands behind the header of a PES packet.
    pub fn of(data: Bytes) -> Self {
        OpusPackets { rest: data }
    }

    /// Whether something is left that is no packet.
    pub fn is_damaged(&self) -> bool {
        !self.rest.is_empty()
    }
}

impl Iterator for OpusPackets {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let (header, size) = header(&self.rest)?;
        let end = header.checked_add(size).filter(|end| *end <= self.rest.len() && size > 0)?;
        let packet = self.rest.slice(header..end);
        self.rest = self.rest.slice(end..);
        Some(packet)
    }
}

/// Bytes of the control header, and of the packet behind it.
fn header(data: &[u8]) -> Option<(usize, usize)> {
    let &[first, flags, ref rest @ ..] = data else { return None };
    if [first, flags & 0xe0] != PREFIX {
        return None;
    }
    let full = rest.iter().take_while(|byte| **byte == 0xff).count();
    let size = full * 255 + usize::from(*rest.get(full)?);
    let mut header = PREFIX.len() + full + 1;
    header += [START_TRIM, END_TRIM].iter().map(|flag| if flags & flag == 0 { 0 } else { 2 }).sum::<usize>();
    if flags & EXTENSION != 0 {
        header += 1 + usize::from(*data.get(header)?);
    }
    Some((header, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_packet_is_written_in_steps_of_255() {
        for (size, header) in [
            (0, &[0x7f, 0xe0, 0][..]),
            (254, &[0x7f, 0xe0, 254]),
            (255, &[0x7f, 0xe0, 255, 0]),
            (600, &[0x7f, 0xe0, 255, 255, 90]),
        ] {
            let mut out = BytesMut::new();
            emit_header(size, &mut out);
            assert_eq!(out, header, "{size}");
        }
    }

    #[test]
    fn packets_are_read_one_behind_the_other() {
        let mut data = BytesMut::new();
        for size in [1, 255, 600] {
            emit_header(size, &mut data);
            data.put_bytes(7, size);
        }
        // Trimmed at both ends, and with an extension of two bytes.
        data.put_slice(&[0x7f, 0xfc, 3, 1, 2, 3, 4, 2, 9, 9, 7, 7, 7]);
        let mut packets = OpusPackets::of(data.freeze());
        let sizes: Vec<_> =
            packets.by_ref().map(|packet| (packet.len(), packet.iter().all(|b| *b == 7))).collect();
        assert_eq!(sizes, [(1, true), (255, true), (600, true), (3, true)]);
        assert!(!packets.is_damaged());
    }

    #[test]
    fn what_is_cut_off_or_no_packet_is_damaged() {
        let bad: [&'static [u8]; 7] = [
            &[0x7f],
            &[0x7f, 0xe0],
            &[0x7f, 0xe0, 0xff],
            &[0x7f, 0xe0, 2, 7],
            &[0x7f, 0xe0, 0],
            &[0x7f, 0x20, 1, 7],
            &[0x7f, 0xe4, 1, 9],
        ];
        for data in bad {
            let mut packets = OpusPackets::of(Bytes::from_static(data));
            assert_eq!(packets.next(), None, "{data:?}");
            assert!(packets.is_damaged(), "{data:?}");
        }
    }
}
