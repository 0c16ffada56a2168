//! More channels into two (ITU-R BS.775-4, annex 4).

use std::f32::consts::FRAC_1_SQRT_2;

/// What a channel adds to the left and to the right one.
type Gains = [f32; 2];

/// All is 3 dB less than the recommendation has it, as a sum of several channels may be louder than each of them.
const LEFT: Gains = [FRAC_1_SQRT_2, 0.0];
const RIGHT: Gains = [0.0, FRAC_1_SQRT_2];
const CENTRE: Gains = [0.5, 0.5];
const LEFT_BEHIND: Gains = [0.5, 0.0];
const RIGHT_BEHIND: Gains = [0.0, 0.5];
const BEHIND: Gains = [0.5 * FRAC_1_SQRT_2, 0.5 * FRAC_1_SQRT_2];
/// The low frequency effects are left out.
const LOW: Gains = [0.0, 0.0];

/// How this number of channels is mixed to two; `None` if it is not known. They are in the order in which they are decoded:
/// front left and right, centre, low frequencies, behind left and right, further ones at the sides.
pub(crate) fn gains(channels: usize) -> Option<&'static [Gains]> {
    Some(match channels {
        3 => &[LEFT, RIGHT, CENTRE],
        4 => &[LEFT, RIGHT, CENTRE, BEHIND],
        5 => &[LEFT, RIGHT, CENTRE, LEFT_BEHIND, RIGHT_BEHIND],
        6 => &[LEFT, RIGHT, CENTRE, LOW, LEFT_BEHIND, RIGHT_BEHIND],
        8 => &[LEFT, RIGHT, CENTRE, LOW, LEFT_BEHIND, RIGHT_BEHIND, LEFT_BEHIND, RIGHT_BEHIND],
        _ => return None,
    })
}

/// Two channels of one sample.
pub(crate) fn mix(samples: &[f32], gains: &[Gains]) -> [f32; 2] {
    let zero = [0.0; 2];
    samples.iter().zip(gains).fold(zero, |[left, right], (sample, [to_left, to_right])| {
        [left + sample * to_left, right + sample * to_right]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_gets_its_own_and_half_of_the_centre() {
        let gains = gains(6).unwrap();
        let only = |channel: usize| {
            let mut samples = [0.0; 6];
            samples[channel] = 1.0;
            mix(&samples, gains)
        };
        assert_eq!(only(0), [FRAC_1_SQRT_2, 0.0]);
        assert_eq!(only(1), [0.0, FRAC_1_SQRT_2]);
        assert_eq!(only(2), [0.5, 0.5]);
        assert_eq!(only(3), [0.0, 0.0], "low frequencies");
        assert_eq!((only(4), only(5)), ([0.5, 0.0], [0.0, 0.5]));
    }

    #[test]
    fn there_are_as_many_gains_as_channels() {
        for channels in 0..20 {
            assert!(gains(channels).is_none_or(|gains| gains.len() == channels));
        }
        assert!(gains(7).is_none() && gains(24).is_none());
    }
}
