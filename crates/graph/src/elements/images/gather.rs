//! Raw video in RTP, gathered before it is worked on: a frame, or the lines that become one.

use outflow_media::image::Cpu;
use outflow_packet::DropReason;
use outflow_rtp::payload::raw_video::{HEADER_BYTES, Part, RawVideo, header};

use super::carrier::{Carrier, drop_all};
use super::packets::{Like, Out};
use super::recipe::{Lines, Resolved};
use crate::{Item, Tally};

/// Works on whole lines of a frame in memory.
///
/// What lacks a pixel that got lost on the way goes no further: the line, where lines go as soon as
/// they are complete, or else the frame.
#[derive(Debug)]
pub(super) struct Gather {
    resolved: Resolved,
    /// Lines go as soon as they can.
    by_lines: bool,
    lines: Lines,
    image: Vec<u8>,
    /// Of each line that comes out.
    wanting: Vec<Wanting>,
    /// Lines that are not complete.
    incomplete: usize,
    /// Sequence numbers of the frame's packets.
    seen: Seen,
    /// The frame that is gathered.
    frame: Option<Like>,
    /// The timestamp of the frame before it.
    finished: Option<u32>,
    payload_max: usize,
}

/// What a line lacks.
#[derive(Debug, Clone, Copy)]
struct Wanting {
    bytes: usize,
    /// Packets that brought some of it.
    packets: u32,
}

impl Gather {
    pub(super) fn new(resolved: Resolved, by_lines: bool, cpu: Cpu) -> Self {
        Gather {
            resolved,
            by_lines,
            lines: Lines::new(cpu),
            image: Vec::new(),
            wanting: Vec::new(),
            incomplete: 0,
            seen: Seen::default(),
            frame: None,
            finished: None,
            payload_max: 0,
        }
    }

    fn begin(&mut self) {
        let Gather { resolved, image, wanting, incomplete, seen, .. } = self;
        // Frames are of one size: it is taken once. What stays from the last one never goes out.
        image.resize(resolved.input.bytes(), 0);
        let bytes = resolved.columns().len() * resolved.factor;
        wanting.clear();
        wanting.resize(resolved.output.height, Wanting { bytes, packets: 0 });
        *incomplete = wanting.len();
        seen.clear();
    }

    /// No more packets of the frame come: what is not complete is given up.
    fn end(&mut self, tally: &mut Tally) {
        let Some(frame) = self.frame.take() else { return };
        self.finished = Some(frame.timestamp());
        if self.incomplete > 0 {
            let lost = self.wanting.iter().filter(|line| !self.by_lines || line.bytes > 0);
            drop_all(tally, DropReason::Incomplete, lost.map(|line| u64::from(line.packets)).sum());
        }
    }

    /// Puts a part where it belongs. Returns the line of the result that it is for.
    fn put(&mut self, part: &Part, payload: &[u8]) -> Option<usize> {
        let Gather { resolved, image, wanting, .. } = self;
        let (group_pixels, group_bytes) = resolved.input.pixels.group();
        let (row, offset) = (usize::from(part.line), usize::from(part.offset));
        let line = row.checked_sub(resolved.rect.top)? / resolved.factor;
        let misplaced = part.second_field || !offset.is_multiple_of(group_pixels);
        let wanted = wanting.get_mut(line).filter(|line| !misplaced && line.bytes > 0)?;
        let at = resolved.input.pixels.row_bytes(offset);
        let columns = resolved.columns();
        let end = (at + part.bytes.len() / group_bytes * group_bytes).min(columns.end);
        let begin = at.max(columns.start);
        let bytes =
            payload.get(part.bytes.start + begin.checked_sub(at)?..)?.get(..end.checked_sub(begin)?)?;
        if bytes.is_empty() {
            return None;
        }
        let row_at = row * resolved.input.row_bytes();
        image[row_at + begin..row_at + end].copy_from_slice(bytes);
        wanted.bytes = wanted.bytes.saturating_sub(bytes.len());
        self.incomplete -= usize::from(wanted.bytes == 0);
        Some(line)
    }

    /// A line of the result goes.
    fn send(&mut self, line: usize, out: &mut Out<'_>) {
        let Gather { resolved, lines, image, frame: Some(like), payload_max, .. } = self else { return };
        let (group_pixels, group_bytes) = resolved.output.pixels.group();
        let room = (payload_max.saturating_sub(HEADER_BYTES) / group_bytes).max(1) * group_bytes;
        let row = lines.line(resolved, image, line);
        let is_last_line = line + 1 == resolved.output.height;
        let chunks = row.len().div_ceil(room);
        for (index, chunk) in row.chunks(room).enumerate() {
            let offset = index * room / group_bytes * group_pixels;
            let last = is_last_line && index + 1 == chunks;
            out.make(like, last, HEADER_BYTES + chunk.len(), |block, number| {
                block.extend_from_slice(&header(number, chunk.len() as u16, line as u16, offset as u16));
                block.extend_from_slice(chunk);
            });
        }
    }

    /// Puts the parts of a packet in their places, and sends what is complete by them.
    fn work(&mut self, raw: &RawVideo<'_>, payload: &[u8], out: &mut Out<'_>, tally: &mut Tally) {
        let mut counted = None;
        for part in raw.parts() {
            let Some(line) = self.put(&part, payload) else { continue };
            if counted.is_none() {
                counted = Some(line);
                self.wanting[line].packets += 1;
            }
            if self.by_lines && self.wanting[line].bytes == 0 {
                self.send(line, out);
            }
        }
        if counted.is_none() {
            drop_all(tally, DropReason::Filtered, 1);
        }
        if self.incomplete == 0 {
            if !self.by_lines {
                (0..self.resolved.output.height).for_each(|line| self.send(line, out));
            }
            self.end(tally);
        }
    }
}

impl Carrier for Gather {
    fn take(&mut self, item: Item, out: &mut Out<'_>, tally: &mut Tally) {
        let payload = &item.packet.bytes[item.payload().unwrap_or_default()];
        let (Ok(raw), Some(like)) = (RawVideo::new_checked(payload), Like::of(&item)) else {
            return drop_all(tally, DropReason::Malformed, 1);
        };
        let timestamp = like.timestamp();
        if self.frame.as_ref().is_none_or(|frame| frame.timestamp() != timestamp) {
            if self.finished == Some(timestamp) {
                return drop_all(tally, DropReason::Late, 1);
            }
            self.end(tally);
            self.begin();
        }
        let sequence = item.header().map_or(0, outflow_rtp::sequence);
        if !self.seen.insert(sequence) {
            return drop_all(tally, DropReason::Late, 1);
        }
        out.numbers.begin(u32::from(raw.extended_sequence()) << 16 | u32::from(sequence));
        self.frame = Some(like);
        self.payload_max = self.payload_max.max(payload.len());
        self.work(&raw, payload, out, tally);
    }

    fn clear(&mut self, tally: &mut Tally) {
        self.end(tally);
        self.finished = None;
    }

    fn memory_bytes(&self) -> usize {
        self.image.capacity()
    }
}

/// Sequence numbers that came.
#[derive(Debug, Default)]
struct Seen {
    bits: Vec<u64>,
}

impl Seen {
    fn clear(&mut self) {
        self.bits.clear();
        self.bits.resize((1 << 16) / 64, 0);
    }

    /// Returns whether it is new.
    fn insert(&mut self, sequence: u16) -> bool {
        let (word, bit) = (&mut self.bits[usize::from(sequence >> 6)], 1 << (sequence & 63));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
