//! Packets that become longer on their way than a path carries: one payload in two.

use outflow_media::Track;

use super::reader::Payload;
use super::{NalHeader, Piece, fragment_flags, h264, h265};

/// Makes two payloads of one.
#[derive(Debug, Clone, Copy)]
pub struct Splitter(Payload);

impl Splitter {
    /// For packets of this track.
    pub fn of(track: &Track) -> Self {
        Splitter(Payload::of(track))
    }

    /// As a number, for another process.
    pub fn save(self) -> u8 {
        match self.0 {
            Payload::H264 => 1,
            Payload::H265 { order_numbers: false } => 2,
            _ => 0,
        }
    }

    /// The one of this number.
    pub fn restore(number: u8) -> Self {
        Splitter(match number {
            1 => Payload::H264,
            2 => Payload::H265 { order_numbers: false },
            _ => Payload::Packet,
        })
    }

    /// Two payloads, about as long as each other, that hold what one holds: the fragments of a NAL unit, or of a
    /// fragment (RFC 6184, section 5.8; RFC 7798, section 4.4.3), or the units of an aggregate, half by half (5.7.1;
    /// 4.4.2). Nothing of other codecs, of the interleaved modes, whose units have numbers, and of what is too short.
    pub fn split(self, payload: &[u8]) -> Option<[Vec<u8>; 2]> {
        let mut pieces = Vec::new();
        let tell = |piece| pieces.push(piece);
        match self.0 {
            Payload::H264 if h264::is_plain(*payload.first()?) => h264::pieces(payload, tell).ok()?,
            Payload::H265 { order_numbers: false } if h265::is_plain(*payload.first()?) => {
                h265::pieces(payload, false, tell).ok()?;
            }
            _ => return None,
        }
        let fragment = |unit, flags| match self.0 {
            Payload::H264 => h264::fragment(unit, flags).to_vec(),
            _ => h265::fragment(unit, flags).to_vec(),
        };
        let header = payload.get(..if matches!(self.0, Payload::H264) { 1 } else { 2 })?;
        match pieces[..] {
            [Piece::Whole(unit)] if unit.len() == payload.len() => {
                let (bytes, data) = unit.split_at_checked(header.len())?;
                let unit = NalHeader::of(bytes)?;
                halves(data, |is_end| fragment(unit, fragment_flags(!is_end, is_end)))
            }
            [Piece::Fragment { header, data, first, last }] => {
                halves(data, |is_end| fragment(header, fragment_flags(first && !is_end, last && is_end)))
            }
            [_, _, ..] => aggregates(header, &pieces),
            _ => None,
        }
    }
}

/// Each half of the data behind what `head` says for it: the first, or the one at the end.
fn halves(data: &[u8], head: impl Fn(bool) -> Vec<u8>) -> Option<[Vec<u8>; 2]> {
    let (one, other) = data.split_at(data.len().div_ceil(2));
    let half = |is_end, data: &[u8]| [&head(is_end)[..], data].concat();
    (!other.is_empty()).then(|| [half(false, one), half(true, other)])
}

/// The units in two aggregates, where the longer of both is shortest; one alone stands for itself.
fn aggregates(header: &[u8], pieces: &[Piece<'_>]) -> Option<[Vec<u8>; 2]> {
    let units = pieces.iter().map(|piece| match piece {
        Piece::Whole(unit) => Some(*unit),
        Piece::Fragment { .. } => None,
    });
    let units = units.collect::<Option<Vec<_>>>()?;
    let bytes = |units: &[&[u8]]| units.iter().map(|unit| unit.len()).sum::<usize>();
    let at = (1..units.len()).min_by_key(|at| bytes(&units[..*at]).max(bytes(&units[*at..])))?;
    let (before, behind) = units.split_at(at);
    Some([before, behind].map(|units| match units {
        [unit] => unit.to_vec(),
        _ => units.iter().fold(header.to_vec(), |mut all, unit| {
            all.extend((unit.len() as u16).to_be_bytes());
            all.extend(*unit);
            all
        }),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The NAL units that payloads hold, whole ones and those that are put together.
    fn units(track: &Track, payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut units: Vec<Vec<u8>> = Vec::new();
        let mut open = None;
        for payload in payloads {
            let tell = |piece: Piece<'_>| match piece {
                Piece::Whole(unit) => units.push(unit.to_vec()),
                Piece::Fragment { header, data, first, last } => {
                    assert_eq!(open.is_none(), first, "each begins once");
                    let unit: &mut Vec<u8> = open.get_or_insert_with(|| header.bytes().to_vec());
                    unit.extend(data);
                    units.extend(if last { open.take() } else { None });
                }
            };
            match Payload::of(track) {
                Payload::H264 => h264::pieces(payload, tell),
                _ => h265::pieces(payload, false, tell),
            }
            .expect("it can be read");
        }
        assert_eq!(open, None);
        units
    }

    fn split(track: &Track, payload: &[u8]) -> Vec<Vec<u8>> {
        let split = Splitter::of(track).split(payload).expect("it can be split").to_vec();
        assert!(split.iter().all(|half| half.len() < payload.len()), "each is shorter");
        split
    }

    fn long(header: &[u8]) -> Vec<u8> {
        [header, &(0..=99).collect::<Vec<u8>>()].concat()
    }

    fn h265() -> Track {
        let (vps, sps, pps) = (None, None, None);
        Track { codec: outflow_media::Codec::H265 { vps, sps, pps }, ..Track::h264() }
    }

    #[test]
    fn a_unit_is_split_into_fragments_and_a_fragment_into_two() {
        for (track, header) in [(Track::h264(), &[0x65][..]), (h265(), &[0x26, 1])] {
            let unit = long(header);
            let [one, other] = split(&track, &unit).try_into().expect("two");
            assert_eq!(units(&track, &[one.clone(), other.clone()]), core::slice::from_ref(&unit));
            assert!(one.len().abs_diff(other.len()) <= 1);
            let four = [split(&track, &one), split(&track, &other)].concat();
            assert_eq!(units(&track, &four), [unit]);
            let inner = split(&track, &four[1]);
            assert_eq!(units(&track, &[&four[..1], &inner, &four[2..]].concat()), [long(header)]);
        }
    }

    #[test]
    fn an_aggregate_is_split_between_its_units() {
        let aggregate = |header: &[u8], units: &[&[u8]]| {
            let sized = units.iter().flat_map(|unit| [&(unit.len() as u16).to_be_bytes()[..], unit].concat());
            [header.to_vec(), sized.collect()].concat()
        };
        let (sps, pps, idr) = (&[0x67, 1, 2][..], &[0x68, 3][..], &long(&[0x65])[..]);
        let parts = split(&Track::h264(), &aggregate(&[0x78], &[sps, pps, idr]));
        assert_eq!(parts, [aggregate(&[0x78], &[sps, pps]), idr.to_vec()]);
        let (vps, idr) = (&[0x40, 1, 2][..], &long(&[0x26, 1])[..]);
        let parts = split(&h265(), &aggregate(&[0x60, 1], &[idr, vps, vps]));
        assert_eq!(parts, [idr.to_vec(), aggregate(&[0x60, 1], &[vps, vps])]);
    }

    #[test]
    fn what_cannot_be_split_is_left() {
        let left = |track: &Track, payload: &[u8]| {
            assert_eq!(Splitter::of(track).split(payload), None, "{payload:?}")
        };
        for kind in [25, 26, 27, 29, 30] {
            left(&Track::h264(), &long(&[0x60 | kind, 0x85]));
        }
        for payload in [&[][..], &[0x65], &[0x65, 1], &[0x7c], &[0x7c, 0x85, 1], &[0x78, 0, 9, 1]] {
            left(&Track::h264(), payload);
        }
        left(&h265(), &long(&[50 << 1, 1, 0, 0]));
        left(&h265(), &[0x26]);
        left(&Track { fmtp: "sprop-max-don-diff=2".into(), ..h265() }, &long(&[0x26, 1]));
        left(&Track { codec: outflow_media::Codec::Vp8, ..Track::h264() }, &long(&[0x10]));
    }
}
