//! Where the frames of a transport stream begin in a branch, what they are, and what they cost.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use outflow_graph::elements::ts_level::{Piece, Standing, TsLevel};
use outflow_media::{Content, Format, Tag, Time};
use outflow_packet::{Level, MaxLayer, Parsed, Rates};
use outflow_ts::{Found, FrameTag, PACKET_BYTES, TsFrames, TsReader};

use crate::save::SavedTsLevel;
use crate::schedule::SinkKey;
use outflow_ring::{Ring, Seq};

/// Where a frame begins in a branch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) frame: u32,
    /// The datagram that it begins in ...
    pub(super) at: Seq,
    /// ... behind this many packets of the frame before.
    pub(super) skip: usize,
    /// By how much the main stream's continuity counter is lower there than it came.
    pub(super) counter_offset: u8,
    /// The RTP header of that datagram.
    pub(super) rtp_header: [u8; 12],
}

/// A frame of a branch that came whole.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    pub(super) start: Start,
    /// What it is; `None` as long as that does not show.
    pub(super) told: Option<FrameTag>,
    /// A sink that had none but key frames before can take all layers from it on.
    pub(super) opens_all: bool,
    /// The main stream's continuity counter in front of it, if there was any.
    counter: Option<u8>,
    /// What a receiver needs first that begins with it.
    preamble: Option<Bytes>,
}

impl Mark {
    /// What a sink takes from this frame on that takes layers up to `max_layer` and wants `wish`. Pictures that
    /// are shown before a key frame, and decoded behind it, may need what was before it: a sink that takes
    /// more begins behind them.
    pub(super) fn max_layer_from(&self, max_layer: MaxLayer, wish: MaxLayer) -> MaxLayer {
        let first = Tag { first: true, ..Tag::default() };
        let tag = self.told.map_or(first, |FrameTag { layer, opens, .. }| Tag { layer, opens, ..first });
        max_layer.from(wish, &tag, self.opens_all)
    }
}

/// The frames of a transport stream that is a branch, and its levels.
#[derive(Debug, Default)]
pub(in crate::control) struct TsLevels {
    /// For datagrams with which nothing comes that was found in them: of a replica's introduction, or made by
    /// services.
    reader: Option<Box<TsReader>>,
    /// What that found in the datagram that comes. Kept so that no memory is asked for it.
    found: Vec<Found>,
    frames: TsFrames,
    rates: Rates,
    /// The frames that the ring still has, and the one before them.
    pub(super) marks: VecDeque<Mark>,
    /// The newest frame, ...
    number: u32,
    /// ... what it is, once that shows, ...
    told: Option<FrameTag>,
    /// ... and pieces of it, as long as it does not.
    held: Vec<Piece>,
    /// What came since the newest key frame needs what was before it.
    is_leading: bool,
    /// The newest key frame.
    key: Option<u32>,
    /// Something is known that was not when sinks were looked at last.
    pub(super) news: bool,
    /// Sinks that take other layers than they want.
    pub(super) changing: Vec<SinkKey>,
    /// How many layers there were when these sinks were found.
    pub(super) layers_before: u8,
    /// The main stream has this many layers at least, though fewer may come.
    least: u8,
}

impl TsLevels {
    /// For a branch of this format, if it is a transport stream.
    pub(in crate::control) fn of(format: &Format) -> Option<Box<Self>> {
        (*format == Format::Ts).then(Box::default)
    }

    #[cfg(test)]
    pub(super) fn has_reader(&self) -> bool {
        self.reader.is_some()
    }

    /// Another process has read the stream up to now, and seen this number of layers.
    pub(in crate::control) fn restore_layers(&mut self, layers: u8) {
        self.frames.restore_layers(layers);
    }

    /// How many frames have come since one.
    pub(in crate::control) fn since(&self, frame: u32) -> u32 {
        self.number.wrapping_sub(frame)
    }

    /// The frame since which this number of frames have come.
    pub(in crate::control) fn before(&self, frames: u32) -> u32 {
        self.number.wrapping_sub(frames)
    }

    /// How many layers the main stream has, as far as is known; 0 before that.
    pub(in crate::control) fn layers(&self) -> u8 {
        self.frames.layers().max(self.least)
    }

    /// The least number of layers there are, whatever comes.
    pub(in crate::control) fn set_least(&mut self, layers: u8) {
        self.least = layers;
        self.news = true;
    }

    /// The layers that are taken at this level.
    pub(super) fn max_layer(&self, level: Level) -> MaxLayer {
        level.of(self.layers())
    }

    /// Bits a second of each level, the best first.
    pub(super) fn rate_table(&self, now: Time) -> Vec<u64> {
        self.rates.table(now, self.layers())
    }

    /// Packets that let the counter go on by `count`, in front of a frame, at a branch where it is so much
    /// lower.
    pub(super) fn fill(&self, mark: &Mark, counter_offset: u8, count: u8) -> Bytes {
        mark.counter
            .map_or_else(Bytes::new, |counter| self.frames.fill(counter.wrapping_sub(counter_offset), count))
    }

    /// The newest frame: its number, the datagram that it begins in, and packets there of the one before.
    /// `None` if frames cannot be told.
    pub(in crate::control) fn newest_start(&self) -> Option<(u32, Seq, usize)> {
        let start = self.marks.back().filter(|_| self.frames.main_pid().is_some())?.start;
        Some((start.frame, start.at, start.skip))
    }

    /// A sink may want other layers than it takes.
    pub(super) fn wants_other(&mut self, key: SinkKey) {
        self.news = true;
        if !self.changing.contains(&key) {
            self.changing.push(key);
        }
    }

    /// Packets got lost behind the reader that found what comes along.
    pub(super) fn miss(&mut self) {
        self.frames.miss();
    }

    /// The source begins again.
    pub(in crate::control) fn restart(&mut self) {
        self.frames.restart();
    }

    /// The next datagram, which is the one at `at`, if the ring took it; else the next one will be. With it comes
    /// what its reader found in its packets; nothing if it was not read yet. What is known of it, and of those
    /// before it, is handed to `out`.
    pub(in crate::control) fn push(
        &mut self,
        now: Time,
        (at, is_there): (Seq, bool),
        (datagram, found): (&Parsed, &[Found]),
        out: &mut Vec<Piece>,
    ) {
        if !found.is_empty() {
            self.reader = None;
            return self.push_read(now, (at, is_there), (datagram, found), out);
        }
        let mut own = core::mem::take(&mut self.found);
        let reader = self.reader.get_or_insert_default();
        // What is no transport stream has no packets.
        if reader.read_into(&datagram.packet.bytes, &mut own).is_ok() {
            self.push_read(now, (at, is_there), (datagram, &own), out);
        }
        own.clear();
        self.found = own;
    }

    fn push_read(
        &mut self,
        now: Time,
        (at, is_there): (Seq, bool),
        (datagram, found): (&Parsed, &[Found]),
        out: &mut Vec<Piece>,
    ) {
        let mut run = 0..0;
        let (mut starts, mut content) = (false, Content::Stuffing);
        for (packet, found) in datagram.packet.bytes.chunks_exact(PACKET_BYTES).zip(found) {
            let (counter, main_pid) = (self.frames.counter(), self.frames.main_pid());
            let part = self.frames.packet(packet, found);
            if main_pid != self.frames.main_pid() {
                self.marks.clear();
            }
            if part.starts {
                self.part((datagram, &mut content), &mut run, (starts, false));
                self.end_frame(now, out);
                let skip = if is_there { run.start } else { 0 };
                self.begin_frame(counter, Start { skip, ..self.start(at, datagram) });
                starts = true;
            }
            run.end += 1;
            content = content.max(found.content);
            if self.told.is_none() {
                self.told = self.frames.told();
                self.told.into_iter().for_each(|told| self.know(told, datagram.preamble.as_ref()));
            }
            if part.ends {
                self.part((datagram, &mut content), &mut run, (core::mem::take(&mut starts), true));
            }
        }
        self.part((datagram, &mut content), &mut run, (starts, false));
        self.release(now, out);
    }

    /// Forgets frames that the ring has forgotten; of the oldest one that is known, the ring has the rest.
    pub(in crate::control) fn forget_before(&mut self, first: Seq) {
        while self.marks.get(1).is_some_and(|mark| mark.start.at < first) {
            self.marks.pop_front();
        }
    }

    fn start(&self, at: Seq, datagram: &Parsed) -> Start {
        let (frame, rtp_header) = (self.frames.number(), datagram.rtp_header);
        Start { frame, at, skip: 0, counter_offset: 0, rtp_header }
    }

    /// These packets of a datagram belong to the frame that arrives; beside the main stream, they have this
    /// content.
    fn part(
        &mut self,
        (datagram, content): (&Parsed, &mut Content),
        run: &mut Range<usize>,
        (starts, ends): (bool, bool),
    ) {
        let packets = core::mem::replace(run, run.end..run.end);
        let content = core::mem::replace(content, Content::Stuffing);
        if packets.is_empty() {
            return;
        }
        let bytes = datagram.packet.bytes.slice(packets.start * PACKET_BYTES..packets.end * PACKET_BYTES);
        self.held.push(Piece {
            starts,
            ends,
            main_pid: self.frames.main_pid(),
            content,
            bytes,
            arrived: datagram.packet.arrived,
            rtp_header: datagram.rtp_header,
            // What the frame is shows later.
            frame: 0,
            told: self.frames.untold(),
            preamble: None,
        });
    }

    fn begin_frame(&mut self, counter: Option<u8>, start: Start) {
        (self.number, self.told, self.news) = (start.frame, None, true);
        self.marks.push_back(Mark { start, told: None, opens_all: false, counter, preamble: None });
    }

    /// No more packets of the frame will come.
    fn end_frame(&mut self, now: Time, out: &mut Vec<Piece>) {
        if self.told.is_none() {
            let untold = self.frames.untold();
            self.told = Some(untold);
            self.know(untold, None);
        }
        self.release(now, out);
    }

    /// The newest frame shows what it is.
    fn know(&mut self, told: FrameTag, preamble: Option<&Bytes>) {
        let told = FrameTag { layers: told.layers.max(self.least), ..told };
        self.told = Some(told);
        self.news = true;
        let Some(mark) = self.marks.back_mut() else { return };
        let number = self.number;
        let is_before_key = |distance: u32| {
            self.key.is_some_and(|key| number.wrapping_sub(distance).wrapping_sub(key).cast_signed() < 0)
        };
        let is_leading = !told.key && told.needs.distances().any(is_before_key);
        mark.opens_all = self.is_leading && !is_leading;
        mark.told = Some(told);
        if told.key {
            let own = || self.reader.as_ref()?.preamble();
            (self.key, mark.preamble) = (Some(number), preamble.cloned().or_else(own));
        }
        self.is_leading = told.key || (self.is_leading && is_leading);
    }

    /// Hands on what is held of the newest frame, if it is known what it is.
    fn release(&mut self, now: Time, out: &mut Vec<Piece>) {
        let Some(told) = self.told else { return };
        let preamble = self.marks.back().and_then(|mark| mark.preamble.clone());
        for piece in self.held.drain(..) {
            let main = piece.main_bytes();
            self.rates.add(now, told.layer, main);
            self.rates.add(now, 0, piece.bytes.len() - main);
            out.push(Piece { frame: self.number, told, preamble: preamble.clone(), ..piece });
        }
    }

    /// The pieces of what a ring holds, as far as it is known what they are.
    pub(super) fn replay(&self, ring: &Ring, mut each: impl FnMut(Piece)) {
        let ends = self.marks.iter().skip(1).map(|mark| (mark.start.at, mark.start.skip));
        let ends = ends.chain([(ring.head(), 0)]);
        for (mark, (end, end_skip)) in self.marks.iter().zip(ends) {
            let (Some(told), Start { frame, at, skip, .. }) = (mark.told, mark.start) else { return };
            if at < ring.first() {
                continue;
            }
            for (seq, entry) in ring.range(at, end + u64::from(end_skip > 0)) {
                let from = if seq == at { skip } else { 0 };
                let to = if seq == end { end_skip } else { entry.packet.bytes.len() / PACKET_BYTES };
                let bytes = entry.packet.bytes.slice(from * PACKET_BYTES..to * PACKET_BYTES);
                each(Piece {
                    frame,
                    told,
                    starts: seq == at,
                    ends: false,
                    main_pid: self.frames.main_pid(),
                    content: self.frames.content(&bytes),
                    bytes,
                    arrived: entry.packet.arrived,
                    rtp_header: entry.rtp_header,
                    preamble: mark.preamble.clone(),
                });
            }
        }
    }
}

/// A branch that is a transport stream at a level.
#[derive(Debug)]
pub(in crate::control) struct TsLevelBranch {
    pub(super) filter: TsLevel,
    /// Where in its ring the frames of the whole stream begin, those included of which it has nothing.
    pub(super) starts: VecDeque<Start>,
}

impl TsLevelBranch {
    pub(in crate::control) fn new(max_layer: MaxLayer) -> Self {
        TsLevelBranch::with(TsLevel::new(max_layer))
    }

    /// One that another process has made up to now: this one begins with these pieces.
    pub(super) fn restore(saved: SavedTsLevel, pieces: &[Piece]) -> Self {
        TsLevelBranch::with(TsLevel::aligned(MaxLayer::up_to(saved.max_layer), pieces, standing(saved)))
    }

    /// Behind these pieces: the end of a frame that the other process has sent.
    pub(super) fn settle(&mut self, saved: SavedTsLevel) -> Option<Parsed> {
        self.filter.settle(standing(saved))
    }

    /// What of it goes on in another process.
    pub(in crate::control) fn save(&self) -> SavedTsLevel {
        let Standing { counter_offset, sequence, waiting } = self.filter.standing();
        SavedTsLevel { max_layer: self.filter.max_layer().layer(), counter_offset, sequence, waiting }
    }

    fn with(filter: TsLevel) -> Self {
        TsLevelBranch { filter, starts: VecDeque::new() }
    }

    /// Forgets frames of which the ring has nothing any more.
    pub(super) fn forget_before(&mut self, first: Seq) {
        while self.starts.front().is_some_and(|start| start.at < first) {
            self.starts.pop_front();
        }
    }

    /// A frame begins with this piece, at `at`.
    pub(super) fn start(&mut self, piece: &Piece, at: Seq) {
        let counter_offset = self.filter.counter_offset();
        let rtp_header = self.filter.header_of(piece);
        self.starts.push_back(Start { frame: piece.frame, at, skip: 0, counter_offset, rtp_header });
    }

    /// Where a frame begins.
    pub(super) fn start_of(&self, frame: u32) -> Option<&Start> {
        let is_before = |start: &Start| start.frame.wrapping_sub(frame).cast_signed() < 0;
        self.starts.get(self.starts.partition_point(is_before)).filter(|start| start.frame == frame)
    }
}

fn standing(SavedTsLevel { counter_offset, sequence, waiting, .. }: SavedTsLevel) -> Standing {
    Standing { counter_offset, sequence, waiting }
}
