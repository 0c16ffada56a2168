//! Opus packets (RFC 6716, section 3).

/// Samples at 48 kHz that a packet may have (RFC 6716, section 3.2.5: 120 ms).
const SAMPLES_MAX: u32 = 5_760;

/// How long a packet sounds, in samples at 48 kHz (RFC 6716, section 3.1); `None` if it is none.
pub fn samples(packet: &[u8]) -> Option<u32> {
    let first = *packet.first()?;
    let config = first >> 3;
    let frame = match config {
        // 10, 20, 40 and 60 ms; 10 and 20 ms; 2.5, 5, 10 and 20 ms.
        0..=11 => [480, 960, 1_920, 2_880][usize::from(config % 4)],
        12..=15 => [480, 960][usize::from(config % 2)],
        _ => [120, 240, 480, 960][usize::from(config % 4)],
    };
    let frames = match first & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3f),
    };
    Some(frame * frames).filter(|samples| (1..=SAMPLES_MAX).contains(samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_say_how_long_it_sounds() {
        // Hybrid of 20 ms, CELT of 20 ms twice, three frames of 2.5 ms, SILK of 60 ms.
        for (packet, expected) in [(&[0x78][..], 960), (&[0xfd], 1_920), (&[0x83, 3], 360), (&[0x18], 2_880)]
        {
            assert_eq!(samples(packet), Some(expected), "{packet:?}");
        }
        for none in [&[][..], &[0x83], &[0x83, 0], &[0x1b, 3]] {
            assert_eq!(samples(none), None, "{none:?}");
        }
    }
}
