//! The lowest of values, of which old ones are forgotten.

use core::time::Duration;

use outflow_media::Time;

/// The lowest of the values of this number of milliseconds, and of as many before.
#[derive(Debug, Clone)]
pub struct Lowest<const MILLIS: u64> {
    began: Time,
    /// The highest number there is where there was none.
    now: i64,
    before: i64,
}

impl<const MILLIS: u64> Default for Lowest<MILLIS> {
    fn default() -> Self {
        Lowest { began: Time::ZERO, now: i64::MAX, before: i64::MAX }
    }
}

impl<const MILLIS: u64> Lowest<MILLIS> {
    const SPAN: Duration = Duration::from_millis(MILLIS);

    /// There is one more of them.
    pub fn note(&mut self, now: Time, value: i64) {
        let passed = now.since(self.began);
        if passed >= Self::SPAN {
            let is_next = passed < 2 * Self::SPAN;
            self.before = if is_next { self.now } else { i64::MAX };
            (self.now, self.began) = (i64::MAX, now);
        }
        self.now = self.now.min(value);
    }

    /// None if there was no value yet.
    pub fn lowest(&self) -> Option<i64> {
        Some(self.now.min(self.before)).filter(|lowest| *lowest < i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_values_are_forgotten_after_two_spans() {
        let mut lowest = Lowest::<1_000>::default();
        assert_eq!(lowest.lowest(), None);
        let told = [(0, 5), (500, 7), (1_500, 6), (2_500, 9), (3_000, 8), (9_000, 9)].map(|(ms, value)| {
            lowest.note(Time::from_millis(ms), value);
            lowest.lowest()
        });
        assert_eq!(told, [5, 5, 5, 6, 6, 9].map(Some));
    }
}
