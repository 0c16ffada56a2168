//! What is done to images, whatever carries them.

use outflow_media::image::{Cpu, Pixels, Rect, Shape};
use outflow_media::jpeg2000::Selection;
use outflow_media::{image, jpeg2000};

use crate::Unfit;

/// What is done, in this order. The default is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recipe {
    /// Only this part is left.
    pub part: Option<Rect>,
    /// It is made smaller.
    pub size: Option<Size>,
    /// Its colour is taken out.
    pub gray: bool,
    /// Its pixels are laid out like this.
    pub pixels: Option<Pixels>,
}

/// How much smaller an image is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Width and height divided by this.
    Factor(usize),
    /// Divided by the smallest number that makes it fit into this width and height.
    Within(usize, usize),
}

impl Size {
    fn factor(self, width: usize, height: usize) -> usize {
        match self {
            Size::Factor(factor) => factor,
            Size::Within(most_wide, most_high) => {
                let along = |length: usize, most: usize| length / most.saturating_add(1) + 1;
                along(width, most_wide).max(along(height, most_high))
            }
        }
    }
}

impl Recipe {
    /// Whether nothing is done.
    pub fn is_nothing(&self) -> bool {
        *self == Recipe::default()
    }

    /// What it does to images of one shape, where there are pixels to work on.
    ///
    /// # Errors
    /// Nothing would be left of such an image.
    pub(super) fn resolve(&self, input: Shape) -> Result<Resolved, Unfit> {
        let Shape { pixels, width, height } = input;
        let whole = Rect { left: 0, top: 0, width, height };
        let mut rect = self.part.unwrap_or(whole).within(input).ok_or_else(|| {
            let what = format!("the part lies outside of an image of {width}x{height}");
            Unfit::new(what, "choose a part within it")
        })?;
        // Whole groups, of which each can be moved by itself.
        let (group, _) = pixels.group();
        rect.width = rect.width.next_multiple_of(group).min(width - rect.left);
        let cropped = Shape { width: rect.width, height: rect.height, ..input };
        let factor = self.size.map_or(1, |size| size.factor(cropped.width, cropped.height));
        let mut output = cropped;
        if factor != 1 {
            output = image::smaller(cropped, factor).ok_or_else(|| {
                let what = format!("{width}x{height} cannot be made {factor} times smaller");
                Unfit::new(what, format!("choose a size at most {} times smaller", image::FACTOR_MAX))
            })?;
        }
        output.pixels = self.pixels.unwrap_or(pixels);
        Ok(Resolved { input, rect, factor, gray: self.gray && pixels != Pixels::Gray, output })
    }

    /// What it leaves of a codestream.
    pub(super) fn selection(&self, header: &jpeg2000::Header) -> Selection {
        let whole = Selection { part: self.part, gray: self.gray, ..Selection::default() };
        let halved = match self.size {
            None => 0,
            // Only powers of two are there: rather smaller than larger.
            Some(Size::Factor(factor)) => factor.next_power_of_two().ilog2() as u8,
            Some(Size::Within(width, height)) => {
                let levels = header.components.iter().map(|component| component.levels).min();
                let fits = |halved: &u8| {
                    let (wide, high) = Selection { halved: *halved, ..whole }.size(header);
                    wide as usize <= width && high as usize <= height
                };
                let levels = levels.unwrap_or_default();
                (0..levels).find(fits).unwrap_or(levels)
            }
        };
        Selection { halved, ..whole }
    }
}

/// What is done to images of one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resolved {
    pub(super) input: Shape,
    /// What of it is left, in whole groups.
    pub(super) rect: Rect,
    /// This many columns and rows become one.
    pub(super) factor: usize,
    pub(super) gray: bool,
    pub(super) output: Shape,
}

impl Resolved {
    /// Whether a group of pixels becomes what it becomes without other groups.
    pub(super) fn stands_alone(&self) -> bool {
        let (from, to) = (self.input.pixels.group(), self.output.pixels.group());
        self.factor == 1 && from.0.is_multiple_of(to.0)
    }

    /// Whether all pixels stay where they are.
    pub(super) fn is_in_place(&self) -> bool {
        self.factor == 1 && self.output == self.input
    }

    /// The rows that a row of the result is made of.
    pub(super) fn rows(&self, line: usize) -> core::ops::Range<usize> {
        let first = self.rect.top + line * self.factor;
        first..first + self.factor
    }

    /// Where in such rows the bytes are that it is made of.
    pub(super) fn columns(&self) -> core::ops::Range<usize> {
        Rect { width: self.output.width * self.factor, ..self.rect }.bytes(self.input.pixels)
    }

    /// Takes the colour out of pixels, and lays them out for the output. `scratch` is for it alone.
    pub(super) fn colours(&self, cpu: Cpu, row: &[u8], out: &mut [u8], scratch: &mut Vec<u8>) {
        let (from, to) = (self.input.pixels, self.output.pixels);
        if from == to {
            image::convert(cpu, (from, row), (to, out));
            if self.gray {
                image::gray(cpu, from, out);
            }
        } else if self.gray && to != Pixels::Gray {
            scratch.clear();
            scratch.extend_from_slice(row);
            image::gray(cpu, from, scratch);
            image::convert(cpu, (from, scratch), (to, out));
        } else {
            image::convert(cpu, (from, row), (to, out));
        }
    }
}

/// Makes the result of whole images, row by row, so that what is worked on stays in the caches.
#[derive(Debug)]
pub(super) struct Lines {
    cpu: Cpu,
    cropped: Vec<u8>,
    small: Vec<u8>,
    line: Vec<u8>,
    scratch: Vec<u8>,
}

impl Lines {
    pub(super) fn new(cpu: Cpu) -> Self {
        let empty = Vec::new;
        Lines { cpu, cropped: empty(), small: empty(), line: empty(), scratch: empty() }
    }

    /// A row of the result. `image` is as large as the shape says.
    pub(super) fn line<'a>(&'a mut self, resolved: &Resolved, image: &'a [u8], number: usize) -> &'a [u8] {
        let Lines { cpu, cropped, small, line, scratch } = self;
        let row_bytes = resolved.input.row_bytes();
        let rows = resolved.rows(number);
        let rows = &image[rows.start * row_bytes..rows.end * row_bytes];
        let columns = resolved.columns();
        let row = if resolved.factor == 1 {
            &rows[columns]
        } else {
            cropped.clear();
            small.clear();
            rows.chunks_exact(row_bytes).for_each(|row| cropped.extend_from_slice(&row[columns.clone()]));
            let shape = Shape {
                width: resolved.output.width * resolved.factor,
                height: resolved.factor,
                ..resolved.input
            };
            image::shrink(*cpu, shape, cropped, resolved.factor, small);
            &small[..]
        };
        if !resolved.gray && resolved.input.pixels == resolved.output.pixels {
            return row;
        }
        line.resize(resolved.output.row_bytes(), 0);
        resolved.colours(*cpu, row, line, scratch);
        line
    }
}
