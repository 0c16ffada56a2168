//! What has become of lines.

use std::sync::atomic::{AtomicU64, Ordering};

/// What has become of lines, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines written.
    pub written: u64,
    /// Lines for which there was no room, and those whose write failed.
    pub lost: u64,
    /// Lines left out because there were too many of their kind.
    pub left_out: u64,
    /// Writes that failed.
    pub write_errors: u64,
}

/// One of them.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
