//! NAL units of H.264 (ITU-T H.264 section 7.3).

use super::bits::BitReader;
use super::{Entry, Prediction, Slice, Switch, Unit, has_recovery_point};

/// NAL unit types (ITU-T H.264 table 7-1) that are told apart.
mod nal {
    pub(super) const SLICE: u8 = 1;
    pub(super) const PARTITION_A: u8 = 2;
    pub(super) const IDR: u8 = 5;
    pub(super) const SEI: u8 = 6;
    pub(super) const SPS: u8 = 7;
    pub(super) const PPS: u8 = 8;
    pub(super) const DELIMITER: u8 = 9;
    pub(super) const SPS_EXTENSION: u8 = 13;
    pub(super) const PREFIX: u8 = 14;
    pub(super) const SUBSET_SPS: u8 = 15;
}

/// The type of a NAL unit, from the first byte of its header.
pub const fn nal_type(header: u8) -> u8 {
    header & 0x1f
}

/// Whether the NAL unit is a sequence parameter set.
pub const fn is_sps(header: u8) -> bool {
    nal_type(header) == nal::SPS
}

/// Whether the NAL unit is a picture parameter set.
pub const fn is_pps(header: u8) -> bool {
    nal_type(header) == nal::PPS
}

/// Whether the NAL unit is a slice of an IDR picture.
pub const fn is_idr(header: u8) -> bool {
    nal_type(header) == nal::IDR
}

/// Whether the NAL unit is supplemental information.
pub const fn is_sei(header: u8) -> bool {
    nal_type(header) == nal::SEI
}

/// Whether the NAL unit is an access unit delimiter.
pub const fn is_delimiter(header: u8) -> bool {
    nal_type(header) == nal::DELIMITER
}

/// Reads a NAL unit given from its header byte on; it may be cut off anywhere.
pub fn classify(data: &[u8]) -> Unit {
    let Some((&header, rest)) = data.split_first() else { return Unit::Other };
    match nal_type(header) {
        nal::SLICE | nal::PARTITION_A | nal::IDR => Unit::Slice(slice(header, rest)),
        nal::SEI => Unit::Sei { recovery: has_recovery_point(rest) },
        nal::SPS | nal::PPS | nal::SPS_EXTENSION | nal::SUBSET_SPS => Unit::PARAMETERS,
        nal::DELIMITER => Unit::Delimiter,
        nal::PREFIX => prefix(rest),
        _ => Unit::Other,
    }
}

/// Reads the start of a slice header: `first_mb_in_slice`, `slice_type` (section 7.3.3).
fn slice(header: u8, rest: &[u8]) -> Slice {
    let mut bits = BitReader::nal(rest);
    let first_macroblock = bits.ue();
    let slice_type = bits.ue().filter(|t| *t < 10).map(|t| t % 5);
    let idr = is_idr(header);
    let prediction = match slice_type {
        _ if idr => Prediction::Intra,
        Some(0 | 3) => Prediction::Forward,
        Some(1) => Prediction::Both,
        Some(2 | 4) => Prediction::Intra,
        _ => Prediction::Unknown,
    };
    Slice {
        starts_picture: first_macroblock == Some(0),
        prediction,
        reference: header & 0x60 != 0,
        entry: if idr { Entry::Closed } else { Entry::No },
        leading: None,
        sub_layer: None,
        switch: Switch::No,
    }
}

/// Reads a prefix NAL unit: with `svc_extension_flag`, it names the temporal layer of the slice
/// behind it (section F.7.3.1.1, formerly annex G).
fn prefix(rest: &[u8]) -> Unit {
    match rest {
        [first, _, third, ..] if first & 0x80 != 0 => Unit::Layer(third >> 5),
        _ => Unit::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice_of(data: &[u8]) -> Slice {
        match classify(data) {
            Unit::Slice(slice) => slice,
            other => panic!("{other:?} is no slice"),
        }
    }

    #[test]
    fn slices_tell_their_type_and_whether_they_are_references() {
        // As x264 writes them: first_mb 0, types 7 (I), 5 (P), 6 (B).
        let idr = slice_of(&[0x65, 0x88, 0x84]);
        assert_eq!((idr.prediction, idr.entry), (Prediction::Intra, Entry::Closed));
        assert!(idr.reference && idr.starts_picture);
        let p = slice_of(&[0x41, 0x9a, 0x24]);
        assert_eq!((p.prediction, p.reference), (Prediction::Forward, true));
        let b = slice_of(&[0x01, 0x9e, 0x41]);
        assert_eq!((b.prediction, b.reference), (Prediction::Both, false));
        assert_eq!(b.entry, Entry::No);
        let i = slice_of(&[0x41, 0x88, 0x80]);
        assert_eq!((i.prediction, i.entry), (Prediction::Intra, Entry::No));
    }

    #[test]
    fn a_later_slice_does_not_start_a_picture() {
        // first_mb_in_slice = 1 ("010"), slice_type = 0 ("1").
        assert!(!slice_of(&[0x41, 0b0101_0000]).starts_picture);
    }

    #[test]
    fn a_cut_off_slice_still_tells_what_its_header_says() {
        let idr = slice_of(&[0x65]);
        assert_eq!((idr.prediction, idr.entry), (Prediction::Intra, Entry::Closed));
        let other = slice_of(&[0x41]);
        assert_eq!((other.prediction, other.starts_picture), (Prediction::Unknown, false));
        assert_eq!(slice_of(&[0x41, 0, 0, 0, 0, 0, 0]).prediction, Prediction::Unknown);
    }

    #[test]
    fn units_around_slices_are_told_apart() {
        assert_eq!(classify(&[0x67, 0x42]), Unit::PARAMETERS);
        assert_eq!(classify(&[0x68]), Unit::PARAMETERS);
        assert_eq!(classify(&[0x09, 0xf0]), Unit::Delimiter);
        assert_eq!(classify(&[0x06, 6, 1, 0xc4, 0x80]), Unit::Sei { recovery: true });
        assert_eq!(classify(&[0x06, 5, 1, 0xc4, 0x80]), Unit::Sei { recovery: false });
        assert_eq!(classify(&[0x6e, 0x80, 0, 0x47]), Unit::Layer(2));
        assert_eq!(classify(&[0x6e, 0x00, 0, 0x47]), Unit::Other);
        assert_eq!(classify(&[0x0c, 0xff]), Unit::Other);
        assert_eq!(classify(&[]), Unit::Other);
    }
}
