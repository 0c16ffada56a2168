//! What works on the packets of one track of images.

use core::fmt::Debug;

use outflow_packet::DropReason;

use super::packets::Out;
use crate::{Item, Tally};

/// Does what a recipe says on the packets of one track.
pub(super) trait Carrier: Debug + Send {
    fn take(&mut self, item: Item, out: &mut Out<'_>, tally: &mut Tally);

    /// What comes does not continue what was.
    fn clear(&mut self, _: &mut Tally) {}

    /// Bytes that it holds of packets that came.
    fn memory_bytes(&self) -> usize {
        0
    }
}

pub(super) fn drop_all(tally: &mut Tally, reason: DropReason, packets: u64) {
    tally.drops.add(reason, packets);
}
