//! What a receiver says that its way to it carries: REMB (draft-alvestrand-rmcat-remb-03) and TMMBR
//! (RFC 5104, section 4.2.1), which is answered by TMMBN (section 4.2.2).

use rtcp_types::prelude::{FciBuilder, FciParser, RtcpPacketWriter};
use rtcp_types::{FciFeedbackPacketType, PayloadFeedback, RtcpParseError, RtcpWriteError, TransportFeedback};

use super::compound::{empty, written};

/// SSRCs that one message may name; the rest is passed over.
const SOURCES_MAX: usize = 8;

/// No more than this many bits a second are to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The source that it is about.
    pub media: u32,
    /// Bits a second, transport headers included.
    pub bps: u64,
    /// Bytes of headers a packet that the receiver counts, as far as it says.
    pub overhead: u16,
}

/// A number as exponent and mantissa; what does not fit is the most there is.
const fn scaled(mantissa: u64, exponent: u32) -> u64 {
    if mantissa.leading_zeros() > exponent { mantissa << exponent } else { u64::MAX }
}

/// The largest number in `bits` bits and an exponent that is not above `value`.
const fn unscaled(value: u64, bits: u32) -> (u32, u32) {
    let needed = u64::BITS - value.leading_zeros();
    let exponent = needed.saturating_sub(bits);
    ((value >> exponent) as u32, exponent)
}

/// Receiver estimated maximum bitrate.
#[derive(Debug)]
pub(super) struct Remb(pub(super) Vec<Limit>);

impl<'a> FciParser<'a> for Remb {
    const PACKET_TYPE: FciFeedbackPacketType = FciFeedbackPacketType::PAYLOAD;
    const FCI_FORMAT: u8 = 15;

    fn parse(data: &'a [u8]) -> Result<Self, RtcpParseError> {
        let Some(([b'R', b'E', b'M', b'B', count, b0, b1, b2], sources)) = data.split_first_chunk() else {
            return Err(RtcpParseError::WrongImplementation);
        };
        let mantissa = u32::from_be_bytes([0, b0 & 3, *b1, *b2]);
        let bps = scaled(mantissa.into(), u32::from(b0 >> 2));
        let (sources, _) = sources.as_chunks::<4>();
        let sources = sources.iter().take(usize::from(*count).min(SOURCES_MAX));
        let limit = |ssrc: &[u8; 4]| Limit { media: u32::from_be_bytes(*ssrc), bps, overhead: 0 };
        Ok(Remb(sources.map(limit).collect()))
    }
}

/// What is written of it, about one source.
#[derive(Debug)]
struct Estimated {
    media: u32,
    bps: u64,
}

impl FciBuilder<'_> for Estimated {
    fn format(&self) -> u8 {
        15
    }

    fn supports_feedback_type(&self) -> FciFeedbackPacketType {
        FciFeedbackPacketType::PAYLOAD
    }
}

impl RtcpPacketWriter for Estimated {
    fn calculate_size(&self) -> Result<usize, RtcpWriteError> {
        Ok(12)
    }

    fn write_into_unchecked(&self, buffer: &mut [u8]) -> usize {
        let (mantissa, exponent) = unscaled(self.bps, 18);
        let [_, m0, m1, m2] = mantissa.to_be_bytes();
        buffer[..8].copy_from_slice(&[b'R', b'E', b'M', b'B', 1, (exponent as u8) << 2 | m0, m1, m2]);
        buffer[8..12].copy_from_slice(&self.media.to_be_bytes());
        12
    }

    fn get_padding(&self) -> Option<u8> {
        None
    }
}

/// A compound packet by which the receiver `ssrc` says that the way of the source `media` to it carries `bps` bits a second
/// (REMB).
pub fn estimated(ssrc: u32, media: u32, bps: u64, cname: &str) -> Vec<u8> {
    let feedback = PayloadFeedback::builder_owned(Estimated { media, bps }).sender_ssrc(ssrc);
    written(empty(ssrc, cname).add_packet(feedback))
}

/// Temporary maximum media stream bit rate: requests, or notifications.
#[derive(Debug)]
pub(super) struct Tmmb(pub(super) Vec<Limit>);

impl<'a> FciParser<'a> for Tmmb {
    const PACKET_TYPE: FciFeedbackPacketType = FciFeedbackPacketType::TRANSPORT;
    const FCI_FORMAT: u8 = 3;

    fn parse(data: &'a [u8]) -> Result<Self, RtcpParseError> {
        let (entries, _) = data.as_chunks::<8>();
        let limit = |entry: &[u8; 8]| {
            let [s0, s1, s2, s3, b0, b1, b2, b3] = *entry;
            let word = u32::from_be_bytes([b0, b1, b2, b3]);
            let (mantissa, overhead) = (word >> 9 & 0x1_ffff, (word & 0x1ff) as u16);
            let bps = scaled(mantissa.into(), word >> 26);
            Limit { media: u32::from_be_bytes([s0, s1, s2, s3]), bps, overhead }
        };
        Ok(Tmmb(entries.iter().take(SOURCES_MAX).map(limit).collect()))
    }
}

/// Says which limit is in force, in the name of the receiver that asked for it.
#[derive(Debug)]
struct Notification {
    owner: u32,
    limit: Limit,
}

impl FciBuilder<'_> for Notification {
    fn format(&self) -> u8 {
        4
    }

    fn supports_feedback_type(&self) -> FciFeedbackPacketType {
        FciFeedbackPacketType::TRANSPORT
    }
}

impl RtcpPacketWriter for Notification {
    fn calculate_size(&self) -> Result<usize, RtcpWriteError> {
        Ok(8)
    }

    fn write_into_unchecked(&self, buffer: &mut [u8]) -> usize {
        let (mantissa, exponent) = unscaled(self.limit.bps, 17);
        let word = exponent << 26 | mantissa << 9 | u32::from(self.limit.overhead & 0x1ff);
        buffer[..4].copy_from_slice(&self.owner.to_be_bytes());
        buffer[4..8].copy_from_slice(&word.to_be_bytes());
        8
    }

    fn get_padding(&self) -> Option<u8> {
        None
    }
}

/// A compound packet of the sender `ssrc` that tells the receiver `owner` that its limit is in force (RFC 5104,
/// section 4.2.2).
pub fn limit_noted(ssrc: u32, owner: u32, limit: Limit, cname: &str) -> Vec<u8> {
    let notification = Notification { owner, limit };
    let feedback = TransportFeedback::builder_owned(notification).sender_ssrc(ssrc);
    written(empty(ssrc, cname).add_packet(feedback))
}

#[cfg(test)]
mod tests {
    use super::super::{Report, read};
    use super::*;

    fn limits(bytes: &[u8]) -> Vec<(u32, Limit, bool)> {
        let mut found = Vec::new();
        read(bytes, |report| {
            if let Report::Limit { from, limit, is_tmmbr } = report {
                found.push((from, limit, is_tmmbr));
            }
        })
        .expect("RTCP");
        found
    }

    #[test]
    fn a_remb_as_browsers_send_it() {
        // An empty receiver report before it; 1 SSRC, exponent 3, mantissa 250,000.
        let bytes = [
            0x80, 201, 0, 1, 0, 0, 0, 1, 0x8f, 206, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, b'R', b'E', b'M', b'B', 1,
            0x0f, 0xd0, 0x90, 0, 0, 0, 42,
        ];
        assert_eq!(limits(&bytes), [(1, Limit { media: 42, bps: 2_000_000, overhead: 0 }, false)]);
    }

    #[test]
    fn an_estimate_is_read_as_it_was_written() {
        for (bps, read) in [(0, 0), (262_143, 262_143), (2_500_001, 2_500_000), (u64::MAX, u64::MAX)] {
            let limit = Limit { media: 42, bps: read, overhead: 0 };
            assert_eq!(limits(&estimated(1, 42, bps, "x")), [(1, limit, false)]);
        }
    }

    #[test]
    fn a_tmmbr_and_its_notification() {
        let word = 4_u32 << 26 | 62_500 << 9 | 40;
        let mut bytes =
            vec![0x80, 201, 0, 1, 0, 0, 0, 9, 0x83, 205, 0, 4, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 42];
        bytes.extend_from_slice(&word.to_be_bytes());
        let limit = Limit { media: 42, bps: 1_000_000, overhead: 40 };
        assert_eq!(limits(&bytes), [(9, limit, true)]);
        let noted = limit_noted(42, 9, limit, "x");
        // The format and the owner, and what was asked for.
        let at = noted.windows(2).position(|pair| pair == [0x84, 205]).expect("TMMBN");
        assert_eq!(&noted[at + 12..at + 16], &[0, 0, 0, 9]);
        let told = u32::from_be_bytes([noted[at + 16], noted[at + 17], noted[at + 18], noted[at + 19]]);
        assert_eq!(scaled((told >> 9 & 0x1_ffff).into(), told >> 26), 1_000_000);
    }

    #[test]
    fn numbers_are_scaled_without_overflow() {
        assert_eq!(scaled(3, 63), u64::MAX);
        assert_eq!(unscaled(0, 17), (0, 0));
        for value in [1, 131_071, 131_072, 1_000_003, u64::MAX >> 1] {
            let (mantissa, exponent) = unscaled(value, 17);
            let back = scaled(mantissa.into(), exponent);
            assert!(back <= value && value - back <= value >> 16, "{value} {back}");
        }
    }
}
