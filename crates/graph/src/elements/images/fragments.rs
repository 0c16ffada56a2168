//! Raw video in RTP, packet by packet, as far as pixels need no others.

use outflow_media::image::Cpu;
use outflow_packet::DropReason;
use outflow_rtp::payload::raw_video::{HEADER_BYTES, Part, RawVideo, header};

use super::carrier::{Carrier, drop_all};
use super::packets::{Like, Numbers, Out};
use super::recipe::Resolved;
use crate::{Item, Tally};

/// Works on the parts of lines that a packet has.
#[derive(Debug)]
pub(super) struct Fragments {
    resolved: Resolved,
    cpu: Cpu,
    /// The largest payload that came: none that goes is larger.
    payload_max: usize,
    /// Of the packet that is worked on.
    parts: Vec<Clipped>,
    scratch: Vec<u8>,
}

/// What of a part of a line is left.
#[derive(Debug, Clone)]
struct Clipped {
    /// Where it goes.
    line: u16,
    offset: usize,
    /// Where in the packet its bytes are.
    bytes: core::ops::Range<usize>,
    /// It ends the frame.
    last: bool,
}

impl Fragments {
    pub(super) fn new(resolved: Resolved, cpu: Cpu) -> Self {
        Fragments { resolved, cpu, payload_max: 0, parts: Vec::new(), scratch: Vec::new() }
    }

    /// What of a part lies within what is left of the image.
    fn clip(&self, part: &Part, payload_at: usize) -> Option<Clipped> {
        let Resolved { input, rect, .. } = &self.resolved;
        let (group_pixels, group_bytes) = input.pixels.group();
        let line = usize::from(part.line).checked_sub(rect.top).filter(|line| *line < rect.height)?;
        let offset = usize::from(part.offset);
        if part.second_field || !offset.is_multiple_of(group_pixels) {
            return None;
        }
        // In bytes of the row.
        let at = input.pixels.row_bytes(offset);
        let whole = at..at + part.bytes.len() / group_bytes * group_bytes;
        let left = rect.bytes(input.pixels);
        let (begin, end) = (whole.start.max(left.start), whole.end.min(left.end));
        let from = payload_at + part.bytes.start + begin.checked_sub(at)?;
        (begin < end).then(|| Clipped {
            line: line as u16,
            offset: (begin - left.start) / group_bytes * group_pixels,
            bytes: from..from + (end - begin),
            last: line + 1 == rect.height && end == left.end,
        })
    }

    /// All pixels stay where they are: the packet, too, stays the one that it is.
    fn in_place(&self, mut item: Item, out: &mut Out<'_>) {
        *out.numbers = Numbers::default();
        if !self.resolved.gray {
            return out.items.push(item);
        }
        let mut bytes = out.pool.own(core::mem::take(&mut item.packet.bytes));
        for part in &self.parts {
            outflow_media::image::gray(self.cpu, self.resolved.input.pixels, &mut bytes[part.bytes.clone()]);
        }
        item.packet.bytes = bytes.freeze();
        out.items.push(item);
    }

    /// All parts in one packet, which is no larger than it was.
    fn one(&mut self, item: &Item, like: &Like, out: &mut Out<'_>) {
        let Fragments { resolved, cpu, parts, scratch, .. } = self;
        let bytes: usize = parts.iter().map(|part| HEADER_BYTES + resolved.converted(part.bytes.len())).sum();
        let last = parts.iter().any(|part| part.last);
        out.make(like, last, bytes, |block, number| {
            for (index, part) in parts.iter().enumerate() {
                let length = resolved.converted(part.bytes.len()) as u16;
                let mut header = header(number, length, part.line, part.offset as u16);
                header[6] |= u8::from(index + 1 < parts.len()) << 7;
                // The extended sequence number stands in front of the first alone.
                block.extend_from_slice(if index == 0 { &header } else { &header[2..] });
            }
            for part in parts.iter() {
                let at = block.len();
                let row = &item.packet.bytes[part.bytes.clone()];
                block.resize(at + resolved.converted(row.len()), 0);
                resolved.colours(*cpu, row, &mut block[at..], scratch);
            }
        });
    }

    /// Pixels that take more room than they did: a packet for as many of each part as fit.
    fn several(&mut self, item: &Item, like: &Like, out: &mut Out<'_>) {
        let Fragments { resolved, cpu, parts, scratch, payload_max } = self;
        let (group_pixels, group_bytes) = resolved.input.pixels.group();
        let groups = payload_max.saturating_sub(HEADER_BYTES) / resolved.converted(group_bytes);
        let room = groups.max(1) * group_bytes;
        for part in parts.iter() {
            let rows = item.packet.bytes[part.bytes.clone()].chunks(room).enumerate();
            let chunks = part.bytes.len().div_ceil(room);
            for (index, row) in rows {
                let length = resolved.converted(row.len());
                let offset = part.offset + index * room / group_bytes * group_pixels;
                let last = part.last && index + 1 == chunks;
                out.make(like, last, HEADER_BYTES + length, |block, number| {
                    block.extend_from_slice(&header(number, length as u16, part.line, offset as u16));
                    let at = block.len();
                    block.resize(at + length, 0);
                    resolved.colours(*cpu, row, &mut block[at..], scratch);
                });
            }
        }
    }
}

impl Resolved {
    /// Bytes of whole groups, in the layout of the output.
    fn converted(&self, bytes: usize) -> usize {
        let (pixels, group) = self.input.pixels.group();
        self.output.pixels.row_bytes(bytes / group * pixels)
    }
}

impl Carrier for Fragments {
    fn take(&mut self, item: Item, out: &mut Out<'_>, tally: &mut Tally) {
        let payload = item.payload().unwrap_or_default();
        let bytes = &item.packet.bytes[payload.clone()];
        let (Ok(raw), Some(like)) = (RawVideo::new_checked(bytes), Like::of(&item)) else {
            return drop_all(tally, DropReason::Malformed, 1);
        };
        let mut parts = core::mem::take(&mut self.parts);
        parts.clear();
        parts.extend(raw.parts().filter_map(|part| self.clip(&part, payload.start)));
        self.parts = parts;
        if self.resolved.is_in_place() {
            return self.in_place(item, out);
        }
        let sequence = item.header().map_or(0, outflow_rtp::sequence);
        out.numbers.begin(u32::from(raw.extended_sequence()) << 16 | u32::from(sequence));
        out.numbers.came(sequence, item.entered_before());
        self.payload_max = self.payload_max.max(payload.len());
        if self.parts.is_empty() {
            return drop_all(tally, DropReason::Filtered, 1);
        }
        let (_, group) = self.resolved.input.pixels.group();
        if self.resolved.converted(group) > group {
            return self.several(&item, &like, out);
        }
        self.one(&item, &like, out);
    }
}
