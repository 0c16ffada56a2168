//! Programme tables: sections, PAT and PMT (ISO/IEC 13818-1 section 2.4.4).

use bytes::BytesMut;
use outflow_media::Malformed;

use super::packet::Header;

/// The longest section of a PAT or PMT (sections 2.4.4.4 and 2.4.4.9).
pub const SECTION_BYTES_MAX: usize = 1024;

/// PID of the programme association table.
pub const PAT_PID: u16 = 0;

const PAT_TABLE: u8 = 0;

/// `table_id` of a programme map table.
pub const PMT_TABLE: u8 = 2;

/// Bytes of a section before its own fields: table, length, identifier, version, numbers.
const LONG_HEADER: usize = 8;
const CRC: usize = 4;

const fn malformed(offset: usize, reason: &'static str) -> Malformed {
    Malformed { format: "MPEG-TS section", offset, reason }
}

/// CRC-32/MPEG-2 (annex A): 0 over a whole section, its checksum included.
pub fn crc32(data: &[u8]) -> u32 {
    const TABLE: [u32; 256] = crc_table();
    data.iter().fold(u32::MAX, |crc, byte| crc << 8 ^ TABLE[usize::from((crc >> 24) as u8 ^ byte)])
}

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

/// Puts the sections of one PID together from packet payloads (section 2.4.4.1).
///
/// It holds at most [`SECTION_BYTES_MAX`]; a section that claims more is passed over.
#[derive(Debug, Clone, Default)]
pub struct SectionAssembler {
    buffer: Vec<u8>,
    inside: bool,
}

impl SectionAssembler {
    /// Whether a section has begun that is not complete yet.
    pub const fn is_inside(&self) -> bool {
        self.inside
    }

    /// Forgets what has begun, as after a loss.
    pub fn reset(&mut self) {
        self.buffer.clear();
        self.inside = false;
    }

    /// Takes the payload of the next packet, and tells every section that is complete by it,
    /// unchecked.
    pub fn push(&mut self, payload: &[u8], unit_start: bool, mut tell: impl FnMut(&[u8])) {
        if !unit_start {
            if self.inside {
                self.feed(payload, &mut tell);
            }
            return;
        }
        let Some((&pointer, rest)) = payload.split_first() else { return };
        let Some((before, behind)) = rest.split_at_checked(usize::from(pointer)) else {
            return self.reset();
        };
        if self.inside {
            self.feed(before, &mut tell);
        }
        self.reset();
        self.inside = true;
        self.feed(behind, &mut tell);
    }

    fn feed(&mut self, mut data: &[u8], tell: &mut impl FnMut(&[u8])) {
        while let Some(&next) = data.first() {
            // Behind the last section of a packet there is stuffing.
            if self.buffer.is_empty() && next == 0xff {
                return self.reset();
            }
            let wanted = match *self.buffer {
                [_, high, low, ..] => 3 + (usize::from(high & 0x0f) << 8 | usize::from(low)),
                _ => 3,
            };
            if wanted > SECTION_BYTES_MAX {
                return self.reset();
            }
            let missing = wanted.saturating_sub(self.buffer.len()).min(data.len());
            let (taken, rest) = data.split_at(missing);
            self.buffer.extend_from_slice(taken);
            data = rest;
            if wanted > 3 && self.buffer.len() == wanted {
                tell(&self.buffer);
                self.buffer.clear();
            } else if missing == 0 {
                // A section that says it has no bytes behind its header.
                return self.reset();
            }
        }
        self.inside = !self.buffer.is_empty();
    }
}

/// A section in the long form, whole and with a right checksum.
#[derive(Debug, Clone, Copy)]
struct Section<'a> {
    /// All but the checksum.
    bytes: &'a [u8],
}

impl<'a> Section<'a> {
    fn new_checked(bytes: &'a [u8], table: u8) -> Result<Self, Malformed> {
        let [id, high, low, ..] = *bytes else {
            return Err(malformed(bytes.len(), "shorter than its header"));
        };
        if id != table {
            return Err(malformed(0, "another table"));
        }
        if high & 0x80 == 0 {
            return Err(malformed(1, "not in the long form"));
        }
        let length = 3 + (usize::from(high & 0x0f) << 8 | usize::from(low));
        if length != bytes.len() || length < LONG_HEADER + CRC {
            return Err(malformed(1, "its length is not that of its bytes"));
        }
        if crc32(bytes) != 0 {
            return Err(malformed(length - CRC, "wrong checksum"));
        }
        Ok(Section { bytes: &bytes[..length - CRC] })
    }

    const fn identifier(&self) -> u16 {
        u16::from_be_bytes([self.bytes[3], self.bytes[4]])
    }

    const fn version(&self) -> u8 {
        self.bytes[5] >> 1 & 0x1f
    }

    const fn is_current(&self) -> bool {
        self.bytes[5] & 1 == 1
    }

    fn body(&self) -> &'a [u8] {
        &self.bytes[LONG_HEADER..]
    }
}

/// A programme association table (section 2.4.4.3).
#[derive(Debug, Clone, Copy)]
pub struct Pat<'a> {
    section: Section<'a>,
}

impl<'a> Pat<'a> {
    /// Reads a whole section.
    pub fn new_checked(section: &'a [u8]) -> Result<Self, Malformed> {
        let section = Section::new_checked(section, PAT_TABLE)?;
        if !section.body().len().is_multiple_of(4) {
            return Err(malformed(LONG_HEADER, "the list of programmes ends within one"));
        }
        Ok(Pat { section })
    }

    /// Identifier of the transport stream within its network.
    pub const fn transport_stream(&self) -> u16 {
        self.section.identifier()
    }

    /// `version_number`, 5 bits.
    pub const fn version(&self) -> u8 {
        self.section.version()
    }

    /// Whether the table holds now; if not, it announces the next one.
    pub const fn is_current(&self) -> bool {
        self.section.is_current()
    }

    /// `section_number`: 0 is the first of the table.
    pub const fn number(&self) -> u8 {
        self.section.bytes[6]
    }

    /// The programmes: their number and the PID of their PMT. The network PID is left out.
    pub fn programmes(&self) -> impl Iterator<Item = (u16, u16)> + 'a {
        let pair = |e: &[u8]| (u16::from_be_bytes([e[0], e[1]]), u16::from_be_bytes([e[2] & 0x1f, e[3]]));
        self.section.body().chunks_exact(4).map(pair).filter(|(number, _)| *number != 0)
    }
}

/// A programme map table (section 2.4.4.8).
#[derive(Debug, Clone, Copy)]
pub struct Pmt<'a> {
    section: Section<'a>,
    descriptors: &'a [u8],
    streams: &'a [u8],
}

impl<'a> Pmt<'a> {
    /// Reads a whole section. Its lists are checked to their ends.
    pub fn new_checked(section: &'a [u8]) -> Result<Self, Malformed> {
        let section = Section::new_checked(section, PMT_TABLE)?;
        let body = section.body();
        let [_, _, high, low, ref rest @ ..] = *body else {
            return Err(malformed(LONG_HEADER, "shorter than its header"));
        };
        let length = usize::from(high & 0x0f) << 8 | usize::from(low);
        let Some((descriptors, streams)) = rest.split_at_checked(length) else {
            return Err(malformed(LONG_HEADER + 2, "descriptors are longer than the section"));
        };
        let mut list = PmtStreams { rest: streams };
        while list.next().is_some() {}
        if !list.rest.is_empty() {
            return Err(malformed(LONG_HEADER + 4 + length, "the list of streams ends within one"));
        }
        Ok(Pmt { section, descriptors, streams })
    }

    /// The number of the programme.
    pub const fn programme(&self) -> u16 {
        self.section.identifier()
    }

    /// `version_number`, 5 bits.
    pub const fn version(&self) -> u8 {
        self.section.version()
    }

    /// Whether the table holds now; if not, it announces the next one.
    pub const fn is_current(&self) -> bool {
        self.section.is_current()
    }

    /// PID of the packets with the programme's clock; [`NULL_PID`](super::packet::NULL_PID) if
    /// there is no clock.
    pub fn pcr_pid(&self) -> u16 {
        let body = self.section.body();
        u16::from_be_bytes([body[0] & 0x1f, body[1]])
    }

    /// The descriptors of the programme as a whole.
    pub const fn descriptors(&self) -> Descriptors<'a> {
        Descriptors { rest: self.descriptors }
    }

    /// The elementary streams.
    pub const fn streams(&self) -> PmtStreams<'a> {
        PmtStreams { rest: self.streams }
    }
}

/// One elementary stream of a PMT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PmtStream<'a> {
    /// What it carries (table 2-34).
    pub stream_type: u8,
    /// Its packets.
    pub pid: u16,
    /// Its descriptors.
    pub descriptors: Descriptors<'a>,
}

/// The elementary streams of a PMT, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct PmtStreams<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for PmtStreams<'a> {
    type Item = PmtStream<'a>;

    fn next(&mut self) -> Option<PmtStream<'a>> {
        let [stream_type, p, q, high, low, ref rest @ ..] = *self.rest else { return None };
        let length = usize::from(high & 0x0f) << 8 | usize::from(low);
        let (descriptors, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(PmtStream {
            stream_type,
            pid: u16::from_be_bytes([p & 0x1f, q]),
            descriptors: Descriptors { rest: descriptors },
        })
    }
}

/// Descriptors, one after the other: tag and content (section 2.6). One that is cut off ends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Descriptors<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let [tag, length, ref rest @ ..] = *self.rest else { return None };
        let (content, rest) = rest.split_at_checked(usize::from(length))?;
        self.rest = rest;
        Some((tag, content))
    }
}

/// Writes a PAT section with one programme.
pub fn emit_pat(transport_stream: u16, version: u8, programme: u16, pmt_pid: u16) -> Vec<u8> {
    let [high, low] = pmt_pid.to_be_bytes();
    let [p, q] = programme.to_be_bytes();
    section(PAT_TABLE, transport_stream, version, &[p, q, 0xe0 | high & 0x1f, low])
}

/// Writes a PMT section without descriptors of the programme as a whole. Of each stream: type,
/// PID, and its descriptors as they are to stand. `None` if that is more than a section holds.
pub fn emit_pmt(
    programme: u16,
    version: u8,
    pcr_pid: u16,
    streams: &[(u8, u16, Vec<u8>)],
) -> Option<Vec<u8>> {
    let [high, low] = pcr_pid.to_be_bytes();
    let mut body = vec![0xe0 | high & 0x1f, low, 0xf0, 0];
    for (stream_type, pid, descriptors) in streams {
        let [p, q] = pid.to_be_bytes();
        let [high, low] = u16::try_from(descriptors.len()).ok()?.to_be_bytes();
        body.extend([*stream_type, 0xe0 | p & 0x1f, q, 0xf0 | high & 0x0f, low]);
        body.extend(descriptors);
    }
    if LONG_HEADER + body.len() + CRC > SECTION_BYTES_MAX {
        return None;
    }
    Some(section(PMT_TABLE, programme, version, &body))
}

/// Puts header and checksum around the body of a table's only section.
fn section(table: u8, identifier: u16, version: u8, body: &[u8]) -> Vec<u8> {
    // Callers keep within SECTION_BYTES_MAX, so that 12 bits are enough.
    let length = (LONG_HEADER - 3 + body.len() + CRC) as u16;
    let [high, low] = length.to_be_bytes();
    let [p, q] = identifier.to_be_bytes();
    let mut bytes = vec![table, 0xb0 | high & 0x0f, low, p, q, 0xc1 | version << 1 & 0x3e, 0, 0];
    bytes.extend(body);
    let crc = crc32(&bytes);
    bytes.extend(crc.to_be_bytes());
    bytes
}

/// Appends the packets of a section: filled up behind it, as sections are. `continuity` counts on.
pub fn emit_packets(section: &[u8], pid: u16, continuity: &mut u8, out: &mut BytesMut) {
    const BODY: usize = 184;
    let mut rest = section;
    let mut first = true;
    while first || !rest.is_empty() {
        let mut body = [0xff; BODY];
        let start = usize::from(first);
        if first {
            body[0] = 0;
        }
        let (taken, behind) = rest.split_at(rest.len().min(BODY - start));
        body[start..start + taken.len()].copy_from_slice(taken);
        rest = behind;
        let header = Header { pid, unit_start: first, continuity: *continuity, ..Header::default() };
        header.emit(out, &mut &body[..]);
        *continuity = continuity.wrapping_add(1) & 0x0f;
        first = false;
    }
}

#[cfg(test)]
mod tests;
