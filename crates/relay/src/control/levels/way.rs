//! One way to thin a stream: what every kind of levels answers and does.

use outflow_media::Time;
use outflow_packet::{Level, Parsed};

use super::coming::Coming;
use crate::control::branches::ORIGINAL;
use crate::control::distribution::Distribution;
use crate::schedule::SinkKey;
use outflow_ring::Seq;

/// One way to thin a stream. What it knows is with the branches; its methods are given these.
pub(in crate::control) trait Levels: Copy {
    /// How many levels there are; 0 before that is known.
    fn count(self, out: &Distribution) -> u8;

    /// Bits a second of each level, the best first.
    fn rates(self, out: &Distribution, now: Time) -> Vec<u64>;

    /// The branch that a sink reads which wants this level; made if need be.
    fn branch_for(self, out: &mut Distribution, now: Time, level: Level) -> usize;

    /// A sink is to get another level, as soon as it can.
    fn take(self, out: &mut Distribution, key: SinkKey, level: Level);

    /// The least number of layers there are, whatever comes.
    fn set_least(self, _: &mut Distribution, _: u8) {}

    /// The source begins again.
    fn restart(self, _: &mut Distribution) {}

    /// A packet is about to come into the branch of this index.
    fn comes(self, _: &Distribution, _: usize, _: &Parsed) -> Coming {
        Coming::default()
    }

    /// It has come: into this branch, where it stands at this position if the ring took it.
    fn came(self, _: &mut Distribution, _: Time, _: (usize, Seq, bool), _: Coming) {}

    /// If more is known than before, looks which sinks change now. Returns whether any may have something to
    /// do.
    fn look(self, _: &mut Distribution, _: Time) -> bool {
        false
    }

    /// Lets a sink go on at the level that it wants if this is where it can, or stop where that will be.
    /// Returns whether it still takes another one.
    fn change(self, _: &mut Distribution, _: Time, _: SinkKey) -> bool {
        false
    }

    /// How many branches the source fills, from [`ORIGINAL`] on.
    fn roots(self, _: &Distribution) -> usize {
        1
    }

    /// The one of these that a level is made of.
    fn root_for(self, _: &Distribution, _: Level) -> usize {
        ORIGINAL
    }

    /// All branches are made again.
    fn begin(self, _: &mut Distribution) {}

    /// A branch is new, and what it holds was there before: sinks of others come with what comes from now on.
    fn begin_with_held(self, _: &mut Distribution, _: usize) {}

    /// A branch is gone; its index may be another one's.
    fn forget(self, _: &mut Distribution, _: usize) {}

    /// Whether some sink is about to go to a branch that no sink reads.
    fn is_awaited(self, _: &mut Distribution, _: Time, _: usize) -> bool {
        false
    }
}
