//! JPEG 2000 in RTP (RFC 5371): each packet holds some bytes of a codestream, and says where they
//! belong.

use core::ops::Range;

use outflow_media::Malformed;
use outflow_media::jpeg2000::{Piece, Unit};

/// Bytes of the payload header.
pub const HEADER_BYTES: usize = 8;

/// The priority of packets whose sender has no order of them (RFC 5371, section 4.1).
pub const NO_PRIORITY: u8 = 255;

/// Bytes of a codestream, at most: offsets have 24 bits.
pub const CODESTREAM_BYTES_MAX: usize = 1 << 24;

/// What of the main header a packet holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MainHeader {
    /// Nothing.
    None,
    /// A part that is not its last.
    Part,
    /// Its last part.
    End,
    /// All of it.
    Whole,
}

/// The payload header (RFC 5371, section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// How the image is scanned: 0 for a progressive frame; 1 and 2 for odd and even fields.
    pub scan: u8,
    /// What of the main header is in it.
    pub main_header: MainHeader,
    /// Which main header the frame has; 0 if its sender does not tell (RFC 5372, section 2).
    pub main_header_id: u8,
    /// How important it is, 0 the most (RFC 5372, section 3), or [`NO_PRIORITY`].
    pub priority: u8,
    /// The only tile that it has bytes of.
    pub tile: Option<u16>,
    /// Where in the codestream its bytes belong; 24 bits.
    pub offset: u32,
}

impl Header {
    /// Reads the header of a payload, and gives the bytes of the codestream behind it.
    ///
    /// # Errors
    /// There is no header, or nothing behind it.
    pub fn parse(payload: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let wrong = |reason| Malformed { format: "JPEG 2000 payload", offset: payload.len(), reason };
        let (header, bytes) = payload
            .split_first_chunk::<HEADER_BYTES>()
            .filter(|(_, bytes)| !bytes.is_empty())
            .ok_or(wrong("no header, or nothing behind it"))?;
        let [flags, priority, tile_high, tile_low, _, offset @ ..] = *header;
        let tile = u16::from_be_bytes([tile_high, tile_low]);
        let header = Header {
            scan: flags >> 6,
            main_header: match flags >> 4 & 3 {
                0 => MainHeader::None,
                1 => MainHeader::Part,
                2 => MainHeader::End,
                _ => MainHeader::Whole,
            },
            main_header_id: flags >> 1 & 7,
            priority,
            tile: (flags & 1 == 0).then_some(tile),
            offset: u32::from_be_bytes([0, offset[0], offset[1], offset[2]]),
        };
        Ok((header, bytes))
    }

    /// The header as it goes on the wire.
    pub fn emit(&self) -> [u8; HEADER_BYTES] {
        let flags = self.scan << 6
            | (self.main_header as u8) << 4
            | (self.main_header_id & 7) << 1
            | u8::from(self.tile.is_none());
        let [tile_high, tile_low] = self.tile.unwrap_or(0).to_be_bytes();
        let [_, high, middle, low] = self.offset.to_be_bytes();
        [flags, self.priority, tile_high, tile_low, 0, high, middle, low]
    }
}

/// How packets are told to be more or less important than others (RFC 5372, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priorities {
    /// Not at all.
    #[default]
    None,
    /// Those of lower quality layers first.
    Layer,
    /// Those of smaller resolutions first.
    Resolution,
    /// Those of earlier components first.
    Component,
}

impl Priorities {
    /// As the parameter `pt` of a description says (RFC 5372, section 4). Orders by other things are
    /// told by nothing that is left of a codestream when it was cut down.
    pub fn of(pt: &str) -> Self {
        match pt.trim().to_ascii_lowercase().as_str() {
            "layer" => Priorities::Layer,
            "resolution" => Priorities::Resolution,
            "component" => Priorities::Component,
            _ => Priorities::None,
        }
    }

    /// Of one piece: headers have 0, and what comes first of the others has 1.
    pub fn of_piece(self, unit: Unit) -> u8 {
        let one_more = |number: u16| u8::try_from(number.saturating_add(1)).unwrap_or(NO_PRIORITY - 1);
        match (self, unit) {
            (Priorities::None, _) => NO_PRIORITY,
            (_, Unit::MainHeader | Unit::TileHeader) => 0,
            (Priorities::Layer, Unit::Packet { layer, .. }) => one_more(layer),
            (Priorities::Resolution, Unit::Packet { resolution, .. }) => one_more(resolution.into()),
            (Priorities::Component, Unit::Packet { component, .. }) => one_more(component.into()),
        }
    }

    /// Whether a piece may go into one packet with the one before it. Layers do not share packets, so that
    /// each can be left out alone; the header of a tile-part goes with what it is the header of.
    fn share(self, before: Unit, unit: Unit) -> bool {
        self != Priorities::Layer
            || before == Unit::TileHeader
            || self.of_piece(before) == self.of_piece(unit)
    }
}

/// Says how a codestream of `length` bytes goes into payloads of at most `payload_max` bytes: `each` is
/// told the header of each, the bytes that go behind it, and whether it is the last.
///
/// The main header goes by itself, tiles do not share packets, nor do layers where they are told by the
/// priority, and what fits a packet is not torn apart. `None` if nothing fits, or the codestream is longer than offsets can say.
pub fn packets(
    pieces: &[Piece],
    length: usize,
    payload_max: usize,
    priorities: Priorities,
    mut each: impl FnMut(Header, Range<usize>, bool),
) -> Option<()> {
    let room = payload_max.checked_sub(HEADER_BYTES).filter(|room| *room > 0)?;
    if length > CODESTREAM_BYTES_MAX || pieces.is_empty() {
        return None;
    }
    let mut pieces = pieces.iter().enumerate().map(|(index, piece)| {
        // What ends the codestream goes with its last piece.
        let end = if index + 1 == pieces.len() { length } else { piece.end.min(length) };
        Piece { end, ..*piece }
    });
    let mut begin = 0;
    let mut next = pieces.next();
    while let Some(first) = next {
        let (mut end, mut priority) = (first.end, priorities.of_piece(first.unit));
        let mut before = first.unit;
        let is_header = first.unit == Unit::MainHeader;
        next = pieces.next();
        while let Some(piece) = next.filter(|piece| {
            let joins = piece.tile == first.tile && priorities.share(before, piece.unit);
            !is_header && joins && piece.end - begin <= room
        }) {
            before = piece.unit;
            (end, priority) = (piece.end, priority.min(priorities.of_piece(piece.unit)));
            next = pieces.next();
        }
        let whole = begin..end;
        while begin < end {
            let until = end.min(begin + room);
            let main_header = match (is_header, begin == whole.start, until == end) {
                (false, ..) => MainHeader::None,
                (true, true, true) => MainHeader::Whole,
                (true, _, true) => MainHeader::End,
                (true, _, false) => MainHeader::Part,
            };
            let tile = (!is_header).then_some(first.tile);
            let offset = begin as u32;
            let header = Header { scan: 0, main_header, main_header_id: 0, priority, tile, offset };
            each(header, begin..until, until == length);
            begin = until;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Header = Header {
        scan: 0,
        main_header: MainHeader::Whole,
        main_header_id: 0,
        priority: NO_PRIORITY,
        tile: None,
        offset: 0,
    };

    /// RFC 5371, section 4.1.
    #[test]
    fn the_fields_lie_where_they_should() {
        let wire = [0b1001_1010, 3, 0x12, 0x34, 0, 0x01, 0x02, 0x03, 0xff];
        let (header, bytes) = Header::parse(&wire).expect("valid");
        let expected = Header {
            scan: 2,
            main_header: MainHeader::Part,
            main_header_id: 5,
            priority: 3,
            tile: Some(0x1234),
            offset: 0x01_02_03,
        };
        assert_eq!((header, bytes), (expected, &[0xff][..]));
        assert_eq!(header.emit(), wire[..8]);
        assert_eq!(PLAIN.emit(), [0b0011_0001, 255, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn what_holds_nothing_is_malformed() {
        for length in 0..=HEADER_BYTES {
            Header::parse(&[0; HEADER_BYTES][..length]).expect_err("malformed");
        }
    }

    fn piece(unit: Unit, tile: u16, end: usize) -> Piece {
        Piece { unit, tile, end }
    }

    const fn packet(layer: u16) -> Unit {
        Unit::Packet { layer, resolution: 0, component: 2 }
    }

    fn cut(
        pieces: &[Piece],
        length: usize,
        max: usize,
        how: Priorities,
    ) -> Vec<(Header, Range<usize>, bool)> {
        let mut all = Vec::new();
        packets(pieces, length, max, how, |header, range, last| all.push((header, range, last)))
            .expect("it fits");
        all
    }

    #[test]
    fn headers_go_alone_and_tiles_apart() {
        let pieces = [
            piece(Unit::MainHeader, 0, 25),
            piece(Unit::TileHeader, 0, 30),
            piece(packet(0), 0, 33),
            piece(packet(1), 0, 39),
            piece(packet(2), 0, 44),
            piece(Unit::TileHeader, 1, 46),
            piece(packet(0), 1, 48),
        ];
        let all = cut(&pieces, 50, 18, Priorities::Layer);
        let told: Vec<_> =
            all.iter().map(|(h, range, _)| (range.clone(), h.main_header, h.tile, h.priority)).collect();
        assert_eq!(
            told,
            [
                (0..10, MainHeader::Part, None, 0),
                (10..20, MainHeader::Part, None, 0),
                (20..25, MainHeader::End, None, 0),
                (25..33, MainHeader::None, Some(0), 0),
                (33..39, MainHeader::None, Some(0), 2),
                (39..44, MainHeader::None, Some(0), 3),
                (44..50, MainHeader::None, Some(1), 0),
            ]
        );
        assert_eq!(all.iter().filter(|(.., last)| *last).count(), 1);
        assert!(all.iter().all(|(h, range, _)| h.offset as usize == range.start));
    }

    #[test]
    fn layers_share_packets_only_where_they_are_not_asked_for() {
        let pieces = [
            piece(Unit::MainHeader, 0, 10),
            piece(Unit::TileHeader, 0, 12),
            piece(packet(0), 0, 14),
            piece(packet(0), 0, 16),
            piece(packet(1), 0, 18),
            piece(packet(1), 0, 20),
            piece(packet(2), 0, 60),
        ];
        let of = |how| {
            let all = cut(&pieces, 60, 38, how);
            all.into_iter().map(|(header, range, _)| (range, header.priority)).collect::<Vec<_>>()
        };
        assert_eq!(of(Priorities::Layer), [(0..10, 0), (10..16, 0), (16..20, 2), (20..50, 3), (50..60, 3)]);
        assert_eq!(of(Priorities::None)[1..], [(10..20, 255), (20..50, 255), (50..60, 255)]);
    }

    #[test]
    fn priorities_are_those_of_the_description() {
        let unit = Unit::Packet { layer: 400, resolution: 3, component: 2 };
        let of = |pt: &str| Priorities::of(pt).of_piece(unit);
        assert_eq!([of("layer"), of(" Resolution"), of("component"), of("progression")], [254, 4, 3, 255]);
    }

    proptest! {
        #[test]
        fn packets_hold_all_bytes_in_order(
            lengths in prop::collection::vec((0..40_usize, 0..3_u16), 1..20),
            max in 9..60_usize,
        ) {
            let (mut end, mut pieces) = (0, vec![]);
            for (length, tile) in lengths {
                end += length;
                let unit = if pieces.is_empty() { Unit::MainHeader } else { packet(0) };
                pieces.push(piece(unit, tile, end));
            }
            let all = cut(&pieces, end + 2, max, Priorities::None);
            let mut at = 0;
            for (index, (_, range, last)) in all.iter().enumerate() {
                prop_assert_eq!((range.start, *last), (at, index + 1 == all.len()));
                prop_assert!(range.len() + HEADER_BYTES <= max);
                at = range.end;
            }
            prop_assert_eq!(at, end + 2);
        }
    }
}
