//! What units are put together from.

use bytes::Bytes;

use super::unit::{DepacketizedUnit, Dropped};

/// A packet whose turn has come.
pub(super) struct Arrived<'a> {
    pub(super) payload: Bytes,
    pub(super) timestamp: u32,
    pub(super) marker: bool,
    /// Packets are missing in front of it.
    pub(super) gap: bool,
    pub(super) dropped: &'a mut Dropped,
}

impl Arrived<'_> {
    /// A unit of its timestamp that is all in it, and where decoding can start.
    pub(super) fn whole(&self, data: Bytes) -> DepacketizedUnit {
        DepacketizedUnit { timestamp: self.timestamp, data, key: true }
    }
}
