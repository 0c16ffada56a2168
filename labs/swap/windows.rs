//! How long nothing came around a swap, and how long nothing comes anyway.

use std::ops::Range;

use outflow_labs::receive::Arrived;

/// A swap as the client that asked for it saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Swap {
    /// When it was asked for: nanoseconds since 1970.
    pub(crate) began: u64,
    /// When the answer was there.
    pub(crate) ended: u64,
    /// How long packets waited, as the relay says.
    pub(crate) waited_us: f64,
}

/// The longest gaps between packets, in microseconds, less what the source left between them.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// While a swap was carried out.
    pub(crate) swapped: Vec<f64>,
    /// In as long a time right before.
    pub(crate) usual: Vec<f64>,
}

/// The gaps of each swap.
pub(crate) fn gaps(swaps: &[Swap], arrived: &[Arrived]) -> Gaps {
    let mut gaps = Gaps::default();
    for swap in swaps {
        let length = swap.ended - swap.began;
        gaps.swapped.extend(longest(arrived, swap.began..swap.ended));
        gaps.usual.extend(longest(arrived, swap.began - length..swap.began));
    }
    gaps
}

/// The longest of those gaps that ended within this time.
fn longest(arrived: &[Arrived], within: Range<u64>) -> Option<f64> {
    let from = arrived.partition_point(|one| one.at < within.start).max(1);
    let to = arrived.partition_point(|one| one.at < within.end);
    let pairs = arrived.get(from - 1..to)?.windows(2);
    let gap = |from: u64, to: u64| to as f64 - from as f64;
    let nanos = pairs.map(|pair| gap(pair[0].at, pair[1].at) - gap(pair[0].sent, pair[1].sent));
    nanos.map(|nanos| nanos.max(0.0) / 1e3).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_counts_where_it_ends() {
        let one = |sent: u64, at: u64| Arrived { number: 0, sent: sent * 1000, at: at * 1000 };
        let all = [one(0, 10), one(10, 20), one(20, 70), one(60, 80), one(70, 100)];
        assert_eq!(longest(&all, 30_000..85_000), Some(40.0), "ten of them were the source's");
        assert_eq!(longest(&all, 71_000..85_000), Some(0.0), "a pause of the source's");
        assert_eq!(longest(&all, 81_000..101_000), Some(10.0));
        assert_eq!(longest(&all, 101_000..109_000), None);
    }
}
