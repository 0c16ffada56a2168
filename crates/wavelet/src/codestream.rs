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

    /// Leaves `layers` layers, one at least.
    pub fn truncate(&mut self, layers: usize) {
        self.ends.truncate(layers.max(1) + 1);
        let end = self.ends.last().copied().unwrap_or_default();
        self.bytes.truncate(end);
    }

    /// Bytes of the codestream with its first `layers` layers, the end included; of all of it if there are
    /// fewer.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::Coding;
    use crate::openjpeg::encode;
    use crate::picture::{Picture, Sampling, Shape};

    const LAYERS: usize = 3;
    const COMMENT: &str = "YUV4MPEG2 W32 H32 F15:1 Ip A1:1 Cmono";

    fn coded(gray: u8) -> Vec<u8> {
        let shape = Shape::new(32, 32, Sampling::Mono).expect("small");
        let samples = (0..shape.bytes()).map(|at| gray ^ (at * at / 7) as u8).collect();
        let picture = Picture::new(shape, samples).expect("as many");
        encode(&picture, &Coding::of_layers(LAYERS).expect("a number that can be"), COMMENT).expect("coded")
    }

    #[test]
    fn a_codestream_is_its_main_header_and_its_layers() {
        let bytes = coded(0);
        let frame = Codestream::new(bytes.clone()).expect("valid");
        assert_eq!((frame.layers(), frame.layers_coded(), frame.to_bytes()), (LAYERS, LAYERS, bytes));
        assert_eq!(frame.y4m().expect("it tells").to_string(), COMMENT);
        let units: Vec<_> = frame.pieces().iter().map(|piece| piece.unit).collect();
        let layer = |layer| Unit::Packet { layer, resolution: 0, component: 0 };
        assert_eq!(units, [Unit::MainHeader, layer(0), layer(1), layer(2)]);
        let mut base = frame.clone();
        base.truncate(0);
        assert_eq!((base.layers(), base.to_bytes().len()), (1, frame.length(1)));
        assert_eq!(base.main_header(), frame.main_header());
    }

    #[test]
    fn of_what_was_cut_off_whole_layers_are_left() {
        let bytes = coded(1);
        let frame = Codestream::new(bytes.clone()).expect("valid");
        let ends: Vec<_> = frame.pieces().iter().map(|piece| piece.end).collect();
        for length in 0..bytes.len() {
            let whole = ends[1..].iter().filter(|end| **end <= length).count();
            let left = Codestream::of_beginning(bytes[..length].to_vec());
            assert_eq!(left.map_or(0, |left| left.layers()), whole, "{length}");
            assert!(Codestream::new(bytes[..length].to_vec()).is_err(), "{length}");
        }
    }

    #[test]
    fn layers_without_a_tile_part_each_are_refused() {
        let bytes = coded(2);
        let frame = Codestream::new(bytes.clone()).expect("valid");
        let second = frame.pieces()[1].end;
        // TPsot of the second tile-part, and its tile.
        for at in [second + 10, second + 5] {
            let mut bytes = bytes.clone();
            bytes[at] += 1;
            let error = Codestream::new(bytes).expect_err("refused");
            assert_eq!(error.offset, second, "{error}");
        }
    }

    #[test]
    fn codestreams_are_read_one_by_one_and_what_is_cut_off_is_an_error() {
        let (first, second) = (coded(3), coded(4));
        let both = [&first[..], &second].concat();
        let read: Vec<_> = Reader::new(&both[..]).map(|frame| frame.expect("valid").to_bytes()).collect();
        assert_eq!(read, [first.clone(), second]);
        for length in 0..both.len() {
            let read: Result<Vec<_>, _> = Reader::new(&both[..length]).collect();
            match read {
                Ok(frames) => assert_eq!(frames.len() * first.len(), length),
                Err(y4m::ReadError::Malformed(error)) => assert_eq!(error.offset, length, "{error}"),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn mistakes_are_told_where_they_are_in_the_file() {
        let first = coded(5);
        let mut both = [&first[..], &first].concat();
        both[first.len()] = 0;
        let read: Result<Vec<_>, _> = Reader::new(&both[..]).collect();
        let Err(y4m::ReadError::Malformed(error)) = read else { panic!("{read:?}") };
        assert_eq!((error.offset, error.reason), (first.len(), "no SOC marker"));
        // A tile-part of four gigabytes is not waited for.
        let header = Codestream::new(first.clone()).expect("valid").main_header().len();
        let mut long = first;
        long[header + 6] = 0xff;
        let read: Result<Vec<_>, _> = Reader::new(&long[..]).collect();
        assert!(read.expect_err("refused").to_string().contains("longer than can be sent"));
    }
}
