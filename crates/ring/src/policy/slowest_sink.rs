//! Slowest-sink-drop (Lin et al., "OMSS"): a slow receiver's loss is its own.

use outflow_media::Time;

use super::arrival::{Load, Policy, Verdict};

/// Makes room at the sinks that lag furthest. They go on at a frame that they can decode, see
/// `schedule/slow.rs`.
#[derive(Debug)]
pub(super) struct SlowestSink;

impl Policy for SlowestSink {
    fn new(_seed: u64) -> Self {
        SlowestSink
    }

    fn arrives(&mut self, _now: Time, load: &Load) -> Verdict {
        if load.is_full() { Verdict::MakeRoom } else { Verdict::Admit }
    }
}
