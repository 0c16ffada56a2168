//! Reports and leaves (RFC 2236 section 2, RFC 3376 section 4.2; RFC 2710 section 3, RFC 3810 section 5.2).

use std::net::IpAddr;

use super::extension::{LEVELS_HEAD_BYTES, entry_bytes, put_entry, put_head};
use super::fields::be16;
use super::kind::{
    IGMP_LEAVE, IGMP_REPORT, IGMP_REPORT_V1, IGMP_REPORT_V2, MLD_DONE, MLD_REPORT, MLD_REPORT_V1,
};
use super::{Addresses, Extension, Writer};
use crate::membership::address::{self, Family};
use crate::membership::limits::PACKET_BYTES_MAX;
use crate::membership::{Reason, Version};

/// What a record says of its sources (RFC 3376 section 4.2.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// IS_IN: in answer to a query, only these are wanted.
    IsIn,
    /// IS_EX: in answer to a query, all but these are wanted.
    IsEx,
    /// TO_IN: from now on, only these are wanted.
    ToIn,
    /// TO_EX: from now on, all but these are wanted.
    ToEx,
    /// ALLOW: these are wanted, too.
    Allow,
    /// BLOCK: these are no longer wanted.
    Block,
}

impl RecordKind {
    const ALL: [RecordKind; 6] = [
        RecordKind::IsIn,
        RecordKind::IsEx,
        RecordKind::ToIn,
        RecordKind::ToEx,
        RecordKind::Allow,
        RecordKind::Block,
    ];

    fn of(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }
}

/// A record of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// What it says.
    pub kind: RecordKind,
    /// The group. It need not be multicast.
    pub group: IpAddr,
    /// The sources.
    pub sources: Addresses<'a>,
}

/// A report of IGMPv3 or MLDv2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report<'a> {
    /// Its records, but for those of types that are not known.
    pub records: Records<'a>,
    /// How many there are of types that are not known.
    pub unknown: u16,
    /// What follows in an extension.
    pub extension: Extension<'a>,
}

impl<'a> Report<'a> {
    pub(super) fn parse(family: Family, payload: &'a [u8]) -> Result<Self, Reason> {
        let (left, flags) = (be16(payload, 6)?, payload[4]);
        let mut records = Records { family, left, bytes: &payload[8..] };
        let (all, mut unknown) = (records, 0);
        while records.left > 0 {
            unknown += u16::from(records.split()?.is_none());
        }
        let extension = Extension::parse(family, flags & 0x80 != 0, records.bytes);
        Ok(Report { records: all, unknown, extension })
    }
}

/// Records of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Records<'a> {
    family: Family,
    left: u16,
    bytes: &'a [u8],
}

impl<'a> Records<'a> {
    /// Takes the next record off; nothing if its type is not known. Auxiliary data is left out (RFC 3376
    /// section 4.2.10).
    fn split(&mut self) -> Result<Option<Record<'a>>, Reason> {
        let [kind, words, count @ ..] = self.bytes else { return Err(Reason::Truncated) };
        let count = be16(count, 0)?;
        let rest = &self.bytes[4..];
        let group = self.family.read(rest).ok_or(Reason::Truncated)?;
        let (sources, rest) = Addresses::split(self.family, count, &rest[self.family.address_bytes()..])?;
        self.bytes = rest.get(usize::from(*words) * 4..).ok_or(Reason::Truncated)?;
        self.left -= 1;
        Ok(RecordKind::of(*kind).map(|kind| Record { kind, group, sources }))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        while self.left > 0 {
            if let Some(record) = self.split().ok()? {
                return Some(record);
            }
        }
        None
    }
}

/// Writes a report of one group of an older version than 3 as an IP packet, in place of what is in `out`. It
/// goes to the group.
pub fn emit_old_report(version: Version, source: IpAddr, group: IpAddr, out: &mut Vec<u8>) {
    let code = match (Family::of(source), version) {
        (Family::V4, Version::V1) => IGMP_REPORT_V1,
        (Family::V4, _) => IGMP_REPORT_V2,
        (Family::V6, _) => MLD_REPORT_V1,
    };
    emit_of_group(code, source, group, group, out);
}

/// Writes that a host of version 2 leaves a group, as an IP packet in place of what is in `out`. It goes to
/// all routers.
pub fn emit_leave(source: IpAddr, group: IpAddr, out: &mut Vec<u8>) {
    let family = Family::of(source);
    let code = match family {
        Family::V4 => IGMP_LEAVE,
        Family::V6 => MLD_DONE,
    };
    emit_of_group(code, source, family.all_routers(), group, out);
}

fn emit_of_group(code: u8, source: IpAddr, destination: IpAddr, group: IpAddr, out: &mut Vec<u8>) {
    let mut packet = Writer::new(source, destination, out);
    packet.out().extend_from_slice(&[code, 0, 0, 0]);
    if Family::of(source) == Family::V6 {
        packet.out().extend_from_slice(&[0; 4]);
    }
    address::put(group, packet.out());
    packet.finish();
}

/// Writes a report of version 3, which goes to all that listen for reports. What does not fit in
/// [`PACKET_BYTES_MAX`] is for the next one.
#[derive(Debug)]
pub struct ReportWriter<'a> {
    packet: Writer<'a>,
    family: Family,
    records: u16,
    /// What is written behind the records.
    entries: &'a mut Vec<u8>,
    sequence: Option<u32>,
}

impl<'a> ReportWriter<'a> {
    /// Begins a packet in place of what is in `out`. `entries` is only used meanwhile; `sequence` is that of
    /// the levels, which are left out without it.
    pub fn new(
        source: IpAddr,
        sequence: Option<u32>,
        entries: &'a mut Vec<u8>,
        out: &'a mut Vec<u8>,
    ) -> Self {
        let family = Family::of(source);
        let code = match family {
            Family::V4 => IGMP_REPORT,
            Family::V6 => MLD_REPORT,
        };
        let mut packet = Writer::new(source, family.all_reports(), out);
        packet.out().extend_from_slice(&[code, 0, 0, 0, 0, 0, 0, 0]);
        entries.clear();
        ReportWriter { packet, family, records: 0, entries, sequence }
    }

    /// Whether `records` records with `sources` sources in all, and `levels` levels, still fit.
    pub fn fits(&self, records: usize, sources: usize, levels: usize) -> bool {
        let address = self.family.address_bytes();
        let entries = self.entries.len() + levels * entry_bytes(self.family);
        let tlv = if entries > 0 { LEVELS_HEAD_BYTES + entries } else { 0 };
        self.packet.len() + records * (4 + address) + sources * address + tlv <= PACKET_BYTES_MAX
    }

    /// Adds a record, and with it a level of its group if there is one: a number from 1, or 0 if the host is
    /// no longer a member. False if they do not fit.
    pub fn push<I>(&mut self, kind: RecordKind, group: IpAddr, sources: I, level: Option<u8>) -> bool
    where
        I: IntoIterator<Item = IpAddr, IntoIter: Clone>,
    {
        let (sources, level) = (sources.into_iter(), level.filter(|_| self.sequence.is_some()));
        let count = sources.clone().count();
        if !self.fits(1, count, level.is_some().into()) {
            return false;
        }
        let out = self.packet.out();
        let [high, low] = (count as u16).to_be_bytes();
        out.extend_from_slice(&[kind as u8 + 1, 0, high, low]);
        address::put(group, out);
        sources.for_each(|source| address::put(source, out));
        if let Some(level) = level {
            put_entry(group, level, self.entries);
        }
        self.records += 1;
        true
    }

    /// Ends the packet, and says whether it has any record.
    pub fn finish(mut self) -> bool {
        let start = self.family.header_bytes();
        let out = self.packet.out();
        out[start + 6..start + 8].copy_from_slice(&self.records.to_be_bytes());
        if let Some(sequence) = self.sequence.filter(|_| !self.entries.is_empty()) {
            out[start + 4] |= 0x80;
            put_head(sequence, self.entries.len(), out);
            out.extend_from_slice(self.entries);
        }
        self.packet.finish();
        self.records > 0
    }
}
