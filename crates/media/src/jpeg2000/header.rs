//! The main header: what the image is, and how it is coded (T.800, annex A).

use super::malformed;
use crate::Malformed;

pub(super) const SOC: u16 = 0xff4f;
const SIZ: u16 = 0xff51;
const COD: u16 = 0xff52;
const COC: u16 = 0xff53;
const TLM: u16 = 0xff55;
const PLM: u16 = 0xff57;
const QCD: u16 = 0xff5c;
const QCC: u16 = 0xff5d;
const RGN: u16 = 0xff5e;
const PROGRESSION_ORDER_CHANGE: u16 = 0xff5f;
const PPM: u16 = 0xff60;
const CRG: u16 = 0xff63;
pub(super) const SOT: u16 = 0xff90;
const COM: u16 = 0xff64;
/// Of a comment: it is text (T.800, table A.44).
const TEXT: u16 = 1;

/// Components of an image that can be worked on. With 257 and more, their numbers take two bytes.
const COMPONENTS_MAX: usize = 16;

/// Decomposition levels, at most (T.800, table A.15).
const LEVELS_MAX: u8 = 32;

/// A rectangle, its right and lower edges not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) x0: u32,
    pub(super) y0: u32,
    pub(super) x1: u32,
    pub(super) y1: u32,
}

/// The main header of a codestream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Capabilities (Rsiz).
    pub(super) capabilities: u16,
    /// The image on the reference grid.
    pub(super) image: Area,
    /// The upper left corner of the tiles, and the size of one.
    pub(super) tiles_at: (u32, u32),
    pub(super) tile: (u32, u32),
    /// The components, in their order.
    pub components: Vec<Component>,
    /// Quality layers.
    pub layers: u16,
    /// Progression order (T.800, table A.16).
    pub(super) progression: u8,
    /// Whether the first three components are transformed together.
    pub(super) transformed: bool,
    /// Packets may begin with an SOP marker, and their headers end with an EPH marker.
    pub(super) markers: (bool, bool),
    /// Marker segments that stay as they are (comments, extensions).
    pub(super) others: Vec<u8>,
    /// Bytes of the header, up to the first SOT marker.
    pub(super) bytes: usize,
}

/// A component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Bits of a value less one, and the sign in the highest bit (Ssiz).
    pub(super) depth: u8,
    /// Of how many columns and rows of the reference grid one has a value.
    pub(super) step: (u8, u8),
    /// Decomposition levels: it is there in one more resolution than that.
    pub levels: u8,
    pub(super) coding: Coding,
    /// Sqcd or Sqcc, and the step sizes.
    pub(super) quantization: Vec<u8>,
    /// Srgn and SPrgn of a region of interest.
    pub(super) region: Option<[u8; 2]>,
}

/// How the code-blocks of a component are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Coding {
    /// Exponents of a code-block's width and height.
    pub(super) block: (u8, u8),
    pub(super) style: u8,
    pub(super) transform: u8,
    /// Exponents of the precincts' width and height, resolution by resolution; empty for the largest.
    pub(super) precincts: Vec<(u8, u8)>,
}

impl Coding {
    /// Exponents of the width and height of precincts of a resolution.
    pub(super) fn precinct(&self, resolution: u8) -> (u8, u8) {
        self.precincts.get(usize::from(resolution)).copied().unwrap_or((15, 15))
    }
}

/// What a main header tells of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    /// How many quality layers there are.
    pub count: u16,
    /// The image has one tile only.
    pub one_tile: bool,
}

impl Header {
    /// Reads the main header of a codestream.
    ///
    /// # Errors
    /// What is wrong with it, or is in a way that cannot be cut down: packet headers apart from their
    /// packets (PPM), a change of the progression (POC), code-blocks of high throughput (T.814).
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader { bytes, at: 0 };
        if reader.u16()? != SOC {
            return Err(malformed(0, "no SOC marker"));
        }
        if reader.u16()? != SIZ {
            return Err(malformed(2, "no SIZ marker behind SOC"));
        }
        let mut header = size(&mut reader.segment()?)?;
        let mut said = Declared::default();
        loop {
            let at = reader.at;
            match reader.u16()? {
                SOT => {
                    header.bytes = at;
                    break;
                }
                COD => said.default_coding = Some(header.read_coding(&mut reader.segment()?)?),
                QCD => said.default_quantization = Some(reader.segment()?.rest().to_vec()),
                marker @ (COC | QCC | RGN) => {
                    header.of_component(marker, &mut reader.segment()?, &mut said)?;
                }
                PROGRESSION_ORDER_CHANGE => {
                    return Err(malformed(at, "the progression changes: it cannot be cut down"));
                }
                PPM => return Err(malformed(at, "packet headers lie apart (PPM): it cannot be cut down")),
                // Where things are: not there any more.
                TLM | PLM | CRG => reader.skip_segment()?,
                marker if marker >= 0xff30 => {
                    let segment = reader.segment()?;
                    header.others.extend_from_slice(&bytes[at..segment.end()]);
                }
                _ => return Err(malformed(at, "no marker")),
            }
        }
        header.apply(said)?;
        Ok(header)
    }

    /// What the main header tells of layers, of which perhaps only the first bytes are there.
    pub fn layers_of(bytes: &[u8]) -> Option<Layers> {
        let mut reader = Reader { bytes, at: 0 };
        (reader.u16().ok()? == SOC).then_some(())?;
        let mut one_tile = false;
        loop {
            match reader.u16().ok()? {
                SOT => return None,
                SIZ => one_tile = is_one_tile(&mut reader.segment().ok()?).ok()?,
                COD => {
                    let mut segment = reader.segment().ok()?;
                    // Style and progression stand in front.
                    segment.u16().ok()?;
                    return Some(Layers { count: segment.u16().ok()?, one_tile });
                }
                _ => reader.skip_segment().ok()?,
            }
        }
    }

    fn read_coding(&mut self, segment: &mut Reader<'_>) -> Result<(u8, Coding), Malformed> {
        let at = segment.at;
        let flags = segment.u8()?;
        self.markers = (flags & 2 != 0, flags & 4 != 0);
        self.progression = segment.u8()?;
        self.layers = segment.u16()?;
        self.transformed = segment.u8()? != 0;
        if self.layers == 0 || self.progression > 4 {
            return Err(malformed(at, "no layers, or an unknown progression order"));
        }
        coding(segment, flags & 1 != 0)
    }

    fn of_component(
        &self,
        marker: u16,
        segment: &mut Reader<'_>,
        said: &mut Declared,
    ) -> Result<(), Malformed> {
        let at = segment.at;
        let index = usize::from(segment.u8()?);
        if index >= self.components.len() {
            return Err(malformed(at, "no such component"));
        }
        match marker {
            COC => {
                let flags = segment.u8()?;
                said.codings.push((index, coding(segment, flags & 1 != 0)?));
            }
            QCC => said.quantizations.push((index, segment.rest().to_vec())),
            _ => said.regions.push((index, [segment.u8()?, segment.u8()?])),
        }
        Ok(())
    }

    /// Gives each component what was said of it, or of all.
    fn apply(&mut self, said: Declared) -> Result<(), Malformed> {
        let at = self.bytes;
        let (levels, coding) = said.default_coding.ok_or(malformed(at, "no COD marker segment"))?;
        let quantization = said.default_quantization.ok_or(malformed(at, "no QCD marker segment"))?;
        for component in &mut self.components {
            (component.levels, component.coding) = (levels, coding.clone());
            component.quantization.clone_from(&quantization);
        }
        for (index, (levels, coding)) in said.codings {
            (self.components[index].levels, self.components[index].coding) = (levels, coding);
        }
        for (index, quantization) in said.quantizations {
            self.components[index].quantization = quantization;
        }
        for (index, region) in said.regions {
            self.components[index].region = Some(region);
        }
        if self.components.iter().any(|component| component.quantization.is_empty()) {
            return Err(malformed(at, "a quantization without a style"));
        }
        Ok(())
    }

    /// The image on the reference grid: where it begins, and where it ends (column, row).
    pub fn image(&self) -> ((u32, u32), (u32, u32)) {
        let Area { x0, y0, x1, y1 } = self.image;
        ((x0, y0), (x1, y1))
    }

    /// Whether the image is one tile.
    pub fn is_one_tile(&self) -> bool {
        self.tiles() == (1, 1)
    }

    /// The comments that are text (COM), as they stand there.
    pub fn comments(&self) -> impl Iterator<Item = &[u8]> {
        let mut reader = Reader { bytes: &self.others, at: 0 };
        // Segments were checked when they were read.
        let segments = core::iter::from_fn(move || Some((reader.u16().ok()?, reader.segment().ok()?)));
        segments.filter_map(|(marker, mut segment)| {
            (marker == COM && segment.u16() == Ok(TEXT)).then(|| segment.rest())
        })
    }

    /// Columns and rows of tiles.
    pub(super) fn tiles(&self) -> (u32, u32) {
        let count = |from: u32, to: u32, size: u32| (to - from).div_ceil(size);
        (
            count(self.tiles_at.0, self.image.x1, self.tile.0),
            count(self.tiles_at.1, self.image.y1, self.tile.1),
        )
    }

    /// Where a tile lies on the reference grid.
    pub(super) fn tile_area(&self, column: u32, row: u32) -> Area {
        let edge = |at: u32, size: u32, index: u32| u64::from(at) + u64::from(size) * u64::from(index);
        let within = |value: u64, from: u32, to: u32| value.clamp(u64::from(from), u64::from(to)) as u32;
        let Area { x0, y0, x1, y1 } = self.image;
        Area {
            x0: within(edge(self.tiles_at.0, self.tile.0, column), x0, x1),
            y0: within(edge(self.tiles_at.1, self.tile.1, row), y0, y1),
            x1: within(edge(self.tiles_at.0, self.tile.0, column + 1), x0, x1),
            y1: within(edge(self.tiles_at.1, self.tile.1, row + 1), y0, y1),
        }
    }

    /// Adds the header to `out`.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&SOC.to_be_bytes());
        segment(out, SIZ, |out| {
            out.extend_from_slice(&self.capabilities.to_be_bytes());
            let Area { x0, y0, x1, y1 } = self.image;
            for value in [x1, y1, x0, y0, self.tile.0, self.tile.1, self.tiles_at.0, self.tiles_at.1] {
                out.extend_from_slice(&value.to_be_bytes());
            }
            out.extend_from_slice(&(self.components.len() as u16).to_be_bytes());
            for component in &self.components {
                out.extend_from_slice(&[component.depth, component.step.0, component.step.1]);
            }
        });
        let [first, others @ ..] = &self.components[..] else { return };
        segment(out, COD, |out| {
            let (sop, eph) = self.markers;
            let flags = first.coding.flag() | u8::from(sop) << 1 | u8::from(eph) << 2;
            out.extend_from_slice(&[flags, self.progression]);
            out.extend_from_slice(&self.layers.to_be_bytes());
            out.push(u8::from(self.transformed));
            first.coding.emit(first.levels, out);
        });
        segment(out, QCD, |out| out.extend_from_slice(&first.quantization));
        for (number, component) in (1_u8..).zip(others) {
            if (component.levels, &component.coding) != (first.levels, &first.coding) {
                segment(out, COC, |out| {
                    out.extend_from_slice(&[number, component.coding.flag()]);
                    component.coding.emit(component.levels, out);
                });
            }
            if component.quantization != first.quantization {
                segment(out, QCC, |out| {
                    out.push(number);
                    out.extend_from_slice(&component.quantization);
                });
            }
        }
        for (number, component) in (0_u8..).zip(&self.components) {
            if let Some([style, shift]) = component.region {
                segment(out, RGN, |out| out.extend_from_slice(&[number, style, shift]));
            }
        }
        out.extend_from_slice(&self.others);
    }
}

impl Component {
    /// Of how many columns and rows of the reference grid one has a value.
    pub fn step(&self) -> (u8, u8) {
        self.step
    }

    /// Bits of a value, and whether it has a sign.
    pub fn depth(&self) -> (u8, bool) {
        ((self.depth & 0x7f) + 1, self.depth & 0x80 != 0)
    }
}

impl Coding {
    /// Whether precincts are given, as a bit of Scod.
    fn flag(&self) -> u8 {
        u8::from(!self.precincts.is_empty())
    }

    fn emit(&self, levels: u8, out: &mut Vec<u8>) {
        let (width, height) = self.block;
        out.extend_from_slice(&[levels, width - 2, height - 2, self.style, self.transform]);
        out.extend(self.precincts.iter().map(|(x, y)| x | y << 4));
    }
}

/// What the header says of components, until all of it is read.
#[derive(Default)]
struct Declared {
    default_coding: Option<(u8, Coding)>,
    default_quantization: Option<Vec<u8>>,
    codings: Vec<(usize, (u8, Coding))>,
    quantizations: Vec<(usize, Vec<u8>)>,
    regions: Vec<(usize, [u8; 2])>,
}

/// Writes a marker segment.
fn segment(out: &mut Vec<u8>, marker: u16, content: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&marker.to_be_bytes());
    let at = out.len();
    out.extend_from_slice(&[0; 2]);
    content(out);
    let length = (out.len() - at) as u16;
    out[at..at + 2].copy_from_slice(&length.to_be_bytes());
}

/// Whether the first tile reaches to the end of the image.
fn is_one_tile(segment: &mut Reader<'_>) -> Result<bool, Malformed> {
    segment.u16()?;
    let mut numbers = [0; 8];
    for number in &mut numbers {
        *number = segment.u32()?;
    }
    let [x1, y1, _, _, tile_width, tile_height, tiles_x, tiles_y] = numbers;
    Ok(tiles_x.saturating_add(tile_width) >= x1 && tiles_y.saturating_add(tile_height) >= y1)
}

fn size(segment: &mut Reader<'_>) -> Result<Header, Malformed> {
    let at = segment.at;
    let capabilities = segment.u16()?;
    let mut numbers = [0; 8];
    for number in &mut numbers {
        *number = segment.u32()?;
    }
    let [x1, y1, x0, y0, tile_width, tile_height, tiles_x, tiles_y] = numbers;
    let inside = x0 < x1 && y0 < y1 && x1 <= i32::MAX as u32 && y1 <= i32::MAX as u32;
    let first_tile_has_some = |at: u32, size: u32, from: u32| at <= from && at.saturating_add(size) > from;
    let tiled = first_tile_has_some(tiles_x, tile_width, x0) && first_tile_has_some(tiles_y, tile_height, y0);
    if !inside || !tiled {
        return Err(malformed(at, "an image without pixels, or tiles beside it"));
    }
    let count = usize::from(segment.u16()?);
    if count == 0 || count > COMPONENTS_MAX {
        return Err(malformed(at, "no components, or more than can be worked on"));
    }
    let mut components = Vec::with_capacity(count);
    for _ in 0..count {
        let (depth, step) = (segment.u8()?, (segment.u8()?, segment.u8()?));
        if step.0 == 0 || step.1 == 0 {
            return Err(malformed(at, "a component without values"));
        }
        let coding = Coding { block: (2, 2), style: 0, transform: 0, precincts: Vec::new() };
        components.push(Component { depth, step, levels: 0, coding, quantization: Vec::new(), region: None });
    }
    let header = Header {
        capabilities,
        image: Area { x0, y0, x1, y1 },
        tiles_at: (tiles_x, tiles_y),
        tile: (tile_width, tile_height),
        components,
        layers: 0,
        progression: 0,
        transformed: false,
        markers: (false, false),
        others: Vec::new(),
        bytes: 0,
    };
    let (columns, rows) = header.tiles();
    if u64::from(columns) * u64::from(rows) > u64::from(u16::MAX) {
        return Err(malformed(at, "more tiles than there are numbers for them"));
    }
    Ok(header)
}

fn coding(segment: &mut Reader<'_>, precincts_given: bool) -> Result<(u8, Coding), Malformed> {
    let at = segment.at;
    let levels = segment.u8()?;
    let block = (segment.u8()?.saturating_add(2), segment.u8()?.saturating_add(2));
    let (style, transform) = (segment.u8()?, segment.u8()?);
    if levels > LEVELS_MAX || block.0 > 10 || block.1 > 10 || block.0 + block.1 > 12 {
        return Err(malformed(at, "more levels or larger code-blocks than there may be"));
    }
    // Those of ITU-T T.814 tell their lengths in another way.
    if style & 0xc0 != 0 {
        return Err(malformed(at, "code-blocks of high throughput: it cannot be cut down"));
    }
    let mut precincts = Vec::new();
    if precincts_given {
        for resolution in 0..=levels {
            let sizes = segment.u8()?;
            let precinct = (sizes & 15, sizes >> 4);
            // Of a higher resolution, a precinct has a half of that in each sub-band.
            if resolution > 0 && (precinct.0 == 0 || precinct.1 == 0) {
                return Err(malformed(at, "precincts of half a value"));
            }
            precincts.push(precinct);
        }
    }
    Ok((levels, Coding { block, style, transform, precincts }))
}

/// Reads numbers, in network order.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let bytes = rest.first_chunk().ok_or(malformed(self.at, "it ends in the middle of a header"))?;
        self.at += N;
        Ok(*bytes)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_be_bytes)
    }

    /// The content of a marker segment whose marker was read.
    pub(super) fn segment(&mut self) -> Result<Reader<'a>, Malformed> {
        let at = self.at;
        let length = usize::from(self.u16()?);
        let content = self.bytes.get(..at + length).filter(|_| length >= 2);
        let bytes = content.ok_or(malformed(at, "a marker segment that goes on behind the end"))?;
        let content = Reader { bytes, at: self.at };
        self.at = at + length;
        Ok(content)
    }

    /// Goes on behind the marker segment whose marker was read.
    pub(super) fn skip_segment(&mut self) -> Result<(), Malformed> {
        self.segment().map(|_| ())
    }

    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    fn end(&self) -> usize {
        self.bytes.len()
    }
}
