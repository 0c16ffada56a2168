//! Packets of a connection: read frame by frame, written as long as there is room.

use outflow_media::Malformed;
use outflow_petri::leb128::{Reader, put, size};

use super::kind::{DATA, FORMAT};
use super::{Ack, ConnectionId, Fragment, Frame};
use crate::limits::{DATAGRAM_BYTES_MIN, FRAMES_MAX};

/// A packet of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// How the receiver calls the connection.
    pub receiver: ConnectionId,
    /// Its number: they count from 0, and none is used twice.
    pub number: u64,
    /// What is in it.
    pub frames: Frames<'a>,
}

impl<'a> Data<'a> {
    /// Behind the first byte.
    pub(super) fn parse(mut reader: Reader<'a>) -> Result<Self, Malformed> {
        let (receiver, number) = (ConnectionId(reader.array()?), reader.number()?);
        Ok(Data { receiver, number, frames: Frames { reader, left: FRAMES_MAX } })
    }
}

/// What stands in front of the frames of a packet of a connection; never encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// How the receiver calls the connection.
    pub receiver: ConnectionId,
    /// Its number.
    pub number: u64,
    /// How many bytes all this takes: frames begin there.
    pub bytes: usize,
}

impl Head {
    /// Reads it; nothing if this is no packet of a connection, or ends early.
    pub fn parse(datagram: &[u8]) -> Option<Head> {
        let mut reader = Reader::new(FORMAT, datagram);
        if reader.byte().ok()? != DATA {
            return None;
        }
        let (receiver, number) = (ConnectionId(reader.array().ok()?), reader.number().ok()?);
        Some(Head { receiver, number, bytes: reader.at() })
    }

    /// How many bytes the head of a packet of this number takes.
    pub fn bytes(number: u64) -> usize {
        1 + ConnectionId::BYTES + size(number)
    }
}

/// The frames of a packet, one after the other, read as they are asked for: those in front of a malformed one
/// come before its error, and none behind it. Padding is left out.
#[derive(Debug, Clone, Copy)]
pub struct Frames<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Frames<'a> {
    /// The frames in what is behind the [`Head`] of a packet, in clear.
    pub fn new(bytes: &'a [u8]) -> Self {
        Frames { reader: Reader::new(FORMAT, bytes), left: FRAMES_MAX }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        self.reader.skip_zeros();
        if self.reader.is_at_end() {
            return None;
        }
        let frame = match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Frame::parse(&mut self.reader)
            }
            None => Err(self.reader.error("too many frames")),
        };
        if frame.is_err() {
            self.reader.rest();
        }
        Some(frame)
    }
}

impl PartialEq for Frames<'_> {
    fn eq(&self, other: &Self) -> bool {
        Iterator::eq(*self, *other)
    }
}

impl Eq for Frames<'_> {}

/// Writes a packet of a connection, frame by frame, up to a size.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    end: usize,
    frames: usize,
    elicits: bool,
    /// Whether the last fragment goes on to the end of the datagram, so that nothing can be behind it.
    is_closed: bool,
}

impl<'a> Writer<'a> {
    /// Begins a packet of at most `bytes_max` bytes (at least 64) in `out`, and clears that.
    pub fn new(out: &'a mut Vec<u8>, receiver: ConnectionId, number: u64, bytes_max: usize) -> Self {
        out.clear();
        out.push(DATA);
        out.extend_from_slice(&receiver.0);
        put(out, number);
        let end = bytes_max.max(DATAGRAM_BYTES_MIN);
        Writer { out, end, frames: 0, elicits: false, is_closed: false }
    }

    /// Bytes that are free.
    pub fn room(&self) -> usize {
        if self.is_closed || self.frames == FRAMES_MAX { 0 } else { self.end - self.out.len() }
    }

    /// How long the packet is.
    pub fn bytes(&self) -> usize {
        self.out.len()
    }

    /// Whether there are no frames in it.
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Whether the receiver has to acknowledge it.
    pub fn elicits(&self) -> bool {
        self.elicits
    }

    /// Adds a frame, if it fits as a whole; else `false`, and nothing is changed.
    pub fn push(&mut self, frame: &Frame<'_>) -> bool {
        if self.room() == 0 {
            return false;
        }
        let before = self.out.len();
        frame.emit(self.out);
        if self.out.len() > self.end {
            self.out.truncate(before);
            return false;
        }
        self.note(frame.elicits());
        true
    }

    /// Adds an acknowledgement, or what fits of it: the newest times of arrival, and without any the highest
    /// ranges. `false` if not even the highest range fits; then nothing is changed.
    pub fn ack(&mut self, ack: &Ack<'_>) -> bool {
        let mut cut = *ack;
        while !self.push(&Frame::Ack(cut)) {
            match (cut.arrivals.len(), cut.packets.len()) {
                (0, 0 | 1) => return false,
                (0, ranges) => cut.packets = cut.packets.highest(ranges / 2),
                (arrivals, _) => cut.arrivals = cut.arrivals.newest(arrivals / 2),
            }
        }
        true
    }

    /// Adds a fragment, or as many of its first bytes as fill the packet. The rest of it is for another
    /// packet; nothing if all is in this one. It is what was given if nothing fits.
    pub fn fragment<'f>(&mut self, fragment: &Fragment<'f>) -> Option<Fragment<'f>> {
        let Some((count, has_length)) = fragment.fit(self.room()) else { return Some(*fragment) };
        let (now, later) = fragment.split_at(count);
        now.emit(has_length, self.out);
        self.is_closed = !has_length;
        self.note(true);
        (count < fragment.bytes.len()).then_some(later)
    }

    /// Pads the packet to its full size (RFC 9000 section 8.2.1), unless a fragment goes on to its end.
    pub fn pad(&mut self) {
        if !self.is_closed {
            self.out.resize(self.end, 0);
        }
    }

    fn note(&mut self, elicits: bool) {
        debug_assert!(self.out.len() <= self.end);
        self.frames += 1;
        self.elicits |= elicits;
    }
}
