//! A piece of an object.
//!
//! A receiver has to know how long the whole is before it can keep a piece. Most objects are one piece: of it
//! nothing is said but its bytes. The last piece of a longer one ends it; others say how many bytes are
//! behind them, which is two bytes of a datagram. So whichever comes first says it.

use outflow_media::Malformed;
use outflow_petri::leb128::{Reader, put, put_prefixed, size};

use crate::limits::{FRAGMENT_BYTES_MIN, UNIT_BYTES_MAX};

/// Bits of the type: the length is there, else the fragment ends with the datagram; the offset is, else it is
/// 0; the bytes behind are told, else there are none.
pub(super) const HAS_LENGTH: u8 = 1;
const HAS_OFFSET: u8 = 2;
const HAS_MORE: u8 = 4;

/// Types of fragments.
pub(super) const FIRST_TYPE: u8 = 0x10;
pub(super) const LAST_TYPE: u8 = FIRST_TYPE | HAS_LENGTH | HAS_OFFSET | HAS_MORE;

/// A piece of an object of the net. It lies within its unit, and is of no bytes only if that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Which object.
    pub unit: u64,
    /// Where in it the piece begins, in bytes.
    pub offset: u32,
    /// Bytes of the whole unit, at most 8 MiB.
    pub unit_bytes: u32,
    /// The piece.
    pub bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The unit in one piece.
    ///
    /// `None` if it is longer than 8 MiB.
    pub fn whole(unit: u64, bytes: &'a [u8]) -> Option<Self> {
        let is_short = bytes.len() <= UNIT_BYTES_MAX;
        is_short.then_some(Fragment { unit, offset: 0, unit_bytes: bytes.len() as u32, bytes })
    }

    /// Bytes of the unit behind it.
    pub const fn behind(&self) -> u32 {
        self.unit_bytes.saturating_sub(self.offset).saturating_sub(self.bytes.len() as u32)
    }

    /// Its first bytes, and what is left of it.
    ///
    /// # Panics
    ///
    /// If it has fewer.
    pub fn split_at(&self, count: usize) -> (Self, Self) {
        let (head, tail) = self.bytes.split_at(count);
        let tail = Fragment { offset: self.offset + count as u32, bytes: tail, ..*self };
        (Fragment { bytes: head, ..*self }, tail)
    }

    pub(super) fn parse(reader: &mut Reader<'a>, kind: u8) -> Result<Self, Malformed> {
        let mut number = |bit| {
            if kind & bit == 0 { Ok(0) } else { reader.below(UNIT_BYTES_MAX + 1, "a unit too long") }
        };
        let (offset, behind) = (number(HAS_OFFSET)?, number(HAS_MORE)?);
        let unit = reader.number()?;
        let bytes = if kind & HAS_LENGTH == 0 {
            reader.rest()
        } else {
            reader.prefixed(UNIT_BYTES_MAX, "a unit too long")?
        };
        let unit_bytes = offset as usize + bytes.len() + behind as usize;
        if unit_bytes > UNIT_BYTES_MAX {
            return Err(reader.error("a unit too long"));
        }
        if bytes.is_empty() && unit_bytes > 0 {
            return Err(reader.error("a fragment of no bytes"));
        }
        Ok(Fragment { unit, offset, unit_bytes: unit_bytes as u32, bytes })
    }

    /// With its length, so that others may come behind it; or without.
    pub(super) fn emit(&self, has_length: bool, out: &mut Vec<u8>) {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let behind = self.behind();
        let kind = flag(has_length, HAS_LENGTH) | flag(self.offset > 0, HAS_OFFSET);
        out.push(FIRST_TYPE | kind | flag(behind > 0, HAS_MORE));
        for number in [self.offset, behind] {
            if number > 0 {
                put(out, u64::from(number));
            }
        }
        put(out, self.unit);
        if has_length {
            put_prefixed(out, self.bytes);
        } else {
            out.extend_from_slice(self.bytes);
        }
    }

    /// How many of its bytes go into so much room, and whether with their length. Nothing goes where a piece
    /// would be too small to be worth it.
    pub(super) fn fit(&self, room: usize) -> Option<(usize, bool)> {
        let told = |number: u32| if number > 0 { size(u64::from(number)) } else { 0 };
        let head = 1 + size(self.unit) + told(self.offset);
        let all = self.bytes.len();
        let bare = head + told(self.behind()) + all;
        if bare + size(all as u64) <= room {
            return Some((all, true));
        }
        if bare <= room {
            return Some((all, false));
        }
        // What is behind a part is at most all that is behind where it begins.
        let part = room.checked_sub(head + told(self.behind() + all as u32))?;
        (FRAGMENT_BYTES_MIN <= part && part < all).then_some((part, false))
    }
}
