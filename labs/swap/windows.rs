//! How long nothing came around a swap, and how long nothing comes anyway.

use std::ops::Range;

use outflow_labs::receive::Arrived;

/// A swap as whoever asked for it saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Swap {
    /// When it was asked for: nanoseconds since 1970.
    pub(crate) began: u64,
    /// When the answer was there.
    pub(crate) ended: u64,
    /// How long packets waited, as the relay says.
    pub(crate) waited_us: f64,
}

/// The longest gaps between packets, in microseconds.
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

/// The longest time without a packet that ended within this time.
fn longest(arrived: &[Arrived], within: Range<u64>) -> Option<f64> {
    let from = arrived.partition_point(|one| one.at < within.start).max(1);
    let to = arrived.partition_point(|one| one.at < within.end);
    let pairs = arrived.get(from - 1..to)?.windows(2);
    let nanos = pairs.map(|pair| pair[1].at.saturating_sub(pair[0].at)).max()?;
    Some(nanos as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_counts_where_it_ends() {
        let at = |at: u64| Arrived { number: 0, at: at * 1000 };
        let all = [at(10), at(20), at(70), at(80), at(90)];
        assert_eq!(longest(&all, 30_000..85_000), Some(50.0));
        assert_eq!(longest(&all, 71_000..91_000), Some(10.0));
        assert_eq!(longest(&all, 91_000..99_000), None);
    }
}
