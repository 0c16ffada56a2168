//! A transport stream without the frames above a layer.
//!
//! What is left out is whole frames of the main stream. Everything else stays: other PIDs as they are, and
//! of left-out packets the clock references and marks of discontinuity, in packets without a payload
//! (ISO/IEC 13818-1 sections 2.4.3.4 and 2.4.3.5). The main stream's continuity counter closes up over
//! what was left out on purpose; gaps and repeats that were there before stay.

use bytes::{Bytes, BytesMut};
use outflow_media::rtp::{self, HEADER};
use outflow_media::ts::packet::{Header, PACKET_BYTES, Packet, pid_of};
use outflow_media::ts::{DATAGRAM_BYTES, Told};
use outflow_media::{Kind, Tag, Time};

use crate::buffer::Packet as Datagram;
use crate::control::Understood;
use crate::limits::POOL_BLOCK_BYTES;
use crate::schedule::Cut;

/// Packets of one datagram that belong to one frame of the main stream.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The frame's number.
    pub frame: u32,
    /// What it is.
    pub told: Told,
    /// It begins with the first of them.
    pub starts: bool,
    /// It is complete with the last of them.
    pub ends: bool,
    /// The PID of the main stream, if that is known.
    pub main_pid: Option<u16>,
    /// The packets.
    pub bytes: Bytes,
    /// When they came.
    pub arrived: Time,
    /// The RTP header of their datagram, for those who get the stream by RTP.
    pub rtp_header: [u8; HEADER],
    /// What a receiver needs first that begins with this frame, if it is a key frame.
    pub preamble: Option<Bytes>,
}

impl Piece {
    /// Bytes of the main stream.
    pub fn main_bytes(&self) -> usize {
        let is_main = |packet: &&[u8]| self.main_pid.is_some() && pid_of(packet) == self.main_pid;
        self.bytes.chunks_exact(PACKET_BYTES).filter(is_main).count() * PACKET_BYTES
    }
}

/// Makes the stream that has frames up to a layer, and fills its datagrams anew. No datagram has packets of
/// two frames, and none waits longer than to the end of its frame.
#[derive(Debug)]
pub struct TsLevel {
    cut: Cut,
    /// The frame that arrives is taken.
    takes: bool,
    /// Frames were left out since the last key frame.
    lacks: bool,
    counter: Counter,
    /// Memory is taken in blocks, so that datagrams share them.
    packets: BytesMut,
    /// What the datagram is that they make.
    next: Next,
    /// RTP sequence number of the next datagram.
    sequence: Option<u16>,
    left_out: u64,
}

/// What is known of the datagram that is being filled.
#[derive(Debug, Clone, Default)]
struct Next {
    tag: Tag,
    arrived: Time,
    rtp_header: [u8; HEADER],
    preamble: Option<Bytes>,
}

/// The main stream's continuity counter: what came, and by how much lower it goes on.
#[derive(Debug, Clone, Copy, Default)]
struct Counter {
    last: Option<u8>,
    /// The last packet has come twice, which is all that is allowed.
    twice: bool,
    lowered: u8,
}

impl TsLevel {
    /// Of the stream, frames of layers up to `cut`.
    pub fn new(cut: Cut) -> Self {
        TsLevel {
            cut,
            takes: true,
            lacks: false,
            counter: Counter::default(),
            packets: BytesMut::new(),
            next: Next::default(),
            sequence: None,
            left_out: 0,
        }
    }

    /// The highest layer that it takes.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// By how much the main stream's continuity counter is lower than it came, modulo 16.
    pub fn lowered(&self) -> u8 {
        self.counter.lowered
    }

    /// Packets that were left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The RTP header that the next datagram gets if it begins with this piece.
    pub fn header_of(&self, piece: &Piece) -> [u8; HEADER] {
        let mut header = piece.rtp_header;
        if let Some(sequence) = self.sequence {
            rtp::set_sequence(&mut header, sequence);
        }
        header
    }

    /// A frame begins: what there is of the one before goes. [`push`](Self::push) is to follow.
    pub fn begin(&mut self, piece: &Piece) -> Option<Understood> {
        let Told { key, layer, layers, .. } = piece.told;
        let ended = self.flush(true);
        let [_, _, high, low, ..] = piece.rtp_header;
        self.sequence.get_or_insert(u16::from_be_bytes([high, low]));
        // Of a stream that turned out to have no layers, all is taken once it can be decoded.
        self.takes = if layers > 1 { self.cut.takes(layer) } else { key || !self.lacks };
        self.lacks = !self.takes || (self.lacks && !key);
        ended
    }

    /// Takes packets. Datagrams that are complete by them are handed to `out`.
    pub fn push(&mut self, piece: &Piece, out: &mut impl FnMut(Understood)) {
        for (index, packet) in piece.bytes.chunks_exact(PACKET_BYTES).enumerate() {
            let starts = piece.starts && index == 0;
            if self.packets.is_empty() {
                self.open(piece);
            }
            let is_main = piece.main_pid.is_some() && pid_of(packet) == piece.main_pid;
            match is_main {
                true => self.main_packet(piece, packet, starts),
                false => self.packets.extend_from_slice(packet),
            }
            if self.packets.len() >= DATAGRAM_BYTES {
                self.flush(false).into_iter().for_each(&mut *out);
            }
        }
        if piece.ends {
            self.flush(true).into_iter().for_each(out);
        }
    }

    /// A datagram begins, with packets of nothing known.
    fn open(&mut self, piece: &Piece) {
        let Piece { frame, arrived, .. } = *piece;
        let tag = Tag { frame, kind: Kind::Data, layers: 1, ..Tag::default() };
        self.next = Next { tag, arrived, rtp_header: piece.rtp_header, preamble: None };
        if self.packets.capacity() < DATAGRAM_BYTES {
            self.packets.reserve(POOL_BLOCK_BYTES);
        }
    }

    fn main_packet(&mut self, piece: &Piece, packet: &[u8], starts: bool) {
        let &[_, _, _, control, ..] = packet else { return };
        let known = Packet::new_checked(packet).ok();
        let is_anew = known.is_some_and(|packet| packet.adaptation().discontinuity());
        let counts = control & 0x10 != 0 && self.counter.step(control & 0x0f, is_anew);
        if self.takes || control & 0x10 == 0 {
            if self.takes {
                self.tell(piece, starts);
            }
            let at = self.packets.len();
            self.packets.extend_from_slice(packet);
            self.packets[at + 3] = control & 0xf0 | self.counter.of(control & 0x0f);
            return;
        }
        self.left_out += 1;
        self.counter.lowered = (self.counter.lowered + u8::from(counts)) & 0x0f;
        let pcr = known.and_then(|packet| packet.adaptation().pcr());
        if let (Some(pid), true) = (piece.main_pid, pcr.is_some() || is_anew) {
            let continuity = self.counter.of(control & 0x0f);
            let header = Header { pid, continuity, discontinuity: is_anew, pcr, ..Header::default() };
            header.emit(&mut self.packets, &mut &[][..]);
        }
    }

    /// The datagram has packets of a frame that is taken.
    fn tell(&mut self, piece: &Piece, starts: bool) {
        let Told { kind, key, needs, .. } = piece.told;
        let first = self.next.tag.first || starts;
        self.next.tag = Tag { kind, key, opens: key, first, needs, ..self.next.tag };
        self.next.preamble = piece.preamble.clone();
    }

    /// The packets that wait, as a datagram.
    fn flush(&mut self, ends: bool) -> Option<Understood> {
        if self.packets.is_empty() {
            return None;
        }
        let Next { mut tag, arrived, mut rtp_header, preamble } = core::mem::take(&mut self.next);
        tag.last = ends && tag.kind != Kind::Data;
        let sequence = self.sequence.unwrap_or(u16::from_be_bytes([rtp_header[2], rtp_header[3]]));
        if rtp_header[0] != 0 {
            rtp::set_sequence(&mut rtp_header, sequence);
        }
        self.sequence = Some(sequence.wrapping_add(1));
        let bytes = self.packets.split().freeze();
        Some(Understood { packet: Datagram { bytes, tag, arrived }, rtp_header, preamble })
    }
}

impl Counter {
    /// A packet with a payload comes. Returns whether the counter went on with it, rather than that it is
    /// the last once more.
    fn step(&mut self, counter: u8, is_anew: bool) -> bool {
        let again = self.last == Some(counter) && !self.twice && !is_anew;
        (self.last, self.twice) = (Some(counter), again);
        !again
    }

    /// What a packet with this counter goes on with.
    fn of(&self, counter: u8) -> u8 {
        counter.wrapping_sub(self.lowered) & 0x0f
    }
}
