//! What does not fit is discarded, and with it all of its flow that needs it.

use std::collections::BTreeMap;

use outflow_media::{Kind, Time};
use outflow_packet::DropReason;

use super::rule::{Discard, Unit, Verdict};
use crate::buffer::{Held, Waiting};
use crate::damage::Damage;
use crate::flow::FlowId;

/// Knows of each flow which frames are of no use any more.
#[derive(Debug)]
pub(super) struct Dependents {
    unit: Unit,
    flows: BTreeMap<FlowId, Marks>,
}

/// What is known of a flow.
#[derive(Debug, Default)]
struct Marks {
    damage: Damage,
    /// The frame of which a packet did not fit.
    torn: Option<u32>,
}

impl Discard for Dependents {
    fn new(unit: Unit) -> Self {
        Dependents { unit, flows: BTreeMap::new() }
    }

    fn arrives(&mut self, _now: Time, packet: &mut Waiting, free: usize, _held: &mut dyn Held) -> Verdict {
        let marks = self.flows.entry(packet.flow).or_default();
        let is_of_no_use = packet.tag.kind != Kind::Data && marks.damage.look(&packet.tag);
        // Others of the frame do not need the packet that was discarded; what follows needs the frame.
        let goes_on = self.unit == Unit::Packet && marks.torn == Some(packet.tag.frame);
        if is_of_no_use && !goes_on {
            return Verdict::Discard(DropReason::DependsOnDropped);
        }
        if packet.bytes <= free {
            return Verdict::Wait;
        }
        // Sound or tables between the packets of a picture take nothing from it.
        if packet.tag.kind != Kind::Data {
            marks.damage.lose(packet.tag.frame);
            marks.torn = Some(packet.tag.frame);
        }
        Verdict::Discard(DropReason::LinkFull)
    }

    fn expires(&mut self, packet: &Waiting, _place: u64, _held: &mut dyn Held) {
        if packet.tag.kind != Kind::Data {
            self.flows.entry(packet.flow).or_default().damage.lose(packet.tag.frame);
        }
    }

    fn forget(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }
}
