//! What does not fit is discarded, and nothing else.

use std::collections::BTreeMap;

use outflow_media::Time;
use outflow_packet::DropReason;

use super::rule::{Discard, Unit, Verdict};
use crate::buffer::{Held, Waiting};
use crate::flow::FlowId;

/// Knows nothing of what packets mean, but for where frames end, if they are discarded from there on.
#[derive(Debug)]
pub(super) struct Alone {
    unit: Unit,
    /// By flow: a frame of which something was discarded.
    torn: BTreeMap<FlowId, u32>,
}

impl Discard for Alone {
    fn new(unit: Unit) -> Self {
        Alone { unit, torn: BTreeMap::new() }
    }

    fn arrives(&mut self, _now: Time, packet: &mut Waiting, free: usize, _held: &mut dyn Held) -> Verdict {
        let is_of_frame = !packet.tag.stands_between();
        if is_of_frame && self.torn.get(&packet.flow) == Some(&packet.tag.frame) {
            return Verdict::Discard(DropReason::DependsOnDropped);
        }
        if packet.bytes <= free {
            return Verdict::Wait;
        }
        if self.unit == Unit::Frame && is_of_frame {
            self.torn.insert(packet.flow, packet.tag.frame);
        }
        Verdict::Discard(DropReason::LinkFull)
    }

    fn forget(&mut self, flow: FlowId) {
        self.torn.remove(&flow);
    }
}
