//! Datagrams out of a byte stream, as a transport stream comes over HTTP.

use bytes::{Buf, Bytes, BytesMut};

use super::packet::{PACKET_BYTES, SYNC};
use super::{DATAGRAM_BYTES, DATAGRAM_PACKETS};

/// Sync bytes in a row that are believed: by chance that happens once in 2^32 positions.
const SYNCS: usize = 4;

/// Where the packets of a byte stream begin: the first position from which on sync bytes stand
/// one packet apart, over four packets or as far as `data` reaches. Its length if there is none.
pub fn resync(data: &[u8]) -> usize {
    let aligned = |at: usize| data[at..].iter().step_by(PACKET_BYTES).take(SYNCS).all(|b| *b == SYNC);
    (0..data.len()).find(|at| aligned(*at)).unwrap_or(data.len())
}

/// Cuts a byte stream into datagrams of whole packets.
///
/// ```
/// # use bytes::Bytes;
/// # use outflow_ts::TsFramer;
/// # let chunk = Bytes::new();
/// let mut framer = TsFramer::default();
/// framer.push(chunk);
/// while let Some(datagram) = framer.next_datagram() {
///     assert_eq!(datagram.len() % 188, 0);
/// }
/// ```
///
/// What begins in one chunk and ends in another is copied, at most one datagram a chunk; all else
/// shares the memory of the chunk. No whole packet is held back once the alignment is known.
#[derive(Debug, Default)]
pub struct TsFramer {
    /// Less than a packet; while the alignment is not known, less than [`SYNCS`] packets.
    carried: BytesMut,
    chunk: Bytes,
    aligned: bool,
    skipped: u64,
}

impl TsFramer {
    /// Adds the next bytes. All datagrams of those before are to be taken first; what is left of
    /// them is kept, by copying.
    pub fn push(&mut self, chunk: Bytes) {
        if !self.chunk.is_empty() {
            self.carried.extend_from_slice(&self.chunk);
        }
        self.chunk = chunk;
    }

    /// The next datagram, of one to seven packets; `None` until more bytes are there.
    pub fn next_datagram(&mut self) -> Option<Bytes> {
        loop {
            if !self.aligned && !self.align() {
                return None;
            }
            if !self.carried.is_empty() {
                self.fill_carried();
            }
            let is_carried = !self.carried.is_empty();
            match aligned_packets(if is_carried { &self.carried } else { &self.chunk }) {
                Whole::Packets(bytes) if is_carried => return Some(self.carried.split_to(bytes).freeze()),
                Whole::Packets(bytes) => return Some(self.chunk.split_to(bytes)),
                Whole::Incomplete => {
                    self.carry();
                    return None;
                }
                Whole::Misaligned => self.aligned = false,
            }
        }
    }

    /// Bytes that were passed over because they were not aligned packets.
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Looks for the alignment; whether it is known now.
    fn align(&mut self) -> bool {
        const NEEDED: usize = (SYNCS - 1) * PACKET_BYTES + 1;
        if !self.carried.is_empty() {
            self.carry();
        }
        let data: &[u8] = if self.carried.is_empty() { &self.chunk } else { &self.carried };
        let at = resync(data);
        let left = data.len() - at;
        self.skipped += at as u64;
        if self.carried.is_empty() {
            self.chunk.advance(at);
        } else {
            self.carried.advance(at);
        }
        self.aligned = left >= NEEDED;
        if !self.aligned {
            self.carry();
        }
        self.aligned
    }

    /// Moves from the chunk what makes a full datagram of the bytes carried, or all there is.
    fn fill_carried(&mut self) {
        let missing = DATAGRAM_BYTES.saturating_sub(self.carried.len());
        let part = self.chunk.split_to(missing.min(self.chunk.len()));
        self.carried.extend_from_slice(&part);
    }

    /// Moves all that is left of the chunk behind the bytes carried.
    fn carry(&mut self) {
        self.carried.extend_from_slice(&self.chunk);
        self.chunk = Bytes::new();
    }
}

/// What stands at the start of aligned bytes.
enum Whole {
    /// This many bytes of whole packets.
    Packets(usize),
    /// Less than a packet.
    Incomplete,
    /// Something else.
    Misaligned,
}

fn aligned_packets(data: &[u8]) -> Whole {
    let sync = |packet: &&[u8]| packet[0] == SYNC;
    let packets = data.chunks_exact(PACKET_BYTES).take(DATAGRAM_PACKETS).take_while(sync).count();
    match (packets, data.first()) {
        (0, Some(&SYNC) | None) => Whole::Incomplete,
        (0, _) => Whole::Misaligned,
        (packets, _) => Whole::Packets(packets * PACKET_BYTES),
    }
}

#[cfg(test)]
mod tests;
