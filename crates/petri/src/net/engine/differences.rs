//! Numbers that are close to each other, as bytes: each is the difference to the one before.

use crate::leb128::{Reader, put};
use crate::save::Unfit;

/// Writes them.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
    last: u64,
}

impl Writer {
    /// The next one, below 2^62.
    pub(super) fn put(&mut self, number: u64) {
        let apart = number.cast_signed().wrapping_sub(self.last.cast_signed());
        put(&mut self.bytes, ((apart << 1) ^ (apart >> 63)).cast_unsigned());
        self.last = number;
    }

    /// A number of its own.
    pub(super) fn count(&mut self, count: usize) {
        put(&mut self.bytes, count as u64);
    }
}

/// Reads them.
#[derive(Debug)]
pub(super) struct Differences<'a> {
    reader: Reader<'a>,
    last: u64,
}

impl<'a> Differences<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Differences { reader: Reader::new("saved net", bytes), last: 0 }
    }

    /// The next one.
    pub(super) fn number(&mut self) -> Result<u64, Unfit> {
        let twice = self.count()?;
        let apart = (twice >> 1).cast_signed() ^ -(twice & 1).cast_signed();
        self.last = self.last.wrapping_add_signed(apart);
        Ok(self.last)
    }

    /// A number of its own.
    pub(super) fn count(&mut self) -> Result<u64, Unfit> {
        self.reader.number().map_err(|_| Unfit { what: "net", why: "its numbers cannot be read" })
    }

    /// Whether there are no more.
    pub(super) fn is_over(&self) -> bool {
        self.reader.is_at_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_arrive_as_they_were_and_close_ones_take_little() {
        let numbers = [5, 5, 4, 1 << 40, (1 << 40) + 63, 0, (1 << 62) - 1, 0];
        let mut writer = Writer::default();
        numbers.into_iter().for_each(|number| writer.put(number));
        writer.count(2);
        [7, 8].into_iter().for_each(|number| writer.put(number));
        let mut reader = Differences::new(&writer.bytes);
        for number in numbers {
            assert_eq!(reader.number(), Ok(number));
        }
        assert_eq!((reader.count(), reader.number(), reader.number()), (Ok(2), Ok(7), Ok(8)));
        assert!(reader.is_over() && reader.number().is_err() && reader.count().is_err());
        let mut close = Writer::default();
        (1_000..1_100).for_each(|number| close.put(number));
        assert_eq!(close.bytes.len(), 101);
    }
}
