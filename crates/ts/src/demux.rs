//! PES packets of chosen elementary streams, out of a transport stream: what [`TsMux`](crate::TsMux) puts in.

use bytes::{Buf, Bytes, BytesMut};

use super::continuity::{Continuity, Step};
use super::packet::{NULL_PID, PACKET_BYTES, Packet};
use super::pes::PesHeader;
use super::programme::{Coding, Programme};
use super::tables::{Change, Tables};
use crate::limits::PES_COLLECTED_BYTES_MAX;

/// Memory is taken in blocks, so that small PES packets share them.
const BLOCK_BYTES: usize = 64 << 10;

/// What a PES packet holds: one access unit of video, some frames of sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pes {
    /// Index of its elementary stream among those that were chosen.
    pub stream: usize,
    /// When it is presented, in ticks of 90 kHz, 33 bits; `None` where it goes on with what was before.
    pub pts: Option<u64>,
    /// When it is decoded, if that is not when it is presented.
    pub dts: Option<u64>,
    /// What stands behind its header.
    pub data: Bytes,
    /// Something is missing in front of it.
    pub is_behind_gap: bool,
}

/// What of the chosen streams was dropped. Cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PesDropped {
    /// Packets were missing in it.
    pub incomplete: u64,
    /// It was larger than [`PES_COLLECTED_BYTES_MAX`].
    pub too_large: u64,
    /// Its header was none, or its packets were scrambled.
    pub malformed: u64,
}

/// Puts PES packets together.
///
/// One of video mostly does not say how long it is, and would be complete only when the next one begins, a frame later.
/// Multiplexers fill the last transport packet of a PES packet up by its adaptation field: this is believed to be the end, so
/// that nothing waits. A stream that goes on behind it has shown that it is not; from then on its ends are waited for.
#[derive(Debug)]
pub struct TsDemux {
    tables: Tables,
    continuity: Continuity,
    streams: Vec<Stream>,
    dropped: PesDropped,
}

/// A chosen elementary stream.
#[derive(Debug)]
struct Stream {
    coding: Coding,
    pid: Option<u16>,
    state: State,
    /// The PES packet that arrives, from its header on.
    data: BytesMut,
    /// The end of a PES packet shows by how its last packet is filled up.
    ends_show: bool,
    is_behind_gap: bool,
}

/// How much there is of the PES packet that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// None of it: one has to begin.
    Waiting,
    /// Some of it.
    Open,
    /// It was believed to be complete, by how its last packet was filled up.
    Shown,
    /// What goes on behind that.
    Behind,
    /// All of it, by its length.
    Complete,
}

impl TsDemux {
    /// Of the first elementary stream of each of these codings in the programme whose frames are told.
    pub fn new(chosen: impl IntoIterator<Item = Coding>) -> Self {
        TsDemux {
            tables: Tables::default(),
            continuity: Continuity::new(),
            streams: chosen.into_iter().map(Stream::new).collect(),
            dropped: PesDropped::default(),
        }
    }

    /// What was dropped.
    pub fn dropped(&self) -> PesDropped {
        self.dropped
    }

    /// The programme, once its tables came.
    pub fn programme(&self) -> Option<&Programme> {
        self.tables.programme()
    }

    /// The packets of the tables that hold for what comes next; nothing if they are known already.
    pub fn begin(&mut self, preamble: &[u8]) {
        if self.tables.programme().is_none() {
            for packet in preamble.chunks_exact(PACKET_BYTES).filter_map(|p| Packet::new_checked(p).ok()) {
                self.table(&packet);
            }
        }
    }

    /// What comes next does not follow what came.
    pub fn break_off(&mut self) {
        self.continuity.break_off();
        self.tables.break_off();
        self.streams.iter_mut().for_each(|stream| stream.lose(&mut self.dropped));
    }

    /// Takes a datagram of whole transport packets, and gives what is complete by it.
    pub fn push(&mut self, datagram: &[u8], out: &mut impl FnMut(Pes)) {
        for bytes in datagram.chunks_exact(PACKET_BYTES) {
            match Packet::new_checked(bytes) {
                Ok(packet) if !packet.transport_error() && packet.pid() != NULL_PID => {
                    self.packet(&packet, out);
                }
                _ => {}
            }
        }
    }

    fn packet(&mut self, packet: &Packet<'_>, out: &mut impl FnMut(Pes)) {
        let pid = Some(packet.pid());
        let chosen = self.streams.iter().position(|stream| stream.pid == pid);
        let is_table = chosen.is_none() && self.tables.is_table(packet.pid());
        if chosen.is_none() && !is_table {
            return;
        }
        let step = self.continuity.step(packet);
        if step == Step::Again {
            return;
        }
        let TsDemux { streams, dropped, tables, .. } = self;
        match chosen.and_then(|index| Some((index, streams.get_mut(index)?))) {
            Some((index, stream)) => stream.packet((index, packet), step, dropped, out),
            None => {
                if step != Step::Next {
                    tables.lost(packet.pid());
                }
                if packet.has_payload() {
                    self.table(packet);
                }
            }
        }
    }

    fn table(&mut self, packet: &Packet<'_>) {
        if !self.tables.is_table(packet.pid()) || self.tables.push(packet) != Change::Programme {
            return;
        }
        let Some(programme) = self.tables.programme() else { return };
        for stream in &mut self.streams {
            let pid = programme.streams.iter().find(|known| known.coding == stream.coding).map(|it| it.pid);
            if stream.pid != pid {
                stream.lose(&mut self.dropped);
                (stream.pid, stream.is_behind_gap) = (pid, false);
            }
        }
    }
}

impl Stream {
    fn new(coding: Coding) -> Self {
        let (state, data) = (State::Waiting, BytesMut::new());
        Stream { coding, pid: None, state, data, ends_show: true, is_behind_gap: false }
    }

    /// Nothing of what has begun will be complete.
    fn lose(&mut self, dropped: &mut PesDropped) {
        dropped.incomplete += u64::from(matches!(self.state, State::Open | State::Behind));
        (self.state, self.is_behind_gap) = (State::Waiting, true);
        self.data.clear();
    }

    fn packet(
        &mut self,
        (index, packet): (usize, &Packet<'_>),
        step: Step,
        dropped: &mut PesDropped,
        out: &mut impl FnMut(Pes),
    ) {
        if step != Step::Next {
            self.lose(dropped);
        }
        if !packet.has_payload() {
            return;
        }
        if packet.is_scrambled() {
            dropped.malformed += u64::from(packet.unit_start());
            return self.lose(dropped);
        }
        if packet.unit_start() {
            self.finish(index, dropped, out);
            self.state = State::Open;
        }
        match self.state {
            State::Waiting | State::Complete => return,
            State::Shown => (self.state, self.ends_show) = (State::Behind, false),
            State::Open | State::Behind => {}
        }
        if self.data.len() + packet.payload().len() > PES_COLLECTED_BYTES_MAX {
            dropped.too_large += 1;
            (self.state, self.is_behind_gap) = (State::Waiting, true);
            return self.data.clear();
        }
        if self.data.capacity() - self.data.len() < PACKET_BYTES {
            self.data.reserve(BLOCK_BYTES.max(self.data.len()));
        }
        self.data.extend_from_slice(packet.payload());
        self.look_for_the_end(index, packet, dropped, out);
    }

    /// Gives what there is, if the PES packet is complete with this packet.
    fn look_for_the_end(
        &mut self,
        index: usize,
        packet: &Packet<'_>,
        dropped: &mut PesDropped,
        out: &mut impl FnMut(Pes),
    ) {
        let length = match self.state {
            State::Open => PesHeader::parse(&self.data).ok().and_then(|header| header.packet_bytes),
            _ => None,
        };
        match length {
            Some(length) if self.data.len() >= length => {
                self.data.truncate(length);
                self.finish(index, dropped, out);
                self.state = State::Complete;
            }
            Some(_) => {}
            None if self.ends_show && packet.is_filled_up() => {
                self.finish(index, dropped, out);
                self.state = State::Shown;
            }
            None => {}
        }
    }

    /// The PES packet that arrives is complete.
    fn finish(&mut self, stream: usize, dropped: &mut PesDropped, out: &mut impl FnMut(Pes)) {
        if self.data.is_empty() {
            return;
        }
        let mut data = self.data.split().freeze();
        let (mut pts, mut dts) = (None, None);
        if self.state == State::Open {
            match PesHeader::parse(&data).ok().filter(|header| header.header_bytes <= data.len()) {
                Some(header) => {
                    (pts, dts) = (header.pts, header.dts);
                    data.advance(header.header_bytes);
                }
                None => {
                    dropped.malformed += 1;
                    self.is_behind_gap = true;
                    return;
                }
            }
        }
        let is_behind_gap = core::mem::take(&mut self.is_behind_gap);
        if !data.is_empty() {
            out(Pes { stream, pts, dts, data, is_behind_gap });
        }
    }
}

#[cfg(test)]
mod tests;
