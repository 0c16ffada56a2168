//! The ones-complement sum of the Internet protocols (RFC 1071).
//!
//! Sums are taken of 16-bit words in the machine's own byte order: swapping the bytes of all words
//! swaps those of the sum (section 2 B), so that it can be stored as it is.

/// A sum that grows piece by piece.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum(u64);

impl Sum {
    /// Adds bytes. All pieces but the last must have an even length.
    #[must_use]
    pub(super) fn add(self, bytes: &[u8]) -> Self {
        // Words of 32 bits are two of 16 that are folded together in the end.
        let (words, rest) = bytes.as_chunks::<4>();
        let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
        for pair in rest.chunks(2) {
            sum += u64::from(u16::from_ne_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
        Sum(self.0 + sum)
    }

    /// The sum in 16 bits, not inverted.
    pub(super) fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let sum = Sum::default().add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).folded();
        assert_eq!(sum.to_ne_bytes(), [0xdd, 0xf2]);
    }

    #[test]
    fn any_length_sums_as_its_words_do() {
        let bytes: Vec<u8> = (0..1500_u32).map(|i| (i * 7 + i / 256) as u8 | 0x80).collect();
        for length in (0..70).chain(1390..1500) {
            let mut expected = 0_u32;
            for pair in bytes[..length].chunks(2) {
                expected += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
                expected = (expected & 0xffff) + (expected >> 16);
            }
            let sum = Sum::default().add(&bytes[..length]).folded();
            assert_eq!(u16::from_be(sum), expected as u16, "{length} bytes");
        }
    }
}
