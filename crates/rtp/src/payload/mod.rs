//! RTP payloads: what one packet means ([`RtpReader`]), access units out of packets ([`depacketize`]), and into them
//! ([`Packetizer`]).

pub mod av1;
pub mod depacketize;
mod h264;
mod h265;
pub mod jpeg2000;
mod layered;
mod mpeg;
mod packetize;
mod parameter_sets;
pub mod raw_video;
mod reader;
mod split;
pub mod vp8;
pub mod vp9;

pub use packetize::Packetizer;
pub use parameter_sets::parameter_sets;
pub use reader::{PrioritiesRead, RtpReader, has_priorities};
pub use split::Splitter;

use outflow_media::Malformed;

/// The longest NAL unit header.
const NAL_HEADER: usize = 2;

/// The header of a NAL unit: one byte in H.264, two in H.265.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NalHeader {
    bytes: [u8; NAL_HEADER],
    length: usize,
}

impl NalHeader {
    const fn short(byte: u8) -> Self {
        NalHeader { bytes: [byte, 0], length: 1 }
    }

    const fn long(bytes: [u8; NAL_HEADER]) -> Self {
        NalHeader { bytes, length: 2 }
    }

    /// The one that stands in these bytes.
    fn of(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [byte] => Some(NalHeader::short(byte)),
            [one, other] => Some(NalHeader::long([one, other])),
            _ => None,
        }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }
}

/// The flags of a fragmentation header: whether a NAL unit begins with the fragment, and whether it ends with it (RFC 6184,
/// section 5.8; RFC 7798, section 4.4.3).
const fn fragment_flags(begins: bool, ends: bool) -> u8 {
    (begins as u8) << 7 | (ends as u8) << 6
}

/// What a payload of H.264 or H.265 holds, one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    /// A whole NAL unit.
    Whole(&'a [u8]),
    /// A fragment of one.
    Fragment {
        /// The header of the unit, put together again.
        header: NalHeader,
        /// What stands behind the header.
        data: &'a [u8],
        first: bool,
        last: bool,
    },
}

/// Reads units that each have their size in front, behind `skip` further bytes; that is what all
/// aggregation packets have in common.
fn aggregated<'a>(
    mut rest: &'a [u8],
    skip: usize,
    format: &'static str,
    tell: &mut impl FnMut(Piece<'a>),
) -> Result<(), Malformed> {
    let whole = rest.len();
    while !rest.is_empty() {
        let bad = |reason| Malformed { format, offset: whole - rest.len(), reason };
        let &[high, low, ref behind @ ..] = rest else {
            return Err(bad("aggregation packet ends within a size"));
        };
        let size = usize::from(u16::from_be_bytes([high, low]));
        let unit = behind.get(skip..).and_then(|b| b.split_at_checked(size));
        let Some((unit, next)) = unit else {
            return Err(bad("aggregated unit is longer than the packet"));
        };
        if unit.is_empty() {
            return Err(bad("aggregated unit is empty"));
        }
        tell(Piece::Whole(unit));
        rest = next;
    }
    Ok(())
}
