//! Wavelet video: every frame is a JPEG 2000 codestream of quality layers, each in a tile-part of its own,
//! so that any number of them from the base up is a picture.
//!
//! - [`y4m`] reads and writes raw video; [`openjpeg`] codes and decodes a picture; [`codestream`] takes
//!   codestreams apart into layers, and reads them from a file.
//! - [`rtp`] makes packets of them (RFC 5371, with the layers as priorities of RFC 5372), and puts frames
//!   together again from those that arrive, up to the first gap.
//! - [`psnr`] says what that cost.
//!
//! There is no socket and no clock here; [`pool`] has threads.

pub mod codestream;
pub mod coding;
pub mod limits;
pub mod openjpeg;
pub mod picture;
pub mod pool;
pub mod psnr;
pub mod rtp;
pub mod y4m;

pub use codestream::Codestream;
pub use coding::Coding;
pub use picture::{Picture, Sampling, Shape};
