//! Samples of other frequencies into those of 48 kHz.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{
    Async, FixedAsync, Resampler as _, Resizable, SincInterpolationParameters, SincInterpolationType,
    WindowFunction,
};

use crate::limits::FRAME_SAMPLES_MAX;

/// Samples a second that Opus is given.
pub(crate) const FREQUENCY_HZ: u32 = 48_000;

/// Samples that the filter is long, at the frequency that comes in.
const FILTER: usize = 64;

/// Samples that are taken at once: a frame, and one that is added to it.
const CHUNK: usize = FRAME_SAMPLES_MAX + 1;

/// Frequencies of sound (ISO/IEC 14496-3, table 1.18). Each is to 48 kHz as small numbers are.
const KNOWN_HZ: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];

/// Whether sound of this frequency can be resampled.
pub(crate) fn is_known(frequency_hz: u32) -> bool {
    KNOWN_HZ.contains(&frequency_hz)
}

/// Makes the samples of one run those of 48 kHz.
pub(crate) struct Resampler {
    channels: usize,
    /// `None` for what is of 48 kHz already.
    filter: Option<Filter>,
}

struct Filter {
    inner: Async<f32>,
    made: Vec<f32>,
    /// Samples that still come out for what was before the first one.
    early: usize,
}

impl Resampler {
    /// From this frequency; `None` if it is not one of sound.
    pub(crate) fn new(frequency_hz: u32, channels: usize) -> Option<Self> {
        let filter = match frequency_hz {
            FREQUENCY_HZ => None,
            _ if is_known(frequency_hz) => Some(Filter::new(frequency_hz, channels)?),
            _ => return None,
        };
        Some(Resampler { channels, filter })
    }

    /// Forgets earlier samples.
    pub(crate) fn reset(&mut self) {
        if let Some(filter) = &mut self.filter {
            filter.inner.reset();
            filter.early = filter.inner.output_delay();
        }
    }

    /// Takes interleaved samples, and gives interleaved ones, the first of which belongs to the first that was taken.
    /// The last ones are held back, until the filter knows what comes behind them.
    pub(crate) fn push(&mut self, samples: &[f32], out: &mut impl FnMut(&[f32])) {
        let Some(filter) = &mut self.filter else { return out(samples) };
        for chunk in samples.chunks(CHUNK * self.channels) {
            if let Some(made) = filter.process(chunk, self.channels) {
                out(made);
            }
        }
    }
}

impl Filter {
    fn new(frequency_hz: u32, channels: usize) -> Option<Self> {
        // The two frequencies are as these: then one of the filter's phases is right for each sample.
        let phases = FREQUENCY_HZ / common_divisor(FREQUENCY_HZ, frequency_hz);
        let parameters = SincInterpolationParameters::new(FILTER, WindowFunction::BlackmanHarris2)
            .oversampling_factor(usize::try_from(phases).ok()?)
            .interpolation(SincInterpolationType::Nearest);
        let ratio = f64::from(FREQUENCY_HZ) / f64::from(frequency_hz);
        let inner = Async::new_sinc(ratio, 1.0, &parameters, CHUNK, channels, FixedAsync::Input).ok()?;
        let (made, early) = (vec![0.0; inner.output_frames_max() * channels], inner.output_delay());
        Some(Filter { inner, made, early })
    }

    /// `None` only for what the library refuses, which it does not do with chunks of this size.
    fn process(&mut self, chunk: &[f32], channels: usize) -> Option<&[f32]> {
        let samples = chunk.len() / channels;
        self.inner.set_chunk_size(samples).ok()?;
        let room = self.made.len() / channels;
        let from = InterleavedSlice::new(chunk, channels, samples).ok()?;
        let mut to = InterleavedSlice::new_mut(&mut self.made, channels, room).ok()?;
        let (_, made) = self.inner.process_into_buffer(&from, &mut to, None).ok()?;
        let over = self.early.min(made);
        self.early -= over;
        self.made.get(over * channels..made * channels)
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the midst is of the samples that an impulse at this place becomes.
    fn midst(resampler: &mut Resampler, at: usize) -> f32 {
        let mut input = vec![0.0; 3 * at];
        input[at] = 1.0;
        let mut made = Vec::new();
        for frame in input.chunks(1024) {
            resampler.push(frame, &mut |samples| made.extend_from_slice(samples));
        }
        let weighted: f32 = made.iter().zip(0u16..).map(|(sample, index)| sample * f32::from(index)).sum();
        weighted / made.iter().sum::<f32>()
    }

    #[test]
    fn samples_stay_where_they_are_in_time() {
        for frequency_hz in KNOWN_HZ {
            let mut resampler = Resampler::new(frequency_hz, 1).unwrap();
            let at = usize::try_from(frequency_hz / 10).unwrap();
            for _ in 0..2 {
                let midst = midst(&mut resampler, at);
                assert!((midst - 4_800.0).abs() < 3.0, "{frequency_hz}: {midst}");
                resampler.reset();
            }
        }
    }

    #[test]
    fn as_many_samples_come_out_as_the_frequency_says() {
        for frequency_hz in KNOWN_HZ {
            let mut resampler = Resampler::new(frequency_hz, 2).unwrap();
            let (mut made, mut fed) = (0u64, 0u64);
            for frame in [1023, 1024, 1, 1025, 2048, 576, 1152].into_iter().cycle().take(500) {
                fed += frame as u64;
                resampler.push(&vec![0.0; frame * 2], &mut |samples| made += samples.len() as u64 / 2);
            }
            let wanted = fed * u64::from(FREQUENCY_HZ) / u64::from(frequency_hz);
            assert!(made.abs_diff(wanted) <= 224, "{frequency_hz}: {made} of {wanted}");
        }
    }

    #[test]
    fn a_frequency_that_is_none_of_sound_is_refused() {
        for frequency_hz in [0, 1, 47_999, 192_000, u32::MAX] {
            assert!(Resampler::new(frequency_hz, 2).is_none());
        }
    }
}
