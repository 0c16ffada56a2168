//! Sixteen pixels of three bytes at once: a vector for each channel.
//!
//! Compilers make little of bytes that lie three apart, so that this is said by hand.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, u8x16};

/// Bytes of sixteen pixels.
pub(super) const BLOCK: usize = 48;

/// Which byte of the n-th sixteen bytes goes where in the vector of a channel; nothing does where it
/// is no number of a byte.
const SPLIT: [[[u8; 16]; 3]; 3] = split_table();
/// Which pixel's value goes where in the n-th sixteen bytes.
const TRIPLE: [[u8; 16]; 3] = triple_table();

const fn split_table() -> [[[u8; 16]; 3]; 3] {
    let mut table = [[[u8::MAX; 16]; 3]; 3];
    let mut at = 0;
    while at < BLOCK {
        table[at % 3][at / 16][at / 3] = (at % 16) as u8;
        at += 1;
    }
    table
}

const fn triple_table() -> [[u8; 16]; 3] {
    let mut table = [[0; 16]; 3];
    let mut at = 0;
    while at < BLOCK {
        table[at / 16][at % 16] = (at / 3) as u8;
        at += 1;
    }
    table
}

/// Luma of sixteen pixels: 0.299, 0.587, 0.114 in 256ths, as [`super::convert::luma`].
#[inline(always)]
pub(super) fn luma<S: Simd>(simd: S, block: &[u8; BLOCK]) -> u8x16<S> {
    let parts = [0, 16, 32].map(|at| u8x16::from_slice(simd, &block[at..at + 16]));
    let channel = |channel: usize| {
        let of =
            |part: usize| parts[part].swizzle_dyn_precise(u8x16::from_slice(simd, &SPLIT[channel][part]));
        of(0) | of(1) | of(2)
    };
    let weighted = |index: usize, weight: u8| channel(index).widening_mul(u8x16::splat(simd, weight));
    let (red, green, blue) = (weighted(0, 77), weighted(1, 150), weighted(2, 29));
    let low = (red.0 + green.0 + blue.0 + 128) >> 8;
    let high = (red.1 + green.1 + blue.1 + 128) >> 8;
    low.narrow(high)
}

/// Writes each of sixteen values three times.
#[inline(always)]
pub(super) fn triple<S: Simd>(simd: S, values: u8x16<S>, block: &mut [u8; BLOCK]) {
    for (part, order) in block.as_chunks_mut::<16>().0.iter_mut().zip(&TRIPLE) {
        values.swizzle_dyn_precise(u8x16::from_slice(simd, order)).store_slice(part);
    }
}
