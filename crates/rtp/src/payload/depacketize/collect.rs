//! One unit in the making.

use bytes::{Bytes, BytesMut};

use super::arrived::Arrived;
use super::unit::{DepacketizedUnit, Dropped};
use crate::limits::UNIT_BYTES_MAX;

/// Collects the bytes of one unit.
#[derive(Debug, Default)]
pub(super) struct Collector {
    open: bool,
    timestamp: u32,
    data: BytesMut,
    spoiled: bool,
    too_large: bool,
}

impl Collector {
    pub(super) fn begin(&mut self, timestamp: u32) {
        self.data.clear();
        *self = Collector { open: true, timestamp, data: std::mem::take(&mut self.data), ..Self::default() };
    }

    /// Whether a unit of this timestamp is open.
    pub(super) fn is_open_at(&self, timestamp: u32) -> bool {
        self.open && self.timestamp == timestamp
    }

    /// Whether a packet goes on with the open unit. If packets are missing in front of it, that unit is not whole.
    pub(super) fn goes_on(&mut self, arrived: &Arrived<'_>) -> bool {
        if arrived.gap {
            self.spoil();
        }
        self.is_open_at(arrived.timestamp)
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.data.len() + bytes.len() > UNIT_BYTES_MAX {
            self.too_large = true;
        }
        if !self.too_large && !self.spoiled {
            self.data.extend_from_slice(bytes);
        }
    }

    /// Something of the unit is missing: it will be dropped.
    pub(super) fn spoil(&mut self) {
        self.spoiled = true;
    }

    pub(super) fn len(&self) -> usize {
        self.data.len()
    }

    /// The unit, if one was open and all of it is there.
    pub(super) fn finish(&mut self, dropped: &mut Dropped) -> Option<(u32, Bytes)> {
        if !self.open {
            return None;
        }
        self.open = false;
        if self.too_large {
            dropped.too_large += 1;
            // What was collected may be large; it is not kept for the next unit.
            self.data = BytesMut::new();
        } else if self.spoiled {
            dropped.incomplete += 1;
        } else {
            return Some((self.timestamp, self.data.split().freeze()));
        }
        None
    }

    /// Tells the unit, if one was open and all of it is there. `key` says whether decoding can start there.
    pub(super) fn tell(&mut self, key: bool, dropped: &mut Dropped, tell: &mut dyn FnMut(DepacketizedUnit)) {
        if let Some((timestamp, data)) = self.finish(dropped) {
            tell(DepacketizedUnit { timestamp, data, key });
        }
    }

    /// Drops the unit, if one is open.
    pub(super) fn abandon(&mut self, dropped: &mut Dropped) {
        self.spoil();
        self.finish(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_whole_or_counted() {
        let (mut collector, mut dropped) = (Collector::default(), Dropped::default());
        assert_eq!(collector.finish(&mut dropped), None);
        collector.begin(5);
        collector.push(b"ab");
        collector.push(b"c");
        assert!(collector.is_open_at(5) && !collector.is_open_at(6));
        assert_eq!(collector.finish(&mut dropped), Some((5, Bytes::from_static(b"abc"))));
        collector.begin(6);
        collector.push(b"d");
        collector.abandon(&mut dropped);
        collector.abandon(&mut dropped);
        collector.begin(7);
        collector.push(&vec![0; UNIT_BYTES_MAX]);
        collector.push(b"e");
        assert_eq!(collector.finish(&mut dropped), None);
        assert_eq!((dropped.incomplete, dropped.too_large), (1, 1));
    }
}
