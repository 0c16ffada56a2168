//! Follows the PAT and PMTs of a transport stream, and keeps the packets that carry them.

use bytes::{Bytes, BytesMut};
use outflow_media::Malformed;

use super::packet::{PACKET_BYTES, Packet};
use super::programme::Programme;
use super::psi::{PAT_PID, PMT_TABLE, Pat, Pmt, SectionAssembler};
use crate::limits::{PROGRAMMES_MAX, TABLE_PACKETS_BYTES_MAX};

/// One PID with sections: what has begun, and the packets it came in.
#[derive(Debug)]
struct TablePid {
    pid: u16,
    sections: SectionAssembler,
    packets: Vec<u8>,
}

impl TablePid {
    fn new(pid: u16) -> Self {
        TablePid { pid, sections: SectionAssembler::default(), packets: Vec::new() }
    }

    /// Takes a packet. `tell` is given each section that is complete by it, with the packets that
    /// it came in.
    fn push(&mut self, packet: &Packet<'_>, mut tell: impl FnMut(&[u8], &[u8])) {
        if !self.sections.is_inside() {
            self.packets.clear();
        }
        if self.packets.len() + PACKET_BYTES > TABLE_PACKETS_BYTES_MAX {
            self.packets.clear();
            self.sections.reset();
        }
        self.packets.extend_from_slice(packet.bytes());
        let TablePid { sections, packets, .. } = self;
        let mut told = false;
        sections.push(packet.payload(), packet.unit_start(), |section| {
            told = true;
            tell(section, packets);
        });
        if told && sections.is_inside() {
            packets.clear();
            packets.extend_from_slice(packet.bytes());
        }
    }
}

/// A programme of the PAT.
#[derive(Debug)]
struct Candidate {
    number: u16,
    pmt_pid: u16,
    /// What its PMT said, and the packets it last came in.
    known: Option<Known>,
}

#[derive(Debug)]
struct Known {
    crc: u32,
    programme: Programme,
    packets: Vec<u8>,
}

/// What a table packet brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing new.
    Nothing,
    /// The programme, or what it is made of, is another one now.
    Programme,
}

/// The tables of a transport stream, as far as they were seen.
#[derive(Debug)]
pub(super) struct Tables {
    pat: TablePid,
    pmts: Vec<TablePid>,
    /// Of the section that `candidates` were read from.
    pat_crc: Option<u32>,
    pat_packets: Vec<u8>,
    candidates: Vec<Candidate>,
    selected: Option<usize>,
    preamble: Option<Bytes>,
    /// Where preambles are made; their memory is used again when nothing holds them any more.
    preamble_space: BytesMut,
    errors: u64,
}

impl Default for Tables {
    fn default() -> Self {
        Tables {
            pat: TablePid::new(PAT_PID),
            pmts: Vec::new(),
            pat_crc: None,
            pat_packets: Vec::new(),
            candidates: Vec::new(),
            selected: None,
            preamble: None,
            preamble_space: BytesMut::new(),
            errors: 0,
        }
    }
}

/// The programme that these packets of a PAT and a PMT say, such as a receiver begins with
/// ([`TsReader::preamble`](crate::TsReader::preamble)).
pub fn programme_in(packets: &[u8]) -> Option<Programme> {
    let mut tables = Tables::default();
    for packet in packets.chunks_exact(PACKET_BYTES).filter_map(|bytes| Packet::new_checked(bytes).ok()) {
        if tables.is_table(packet.pid()) && packet.has_payload() {
            tables.push(&packet);
        }
    }
    tables.programme().cloned()
}

impl Tables {
    /// Whether packets with this PID carry tables.
    pub(super) fn is_table(&self, pid: u16) -> bool {
        pid == PAT_PID || self.pmts.iter().any(|table| table.pid == pid)
    }

    /// The programme whose frames are told: the first one with video.
    pub(super) fn programme(&self) -> Option<&Programme> {
        self.selected_known().map(|known| &known.programme)
    }

    /// The packets of the newest PAT and of the newest PMT of the programme, as they came.
    pub(super) fn preamble(&self) -> Option<Bytes> {
        self.preamble.clone()
    }

    /// Sections with a wrong checksum, or otherwise damaged.
    pub(super) fn errors(&self) -> u64 {
        self.errors
    }

    /// Forgets a section of which a packet was lost.
    pub(super) fn lost(&mut self, pid: u16) {
        if pid == PAT_PID {
            self.pat.sections.reset();
        } else if let Some(table) = self.pmts.iter_mut().find(|t| t.pid == pid) {
            table.sections.reset();
        }
    }

    /// Forgets all sections that have begun.
    pub(super) fn break_off(&mut self) {
        self.pat.sections.reset();
        self.pmts.iter_mut().for_each(|table| table.sections.reset());
    }

    /// Reads the next packet of a table.
    pub(super) fn push(&mut self, packet: &Packet<'_>) -> Change {
        if packet.is_scrambled() {
            return Change::Nothing;
        }
        if packet.pid() == PAT_PID { self.push_pat(packet) } else { self.push_pmt(packet) }
    }

    fn push_pat(&mut self, packet: &Packet<'_>) -> Change {
        let Tables { pat, pat_crc, candidates, pat_packets, errors, .. } = self;
        let (mut came, mut is_changed) = (false, false);
        pat.push(packet, |section, packets| match read_pat(section, *pat_crc, candidates) {
            Ok(Read::Other) => {}
            Ok(read) => {
                if let Read::New(crc) = read {
                    *pat_crc = Some(crc);
                    is_changed = true;
                }
                keep(pat_packets, packets);
                came = true;
            }
            Err(_) => *errors += 1,
        });
        if is_changed {
            self.follow_pmts();
            self.selected = None;
            self.select();
        }
        if came {
            self.build_preamble();
        }
        if is_changed { Change::Programme } else { Change::Nothing }
    }

    /// Listens to the PIDs that the PAT names.
    fn follow_pmts(&mut self) {
        let candidates = &self.candidates;
        self.pmts.retain(|table| candidates.iter().any(|c| c.pmt_pid == table.pid));
        for candidate in candidates {
            if !self.pmts.iter().any(|table| table.pid == candidate.pmt_pid) {
                self.pmts.push(TablePid::new(candidate.pmt_pid));
            }
        }
    }

    fn push_pmt(&mut self, packet: &Packet<'_>) -> Change {
        let Tables { pmts, candidates, errors, .. } = self;
        let pid = packet.pid();
        let Some(table) = pmts.iter_mut().find(|table| table.pid == pid) else { return Change::Nothing };
        // The programmes whose tables came, or changed.
        let (mut came, mut changes) = (0u64, 0u64);
        table.push(packet, |section, packets| match read_pmt(section, pid, candidates, packets) {
            Ok(None) => {}
            Ok(Some((index, changed))) => {
                came |= 1 << index;
                changes |= u64::from(changed) << index;
            }
            Err(_) => *errors += 1,
        });
        let before = self.selected;
        if changes != 0 {
            self.select();
        }
        let Some(selected) = self.selected else { return Change::Nothing };
        if came >> selected & 1 == 1 || self.selected != before {
            self.build_preamble();
        }
        if changes >> selected & 1 == 1 || self.selected != before {
            return Change::Programme;
        }
        Change::Nothing
    }

    fn selected_known(&self) -> Option<&Known> {
        self.candidates.get(self.selected?)?.known.as_ref()
    }

    /// Chooses the programme: what was chosen stays as long as it has video.
    fn select(&mut self) {
        if self.programme().is_some_and(|p| p.video().is_some()) {
            return;
        }
        let first = |has: fn(&Programme) -> bool| {
            self.candidates.iter().position(|c| c.known.as_ref().is_some_and(|k| has(&k.programme)))
        };
        self.selected = first(|p| p.video().is_some()).or_else(|| first(|p| p.main().is_some()));
    }

    fn build_preamble(&mut self) {
        // Given up first, so that its memory is free if nothing else holds it.
        self.preamble = None;
        let Some(known) = self.selected.and_then(|s| self.candidates.get(s)?.known.as_ref()) else { return };
        self.preamble_space.extend_from_slice(&self.pat_packets);
        self.preamble_space.extend_from_slice(&known.packets);
        self.preamble = Some(self.preamble_space.split().freeze());
    }
}

/// What a PAT section brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    /// Nothing that is used: a later section of a long table, or one that is not current yet.
    Other,
    /// What was known.
    Again,
    /// Another table, with this checksum.
    New(u32),
}

/// Reads a PAT section. What was known of a programme that stays is kept.
fn read_pat(section: &[u8], known: Option<u32>, candidates: &mut Vec<Candidate>) -> Result<Read, Malformed> {
    let pat = Pat::new_checked(section)?;
    if !pat.is_current() || pat.number() != 0 {
        return Ok(Read::Other);
    }
    let crc = checksum(section);
    if known == Some(crc) {
        return Ok(Read::Again);
    }
    let mut old = core::mem::take(candidates);
    for (number, pmt_pid) in pat.programmes().take(PROGRAMMES_MAX) {
        let same = |c: &Candidate| (c.number, c.pmt_pid) == (number, pmt_pid);
        candidates.push(match old.iter().position(same) {
            Some(index) => old.swap_remove(index),
            None => Candidate { number, pmt_pid, known: None },
        });
    }
    Ok(Read::New(crc))
}

/// Reads a section on the PID of a PMT. The index of its programme, and whether it says anything
/// new; `None` if it is no PMT, or of no programme that is looked at.
fn read_pmt(
    section: &[u8],
    pid: u16,
    candidates: &mut [Candidate],
    packets: &[u8],
) -> Result<Option<(usize, bool)>, Malformed> {
    if section.first() != Some(&PMT_TABLE) {
        return Ok(None);
    }
    let pmt = Pmt::new_checked(section)?;
    let of_it = |c: &Candidate| (c.number, c.pmt_pid) == (pmt.programme(), pid);
    let Some(index) = candidates.iter().position(of_it).filter(|_| pmt.is_current()) else { return Ok(None) };
    let crc = checksum(section);
    match &mut candidates[index].known {
        Some(known) if known.crc == crc => {
            keep(&mut known.packets, packets);
            Ok(Some((index, false)))
        }
        known => {
            let programme = Programme::new(&pmt, pid);
            *known = Some(Known { crc, programme, packets: packets.to_vec() });
            Ok(Some((index, true)))
        }
    }
}

/// The checksum at the end of a section that was checked: by it, one version is told from another.
fn checksum(section: &[u8]) -> u32 {
    section.last_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn keep(kept: &mut Vec<u8>, packets: &[u8]) {
    kept.clear();
    kept.extend_from_slice(packets);
}

#[cfg(test)]
mod tests;
