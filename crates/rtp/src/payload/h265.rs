//! Payload structures of H.265 (RFC 7798 section 4.4).

use outflow_media::Malformed;
use outflow_media::codec::h265::nal_type;

use super::{NalHeader, Piece, aggregated};

/// The type of an aggregate.
pub(super) const AGGREGATION: u8 = 48;
const FRAGMENT: u8 = 49;
const PACI: u8 = 50;

fn bad(reason: &'static str) -> Malformed {
    Malformed { format: "H.265 payload", offset: 0, reason }
}

/// Whether a payload that begins with this byte is a NAL unit, an aggregate or a fragment.
pub(super) const fn is_plain(header: u8) -> bool {
    nal_type(header) <= FRAGMENT
}

/// What stands before a fragment's data (section 4.4.3): its flags say whether the unit of this header begins or ends.
pub(super) fn fragment(header: NalHeader, flags: u8) -> [u8; 3] {
    let [first, second] = header.bytes;
    [first & 0x81 | FRAGMENT << 1, second, flags | nal_type(first)]
}

/// Tells the NAL units and fragments in a payload. With `order_numbers` (`sprop-max-don-diff`
/// above 0) they have decoding order numbers, which are passed over. Packets that carry payload
/// control information (PACI) are read as the packet within.
pub(super) fn pieces<'a>(
    payload: &'a [u8],
    order_numbers: bool,
    mut tell: impl FnMut(Piece<'a>),
) -> Result<(), Malformed> {
    let &[first, second, ref rest @ ..] = payload else { return Err(bad("shorter than its header")) };
    match nal_type(first) {
        PACI => {
            let &[fields, sizes, ref rest @ ..] = rest else { return Err(bad("PACI without its header")) };
            let extension = usize::from(fields & 1) << 4 | usize::from(sizes >> 4);
            let data = rest.get(extension..).ok_or(bad("PACI extension is longer than the packet"))?;
            let inner = fields >> 1 & 0x3f;
            let header = first & 0x81 | inner << 1;
            structure([header, second], None, data, order_numbers, &mut tell)
        }
        _ => structure([first, second], Some(payload), rest, order_numbers, &mut tell),
    }
}

/// `whole` is the packet as it stands, if it may be a NAL unit itself.
fn structure<'a>(
    header: [u8; 2],
    whole: Option<&'a [u8]>,
    rest: &'a [u8],
    order_numbers: bool,
    tell: &mut impl FnMut(Piece<'a>),
) -> Result<(), Malformed> {
    let don = if order_numbers { 2 } else { 0 };
    let without_don = |data: &'a [u8]| data.get(don..).ok_or(bad("ends within an order number"));
    match nal_type(header[0]) {
        AGGREGATION if order_numbers => numbered(without_don(rest)?, tell),
        AGGREGATION => aggregated(rest, 0, "H.265 payload", tell),
        FRAGMENT => {
            let (&fragment, data) = rest.split_first().ok_or(bad("fragment without a header"))?;
            let first = fragment & 0x80 != 0;
            tell(Piece::Fragment {
                header: NalHeader::long([header[0] & 0x81 | (fragment & 0x3f) << 1, header[1]]),
                data: if first { without_don(data)? } else { data },
                first,
                last: fragment & 0x40 != 0,
            });
            Ok(())
        }
        0..AGGREGATION => {
            match whole {
                // The order number would stand between the header and the rest of the unit.
                Some(whole) if !order_numbers => tell(Piece::Whole(whole)),
                _ => tell(Piece::Fragment {
                    header: NalHeader::long(header),
                    data: without_don(rest)?,
                    first: true,
                    last: true,
                }),
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// An aggregation packet with order numbers: the first unit's was passed over already, the others
/// have a difference of one byte in front of their size.
fn numbered<'a>(rest: &'a [u8], tell: &mut impl FnMut(Piece<'a>)) -> Result<(), Malformed> {
    let mut rest = rest;
    loop {
        let &[high, low, ref behind @ ..] = rest else { return Err(bad("ends within a size")) };
        let size = usize::from(u16::from_be_bytes([high, low]));
        let (unit, next) = behind
            .split_at_checked(size)
            .filter(|(unit, _)| !unit.is_empty())
            .ok_or(bad("aggregated unit is empty or longer than the packet"))?;
        tell(Piece::Whole(unit));
        match next {
            [] => return Ok(()),
            [_, behind @ ..] => rest = behind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(payload: &[u8], order_numbers: bool) -> Vec<Vec<u8>> {
        let mut units = Vec::new();
        pieces(payload, order_numbers, |piece| match piece {
            Piece::Whole(unit) => units.push(unit.to_vec()),
            Piece::Fragment { header, data, .. } => units.push([header.bytes(), data].concat()),
        })
        .unwrap();
        units
    }

    #[test]
    fn single_aggregated_and_fragmented_units() {
        assert_eq!(told(&[0x26, 1, 9], false), [[0x26, 1, 9]]);
        let aggregated = [0x60, 1, 0, 3, 0x40, 1, 7, 0, 2, 0x42, 1];
        assert_eq!(told(&aggregated, false), [vec![0x40, 1, 7], vec![0x42, 1]]);
        assert_eq!(told(&[0x62, 1, 0x93, 0xaa], false), [[0x26, 1, 0xaa]]);
    }

    #[test]
    fn order_numbers_are_passed_over() {
        assert_eq!(told(&[0x26, 1, 5, 5, 9], true), [[0x26, 1, 9]]);
        let aggregated = [0x60, 1, 5, 5, 0, 2, 0x40, 1, 6, 0, 2, 0x42, 1];
        assert_eq!(told(&aggregated, true), [[0x40, 1], [0x42, 1]]);
        assert_eq!(told(&[0x62, 1, 0x93, 5, 5, 0xaa], true), [[0x26, 1, 0xaa]]);
        assert_eq!(told(&[0x62, 1, 0x53, 0xaa], true), [[0x26, 1, 0xaa]], "only the first fragment has one");
    }

    #[test]
    fn payload_control_information_is_taken_off() {
        // Inner type 19, an extension of 3 bytes.
        assert_eq!(told(&[0x64, 1, 19 << 1, 0x30, 1, 2, 3, 0xaa], false), [[0x26, 1, 0xaa]]);
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        for payload in [
            &[][..],
            &[0x26],
            &[0x60, 1, 0],
            &[0x60, 1, 0, 0],
            &[0x60, 1, 0, 4, 1],
            &[0x62, 1],
            &[0x64, 1, 0],
            &[0x64, 1, 0, 0x20, 1],
        ] {
            assert!(pieces(payload, false, |_| {}).is_err(), "{payload:?}");
        }
        for payload in
            [&[0x26, 1, 5][..], &[0x60, 1, 5, 5], &[0x62, 1, 0x93, 5], &[0x60, 1, 5, 5, 0, 1, 2, 3]]
        {
            assert!(pieces(payload, true, |_| {}).is_err(), "{payload:?}");
        }
    }
}
