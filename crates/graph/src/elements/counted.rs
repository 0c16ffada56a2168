//! What a converter has dropped, as an element counts it.

use outflow_packet::DropReason;
use outflow_rtp::payload::depacketize::Dropped;

use crate::Tally;

/// What was counted up to now of a converter that counts from its beginning.
#[derive(Debug, Default)]
pub(super) struct Counted(Dropped);

impl Counted {
    /// Counts what was dropped since the last time.
    pub(super) fn count(&mut self, now: Dropped, tally: &mut Tally) {
        let before = core::mem::replace(&mut self.0, now);
        tally.drops.add(DropReason::Late, now.late - before.late);
        tally.drops.add(DropReason::Incomplete, now.incomplete - before.incomplete);
        tally.drops.add(DropReason::Malformed, now.malformed - before.malformed);
        tally.drops.add(DropReason::Oversized, now.too_large - before.too_large);
    }
}
