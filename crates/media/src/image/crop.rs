//! A part of an image.

use super::{Pixels, Shape};

/// A part of an image, in pixels from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rect {
    /// Pixels left of it.
    pub left: usize,
    /// Rows above it.
    pub top: usize,
    /// Pixels of its rows.
    pub width: usize,
    /// Its rows.
    pub height: usize,
}

impl Rect {
    /// The part of this rectangle that lies within an image, moved to where groups begin; `None` if
    /// nothing is left of it.
    pub fn within(self, shape: Shape) -> Option<Rect> {
        let (group, _) = shape.pixels.group();
        let left = self.left.min(shape.width) / group * group;
        let right = self.left.saturating_add(self.width).min(shape.width);
        let top = self.top.min(shape.height);
        let bottom = self.top.saturating_add(self.height).min(shape.height);
        let rect = Rect { left, top, width: right.saturating_sub(left), height: bottom - top };
        (rect.width > 0 && rect.height > 0).then_some(rect)
    }

    /// Where in a row its bytes are.
    pub fn bytes(self, pixels: Pixels) -> core::ops::Range<usize> {
        let left = pixels.row_bytes(self.left);
        left..left + pixels.row_bytes(self.width)
    }
}

/// Adds the part `rect` (as [`Rect::within`] gives it) of an image to `out`. Rows that are not there
/// are left out.
pub fn crop(shape: Shape, image: &[u8], rect: Rect, out: &mut Vec<u8>) {
    let columns = rect.bytes(shape.pixels);
    let rows = image.chunks_exact(shape.row_bytes().max(1)).skip(rect.top).take(rect.height);
    for row in rows {
        out.extend_from_slice(row.get(columns.clone()).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_what_lies_there() {
        let shape = Shape { pixels: Pixels::Gray, width: 5, height: 4 };
        let image: Vec<u8> = (0..20).collect();
        let rect = Rect { left: 1, top: 2, width: 3, height: 9 }.within(shape).expect("in it");
        let mut out = Vec::new();
        crop(shape, &image, rect, &mut out);
        assert_eq!(out, [11, 12, 13, 16, 17, 18]);
    }

    #[test]
    fn parts_begin_where_a_group_does() {
        let shape = Shape { pixels: Pixels::Uyvy, width: 8, height: 1 };
        let image: Vec<u8> = (0..16).collect();
        let rect = Rect { left: 3, top: 0, width: 3, height: 1 }.within(shape).expect("in it");
        assert_eq!(rect, Rect { left: 2, top: 0, width: 4, height: 1 });
        let mut out = Vec::new();
        crop(shape, &image, rect, &mut out);
        assert_eq!(out, [4, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn what_lies_outside_is_nothing() {
        let shape = Shape { pixels: Pixels::Rgb, width: 8, height: 8 };
        let far = usize::MAX;
        for rect in [
            Rect { left: 8, top: 0, width: 1, height: 1 },
            Rect { left: 0, top: far, width: 1, height: far },
            Rect { left: far, top: 0, width: far, height: 1 },
            Rect { left: 0, top: 0, width: 0, height: 1 },
        ] {
            assert_eq!(rect.within(shape), None, "{rect:?}");
        }
    }
}
