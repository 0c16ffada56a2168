//! NAL units of H.265 (ITU-T H.265 section 7.3).
//!
//! The type of a slice can only be read with its picture parameter set at hand, so what a picture
//! needs is taken from its NAL unit type and its temporal layer alone.

use super::{Entry, Leading, Prediction, Slice, Switch, Unit, has_recovery_point};

/// NAL unit types (ITU-T H.265 table 7-1) that are told apart.
mod nal {
    pub(super) const TSA_N: u8 = 2;
    pub(super) const TSA_R: u8 = 3;
    pub(super) const STSA_N: u8 = 4;
    pub(super) const STSA_R: u8 = 5;
    pub(super) const RADL_N: u8 = 6;
    pub(super) const RASL_N: u8 = 8;
    pub(super) const RASL_R: u8 = 9;
    pub(super) const LAST_SUB_LAYER: u8 = 14;
    pub(super) const FIRST_IRAP: u8 = 16;
    pub(super) const CRA: u8 = 21;
    pub(super) const LAST_IRAP: u8 = 23;
    pub(super) const VPS: u8 = 32;
    pub(super) const SPS: u8 = 33;
    pub(super) const PPS: u8 = 34;
    pub(super) const DELIMITER: u8 = 35;
    pub(super) const PREFIX_SEI: u8 = 39;
}

/// The type of a NAL unit, from the first byte of its header.
pub const fn nal_type(header: u8) -> u8 {
    header >> 1 & 0x3f
}

/// Whether the NAL unit is a video parameter set.
pub const fn is_vps(header: u8) -> bool {
    nal_type(header) == nal::VPS
}

/// Whether the NAL unit is a sequence parameter set.
pub const fn is_sps(header: u8) -> bool {
    nal_type(header) == nal::SPS
}

/// Whether the NAL unit is a picture parameter set.
pub const fn is_pps(header: u8) -> bool {
    nal_type(header) == nal::PPS
}

/// Whether the NAL unit is a slice of a picture at which decoding can start.
pub const fn is_irap(header: u8) -> bool {
    matches!(nal_type(header), nal::FIRST_IRAP..=nal::LAST_IRAP)
}

/// Whether the NAL unit is supplemental information in front of a picture.
pub const fn is_sei(header: u8) -> bool {
    nal_type(header) == nal::PREFIX_SEI
}

/// Whether the NAL unit is an access unit delimiter.
pub const fn is_delimiter(header: u8) -> bool {
    nal_type(header) == nal::DELIMITER
}

/// Reads a NAL unit given from its header on; it may be cut off anywhere.
///
/// Units of layers above the base (`nuh_layer_id`, scalable and multiview streams) are
/// [`Unit::Other`].
pub fn classify(data: &[u8]) -> Unit {
    let &[first, second, ref rest @ ..] = data else { return Unit::Other };
    if (first & 1) << 5 | second >> 3 != 0 {
        return Unit::Other;
    }
    match nal_type(first) {
        kind @ (0..=9 | nal::FIRST_IRAP..=nal::LAST_IRAP) => Unit::Slice(slice(kind, second, rest)),
        nal::VPS => Unit::Parameters { sub_layers: rest.get(1).map_or(0, sub_layers) },
        nal::SPS => Unit::Parameters { sub_layers: rest.first().map_or(0, sub_layers) },
        nal::PPS => Unit::PARAMETERS,
        nal::DELIMITER => Unit::Delimiter,
        nal::PREFIX_SEI => Unit::Sei { recovery: has_recovery_point(rest) },
        _ => Unit::Other,
    }
}

/// What `vps_max_sub_layers_minus1` or `sps_max_sub_layers_minus1` says, which stand at the same place of
/// their bytes (sections 7.3.2.1 and 7.3.2.2); 0 if it is the value that is reserved.
const fn sub_layers(byte: &u8) -> u8 {
    match *byte >> 1 & 7 {
        7 => 0,
        minus_one => minus_one + 1,
    }
}

fn slice(kind: u8, second: u8, rest: &[u8]) -> Slice {
    let irap = kind >= nal::FIRST_IRAP;
    let entry = match kind {
        nal::CRA => Entry::Open,
        _ if irap => Entry::Closed,
        _ => Entry::No,
    };
    let leading = match kind {
        nal::RASL_N | nal::RASL_R => Leading::Skipped,
        nal::RADL_N..nal::RASL_N => Leading::Decodable,
        _ => Leading::No,
    };
    let switch = match kind {
        nal::TSA_N | nal::TSA_R => Switch::Above,
        nal::STSA_N | nal::STSA_R => Switch::Own,
        _ => Switch::No,
    };
    Slice {
        starts_picture: rest.first().is_some_and(|b| b & 0x80 != 0),
        prediction: if irap { Prediction::Intra } else { Prediction::Unknown },
        // Even types up to 14 are sub-layer non-reference pictures.
        reference: kind > nal::LAST_SUB_LAYER || kind & 1 == 1,
        entry,
        leading: Some(leading),
        sub_layer: Some((second & 7).saturating_sub(1)),
        switch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice_of(kind: u8, layer: u8) -> Slice {
        match classify(&[kind << 1, layer + 1, 0x80]) {
            Unit::Slice(slice) => slice,
            other => panic!("{other:?} is no slice"),
        }
    }

    #[test]
    fn pictures_at_which_decoding_can_start() {
        for idr in [16, 17, 18, 19, 20] {
            assert_eq!(slice_of(idr, 0).entry, Entry::Closed);
        }
        let cra = slice_of(21, 0);
        assert_eq!((cra.entry, cra.prediction), (Entry::Open, Prediction::Intra));
        assert_eq!(slice_of(1, 0).entry, Entry::No);
    }

    #[test]
    fn leading_and_trailing_pictures() {
        assert_eq!(slice_of(8, 0).leading, Some(Leading::Skipped));
        assert_eq!(slice_of(9, 0).leading, Some(Leading::Skipped));
        assert_eq!(slice_of(6, 0).leading, Some(Leading::Decodable));
        assert_eq!(slice_of(7, 0).leading, Some(Leading::Decodable));
        assert_eq!(slice_of(1, 0).leading, Some(Leading::No));
    }

    #[test]
    fn even_types_are_not_references_and_layers_are_read() {
        assert!(!slice_of(0, 0).reference);
        assert!(slice_of(1, 0).reference);
        assert!(!slice_of(4, 2).reference);
        assert_eq!(slice_of(4, 2).sub_layer, Some(2));
        assert!(slice_of(20, 0).reference);
    }

    #[test]
    fn switching_points_are_told_apart() {
        let switches = [1, 2, 3, 4, 5, 6].map(|kind| slice_of(kind, 1).switch);
        let (no, own, above) = (Switch::No, Switch::Own, Switch::Above);
        assert_eq!(switches, [no, above, above, own, own, no]);
    }

    #[test]
    fn parameter_sets_of_x265_tell_how_many_sub_layers_there_are() {
        // With `temporal-layers=2`; then an SPS with one, one with the reserved value, and one cut off.
        let vps = [0x40, 0x01, 0x0c, 0x03, 0xff, 0xff];
        assert_eq!(classify(&vps), Unit::Parameters { sub_layers: 2 });
        assert_eq!(classify(&[0x42, 0x01, 0x02, 0x01]), Unit::Parameters { sub_layers: 2 });
        assert_eq!(classify(&[0x42, 0x01, 0x01]), Unit::Parameters { sub_layers: 1 });
        assert_eq!(classify(&[0x42, 0x01, 0x0f]), Unit::PARAMETERS);
        assert_eq!(classify(&[0x40, 0x01, 0x0c]), Unit::PARAMETERS);
    }

    #[test]
    fn units_around_slices_are_told_apart() {
        for parameters in [32u8, 33, 34] {
            assert_eq!(classify(&[parameters << 1, 1]), Unit::PARAMETERS);
        }
        assert_eq!(classify(&[35 << 1, 1]), Unit::Delimiter);
        assert_eq!(classify(&[39 << 1, 1, 6, 1, 0x80]), Unit::Sei { recovery: true });
        assert_eq!(classify(&[40 << 1, 1, 6, 1, 0x80]), Unit::Other);
        assert_eq!(classify(&[1 << 1, 0x09]), Unit::Other, "nuh_layer_id 1");
        assert_eq!(classify(&[2]), Unit::Other);
        // Cut off behind the header: the type still counts.
        assert!(matches!(classify(&[40, 1]), Unit::Slice(s) if s.entry == Entry::Closed));
    }
}
