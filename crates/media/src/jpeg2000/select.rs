//! A part of a codestream, as a codestream.

use super::geometry::{precincts, up};
use super::header::{Area, Component, Header};
use super::order::{Place, places};
use super::packet::{Extent, PacketCoding, PrecinctState};
use super::tile_parts;
use super::tile_parts::tile_parts;
use crate::Malformed;
use crate::image::Rect;

/// What of a codestream is wanted. The default is all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selection {
    /// At most this many quality layers.
    pub layers: Option<u16>,
    /// Width and height halved so often; less, if there are fewer resolutions, or the tiles do not
    /// allow it.
    pub halved: u8,
    /// The first component alone: the luma, where colours were transformed.
    pub gray: bool,
    /// The tiles that have some of these pixels of the whole image. If there are none, all tiles.
    pub part: Option<Rect>,
}

/// Adds to `out` the codestream that is left of `bytes`. Returns its main header.
///
/// What is missing at the end of `bytes` is missing in the result, too: it holds the packets that are
/// there as a whole.
///
/// # Errors
/// What is wrong with `bytes`, or keeps it from being cut down ([`Header::parse`]); `out` is as before.
pub fn select(bytes: &[u8], selection: &Selection, out: &mut Vec<u8>) -> Result<Header, Malformed> {
    select_pieces(bytes, selection, out, |_| ())
}

/// What a [`Piece`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// The main header.
    MainHeader,
    /// The header of a tile-part.
    TileHeader,
    /// A packet.
    Packet {
        /// Its quality layer, from 0.
        layer: u16,
        /// Its resolution, from 0, the smallest.
        resolution: u8,
        /// Its component, from 0.
        component: u8,
    },
}

/// A part of a codestream that is best kept together (a packetization unit of RFC 5371).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub unit: Unit,
    /// Of which tile it is; 0 for the main header.
    pub tile: u16,
    /// Where it ends in the codestream. It begins where the one before ends; what follows the last
    /// is the end of the codestream.
    pub end: usize,
}

/// Like [`select`], and tells each piece that it adds.
///
/// # Errors
/// Those of [`select`].
pub fn select_pieces(
    bytes: &[u8],
    selection: &Selection,
    out: &mut Vec<u8>,
    mut each: impl FnMut(Piece),
) -> Result<Header, Malformed> {
    let before = Header::parse(bytes)?;
    let tiles = tile_parts(&before, bytes)?;
    let cut = Cut::new(&before, selection);
    let start = out.len();
    cut.header.emit(out);
    each(Piece { unit: Unit::MainHeader, tile: 0, end: out.len() - start });
    let (all_columns, _) = before.tiles();
    let (columns, rows) = cut.header.tiles();
    for number in 0..columns * rows {
        let (column, row) = (cut.first_tile.0 + number % columns, cut.first_tile.1 + number / columns);
        let bodies = &tiles[(row * all_columns + column) as usize];
        let area = before.tile_area(column, row);
        let mut result = Ok(());
        let tile = number as u16;
        tile_parts::emit(out, tile, |out| {
            each(Piece { unit: Unit::TileHeader, tile, end: out.len() - start });
            result = packets(&before, area, bytes, bodies, |place, packet, number| {
                if cut.keeps(place) {
                    copy(&bytes[packet.begin..packet.end], packet.numbered.then_some(number), out);
                    each(Piece { unit: place.into(), tile, end: out.len() - start });
                    return true;
                }
                false
            });
        });
        if let Err(malformed) = result {
            out.truncate(start);
            return Err(malformed);
        }
    }
    tile_parts::end(out);
    Ok(cut.header)
}

impl Selection {
    /// Width and height of what is left of an image with this main header.
    pub fn size(&self, header: &Header) -> (u32, u32) {
        let Area { x0, y0, x1, y1 } = Cut::new(header, self).header.image;
        (x1 - x0, y1 - y0)
    }
}

impl From<Place> for Unit {
    fn from(Place { layer, resolution, component, .. }: Place) -> Self {
        Unit::Packet { layer, resolution, component }
    }
}

/// Goes through the packets of a tile that are there. `each` says whether it keeps one, and is told
/// how many it has kept before.
fn packets(
    header: &Header,
    area: Area,
    bytes: &[u8],
    bodies: &[core::ops::Range<usize>],
    mut each: impl FnMut(Place, Extent, u16) -> bool,
) -> Result<(), Malformed> {
    if bodies.is_empty() {
        return Ok(());
    }
    let precincts = precincts(header, area)?;
    let mut known: Vec<Vec<Vec<PrecinctState>>> = precincts
        .iter()
        .map(|component| component.iter().map(|all| all.iter().map(PrecinctState::new).collect()).collect())
        .collect();
    let mut places = places(header, &precincts).into_iter();
    let mut kept = 0_u16;
    for body in bodies {
        let (mut at, body_bytes) = (body.start, &bytes[..body.end]);
        while at < body.end {
            let Some(place) = places.next() else { return Ok(()) };
            let component = usize::from(place.component);
            let told = &mut known[component][usize::from(place.resolution)][place.precinct as usize];
            let (sop, eph) = header.markers;
            let way = PacketCoding { style: header.components[component].coding.style, sop, eph };
            // What comes behind a packet that is not all there cannot be found.
            let Some(packet) = told.packet(body_bytes, at, place.layer, way) else { return Ok(()) };
            if each(place, packet, kept) {
                kept = kept.wrapping_add(1);
            }
            at = packet.end;
        }
    }
    Ok(())
}

/// Adds a packet; `number` goes into its SOP marker segment.
fn copy(packet: &[u8], number: Option<u16>, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(packet);
    if let (Some(number), Some(place)) = (number, out.get_mut(at + 4..at + 6)) {
        place.copy_from_slice(&number.to_be_bytes());
    }
}

/// What is left.
struct Cut {
    header: Header,
    /// Column and row of the first tile.
    first_tile: (u32, u32),
}

impl Cut {
    fn new(before: &Header, selection: &Selection) -> Self {
        let mut header = before.clone();
        if selection.gray {
            header.components.truncate(1);
            header.transformed = false;
        }
        header.layers = selection.layers.unwrap_or(u16::MAX).clamp(1, header.layers);
        let first_tile = selection.part.and_then(|part| crop(&mut header, part)).unwrap_or_default();
        let levels = header.components.iter().map(|component| component.levels).min().unwrap_or_default();
        let most = selection.halved.min(levels);
        // Not at all is always possible.
        let _times = (0..=most).rev().find(|times| halve(&mut header, *times));
        Cut { header, first_tile }
    }

    fn keeps(&self, place: Place) -> bool {
        let component = self.header.components.get(usize::from(place.component));
        place.layer < self.header.layers
            && component.is_some_and(|component| place.resolution <= component.levels)
    }
}

/// Leaves the tiles that have pixels of `part`, and returns column and row of the first.
fn crop(header: &mut Header, part: Rect) -> Option<(u32, u32)> {
    let Area { x0, y0, x1, y1 } = header.image;
    let along = |from: u32, to: u32, tiles_at: u32, tile: u32, begin: usize, length: usize| {
        let edge =
            |offset: usize| u32::try_from(offset).map_or(to, |offset| from.saturating_add(offset).min(to));
        let (begin, end) = (edge(begin), edge(begin.saturating_add(length)));
        let first = begin.checked_sub(tiles_at)? / tile;
        let behind = (end - tiles_at).div_ceil(tile);
        let at = u64::from(tiles_at) + u64::from(first) * u64::from(tile);
        let right = u64::from(tiles_at) + u64::from(behind) * u64::from(tile);
        let right = right.min(to.into()) as u32;
        (begin < end).then_some((first, at as u32, from.max(at as u32), right))
    };
    let columns = along(x0, x1, header.tiles_at.0, header.tile.0, part.left, part.width)?;
    let rows = along(y0, y1, header.tiles_at.1, header.tile.1, part.top, part.height)?;
    header.tiles_at = (columns.1, rows.1);
    header.image = Area { x0: columns.2, y0: rows.2, x1: columns.3, y1: rows.3 };
    Some((columns.0, rows.0))
}

/// Leaves out the highest resolutions, if the tiles can be halved so often. Returns whether they can.
fn halve(header: &mut Header, times: u8) -> bool {
    let shift = u32::from(times);
    let Area { x0, y0, x1, y1 } = header.image;
    let image = Area { x0: up(x0, shift), y0: up(y0, shift), x1: up(x1, shift), y1: up(y1, shift) };
    if image.x0 >= image.x1 || image.y0 >= image.y1 {
        return false;
    }
    if header.tiles() == (1, 1) {
        header.tiles_at = (image.x0, image.y0);
        header.tile = (image.x1 - image.x0, image.y1 - image.y0);
    } else {
        let numbers = [header.tiles_at.0, header.tiles_at.1, header.tile.0, header.tile.1];
        if numbers.iter().any(|number| !number.is_multiple_of(1 << shift)) {
            return false;
        }
        header.tiles_at = (numbers[0] >> shift, numbers[1] >> shift);
        header.tile = (numbers[2] >> shift, numbers[3] >> shift);
    }
    header.image = image;
    header.components.iter_mut().for_each(|component| component.halve(times));
    true
}

impl Component {
    fn halve(&mut self, times: u8) {
        self.levels -= times;
        self.coding.precincts.truncate(usize::from(self.levels) + 1);
        // A step size for each sub-band, or one from which the others follow (T.800, table A.28).
        let bytes = match self.quantization.first().map(|style| style & 0x1f) {
            Some(0) => 1,
            Some(2) => 2,
            _ => return,
        };
        self.quantization.truncate(1 + bytes * (3 * usize::from(self.levels) + 1));
    }
}
