//! How far a picture is from another: the peak signal-to-noise ratio, as ffmpeg's filter `psnr` has it.

use crate::picture::Picture;

/// The largest value of a sample.
const PEAK: f64 = 255.0;
/// Planes of a picture, at most.
const PLANES_MAX: usize = 3;

/// Mean squared errors of a picture, or means of them over several.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Mse {
    planes: [f64; PLANES_MAX],
    count: usize,
    combined: f64,
}

impl Mse {
    /// Between two pictures; `None` if they differ in shape.
    pub fn between(a: &Picture, b: &Picture) -> Option<Self> {
        if a.shape() != b.shape() {
            return None;
        }
        let mut mse = Mse::default();
        let mut total = 0.0;
        for (plane, (left, right)) in a.planes().zip(b.planes()).enumerate() {
            let squares: u64 = left.iter().zip(right).map(|(l, r)| u64::from(l.abs_diff(*r)).pow(2)).sum();
            mse.planes[plane] = squares as f64 / left.len() as f64;
            mse.count = plane + 1;
            total += squares as f64;
        }
        mse.combined = total / a.samples().len() as f64;
        Some(mse)
    }

    /// The mean of several; `None` of none.
    pub fn mean(all: &[Mse]) -> Option<Self> {
        let of = |part: fn(&Mse) -> f64| all.iter().map(part).sum::<f64>() / all.len() as f64;
        let planes = [of(|mse| mse.planes[0]), of(|mse| mse.planes[1]), of(|mse| mse.planes[2])];
        Some(Mse { planes, count: all.first()?.count, combined: of(|mse| mse.combined) })
    }

    /// Peak signal-to-noise ratio of each plane, in dB; infinite where nothing differs.
    pub fn psnr_planes_db(&self) -> impl Iterator<Item = f64> {
        self.planes[..self.count].iter().copied().map(psnr_db)
    }

    /// Peak signal-to-noise ratio of all samples, in dB: planes count by their samples.
    pub fn psnr_db(&self) -> f64 {
        psnr_db(self.combined)
    }
}

fn psnr_db(mse: f64) -> f64 {
    10.0 * (PEAK * PEAK / mse).log10()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Sampling, Shape};

    fn picture(sampling: Sampling, samples: &[u8]) -> Picture {
        let shape = Shape::new(4, 2, sampling).expect("small");
        Picture::new(shape, samples.to_vec()).expect("as many")
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 0.005
    }

    /// 20 log10(255 / error), as every textbook has it.
    #[test]
    fn equal_errors_have_the_known_values() {
        for (error, expected) in [(1, 48.13), (2, 42.11), (16, 24.05), (255, 0.0)] {
            let (black, gray) = (picture(Sampling::Mono, &[0; 8]), picture(Sampling::Mono, &[error; 8]));
            let psnr = Mse::between(&black, &gray).expect("alike").psnr_db();
            assert!(near(psnr, expected), "{error}: {psnr}");
        }
    }

    #[test]
    fn planes_count_by_their_samples() {
        let a = picture(Sampling::C420, &[0; 12]);
        let b = picture(Sampling::C420, &[1, 1, 1, 1, 1, 1, 1, 1, 4, 4, 0, 0]);
        let mse = Mse::between(&a, &b).expect("alike");
        let planes: Vec<f64> = mse.psnr_planes_db().collect();
        assert!(near(planes[0], 48.13) && near(planes[1], 36.09) && planes[2].is_infinite());
        // (8 · 1 + 2 · 16) / 12
        assert!(near(mse.psnr_db(), 42.90), "{}", mse.psnr_db());
    }

    #[test]
    fn means_are_of_errors_and_not_of_decibels() {
        let black = picture(Sampling::Mono, &[0; 8]);
        let of = |error: u8| Mse::between(&black, &picture(Sampling::Mono, &[error; 8])).expect("alike");
        let mean = Mse::mean(&[of(0), of(2)]).expect("some");
        assert!(near(mean.psnr_db(), 45.12), "{}", mean.psnr_db());
        assert_eq!((mean.psnr_planes_db().count(), Mse::mean(&[])), (1, None));
    }

    #[test]
    fn pictures_of_other_shapes_cannot_be_compared() {
        let (gray, colour) = (picture(Sampling::Mono, &[0; 8]), picture(Sampling::C420, &[0; 12]));
        assert_eq!(Mse::between(&gray, &colour), None);
    }
}
