//! How far pictures are reordered, from sequence parameter sets.

use super::bits::BitReader;

/// The most frames that either codec can reorder.
pub const MAX_REORDER: u8 = 16;

/// H.264: how many frames may come before a frame in decoding order and behind it in output
/// order (ITU-T H.264 sections 7.3.2.1.1 and E.1.1). `None` if the set does not say, or cannot be
/// read. The set is given with its NAL header.
pub fn h264_reorder(sps: &[u8]) -> Option<u8> {
    const BASELINE: u32 = 66;
    let mut bits = BitReader::nal(sps.get(1..)?);
    let profile = bits.bits(8)?;
    if profile == BASELINE {
        return Some(0);
    }
    bits.skip(16)?;
    bits.ue()?;
    if matches!(profile, 44 | 83 | 86 | 100 | 110 | 118 | 122 | 128 | 134 | 135 | 138 | 139 | 244) {
        skip_high_profile(&mut bits)?;
    }
    bits.ue()?;
    match bits.ue()? {
        0 => {
            bits.ue()?;
        }
        1 => {
            bits.skip(1)?;
            bits.ue()?;
            bits.ue()?;
            let cycle = bits.ue()?.min(255);
            (0..cycle).try_for_each(|_| bits.ue().map(drop))?;
        }
        // Output order is decoding order.
        2 => return Some(0),
        _ => return None,
    }
    bits.ue()?;
    bits.skip(1)?;
    bits.ue()?;
    bits.ue()?;
    if !bits.bit()? {
        bits.skip(1)?;
    }
    bits.skip(1)?;
    if bits.bit()? {
        (0..4).try_for_each(|_| bits.ue().map(drop))?;
    }
    if bits.bit()? { vui_reorder(&mut bits) } else { None }
}

fn skip_high_profile(bits: &mut BitReader<'_>) -> Option<()> {
    let chroma = bits.ue()?;
    if chroma == 3 {
        bits.skip(1)?;
    }
    bits.ue()?;
    bits.ue()?;
    bits.skip(1)?;
    if bits.bit()? {
        let lists = if chroma == 3 { 12 } else { 8 };
        for list in 0..lists {
            if bits.bit()? {
                skip_scaling_list(bits, if list < 6 { 16 } else { 64 })?;
            }
        }
    }
    Some(())
}

/// Section 7.3.2.1.1.1.
fn skip_scaling_list(bits: &mut BitReader<'_>, size: u32) -> Option<()> {
    let (mut last, mut next) = (8i64, 8i64);
    for _ in 0..size {
        if next != 0 {
            let code = i64::from(bits.ue()?);
            // se(v): 1, -1, 2, -2, …
            let delta = if code & 1 == 1 { code / 2 + 1 } else { -(code / 2) };
            next = (last + delta).rem_euclid(256);
        }
        if next != 0 {
            last = next;
        }
    }
    Some(())
}

fn vui_reorder(bits: &mut BitReader<'_>) -> Option<u8> {
    const EXTENDED_SAR: u32 = 255;
    if bits.bit()? && bits.bits(8)? == EXTENDED_SAR {
        bits.skip(32)?;
    }
    if bits.bit()? {
        bits.skip(1)?;
    }
    if bits.bit()? {
        bits.skip(4)?;
        if bits.bit()? {
            bits.skip(24)?;
        }
    }
    if bits.bit()? {
        bits.ue()?;
        bits.ue()?;
    }
    if bits.bit()? {
        bits.skip(65)?;
    }
    let nal = bits.bit()?;
    if nal {
        skip_hrd(bits)?;
    }
    let vcl = bits.bit()?;
    if vcl {
        skip_hrd(bits)?;
    }
    if nal || vcl {
        bits.skip(1)?;
    }
    bits.skip(1)?;
    if !bits.bit()? {
        return None;
    }
    bits.skip(1)?;
    (0..4).try_for_each(|_| bits.ue().map(drop))?;
    depth(bits.ue()?)
}

/// Section E.1.2.
fn skip_hrd(bits: &mut BitReader<'_>) -> Option<()> {
    let count = bits.ue()?.min(31);
    bits.skip(8)?;
    for _ in 0..=count {
        bits.ue()?;
        bits.ue()?;
        bits.skip(1)?;
    }
    bits.skip(20)
}

/// H.265: as [`h264_reorder`], of the highest temporal layer (ITU-T H.265 section 7.3.2.2.1).
pub fn h265_reorder(sps: &[u8]) -> Option<u8> {
    let mut bits = BitReader::nal(sps.get(2..)?);
    bits.skip(4)?;
    let sub_layers = bits.bits(3)?;
    bits.skip(1)?;
    skip_profile_tier_level(&mut bits, sub_layers)?;
    bits.ue()?;
    if bits.ue()? == 3 {
        bits.skip(1)?;
    }
    bits.ue()?;
    bits.ue()?;
    if bits.bit()? {
        (0..4).try_for_each(|_| bits.ue().map(drop))?;
    }
    (0..3).try_for_each(|_| bits.ue().map(drop))?;
    let listed = if bits.bit()? { sub_layers } else { 0 };
    let mut reorder = 0;
    for _ in 0..=listed {
        bits.ue()?;
        reorder = bits.ue()?;
        bits.ue()?;
    }
    depth(reorder)
}

/// Section 7.3.3.
fn skip_profile_tier_level(bits: &mut BitReader<'_>, sub_layers: u32) -> Option<()> {
    bits.skip(96)?;
    let mut present = 0;
    for _ in 0..sub_layers {
        present += if bits.bit()? { 88 } else { 0 };
        present += if bits.bit()? { 8 } else { 0 };
    }
    if sub_layers > 0 {
        bits.skip((8 - sub_layers) * 2)?;
    }
    bits.skip(present)
}

fn depth(value: u32) -> Option<u8> {
    u8::try_from(value).ok().filter(|depth| *depth <= MAX_REORDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_and_every_truncation_are_read_without_harm() {
        let sps =
            [0x67, 100, 0, 30, 0xac, 0xd9, 0x40, 0xa0, 0x2f, 0xf9, 0x70, 0x11, 0, 0, 3, 0, 1, 0, 0, 3, 0];
        for length in 0..sps.len() {
            assert_eq!(h264_reorder(&sps[..length]), None);
            assert_eq!(h265_reorder(&sps[..length]), None);
        }
        for byte in 0..=255 {
            let garbage = [byte; 300];
            assert!(h264_reorder(&garbage).is_none_or(|depth| depth <= MAX_REORDER));
            assert!(h265_reorder(&garbage).is_none_or(|depth| depth <= MAX_REORDER));
        }
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    #[test]
    fn sets_of_x264_tell_their_depth() {
        // -bf 0; -bf 2 without pyramid; -bf 3 with pyramid and HRD parameters.
        for (set, reorder) in [
            ("6764000dacb20283f60220000003002000000641e28549", 0),
            ("6764000dacd10141fb011000000300100000030320f1429120", 1),
            ("67640014acd94141fb01100000030010000003032604000f424001e84a4c30078a14cb", 2),
        ] {
            assert_eq!(h264_reorder(&bytes(set)), Some(reorder), "{set}");
        }
    }

    #[test]
    fn sets_of_x265_tell_their_depth() {
        // -bf 0; -bf 4; two temporal layers.
        for (set, reorder) in [
            ("42010101600000030090000003000003003ca00a080f16592a4932bc05a02000000300200000030321", 0),
            ("42010101600000030090000003000003003ca00a080f165959a4932bc05a020000030002000003003210", 2),
            (
                "42010201600000030090000003000003003c0000a00a080f1659594acb24995e02d01000000300100000\
                 03019080",
                2,
            ),
        ] {
            assert_eq!(h265_reorder(&bytes(&set.replace(' ', ""))), Some(reorder), "{set}");
        }
    }

    #[test]
    fn baseline_never_reorders() {
        assert_eq!(h264_reorder(&[0x67, 66, 0, 30]), Some(0));
    }
}
