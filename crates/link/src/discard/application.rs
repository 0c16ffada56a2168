//! The rule of ABD, exactly (section 2.3): after an I that is discarded, all flows of the application are, until
//! an I arrives; after a P, until an I or a P does. Two bits of state for all flows together.
//!
//! The paper ranks I before P before all others, and so does this, whatever [`Importance`] says. Of data it says
//! that none of it needs any other: it is discarded by itself, in a silence or not, and changes nothing of it.
//!
//! [`Importance`]: outflow_media::Importance

use std::collections::BTreeMap;

use outflow_media::{Kind, Time};
use outflow_packet::DropReason;

use super::rule::{Discard, Unit, Verdict};
use crate::buffer::{Held, Waiting};
use crate::flow::FlowId;

/// What all flows of an application wait for: the longer, the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Silence {
    None,
    UntilReference,
    UntilIntra,
}

/// One for all flows.
#[derive(Debug)]
pub(super) struct Application {
    unit: Unit,
    silence: Silence,
    /// By flow: a frame of which something was discarded.
    torn: BTreeMap<FlowId, u32>,
}

/// The silence that begins if a frame of this kind is discarded, and that ends if one arrives.
fn silence_after(kind: Kind) -> Silence {
    match kind {
        Kind::Intra | Kind::Header => Silence::UntilIntra,
        Kind::Predicted => Silence::UntilReference,
        Kind::Bidirectional | Kind::Enhancement | Kind::Data => Silence::None,
    }
}

impl Silence {
    /// What is left of it when a frame of this kind begins.
    fn after_arrival_of(self, kind: Kind) -> Silence {
        match (self, silence_after(kind)) {
            (Silence::UntilIntra, Silence::UntilIntra) => Silence::None,
            (Silence::UntilReference, Silence::UntilIntra | Silence::UntilReference) => Silence::None,
            (silence, _) => silence,
        }
    }
}

impl Discard for Application {
    fn new(unit: Unit) -> Self {
        Application { unit, silence: Silence::None, torn: BTreeMap::new() }
    }

    fn arrives(&mut self, _now: Time, packet: &mut Waiting, free: usize, _held: &mut dyn Held) -> Verdict {
        if packet.tag.first {
            self.silence = self.silence.after_arrival_of(packet.tag.kind);
        }
        let is_of_frame = !packet.tag.stands_between();
        let is_torn = is_of_frame && self.torn.get(&packet.flow) == Some(&packet.tag.frame);
        let is_silent = self.silence != Silence::None && packet.tag.kind != Kind::Data;
        if is_torn || is_silent {
            return Verdict::Discard(DropReason::DependsOnDropped);
        }
        if packet.bytes <= free {
            return Verdict::Wait;
        }
        if self.unit == Unit::Frame && is_of_frame {
            self.torn.insert(packet.flow, packet.tag.frame);
        }
        self.silence = self.silence.max(silence_after(packet.tag.kind));
        Verdict::Discard(DropReason::LinkFull)
    }

    fn forget(&mut self, flow: FlowId) {
        self.torn.remove(&flow);
    }
}

#[cfg(test)]
mod tests;
