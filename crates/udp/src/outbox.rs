//! Datagrams that are to be sent.

use std::io;
use std::net::{IpAddr, SocketAddr};

use outflow_media::ecn::Mark;

use crate::own::OwnAddresses;
use crate::{Segments, Udp};

/// Datagrams of a socket in the order in which they are sent; equal ones to one receiver in one piece.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    /// Pieces that have gone, and bytes of the one behind them.
    sent: (usize, usize),
    own: OwnAddresses,
}

#[derive(Debug)]
struct Piece {
    to: SocketAddr,
    mark: Mark,
    segment_bytes: usize,
    from: usize,
    end: usize,
    /// Whether the last one is shorter, so that none can be behind it.
    is_closed: bool,
}

impl Outbox {
    /// A peer has sent to this own address: what goes to it comes from there.
    pub fn note(&mut self, peer: SocketAddr, own: IpAddr) {
        self.own.note(peer, own);
    }

    /// By which own address a peer was reached last, if that is known.
    pub fn own(&self, peer: SocketAddr) -> Option<IpAddr> {
        self.own.of(peer)
    }

    /// All peers of which that is known, and by which.
    pub fn owns(&self) -> impl Iterator<Item = (SocketAddr, IpAddr)> {
        self.own.iter()
    }

    /// Whether nothing waits in it.
    pub fn is_empty(&self) -> bool {
        self.sent.0 >= self.pieces.len()
    }

    /// Puts a datagram behind the others.
    pub fn add(&mut self, to: SocketAddr, mark: Mark, datagram: &[u8]) {
        if self.is_empty() {
            self.bytes.clear();
            self.pieces.clear();
            self.sent = (0, 0);
        }
        let (from, length) = (self.bytes.len(), datagram.len());
        self.bytes.extend_from_slice(datagram);
        let end = self.bytes.len();
        let joins = |piece: &Piece| {
            let is_alike = piece.to == to && piece.mark == mark;
            is_alike && !piece.is_closed && length <= piece.segment_bytes
        };
        match self.pieces.last_mut().filter(|piece| joins(piece)) {
            Some(piece) => {
                piece.end = end;
                piece.is_closed = length < piece.segment_bytes;
            }
            None => self.pieces.push(Piece { to, mark, segment_bytes: length, from, end, is_closed: false }),
        }
    }

    /// Whether all have gone; if not, the rest goes on when the socket takes more.
    ///
    /// # Errors
    /// The socket failed.
    pub fn send(&mut self, udp: &Udp) -> io::Result<bool> {
        while let Some(piece) = self.pieces.get(self.sent.0) {
            let Piece { to, mark, segment_bytes, from, end, .. } = *piece;
            let bytes = &self.bytes[from + self.sent.1..end];
            match udp.try_send(&Segments { to, from: self.own.of(to), mark, segment_bytes, bytes }) {
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

    #[test]
    fn equal_datagrams_of_one_receiver_are_one_piece() {
        let [one, other] = [1, 2].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        let mut outbox = Outbox::default();
        for length in [100, 100, 60, 100] {
            outbox.add(one, Mark::Ect0, &vec![0; length]);
        }
        outbox.add(one, Mark::None, &[0; 100]);
        outbox.add(other, Mark::None, &[0; 100]);
        let pieces: Vec<_> = outbox.pieces.iter().map(|piece| piece.end - piece.from).collect();
        assert_eq!(pieces, [260, 100, 100, 100]);
        assert!(!outbox.is_empty());
    }

    #[tokio::test]
    async fn it_is_empty_when_all_have_gone() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let udp = Udp::bind(any, &crate::Options::default()).expect("bound");
        let mut outbox = Outbox::default();
        outbox.add(udp.local_addr(), Mark::None, b"one");
        assert!(outbox.send(&udp).expect("sent") && outbox.is_empty());
        outbox.add(udp.local_addr(), Mark::None, b"two");
        assert_eq!((outbox.pieces.len(), outbox.bytes.len()), (1, 3), "what has gone is forgotten");
    }
}
