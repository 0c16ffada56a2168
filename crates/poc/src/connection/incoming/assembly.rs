//! A unit of several fragments.

use bytes::Bytes;

use super::super::Violation;
use super::super::ranges::Ranges;
use crate::limits::GAPS_MAX;
use crate::packet::Fragment;

/// What came of a unit so far.
#[derive(Debug)]
pub(super) struct Assembly {
    data: Vec<u8>,
    there: Ranges,
}

impl Assembly {
    pub(super) fn new(bytes: u32) -> Self {
        Assembly { data: vec![0; bytes as usize], there: Ranges::default() }
    }

    /// One of which these parts are there.
    pub(super) fn of(data: &[u8], parts: &[(u32, u32)]) -> Self {
        let mut there = Ranges::default();
        parts.iter().for_each(|(from, to)| _ = there.insert(*from, *to));
        Assembly { data: data.to_vec(), there }
    }

    /// Its bytes, and which parts of them are there.
    pub(super) fn parts(&self) -> (&[u8], Vec<(u32, u32)>) {
        (&self.data, self.there.all())
    }

    pub(super) fn bytes(&self) -> u32 {
        self.data.len() as u32
    }

    /// Whether it is complete now.
    pub(super) fn add(&mut self, fragment: &Fragment<'_>) -> Result<bool, Violation> {
        if fragment.unit_bytes != self.bytes() {
            return Err(Violation("says two lengths of one unit"));
        }
        let (from, to) = (fragment.offset, fragment.offset + fragment.bytes.len() as u32);
        self.data[from as usize..to as usize].copy_from_slice(fragment.bytes);
        self.there.insert(from, to);
        if self.there.parts() > GAPS_MAX {
            return Err(Violation("sends a unit in too many pieces"));
        }
        Ok(self.there.is_full(self.bytes()))
    }

    pub(super) fn whole(self) -> Bytes {
        self.data.into()
    }
}
