//! Frame headers of MPEG audio (ISO/IEC 11172-3 section 2.4.1.3, ISO/IEC 13818-3 section 2.4.2.3).

/// Kilobits a second by bit rate index: MPEG-1 layers I, II, III, then the lower sampling
/// frequencies of MPEG-2: layer I, layers II and III.
const BIT_RATES: [[u16; 14]; 5] = [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];

/// Bytes of the frame that starts with these, header included; `None` if no frame starts here, or
/// its length is not told (free format).
pub fn frame_length(data: &[u8]) -> Option<usize> {
    let &[0xff, second, third, ..] = data else { return None };
    if second & 0xe0 != 0xe0 {
        return None;
    }
    let divisor = match second >> 3 & 3 {
        3 => 1,
        2 => 2,
        0 => 4,
        _ => return None,
    };
    let layer = match second >> 1 & 3 {
        0 => return None,
        code => 4 - code,
    };
    let table = match (divisor, layer) {
        (1, layer) => usize::from(layer) - 1,
        (_, 1) => 3,
        _ => 4,
    };
    let bit_rate = match third >> 4 {
        0 => return None,
        index => usize::from(*BIT_RATES[table].get(usize::from(index) - 1)?) * 1000,
    };
    let frequency = *[44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))? / divisor;
    let padding = usize::from(third >> 1 & 1);
    Some(match (layer, divisor) {
        (1, _) => (12 * bit_rate / frequency + padding) * 4,
        (3, 2 | 4) => 72 * bit_rate / frequency + padding,
        _ => 144 * bit_rate / frequency + padding,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_common_frames() {
        // Layer II, 48 kHz, 384 kbit/s; layer III, 44.1 kHz, 128 kbit/s, without and with padding.
        assert_eq!(frame_length(&[0xff, 0xfd, 0xe4, 0]), Some(1152));
        assert_eq!(frame_length(&[0xff, 0xfb, 0x90, 0]), Some(417));
        assert_eq!(frame_length(&[0xff, 0xfb, 0x92, 0]), Some(418));
        // MPEG-2 layer III, 24 kHz, 64 kbit/s; MPEG-1 layer I, 48 kHz, 384 kbit/s.
        assert_eq!(frame_length(&[0xff, 0xf3, 0x84, 0]), Some(192));
        assert_eq!(frame_length(&[0xff, 0xff, 0xc4, 0]), Some(384));
    }

    #[test]
    fn what_is_no_header_has_no_length() {
        for data in [
            &[][..],
            &[0xff, 0xfb],
            &[0xfe, 0xfb, 0x90],
            &[0xff, 0x1b, 0x90],
            &[0xff, 0xeb, 0x90],
            &[0xff, 0xf9, 0x90],
            &[0xff, 0xfb, 0x00],
            &[0xff, 0xfb, 0xf0],
            &[0xff, 0xfb, 0x9c],
        ] {
            assert_eq!(frame_length(data), None, "{data:x?}");
        }
    }
}
