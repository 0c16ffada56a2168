//! Where the packets of each tile lie (T.800, A.4).

use core::ops::Range;

use super::header::{Header, Reader, SOT};
use super::malformed;
use crate::Malformed;

const SOD: u16 = 0xff93;
pub(super) const EOC: u16 = 0xffd9;
const COM: u16 = 0xff64;
const PLT: u16 = 0xff58;

/// The parts of a codestream that hold packets of one tile, in their order.
pub(super) type Bodies = Vec<Range<usize>>;

/// Where packets lie, by the tiles' numbers. A codestream may end early: what there is, is there.
pub(super) fn tile_parts(header: &Header, bytes: &[u8]) -> Result<Vec<Bodies>, Malformed> {
    let (columns, rows) = header.tiles();
    let mut tiles = vec![Bodies::new(); (columns * rows) as usize];
    let mut reader = Reader { bytes, at: header.bytes };
    while reader.at < bytes.len() {
        let at = reader.at;
        match reader.u16()? {
            EOC => break,
            SOT => {}
            _ => return Err(malformed(at, "neither another tile-part nor the end")),
        }
        let mut segment = reader.segment()?;
        let (number, length) = (segment.u16()?, segment.u32()? as usize);
        let tile = tiles.get_mut(usize::from(number)).ok_or(malformed(at, "no such tile"))?;
        let body = body(&mut reader)?;
        // 0: up to the end of the codestream.
        let whole = if length == 0 { without_eoc(bytes) } else { at.saturating_add(length) };
        let end = whole.min(bytes.len()).max(body);
        tile.push(body..end);
        reader.at = end;
    }
    Ok(tiles)
}

/// Where the packets begin behind the header of a tile-part.
fn body(reader: &mut Reader<'_>) -> Result<usize, Malformed> {
    loop {
        let at = reader.at;
        match reader.u16()? {
            SOD => return Ok(reader.at),
            COM | PLT => reader.skip_segment()?,
            _ => return Err(malformed(at, "a tile is coded in a way of its own: it cannot be cut down")),
        }
    }
}

fn without_eoc(bytes: &[u8]) -> usize {
    bytes.len() - if bytes.ends_with(&EOC.to_be_bytes()) { 2 } else { 0 }
}

/// Adds the only tile-part of a tile to `out`. `packets` adds what it holds.
pub(super) fn emit(out: &mut Vec<u8>, number: u16, packets: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&SOT.to_be_bytes());
    out.extend_from_slice(&10_u16.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    // The first of one.
    out.extend_from_slice(&[0, 1]);
    out.extend_from_slice(&SOD.to_be_bytes());
    packets(out);
    let length = (out.len() - at) as u32;
    out[at + 6..at + 10].copy_from_slice(&length.to_be_bytes());
}

/// Adds the end of a codestream.
pub(super) fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(&EOC.to_be_bytes());
}
