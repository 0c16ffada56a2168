//! What the units of a coded stream say of the frame they belong to.
//!
//! Every reader here is given one unit from its header byte on, perhaps cut off, and answers a
//! [`Unit`]. What follows from the units of an access unit is worked out, for all codecs alike,
//! by [`Frames`](crate::frames::Frames).

pub mod aac;
pub mod annex_b;
pub mod av1;
pub mod bits;
pub mod h264;
pub mod h265;
pub mod mpeg_audio;
pub mod mpeg_video;
pub mod opus;
pub mod sps;

/// One unit: a NAL unit, or what stands behind an MPEG start code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Says nothing but that a new access unit begins.
    Delimiter,
    /// A parameter set or a sequence header.
    Parameters {
        /// How many temporal sub-layers it announces (H.265); 0 if it does not say.
        sub_layers: u8,
    },
    /// Header of an MPEG group of pictures.
    Group {
        /// Nothing behind the group's first intra picture refers to what was before it.
        closed: bool,
    },
    /// Supplemental information in front of a picture.
    Sei {
        /// It says that decoding can start here (recovery point).
        recovery: bool,
    },
    /// Says of which temporal layer the next slice is (H.264).
    Layer(u8),
    /// A slice, or the header of an MPEG picture.
    Slice(Slice),
    /// Anything else: it belongs to the access unit in which it stands and changes nothing.
    Other,
}

/// What a slice says of its picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// It is the first of its picture. False also where too little of it was given.
    pub starts_picture: bool,
    /// How it is predicted.
    pub prediction: Prediction,
    /// Other pictures of its layer, or of higher ones, may refer to it.
    pub reference: bool,
    /// Whether decoding can start at its picture.
    pub entry: Entry,
    /// Whether its picture is shown before the entry point that stands in front of it
    /// (a leading picture), where the codec says so.
    pub leading: Option<Leading>,
    /// Temporal sub-layer, 0 is the base, of codecs whose slices name it (H.265). Pictures that are no
    /// references may be referred to from higher ones then.
    pub sub_layer: Option<u8>,
    /// Whether a receiver that has the lower sub-layers can add this one from here.
    pub switch: Switch,
}

/// From what a slice is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prediction {
    /// Nothing.
    Intra,
    /// Earlier pictures (P).
    Forward,
    /// Two lists of pictures (B).
    Both,
    /// The slice does not say, or too little of it is there.
    Unknown,
}

/// Whether decoding can start at a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// It can not, unless something else in the access unit says so.
    No,
    /// It can, but leading pictures behind it may still refer to what was before.
    Open,
    /// It can, and nothing behind it refers to what was before.
    Closed,
}

/// Whether pictures behind one refer to those of its sub-layer that were before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// They may.
    No,
    /// Those of the same sub-layer do not, nor does it itself (STSA).
    Own,
    /// Those of the same sub-layer and of higher ones do not, nor does it itself (TSA).
    Above,
}

/// What H.265 says of a picture that is shown before its entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leading {
    /// It is not one.
    No,
    /// It refers to nothing before the entry point (RADL).
    Decodable,
    /// It may refer to what was before the entry point (RASL).
    Skipped,
}

impl Unit {
    /// A parameter set or a sequence header that says nothing of sub-layers.
    pub const PARAMETERS: Unit = Unit::Parameters { sub_layers: 0 };

    /// Whether it is a parameter set or a sequence header.
    pub const fn is_parameters(self) -> bool {
        matches!(self, Unit::Parameters { .. })
    }
}

/// Looks for a recovery point (payload type 6 of ITU-T H.264 section D.1 and H.265 section D.2)
/// among the messages of an SEI, given without its NAL header.
fn has_recovery_point(sei: &[u8]) -> bool {
    const RECOVERY_POINT: u32 = 6;
    let mut bits = bits::BitReader::nal(sei);
    loop {
        let Some(kind) = sei_number(&mut bits) else { return false };
        let Some(size) = sei_number(&mut bits) else { return false };
        if kind == RECOVERY_POINT && size > 0 {
            return true;
        }
        if bits.skip(size.saturating_mul(8)).is_none() {
            return false;
        }
    }
}

/// A number of an SEI message: bytes of 255, and a last one that is less, added up.
fn sei_number(bits: &mut bits::BitReader<'_>) -> Option<u32> {
    let mut sum = 0u32;
    loop {
        let byte = bits.bits(8)?;
        sum = sum.saturating_add(byte);
        if byte != 0xff {
            return Some(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_point_is_found_behind_another_message() {
        // Type 1 of 2 bytes, then type 6 of 1 byte, then trailing bits.
        assert!(has_recovery_point(&[1, 2, 0xaa, 0xbb, 6, 1, 0x84, 0x80]));
        // A message of type 255 + 4 and 300 bytes, cut off.
        assert!(!has_recovery_point(&[0xff, 4, 0xff, 45, 6, 1, 6, 1]));
        assert!(!has_recovery_point(&[1, 2, 6, 1, 0x80]));
        assert!(!has_recovery_point(&[]));
    }
}
