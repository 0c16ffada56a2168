//! Layers of RTP: one branch has them all, and each sink takes them up to a maximum (`packet/src/layers.rs`).

use outflow_media::Time;
use outflow_packet::Level;

use super::way::Levels;
use crate::control::distribution::Distribution;
use crate::schedule::{Branch, SinkKey};

/// The levels of a branch whose packets each have a layer.
#[derive(Debug, Clone, Copy)]
pub(in crate::control) struct Layers {
    pub(super) branch: usize,
}

impl Levels for Layers {
    fn count(self, out: &Distribution) -> u8 {
        out.branches.get(self.branch).map_or(0, Branch::levels)
    }

    fn rates(self, out: &Distribution, now: Time) -> Vec<u64> {
        out.branches.get(self.branch).map_or_else(Vec::new, |branch| branch.rate_table(now))
    }

    fn branch_for(self, _: &mut Distribution, _: Time, _: Level) -> usize {
        self.branch
    }

    fn take(self, out: &mut Distribution, key: SinkKey, level: Level) {
        if let Some(branch) = out.branches.get_mut(self.branch) {
            branch.set_level(&mut out.sinks, key, level);
        }
    }
}
