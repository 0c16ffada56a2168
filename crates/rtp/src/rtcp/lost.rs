//! A receiver lacks packets: generic NACK (RFC 4585, section 6.2.1).

use rtcp_types::{Nack, NackBuilder, TransportFeedback};

use super::compound::{empty, written};
use crate::limits::NACKS_MAX;

/// The sequence numbers that a message names; none if it is about something else.
pub(super) fn numbers(feedback: &TransportFeedback<'_>) -> Option<Vec<u16>> {
    let nack = feedback.parse_fci::<Nack<'_>>().ok()?;
    Some(nack.entries().take(NACKS_MAX).collect())
}

/// A compound packet of `ssrc` that says which packets of the source `media` it lacks.
pub fn lost(ssrc: u32, media: u32, numbers: &[u16], cname: &str) -> Vec<u8> {
    let nack = numbers.iter().fold(NackBuilder::default(), |nack, number| nack.add_rtp_sequence(*number));
    let feedback = TransportFeedback::builder_owned(nack).sender_ssrc(ssrc).media_ssrc(media);
    written(empty(ssrc, cname).add_packet(feedback))
}

#[cfg(test)]
mod tests {
    use super::super::{Report, read};
    use super::*;

    fn told(bytes: &[u8]) -> Vec<(u32, Vec<u16>)> {
        let mut found = Vec::new();
        read(bytes, |report| {
            if let Report::Lost { from: 7, media, numbers } = report {
                found.push((media, numbers));
            }
        })
        .expect("RTCP");
        found
    }

    #[test]
    fn what_a_receiver_lacks_is_read() {
        let numbers = [0, 1, 17, 300, 65_535];
        assert_eq!(told(&lost(7, 42, &numbers, "x")), [(42, numbers.to_vec())]);
        // As browsers write it, alone in its datagram: 100, and of the sixteen behind it the first and the last.
        let bytes = [0x81, 205, 0, 3, 0, 0, 0, 7, 0, 0, 0, 42, 0, 100, 0x80, 1];
        assert_eq!(told(&bytes), [(42, vec![100, 101, 116])]);
    }

    #[test]
    fn no_more_are_taken_than_are_looked_for() {
        let numbers: Vec<u16> = (0..1000).collect();
        assert_eq!(told(&lost(7, 42, &numbers, "x"))[0].1, numbers[..NACKS_MAX]);
    }
}
