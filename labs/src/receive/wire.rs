//! How media is found in what a socket gives.

use crate::figures::Delays;
use crate::media::TS_PACKET;
use crate::receive::Meter;

/// The first byte of every transport packet (ISO/IEC 13818-1, section 2.4.3.3).
const SYNC_BYTE: u8 = 0x47;

/// What arrives on a socket.
#[derive(Debug)]
pub(super) enum Wire {
    /// Datagrams of transport packets.
    Transport,
    /// Datagrams that are RTP packets of a track.
    Rtp(u8),
    /// Datagrams that do not matter (RTCP).
    Ignored,
    /// The body of an HTTP answer: transport packets.
    Http(Body),
    /// RTSP with RTP between its messages (RFC 2326, section 10.12).
    Interleaved(Vec<u8>),
}

/// A body as HTTP/1.1 sends it (RFC 9112, section 7).
#[derive(Debug, Default)]
pub(super) struct Body {
    /// Whether it comes in chunks, and how many bytes of the current one are to come.
    pub chunked: bool,
    in_chunk: usize,
    /// Bytes of which nothing can be made yet: part of a chunk's head.
    raw: Vec<u8>,
    /// The beginning of a transport packet.
    rest: Vec<u8>,
    /// It is known where packets begin. Some servers let a receiver join anywhere.
    synced: bool,
}

impl Wire {
    /// Takes a datagram or a piece of a byte stream.
    pub(super) fn take(&mut self, bytes: &[u8], arrived: u64, meter: &mut Meter, delays: &mut Delays) {
        match self {
            Wire::Transport => meter.transport(bytes, arrived, delays),
            Wire::Rtp(track) => meter.rtp(*track, bytes, arrived, delays),
            Wire::Ignored => {}
            Wire::Http(body) => body.take(bytes, &mut |packets| meter.transport(packets, arrived, delays)),
            Wire::Interleaved(rest) => {
                rest.extend_from_slice(bytes);
                let used =
                    interleaved(rest, &mut |channel, packet| meter.rtp(channel, packet, arrived, delays));
                rest.drain(..used);
            }
        }
    }
}

impl Body {
    /// A body of which these bytes came with the head.
    pub(super) fn new(chunked: bool) -> Self {
        Self { chunked, ..Self::default() }
    }

    fn take(&mut self, bytes: &[u8], packets: &mut impl FnMut(&[u8])) {
        if !self.chunked {
            self.media(bytes, packets);
            return;
        }
        self.raw.extend_from_slice(bytes);
        let raw = std::mem::take(&mut self.raw);
        let mut at = 0;
        while at < raw.len() {
            if self.in_chunk == 0 {
                // The line end after a chunk is skipped together with the next one's size.
                let Some(end) = raw[at + 2.min(raw.len() - at)..].windows(2).position(|w| w == b"\r\n")
                else {
                    break;
                };
                let line = &raw[at..at + 2.min(raw.len() - at) + end];
                let text = String::from_utf8_lossy(line);
                let size = text.trim().split(';').next().unwrap_or_default();
                self.in_chunk = usize::from_str_radix(size, 16).unwrap_or(0);
                at += line.len() + 2;
            }
            let piece = &raw[at..raw.len().min(at + self.in_chunk)];
            self.media(piece, packets);
            self.in_chunk -= piece.len();
            at += piece.len();
        }
        self.raw = raw[at.min(raw.len())..].to_vec();
    }

    fn media(&mut self, bytes: &[u8], packets: &mut impl FnMut(&[u8])) {
        let mut bytes = bytes;
        let begins = |at: usize| {
            bytes[at] == SYNC_BYTE && bytes.get(at + TS_PACKET).is_none_or(|next| *next == SYNC_BYTE)
        };
        if !self.synced {
            bytes = &bytes[(0..bytes.len()).find(|at| begins(*at)).unwrap_or(bytes.len())..];
            self.synced = !bytes.is_empty();
        }
        if !self.rest.is_empty() {
            let missing = bytes.len().min(TS_PACKET - self.rest.len());
            self.rest.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.rest.len() == TS_PACKET {
                packets(&self.rest);
                self.rest.clear();
            }
        }
        let whole = bytes.len() - bytes.len() % TS_PACKET;
        if whole > 0 {
            packets(&bytes[..whole]);
        }
        self.rest.extend_from_slice(&bytes[whole..]);
    }
}

/// Hands out the RTP packets (even channels) and returns how many bytes were used.
pub(super) fn interleaved(bytes: &[u8], packet: &mut impl FnMut(u8, &[u8])) -> usize {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= 4) {
        if rest[0] == b'$' {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            let Some(data) = rest.get(4..4 + length) else { break };
            if rest[1].is_multiple_of(2) {
                packet(rest[1], data);
            }
            at += 4 + length;
        } else {
            // An answer to what we asked meanwhile; they have no bodies.
            let Some(end) = rest.windows(4).position(|w| w == b"\r\n\r\n") else { break };
            at += end + 4;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cut_anywhere_give_whole_packets() {
        let packet = [0x47; TS_PACKET];
        let mut sent = Vec::new();
        for piece in [&packet[..100], &packet[100..], &packet[..]] {
            sent.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            sent.extend_from_slice(piece);
            sent.extend_from_slice(b"\r\n");
        }
        for cut in 1..40 {
            let (mut body, mut count) = (Body::new(true), 0);
            for piece in sent.chunks(cut) {
                body.take(piece, &mut |packets| {
                    assert!(packets.chunks(TS_PACKET).all(|p| p == packet));
                    count += packets.len() / TS_PACKET;
                });
            }
            assert_eq!(count, 2, "cut every {cut} bytes");
        }
    }

    #[test]
    fn one_that_joins_within_a_packet_begins_with_the_next() {
        let mut packets = vec![0xAB; 3 * TS_PACKET];
        packets.iter_mut().step_by(TS_PACKET).for_each(|byte| *byte = SYNC_BYTE);
        // The same byte within a packet begins none.
        packets[100] = SYNC_BYTE;
        for from in [0, 1, 100, 101] {
            let mut seen = Vec::new();
            Body::new(false).take(&packets[from..], &mut |whole| seen.extend_from_slice(whole));
            let expected = if from == 0 { 0 } else { TS_PACKET };
            assert_eq!(seen, packets[expected..], "from {from}");
        }
    }

    #[test]
    fn interleaved_packets_are_found_between_answers() {
        let mut bytes = b"RTSP/1.0 200 OK\r\nCSeq: 9\r\n\r\n".to_vec();
        bytes.extend_from_slice(b"$\x00\x00\x03abc$\x01\x00\x01x$\x02\x00\x09cut");
        let mut seen = Vec::new();
        let used = interleaved(&bytes, &mut |channel, data| seen.push((channel, data.to_vec())));
        assert_eq!(seen, [(0, b"abc".to_vec())]);
        assert_eq!(&bytes[used..], b"$\x02\x00\x09cut");
    }
}
