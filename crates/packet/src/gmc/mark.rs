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
//! Where the packet has an extension of two-byte elements (section 4.3), it is one of these: from byte 16 on 14, 7 and
//! the same 7 bytes, and three of padding.
//!
//! Receivers leave out elements that they know nothing of (RFC 8285, section 4.1.2.2).

use outflow_media::Tag;
use outflow_rtp::HEADER;

use crate::layers::Level;
use crate::limits::MARKED_BYTES_MAX;

/// An element of 7 bytes, which begin with that they are ours.
const VALUE_BYTES: usize = 7;
const OURS: [u8; 2] = [b'O', b'F'];
/// The extension's head: its form, and how many words it has.
const EXTENSION_BYTES: usize = 4;
const EXTENSION: u8 = 0x10;
/// Of the first byte of a header, all but whether there is padding: version 2, no contributing source.
const FIRST: (u8, u8) = (0xdf, 0x80);
const NOTHING: u8 = 0xff;

/// How elements of an extension are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Behind one byte: 4 bits each of number and length.
    OneByte,
    /// Behind two.
    TwoByte,
}

impl Form {
    const fn of(profile: [u8; 2]) -> Option<Self> {
        match profile {
            [0xbe, 0xde] => Some(Form::OneByte),
            [0x10, 0..=0x0f] => Some(Form::TwoByte),
            _ => None,
        }
    }

    /// What stands before the value: element 14, of 7 bytes.
    const fn head(self) -> &'static [u8] {
        match self {
            Form::OneByte => &[0xe6],
            Form::TwoByte => &[14, 7],
        }
    }

    /// Words that the element takes, with padding.
    const fn words(self) -> u16 {
        match self {
            Form::OneByte => 2,
            Form::TwoByte => 3,
        }
    }

    /// The value of the element, where the elements begin with it.
    fn value(self, elements: &[u8]) -> Option<&[u8; VALUE_BYTES]> {
        let value = elements.strip_prefix(self.head())?.first_chunk()?;
        value.starts_with(&OURS).then_some(value)
    }
}

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
    pub const BYTES: usize = EXTENSION_BYTES + 4 * Form::OneByte.words() as usize;

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
        let (header, behind) = packet.split_first_chunk::<HEADER>()?;
        let ([high, low, words @ ..], elements) = behind.split_first_chunk::<EXTENSION_BYTES>()?;
        let form = Form::of([*high, *low]).filter(|_| header[0] & FIRST.0 == FIRST.1 | EXTENSION)?;
        if u16::from_be_bytes(*words) < form.words() || elements.len() < 4 * usize::from(form.words()) {
            return None;
        }
        let [_, _, layer, layers, grown, flags, ends] = *form.value(elements)?;
        let is_sound = (2..=Level::MAX).contains(&layers)
            && layer < layers
            && grown < layers
            && (ends == NOTHING || ends < layers);
        let flag = |bit: u8| flags & bit != 0;
        is_sound.then_some(Mark {
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

    fn value(self) -> [u8; VALUE_BYTES] {
        let flags = [self.first, self.opens, self.adds, self.opens_all];
        let flags = (0..).zip(flags).fold(0, |all, (bit, is_set)| all | u8::from(is_set) << bit);
        let [o, f] = OURS;
        [o, f, self.layer, self.layers, self.grown, flags, self.ends.unwrap_or(NOTHING)]
    }

    /// The packet of this header, and of what stands behind that, with the mark in it, in place of another one. Nothing
    /// where it has no place: with contributing sources, another form of extension, or no room
    /// ([`MARKED_BYTES_MAX`]).
    pub fn write(self, header: &[u8; HEADER], behind: &[u8]) -> Option<Vec<u8>> {
        let (profile, words, behind) = match header[0] & FIRST.0 {
            first if first == FIRST.1 => ([0xbe, 0xde], 0, behind),
            first if first == FIRST.1 | EXTENSION => {
                let ([high, low, words @ ..], behind) = behind.split_first_chunk::<EXTENSION_BYTES>()?;
                let words = u16::from_be_bytes(*words);
                if behind.len() < usize::from(words) * 4 {
                    return None;
                }
                ([*high, *low], words, behind)
            }
            _ => return None,
        };
        let form = Form::of(profile)?;
        let (words, behind) = match words.checked_sub(form.words()).zip(form.value(behind)) {
            Some((others, _)) => (others, &behind[4 * usize::from(form.words())..]),
            None => (words, behind),
        };
        let start = HEADER + EXTENSION_BYTES + 4 * usize::from(form.words());
        if start + behind.len() > MARKED_BYTES_MAX {
            return None;
        }
        let words = words.checked_add(form.words())?.to_be_bytes();
        let mut packet = Vec::with_capacity(start + behind.len());
        packet.extend(header);
        packet[0] |= EXTENSION;
        packet.extend(profile.into_iter().chain(words));
        packet.extend(form.head().iter().copied().chain(self.value()));
        packet.resize(start, 0);
        packet.extend(behind);
        Some(packet)
    }

    /// Takes the mark out of a packet, which is then as it was before [`Mark::write`], and stands this many bytes behind
    /// where it stood: none if it has no mark.
    pub fn take_out(packet: &mut [u8]) -> usize {
        let form = Form::of([packet.get(12).copied().unwrap_or(0), packet.get(13).copied().unwrap_or(0)]);
        let (Some(_), Some(form)) = (Mark::read(packet), form) else { return 0 };
        let others = u16::from_be_bytes([packet[14], packet[15]]) - form.words();
        packet[14..16].copy_from_slice(&others.to_be_bytes());
        let mark = 4 * usize::from(form.words());
        let (head, out) = match others {
            0 => (HEADER, EXTENSION_BYTES + mark),
            _ => (HEADER + EXTENSION_BYTES, mark),
        };
        if others == 0 {
            packet[0] &= !EXTENSION;
        }
        packet.copy_within(..head, out);
        out
    }
}
