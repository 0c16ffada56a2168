//! Where a packet ends: its header says how many bytes of each code-block it holds (T.800, B.10).

use super::geometry::Precinct;

/// Start and end markers of a packet's header (T.800, A.8).
const SOP: [u8; 2] = [0xff, 0x91];
const EPH: [u8; 2] = [0xff, 0x92];
/// Bytes of an SOP marker segment.
const SOP_BYTES: usize = 6;

/// Of `Coding::style`: after a number of coding passes the lengths are given again.
const BYPASS: u8 = 1;
const TERMINATE_ALL: u8 = 4;
/// Coding passes that a code-block cannot have more of.
const PASSES_MAX: u32 = 164;

/// What the packets of a precinct have told so far.
#[derive(Debug)]
pub(super) struct PrecinctState {
    bands: Vec<Band>,
}

#[derive(Debug)]
struct Band {
    inclusion: TagTree,
    /// Bit-planes of zeros.
    empty: TagTree,
    blocks: Vec<Block>,
}

/// A code-block.
#[derive(Debug, Clone, Copy)]
struct Block {
    included: bool,
    length_bits: u32,
    /// Coding passes of the segment that is being filled, and how many it takes.
    passes: u32,
    passes_max: u32,
}

/// In which way packets are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct PacketCoding {
    /// Of the component's code-blocks.
    pub(super) style: u8,
    /// There may be an SOP marker segment before the header, and there is an EPH marker behind it.
    pub(super) sop: bool,
    pub(super) eph: bool,
}

/// A packet's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) begin: usize,
    pub(super) end: usize,
    /// Whether it begins with an SOP marker segment, in which its number stands.
    pub(super) numbered: bool,
}

impl PrecinctState {
    pub(super) fn new(precinct: &Precinct) -> Self {
        let band = |(columns, rows): &(u32, u32)| {
            let block = Block { included: false, length_bits: 3, passes: 0, passes_max: 0 };
            Band {
                inclusion: TagTree::new(*columns, *rows),
                empty: TagTree::new(*columns, *rows),
                blocks: vec![block; *columns as usize * *rows as usize],
            }
        };
        PrecinctState { bands: precinct.bands.iter().map(band).collect() }
    }

    /// The packet of the precinct's next layer, which begins at `begin`; `None` if it is not all there.
    pub(super) fn packet(
        &mut self,
        bytes: &[u8],
        begin: usize,
        layer: u16,
        way: PacketCoding,
    ) -> Option<Extent> {
        let starts_with =
            |at: usize, marker: [u8; 2]| bytes.get(at..).is_some_and(|b| b.starts_with(&marker));
        let numbered = way.sop && starts_with(begin, SOP);
        let mut bits = Bits::new(bytes, begin + if numbered { SOP_BYTES } else { 0 });
        let mut length = 0_usize;
        if bits.bit()? {
            for band in &mut self.bands {
                for index in 0..band.blocks.len() {
                    length = length.checked_add(band.block(&mut bits, index, layer, way.style)?)?;
                }
            }
        }
        let mut end = bits.end()?;
        if way.eph {
            end = starts_with(end, EPH).then_some(end + EPH.len())?;
        }
        end = end.checked_add(length).filter(|end| *end <= bytes.len())?;
        Some(Extent { begin, end, numbered })
    }
}

impl Band {
    /// The bytes of a code-block in this packet.
    fn block(&mut self, bits: &mut Bits<'_>, index: usize, layer: u16, style: u8) -> Option<usize> {
        let block = &mut self.blocks[index];
        if block.included {
            if !bits.bit()? {
                return Some(0);
            }
        } else {
            if !self.inclusion.is_below(bits, index, u32::from(layer) + 1)? {
                return Some(0);
            }
            block.included = true;
            let mut planes = 1;
            while !self.empty.is_below(bits, index, planes)? {
                planes += 1;
            }
        }
        let mut passes = bits.passes()?;
        while bits.bit()? {
            block.length_bits += 1;
        }
        let mut bytes = 0_usize;
        while passes > 0 {
            if block.passes == block.passes_max {
                (block.passes, block.passes_max) = (0, next_segment(style, block.passes_max));
            }
            let taken = passes.min(block.passes_max - block.passes);
            bytes = bytes.checked_add(bits.number(block.length_bits + taken.ilog2())? as usize)?;
            block.passes += taken;
            passes -= taken;
        }
        Some(bytes)
    }
}

/// Coding passes of the segment behind one of `before` passes (0: of the first). Where the arithmetic
/// coder is bypassed, raw and coded passes take turns after the tenth (T.800, table D.9).
fn next_segment(style: u8, before: u32) -> u32 {
    match before {
        _ if style & TERMINATE_ALL != 0 => 1,
        _ if style & BYPASS == 0 => PASSES_MAX,
        0 => 10,
        1 | 10 => 2,
        _ => 1,
    }
}

/// Numbers of code-blocks, told as far as they are asked for (T.800, B.10.2).
#[derive(Debug)]
struct TagTree {
    /// Columns and rows of each level, the leaves first, and where the level begins.
    levels: Vec<(usize, usize, usize)>,
    nodes: Vec<Node>,
}

/// A node's number is at least that; it is known.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    least: u32,
    known: bool,
}

impl TagTree {
    fn new(columns: u32, rows: u32) -> Self {
        let (mut columns, mut rows, mut begin) = (columns as usize, rows as usize, 0);
        let mut levels = Vec::new();
        while columns * rows > 0 {
            levels.push((columns, rows, begin));
            begin += columns * rows;
            if columns * rows == 1 {
                break;
            }
            (columns, rows) = (columns.div_ceil(2), rows.div_ceil(2));
        }
        TagTree { levels, nodes: vec![Node::default(); begin] }
    }

    /// Whether the number of a leaf is below `limit`.
    fn is_below(&mut self, bits: &mut Bits<'_>, leaf: usize, limit: u32) -> Option<bool> {
        let (columns, ..) = *self.levels.first()?;
        let (column, row) = (leaf % columns, leaf / columns);
        let mut least = 0;
        let mut below = false;
        for (level, (columns, _, begin)) in self.levels.iter().enumerate().rev() {
            let node = &mut self.nodes[begin + (row >> level) * columns + (column >> level)];
            node.least = node.least.max(least);
            while !node.known && node.least < limit {
                if bits.bit()? {
                    node.known = true;
                } else {
                    node.least += 1;
                }
            }
            least = node.least;
            below = node.known && node.least < limit;
        }
        Some(below)
    }
}

/// Bits of a packet header: behind a byte of ones, the next has one bit less (T.800, B.10.1).
struct Bits<'a> {
    bytes: &'a [u8],
    /// The byte behind the present one.
    next: usize,
    byte: u8,
    left: u32,
}

impl<'a> Bits<'a> {
    fn new(bytes: &'a [u8], at: usize) -> Self {
        Bits { bytes, next: at, byte: 0, left: 0 }
    }

    fn bit(&mut self) -> Option<bool> {
        if self.left == 0 {
            let stuffed = self.byte == 0xff;
            self.byte = *self.bytes.get(self.next)?;
            self.next += 1;
            self.left = if stuffed { 7 } else { 8 };
        }
        self.left -= 1;
        Some(self.byte >> self.left & 1 == 1)
    }

    fn number(&mut self, bits: u32) -> Option<u32> {
        // A length of more than that is none.
        if bits > 31 {
            return None;
        }
        (0..bits).try_fold(0, |number, _| Some(number << 1 | u32::from(self.bit()?)))
    }

    /// How many coding passes there are (T.800, table B.4).
    fn passes(&mut self) -> Option<u32> {
        if !self.bit()? {
            return Some(1);
        }
        if !self.bit()? {
            return Some(2);
        }
        for (bits, base) in [(2, 3), (5, 6), (7, 37)] {
            let number = self.number(bits)?;
            if bits == 7 || number + 1 < 1 << bits {
                return Some(base + number);
            }
        }
        None
    }

    /// Where the header ends, which is a whole number of bytes.
    fn end(&self) -> Option<usize> {
        let end = self.next + usize::from(self.byte == 0xff);
        (end <= self.bytes.len()).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_told_by_their_codewords() {
        for (bytes, passes) in [
            ([0b0000_0000, 0, 0], 1),
            ([0b1000_0000, 0, 0], 2),
            ([0b1100_0000, 0, 0], 3),
            ([0b1110_0000, 0, 0], 5),
            ([0b1111_0000, 0, 0], 6),
            ([0b1111_1111, 0b0000_0000, 0], 36),
            ([0b1111_1111, 0b0100_0000, 0], 37),
        ] {
            assert_eq!(Bits::new(&bytes, 0).passes(), Some(passes), "{bytes:?}");
        }
    }

    #[test]
    fn a_bit_is_left_out_behind_a_byte_of_ones() {
        let bytes = [0xff, 0b0101_0101, 0xaa];
        let mut bits = Bits::new(&bytes, 0);
        assert_eq!(bits.number(15), Some(0b111_1111_1101_0101));
        assert_eq!(bits.end(), Some(2));
        assert_eq!(Bits::new(&bytes, 0).end(), Some(0));
        let mut ones = Bits::new(&bytes, 0);
        ones.number(3);
        assert_eq!(ones.end(), Some(2), "the header does not end with a byte of ones");
    }

    /// The example of T.800, B.10.2, figure B.13: 6 x 3 leaves.
    #[test]
    fn tag_trees_tell_numbers_bit_by_bit() {
        // q(0,0) = 1: "01111"; q(1,0) = 3: "001"; q(2,0) = 2: "101".
        let bytes = [0b0111_1001, 0b1010_0000];
        let (mut bits, mut tree) = (Bits::new(&bytes, 0), TagTree::new(6, 3));
        for (leaf, number) in [(0, 1), (1, 3), (2, 2)] {
            let mut limit = 0;
            while !tree.is_below(&mut bits, leaf, limit).expect("bits are there") {
                limit += 1;
            }
            assert_eq!(limit - 1, number, "leaf {leaf}");
        }
    }

    #[test]
    fn segments_follow_the_style() {
        let of = |style| {
            let segments =
                core::iter::successors(Some(next_segment(style, 0)), |n| Some(next_segment(style, *n)));
            segments.take(5).collect::<Vec<_>>()
        };
        assert_eq!(of(0)[0], PASSES_MAX);
        assert_eq!(of(BYPASS), [10, 2, 1, 2, 1]);
        assert_eq!(of(BYPASS | TERMINATE_ALL), [1; 5]);
    }
}
