//! A receiver asks for a key frame: picture loss indication (RFC 4585, section 6.3.1), full intra request
//! (RFC 5104, section 4.3.1).

use rtcp_types::{Fir, PayloadFeedback, Pli};

use super::compound::{empty, written};

/// Sources that one full intra request may name; the rest is passed over.
const SOURCES_MAX: usize = 8;

/// The sources of which a key frame is asked for; none if the message is about something else.
pub(super) fn asked_of(feedback: &PayloadFeedback<'_>) -> Vec<u32> {
    if feedback.parse_fci::<Pli<'_>>().is_ok() {
        return vec![feedback.media_ssrc()];
    }
    let Ok(request) = feedback.parse_fci::<Fir<'_>>() else { return Vec::new() };
    request.entries().take(SOURCES_MAX).map(|entry| entry.ssrc()).collect()
}

/// A compound packet of `ssrc` that asks the source `media` for a key frame, in both ways that sources know: by PLI,
/// and by FIR, of which each has another `number`.
pub fn key_frame_request(ssrc: u32, media: u32, number: u8, cname: &str) -> Vec<u8> {
    let loss = PayloadFeedback::builder_owned(Pli::builder()).sender_ssrc(ssrc).media_ssrc(media);
    let intra = PayloadFeedback::builder_owned(Fir::builder().add_ssrc(media, number)).sender_ssrc(ssrc);
    written(empty(ssrc, cname).add_packet(loss).add_packet(intra))
}

#[cfg(test)]
mod tests {
    use super::super::{Report, read};
    use super::*;

    fn asked(bytes: &[u8]) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        read(bytes, |report| {
            if let Report::KeyFrame { from, media } = report {
                found.push((from, media));
            }
        })
        .expect("RTCP");
        found
    }

    #[test]
    fn what_is_asked_for_is_read_in_both_ways() {
        assert_eq!(asked(&key_frame_request(7, 42, 3, "x")), [(7, 42), (7, 42)]);
    }

    #[test]
    fn a_loss_indication_as_browsers_send_it() {
        let bytes = [0x80, 201, 0, 1, 0, 0, 0, 1, 0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 42];
        assert_eq!(asked(&bytes), [(1, 42)]);
    }

    #[test]
    fn an_intra_request_names_its_sources_itself() {
        let bytes =
            [0x80, 201, 0, 1, 0, 0, 0, 1, 0x84, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 42, 9, 0, 0, 0];
        assert_eq!(asked(&bytes), [(1, 42)]);
    }
}
