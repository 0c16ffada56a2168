//! Sequence numbers that go on in another process.

use outflow_packet::Parsed;

/// Sequence numbers of a track that go on where another process has stopped, whatever those are that come.
#[derive(Debug, Clone, Copy)]
pub struct GoesOn {
    /// The last number that receivers had.
    after: u16,
    /// What is added to those that come, once the first has.
    apart: Option<u16>,
}

impl GoesOn {
    /// Numbers that follow this one.
    pub fn after(number: u16) -> Self {
        GoesOn { after: number, apart: None }
    }

    /// Numbers a packet; one without an RTP header stays as it is.
    pub fn number(&mut self, parsed: &mut Parsed) {
        let Parsed { packet, rtp_header, .. } = parsed;
        let Some(header) = packet.rtp_header(rtp_header) else { return };
        let (sequence, next) = (outflow_rtp::sequence(header), self.after.wrapping_add(1));
        let apart = *self.apart.get_or_insert(next.wrapping_sub(sequence));
        if apart != 0 {
            parsed.set_sequence(sequence.wrapping_add(apart));
        }
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::{Tag, Time};
    use outflow_packet::Packet;
    use outflow_rtp::PlainHeader;

    use super::*;

    /// The number that a packet gets which comes with this one, wherever its header stands.
    fn numbered(goes_on: &mut GoesOn, sequence: u16, is_apart: bool) -> u16 {
        let header = PlainHeader { marker: false, payload_type: 96, sequence, timestamp: 0, ssrc: 1 }.emit();
        let whole = [&header[..], b"payload"].concat();
        let (rtp_header, bytes) = if is_apart { (header, &whole[12..]) } else { ([0; 12], &whole[..]) };
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let packet = Packet { bytes, tag: Tag::default(), arrived: Time::ZERO };
        let mut parsed = Parsed { packet, rtp_header, preamble: None, found: None };
        goes_on.number(&mut parsed);
        assert_eq!(&parsed.packet.bytes[..], b"payload");
        outflow_rtp::sequence(&parsed.rtp_header)
    }

    #[test]
    fn numbers_go_on_and_gaps_stay() {
        let mut goes_on = GoesOn::after(65_534);
        let numbers = [(7, true), (8, false), (10, false), (9, true)];
        let numbers = numbers.map(|(sequence, is_apart)| numbered(&mut goes_on, sequence, is_apart));
        assert_eq!(numbers, [65_535, 0, 2, 1]);
    }

    #[test]
    fn what_has_no_numbers_stays_as_it_is() {
        let packet = Packet { bytes: b"Grayscale"[..].into(), tag: Tag::default(), arrived: Time::ZERO };
        let mut parsed = Parsed { packet, rtp_header: [0; 12], preamble: None, found: None };
        GoesOn::after(1).number(&mut parsed);
        assert_eq!((&parsed.packet.bytes[..], parsed.rtp_header), (&b"Grayscale"[..], [0; 12]));
    }
}
