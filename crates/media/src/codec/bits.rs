//! Bits out of bytes, most significant first, with the emulation prevention of ITU-T H.264 and
//! H.265 taken out on the way; and bits into bytes.

/// A bounded reader: at the end of its bytes it answers `None`, for ever.
#[derive(Debug, Clone)]
pub struct BitReader<'a> {
    data: &'a [u8],
    byte: usize,
    bit: u32,
    escaped: bool,
    zeros: u32,
}

impl<'a> BitReader<'a> {
    /// Reads `data` as it is.
    pub const fn new(data: &'a [u8]) -> Self {
        BitReader { data, byte: 0, bit: 0, escaped: false, zeros: 0 }
    }

    /// Reads the payload of a NAL unit: the `03` of each `00 00 03` is left out
    /// (ITU-T H.264 section 7.3.1).
    pub const fn nal(data: &'a [u8]) -> Self {
        BitReader { data, byte: 0, bit: 0, escaped: true, zeros: 0 }
    }

    /// The next bit.
    pub fn bit(&mut self) -> Option<bool> {
        let current = self.current()?;
        let value = current >> (7 - self.bit) & 1 == 1;
        self.bit += 1;
        if self.bit == 8 {
            self.next_byte(current);
        }
        Some(value)
    }

    /// The byte that holds the next bit.
    fn current(&mut self) -> Option<u8> {
        if self.bit == 0 && self.escaped && self.zeros >= 2 && self.data.get(self.byte) == Some(&3) {
            self.byte += 1;
            self.zeros = 0;
        }
        self.data.get(self.byte).copied()
    }

    fn next_byte(&mut self, current: u8) {
        self.bit = 0;
        self.byte += 1;
        self.zeros = if current == 0 { self.zeros + 1 } else { 0 };
    }

    /// The next `count` bits as a number; `None` also if `count` is over 32.
    pub fn bits(&mut self, count: u32) -> Option<u32> {
        if count > 32 {
            return None;
        }
        let mut value = 0;
        for _ in 0..count {
            value = value << 1 | u32::from(self.bit()?);
        }
        Some(value)
    }

    /// Passes over `count` bits.
    pub fn skip(&mut self, count: u32) -> Option<()> {
        let mut left = count;
        while left > 0 {
            if self.bit == 0 && left >= 8 {
                let current = self.current()?;
                self.next_byte(current);
                left -= 8;
            } else {
                self.bit()?;
                left -= 1;
            }
        }
        Some(())
    }

    /// An unsigned exp-Golomb number, `ue(v)` of ITU-T H.264 section 9.1; `None` if it does not
    /// fit 32 bits.
    pub fn ue(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.bit()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        let rest = self.bits(zeros)?;
        Some((1u32 << zeros) - 1 + rest)
    }
}

/// Writes bits behind what a vector has.
#[derive(Debug)]
pub struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits of the last byte that are not written yet.
    free: u32,
}

impl<'a> BitWriter<'a> {
    /// Writes behind `out`.
    pub const fn new(out: &'a mut Vec<u8>) -> Self {
        BitWriter { out, free: 0 }
    }

    /// Writes the `count` lowest bits of a number, 32 at most.
    pub fn bits(&mut self, value: u32, count: u32) {
        for place in (0..count.min(32)).rev() {
            if self.free == 0 {
                self.out.push(0);
                self.free = 8;
            }
            self.free -= 1;
            if let Some(last) = self.out.last_mut() {
                *last |= ((value >> place & 1) as u8) << self.free;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bits_are_read_again() {
        let mut out = vec![0xff];
        let mut writer = BitWriter::new(&mut out);
        for (value, count) in [(1, 1), (0, 3), (0x2a5, 10), (u32::MAX, 32), (5, 3)] {
            writer.bits(value, count);
        }
        assert_eq!(out.len(), 1 + 7);
        let mut bits = BitReader::new(&out[1..]);
        let read = [1, 3, 10, 32, 3, 7].map(|count| bits.bits(count));
        assert_eq!(read, [Some(1), Some(0), Some(0x2a5), Some(u32::MAX), Some(5), Some(0)]);
    }

    #[test]
    fn exp_golomb_follows_the_table_of_the_standard() {
        // 1, 010, 011, 00100, 00101: 0 to 4.
        let data = [0b1010_0110, 0b0100_0010, 0b1000_0000];
        let mut bits = BitReader::new(&data);
        let read: Vec<_> = (0..5).map(|_| bits.ue()).collect();
        assert_eq!(read, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
    }

    #[test]
    fn endless_zeros_and_ends_of_data_are_none() {
        assert_eq!(BitReader::new(&[0; 64]).ue(), None);
        assert_eq!(BitReader::new(&[0b0001_0000]).ue(), Some(7));
        assert_eq!(BitReader::new(&[0b0000_1000]).ue(), None);
        assert_eq!(BitReader::new(&[]).bit(), None);
        assert_eq!(BitReader::new(&[1, 2, 3, 4, 5]).bits(33), None);
    }

    #[test]
    fn the_largest_number_fits() {
        let mut data = [0xff; 8];
        data[..4].copy_from_slice(&[0, 0, 0, 1]);
        assert_eq!(BitReader::new(&data).ue(), Some(u32::MAX - 1));
    }

    #[test]
    fn bits_are_passed_over_as_they_are_read() {
        let data = [0xa5, 0, 0, 3, 1, 0, 0, 3, 0x5a, 0xc3, 0, 0, 3];
        for first in 0..16 {
            for count in 0..64 {
                let mut skipped = BitReader::nal(&data);
                let mut read = skipped.clone();
                skipped.skip(first).unwrap();
                let skipped = skipped.skip(count).and_then(|()| skipped.bits(9));
                let read =
                    (0..first + count).try_for_each(|_| read.bit().map(drop)).and_then(|()| read.bits(9));
                assert_eq!(skipped, read, "{first} and {count}");
            }
        }
    }

    #[test]
    fn emulation_prevention_bytes_are_left_out() {
        let mut bits = BitReader::nal(&[0, 0, 3, 1, 0, 0, 3, 3]);
        assert_eq!(bits.bits(24), Some(1));
        assert_eq!(bits.bits(24), Some(3));
        assert_eq!(bits.bit(), None);
    }
}
