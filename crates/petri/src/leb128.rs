//! Numbers as bytes, LEB128: 7 bits a byte, the lowest first, the highest bit set where more follow.
//!
//! Chosen before the integers of QUIC (RFC 9000 section 16), because most of what is sent here is a small
//! number, and a packet number of some millions: of one to 127 it takes one byte instead of two, of up to
//! 2^21 three bytes instead of four, and it is as fast.

use outflow_media::Malformed;

use crate::limits::NUMBER_MAX;

/// Reads bytes from the front. All its errors are of one format, and say where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    format: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Of all of these bytes; errors name the format.
    pub const fn new(format: &'static str, bytes: &'a [u8]) -> Self {
        Reader { format, bytes, at: 0 }
    }

    /// How many bytes were read.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Whether all were read.
    pub const fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// What is wrong with the byte that is read next.
    pub const fn error(&self, reason: &'static str) -> Malformed {
        Malformed { format: self.format, offset: self.at, reason }
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| self.error("ends early"))?;
        self.at += 1;
        Ok(byte)
    }

    /// A number of at most 63 bits.
    #[inline]
    pub fn number(&mut self) -> Result<u64, Malformed> {
        // Most are small.
        match self.bytes.get(self.at) {
            Some(byte) if *byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(*byte))
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.error("a number of more than 63 bits"))
    }

    /// A number lower than `end`, or an error with this reason.
    pub fn below(&mut self, end: usize, reason: &'static str) -> Result<u32, Malformed> {
        let number = self.number()?;
        let fits = u32::try_from(number).ok().filter(|number| (*number as usize) < end);
        fits.ok_or_else(|| self.error(reason))
    }

    /// Takes `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..count).ok_or_else(|| self.error("ends early"))?;
        self.at += count;
        Ok(taken)
    }

    /// As many bytes as the array has.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("it was taken from there"))
    }

    /// A length and that number of bytes, at most `most`.
    pub fn prefixed(&mut self, most: usize, reason: &'static str) -> Result<&'a [u8], Malformed> {
        let count = self.below(most + 1, reason)?;
        self.take(count as usize)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    /// What was read since it stood there.
    pub fn since(&self, at: usize) -> &'a [u8] {
        &self.bytes[at..self.at]
    }

    /// Leaves out zeros.
    pub fn skip_zeros(&mut self) {
        // A hello is padding mostly, and any host may send many of them.
        let (chunks, _) = self.bytes[self.at..].as_chunks::<16>();
        self.at += 16 * chunks.iter().take_while(|chunk| **chunk == [0; 16]).count();
        self.at += self.bytes[self.at..].iter().take_while(|byte| **byte == 0).count();
    }
}

/// What was to be sent is longer than may be; the caller is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {what} of {bytes} bytes; at most {most} can be sent")]
pub struct TooLong {
    /// What it is.
    pub what: &'static str,
    /// Its length.
    pub bytes: usize,
    /// How long it may be.
    pub most: usize,
}

impl TooLong {
    /// Whether bytes are no longer than `most`.
    pub fn check(what: &'static str, bytes: &[u8], most: usize) -> Result<(), TooLong> {
        if bytes.len() <= most { Ok(()) } else { Err(TooLong { what, bytes: bytes.len(), most }) }
    }
}

/// Writes a number behind what is in `out`; one that is too large, as [`NUMBER_MAX`].
#[inline]
pub fn put(out: &mut Vec<u8>, number: u64) {
    let mut number = number.min(NUMBER_MAX);
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a length, and the bytes.
pub fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// How many bytes a number takes.
pub const fn size(number: u64) -> usize {
    let number = if number > NUMBER_MAX { NUMBER_MAX } else { number };
    let bits = u64::BITS - number.leading_zeros();
    if bits == 0 { 1 } else { bits.div_ceil(7) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_arrive_in_as_many_bytes_as_told() {
        let edges = (0..63).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]).chain([NUMBER_MAX]);
        for number in edges {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(bytes.len(), size(number), "{number}");
            let mut reader = Reader::new("LEB128", &bytes);
            assert_eq!(reader.number(), Ok(number));
            assert!(reader.is_at_end());
        }
    }

    #[test]
    fn a_number_too_large_is_the_largest() {
        let mut bytes = Vec::new();
        put(&mut bytes, u64::MAX);
        assert_eq!((bytes.len(), size(u64::MAX)), (9, 9));
        assert_eq!(Reader::new("LEB128", &bytes).number(), Ok(NUMBER_MAX));
    }

    #[test]
    fn zeros_are_skipped_and_nothing_else() {
        for (zeros, more) in (0..70).flat_map(|zeros| [0, 1, 20].map(|more| (zeros, more))) {
            let bytes = [vec![0; zeros], vec![1; more], vec![0; 20]].concat();
            let mut reader = Reader::new("LEB128", &bytes);
            reader.skip_zeros();
            assert_eq!(reader.at(), if more == 0 { bytes.len() } else { zeros });
        }
    }
}
