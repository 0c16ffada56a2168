//! PPM and PGM, the binary kinds: a few numbers in front of the pixels (netpbm's `ppm(5)`, `pgm(5)`).

use core::fmt::Write as _;

use super::{Pixels, Shape};
use crate::Malformed;

/// Bytes that a header may have, comments included.
pub const HEADER_BYTES_MAX: usize = 1024;

/// Pixels that a row, or rows that an image may have.
pub const SIDE_MAX: usize = 1 << 15;

/// The header of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What follows it.
    pub shape: Shape,
    /// Bytes of the header itself.
    pub bytes: usize,
}

impl Header {
    /// Reads the header at the beginning of `bytes`; `None` if it goes on behind them.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut reader = Reader { bytes, at: 0 };
        match reader.header() {
            Ok(header) => Ok(Some(header)),
            Err(Stop::Incomplete) => Ok(None),
            Err(Stop::Malformed(malformed)) => Err(malformed),
        }
    }
}

/// Adds the header of an image to `out`. `None` if the pixels have no such format.
pub fn emit(shape: Shape, out: &mut Vec<u8>) -> Option<()> {
    let magic = match shape.pixels {
        Pixels::Rgb => "P6",
        Pixels::Gray => "P5",
        Pixels::Uyvy => return None,
    };
    let mut text = String::new();
    write!(text, "{magic}\n{} {}\n255\n", shape.width, shape.height).ok()?;
    out.extend_from_slice(text.as_bytes());
    Some(())
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Why reading went no further.
enum Stop {
    Incomplete,
    Malformed(Malformed),
}

fn malformed(offset: usize, reason: &'static str) -> Stop {
    Stop::Malformed(Malformed { format: "PPM", offset, reason })
}

impl Reader<'_> {
    fn header(&mut self) -> Result<Header, Stop> {
        let pixels = match (self.next()?, self.next()?) {
            (b'P', b'6') => Pixels::Rgb,
            (b'P', b'5') => Pixels::Gray,
            _ => return Err(malformed(0, "neither P6 (PPM) nor P5 (PGM)")),
        };
        let (width, height) = (self.number()?, self.number()?);
        let before = self.at;
        if self.number()? != 255 {
            return Err(malformed(
                before,
                "the largest value is not 255: only 8 bits a value can be worked on",
            ));
        }
        // One white space, and not one more: the pixels may begin with its like.
        if !self.next()?.is_ascii_whitespace() {
            return Err(malformed(self.at - 1, "no white space behind the largest value"));
        }
        Ok(Header { shape: Shape { pixels, width, height }, bytes: self.at })
    }

    fn peek(&self) -> Result<u8, Stop> {
        if self.at >= HEADER_BYTES_MAX {
            return Err(malformed(self.at, "the header is too long"));
        }
        self.bytes.get(self.at).copied().ok_or(Stop::Incomplete)
    }

    fn next(&mut self) -> Result<u8, Stop> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    /// A number behind white space and comments.
    fn number(&mut self) -> Result<usize, Stop> {
        let begin = self.at;
        loop {
            match self.peek()? {
                b'#' => while self.next()? != b'\n' {},
                byte if byte.is_ascii_whitespace() => self.at += 1,
                _ => break,
            }
        }
        let (start, mut value) = (self.at, 0);
        while let digit @ b'0'..=b'9' = self.peek()? {
            value = 10 * value + usize::from(digit - b'0');
            if value > SIDE_MAX {
                return Err(malformed(start, "the number is too large"));
            }
            self.at += 1;
        }
        // Numbers are apart from what is before them.
        if value == 0 || start == begin { Err(malformed(start, "no number above 0")) } else { Ok(value) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(pixels: Pixels, width: usize, height: usize) -> Shape {
        Shape { pixels, width, height }
    }

    #[test]
    fn headers_are_read_with_their_comments() {
        let text = b"P6 # made by hand\n# twice\n160\t120 # so\n255\n\n\x0a";
        let header = Header::parse(text).expect("valid").expect("whole");
        assert_eq!(header.shape, shape(Pixels::Rgb, 160, 120));
        assert_eq!(&text[header.bytes..], b"\n\x0a", "white space may be a pixel");
    }

    #[test]
    fn what_is_no_header_says_where() {
        let cases: [(&[u8], usize); 7] = [
            (b"P3 1 1 255\n", 0),
            (b"P6 1 x", 5),
            (b"P61 1 255\n", 2),
            (b"P5 0 1 255\n", 3),
            (b"P5 1 40000 255\n", 5),
            (b"P5 1 1 65\n", 6),
            (b"P5 1 1 255x", 10),
        ];
        for (bytes, offset) in cases {
            let malformed = Header::parse(bytes).expect_err("malformed");
            assert_eq!(malformed.offset, offset, "{}: {malformed}", String::from_utf8_lossy(bytes));
        }
        let endless = [b"P6 #".as_slice(), &[b'x'; 2 * HEADER_BYTES_MAX]].concat();
        assert_eq!(Header::parse(&endless).expect_err("too long").offset, HEADER_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rgb in any::<bool>(), width in 1..=SIDE_MAX, height in 1..=SIDE_MAX) {
            let shape = shape(if rgb { Pixels::Rgb } else { Pixels::Gray }, width, height);
            let mut bytes = Vec::new();
            emit(shape, &mut bytes).expect("it has such a format");
            prop_assert_eq!(Header::parse(&bytes), Ok(Some(Header { shape, bytes: bytes.len() })));
            for end in 0..bytes.len() {
                prop_assert_eq!(Header::parse(&bytes[..end]), Ok(None));
            }
        }

        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(Some(header)) = Header::parse(&[b"P6 ".as_slice(), &bytes].concat()) {
                prop_assert!(header.bytes <= 3 + bytes.len());
            }
        }
    }
}
