//! Every limit of studies, and what happens when it is reached.

/// Runs of a point of a study. With more, the study is refused.
pub(crate) const REPLICATIONS_MAX: u64 = 100_000;

/// Points of a study. With more, the study is refused.
pub(crate) const POINTS_MAX: usize = 100_000;
