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

/// What the header of a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// 1 to 3.
    pub layer: u8,
    /// Samples a second.
    pub frequency_hz: u32,
    /// 1 or 2.
    pub channels: u8,
    /// Samples of each channel.
    pub samples: u32,
    /// Bytes of the frame, header included.
    pub length: usize,
}

impl FrameHeader {
    /// Reads the four bytes that a frame starts with; `None` if no frame starts here, or its length is not told
    /// (free format).
    pub fn parse(data: &[u8]) -> Option<Self> {
        let &[_, _, _, fourth, ..] = data else { return None };
        let Start { layer, divisor, frequency_hz, length } = Start::parse(data)?;
        let samples = match (layer, divisor) {
            (1, _) => 384,
            (3, 2 | 4) => 576,
            _ => 1152,
        };
        let channels = if fourth >> 6 == 3 { 1 } else { 2 };
        Some(FrameHeader { layer, frequency_hz, channels, samples, length })
    }
}

/// Bytes of the frame that starts with these, header included; `None` if no frame starts here, or
/// its length is not told (free format).
pub fn frame_length(data: &[u8]) -> Option<usize> {
    Start::parse(data).map(|start| start.length)
}

/// What the first three bytes of a header say.
struct Start {
    layer: u8,
    /// By which the sampling frequencies of MPEG-1 are divided.
    divisor: u32,
    frequency_hz: u32,
    length: usize,
}

impl Start {
    fn parse(data: &[u8]) -> Option<Self> {
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
            index => u32::from(*BIT_RATES[table].get(usize::from(index) - 1)?) * 1000,
        };
        let frequency_hz = *[44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))? / divisor;
        let padding = u32::from(third >> 1 & 1);
        let length = match (layer, divisor) {
            (1, _) => (12 * bit_rate / frequency_hz + padding) * 4,
            (3, 2 | 4) => 72 * bit_rate / frequency_hz + padding,
            _ => 144 * bit_rate / frequency_hz + padding,
        };
        Some(Start { layer, divisor, frequency_hz, length: usize::try_from(length).ok()? })
    }
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
    fn a_header_says_what_is_in_the_frame() {
        let of = |data: [u8; 4]| {
            let FrameHeader { layer, frequency_hz, channels, samples, .. } =
                FrameHeader::parse(&data).unwrap();
            (layer, frequency_hz, channels, samples)
        };
        // Layer II, 48 kHz, two channels; layer III, 44.1 kHz, one.
        assert_eq!(of([0xff, 0xfd, 0xe4, 0x00]), (2, 48_000, 2, 1152));
        assert_eq!(of([0xff, 0xfb, 0x90, 0xc0]), (3, 44_100, 1, 1152));
        // MPEG-2 layer III, 24 kHz, joint stereo; MPEG-2.5, 8 kHz; MPEG-1 layer I, 48 kHz.
        assert_eq!(of([0xff, 0xf3, 0x84, 0x40]), (3, 24_000, 2, 576));
        assert_eq!(of([0xff, 0xe3, 0x18, 0xc0]), (3, 8_000, 1, 576));
        assert_eq!(of([0xff, 0xff, 0xc4, 0x80]), (1, 48_000, 2, 384));
        assert_eq!(FrameHeader::parse(&[0xff, 0xfd, 0xe4]), None, "three bytes say too little");
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
