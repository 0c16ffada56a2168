//! A token bucket: how much may pass at a rate, and how much at once.

use core::time::Duration;

use crate::Time;

const NANOS: i128 = 1_000_000_000;

/// How fast tokens come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    tokens: u64,
    per: Duration,
}

impl Rate {
    /// This many tokens in each second.
    pub const fn per_second(tokens: u64) -> Self {
        Rate { tokens, per: Duration::from_secs(1) }
    }

    /// One token each time `period` has passed.
    pub const fn one_every(period: Duration) -> Self {
        Rate { tokens: 1, per: period }
    }

    /// What comes in `passed`, in billionths of a token, rounded down.
    fn earned(self, passed: Duration) -> i128 {
        // Centuries count as one: the product stays within bounds.
        let passed = i128::from(passed.as_nanos() as u64);
        let product = passed.saturating_mul(i128::from(self.tokens));
        // The common case is spared the division.
        if self.per_nanos() == NANOS { product } else { product.saturating_mul(NANOS) / self.per_nanos() }
    }

    /// How long `billionths` of a token take, rounded up; a rate of nothing takes for ever.
    fn takes(self, billionths: i128) -> Duration {
        if self.tokens == 0 {
            return Duration::MAX;
        }
        let whole = i128::from(self.tokens) * NANOS;
        let nanos = (billionths.saturating_mul(self.per_nanos()) + whole - 1) / whole;
        Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }

    fn per_nanos(self) -> i128 {
        (self.per.as_nanos() as i128).max(1)
    }
}

/// Fills at a rate, up to its burst. What passes is taken out; the last to pass may leave it in debt.
///
/// A token is what its user counts: a bit, a byte, a message. The rate is given each time, as it may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    burst: u64,
    /// In billionths of a token: filling loses no fraction at a rate of whole tokens a second.
    level: i128,
    filled_at: Option<Time>,
}

impl TokenBucket {
    /// A full one. It begins to fill when it is first filled.
    pub const fn new(burst: u64) -> Self {
        TokenBucket { burst, level: burst as i128 * NANOS, filled_at: None }
    }

    /// Goes on where `before` was, with its own burst.
    pub fn resume(&mut self, before: &TokenBucket) {
        self.level = before.level.min(i128::from(self.burst) * NANOS);
        self.filled_at = before.filled_at;
    }

    /// Fills it with what came since it was filled last.
    pub fn fill(&mut self, now: Time, rate: Rate) {
        let earned = rate.earned(now.since(self.filled_at.unwrap_or(now)));
        self.level = self.level.saturating_add(earned).min(i128::from(self.burst) * NANOS);
        self.filled_at = Some(now);
    }

    /// The whole tokens in it; negative is a debt.
    pub fn tokens(&self) -> i64 {
        self.level.div_euclid(NANOS).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Whether more than `parts` of `of` parts of the burst are in it.
    pub fn is_above(&self, parts: u32, of: u32) -> bool {
        self.level.saturating_mul(of.into()) > i128::from(self.burst) * NANOS * i128::from(parts)
    }

    /// Takes out what passes, even if that leaves a debt.
    pub fn take(&mut self, tokens: u64) {
        self.level -= i128::from(tokens) * NANOS;
    }

    /// Whether nothing more goes in.
    pub fn is_full(&self) -> bool {
        self.level >= i128::from(self.burst) * NANOS
    }

    /// Fills it and takes one token, if there is a whole one.
    pub fn pass(&mut self, now: Time, rate: Rate) -> bool {
        self.fill(now, rate);
        let may = self.level >= NANOS;
        if may {
            self.take(1);
        }
        may
    }

    /// How long after it was last filled it is full, if none are taken.
    pub fn wait_until_full(&self, rate: Rate) -> Duration {
        rate.takes((i128::from(self.burst) * NANOS - self.level).max(0))
    }

    /// How long after it was last filled there are `tokens` in it, if none are taken; zero if they are there.
    pub fn wait_for(&self, tokens: i64, rate: Rate) -> Duration {
        rate.takes((i128::from(tokens) * NANOS - self.level).max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fills_by_its_rate_up_to_its_burst() {
        let rate = Rate::per_second(1_000);
        let mut bucket = TokenBucket::new(100);
        bucket.fill(Time::from_millis(5), rate);
        bucket.take(150);
        assert_eq!(bucket.tokens(), -50);
        assert!(!bucket.is_above(0, 128), "a debt");
        bucket.fill(Time::from_millis(55), rate);
        assert!(!bucket.is_above(0, 128), "50 ms bring 50 tokens");
        bucket.fill(Time::from_millis(106), rate);
        assert!(bucket.is_above(64, 128) && !bucket.is_above(66, 128));
        assert_eq!(bucket.tokens(), 51);
        bucket.fill(Time::from_millis(100_000), rate);
        assert_eq!(bucket.tokens(), 100, "no more than the burst");
    }

    #[test]
    fn filling_often_loses_nothing() {
        let rate = Rate::per_second(3);
        let mut bucket = TokenBucket::new(10);
        bucket.fill(Time::ZERO, rate);
        bucket.take(10);
        for micros in (0..=1_000_000).step_by(7) {
            bucket.fill(Time::from_micros(micros), rate);
        }
        bucket.fill(Time::from_millis(1_000), rate);
        assert_eq!(bucket.tokens(), 3);
    }

    #[test]
    fn what_it_says_to_wait_is_exact() {
        let rate = Rate::per_second(1_000_000);
        let mut bucket = TokenBucket::new(1_000);
        bucket.fill(Time::ZERO, rate);
        bucket.take(1_500);
        assert_eq!(bucket.wait_for(-600, rate), Duration::ZERO);
        let wait = bucket.wait_for(250, rate);
        assert_eq!(wait, Duration::from_micros(750));
        bucket.fill(Time::ZERO + wait - Duration::from_nanos(1), rate);
        assert_eq!(bucket.tokens(), 249);
        bucket.fill(Time::ZERO + wait, rate);
        assert_eq!(bucket.tokens(), 250);
        assert_eq!(bucket.wait_for(251, Rate::per_second(0)), Duration::MAX);
        assert!(!bucket.is_full());
        let wait = wait + bucket.wait_until_full(rate);
        assert_eq!(wait, Duration::from_micros(1_500));
        bucket.fill(Time::ZERO + wait, rate);
        assert!(bucket.is_full());
    }

    #[test]
    fn one_every_few_seconds_pass_after_the_burst() {
        let rate = Rate::one_every(Duration::from_secs(3));
        let mut bucket = TokenBucket::new(4);
        let passed = |bucket: &mut TokenBucket, from: u64, to: u64| {
            (from..to).filter(|ms| bucket.pass(Time::from_millis(*ms), rate)).count()
        };
        assert_eq!(passed(&mut bucket, 0, 2_999), 4);
        assert_eq!(passed(&mut bucket, 2_999, 30_000), 9);
    }

    #[test]
    fn a_smaller_one_that_resumes_keeps_its_debt_but_not_its_plenty() {
        let rate = Rate::per_second(10);
        let mut before = TokenBucket::new(100);
        let mut after = TokenBucket::new(40);
        after.resume(&before);
        assert_eq!(after.tokens(), 40);
        before.fill(Time::from_millis(1), rate);
        before.take(120);
        after.resume(&before);
        assert_eq!(after.tokens(), -20);
        after.fill(Time::from_millis(1_001), rate);
        assert_eq!(after.tokens(), -10);
    }

    #[test]
    fn extremes_saturate() {
        let rate = Rate::per_second(u64::MAX);
        let mut bucket = TokenBucket::new(u64::MAX);
        bucket.fill(Time::ZERO, rate);
        bucket.take(u64::MAX);
        bucket.take(u64::MAX);
        assert_eq!(bucket.tokens(), i64::MIN);
        bucket.fill(Time::from_nanos(u64::MAX), rate);
        assert_eq!(bucket.tokens(), i64::MAX);
        assert!(bucket.is_above(u32::MAX - 1, u32::MAX));
    }
}
