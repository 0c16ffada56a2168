//! Payload structures of H.264 (RFC 6184 section 5).

use outflow_media::Malformed;
use outflow_media::codec::h264::nal_type;

use super::{NalHeader, Piece, aggregated};

/// The type of an aggregate.
pub(super) const STAP_A: u8 = 24;
const STAP_B: u8 = 25;
const MTAP16: u8 = 26;
const MTAP24: u8 = 27;
const FU_A: u8 = 28;
const FU_B: u8 = 29;

fn bad(reason: &'static str) -> Malformed {
    Malformed { format: "H.264 payload", offset: 0, reason }
}

/// Whether a payload that begins with this byte is one of the non-interleaved mode (section 5.4).
pub(super) const fn is_plain(header: u8) -> bool {
    matches!(nal_type(header), 1..=STAP_A | FU_A)
}

/// What stands before a fragment's data (section 5.8): its flags say whether the unit of this header begins or ends.
pub(super) fn fragment(header: NalHeader, flags: u8) -> [u8; 2] {
    let [unit, _] = header.bytes;
    [unit & 0xe0 | FU_A, flags | nal_type(unit)]
}

/// Tells the NAL units and fragments in a payload, in the order in which they were sent.
/// Reserved types hold nothing that is known. Decoding order numbers of the interleaved mode are
/// passed over.
pub(super) fn pieces<'a>(payload: &'a [u8], mut tell: impl FnMut(Piece<'a>)) -> Result<(), Malformed> {
    let Some((&header, rest)) = payload.split_first() else { return Err(bad("empty")) };
    let behind = |skip: usize| rest.get(skip..).ok_or(bad("shorter than its aggregation header"));
    match nal_type(header) {
        1..=23 => tell(Piece::Whole(payload)),
        STAP_A => aggregated(rest, 0, "H.264 payload", &mut tell)?,
        STAP_B => aggregated(behind(2)?, 0, "H.264 payload", &mut tell)?,
        // A decoding order difference of one byte, and a timestamp offset of two or three.
        MTAP16 => aggregated(behind(2)?, 3, "H.264 payload", &mut tell)?,
        MTAP24 => aggregated(behind(2)?, 4, "H.264 payload", &mut tell)?,
        kind @ (FU_A | FU_B) => {
            let don = if kind == FU_B { 2 } else { 0 };
            let (&fragment, rest) = rest.split_first().ok_or(bad("fragment without a header"))?;
            let data = rest.get(don..).ok_or(bad("fragment without its order number"))?;
            tell(Piece::Fragment {
                header: NalHeader::short(header & 0xe0 | fragment & 0x1f),
                data,
                first: fragment & 0x80 != 0,
                last: fragment & 0x40 != 0,
            });
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(payload: &[u8]) -> Vec<Vec<u8>> {
        let mut units = Vec::new();
        pieces(payload, |piece| match piece {
            Piece::Whole(unit) => units.push(unit.to_vec()),
            Piece::Fragment { .. } => panic!("a fragment"),
        })
        .unwrap();
        units
    }

    #[test]
    fn single_and_aggregated_units() {
        assert_eq!(whole(&[0x65, 1, 2]), [[0x65, 1, 2]]);
        assert_eq!(whole(&[24, 0, 2, 0x67, 1, 0, 1, 0x68]), [vec![0x67, 1], vec![0x68]]);
        assert_eq!(whole(&[25, 9, 9, 0, 2, 0x67, 1]), [[0x67, 1]]);
        assert_eq!(whole(&[26, 9, 9, 0, 2, 7, 7, 7, 0x67, 1]), [[0x67, 1]]);
        assert_eq!(whole(&[27, 9, 9, 0, 2, 7, 7, 7, 7, 0x67, 1]), [[0x67, 1]]);
        assert!(whole(&[30, 1, 2]).is_empty());
    }

    #[test]
    fn fragments_rebuild_the_header() {
        let mut told = Vec::new();
        pieces(&[0x7c, 0x85, 0xaa], |piece| told.push(piece)).unwrap();
        pieces(&[0x7d, 0x45, 9, 9, 0xbb], |piece| told.push(piece)).unwrap();
        let header = NalHeader::short(0x65);
        let fragment = |data, first, last| Piece::Fragment { header, data, first, last };
        assert_eq!(told, [fragment(&[0xaa], true, false), fragment(&[0xbb], false, true)]);
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        for payload in [
            &[][..],
            &[24, 0],
            &[24, 0, 3, 1, 2],
            &[24, 0, 0],
            &[25, 1],
            &[26, 0, 0, 0, 1, 7],
            &[28],
            &[29, 0x85, 1],
        ] {
            assert!(pieces(payload, |_| {}).is_err(), "{payload:?}");
        }
    }
}
