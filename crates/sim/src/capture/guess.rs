//! What the payload of RTP is that has no description.
//!
//! Static payload types say it themselves (RFC 3551). Others are H.264 or H.265 if that is certain enough: all
//! packets, of which there are some, are such as RFC 6184 or RFC 7798 know them in the usual, non-interleaved
//! modes; all units in them may stand in such a stream; and among them are pictures that need others, and something
//! with which decoding begins. What can be both is neither. Nothing else is guessed: what audio means is the same
//! whatever it is, and other codecs are told by a session description.

use outflow_media::Track;
use outflow_media::codec::{Prediction, Unit, h264};
use outflow_rtp::{RtpHeader, sdp};

use super::gather::Recorded;

/// Packets from which a codec is guessed.
const PACKETS_MIN: usize = 24;

/// Payload types below that are static, if they are anything.
const DYNAMIC_FROM: u8 = 35;

/// Bytes of a fragment in which its slice header begins.
const LOOKED_AT: usize = 16;

/// Static payload types of video (RFC 3551, table 5).
const STATIC_VIDEO: [u8; 7] = [25, 26, 28, 31, 32, 33, 34];

/// The track of these packets, all of one payload type.
pub(super) fn track<'a>(payload_type: u8, packets: impl Iterator<Item = &'a Recorded<'a>>) -> Track {
    let (media, map) = if payload_type < DYNAMIC_FROM {
        (if STATIC_VIDEO.contains(&payload_type) { "video" } else { "audio" }, None)
    } else {
        match codec(packets) {
            Some(name) => ("video", Some(format!("{name}/90000"))),
            None => ("application", None),
        }
    };
    described(payload_type, media, map.as_deref())
}

/// Whether it is known what is in a track.
pub(super) fn is_told(track: &Track) -> bool {
    track.payload_type < DYNAMIC_FROM || track.codec.is_video()
}

/// The track that the relay would make of such a description.
fn described(payload_type: u8, media: &str, map: Option<&str>) -> Track {
    let map = map.map(|map| format!("a=rtpmap:{payload_type} {map}\r\n")).unwrap_or_default();
    let text = format!("s=-\r\nm={media} 0 RTP/AVP {payload_type}\r\n{map}");
    let description = sdp::parse(text.as_bytes()).expect("a test reads it for each payload type");
    let mut track = description.media.into_iter().next().expect("a description has media").track;
    if track.encoding.is_empty() {
        track.encoding = format!("payload type {payload_type}");
    }
    track
}

/// The encoding name of what these are.
fn codec<'a>(packets: impl Iterator<Item = &'a Recorded<'a>>) -> Option<&'static str> {
    let mut all = 0;
    let (mut h264, mut h265) = (Evidence::default(), Evidence::default());
    for packet in packets {
        // The padding of encrypted packets may be wrong, but they are not what is looked for.
        let bytes = RtpHeader::new_checked(packet.payload).ok()?.payload();
        if bytes.is_empty() {
            // Padding alone, or all behind the header is cut off.
            continue;
        }
        all += 1;
        let payload = Payload { bytes, is_cut_off: packet.is_cut_off };
        h264.look(payload.h264());
        h265.look(payload.h265());
        if h264.is_refuted && h265.is_refuted {
            return None;
        }
    }
    match (h264.is_proof(), h265.is_proof()) {
        _ if all < PACKETS_MIN => None,
        (true, false) => Some("H264"),
        (false, true) => Some("H265"),
        _ => None,
    }
}

/// What the units of a packet show, if they are such.
#[derive(Debug, Clone, Copy, Default)]
struct Shown {
    /// A picture that needs others.
    picture: bool,
    /// An entry point, or the parameter sets before one.
    beginning: bool,
}

impl Shown {
    const fn and(self, other: Shown) -> Shown {
        Shown { picture: self.picture || other.picture, beginning: self.beginning || other.beginning }
    }
}

/// What packets showed.
#[derive(Debug, Default)]
struct Evidence {
    shown: Shown,
    is_refuted: bool,
}

impl Evidence {
    fn look(&mut self, shown: Option<Shown>) {
        match shown {
            Some(shown) => self.shown = self.shown.and(shown),
            None => self.is_refuted = true,
        }
    }

    const fn is_proof(&self) -> bool {
        !self.is_refuted && self.shown.picture && self.shown.beginning
    }
}

#[derive(Debug, Clone, Copy)]
struct Payload<'a> {
    bytes: &'a [u8],
    is_cut_off: bool,
}

impl Payload<'_> {
    /// As RFC 6184, section 5.2; `None` if it is not that.
    fn h264(&self) -> Option<Shown> {
        let (&header, rest) = self.bytes.split_first()?;
        match h264::nal_type(header) {
            24 if header & 0x80 == 0 => self.aggregated(rest, h264_unit),
            28 => {
                let (&fragment, data) = rest.split_first()?;
                let unit = header & 0xe0 | fragment & 0x1f;
                if !begins(fragment).filter(|_| fragment & 0x20 == 0)? {
                    return h264_header(unit);
                }
                let mut start = [unit; LOOKED_AT];
                let known = data.len().min(LOOKED_AT - 1);
                start[1..=known].copy_from_slice(&data[..known]);
                h264_unit(&start[..=known])
            }
            _ => h264_unit(self.bytes),
        }
    }

    /// As RFC 7798, section 4.4; `None` if it is not that.
    fn h265(&self) -> Option<Shown> {
        let &[first, second, ref rest @ ..] = self.bytes else { return None };
        match first >> 1 {
            48 => {
                h265_header(first & 0x81, second)?;
                self.aggregated(rest, h265_unit)
            }
            49 => {
                let (&fragment, _) = rest.split_first()?;
                begins(fragment)?;
                h265_header(first & 0x81 | (fragment & 0x3f) << 1, second)
            }
            _ => h265_unit(self.bytes),
        }
    }

    /// Units that each have their size in front.
    fn aggregated(&self, mut rest: &[u8], unit: impl Fn(&[u8]) -> Option<Shown>) -> Option<Shown> {
        let mut shown = Shown::default();
        while !rest.is_empty() {
            let (size, behind) = match *rest {
                [high, low, ref behind @ ..] => (usize::from(u16::from_be_bytes([high, low])), behind),
                _ if self.is_cut_off => break,
                _ => return None,
            };
            let available = size.min(behind.len());
            if size == 0 || (available < size && !self.is_cut_off) {
                return None;
            }
            if available > 1 {
                shown = shown.and(unit(&behind[..available])?);
            }
            rest = &behind[available..];
        }
        Some(shown)
    }
}

/// Whether a fragment begins its unit; `None` if it also ends it, which is not allowed.
const fn begins(fragment: u8) -> Option<bool> {
    match fragment & 0xc0 {
        0xc0 => None,
        flags => Some(flags & 0x80 != 0),
    }
}

/// A unit of H.264 from its header on (ITU-T H.264, section 7.4.1).
fn h264_unit(unit: &[u8]) -> Option<Shown> {
    let (&header, rest) = unit.split_first()?;
    let shown = h264_header(header)?;
    let is_unknown = |unit| matches!(unit, Unit::Slice(slice) if slice.prediction == Prediction::Unknown);
    if shown.picture && !rest.is_empty() && is_unknown(h264::classify(unit)) {
        return None;
    }
    Some(shown)
}

/// What can be told by the header alone: which types there are in the profiles that are in use, and which of them
/// may or must be references.
fn h264_header(header: u8) -> Option<Shown> {
    let is_reference = header & 0x60 != 0;
    let shown = |picture, beginning| Some(Shown { picture, beginning });
    match h264::nal_type(header) {
        _ if header & 0x80 != 0 => None,
        1 => shown(true, false),
        5 if is_reference => shown(false, true),
        7 if is_reference => shown(false, true),
        8 | 15 if is_reference => shown(false, false),
        6 | 9..=12 if !is_reference => shown(false, false),
        13 | 14 | 19 | 20 => shown(false, false),
        _ => None,
    }
}

/// A unit of H.265 from its header on.
fn h265_unit(unit: &[u8]) -> Option<Shown> {
    match *unit {
        [first, second, _, ..] => h265_header(first, second),
        _ => None,
    }
}

/// ITU-T H.265, section 7.4.2.2: no reserved types, the base layer, a temporal layer.
fn h265_header(first: u8, second: u8) -> Option<Shown> {
    if first & 0x81 != 0 || second & 0xf8 != 0 || second & 7 == 0 {
        return None;
    }
    match first >> 1 {
        0..=9 => Some(Shown { picture: true, beginning: false }),
        16..=21 | 32 | 33 => Some(Shown { picture: false, beginning: true }),
        34..=40 => Some(Shown::default()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::Codec;

    use super::*;

    #[test]
    fn every_payload_type_has_a_track() {
        for payload_type in 0..=127 {
            let track = track(payload_type, [].into_iter());
            assert_eq!(track.payload_type, payload_type);
            assert!(!track.encoding.is_empty());
            for name in ["H264", "H265"] {
                let map = format!("{name}/90000");
                assert_eq!(described(payload_type, "video", Some(&map)).encoding, name);
            }
        }
        assert_eq!(track(32, [].into_iter()).codec, Codec::MpegVideo);
        assert_eq!(track(26, [].into_iter()).codec, Codec::Other { video: true });
        assert_eq!(track(99, [].into_iter()).codec, Codec::Other { video: false });
    }
}
