//! What a packet says of itself to routers on its way: a header extension of ours (RFC 8285, section 4.2).
//!
//! It is the first element, so that it stands at a fixed place where there is no contributing source:
//!
//! ```text
//! byte 12  0xbe 0xde  words      the extension's head
//! byte 16  0xe6                  element 14, of 7 bytes
//! byte 17  'O' 'F'               that it is ours: a session description may give 14 to another
//! byte 19  layer  layers  grown  as in a tag
//! byte 22  flags                 1 first, 2 opens, 4 adds, 8 opens all layers
//! byte 23  ends                  as in a tag; 0xff for nothing
//! ```
//!
//! Receivers leave out elements that they know nothing of (RFC 8285, section 4.1.2.2).

use outflow_media::Tag;
use outflow_rtp::HEADER;

use crate::layers::Level;
use crate::limits::MARKED_BYTES_MAX;

const PROFILE: [u8; 2] = [0xbe, 0xde];
/// Element 14 of 7 bytes, and that it is ours.
const HEAD: [u8; 3] = [0xe6, b'O', b'F'];
const ELEMENT_BYTES: usize = 8;
const ELEMENT_WORDS: u16 = 2;
/// Where it stands.
const AT: usize = HEADER + 4;
const EXTENSION: u8 = 0x10;
/// Of the first byte of a header, all but whether there is padding: version 2, no contributing source.
const FIRST: (u8, u8) = (0xdf, 0x80);
const NOTHING: u8 = 0xff;

/// What a packet of a layered track says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// [`Tag::layer`].
    pub layer: u8,
    /// [`Tag::layers`].
    pub layers: u8,
    /// [`Tag::grown`].
    pub grown: u8,
    /// [`Tag::first`].
    pub first: bool,
    /// [`Tag::opens`].
    pub opens: bool,
    /// [`Tag::adds`].
    pub adds: bool,
    /// A receiver of less can take all layers from here on ([`Openings`](crate::Openings)).
    pub opens_all: bool,
    /// [`Tag::ends`].
    pub ends: Option<u8>,
}

impl Mark {
    /// By how much a packet is longer that had no extension, at most.
    pub const BYTES: usize = 4 + ELEMENT_BYTES;

    /// That of a packet; nothing if its track has no layers to choose from.
    pub const fn of(tag: &Tag, opens_all: bool) -> Option<Self> {
        let Tag { layer, layers, grown, first, opens, adds, ends, .. } = *tag;
        if layers <= 1 || layers > Level::MAX || layer >= layers {
            return None;
        }
        Some(Mark { layer, layers, grown, first, opens, adds, opens_all, ends })
    }

    /// Reads it from a packet, if it has one.
    pub fn read(packet: &[u8]) -> Option<Self> {
        let (extension, element) = packet.get(HEADER..AT + ELEMENT_BYTES)?.split_at(4);
        let is_there = packet[0] & FIRST.0 == FIRST.1 | EXTENSION
            && extension[..2] == PROFILE
            && u16::from_be_bytes([extension[2], extension[3]]) >= ELEMENT_WORDS
            && element[..3] == HEAD;
        let [layer, layers, grown, flags, ends] = *element[3..].first_chunk()?;
        let is_sound = (2..=Level::MAX).contains(&layers)
            && layer < layers
            && grown < layers
            && (ends == NOTHING || ends < layers);
        let flag = |bit: u8| flags & bit != 0;
        (is_there && is_sound).then_some(Mark {
            layer,
            layers,
            grown,
            first: flag(1),
            opens: flag(2),
            adds: flag(4),
            opens_all: flag(8),
            ends: (ends != NOTHING).then_some(ends),
        })
    }

    /// As the parts of a tag by which layers are chosen.
    pub(super) fn tag(self) -> Tag {
        let Mark { layer, layers, grown, first, opens, adds, ends, .. } = self;
        Tag { layer, layers, grown, first, opens, adds, ends, ..Tag::default() }
    }

    fn element(self) -> [u8; ELEMENT_BYTES] {
        let flags = [self.first, self.opens, self.adds, self.opens_all];
        let flags = (0..).zip(flags).fold(0, |all, (bit, is_set)| all | u8::from(is_set) << bit);
        let ends = self.ends.unwrap_or(NOTHING);
        let [element, o, f] = HEAD;
        [element, o, f, self.layer, self.layers, self.grown, flags, ends]
    }

    /// The packet of this header, and of what stands behind that, with the mark in it, in place of another one. Nothing
    /// where it has no place: with contributing sources, another form of extension, or no room
    /// ([`MARKED_BYTES_MAX`]).
    pub fn write(self, header: &[u8; HEADER], behind: &[u8]) -> Option<Vec<u8>> {
        let (words, behind) = match header[0] & FIRST.0 {
            first if first == FIRST.1 => (0, behind),
            first if first == FIRST.1 | EXTENSION => {
                let (extension, behind) = behind.split_first_chunk::<4>()?;
                let words = u16::from_be_bytes([extension[2], extension[3]]);
                if extension[..2] != PROFILE || behind.len() < usize::from(words) * 4 {
                    return None;
                }
                match words.checked_sub(ELEMENT_WORDS).filter(|_| behind.starts_with(&HEAD)) {
                    Some(others) => (others, &behind[ELEMENT_BYTES..]),
                    None => (words, behind),
                }
            }
            _ => return None,
        };
        let bytes = AT + ELEMENT_BYTES + behind.len();
        if bytes > MARKED_BYTES_MAX {
            return None;
        }
        let words = words.checked_add(ELEMENT_WORDS)?.to_be_bytes();
        let mut packet = Vec::with_capacity(bytes);
        packet.extend(header);
        packet[0] |= EXTENSION;
        packet.extend(PROFILE.into_iter().chain(words).chain(self.element()));
        packet.extend(behind);
        Some(packet)
    }
}
