//! Means and how sure they are.

/// A mean and half of the width of its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The mean of many more would lie within so much of it, 95 times in 100; 0 of a single value.
    pub ci95: f64,
}

/// Student's t for 95 %, two-sided, by degrees of freedom from 1 on.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Interval {
    /// Of values that do not depend on each other.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count.max(1.0);
        if values.len() < 2 {
            return Interval { mean, ci95: 0.0 };
        }
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // Beyond, it comes near to that of the normal distribution (Abramowitz and Stegun, 26.7.5).
        let student = STUDENT.get(values.len() - 2).copied().unwrap_or(1.96 + 2.4 / (count - 1.0));
        Interval { mean, ci95: student * (variance / count).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_students() {
        assert_eq!(Interval::of(&[3.0]), Interval { mean: 3.0, ci95: 0.0 });
        let of = Interval::of(&[1.0, 2.0, 3.0, 4.0]);
        assert!(
            (of.mean - 2.5).abs() < 1e-12 && (of.ci95 - 3.182 * (5.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-9
        );
    }

    #[test]
    fn they_hold_the_mean_as_often_as_they_say() {
        let mut rng = fastrand::Rng::with_seed(5);
        let holds = |rng: &mut fastrand::Rng| {
            let values: Vec<f64> = (0..20).map(|_| (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0).collect();
            let of = Interval::of(&values);
            of.mean.abs() <= of.ci95
        };
        let often = (0..4_000).filter(|_| holds(&mut rng)).count() as f64 / 4_000.0;
        assert!((often - 0.95).abs() < 0.012, "{often}");
    }
}
