//! Colour taken out.

use fearless_simd::{Simd, dispatch};

use super::convert::luma;
use super::planes::{self, BLOCK};
use super::{Cpu, Pixels};

/// Takes the colour out of whole groups, in place: they lie as before, so that a fragment of an image
/// stays a fragment of the same size. A part of a group at the end is left alone.
pub fn gray(cpu: Cpu, pixels: Pixels, bytes: &mut [u8]) {
    match pixels {
        Pixels::Rgb => dispatch!(cpu.0, simd => rgb(simd, bytes)),
        Pixels::Gray => {}
        Pixels::Uyvy => dispatch!(cpu.0, simd => uyvy(simd, bytes)),
    }
}

#[inline(always)]
fn rgb<S: Simd>(simd: S, bytes: &mut [u8]) {
    let (blocks, rest) = bytes.as_chunks_mut::<BLOCK>();
    for block in blocks {
        planes::triple(simd, planes::luma(simd, block), block);
    }
    for pixel in rest.as_chunks_mut::<3>().0 {
        *pixel = [luma(*pixel); 3];
    }
}

#[inline(always)]
fn uyvy<S: Simd>(_: S, bytes: &mut [u8]) {
    for group in bytes.as_chunks_mut::<4>().0 {
        // The middle of Cb and Cr is no colour.
        (group[0], group[2]) = (128, 128);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gray_pixels_have_the_luma_that_they_had() {
        let mut bytes = [255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9];
        gray(Cpu::detect(), Pixels::Rgb, &mut bytes);
        // ITU-R BT.601: 0.299, 0.587, 0.114, in 256ths. The rest is no whole pixel.
        assert_eq!(bytes, [255, 255, 255, 0, 0, 0, 77, 77, 77, 149, 149, 149, 29, 29, 29, 9, 9]);
        let mut bytes = [90, 16, 240, 235, 1, 2];
        gray(Cpu::detect(), Pixels::Uyvy, &mut bytes);
        assert_eq!(bytes, [128, 16, 128, 235, 1, 2]);
        let mut bytes = [1, 2, 3];
        gray(Cpu::detect(), Pixels::Gray, &mut bytes);
        assert_eq!(bytes, [1, 2, 3]);
    }

    #[test]
    fn fragments_become_what_the_whole_becomes() {
        let cpu = Cpu::detect();
        for pixels in Pixels::ALL {
            let (_, group) = pixels.group();
            let mut whole: Vec<u8> = (0..600_usize * group).map(|i| (i * 7919 % 251) as u8).collect();
            let mut parts = whole.clone();
            gray(cpu, pixels, &mut whole);
            parts.chunks_mut(37 * group).for_each(|part| gray(cpu, pixels, part));
            assert_eq!(parts, whole, "{pixels:?}");
        }
    }
}
