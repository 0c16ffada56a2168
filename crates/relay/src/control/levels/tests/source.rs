//! Models of encoders and multiplexers: transport streams of pictures of which one knows what they refer to.

use bytes::{Bytes, BytesMut};
use outflow_ts::packet::{Header, NULL_PID};
use outflow_ts::pes::PesHeader;
use outflow_ts::psi::{emit_packets, emit_pat, emit_pmt};

pub(super) const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;
const CLOCK: u16 = 0x1f0;
const PMT: u16 = 0x1000;

/// Takes one number after the other from a list, again and again.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    list: Vec<u8>,
    at: usize,
}

impl Choices {
    pub(super) fn new(list: Vec<u8>) -> Self {
        Choices { list, at: 0 }
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.at += 1;
        (usize::from(self.list[self.at % self.list.len()]) * 7 + self.at) % end.max(1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    H264,
    H265,
    Mpeg2,
}

/// How a stream is multiplexed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mux {
    pub(super) codec: Codec,
    /// The clock is on a PID of its own.
    pub(super) clock_apart: bool,
    /// PES packets say how long they are.
    pub(super) bounded: bool,
    /// Some packets come twice.
    pub(super) doubles: bool,
    /// In H.264 and MPEG-2, groups of pictures are open.
    pub(super) open: bool,
}

/// A picture, by its number.
#[derive(Debug, Clone, Default)]
pub(super) struct Picture {
    pub(super) layer: u8,
    pub(super) refers: Vec<usize>,
    pub(super) key: bool,
}

/// A packet as it comes in.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) bytes: Bytes,
    /// The picture that it has a part of.
    pub(super) picture: Option<usize>,
}

pub(super) struct Source {
    pub(super) mux: Mux,
    choices: Choices,
    pub(super) pictures: Vec<Picture>,
    /// The last intra or predicted pictures, the newest last.
    anchors: Vec<usize>,
    continuity: std::collections::BTreeMap<u16, u8>,
    time: u64,
    pcr: u64,
    words: u64,
    packets: Vec<Sent>,
    /// From now on, video is scrambled.
    pub(super) scrambled: bool,
}

impl Source {
    pub(super) fn new(mux: Mux, choices: Choices) -> Self {
        Source {
            mux,
            choices,
            pictures: Vec::new(),
            anchors: Vec::new(),
            continuity: Default::default(),
            time: 90_000,
            pcr: 27_000_000,
            words: 0,
            packets: Vec::new(),
            scrambled: false,
        }
    }

    /// How many layers the stream has.
    pub(super) fn layers(&self) -> u8 {
        if self.mux.codec == Codec::H265 { 4 } else { 3 }
    }

    /// The packets of the next group of pictures.
    pub(super) fn group(&mut self) -> Vec<Sent> {
        match self.mux.codec {
            Codec::H265 => self.sub_layers(),
            _ => self.pictures_of_kinds(),
        }
        core::mem::take(&mut self.packets)
    }

    /// I, P and B pictures, in the order in which they are decoded.
    fn pictures_of_kinds(&mut self) {
        self.time += 4 * 3600;
        let before = self.anchors.last().copied().filter(|_| self.mux.open);
        let key = self.picture(if before.is_some() { 'C' } else { 'I' }, self.time, vec![]);
        self.anchors = vec![key];
        if let Some(before) = before {
            self.between(vec![before, key]);
        }
        for _ in 0..1 + self.choices.below(4) {
            self.time += 4 * 3600;
            let earlier = self.anchors[self.anchors.len() - 1];
            let later = self.picture('P', self.time, vec![earlier]);
            self.anchors.push(later);
            self.between(vec![earlier, later]);
        }
    }

    fn between(&mut self, refers: Vec<usize>) {
        for back in 0..self.choices.below(3) as u64 {
            self.picture('b', self.time - (2 - back) * 3600, refers.clone());
        }
    }

    /// Two temporal sub-layers, the higher one with pictures that something refers to and others.
    fn sub_layers(&mut self) {
        self.time += 3600;
        let before = self.anchors.last().copied().filter(|_| self.mux.open);
        let key = self.picture(if before.is_some() { 'C' } else { 'I' }, self.time, vec![]);
        if let Some(before) = before {
            self.picture('L', self.time - 1800, vec![before, key]);
        }
        let mut base = key;
        for _ in 0..1 + self.choices.below(4) {
            self.time += 3 * 3600;
            let next = self.picture('P', self.time, vec![base]);
            // Of the higher sub-layer, switching points.
            let middle = self.picture('T', self.time - 2 * 3600, vec![base, next]);
            for _ in 0..self.choices.below(2) {
                self.picture('t', self.time - 3600, vec![middle, next]);
            }
            base = next;
        }
        self.anchors = vec![base];
    }

    /// A picture of a kind: `I` intra, closed, `C` intra, open, `L` before an open one, `P` predicted, `b` no
    /// reference, `T` a reference of the higher sub-layer, `t` none there.
    fn picture(&mut self, kind: char, pts: u64, refers: Vec<usize>) -> usize {
        let number = self.pictures.len();
        let layer = match (self.mux.codec, kind) {
            (_, 'I' | 'C') => 0,
            (_, 'P') => 1,
            (Codec::H265, 'T') => 2,
            (Codec::H265, _) => 3,
            _ => 2,
        };
        self.pictures.push(Picture { layer, refers, key: matches!(kind, 'I' | 'C') });
        if number == 0 || self.choices.below(5) == 0 {
            self.tables();
        }
        self.clock();
        let units = match self.mux.codec {
            Codec::H264 => h264(kind),
            Codec::H265 => h265(kind),
            Codec::Mpeg2 => mpeg2(kind),
        };
        let size = [20, 150, 184, 900, 4000][self.choices.below(5)];
        let mut data = units;
        data.extend(self.body(size));
        self.pes(number, pts, data);
        number
    }

    /// Bytes that stand nowhere else, and are no start code.
    fn body(&mut self, size: usize) -> Vec<u8> {
        let words = (0..size.div_ceil(6)).map(|_| {
            self.words += 1;
            (0..6).map(|i| 0x80 | (self.words >> (7 * i) & 0x7f) as u8).collect::<Vec<_>>()
        });
        words.flatten().collect()
    }

    fn tables(&mut self) {
        let kind = match self.mux.codec {
            Codec::H264 => 0x1b,
            Codec::H265 => 0x24,
            Codec::Mpeg2 => 0x02,
        };
        let clock = if self.mux.clock_apart { CLOCK } else { VIDEO };
        let pmt = emit_pmt(1, 0, clock, &[(kind, VIDEO, vec![]), (0x0f, AUDIO, vec![])]).expect("short");
        for (section, pid) in [(emit_pat(1, 0, 1, PMT), 0), (pmt, PMT)] {
            let mut out = BytesMut::new();
            emit_packets(&section, pid, self.continuity.entry(pid).or_default(), &mut out);
            // Behind the section, which no reader parses: so that each is another one.
            let end = out.len() - 12;
            out[end..].copy_from_slice(&self.body(12));
            self.packets.push(Sent { bytes: out.freeze(), picture: None });
        }
    }

    /// The clock alone, or nothing.
    fn clock(&mut self) {
        if self.choices.below(3) == 0 {
            let pid = if self.mux.clock_apart { CLOCK } else { VIDEO };
            self.packet(Header { pid, ..Header::default() }, true, &[], None);
        }
    }

    fn pes(&mut self, number: usize, pts: u64, data: Vec<u8>) {
        let length = self.mux.bounded.then_some(data.len());
        let mut pes = BytesMut::new();
        PesHeader::emit(0xe0, pts, pts, length, &mut pes).expect("short");
        pes.extend_from_slice(&data);
        let mut rest = &pes[..];
        let mut header = Header { pid: VIDEO, unit_start: true, ..Header::default() };
        while !rest.is_empty() {
            let has_clock = !self.mux.clock_apart && self.choices.below(4) == 0;
            // So that no payload is so short that another one is the same.
            let most = if (170..200).contains(&rest.len()) { 100 } else { rest.len() };
            let left = self.packet(header, has_clock, &rest[..most], Some(number));
            rest = &rest[most - left..];
            header.unit_start = false;
            self.others();
        }
    }

    /// Sound, or nothing, or packets that only fill.
    fn others(&mut self) {
        match self.choices.below(6) {
            0 => {
                let data = self.body(60);
                let header = Header { pid: AUDIO, unit_start: true, ..Header::default() };
                self.packet(header, false, &data, None);
            }
            1 => {
                let data = self.body(184);
                self.packet(Header { pid: NULL_PID, ..Header::default() }, false, &data, None);
            }
            _ => {}
        }
    }

    /// One packet with as much as fits; returns how many bytes do not.
    fn packet(&mut self, header: Header, has_clock: bool, data: &[u8], picture: Option<usize>) -> usize {
        self.pcr += 9_000;
        let counter = self.continuity.entry(header.pid).or_insert(15);
        *counter = (*counter + u8::from(!data.is_empty())) & 15;
        let header = Header { continuity: *counter, pcr: has_clock.then_some(self.pcr), ..header };
        let (mut out, mut rest) = (BytesMut::new(), data);
        header.emit(&mut out, &mut rest);
        if self.scrambled && picture.is_some() {
            out[3] |= 0x80;
        }
        let sent = Sent { bytes: out.freeze(), picture };
        if self.mux.doubles && !has_clock && !data.is_empty() && self.choices.below(7) == 0 {
            self.packets.push(sent.clone());
        }
        self.packets.push(sent);
        rest.len()
    }
}

fn h264(kind: char) -> Vec<u8> {
    let unit: &[u8] = match kind {
        'I' => &[0, 0, 1, 0x67, 0x42, 7, 0, 0, 1, 0x68, 0xce, 6, 0, 0, 1, 0x65, 0x88, 0x84],
        'C' => &[0, 0, 1, 0x67, 0x42, 7, 0, 0, 1, 0x68, 0xce, 6, 0, 0, 1, 0x41, 0x88, 0x84],
        'P' => &[0, 0, 1, 0x41, 0x9a, 0x24],
        _ => &[0, 0, 1, 0x01, 0x9e, 0x41],
    };
    [&[0, 0, 0, 1, 9, 0xf0][..], unit].concat()
}

fn mpeg2(kind: char) -> Vec<u8> {
    let (coding, closed) = match kind {
        'I' => (1_u8, 0x40),
        'C' => (1, 0),
        'P' => (2, 0),
        _ => (3, 0),
    };
    let sequence: &[u8] = &[0, 0, 1, 0xb3, 0x14, 0, 0xf0, 0x13, 0xff, 0, 0, 1, 0xb8, 0, 8, 0, closed];
    let lead = if coding == 1 { sequence } else { &[] };
    [lead, &[0, 0, 1, 0, 0, coding << 3, 0xff, 0xf8, 0, 0, 1, 1, 0x22]].concat()
}

fn h265(kind: char) -> Vec<u8> {
    let (unit, tid) = match kind {
        'I' => (20_u8, 0_u8),
        'C' => (21, 0),
        'L' => (8, 1),
        'P' => (1, 0),
        'T' => (3, 1),
        _ => (0, 1),
    };
    let mut all = vec![0, 0, 0, 1, 35 << 1, 1, 0x50];
    if matches!(kind, 'I' | 'C') {
        // Two sub-layers, as the parameter set says.
        all.extend([0, 0, 1, 33 << 1, 1, 1 << 1, 1, 2, 3]);
    }
    all.extend([0, 0, 1, unit << 1, tid + 1, 0x80, 0xaf]);
    all
}
