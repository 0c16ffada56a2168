//! How packets of a rendition become packets of the stream.

use core::mem::discriminant;

use bytes::Bytes;
use outflow_media::{Format, Kind, Tag, Track};
use outflow_packet::Parsed;
use outflow_packet::receive::{RtpWrap, Stamp, Timeline};
use outflow_rtp::payload::parameter_sets;
use outflow_rtp::{HEADER, set_payload_type, set_ssrc, set_timestamp};

use crate::control::origin::Origin;

/// What is changed in the packets of a rendition.
#[derive(Debug)]
pub(super) enum Fit {
    /// RTP: its main track is the stream's.
    Rtp {
        /// Its number in the rendition.
        main: u8,
        /// Parameter sets that a receiver needs which was told those of another rendition.
        preamble: Option<Bytes>,
    },
    /// MPEG-TS, with the RTP headers that it has where it goes by RTP.
    Ts(RtpWrap),
}

impl Fit {
    /// How packets of a rendition become packets of the stream; `None` if they cannot.
    pub(super) fn new(format: &Format, stream: &Format, ssrc: u32) -> Option<Self> {
        match (format, stream) {
            (Format::Ts, Format::Ts) => Some(Fit::Ts(RtpWrap::new(ssrc))),
            (Format::Rtp(_), Format::Rtp(_)) => {
                let main = format.main_track();
                let (own, theirs) = (format.track(main)?, stream.track(stream.main_track())?);
                let is_same = |a: &Track, b: &Track| {
                    discriminant(&a.codec) == discriminant(&b.codec)
                        && a.clock_rate == b.clock_rate
                        && a.extensions == b.extensions
                };
                let fits = is_same(own, theirs) && !own.codec.is_srtp();
                let preamble = parameter_sets(&own.codec).map(Bytes::from);
                fits.then_some(Fit::Rtp { main, preamble })
            }
            _ => None,
        }
    }

    /// A packet of rendition `index` as one of the stream, and whether it is of the main track; the packet is
    /// `None` if it is no RTP. What is beside the main track is that of the reference: `None` if this is another.
    pub(super) fn apply(
        &mut self,
        parsed: Parsed,
        origin: &Origin,
        timeline: &mut Timeline,
        (index, is_reference): (usize, bool),
    ) -> Option<(Option<Parsed>, bool)> {
        let main_track = origin.format().main_track();
        match self {
            Fit::Ts(wrap) => {
                let rtp_header = wrap.next(parsed.packet.arrived);
                Some((Some(Parsed { rtp_header, ..parsed }), true))
            }
            Fit::Rtp { main, preamble } if parsed.packet.tag.track == *main => {
                let track = origin.format().track(main_track)?;
                let ssrc = origin.ssrc(main_track).unwrap_or_default();
                let shift = timeline.shift(index, stamp(&parsed));
                let preamble = preamble.clone().filter(|_| parsed.packet.tag.key);
                let taken = (main_track, track.payload_type, ssrc, shift);
                Some((relabel(Parsed { preamble, ..parsed }, taken), true))
            }
            Fit::Rtp { .. } if is_reference => {
                let track = parsed.packet.tag.track;
                let ssrc = origin.ssrc(track).unwrap_or_default();
                let payload_type = origin.format().track(track).map_or(0, |track| track.payload_type);
                Some((relabel(parsed, (track, payload_type, ssrc, 0)), false))
            }
            Fit::Rtp { .. } => None,
        }
    }
}

/// What timestamps go by.
fn stamp(parsed: &Parsed) -> Stamp {
    let Parsed { packet, rtp_header, .. } = parsed;
    let tag = &packet.tag;
    let timestamp = packet.rtp_header(rtp_header).map_or(0, outflow_rtp::timestamp);
    // What a frame is may show behind its parameter sets.
    let opens = tag.key || tag.kind == Kind::Header;
    Stamp { arrived: packet.arrived, timestamp, first: tag.first, opens }
}

/// The packet as one of the stream's: of this track, with this payload type and SSRC, and so much later. Its
/// layers are not told: a rendition is taken whole. `None` if it is no RTP.
fn relabel(parsed: Parsed, (track, payload_type, ssrc, shift): (u8, u8, u32, u32)) -> Option<Parsed> {
    let Parsed { mut packet, rtp_header, preamble, .. } = parsed;
    let mut header: [u8; HEADER] = *packet.rtp_header(&rtp_header)?;
    if rtp_header[0] == 0 {
        packet.bytes = packet.bytes.slice(HEADER..);
    }
    let timestamp = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    set_payload_type(&mut header, payload_type);
    set_timestamp(&mut header, timestamp.wrapping_add(shift));
    set_ssrc(&mut header, ssrc);
    packet.tag = Tag { track, layer: 0, layers: 1, grown: 0, adds: false, ends: None, ..packet.tag };
    Some(Parsed { packet, rtp_header: header, preamble, found: None })
}
