//! Payload headers of MPEG video and audio (RFC 2250 section 3).

use outflow_media::Malformed;
use outflow_media::codec::{Unit, mpeg_video};

/// How far into a packet the headers in front of a picture are looked for: a sequence header with
/// both matrices, its extensions, a group header and user data.
const HEADERS: usize = 1024;

/// A packet of MPEG video (section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Video<'a> {
    /// `picture_coding_type` of the picture.
    pub(super) picture_type: u8,
    /// The elementary stream.
    pub(super) data: &'a [u8],
}

impl<'a> Video<'a> {
    pub(super) fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let bad = |reason| Malformed { format: "MPEG video payload", offset: 0, reason };
        let &[first, _, third, _, ref rest @ ..] = payload else {
            return Err(bad("shorter than its header"));
        };
        let extension = if first & 0x04 != 0 { 4 } else { 0 };
        let data = rest.get(extension..).ok_or(bad("shorter than its MPEG-2 header extension"))?;
        Ok(Video { picture_type: third & 7, data })
    }

    /// Whether the packet starts with a header: of a sequence, a group or a picture.
    pub(super) fn starts_picture(&self) -> bool {
        matches!(self.data, [0, 0, 1, 0x00 | 0xb3 | 0xb8, ..])
    }

    /// The units in front of the slices. Where there are none, the type of the picture is told
    /// from the payload header.
    pub(super) fn units(&self, mut tell: impl FnMut(Unit)) {
        let head = self.data.get(..HEADERS).unwrap_or(self.data);
        let mut started = false;
        if self.starts_picture() {
            for at in start_codes(head) {
                let unit = mpeg_video::classify(&self.data[at..]);
                tell(unit);
                if matches!(unit, Unit::Slice(_)) {
                    started = true;
                    break;
                }
            }
        }
        if !started && self.picture_type != 0 {
            let mut picture = mpeg_video::picture(self.picture_type);
            picture.starts_picture = false;
            tell(Unit::Slice(picture));
        }
    }
}

/// Where the bytes behind each `00 00 01` stand.
fn start_codes(data: &[u8]) -> impl Iterator<Item = usize> + '_ {
    data.windows(3).enumerate().filter(|(_, w)| *w == [0, 0, 1]).map(|(at, _)| at + 3)
}

/// A packet of MPEG audio (section 3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Audio<'a> {
    /// Where in its frame the packet's first byte stands.
    pub(super) offset: u16,
    /// One or more frames, or a fragment of one.
    pub(super) data: &'a [u8],
}

impl<'a> Audio<'a> {
    pub(super) fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        match *payload {
            [_, _, high, low, ref data @ ..] => Ok(Audio { offset: u16::from_be_bytes([high, low]), data }),
            _ => Err(Malformed {
                format: "MPEG audio payload",
                offset: payload.len(),
                reason: "shorter than its header",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::codec::{Entry, Prediction};

    use super::*;

    fn units(payload: &[u8]) -> Vec<Unit> {
        let mut units = Vec::new();
        Video::parse(payload).unwrap().units(|unit| units.push(unit));
        units
    }

    #[test]
    fn headers_in_the_packet_are_told() {
        let payload =
            [0, 0, 0x21, 0, 0, 0, 1, 0xb3, 9, 0, 0, 1, 0xb8, 0, 8, 0, 0x40, 0, 0, 1, 0, 0, 8, 0, 0, 1, 1];
        let told = units(&payload);
        assert_eq!(told[..2], [Unit::PARAMETERS, Unit::Group { closed: true }]);
        assert!(matches!(told[2], Unit::Slice(s) if s.entry == Entry::Open && s.starts_picture));
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn packets_of_slices_take_the_type_from_the_payload_header() {
        let told = units(&[4, 0, 0x1b, 0, 1, 2, 3, 4, 0, 0, 1, 5, 6]);
        assert!(
            matches!(told[..], [Unit::Slice(s)] if s.prediction == Prediction::Both && !s.starts_picture)
        );
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        assert!(Video::parse(&[0, 0, 0]).is_err());
        assert!(Video::parse(&[4, 0, 0, 0, 1, 2, 3]).is_err());
        assert!(Audio::parse(&[0, 0, 0]).is_err());
        assert_eq!(Audio::parse(&[0, 0, 1, 2, 9]).unwrap(), Audio { offset: 258, data: &[9] });
    }
}
