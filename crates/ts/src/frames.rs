//! Which frame each packet of a transport stream belongs to.

use bytes::Bytes;
use outflow_media::frames::Frame;
use outflow_media::{Content, Kind, Needs};

use super::Found;
use super::fill::fill;
use super::packet::{NULL_PID, PACKET_BYTES, Packet, pid_of};
use super::pes::VIDEO_ID;
use crate::limits::UNTOLD_PACKETS_MAX;

/// PIDs beside the main stream whose content is kept in mind.
const OTHERS_MAX: usize = 16;

/// Tells, packet by packet, where the frames of the main stream begin and what they are, so that a
/// transport stream can be parted between them.
///
/// A *frame* here is all from the first packet of an access unit of the main stream up to the first
/// packet of the next one: packets of other PIDs between them count to it. They are those that a
/// [`TsReader`](super::TsReader) found; their numbers rise also where another reader goes on.
///
/// A stream can be parted if each of its PES packets holds one access unit, or a part of one, and is not
/// scrambled. Where one shows otherwise, the stream counts as one of a single layer from there on, until
/// [`restart`](Self::restart).
#[derive(Debug)]
pub struct TsFrames {
    /// The number of the frame that arrives.
    number: u32,
    /// What is known of it; `None` before there was a main stream.
    arriving: Option<Frame>,
    main_pid: Option<u16>,
    /// How many layers the main stream has shown.
    layers: u8,
    /// What other PIDs hold that is worth more than what is not known.
    others: [(u16, Content); OTHERS_MAX],
    /// How many of these are known.
    known: usize,
    /// It has shown that it cannot be parted.
    is_mixed: bool,
    /// Packets of the main stream are missing since its last PES packet began.
    has_gap: bool,
    /// Packets since the frame began.
    packets: usize,
    /// The last counter of the main stream.
    counter: Option<u8>,
    /// `stream_id` of its PES packets.
    stream_id: u8,
}

impl Default for TsFrames {
    fn default() -> Self {
        TsFrames {
            number: 0,
            arriving: None,
            main_pid: None,
            layers: 0,
            others: [(0, Content::Opaque); OTHERS_MAX],
            known: 0,
            is_mixed: false,
            has_gap: false,
            packets: 0,
            counter: None,
            stream_id: VIDEO_ID,
        }
    }
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// A frame begins with it.
    pub starts: bool,
    /// The frame is complete with it, by the length of its PES packet.
    pub ends: bool,
    /// It is of the main stream.
    pub is_main: bool,
}

/// What is told of a frame: see the fields of [`Tag`](outflow_media::Tag) of these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are those of a tag")]
pub struct FrameTag {
    pub kind: Kind,
    pub key: bool,
    pub layer: u8,
    pub layers: u8,
    pub opens: bool,
    pub needs: Needs,
}

impl TsFrames {
    /// Takes the next packet, of [`PACKET_BYTES`](super::PACKET_BYTES), and what its reader found. What is
    /// damaged belongs to the frame that arrives.
    pub fn packet(&mut self, bytes: &[u8], found: &Found) -> Part {
        if found.main_pid.is_some() && found.main_pid != self.main_pid {
            (self.main_pid, self.layers, self.is_mixed) = (found.main_pid, 0, false);
            (self.counter, self.known) = (None, 0);
        }
        if let Some(frame) = found.arriving {
            self.layers = self.layers.max(frame.layers);
            self.arriving = Some(frame);
        }
        let begun = found.begun;
        self.number = self.number.wrapping_add(begun);
        let pid = pid_of(bytes);
        let is_main = self.main_pid.is_some() && pid == self.main_pid;
        if let Some(packet) = Packet::new_checked(bytes).ok().filter(|_| is_main) {
            self.has_gap |= found.is_behind_gap || packet.adaptation().discontinuity();
            self.main_packet(&packet, begun);
        } else if let (Some(pid), Content::Sound | Content::Tables) = (pid, found.content) {
            self.learn(pid, found.content);
        }
        if begun > 0 {
            self.packets = 0;
        }
        self.packets += 1;
        Part { starts: begun > 0, ends: is_main && found.ends && begun == 0, is_main }
    }

    /// What a PID holds that is not the main stream.
    fn learn(&mut self, pid: u16, content: Content) {
        match self.others[..self.known].iter_mut().find(|(known, _)| *known == pid) {
            Some((_, known)) => *known = content.max(*known),
            None if self.known < OTHERS_MAX => {
                self.others[self.known] = (pid, content);
                self.known += 1;
            }
            None => {}
        }
    }

    /// Packets were lost behind the reader, in front of the next one.
    pub fn miss(&mut self) {
        self.has_gap = true;
    }

    /// Begins again with what the stream is; its frames are counted on.
    pub fn restart(&mut self) {
        self.is_mixed = false;
    }

    /// Another process has read the stream up to now, and seen this number of layers.
    pub fn restore_layers(&mut self, layers: u8) {
        self.layers = self.layers.max(layers);
    }

    /// The number of the frame that arrives.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What the frame that arrives is; `None` as long as it has not shown it. One that has not for
    /// [`UNTOLD_PACKETS_MAX`] packets counts as of the lowest layer.
    pub fn told(&self) -> Option<FrameTag> {
        let Some(frame) = self.arriving else { return Some(self.untold()) };
        let is_known = frame.kind != Kind::Header || self.packets >= UNTOLD_PACKETS_MAX || self.is_mixed;
        is_known.then(|| self.of(frame))
    }

    /// What is said of a frame that ended before it showed what it was.
    pub fn untold(&self) -> FrameTag {
        let (kind, needs, layers) = (Kind::Header, Needs::NOTHING, self.layers());
        FrameTag { kind, key: false, layer: 0, layers, opens: false, needs }
    }

    /// How many layers there are, as far as is known; 0 before there was a frame.
    pub fn layers(&self) -> u8 {
        if self.is_mixed { self.layers.min(1) } else { self.layers }
    }

    /// The PID of the main stream, once it is known.
    pub fn main_pid(&self) -> Option<u16> {
        self.main_pid
    }

    /// What packets held beside the main stream that came before, as [`Tag::content`](outflow_media::Tag::content) says
    /// it, by their PIDs.
    pub fn content(&self, packets: &[u8]) -> Content {
        let packets = packets.chunks_exact(PACKET_BYTES).filter_map(|bytes| Packet::new_checked(bytes).ok());
        let others = packets.filter(|packet| Some(packet.pid()) != self.main_pid || !packet.has_payload());
        let known = |pid| self.others[..self.known].iter().find(|(known, _)| *known == pid);
        let content = |packet: Packet<'_>| match packet.pid() {
            NULL_PID => Content::Stuffing,
            pid => known(pid).map_or(Content::Opaque, |(_, content)| *content),
        };
        others.map(content).max().unwrap_or(Content::Stuffing)
    }

    /// The last continuity counter of the main stream.
    pub fn counter(&self) -> Option<u8> {
        self.counter
    }

    /// Packets of the main stream that add nothing to it, behind one with this counter: see [`fill`].
    pub fn fill(&self, counter: u8, count: u8) -> Bytes {
        self.main_pid.map_or_else(Bytes::new, |pid| fill(pid, self.stream_id, counter, count))
    }

    fn main_packet(&mut self, packet: &Packet<'_>, begun: u32) {
        self.counter = Some(packet.continuity());
        let starts_pes = packet.unit_start() && packet.has_payload();
        if starts_pes {
            self.has_gap = false;
            self.stream_id = packet.payload().get(3).copied().unwrap_or(self.stream_id);
        }
        let within = begun > 0 && !starts_pes && !self.has_gap;
        self.is_mixed |= begun > 1 || within || (packet.has_payload() && packet.is_scrambled());
    }

    fn of(&self, frame: Frame) -> FrameTag {
        let Frame { kind, key, layer, opens, needs, .. } = frame;
        let layers = self.layers();
        match layers {
            0 | 1 => FrameTag { kind, key, layer: 0, layers, opens: key, needs },
            _ => FrameTag { kind, key, layer, layers, opens, needs },
        }
    }
}

#[cfg(test)]
mod tests;
