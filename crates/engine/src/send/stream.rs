//! Byte streams: the packets of an order to connections, whole or as far as each takes them.

mod batch;

use std::io;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use arrayvec::ArrayVec;
use outflow_relay::limits::ORDER_PACKETS_MAX;
use outflow_ring::Seq;
use outflow_uring::{Descriptor, Uring};
use rustix::net::{ipproto, sockopt};
use socket2::SockRef;

pub(crate) use batch::{Connections, Flush, StreamSender};

use super::Piece;
use crate::limits::UNSENT_BYTES_MAX;
use crate::message::{Framing, WriteSide};

/// Bytes of what stands before each packet, at most.
const PREFIX_BYTES_MAX: usize = 4;

/// A receiver's connection, of any kind.
#[derive(Debug)]
pub(crate) struct Connection {
    to: WriteSide,
    /// The rest of a packet that went out in part, and what else must go before the next one.
    unsent: Vec<u8>,
    is_socket: bool,
    /// How the ring knows it; `None` if there is no ring, or it is no socket.
    descriptor: Option<Descriptor>,
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
    pub(crate) fn new(to: WriteSide, uring: &mut Uring) -> Self {
        // TCP can send without a copy, local sockets cannot, and what has no protocol is no socket.
        let protocol = sockopt::socket_protocol(&to);
        let is_socket = protocol.is_ok();
        let descriptor =
            protocol.ok().and_then(|protocol| uring.add(to.as_fd(), protocol == Some(ipproto::TCP)));
        Connection { to, unsent: Vec::new(), is_socket, descriptor }
    }

    /// The same, to which this goes first.
    pub(crate) fn after(self, unsent: Vec<u8>) -> Self {
        Connection { unsent, ..self }
    }

    /// Closes it on this side.
    pub(crate) fn close(self, uring: &mut Uring) {
        if let Some(descriptor) = self.descriptor {
            uring.remove(descriptor);
        }
    }

    /// Sends `pieces`; `end` is the position behind them.
    pub(crate) fn send(&mut self, pieces: &[Piece<'_>], end: Seq, framing: &Framing) -> Outcome {
        if !self.unsent.is_empty() {
            return self.settle(pieces, end, framing, 0);
        }
        let prefixes: ArrayVec<_, { ORDER_PACKETS_MAX + 1 }> =
            pieces.iter().map(|piece| framing.prefix(piece)).collect();
        let mut vectors = ArrayVec::<IoSlice<'_>, { 3 * (ORDER_PACKETS_MAX + 1) }>::new();
        for (prefix, piece) in prefixes.iter().zip(pieces) {
            let parts = [&prefix[..], piece.header, piece.body];
            vectors.extend(parts.into_iter().filter(|part| !part.is_empty()).map(IoSlice::new));
        }
        match self.write(&vectors) {
            Ok(written) => self.settle(pieces, end, framing, written),
            Err(()) => Outcome::Gone,
        }
    }

    /// What it means that this many bytes of `pieces` went out. The rest of a packet that went
    /// out in part is kept, to go before anything else.
    fn settle(&mut self, pieces: &[Piece<'_>], end: Seq, framing: &Framing, mut written: usize) -> Outcome {
        for (index, piece) in pieces.iter().enumerate() {
            let prefix = framing.prefix(piece);
            let length = prefix.len() + piece.len();
            if written >= length {
                written -= length;
                continue;
            }
            if written == 0 && !piece.is_preamble {
                return Outcome::Blocked(piece.seq);
            }
            for part in [&prefix[..], piece.header, piece.body] {
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

    /// A descriptor of the same connection.
    pub(crate) fn copied(&self) -> io::Result<OwnedFd> {
        self.to.as_fd().try_clone_to_owned()
    }

    /// What waits to go before the next packet.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.unsent
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
        const FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        loop {
            // A sixth less than `writev` costs for a packet, which treats sockets as files.
            let result = match self.is_socket {
                true => SockRef::from(&self.to).send_vectored_with_flags(vectors, FLAGS),
                false => rustix::io::writev(&self.to, vectors).map_err(io::Error::from),
            };
            match result {
                Ok(written) => return Ok(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(_) => return Err(()),
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.to.as_fd()
    }
}

impl Framing {
    /// How many bytes stand before each packet.
    pub(crate) fn prefix_bytes(&self) -> usize {
        match self {
            Framing::Raw => 0,
            Framing::Interleaved(_) => 4,
        }
    }

    /// What stands before this packet.
    fn prefix(&self, piece: &Piece<'_>) -> ArrayVec<u8, PREFIX_BYTES_MAX> {
        let [high, low] = (piece.len() as u16).to_be_bytes();
        match self {
            Framing::Raw => ArrayVec::new(),
            Framing::Interleaved(channels) => {
                let channel = channels.iter().find(|c| c.track == piece.track).map_or(0, |c| c.rtp);
                [b'$', channel, high, low].into_iter().collect()
            }
        }
    }

    /// An RTCP packet of a track as it goes between two others, if it does.
    pub(crate) fn rtcp(&self, track: u8, bytes: &[u8]) -> Option<Vec<u8>> {
        let length = (bytes.len() as u16).to_be_bytes();
        match self {
            Framing::Raw => None,
            Framing::Interleaved(channels) => {
                let channel = channels.iter().find(|c| c.track == track)?.rtcp;
                Some([&[b'$', channel], &length[..], bytes].concat())
            }
        }
    }
}

#[cfg(test)]
mod tests;
