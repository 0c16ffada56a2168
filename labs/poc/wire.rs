//! How units go through transports.
//!
//! Every unit has the lab's header of 16 bytes in front, whatever the transport, so that it is known again: a magic
//! number, the unit, the length of all that follows, and where in that a piece begins, each as 32 bits, big endian.
//! A transport of bytes is given one unit behind the other. For a transport of datagrams a unit is cut into pieces of
//! at most [`PIECE_BYTES`], each with such a header of its own. A partial-order connection has units itself: it is
//! given each behind what `outflow poc` wants (`unit u64, bytes u32, flags u32`, little endian).

use std::collections::BTreeMap;

/// The largest datagram: what SRT takes.
pub(crate) const PIECE_BYTES: usize = 1316;
/// The lab's header.
pub(crate) const HEADER: usize = 16;
/// What `outflow poc` wants in front of a unit.
pub(crate) const UNIT_HEADER: usize = 16;
const MAGIC: [u8; 4] = *b"uNi7";
/// No unit is longer.
const UNIT_BYTES_MAX: usize = 1 << 20;

/// What stands in front of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) unit: usize,
    /// Bytes of the whole unit, without a header.
    pub(crate) length: usize,
    /// Where the piece begins in it.
    pub(crate) offset: usize,
}

impl Piece {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let field = |at: usize| Some(u32::from_be_bytes(*rest.get(at..)?.first_chunk()?) as usize);
        let piece = Piece { unit: field(0)?, length: field(4)?, offset: field(8)? };
        (piece.length <= UNIT_BYTES_MAX && piece.offset <= piece.length).then_some(piece)
    }

    fn emit(self, out: &mut Vec<u8>) {
        out.extend(MAGIC);
        for field in [self.unit, self.length, self.offset] {
            out.extend((field as u32).to_be_bytes());
        }
    }
}

/// A unit behind its header.
pub(crate) fn seal(unit: usize, bytes: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(HEADER + bytes.len());
    Piece { unit, length: bytes.len(), offset: 0 }.emit(&mut sealed);
    sealed.extend_from_slice(bytes);
    sealed
}

/// A sealed unit in datagrams.
pub(crate) fn cut(sealed: &[u8]) -> Vec<Vec<u8>> {
    let Some(whole) = Piece::parse(sealed) else { return Vec::new() };
    let room = PIECE_BYTES - HEADER;
    let chunks = sealed[HEADER..].chunks(room).enumerate();
    chunks
        .map(|(number, chunk)| {
            let mut datagram = Vec::with_capacity(HEADER + chunk.len());
            Piece { offset: number * room, ..whole }.emit(&mut datagram);
            datagram.extend_from_slice(chunk);
            datagram
        })
        .collect()
}

/// Behind what `outflow poc` wants.
pub(crate) fn for_poc(unit: usize, sealed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(UNIT_HEADER + sealed.len());
    bytes.extend((unit as u64).to_le_bytes());
    bytes.extend((sealed.len() as u32).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend_from_slice(sealed);
    bytes
}

/// Puts datagrams together. It says when a unit is whole, once.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// Of units that have begun to come: which pieces are there, and how many bytes are missing.
    begun: BTreeMap<usize, (Vec<usize>, usize)>,
}

impl Pieces {
    /// The unit that is whole with this datagram.
    pub(crate) fn take(&mut self, datagram: &[u8]) -> Option<usize> {
        let piece = Piece::parse(datagram)?;
        let bytes = datagram.len() - HEADER;
        let (there, missing) = self.begun.entry(piece.unit).or_insert_with(|| (Vec::new(), piece.length));
        if there.contains(&piece.offset) {
            return None;
        }
        there.push(piece.offset);
        *missing = missing.saturating_sub(bytes);
        (*missing == 0).then_some(piece.unit)
    }
}

/// Finds units in bytes that come one behind the other.
#[derive(Debug)]
pub(crate) struct Bytes {
    waiting: Vec<u8>,
    /// What stands in front of each sealed unit.
    skipped: usize,
}

impl Bytes {
    pub(crate) fn new(skipped: usize) -> Self {
        Self { waiting: Vec::new(), skipped }
    }

    /// The units that are whole with these bytes.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<usize> {
        self.waiting.extend_from_slice(bytes);
        let (mut at, mut whole) = (0, Vec::new());
        while let Some(rest) = self.waiting.get(at + self.skipped..)
            && let Some(piece) = Piece::parse(rest)
            && let length = HEADER + piece.length
            && rest.len() >= length
        {
            whole.push(piece.unit);
            at += self.skipped + length;
        }
        self.waiting.drain(..at);
        whole
    }
}

/// The units whose beginning is in a packet, or a piece of them.
pub(crate) fn headers_in(packet: &[u8]) -> impl Iterator<Item = usize> {
    let found = packet.windows(HEADER).filter_map(Piece::parse);
    found.map(|piece| piece.unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_cut_and_put_together() {
        let sealed = seal(7, &[5; 3000]);
        let datagrams = cut(&sealed);
        assert_eq!(datagrams.iter().map(Vec::len).collect::<Vec<_>>(), [1316, 1316, 416]);
        let mut pieces = Pieces::default();
        let order = [2, 0, 0, 1, 1].map(|at| pieces.take(&datagrams[at]));
        assert_eq!(order, [None, None, None, Some(7), None]);
        assert_eq!(headers_in(&[&[0; 44], &datagrams[1][..]].concat()).collect::<Vec<_>>(), [7]);
        assert_eq!(cut(&seal(8, &[1]))[0], seal(8, &[1]));
    }

    #[test]
    fn units_are_found_in_bytes() {
        let units = [seal(0, &[1; 40]), seal(1, &[2; 400])];
        for (skipped, all) in
            [(0, units.concat()), (UNIT_HEADER, [for_poc(0, &units[0]), for_poc(1, &units[1])].concat())]
        {
            let mut bytes = Bytes::new(skipped);
            let found: Vec<usize> = all.chunks(7).flat_map(|chunk| bytes.take(chunk)).collect();
            assert_eq!(found, [0, 1]);
        }
    }
}
