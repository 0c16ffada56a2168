//! Codestreams of quality layers, a tile-part each, and what is left of them when layers are missing.

use std::io::Read;

use outflow_media::Malformed;
use outflow_media::jpeg2000::{Header, Outline, Piece, Unit};

use crate::limits::CODESTREAM_BYTES_MAX;
use crate::y4m;

/// What ends a codestream (EOC).
const END: [u8; 2] = [0xff, 0xd9];

/// The frame of a wavelet video: a codestream with a tile-part for each quality layer, or the first of
/// them.
///
/// Main header, tile-parts 0 to L-1 and the EOC marker are a codestream again, which every decoder takes,
/// the strict ones included: nothing in it needs to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Codestream {
    /// Up to the end of the last layer.
    bytes: Vec<u8>,
    /// Where the main header and the layers end.
    ends: Vec<usize>,
    header: Header,
}

impl Codestream {
    /// Reads a whole codestream.
    ///
    /// # Errors
    /// It is none, or not of layers with a tile-part each, or something is missing or behind it.
    pub fn new(bytes: Vec<u8>) -> Result<Self, Malformed> {
        let mut outline = Outline::default();
        outline.advance(&bytes)?;
        match outline.length() {
            Some(length) if length == bytes.len() => Self::of_outline(bytes, &outline),
            _ => Err(malformed(bytes.len(), "it ends before its end, or after it")),
        }
    }

    /// The layers that are there as a whole of a codestream that was cut off somewhere.
    ///
    /// # Errors
    /// There is not a single layer, or they do not have a tile-part each.
    pub fn of_beginning(bytes: Vec<u8>) -> Result<Self, Malformed> {
        let mut outline = Outline::default();
        let malformed = outline.advance(&bytes).err();
        // What is wrong behind whole layers is nothing that they need.
        Self::of_outline(bytes, &outline).map_err(|error| malformed.unwrap_or(error))
    }

    fn of_outline(mut bytes: Vec<u8>, outline: &Outline) -> Result<Self, Malformed> {
        let (Some(header_bytes), Some(last)) = (outline.header(), outline.tile_parts().last()) else {
            return Err(malformed(bytes.len(), "not a single layer is there"));
        };
        let header = Header::parse(&bytes)?;
        let mut ends = vec![header_bytes];
        for (index, part) in outline.tile_parts().iter().enumerate() {
            if part.tile != 0 || usize::from(part.index) != index || index >= usize::from(header.layers) {
                return Err(malformed(part.begin, "its layers do not have a tile-part each"));
            }
            ends.push(part.end);
        }
        bytes.truncate(last.end);
        Ok(Codestream { bytes, ends, header })
    }

    /// The main header, read.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The main header as it stands there.
    pub fn main_header(&self) -> &[u8] {
        &self.bytes[..self.ends[0]]
    }

    /// The layers that are there, 1 and more.
    pub fn layers(&self) -> usize {
        self.ends.len() - 1
    }

    /// The layers that the frame has had, as its main header says.
    pub fn layers_coded(&self) -> usize {
        self.header.layers.into()
    }

    /// Leaves so many layers, one at least.
    pub fn truncate(&mut self, layers: usize) {
        self.ends.truncate(layers.max(1) + 1);
        let end = self.ends.last().copied().unwrap_or_default();
        self.bytes.truncate(end);
    }

    /// Bytes of the codestream with its first `layers` layers, the end included; of all of it if there are
    /// not so many.
    pub fn length(&self, layers: usize) -> usize {
        self.ends[layers.min(self.layers())] + END.len()
    }

    /// The codestream, its end included.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.bytes[..], &END].concat()
    }

    /// How it is to be laid out in packets: the main header, and each layer. The header of a tile-part is
    /// of no use without the layer, nor the layer without it.
    pub fn pieces(&self) -> Vec<Piece> {
        let main_header = Piece { unit: Unit::MainHeader, tile: 0, end: self.ends[0] };
        let layers = (0..).zip(&self.ends[1..]).map(|(layer, end)| Piece {
            unit: Unit::Packet { layer, resolution: 0, component: 0 },
            tile: 0,
            end: *end,
        });
        core::iter::once(main_header).chain(layers).collect()
    }

    /// The header of the Y4M that it was coded from, if that stands in its comment.
    pub fn y4m(&self) -> Option<y4m::Header> {
        self.header.comments().find_map(|comment| y4m::Header::parse(comment).ok())
    }
}

/// Reads codestreams that stand one behind the other.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    /// Bytes of those before.
    at: usize,
}

impl<R: Read> Reader<R> {
    /// Reads from where `from` is. It reads little at a time: give something that is buffered.
    pub fn new(from: R) -> Self {
        Reader { from, at: 0 }
    }

    /// The next one; `None` at the end.
    ///
    /// # Errors
    /// It cannot be read, is no codestream of layers with a tile-part each, or is not all there.
    pub fn codestream(&mut self) -> Result<Option<Codestream>, y4m::ReadError> {
        let (mut outline, mut bytes) = (Outline::default(), Vec::new());
        let behind = |error: Malformed, before: usize| Malformed { offset: before + error.offset, ..error };
        while outline.length().is_none() {
            outline.advance(&bytes).map_err(|error| behind(error, self.at))?;
            let more = outline.needs().saturating_sub(bytes.len());
            if outline.needs() > CODESTREAM_BYTES_MAX {
                return Err(malformed(self.at, "a codestream longer than can be sent").into());
            }
            // What is there is taken: its length is only claimed.
            let read = self.from.by_ref().take(more as u64).read_to_end(&mut bytes)?;
            if read < more && outline.length().is_none() {
                if bytes.is_empty() {
                    return Ok(None);
                }
                return Err(malformed(self.at + bytes.len(), "it ends within a codestream").into());
            }
        }
        let codestream = Codestream::of_outline(bytes, &outline);
        let codestream = codestream.map_err(|error| behind(error, self.at))?;
        self.at += codestream.length(usize::MAX);
        Ok(Some(codestream))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Codestream, y4m::ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.codestream().transpose()
    }
}

const fn malformed(offset: usize, reason: &'static str) -> Malformed {
    Malformed { format: "wavelet video", offset, reason }
}
