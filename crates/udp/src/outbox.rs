//! Datagrams that are to be sent.

use std::io;
use std::net::{IpAddr, SocketAddr};

use outflow_media::ecn::Mark;

use crate::{Segments, Udp};

/// Datagrams of a socket in the order in which they are sent; equal ones to one receiver in one piece.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    /// Pieces that have gone, and bytes of the one behind them.
    sent: (usize, usize),
}

/// The way of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// Where it goes.
    pub to: SocketAddr,
    /// The own address that it comes from; the kernel's choice if there is none.
    pub from: Option<IpAddr>,
    /// How it is marked.
    pub mark: Mark,
}

#[derive(Debug)]
struct Piece {
    way: Outgoing,
    segment_bytes: usize,
    from: usize,
    end: usize,
    /// Whether the last one is shorter, so that none can be behind it.
    is_closed: bool,
}

impl Outbox {
    /// Whether nothing waits in it.
    pub fn is_empty(&self) -> bool {
        self.sent.0 >= self.pieces.len()
    }

    /// Puts a datagram behind the others: what `write` puts behind the bytes that it is given, if it has one. Answers
    /// whether it had.
    pub fn put(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Option<Outgoing>) -> bool {
        if self.is_empty() {
            self.bytes.clear();
            self.pieces.clear();
            self.sent = (0, 0);
        }
        let from = self.bytes.len();
        let Some(way) = write(&mut self.bytes) else {
            self.bytes.truncate(from);
            return false;
        };
        let (end, length) = (self.bytes.len(), self.bytes.len() - from);
        let joins = |piece: &Piece| piece.way == way && !piece.is_closed && length <= piece.segment_bytes;
        match self.pieces.last_mut().filter(|piece| joins(piece)) {
            Some(piece) => {
                piece.end = end;
                piece.is_closed = length < piece.segment_bytes;
            }
            None => self.pieces.push(Piece { way, segment_bytes: length, from, end, is_closed: false }),
        }
        true
    }

    /// Whether all have gone; if not, the rest goes on when the socket takes more.
    ///
    /// # Errors
    /// The socket failed.
    pub fn send(&mut self, udp: &Udp) -> io::Result<bool> {
        while let Some(piece) = self.pieces.get(self.sent.0) {
            let Piece { way: Outgoing { to, from: own, mark }, segment_bytes, from, end, .. } = *piece;
            let bytes = &self.bytes[from + self.sent.1..end];
            match udp.try_send(&Segments { to, from: own, mark, segment_bytes, bytes }) {
                Ok(count) => self.sent.1 += count * segment_bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if from + self.sent.1 >= end {
                self.sent = (self.sent.0 + 1, 0);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(outbox: &mut Outbox, to: SocketAddr, mark: Mark, datagram: &[u8]) {
        let put = outbox.put(|bytes| {
            bytes.extend_from_slice(datagram);
            Some(Outgoing { to, from: None, mark })
        });
        assert!(put);
    }

    #[test]
    fn equal_datagrams_of_one_receiver_are_one_piece() {
        let [one, other] = [1, 2].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        let mut outbox = Outbox::default();
        for length in [100, 100, 60, 100] {
            add(&mut outbox, one, Mark::Ect0, &vec![0; length]);
        }
        add(&mut outbox, one, Mark::None, &[0; 100]);
        add(&mut outbox, other, Mark::None, &[0; 100]);
        let from = Some(IpAddr::from([10, 0, 0, 1]));
        outbox.put(|bytes| {
            bytes.extend_from_slice(&[0; 100]);
            Some(Outgoing { to: other, from, mark: Mark::None })
        });
        let pieces: Vec<_> = outbox.pieces.iter().map(|piece| piece.end - piece.from).collect();
        assert_eq!(pieces, [260, 100, 100, 100, 100]);
        assert!(!outbox.is_empty());
    }

    #[test]
    fn what_was_begun_and_is_none_leaves_nothing() {
        let mut outbox = Outbox::default();
        let one = SocketAddr::from(([192, 0, 2, 1], 1));
        add(&mut outbox, one, Mark::None, b"one");
        let put = outbox.put(|bytes| {
            bytes.extend_from_slice(b"half");
            None
        });
        assert!(!put);
        assert_eq!((&outbox.bytes[..], outbox.pieces.len()), (&b"one"[..], 1));
    }

    #[tokio::test]
    async fn it_is_empty_when_all_have_gone() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let udp = Udp::bind(any, &crate::Options::default()).expect("bound");
        let mut outbox = Outbox::default();
        add(&mut outbox, udp.local_addr(), Mark::None, b"one");
        assert!(outbox.send(&udp).expect("sent") && outbox.is_empty());
        add(&mut outbox, udp.local_addr(), Mark::None, b"two");
        assert_eq!((outbox.pieces.len(), outbox.bytes.len()), (1, 3), "what has gone is forgotten");
    }
}
