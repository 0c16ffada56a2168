//! Numbers that are written as a mantissa and an exponent when they are large.

use core::time::Duration;

/// The value of a Max Resp Code of IGMPv3, or of a QQIC (RFC 3376 sections 4.1.1 and 4.1.7).
pub(super) const fn value8(code: u8) -> u32 {
    let code = code as u32;
    if code < 0x80 { code } else { ((code & 0x0f) | 0x10) << (((code >> 4) & 7) + 3) }
}

/// The code of the largest value that is not above this one.
pub(super) const fn code8(value: u32) -> u8 {
    match value {
        0..0x80 => value as u8,
        0x7c00.. => 0xff,
        _ => {
            let shift = 27 - value.leading_zeros();
            (0x80 | ((shift - 3) << 4) | ((value >> shift) & 0x0f)) as u8
        }
    }
}

/// The value of a Maximum Response Code of MLDv2 (RFC 3810 section 5.1.3).
pub(super) const fn value16(code: u16) -> u32 {
    let code = code as u32;
    if code < 0x8000 { code } else { ((code & 0x0fff) | 0x1000) << (((code >> 12) & 7) + 3) }
}

/// The code of the largest value that is not above this one.
pub(super) const fn code16(value: u32) -> u16 {
    match value {
        0..0x8000 => value as u16,
        0x7f_fc00.. => 0xffff,
        _ => {
            let shift = 19 - value.leading_zeros();
            (0x8000 | ((shift - 3) << 12) | ((value >> shift) & 0x0fff)) as u16
        }
    }
}

/// How many whole units of `unit_ms` milliseconds a time is.
pub(super) fn units(time: Duration, unit_ms: u128) -> u32 {
    u32::try_from(time.as_millis() / unit_ms).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_rfcs() {
        assert_eq!([value8(0x7f), value8(0x80), value8(0x81), value8(0xff)], [127, 128, 136, 31_744]);
        assert_eq!([value16(0x7fff), value16(0x8000), value16(0xffff)], [32_767, 32_768, 8_387_584]);
        assert!((0..=u8::MAX).all(|code| code8(value8(code)) == code));
        assert!((0..=u16::MAX).all(|code| code16(value16(code)) == code));
    }

    #[test]
    fn a_value_between_two_codes_is_rounded_down() {
        for value in (0..40_000).chain([1 << 20, u32::MAX]) {
            let code = code8(value);
            assert!(value8(code) <= value);
            assert!(code == 0xff || value8(code + 1) > value);
        }
        for value in (32_000..300_000).step_by(7).chain([1 << 22, u32::MAX]) {
            let code = code16(value);
            assert!(value16(code) <= value);
            assert!(code == 0xffff || value16(code + 1) > value);
        }
    }
}
