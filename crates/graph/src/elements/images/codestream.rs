//! JPEG 2000 in RTP: codestreams are put together, cut down without decoding them, and packetized again.

use std::collections::BTreeMap;

use bytes::Bytes;
use outflow_media::jpeg2000;
use outflow_media::jpeg2000::{Piece, select_pieces};
use outflow_packet::DropReason;
use outflow_rtp::limits::UNIT_BYTES_MAX;
use outflow_rtp::payload::jpeg2000::{HEADER_BYTES, Header, Priorities, packets};

use super::carrier::{Carrier, drop_all};
use super::packets::{Like, Out};
use super::recipe::Recipe;
use crate::limits::CODESTREAM_AHEAD_MAX;
use crate::{Item, Tally};

/// Works on whole codestreams.
///
/// Where a packet got lost, what stands before it goes on: less layers or lines of the same image.
#[derive(Debug)]
pub(super) struct Codestreams {
    recipe: Recipe,
    priorities: Priorities,
    /// The beginning of the codestream, without gaps.
    bytes: Vec<u8>,
    /// What came of it behind a gap.
    ahead: BTreeMap<usize, Bytes>,
    /// Its length, if its last packet came.
    length: Option<usize>,
    scan: u8,
    packets: u64,
    frame: Option<Like>,
    /// The timestamp of the frame before it.
    finished: Option<u32>,
    payload_max: usize,
    out: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Codestreams {
    pub(super) fn new(recipe: Recipe, priorities: Priorities) -> Self {
        Codestreams {
            recipe,
            priorities,
            bytes: Vec::new(),
            ahead: BTreeMap::new(),
            length: None,
            scan: 0,
            packets: 0,
            frame: None,
            finished: None,
            payload_max: 0,
            out: Vec::new(),
            pieces: Vec::new(),
        }
    }

    fn begin(&mut self) {
        self.bytes.clear();
        self.ahead.clear();
        (self.length, self.packets) = (None, 0);
    }

    /// Puts a packet's bytes in their place.
    fn put(&mut self, offset: usize, bytes: Bytes) -> Result<(), DropReason> {
        if offset + bytes.len() > UNIT_BYTES_MAX {
            return Err(DropReason::Oversized);
        }
        if offset > self.bytes.len() {
            if self.ahead.len() >= CODESTREAM_AHEAD_MAX || self.ahead.contains_key(&offset) {
                return Err(DropReason::Late);
            }
            self.ahead.insert(offset, bytes);
            return Ok(());
        }
        let new = bytes.get(self.bytes.len() - offset..).filter(|new| !new.is_empty());
        self.bytes.extend_from_slice(new.ok_or(DropReason::Late)?);
        while let Some(entry) = self.ahead.first_entry().filter(|entry| *entry.key() <= self.bytes.len()) {
            let skip = self.bytes.len() - entry.key();
            let bytes = entry.remove();
            self.bytes.extend_from_slice(bytes.get(skip..).unwrap_or_default());
        }
        Ok(())
    }

    /// No more packets of the frame come: what there is of it is cut down and goes.
    fn end(&mut self, out: &mut Out<'_>, tally: &mut Tally) {
        let Some(frame) = self.frame.take() else { return };
        self.finished = Some(frame.timestamp());
        let ahead = self.ahead.len() as u64;
        if self.length == Some(self.bytes.len()) || !self.bytes.is_empty() {
            match self.cut() {
                Ok(()) => {
                    drop_all(tally, DropReason::Incomplete, ahead);
                    return self.send(&frame, out, tally);
                }
                // It may be whole, but for what got lost of it.
                Err(_) if self.length != Some(self.bytes.len()) => {}
                Err(malformed) => {
                    tally.fail(malformed.to_string());
                    return drop_all(tally, DropReason::Malformed, self.packets);
                }
            }
        }
        drop_all(tally, DropReason::Incomplete, self.packets);
    }

    fn cut(&mut self) -> Result<(), outflow_media::Malformed> {
        let Codestreams { recipe, bytes, out, pieces, .. } = self;
        let selection = recipe.selection(&jpeg2000::Header::parse(bytes)?);
        out.clear();
        pieces.clear();
        select_pieces(bytes, &selection, out, |piece| pieces.push(piece)).map(|_| ())
    }

    fn send(&self, frame: &Like, out: &mut Out<'_>, tally: &mut Tally) {
        let Codestreams { out: bytes, pieces, payload_max, priorities, scan, .. } = self;
        let sent = packets(pieces, bytes.len(), *payload_max, *priorities, |header, range, last| {
            let header = Header { scan: *scan, ..header };
            out.make(frame, last, HEADER_BYTES + range.len(), |block, _| {
                block.extend_from_slice(&header.emit());
                block.extend_from_slice(&bytes[range]);
            });
        });
        if sent.is_none() {
            drop_all(tally, DropReason::Oversized, self.packets);
        }
    }
}

impl Carrier for Codestreams {
    fn take(&mut self, item: Item, out: &mut Out<'_>, tally: &mut Tally) {
        let payload = item.payload().unwrap_or_default();
        let parsed = Header::parse(&item.packet.bytes[payload.clone()]);
        let (Ok((header, _)), Some(like), Some(rtp)) = (parsed, Like::of(&item), item.header()) else {
            return drop_all(tally, DropReason::Malformed, 1);
        };
        let (timestamp, marker) = (like.timestamp(), rtp[1] & 0x80 != 0);
        if self.frame.as_ref().is_none_or(|frame| frame.timestamp() != timestamp) {
            if self.finished == Some(timestamp) {
                return drop_all(tally, DropReason::Late, 1);
            }
            self.end(out, tally);
            self.begin();
        }
        out.numbers.begin(u16::from_be_bytes([rtp[2], rtp[3]]).into());
        self.frame = Some(like);
        self.payload_max = self.payload_max.max(payload.len());
        self.scan = header.scan;
        let bytes = item.packet.bytes.slice(payload.start + HEADER_BYTES..payload.end);
        let (offset, length) = (header.offset as usize, bytes.len());
        if let Err(reason) = self.put(offset, bytes) {
            return drop_all(tally, reason, 1);
        }
        self.packets += 1;
        if marker {
            self.length = Some(offset + length);
        }
        if self.length == Some(self.bytes.len()) {
            self.end(out, tally);
        }
    }

    fn clear(&mut self, tally: &mut Tally) {
        if self.frame.take().is_some() {
            drop_all(tally, DropReason::Incomplete, self.packets);
        }
        self.finished = None;
    }

    fn memory_bytes(&self) -> usize {
        let ahead: usize = self.ahead.values().map(Bytes::len).sum();
        self.bytes.capacity() + self.out.capacity() + ahead + self.pieces.capacity() * size_of::<Piece>()
    }
}
