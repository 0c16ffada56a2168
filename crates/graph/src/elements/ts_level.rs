//! A transport stream without the frames above a layer.
//!
//! What is left out is whole frames of the main stream. Everything else stays: other PIDs as they are, and
//! of left-out packets the clock references and marks of discontinuity, in packets without a payload
//! (ISO/IEC 13818-1 sections 2.4.3.4 and 2.4.3.5). The main stream's continuity counter closes up over
//! what was left out on purpose; gaps and repeats that were there before stay.

use bytes::{Bytes, BytesMut};
use outflow_media::{Content, Kind, Tag, Time};
use outflow_packet::{MaxLayer, Packet as Datagram, Parsed};
use outflow_rtp::HEADER;
use outflow_ts::packet::{Header, PACKET_BYTES, Packet, pid_of};
use outflow_ts::{DATAGRAM_BYTES, FrameTag};

use crate::limits::POOL_BLOCK_BYTES;

/// Packets of one datagram that belong to one frame of the main stream.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The frame's number.
    pub frame: u32,
    /// What it is.
    pub told: FrameTag,
    /// It begins with the first of them.
    pub starts: bool,
    /// It is complete with the last of them.
    pub ends: bool,
    /// The PID of the main stream, if that is known.
    pub main_pid: Option<u16>,
    /// What the packets hold beside the main stream.
    pub content: Content,
    /// The packets.
    pub bytes: Bytes,
    /// When they came.
    pub arrived: Time,
    /// The RTP header of their datagram, for sinks that get the stream by RTP.
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

/// Makes the stream that has frames up to a layer, and packs its datagrams again. No datagram has packets of
/// two frames, and none waits longer than to the end of its frame.
#[derive(Debug)]
pub struct TsLevel {
    max_layer: MaxLayer,
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

/// Where a level stands between two pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// By how much the main stream's continuity counter is lower than it came, modulo 16.
    pub counter_offset: u8,
    /// RTP sequence number of the next datagram, once there was one.
    pub sequence: Option<u16>,
    /// Packets that wait for more, or for the end of their frame.
    pub waiting: u8,
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
    counter_offset: u8,
}

impl TsLevel {
    /// Of the stream, frames of layers up to `max_layer`.
    pub fn new(max_layer: MaxLayer) -> Self {
        TsLevel {
            max_layer,
            takes: true,
            lacks: false,
            counter: Counter::default(),
            packets: BytesMut::new(),
            next: Next::default(),
            sequence: None,
            left_out: 0,
        }
    }

    /// The same where another process has made it up to now. This one begins with pieces that the other had as
    /// well, and at the end of which it is to count as the other did.
    pub fn aligned(max_layer: MaxLayer, pieces: &[Piece], there: Standing) -> Self {
        let mut trial = TsLevel::new(max_layer);
        for piece in pieces {
            if piece.starts {
                trial.begin(piece);
            }
            trial.push(piece, &mut |_| {});
        }
        trial.settle(there);
        let first =
            pieces.iter().find(|piece| piece.starts).map(|piece| outflow_rtp::sequence(&piece.rtp_header));
        let made = trial.sequence.zip(first).map(|(next, first)| next.wrapping_sub(first));
        let mut aligned = TsLevel::new(max_layer);
        aligned.counter.counter_offset =
            there.counter_offset.wrapping_sub(trial.counter.counter_offset) & 0x0f;
        aligned.sequence = there.sequence.map(|sequence| sequence.wrapping_sub(made.unwrap_or(0)));
        aligned
    }

    /// Behind these pieces: what waits here though it did not there, as its frame had shown its end, goes.
    pub fn settle(&mut self, there: Standing) -> Option<Parsed> {
        let waits = self.packets.len() / PACKET_BYTES > usize::from(there.waiting);
        waits.then(|| self.flush(true)).flatten()
    }

    /// Where it stands.
    pub fn standing(&self) -> Standing {
        Standing {
            counter_offset: self.counter.counter_offset,
            sequence: self.sequence,
            // A datagram's at most.
            waiting: (self.packets.len() / PACKET_BYTES) as u8,
        }
    }

    /// The highest layer that it takes.
    pub fn max_layer(&self) -> MaxLayer {
        self.max_layer
    }

    /// By how much the main stream's continuity counter is lower than it came, modulo 16.
    pub fn counter_offset(&self) -> u8 {
        self.counter.counter_offset
    }

    /// Packets that were left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The RTP header that the next datagram gets if it begins with this piece.
    pub fn header_of(&self, piece: &Piece) -> [u8; HEADER] {
        let mut header = piece.rtp_header;
        if let Some(sequence) = self.sequence {
            outflow_rtp::set_sequence(&mut header, sequence);
        }
        header
    }

    /// A frame begins: what there is of the one before goes. [`push`](Self::push) is to follow.
    pub fn begin(&mut self, piece: &Piece) -> Option<Parsed> {
        let FrameTag { key, layer, layers, .. } = piece.told;
        let ended = self.flush(true);
        self.sequence.get_or_insert(outflow_rtp::sequence(&piece.rtp_header));
        // Of a stream that turned out to have no layers, all is taken once it can be decoded.
        self.takes = if layers > 1 { self.max_layer.takes(layer) } else { key || !self.lacks };
        self.lacks = !self.takes || (self.lacks && !key);
        ended
    }

    /// Takes packets. Datagrams that are complete by them are handed to `out`.
    pub fn push(&mut self, piece: &Piece, out: &mut impl FnMut(Parsed)) {
        for (index, packet) in piece.bytes.chunks_exact(PACKET_BYTES).enumerate() {
            let starts = piece.starts && index == 0;
            if self.packets.is_empty() {
                self.open(piece);
            }
            let is_main = piece.main_pid.is_some() && pid_of(packet) == piece.main_pid;
            match is_main {
                true => self.main_packet(piece, packet, starts),
                false => self.beside(piece.content, packet),
            }
            if self.packets.len() >= DATAGRAM_BYTES {
                self.flush(false).into_iter().for_each(&mut *out);
            }
        }
        if piece.ends {
            self.flush(true).into_iter().for_each(out);
        }
    }

    /// A packet that is not of the main stream.
    fn beside(&mut self, content: Content, packet: &[u8]) {
        self.next.tag.content = self.next.tag.content.max(content);
        self.packets.extend_from_slice(packet);
    }

    /// A datagram begins, with packets of nothing known.
    fn open(&mut self, piece: &Piece) {
        let Piece { frame, arrived, .. } = *piece;
        let content = Content::Stuffing;
        let tag = Tag { frame, kind: Kind::Data, content, layers: 1, ..Tag::default() };
        self.next = Next { tag, arrived, rtp_header: piece.rtp_header, preamble: None };
        if self.packets.capacity() < DATAGRAM_BYTES {
            self.packets.reserve(POOL_BLOCK_BYTES);
        }
    }

    fn main_packet(&mut self, piece: &Piece, packet: &[u8], starts: bool) {
        let &[_, _, _, control, ..] = packet else { return };
        // Without an adaptation field there is nothing to look for.
        let has_adaptation = control & 0x20 != 0;
        let known = has_adaptation.then(|| Packet::new_checked(packet).ok()).flatten();
        let is_discontinuity = known.is_some_and(|packet| packet.adaptation().discontinuity());
        let has_payload = control & 0x10 != 0;
        let counts = self.counter.step(control & 0x0f, has_payload, is_discontinuity);
        if self.takes || !has_payload {
            match self.takes {
                true => self.tell(piece, starts),
                false => self.next.tag.content = self.next.tag.content.max(piece.content),
            }
            let at = self.packets.len();
            self.packets.extend_from_slice(packet);
            self.packets[at + 3] = control & 0xf0 | self.counter.of(control & 0x0f);
            return;
        }
        self.left_out += 1;
        self.counter.counter_offset = (self.counter.counter_offset + u8::from(counts)) & 0x0f;
        let pcr = known.and_then(|packet| packet.adaptation().pcr());
        if let (Some(pid), true) = (piece.main_pid, pcr.is_some() || is_discontinuity) {
            let continuity = self.counter.of(control & 0x0f);
            let header =
                Header { pid, continuity, discontinuity: is_discontinuity, pcr, ..Header::default() };
            header.emit(&mut self.packets, &mut &[][..]);
            self.next.tag.content = Content::Tables;
        }
    }

    /// The datagram has packets of a frame that is taken.
    fn tell(&mut self, piece: &Piece, starts: bool) {
        let FrameTag { kind, key, needs, .. } = piece.told;
        let first = self.next.tag.first || starts;
        self.next.tag = Tag { kind, key, opens: key, first, needs, ..self.next.tag };
        self.next.preamble = piece.preamble.clone();
    }

    /// The packets that wait, as a datagram.
    fn flush(&mut self, ends: bool) -> Option<Parsed> {
        if self.packets.is_empty() {
            return None;
        }
        let Next { mut tag, arrived, mut rtp_header, preamble } = core::mem::take(&mut self.next);
        if tag.kind != Kind::Data {
            (tag.last, tag.content) = (ends, Content::Opaque);
        }
        let sequence = self.sequence.unwrap_or(outflow_rtp::sequence(&rtp_header));
        if rtp_header[0] != 0 {
            outflow_rtp::set_sequence(&mut rtp_header, sequence);
        }
        self.sequence = Some(sequence.wrapping_add(1));
        let bytes = self.packets.split().freeze();
        Some(Parsed { packet: Datagram { bytes, tag, arrived }, rtp_header, preamble, found: None })
    }
}

impl Counter {
    /// A packet comes. Returns whether the counter goes on with it: it does not without a payload, nor if
    /// the packet is the last once more.
    fn step(&mut self, counter: u8, has_payload: bool, is_discontinuity: bool) -> bool {
        let is_same = self.last.replace(counter) == Some(counter);
        if !has_payload {
            self.twice &= is_same;
            return false;
        }
        self.twice = is_same && !self.twice && !is_discontinuity;
        !self.twice
    }

    /// What a packet with this counter goes on with.
    fn of(&self, counter: u8) -> u8 {
        counter.wrapping_sub(self.counter_offset) & 0x0f
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::Needs;

    use super::*;

    const VIDEO: u16 = 0x100;
    const AUDIO: u16 = 0x101;

    fn packet(header: Header, payload: &[u8]) -> Vec<u8> {
        let (mut out, mut rest) = (BytesMut::new(), payload);
        header.emit(&mut out, &mut rest);
        out.to_vec()
    }

    fn video(counter: u8, pcr: Option<u64>) -> Vec<u8> {
        packet(Header { pid: VIDEO, continuity: counter & 15, pcr, ..Header::default() }, &[1; 100])
    }

    fn audio(counter: u8) -> Vec<u8> {
        packet(Header { pid: AUDIO, continuity: counter, ..Header::default() }, &[2; 184])
    }

    /// All of a frame, in a piece.
    fn frame(frame: u32, layer: u8, packets: &[Vec<u8>]) -> Piece {
        let (kind, needs, key) = (Kind::Predicted, Needs::back(1), layer == 0);
        Piece {
            frame,
            told: FrameTag { kind, key, layer, layers: 3, opens: key, needs },
            starts: true,
            ends: false,
            main_pid: Some(VIDEO),
            bytes: packets.concat().into(),
            arrived: Time::ZERO,
            rtp_header: [0x80, 33, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1],
            content: Content::Sound,
            preamble: key.then(|| Bytes::from_static(b"tables")),
        }
    }

    fn pushed(level: &mut TsLevel, piece: &Piece) -> Vec<Parsed> {
        let mut out: Vec<_> = level.begin(piece).into_iter().collect();
        level.push(piece, &mut |made| out.push(made));
        out
    }

    /// PID, counter, and whether there is a payload.
    fn packets(made: &[Parsed]) -> Vec<(u16, u8, bool)> {
        let all = made.iter().flat_map(|made| made.packet.bytes.chunks(PACKET_BYTES).collect::<Vec<_>>());
        let read = |bytes| Packet::new_checked(bytes).expect("a packet");
        all.map(read).map(|p| (p.pid(), p.continuity(), p.has_payload())).collect()
    }

    #[test]
    fn datagrams_are_full_or_end_with_their_frame_and_say_what_they_are() {
        let mut level = TsLevel::new(MaxLayer::ALL);
        let ten: Vec<_> = (0..10).map(|counter| video(counter, None)).collect();
        let made = pushed(&mut level, &frame(4, 0, &ten));
        assert_eq!(made.iter().map(|made| made.packet.bytes.len() / PACKET_BYTES).collect::<Vec<_>>(), [7]);
        let (tag, preamble) = (made[0].packet.tag, made[0].preamble.as_deref());
        assert_eq!((tag.frame, tag.first, tag.last, tag.key, tag.layers), (4, true, false, true, 1));
        assert_eq!(tag.content, Content::Opaque, "a picture");
        assert_eq!((preamble, made[0].rtp_header[3]), (Some(&b"tables"[..]), 7));
        let made = pushed(&mut level, &Piece { ends: true, ..frame(5, 1, &[video(10, None)]) });
        let tags: Vec<_> = made.iter().map(|made| made.packet.tag).map(|tag| (tag.frame, tag.last)).collect();
        assert_eq!(tags, [(4, true), (5, true)]);
        assert_eq!((made[0].rtp_header[3], made[1].rtp_header[3]), (8, 9));
    }

    #[test]
    fn of_what_is_left_out_clocks_and_marks_stay_and_the_counter_closes_up() {
        let base = outflow_packet::Level::new(3).expect("a level").of(3);
        let mut level = TsLevel::new(base);
        let mut made = pushed(&mut level, &frame(1, 0, &[video(0, None)]));
        let mark = Header { pid: VIDEO, continuity: 3, discontinuity: true, ..Header::default() };
        let left_out = [video(1, None), video(2, Some(77)), audio(9), packet(mark, &[1; 50]), video(4, None)];
        made.extend(pushed(&mut level, &frame(2, 2, &left_out)));
        made.extend(pushed(&mut level, &Piece { ends: true, ..frame(3, 0, &[video(5, Some(99))]) }));
        let expected =
            [(VIDEO, 0, true), (VIDEO, 0, false), (AUDIO, 9, true), (VIDEO, 0, false), (VIDEO, 1, true)];
        assert_eq!(packets(&made), expected);
        let left = &made[1].packet;
        assert_eq!((left.tag.kind, left.tag.needs, left.tag.first), (Kind::Data, Needs::NOTHING, false));
        assert_eq!(left.tag.content, Content::Tables, "there is a clock reference in it");
        let first = Packet::new_checked(&left.bytes[..PACKET_BYTES]).expect("a packet");
        assert_eq!(first.adaptation().pcr(), Some(77));
        assert_eq!((level.counter_offset(), level.left_out()), (4, 4));
    }
    #[test]
    fn sound_that_is_left_of_a_frame_is_sound() {
        let mut level = TsLevel::new(outflow_packet::Level::new(3).expect("a level").of(3));
        let made = pushed(&mut level, &Piece { ends: true, ..frame(1, 2, &[video(0, None), audio(1)]) });
        let tag = made[0].packet.tag;
        assert_eq!((made.len(), tag.kind, tag.content), (1, Kind::Data, Content::Sound));
    }
}
