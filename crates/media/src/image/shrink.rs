//! Images made smaller: each pixel of the result is the mean of a square of pixels.

use fearless_simd::{Simd, dispatch};

use super::{Cpu, Pixels, Shape};

/// Rows and columns that become one, at most: sums of their squares stay within 32 bits.
pub const FACTOR_MAX: usize = 64;

/// Adds an image of a `factor`-th of the width and height to `out`, and returns its shape. What is
/// left over at the right and at the bottom is left out; of two pixels that share their colour
/// (4:2:2), both or none are there.
///
/// `None` if nothing is left, or `factor` is not within 1 to [`FACTOR_MAX`].
pub fn shrink(cpu: Cpu, shape: Shape, image: &[u8], factor: usize, out: &mut Vec<u8>) -> Option<Shape> {
    let small = smaller(shape, factor)?;
    let lots = image.chunks_exact(shape.row_bytes() * factor).take(small.height);
    let start = out.len();
    out.resize(start + small.bytes(), 0);
    let results = out[start..].chunks_exact_mut(small.row_bytes());
    for (rows, result) in lots.zip(results) {
        dispatch!(cpu.0, simd => rows_into(simd, shape, rows, factor, result));
    }
    Some(small)
}

/// The shape of what [`shrink`] makes.
pub fn smaller(shape: Shape, factor: usize) -> Option<Shape> {
    let (group, _) = shape.pixels.group();
    let width = shape.width.checked_div(factor)? / group * group;
    let height = shape.height / factor;
    (width > 0 && height > 0 && factor <= FACTOR_MAX).then_some(Shape { width, height, ..shape })
}

/// As many rows as become one.
#[inline(always)]
fn rows_into<S: Simd>(_: S, shape: Shape, rows: &[u8], factor: usize, result: &mut [u8]) {
    let row_bytes = shape.row_bytes();
    match (shape.pixels, factor) {
        (_, 1) => result.copy_from_slice(&rows[..result.len()]),
        (Pixels::Gray, 2) => halve::<1>(rows.split_at(row_bytes), result),
        (Pixels::Rgb, 2) => halve::<3>(rows.split_at(row_bytes), result),
        (Pixels::Uyvy, 2) => halve_uyvy(rows.split_at(row_bytes), result),
        (Pixels::Gray, _) => mean::<1>(rows, row_bytes, factor, result),
        (Pixels::Rgb, _) => mean::<3>(rows, row_bytes, factor, result),
        (Pixels::Uyvy, _) => uyvy(rows, row_bytes, factor, result),
    }
}

/// Two rows of pixels of `N` bytes.
#[inline(always)]
fn halve<const N: usize>((above, below): (&[u8], &[u8]), result: &mut [u8]) {
    let pairs = above.chunks_exact(2 * N).zip(below.chunks_exact(2 * N));
    for ((above, below), pixel) in pairs.zip(result.as_chunks_mut::<N>().0) {
        for (channel, value) in pixel.iter_mut().enumerate() {
            let of = |row: &[u8]| u16::from(row[channel]) + u16::from(row[channel + N]);
            *value = ((of(above) + of(below) + 2) >> 2) as u8;
        }
    }
}

/// Two rows of groups: four pixels and their two colours in each become two pixels and one colour.
#[inline(always)]
fn halve_uyvy((above, below): (&[u8], &[u8]), result: &mut [u8]) {
    let rows = above.as_chunks::<8>().0.iter().zip(below.as_chunks::<8>().0);
    for ((above, below), group) in rows.zip(result.as_chunks_mut::<4>().0) {
        let of = |a: usize, b: usize| {
            let sum = |row: &[u8; 8]| u16::from(row[a]) + u16::from(row[b]);
            ((sum(above) + sum(below) + 2) >> 2) as u8
        };
        *group = [of(0, 4), of(1, 3), of(2, 6), of(5, 7)];
    }
}

/// Squares of pixels of `N` bytes.
#[inline(always)]
fn mean<const N: usize>(rows: &[u8], row_bytes: usize, factor: usize, result: &mut [u8]) {
    let samples = (factor * factor) as u32;
    for (index, pixel) in result.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        for (channel, value) in pixel.iter_mut().enumerate() {
            let first = index * factor * N + channel;
            *value = rounded(square(rows, row_bytes, (first, N), factor), samples);
        }
    }
}

/// Cb and Cr are there once for two pixels: of a square that becomes two pixels, each has a half.
#[inline(always)]
fn uyvy(rows: &[u8], row_bytes: usize, factor: usize, result: &mut [u8]) {
    let samples = (factor * factor) as u32;
    for (index, group) in result.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let first = index * factor * 4;
        let of = |from, step| rounded(square(rows, row_bytes, (first + from, step), factor), samples);
        *group = [of(0, 4), of(1, 2), of(2, 4), of(1 + 2 * factor, 2)];
    }
}

/// The sum of `factor` samples in each of `factor` rows, from byte `from` on, `step` bytes apart.
#[inline(always)]
fn square(rows: &[u8], row_bytes: usize, (from, step): (usize, usize), factor: usize) -> u32 {
    let of_row =
        |row: &[u8]| row[from..].iter().step_by(step).take(factor).map(|v| u32::from(*v)).sum::<u32>();
    rows.chunks_exact(row_bytes).map(of_row).sum()
}

#[inline(always)]
fn rounded(sum: u32, samples: u32) -> u8 {
    ((sum + samples / 2) / samples) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The value of a channel (or of one of two lumas) at a pixel.
    fn sample(shape: Shape, image: &[u8], (x, y): (usize, usize), channel: usize) -> u32 {
        let at = match (shape.pixels, channel) {
            (Pixels::Gray, _) => x,
            (Pixels::Rgb, channel) => 3 * x + channel,
            (Pixels::Uyvy, 0) => 2 * x + 1,
            (Pixels::Uyvy, colour) => x / 2 * 4 + (colour - 1) * 2,
        };
        u32::from(image[y * shape.row_bytes() + at])
    }

    fn channels(pixels: Pixels) -> usize {
        if pixels == Pixels::Gray { 1 } else { 3 }
    }

    proptest! {
        #[test]
        fn each_pixel_is_the_mean_of_its_square(
            pixels in prop::sample::select(&Pixels::ALL[..]),
            (width, height) in (1..40_usize, 1..12_usize),
            factor in 1..5_usize,
            seed in any::<u64>(),
        ) {
            let shape = Shape { pixels, width, height };
            let mut chance = fastrand::Rng::with_seed(seed);
            let image: Vec<u8> = core::iter::repeat_with(|| chance.u8(..)).take(shape.bytes()).collect();
            let mut out = vec![7];
            let Some(small) = shrink(Cpu::detect(), shape, &image, factor, &mut out) else {
                prop_assert!(width / factor < pixels.group().0 || height < factor);
                return Ok(());
            };
            prop_assert_eq!(out.len(), 1 + small.bytes());
            for (x, y) in (0..small.height).flat_map(|y| (0..small.width).map(move |x| (x, y))) {
                for channel in 0..channels(pixels) {
                    // Colour of 4:2:2 is that of the pair.
                    let shared = pixels == Pixels::Uyvy && channel > 0;
                    let (x, wide) = if shared { (x / 2 * 2, 2 * factor) } else { (x, factor) };
                    let (columns, rows) = (x * factor..x * factor + wide, y * factor..(y + 1) * factor);
                    let square = rows.flat_map(|y| columns.clone().map(move |x| (x, y)));
                    let sum: u32 = square.map(|at| sample(shape, &image, at, channel)).sum();
                    let count = (wide * factor) as u32;
                    let mean = (sum + count / 2) / count;
                    let value = sample(small, &out[1..], (x, y), channel);
                    prop_assert_eq!(value, mean, "{} {} {}", x, y, channel);
                }
            }
        }
    }

    #[test]
    fn factors_out_of_reach_make_nothing() {
        let shape = Shape { pixels: Pixels::Gray, width: 100, height: 100 };
        for factor in [0, FACTOR_MAX + 1, usize::MAX] {
            assert_eq!(smaller(shape, factor), None, "{factor}");
        }
        assert_eq!(smaller(Shape { width: 3, ..shape }, 4), None);
    }
}
