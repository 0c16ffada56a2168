//! JPEG 2000 codestreams (ITU-T T.800), cut down without decoding them.
//!
//! What a codestream holds is laid out in *packets*, one for each quality layer, resolution, component
//! and precinct. Leaving packets out leaves a codestream of fewer layers, a smaller or a gray image;
//! leaving tiles out leaves a part of the image. No coefficient is looked at: only the packets'
//! headers are read, to know where they end.

mod geometry;
mod header;
mod order;
mod outline;
mod packet;
mod select;
mod tile_parts;

pub use header::{Component, Header, Layers};
pub use outline::{Outline, TilePart};
pub use select::{Piece, Selection, Unit, select, select_pieces};

use crate::Malformed;

/// Packets of a tile that are looked at, at most: 33 layers of three components with six resolutions
/// of 400 precincts each. They are some 60 bytes each while the tile is worked on.
const PACKETS_MAX: usize = 1 << 18;

/// Code-blocks of a tile, at most. A colour image of 8K has 97,200 of 64 by 64 values; they are some
/// 40 bytes each while the tile is worked on.
const CODE_BLOCKS_MAX: usize = 1 << 19;

const fn malformed(offset: usize, reason: &'static str) -> Malformed {
    Malformed { format: "JPEG 2000", offset, reason }
}
