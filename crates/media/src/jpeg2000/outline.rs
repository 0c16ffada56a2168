//! What of a codestream is there while it comes: its main header, its tile-parts, its end (T.800, A.2).

use super::header::{SOC, SOT};
use super::malformed;
use super::tile_parts::EOC;
use crate::Malformed;

/// Bytes of an SOT marker segment, and what it says of its own length.
const SOT_BYTES: usize = 12;
const SOT_LENGTH: u16 = 10;
/// Bytes of a tile-part that holds nothing: its SOT marker segment, and the SOD marker.
const TILE_PART_BYTES_MIN: usize = SOT_BYTES + 2;

/// A tile-part that is there as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TilePart {
    /// Of which tile it is.
    pub tile: u16,
    /// Which of the tile's parts it is, from 0 (TPsot).
    pub index: u8,
    /// Where it begins in the codestream: at its SOT marker.
    pub begin: usize,
    /// Where it ends.
    pub end: usize,
}

/// Follows a codestream that grows, by the lengths that its marker segments and tile-parts tell; what
/// is in them is not looked at.
///
/// Tile-parts must tell their length: one that goes on "up to the end" (Psot = 0) is refused, because
/// nothing tells where the end is when codestreams follow one another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    at: usize,
    needs: usize,
    header: Option<usize>,
    tile_parts: Vec<TilePart>,
    length: Option<usize>,
}

impl Outline {
    /// Goes on. `bytes` begin with the codestream, as much of it as is there by now; what follows its end
    /// is not looked at.
    ///
    /// # Errors
    /// It is no codestream. What was found before that stays found.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        while self.length.is_none() {
            let Some(marker) = self.number(bytes, 0) else { return Ok(()) };
            match (marker, self.header) {
                (SOC, None) if self.at == 0 => self.at = 2,
                _ if self.at == 0 => return Err(malformed(0, "no SOC marker")),
                (SOT, _) => {
                    self.header.get_or_insert(self.at);
                    let Some(part) = self.tile_part(bytes)? else { return Ok(()) };
                    self.tile_parts.push(part);
                    self.at = part.end;
                }
                (EOC, Some(_)) => self.length = Some(self.at + 2),
                (0xff30.., None) => {
                    let Some(length) = self.number(bytes, 2) else { return Ok(()) };
                    if length < 2 {
                        return Err(malformed(self.at + 2, "a marker segment shorter than its length"));
                    }
                    self.at += 2 + usize::from(length);
                }
                _ => return Err(malformed(self.at, "no marker of a codestream")),
            }
        }
        Ok(())
    }

    /// Bytes of the main header, up to the first SOT marker, once that has come.
    pub fn header(&self) -> Option<usize> {
        self.header
    }

    /// The tile-parts that are there as a whole, in their order.
    pub fn tile_parts(&self) -> &[TilePart] {
        &self.tile_parts
    }

    /// Bytes of the codestream, its EOC marker included, once that has come.
    pub fn length(&self) -> Option<usize> {
        self.length
    }

    /// How many bytes there must be before more can be found.
    pub fn needs(&self) -> usize {
        self.needs
    }

    /// Two bytes as a number; `None` if they have not come, which is noted.
    fn number(&mut self, bytes: &[u8], offset: usize) -> Option<u16> {
        let at = self.at + offset;
        self.needs = at + 2;
        bytes.get(at..)?.first_chunk().map(|chunk| u16::from_be_bytes(*chunk))
    }

    fn tile_part(&mut self, bytes: &[u8]) -> Result<Option<TilePart>, Malformed> {
        let begin = self.at;
        self.needs = begin + SOT_BYTES;
        let segment = bytes.get(begin..).and_then(|rest| rest.first_chunk::<SOT_BYTES>());
        let Some(&[_, _, l0, l1, tile_high, tile_low, p0, p1, p2, p3, index, _]) = segment else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([p0, p1, p2, p3]) as usize;
        if u16::from_be_bytes([l0, l1]) != SOT_LENGTH || length < TILE_PART_BYTES_MIN {
            return Err(malformed(begin, "a tile-part that does not tell its length"));
        }
        self.needs = begin.saturating_add(length);
        let part =
            TilePart { tile: u16::from_be_bytes([tile_high, tile_low]), index, begin, end: self.needs };
        Ok((bytes.len() >= part.end).then_some(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile_part(tile: u8, index: u8, body: &[u8]) -> Vec<u8> {
        let length = (TILE_PART_BYTES_MIN + body.len()) as u8;
        [&[0xff, 0x90, 0, 10, 0, tile, 0, 0, 0, length, index, 2, 0xff, 0x93], body].concat()
    }

    fn codestream() -> Vec<u8> {
        let header = [0xff, 0x4f, 0xff, 0x51, 0, 4, 1, 2, 0xff, 0x52, 0, 2];
        [&header[..], &tile_part(0, 0, b"abc"), &tile_part(0, 1, &[0xff, 0xd9]), &[0xff, 0xd9]].concat()
    }

    #[test]
    fn what_is_there_is_found_however_it_comes() {
        let whole = codestream();
        let mut growing = Outline::default();
        for length in 0..=whole.len() {
            growing.advance(&whole[..length]).expect("valid so far");
            let mut at_once = Outline::default();
            at_once.advance(&whole[..length]).expect("valid so far");
            assert_eq!(growing, at_once);
            assert_eq!(growing.length().is_none(), growing.needs() > length, "{length}");
        }
        assert_eq!((growing.header(), growing.length()), (Some(12), Some(whole.len())));
        let part = |index, begin, end| TilePart { tile: 0, index, begin, end };
        assert_eq!(growing.tile_parts(), [part(0, 12, 29), part(1, 29, 45)]);
    }

    #[test]
    fn what_follows_the_end_belongs_to_another() {
        let whole = codestream();
        let mut outline = Outline::default();
        outline.advance(&[&whole[..], &whole].concat()).expect("valid");
        assert_eq!(outline.length(), Some(whole.len()));
    }

    #[test]
    fn what_is_no_codestream_is_refused_where_it_ends_to_be_one() {
        for (at, byte, offset) in [(1, 0x50, 0), (5, 1, 4), (8, 0, 8), (15, 9, 12), (21, 0, 12), (29, 0, 29)]
        {
            let mut bytes = codestream();
            bytes[at] = byte;
            let error = Outline::default().advance(&bytes).expect_err("malformed");
            assert_eq!(error.offset, offset, "byte {at}: {error}");
        }
    }
}
