//! From one way to lay pixels out to another.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, dispatch};

use super::planes::{self, BLOCK};
use super::{Cpu, Pixels};

/// Writes a row of `from` pixels to `out` as `to` pixels, as many as both have whole groups for.
/// Colours are those of ITU-R BT.601 (as JPEG and RFC 4175 without another `colorimetry` have them).
pub fn convert(cpu: Cpu, (from, row): (Pixels, &[u8]), (to, out): (Pixels, &mut [u8])) {
    use Pixels::{Gray, Rgb, Uyvy};
    match (from, to) {
        (Rgb, Rgb) | (Gray, Gray) | (Uyvy, Uyvy) => {
            let bytes = row.len().min(out.len());
            out[..bytes].copy_from_slice(&row[..bytes]);
        }
        (Rgb, Gray) => dispatch!(cpu.0, simd => rgb_to_gray(simd, row, out)),
        (Gray, Rgb) => dispatch!(cpu.0, simd => each(simd, row, out, |[y]: [u8; 1]| [y; 3])),
        (Uyvy, Gray) => dispatch!(cpu.0, simd => each(simd, row, out, |[_, y0, _, y1]: [u8; 4]| {
            [full(y0), full(y1)]
        })),
        (Gray, Uyvy) => dispatch!(cpu.0, simd => each(simd, row, out, |[y0, y1]: [u8; 2]| {
            [128, narrow(y0), 128, narrow(y1)]
        })),
        (Rgb, Uyvy) => dispatch!(cpu.0, simd => each(simd, row, out, to_uyvy)),
        (Uyvy, Rgb) => dispatch!(cpu.0, simd => each(simd, row, out, from_uyvy)),
    }
}

/// Group by group.
#[inline(always)]
fn each<S: Simd, const A: usize, const B: usize>(
    _: S,
    row: &[u8],
    out: &mut [u8],
    convert: impl Fn([u8; A]) -> [u8; B],
) {
    for (from, to) in row.as_chunks::<A>().0.iter().zip(out.as_chunks_mut::<B>().0) {
        *to = convert(*from);
    }
}

#[inline(always)]
fn rgb_to_gray<S: Simd>(simd: S, row: &[u8], out: &mut [u8]) {
    let (blocks, lumas) = (row.as_chunks::<BLOCK>().0, out.as_chunks_mut::<16>().0);
    let whole = blocks.len().min(lumas.len());
    for (block, luma) in blocks.iter().zip(lumas) {
        planes::luma(simd, block).store_slice(luma);
    }
    each(simd, &row[BLOCK * whole..], &mut out[16 * whole..], |pixel: [u8; 3]| [luma(pixel)]);
}

/// Luma of 0 to 255 (0.299, 0.587, 0.114 in 256ths).
#[inline(always)]
pub(super) fn luma([r, g, b]: [u8; 3]) -> u8 {
    ((77 * u16::from(r) + 150 * u16::from(g) + 29 * u16::from(b) + 128) >> 8) as u8
}

/// Luma of 16 to 235 as one of 0 to 255.
#[inline(always)]
fn full(y: u8) -> u8 {
    ((298 * (i32::from(y) - 16) + 128) >> 8).clamp(0, 255) as u8
}

/// The other way round.
#[inline(always)]
fn narrow(y: u8) -> u8 {
    (((220 * u16::from(y) + 128) >> 8) + 16).min(235) as u8
}

#[inline(always)]
fn to_uyvy([r0, g0, b0, r1, g1, b1]: [u8; 6]) -> [u8; 4] {
    let luma = |r: u8, g: u8, b: u8| {
        (((66 * i32::from(r) + 129 * i32::from(g) + 25 * i32::from(b) + 128) >> 8) + 16) as u8
    };
    // Of both pixels together, hence the ninth bit.
    let both = |a: u8, b: u8| i32::from(a) + i32::from(b);
    let (r, g, b) = (both(r0, r1), both(g0, g1), both(b0, b1));
    let colour = |sum: i32| (((sum + 256) >> 9) + 128) as u8;
    [
        colour(-38 * r - 74 * g + 112 * b),
        luma(r0, g0, b0),
        colour(112 * r - 94 * g - 18 * b),
        luma(r1, g1, b1),
    ]
}

#[inline(always)]
fn from_uyvy([cb, y0, cr, y1]: [u8; 4]) -> [u8; 6] {
    let (cb, cr) = (i32::from(cb) - 128, i32::from(cr) - 128);
    let (red, green, blue) = (409 * cr, -100 * cb - 208 * cr, 516 * cb);
    let pixel = |y: u8| {
        let y = 298 * (i32::from(y) - 16) + 128;
        [y + red, y + green, y + blue].map(|value| (value >> 8).clamp(0, 255) as u8)
    };
    let ([r0, g0, b0], [r1, g1, b1]) = (pixel(y0), pixel(y1));
    [r0, g0, b0, r1, g1, b1]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn converted(from: Pixels, row: &[u8], to: Pixels) -> Vec<u8> {
        let (pixels, bytes) = from.group();
        let mut out = vec![0; to.row_bytes(row.len() / bytes * pixels)];
        convert(Cpu::detect(), (from, row), (to, &mut out));
        out
    }

    /// ITU-R BT.601 with 16 to 235 (luma) and 16 to 240 (colour), computed with real numbers.
    fn reference([r, g, b]: [f64; 3]) -> [f64; 3] {
        let y = 0.299 * r + 0.587 * g + 0.114 * b;
        let scaled = |difference: f64, range: f64| 128.0 + 112.0 / 255.0 * difference / range;
        [16.0 + 219.0 / 255.0 * y, scaled(b - y, 0.886), scaled(r - y, 0.701)]
    }

    fn near(value: u8, exact: f64, tolerance: f64) -> bool {
        (f64::from(value) - exact).abs() <= tolerance
    }

    proptest! {
        #[test]
        fn colours_are_those_of_bt_601(pixel in any::<[u8; 3]>()) {
            let exact = reference(pixel.map(f64::from));
            let uyvy = converted(Pixels::Rgb, &[pixel, pixel].concat(), Pixels::Uyvy);
            prop_assert!(near(uyvy[1], exact[0], 1.0) && uyvy[1] == uyvy[3], "{:?} {:?}", uyvy, exact);
            let colours = near(uyvy[0], exact[1], 1.0) && near(uyvy[2], exact[2], 1.0);
            prop_assert!(colours, "{:?} {:?}", uyvy, exact);
            let back = converted(Pixels::Uyvy, &uyvy, Pixels::Rgb);
            for (value, was) in back.iter().zip(pixel) {
                prop_assert!(near(*value, f64::from(was), 5.0), "{:?} from {:?}", back, pixel);
            }
        }

        #[test]
        fn gray_comes_back_as_it_was(row in prop::collection::vec(any::<u8>(), 0..300)) {
            let whole = row.len() / 2 * 2;
            let rgb = converted(Pixels::Gray, &row, Pixels::Rgb);
            prop_assert_eq!(&converted(Pixels::Rgb, &rgb, Pixels::Gray), &row);
            let uyvy = converted(Pixels::Gray, &row[..whole], Pixels::Uyvy);
            let back = converted(Pixels::Uyvy, &uyvy, Pixels::Gray);
            for (value, was) in back.iter().zip(&row) {
                prop_assert!(near(*value, f64::from(*was), 1.5), "{} from {}", value, was);
            }
        }
    }

    #[test]
    fn black_and_white_are_exact() {
        let row = [0, 0, 0, 255, 255, 255];
        let uyvy = converted(Pixels::Rgb, &row, Pixels::Uyvy);
        assert_eq!(uyvy, [128, 16, 128, 235]);
        assert_eq!(converted(Pixels::Uyvy, &uyvy, Pixels::Rgb), row);
        assert_eq!(converted(Pixels::Uyvy, &uyvy, Pixels::Gray), [0, 255]);
    }

    proptest! {
        #[test]
        fn luma_is_the_same_sixteen_at_a_time_and_alone(
            row in prop::collection::vec(any::<u8>(), 0..300),
            room in 0..100_usize,
        ) {
            let pixels = row.as_chunks::<3>().0;
            let mut expected: Vec<u8> = pixels.iter().take(room).map(|pixel| luma(*pixel)).collect();
            expected.resize(room, 7);
            let mut out = vec![7; room];
            convert(Cpu::detect(), (Pixels::Rgb, &row), (Pixels::Gray, &mut out));
            prop_assert_eq!(out, expected);
            let (mut gray, whole) = (row.clone(), 3 * pixels.len());
            super::super::gray(Cpu::detect(), Pixels::Rgb, &mut gray);
            let expected: Vec<u8> = pixels.iter().flat_map(|pixel| [luma(*pixel); 3]).collect();
            prop_assert_eq!(&gray[..whole], &expected);
            prop_assert_eq!(&gray[whole..], &row[whole..]);
        }
    }

    #[test]
    fn what_does_not_fit_is_left() {
        let mut out = [1; 5];
        convert(Cpu::detect(), (Pixels::Gray, &[7, 8, 9]), (Pixels::Rgb, &mut out));
        assert_eq!(out, [7, 7, 7, 1, 1]);
    }
}
