//! Uncompressed images: what is done to them on their way, on whole rows of pixels.
//!
//! Everything here works on *groups*: the fewest pixels whose bytes belong together (the pgroup of
//! RFC 4175, section 4). A fragment of an image that holds whole groups can so be worked on by
//! itself, in place, without the rest of its image. All arithmetic is in integers: the same bytes
//! come out on every machine, whatever vector instructions it has.

mod convert;
mod crop;
mod gray;
mod planes;
pub mod ppm;
mod shrink;
mod written;

use fearless_simd::Level;

pub use convert::convert;
pub use crop::{Rect, crop};
pub use gray::gray;
pub use shrink::{FACTOR_MAX, shrink, smaller};
pub use written::{NoRect, parse_size};

/// How the pixels of an image lie in memory, row by row from the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pixels {
    /// Red, green, blue, a byte each, 0 to 255 (PPM; RFC 4175 "RGB" with 8 bits).
    Rgb,
    /// Luma alone, a byte, 0 to 255 (PGM).
    Gray,
    /// Two pixels in four bytes, Cb Y Cr Y, with 16 for black and 235 for white (RFC 4175
    /// "YCbCr-4:2:2" with 8 bits).
    Uyvy,
}

impl Pixels {
    /// Every one there is.
    pub const ALL: [Pixels; 3] = [Pixels::Rgb, Pixels::Gray, Pixels::Uyvy];

    /// Pixels of a group, and its bytes.
    pub const fn group(self) -> (usize, usize) {
        match self {
            Pixels::Rgb => (1, 3),
            Pixels::Gray => (1, 1),
            Pixels::Uyvy => (2, 4),
        }
    }

    /// Bytes of a row of `width` pixels; a group that is not full counts as one.
    pub const fn row_bytes(self, width: usize) -> usize {
        let (pixels, bytes) = self.group();
        width.div_ceil(pixels) * bytes
    }
}

/// The size of an image, and how its pixels lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How its pixels lie.
    pub pixels: Pixels,
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Shape {
    /// Bytes of a row.
    pub const fn row_bytes(self) -> usize {
        self.pixels.row_bytes(self.width)
    }

    /// Bytes of the image.
    pub const fn bytes(self) -> usize {
        self.row_bytes() * self.height
    }
}

/// Which vector instructions this machine has. To find out costs more than to work on a row: do it
/// once.
#[derive(Debug, Clone, Copy)]
pub struct Cpu(Level);

impl Cpu {
    /// This one.
    pub fn detect() -> Self {
        Cpu(Level::new())
    }
}
