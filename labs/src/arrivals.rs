//! What came to the sinks of a fan-out: counts of each, and delays of all together.

use anyhow::{Result, ensure};

/// Bits of a delay that its bucket keeps: 32 buckets an octave of nanoseconds, 3 % exact. The same
/// stands in `labs/bpf/drain.c`.
const SUB_BITS: u32 = 5;
/// Enough for any delay.
pub(crate) const BUCKETS: usize = 2048;

/// Packets of every sink, and from the source's stamp to arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Packets of each sink.
    pub counts: Vec<u64>,
    /// Bytes of their payloads; empty where those are not counted.
    pub bytes: Vec<u64>,
    /// Packets that came merged with others (GSO, GRO).
    pub merged: u64,
    /// Packets of another size, or to a sink that there is not.
    pub strange: u64,
    pub(crate) delays: Vec<u64>,
}

impl Arrivals {
    /// What came since an earlier look.
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: &[u64], then: &[u64]| now.iter().zip(then).map(|(n, t)| n - t).collect();
        Self {
            counts: less(&self.counts, &earlier.counts),
            bytes: less(&self.bytes, &earlier.bytes),
            merged: self.merged - earlier.merged,
            strange: self.strange - earlier.strange,
            delays: less(&self.delays, &earlier.delays),
        }
    }

    /// Packets of all sinks together.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sinks that got nothing.
    pub fn unreached(&self) -> usize {
        self.counts.iter().filter(|count| **count == 0).count()
    }

    /// Packets of this many sent that sinks did not get, all sinks together.
    pub fn lost(&self, sent: u64) -> u64 {
        self.counts.iter().map(|count| sent.saturating_sub(*count)).sum()
    }

    /// Fails if something came that was not sent: the measurement would not be of what it says.
    pub fn sound(&self, sent: u64) -> Result<()> {
        let more = self.counts.iter().filter(|count| **count > sent).count();
        ensure!(more == 0, "{more} sinks got more than was sent");
        ensure!(self.strange == 0, "{} packets of another size or to none", self.strange);
        Ok(())
    }

    /// The delay at a quantile (0 to 1) in microseconds.
    pub fn delay_us(&self, quantile: f64) -> f64 {
        let total: u64 = self.delays.iter().sum();
        let rank = ((quantile * total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.delays.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        bucket.map_or(f64::NAN, |bucket| middle_nanos(bucket as u64) / 1e3)
    }
}

/// The bucket of a delay.
pub(crate) fn bucket(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(SUB_BITS + 1);
    let sub = nanos >> shift;
    if sub >> SUB_BITS == 0 { sub as usize } else { (u64::from(shift) << SUB_BITS) as usize + sub as usize }
}

/// The middle of a bucket.
fn middle_nanos(bucket: u64) -> f64 {
    let (octave, sub) = (bucket >> SUB_BITS, bucket & ((1 << SUB_BITS) - 1));
    if octave == 0 {
        return sub as f64;
    }
    let width = 2f64.powi(octave as i32 - 1);
    ((1 << SUB_BITS | sub) as f64 + (width - 1.0).min(1.0) / 2.0) * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_sink_lacks_another_cannot_make_up_for() {
        let all = Arrivals { counts: vec![10, 9, 12, 0], ..Arrivals::default() };
        assert_eq!((all.total(), all.lost(10), all.unreached()), (31, 11, 1));
        assert!(all.sound(12).is_ok() && all.sound(11).is_err());
        assert!(Arrivals { strange: 1, ..all.clone() }.sound(12).is_err());
        let earlier = Arrivals { counts: vec![10, 0, 2, 0], ..Arrivals::default() };
        assert_eq!(all.since(&earlier).counts, [0, 9, 10, 0]);
    }

    #[test]
    fn a_bucket_is_three_percent_wide_and_its_middle_is_in_it() {
        for nanos in [0, 1, 31, 32, 63, 64, 65, 1000, 3_877, 1_000_000, 40_000_000_000] {
            let middle = middle_nanos(bucket(nanos) as u64);
            assert!((middle - nanos as f64).abs() <= nanos as f64 * 0.016 + 0.5, "{nanos}: {middle}");
        }
        assert!(bucket(u64::MAX) < BUCKETS);
        assert_eq!((bucket(63), bucket(64)), (63, 64));
    }

    #[test]
    fn quantiles_are_by_the_nearest_rank() {
        let mut delays = vec![0; BUCKETS];
        (delays[bucket(31)], delays[bucket(1 << 20)]) = (98, 2);
        let all = Arrivals { delays, ..Arrivals::default() };
        assert_eq!(all.delay_us(0.5), 0.031);
        assert!((1040.0..1070.0).contains(&all.delay_us(0.99)));
        assert!(Arrivals::default().delay_us(0.5).is_nan());
    }
}
