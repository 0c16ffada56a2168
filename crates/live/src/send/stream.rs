//! Byte streams: the packets of an order to one connection, gathered into one write.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::OwnedFd;

use arrayvec::ArrayVec;
use outflow_relay::buffer::Seq;
use outflow_relay::limits::ORDER_PACKETS_MAX;

use super::Piece;
use crate::limits::UNSENT_BYTES_MAX;
use crate::message::TrackChannel;

/// What stands before each packet.
#[derive(Debug)]
pub(crate) enum Framing {
    /// Nothing: the packets' own boundaries are enough (a transport stream).
    Raw,
    /// `$`, channel, length (RFC 2326, section 10.12).
    Interleaved(Vec<TrackChannel>),
}

/// The write side of a receiver's connection. Its file may be a socket of any kind.
#[derive(Debug)]
pub(crate) struct Connection {
    file: File,
    /// The rest of a packet that went out in part, and what else must go before the next one.
    unsent: Vec<u8>,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All went out.
    Sent,
    /// The connection takes no more; this packet is the first that was not taken.
    Blocked(Seq),
    /// The connection is broken.
    Gone,
}

impl Connection {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Connection { file: File::from(fd), unsent: Vec::new() }
    }

    /// Sends `pieces`; `end` is the position behind them.
    pub(crate) fn send(&mut self, pieces: &[Piece<'_>], end: Seq, framing: &Framing) -> Outcome {
        let first = pieces.first().map_or(end, |piece| piece.seq);
        if !self.unsent.is_empty() {
            return Outcome::Blocked(first);
        }
        let prefixes: ArrayVec<[u8; 4], { ORDER_PACKETS_MAX + 1 }> =
            pieces.iter().map(|piece| prefix(framing, piece)).collect();
        let framed = matches!(framing, Framing::Interleaved(_));
        let parts = |index: usize| {
            let prefix = if framed { &prefixes[index][..] } else { &[] };
            [prefix, pieces[index].header, pieces[index].body]
        };
        let mut vectors = ArrayVec::<IoSlice<'_>, { 3 * (ORDER_PACKETS_MAX + 1) }>::new();
        for part in (0..pieces.len()).flat_map(parts).filter(|part| !part.is_empty()) {
            vectors.push(IoSlice::new(part));
        }
        let mut written = match self.write(&vectors) {
            Ok(written) => written,
            Err(()) => return Outcome::Gone,
        };
        for (index, piece) in pieces.iter().enumerate() {
            let length: usize = parts(index).iter().map(|part| part.len()).sum();
            if written >= length {
                written -= length;
                continue;
            }
            if written == 0 && !piece.is_preamble {
                return Outcome::Blocked(piece.seq);
            }
            for part in parts(index) {
                let skip = written.min(part.len());
                written -= skip;
                self.unsent.extend_from_slice(&part[skip..]);
            }
            return Outcome::Blocked(pieces.get(index + 1).map_or(end, |next| next.seq));
        }
        Outcome::Sent
    }

    /// Sends bytes that are no media between two packets. Returns whether the connection lives.
    pub(crate) fn inject(&mut self, bytes: &[u8]) -> bool {
        if self.unsent.len() + bytes.len() > UNSENT_BYTES_MAX {
            return false;
        }
        self.unsent.extend_from_slice(bytes);
        self.flush().is_some()
    }

    /// Whether something waits to go before the next packet.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends what waits. Returns whether all of it went; `None` if the connection is broken.
    pub(crate) fn flush(&mut self) -> Option<bool> {
        let unsent = core::mem::take(&mut self.unsent);
        let written = self.write(&[IoSlice::new(&unsent)]).ok()?;
        self.unsent = unsent;
        self.unsent.drain(..written);
        Some(self.unsent.is_empty())
    }

    /// Bytes written; as many as the connection takes.
    fn write(&mut self, vectors: &[IoSlice<'_>]) -> Result<usize, ()> {
        loop {
            match (&self.file).write_vectored(vectors) {
                Ok(written) => return Ok(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(_) => return Err(()),
            }
        }
    }
}

fn prefix(framing: &Framing, piece: &Piece<'_>) -> [u8; 4] {
    let Framing::Interleaved(channels) = framing else { return [0; 4] };
    let channel = channels.iter().find(|c| c.track == piece.track).map_or(0, |c| c.rtp);
    let [high, low] = (piece.len() as u16).to_be_bytes();
    [b'$', channel, high, low]
}

#[cfg(test)]
mod tests;
