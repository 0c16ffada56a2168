//! Units of MPEG-1 and MPEG-2 video (ISO/IEC 13818-2 section 6.2).

use super::{Entry, Prediction, Slice, Switch, Unit};

const PICTURE: u8 = 0x00;
const SEQUENCE: u8 = 0xb3;
const GROUP: u8 = 0xb8;

/// Reads what stands behind the prefix `00 00 01`, given from the start code value on; it may be
/// cut off anywhere.
///
/// An intra picture is an open entry point unless its group says that it is closed. The slices
/// themselves say nothing that the picture header did not, so they are [`Unit::Other`].
pub fn classify(data: &[u8]) -> Unit {
    match *data {
        [PICTURE, _, second, ..] => Unit::Slice(picture(second >> 3 & 7)),
        [SEQUENCE, ..] => Unit::PARAMETERS,
        // 25 bits of time code, then closed_gop.
        [GROUP, _, _, _, fourth, ..] => Unit::Group { closed: fourth & 0x40 != 0 },
        [GROUP, ..] => Unit::Group { closed: false },
        _ => Unit::Other,
    }
}

/// What `picture_coding_type` says (table 6-12): 1 I, 2 P, 3 B, 4 D (MPEG-1, DC only).
pub fn picture(coding_type: u8) -> Slice {
    let prediction = match coding_type {
        1 | 4 => Prediction::Intra,
        2 => Prediction::Forward,
        3 => Prediction::Both,
        _ => Prediction::Unknown,
    };
    Slice {
        starts_picture: true,
        prediction,
        reference: prediction != Prediction::Both,
        entry: if prediction == Prediction::Intra { Entry::Open } else { Entry::No },
        leading: None,
        sub_layer: None,
        switch: Switch::No,
    }
}

/// Whether the start code value belongs to a sequence header.
pub const fn is_sequence(code: u8) -> bool {
    code == SEQUENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_headers_tell_their_type() {
        // temporal_reference 0, then the type in bits 3 to 5 of the second byte.
        let read = |kind: u8| match classify(&[0, 0, kind << 3, 0xff]) {
            Unit::Slice(slice) => slice,
            other => panic!("{other:?} is no picture"),
        };
        assert_eq!((read(1).prediction, read(1).entry), (Prediction::Intra, Entry::Open));
        assert_eq!((read(2).prediction, read(2).reference), (Prediction::Forward, true));
        assert_eq!((read(3).prediction, read(3).reference), (Prediction::Both, false));
        assert_eq!(read(0).prediction, Prediction::Unknown);
    }

    #[test]
    fn headers_and_slices_are_told_apart() {
        assert_eq!(classify(&[0xb3, 0x16]), Unit::PARAMETERS);
        assert_eq!(classify(&[0xb8, 0, 8, 0, 0x40]), Unit::Group { closed: true });
        assert_eq!(classify(&[0xb8, 0, 8, 0, 0x20]), Unit::Group { closed: false });
        assert_eq!(classify(&[0xb8]), Unit::Group { closed: false });
        assert_eq!(classify(&[0x01, 1, 2, 3]), Unit::Other);
        assert_eq!(classify(&[0x00, 1]), Unit::Other);
        assert_eq!(classify(&[]), Unit::Other);
    }
}
