//! What was received by one system call.

use core::{array, fmt};
use std::io;
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Instant;

use outflow_media::ecn::Mark;
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSocketState};

use crate::limits::BATCH_PIECES;

/// Bytes of a piece's buffer: no packet of IP has more, so the kernel cuts none off.
const ROOM: usize = 1 << 16;

/// Room for what is received by one system call, and what was: to be made once, and used again and again.
///
/// Several datagrams may come as one piece, so there is room for the longest packet in each: half a
/// mebibyte, of which the kernel gives what is written to.
pub struct Batch {
    memory: Vec<u8>,
    datagram_bytes_max: usize,
    pieces: usize,
    metas: [RecvMeta; BATCH_PIECES],
    at: Instant,
}

/// A datagram that was received.
#[derive(Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Where it came from. Addresses of IPv4 are given as such.
    pub from: SocketAddr,
    /// The own address that it was sent to, if the system says so.
    pub to: Option<IpAddr>,
    /// How it was marked when it came.
    pub mark: Mark,
    /// When it was received, by the clock of this process: the same for all of a batch.
    pub at: Instant,
    /// What is in it.
    pub bytes: &'a mut [u8],
}

impl Batch {
    /// An empty one. Datagrams of more than `datagram_bytes_max` bytes are left out, and counted.
    pub fn new(datagram_bytes_max: usize) -> Self {
        Batch {
            memory: vec![0; BATCH_PIECES * ROOM],
            datagram_bytes_max,
            pieces: 0,
            metas: array::from_fn(|_| RecvMeta::default()),
            at: Instant::now(),
        }
    }

    /// How many datagrams are in it, and how many were left out because they are too long.
    pub(super) fn count(&self) -> (u64, u64) {
        let (mut whole, mut cut) = (0, 0);
        for meta in self.metas() {
            let stride = stride(meta);
            let (full, last) = (meta.len / stride, meta.len % stride);
            let (fits, last_fits) = (stride <= self.datagram_bytes_max, last <= self.datagram_bytes_max);
            // A datagram without a byte is one, too.
            let last_ones = u64::from(last > 0 || meta.len == 0);
            *(if fits { &mut whole } else { &mut cut }) += full as u64;
            *(if last_fits { &mut whole } else { &mut cut }) += last_ones;
        }
        (whole, cut)
    }

    /// Whether there may be more than there was room for.
    pub(super) fn is_full(&self) -> bool {
        self.pieces == BATCH_PIECES
    }

    /// Whether nothing was received.
    pub fn is_empty(&self) -> bool {
        self.pieces == 0
    }

    /// The datagrams, in the order in which they came.
    pub fn iter(&mut self) -> impl Iterator<Item = Received<'_>> {
        let (at, most) = (self.at, self.datagram_bytes_max);
        let metas = &self.metas[..self.pieces];
        metas.iter().zip(self.memory.chunks_exact_mut(ROOM)).flat_map(move |(meta, memory)| {
            let from = outflow_socket::canonical(meta.addr);
            let (to, mark) = (meta.dst_ip.map(|to| to.to_canonical()), mark(meta.ecn));
            let datagrams = Datagrams { left: Some(&mut memory[..meta.len]), stride: stride(meta) };
            let fitting = datagrams.filter(move |bytes| bytes.len() <= most);
            fitting.map(move |bytes| Received { from, to, mark, at, bytes })
        })
    }

    pub(super) fn fill(&mut self, state: &UdpSocketState, io: &UdpSocket) -> io::Result<()> {
        self.pieces = 0;
        let mut rooms = self.memory.chunks_exact_mut(ROOM);
        let mut slices: [_; BATCH_PIECES] =
            array::from_fn(|_| IoSliceMut::new(rooms.next().expect("there is one for each")));
        self.pieces = state.recv(io.into(), &mut slices, &mut self.metas)?;
        self.at = Instant::now();
        Ok(())
    }

    fn metas(&self) -> &[RecvMeta] {
        &self.metas[..self.pieces]
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("metas", &self.metas()).finish_non_exhaustive()
    }
}

/// The datagrams of a piece.
struct Datagrams<'a> {
    left: Option<&'a mut [u8]>,
    stride: usize,
}

impl<'a> Iterator for Datagrams<'a> {
    type Item = &'a mut [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.left.take()?;
        let (datagram, left) = left.split_at_mut(self.stride.min(left.len()));
        self.left = (!left.is_empty()).then_some(left);
        Some(datagram)
    }
}

fn stride(meta: &RecvMeta) -> usize {
    if meta.stride == 0 { meta.len.max(1) } else { meta.stride }
}

const fn mark(ecn: Option<EcnCodepoint>) -> Mark {
    match ecn {
        None => Mark::None,
        Some(EcnCodepoint::Ect0) => Mark::Ect0,
        Some(EcnCodepoint::Ect1) => Mark::Ect1,
        Some(EcnCodepoint::Ce) => Mark::Ce,
    }
}
