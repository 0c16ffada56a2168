//! The extension of queries and reports (RFC 9279), and the levels that reports carry in it.

use std::net::IpAddr;

use crate::membership::address::{self, Family};

/// The type of the TLV with levels, one of those for experiments (RFC 9279 section 6).
pub const LEVELS_TLV: u16 = 65_534;

/// What tells our use of the type from other experiments: letters and a version.
const MAGIC: [u8; 4] = [b'O', b'F', b'L', 1];

/// Bytes of the TLV before its first entry.
pub(super) const LEVELS_HEAD_BYTES: usize = 12;

/// Bytes of an entry.
pub(super) const fn entry_bytes(family: Family) -> usize {
    family.address_bytes() + 4
}

/// What follows a message in type, length and value, if the E flag is set and it ends with the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension<'a> {
    family: Family,
    bytes: &'a [u8],
    malformed: bool,
}

impl<'a> Extension<'a> {
    pub(super) const fn none(family: Family) -> Extension<'static> {
        Extension { family, bytes: &[], malformed: false }
    }

    /// Without the flag, what follows is none of ours (RFC 3376 sections 4.1.10 and 4.2.11).
    pub(super) fn parse(family: Family, flag: bool, bytes: &'a [u8]) -> Self {
        let mut tlvs = Tlvs(if flag { bytes } else { &[] });
        let extension = Extension { family, bytes: tlvs.0, malformed: false };
        tlvs.by_ref().for_each(drop);
        if tlvs.0.is_empty() { extension } else { Extension { malformed: true, bytes: &[], ..extension } }
    }

    /// Whether there was one that does not end with the packet: then none of it is read (RFC 9279 section 4).
    pub const fn is_malformed(&self) -> bool {
        self.malformed
    }

    /// Its types and values.
    pub const fn tlvs(&self) -> Tlvs<'a> {
        Tlvs(self.bytes)
    }

    /// The levels in it. Other types are left out.
    pub const fn levels(&self) -> Levels<'a> {
        Levels { family: self.family, tlvs: self.tlvs(), sequence: 0, entries: &[] }
    }
}

/// Types and values of an extension.
#[derive(Debug, Clone, Copy)]
pub struct Tlvs<'a>(&'a [u8]);

impl<'a> Iterator for Tlvs<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let [a, b, c, d, rest @ ..] = self.0 else { return None };
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*c, *d])))?;
        self.0 = rest;
        Some((u16::from_be_bytes([*a, *b]), value))
    }
}

/// Which level of a group a host wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Counts the host's changes of levels, so that late ones are known.
    pub sequence: u32,
    /// The group.
    pub group: IpAddr,
    /// The number of the level, or 0 if the host is no longer a member. Beyond the last
    /// [`Level`](crate::Level) a router takes it for that.
    pub level: u8,
}

/// The levels of a report: the entries of all TLVs of type [`LEVELS_TLV`] that have this layout. All numbers
/// are big-endian.
///
/// | offset | bytes | content |
/// |---|---|---|
/// | 0 | 2 | type, 65534 |
/// | 2 | 2 | length of what follows |
/// | 4 | 4 | `4f 46 4c 01`: "OFL" and a version |
/// | 8 | 4 | sequence: one more with each change of levels; a host begins anywhere |
/// | 12 | 8 n or 20 n | entries |
///
/// An entry is the group, in 4 bytes with IGMP and 16 with MLD, the level in a byte, from 1 for the best to
/// 127 (beyond, it is taken for that), or 0 if the host is no longer a member, and three bytes that are sent
/// as zero and not read. A TLV that does not begin so is of another kind; bytes behind the last whole entry
/// are not read.
#[derive(Debug, Clone, Copy)]
pub struct Levels<'a> {
    family: Family,
    tlvs: Tlvs<'a>,
    sequence: u32,
    entries: &'a [u8],
}

impl Iterator for Levels<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            if let Some((entry, rest)) = self.entries.split_at_checked(entry_bytes(self.family)) {
                self.entries = rest;
                let group = self.family.read(entry)?;
                let level = entry[self.family.address_bytes()];
                return Some(Entry { sequence: self.sequence, group, level });
            }
            let (kind, value) = self.tlvs.next()?;
            let Some((head, entries)) = value.split_first_chunk::<8>() else { continue };
            let (magic, sequence) = head.split_at(4);
            if kind == LEVELS_TLV && magic == MAGIC {
                self.sequence = sequence.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
                self.entries = entries;
            }
        }
    }
}

/// Writes the TLV up to its entries; `entries` is their length in bytes.
pub(super) fn put_head(sequence: u32, entries: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&LEVELS_TLV.to_be_bytes());
    out.extend_from_slice(&((entries + 8) as u16).to_be_bytes());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&sequence.to_be_bytes());
}

/// Writes an entry.
pub(super) fn put_entry(group: IpAddr, level: u8, out: &mut Vec<u8>) {
    address::put(group, out);
    out.extend_from_slice(&[level, 0, 0, 0]);
}
