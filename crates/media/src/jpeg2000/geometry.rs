//! Which packets a tile has, and which code-blocks each packet tells of (T.800, annex B).

use super::header::{Area, Component, Header};
use super::{CODE_BLOCKS_MAX, PACKETS_MAX, malformed};
use crate::Malformed;

/// A precinct of a resolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Precinct {
    /// Columns and rows of code-blocks in each of its sub-bands.
    pub(super) bands: Vec<(u32, u32)>,
    /// Where on the reference grid its turn comes, where the progression goes by position: row, column.
    pub(super) position: (u64, u64),
}

/// The precincts of a tile, by component and resolution.
pub(super) type Precincts = Vec<Vec<Vec<Precinct>>>;

/// All precincts of a tile.
pub(super) fn precincts(header: &Header, tile: Area) -> Result<Precincts, Malformed> {
    let mut room = Room { precincts: PACKETS_MAX / usize::from(header.layers), blocks: CODE_BLOCKS_MAX };
    let of_component = |component: &Component| {
        let resolutions = (0..=component.levels)
            .map(|resolution| Partition::new(component, tile, resolution).precincts(&mut room));
        resolutions.collect()
    };
    let all: Option<Precincts> = header.components.iter().map(of_component).collect();
    all.ok_or(malformed(header.bytes, "more packets or code-blocks than can be worked on"))
}

/// How many more there may be.
struct Room {
    precincts: usize,
    blocks: usize,
}

/// How a resolution of a component is parted.
struct Partition {
    /// The component in the tile, in its own coordinates.
    area: Area,
    /// The resolution in its own coordinates.
    reduced: Area,
    tile: Area,
    step: (u8, u8),
    /// How often width and height were halved.
    shift: u32,
    precinct: (u32, u32),
    block: (u32, u32),
    /// Decompositions of the sub-bands, and their kinds: 1 where high frequencies are (across, down).
    depth: u32,
    bands: &'static [(u32, u32)],
}

impl Partition {
    fn new(component: &Component, tile: Area, resolution: u8) -> Self {
        let (across, down) = component.step;
        let area = Area {
            x0: tile.x0.div_ceil(across.into()),
            y0: tile.y0.div_ceil(down.into()),
            x1: tile.x1.div_ceil(across.into()),
            y1: tile.y1.div_ceil(down.into()),
        };
        let shift = u32::from(component.levels - resolution);
        let reduced = Area {
            x0: up(area.x0, shift),
            y0: up(area.y0, shift),
            x1: up(area.x1, shift),
            y1: up(area.y1, shift),
        };
        let (width, height) = component.coding.precinct(resolution);
        // In sub-bands, a precinct of a higher resolution is half as wide and high.
        let halved = u32::from(resolution > 0);
        let block = component.coding.block;
        Partition {
            area,
            reduced,
            tile,
            step: component.step,
            shift,
            precinct: (width.into(), height.into()),
            block: (
                u32::from(block.0).min(u32::from(width) - halved),
                u32::from(block.1).min(u32::from(height) - halved),
            ),
            depth: shift + halved,
            bands: if resolution == 0 { &[(0, 0)] } else { &[(1, 0), (0, 1), (1, 1)] },
        }
    }

    /// `None` if there are too many.
    fn precincts(&self, room: &mut Room) -> Option<Vec<Precinct>> {
        let Area { x0, y0, x1, y1 } = self.reduced;
        if x0 >= x1 || y0 >= y1 {
            return Some(Vec::new());
        }
        let columns = x0 >> self.precinct.0..up(x1, self.precinct.0);
        let rows = y0 >> self.precinct.1..up(y1, self.precinct.1);
        room.precincts = room.precincts.checked_sub(columns.len().checked_mul(rows.len())?)?;
        let mut precincts = Vec::with_capacity(columns.len() * rows.len());
        for (row, column) in rows.flat_map(|row| columns.clone().map(move |column| (row, column))) {
            let bands: Vec<_> = self.bands.iter().map(|band| self.blocks(*band, column, row)).collect();
            for (columns, rows) in &bands {
                room.blocks = room.blocks.checked_sub(*columns as usize * *rows as usize)?;
            }
            precincts.push(Precinct { bands, position: self.position(column, row) });
        }
        Some(precincts)
    }

    /// Columns and rows of the code-blocks that a precinct has in a sub-band.
    fn blocks(&self, (across, down): (u32, u32), column: u32, row: u32) -> (u32, u32) {
        let halved = u32::from(self.bands.len() > 1);
        let along = |from: u32, to: u32, high: u32, index: u32, precinct: u32, block: u32| {
            let size = precinct - halved;
            let begin = u64::from(band_edge(from, high, self.depth)).max(u64::from(index) << size);
            let end = u64::from(band_edge(to, high, self.depth)).min((u64::from(index) + 1) << size);
            if begin < end { (end.div_ceil(1 << block) - (begin >> block)) as u32 } else { 0 }
        };
        let Area { x0, y0, x1, y1 } = self.area;
        (
            along(x0, x1, across, column, self.precinct.0, self.block.0),
            along(y0, y1, down, row, self.precinct.1, self.block.1),
        )
    }

    fn position(&self, column: u32, row: u32) -> (u64, u64) {
        let along = |index: u32, precinct: u32, step: u8, from: u32| {
            let begins = (u128::from(index) << (precinct + self.shift)) * u128::from(step);
            u64::try_from(begins).unwrap_or(u64::MAX).max(from.into())
        };
        (
            along(row, self.precinct.1, self.step.1, self.tile.y0),
            along(column, self.precinct.0, self.step.0, self.tile.x0),
        )
    }
}

/// `value` divided by a power of two, rounded up.
pub(super) fn up(value: u32, shift: u32) -> u32 {
    u64::from(value).div_ceil(1 << shift) as u32
}

/// An edge of a sub-band (equation B-15). `high`: whether it has the high frequencies.
fn band_edge(edge: u32, high: u32, depth: u32) -> u32 {
    let half = if high == 1 { 1_u64 << (depth - 1) } else { 0 };
    u64::from(edge).saturating_sub(half).div_ceil(1 << depth) as u32
}
