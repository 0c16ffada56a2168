//! Room is made by what costs least, whether it waits or arrives: what is of the lowest class of importance, and
//! of references the one on which the fewest others depend, with all that waits of those.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use outflow_media::importance::{Class, Importance};
use outflow_media::{Kind, Tag, Time};
use outflow_packet::DropReason;

use super::rule::{Discard, Unit, Verdict};
use crate::buffer::{Held, Waiting};
use crate::damage::Damage;
use crate::flow::FlowId;

/// Knows of each flow what depends on what, and what is worth least of all that waits.
#[derive(Debug)]
pub(super) struct LeastValue {
    flows: BTreeMap<FlowId, Flow>,
    ranking: BTreeSet<(Worth, FlowId, LumpId)>,
}

#[derive(Debug, Default)]
struct Flow {
    damage: Damage,
    /// The newest key frame, and how many frames the group before it had.
    key: Option<u32>,
    group: u32,
    /// What waits.
    lumps: BTreeMap<LumpId, Lump>,
}

/// What is discarded together: the packets of a frame, or one that stands alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LumpId {
    /// The later goes sooner.
    frame: Reverse<u32>,
    /// The place of one that stands alone.
    alone: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Lump {
    tag: Tag,
    worth: Worth,
    /// The place of its last packet; each knows the one before it.
    last: u64,
}

/// By how much a frame is worth more than others: what is lower goes first. Flows of different codecs share a
/// buffer, so that their layers say less than what depends on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Worth {
    class: Class,
    dependents: u32,
    importance: Importance,
    /// Something of it has gone out already.
    has_begun: bool,
    arrived: Reverse<Time>,
}

/// Frames of a group, as long as nothing else is known.
const GROUP_MAX: u32 = 1 << 16;

impl LumpId {
    fn of(tag: &Tag, place: u64) -> Self {
        LumpId { frame: Reverse(tag.frame), alone: (tag.kind == Kind::Data).then_some(place) }
    }
}

impl Flow {
    /// A packet comes. Returns whether it is of no use.
    fn look(&mut self, tag: &Tag) -> bool {
        if tag.first && tag.kind == Kind::Intra && self.key != Some(tag.frame) {
            let since = self.key.map_or(0, |key| tag.frame.wrapping_sub(key));
            (self.key, self.group) = (Some(tag.frame), since.min(GROUP_MAX));
        }
        // Sound or tables between the packets of a picture do not depend on it.
        tag.kind != Kind::Data && self.damage.look(tag)
    }

    /// How many frames may still depend on a reference: as many may come of its group as came of the one before.
    fn dependents(&self, tag: &Tag) -> u32 {
        let since = self.key.map_or(0, |key| tag.frame.wrapping_sub(key));
        let group = if self.group == 0 { GROUP_MAX } else { self.group };
        group.saturating_sub(since)
    }

    /// What a packet that arrives is worth: as much as its frame, if that waits.
    fn worth(&self, id: LumpId, packet: &Waiting) -> Worth {
        let fresh = || {
            let importance = packet.tag.importance();
            let class = importance.class();
            let dependents = if class == Class::Reference { self.dependents(&packet.tag) } else { 0 };
            Worth { class, dependents, importance, has_begun: false, arrived: Reverse(packet.arrived) }
        };
        self.lumps.get(&id).map_or_else(fresh, |lump| lump.worth)
    }
}

impl LeastValue {
    /// What goes next for what is worth so much, if anything does: what is late already, or is worth less.
    fn least(&self, now: Time, worth: Option<Worth>, held: &dyn Held) -> Option<(FlowId, LumpId)> {
        let is_late =
            |(_, first): &(u64, &Waiting)| first.tag.deadline.is_some_and(|deadline| deadline < now);
        if let Some((place, first)) = held.first().filter(is_late) {
            return Some((first.flow, LumpId::of(&first.tag, place)));
        }
        let (least, flow, lump) = *self.ranking.first()?;
        worth.is_none_or(|worth| least < worth).then_some((flow, lump))
    }

    /// Something goes no further, nor does what needs it.
    fn give_up(&mut self, id: FlowId, lump: LumpId, held: &mut dyn Held) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let Reverse(frame) = lump.frame;
        let mut gone = vec![(lump, DropReason::LessValuable)];
        if lump.alone.is_none() {
            flow.damage.lose(frame);
            let mut later: Vec<_> = flow.lumps.iter().filter(|(other, _)| other.alone.is_none()).collect();
            // Numbers wrap.
            later.sort_by_key(|(other, _)| other.frame.0.wrapping_sub(frame));
            for (other, Lump { tag, .. }) in later {
                if *other != lump && flow.damage.look(tag) {
                    gone.push((*other, DropReason::DependsOnDropped));
                }
            }
        }
        for (lump, reason) in gone {
            let Some(Lump { worth, last, .. }) = flow.lumps.remove(&lump) else { continue };
            self.ranking.remove(&(worth, id, lump));
            let mut place = Some(last);
            while let Some(at) = place {
                place = held.discard(at, reason);
            }
        }
    }

    /// A packet waits from now on.
    fn enter(&mut self, id: LumpId, worth: Worth, packet: &mut Waiting, place: u64) {
        let Some(flow) = self.flows.get_mut(&packet.flow) else { return };
        let fresh = Lump { tag: packet.tag, worth, last: place };
        let lump = flow.lumps.entry(id).or_insert(fresh);
        if lump.last == place {
            self.ranking.insert((worth, packet.flow, id));
        } else {
            packet.before = Some(core::mem::replace(&mut lump.last, place));
        }
    }
}

impl Discard for LeastValue {
    /// Frames are discarded as a whole, whatever the unit.
    fn new(_unit: Unit) -> Self {
        LeastValue { flows: BTreeMap::new(), ranking: BTreeSet::new() }
    }

    fn arrives(&mut self, now: Time, packet: &mut Waiting, free: usize, held: &mut dyn Held) -> Verdict {
        let flow = self.flows.entry(packet.flow).or_default();
        if flow.look(&packet.tag) {
            return Verdict::Discard(DropReason::DependsOnDropped);
        }
        let own = LumpId::of(&packet.tag, held.next_place());
        let worth = flow.worth(own, packet);
        let before = held.bytes();
        while packet.bytes > free + (before - held.bytes()) {
            match self.least(now, Some(worth), held) {
                Some((flow, lump)) if (flow, lump) != (packet.flow, own) => self.give_up(flow, lump, held),
                _ => {
                    self.give_up(packet.flow, own, held);
                    return Verdict::Discard(DropReason::LinkFull);
                }
            }
            // It may have needed what went.
            if self.flows.get_mut(&packet.flow).is_some_and(|flow| flow.look(&packet.tag)) {
                return Verdict::Discard(DropReason::DependsOnDropped);
            }
        }
        self.enter(own, worth, packet, held.next_place());
        Verdict::Wait
    }

    fn give_back(&mut self, now: Time, bytes: usize, held: &mut dyn Held) {
        let enough = held.bytes().saturating_sub(bytes);
        while held.bytes() > enough {
            let Some((flow, lump)) = self.least(now, None, held) else { return };
            self.give_up(flow, lump, held);
        }
    }

    fn expires(&mut self, packet: &Waiting, place: u64, held: &mut dyn Held) {
        self.give_up(packet.flow, LumpId::of(&packet.tag, place), held);
    }

    fn departs(&mut self, packet: &Waiting, place: u64) {
        let Some(flow) = self.flows.get_mut(&packet.flow) else { return };
        let id = LumpId::of(&packet.tag, place);
        let Some(lump) = flow.lumps.get_mut(&id) else { return };
        if lump.last == place || !lump.worth.has_begun {
            self.ranking.remove(&(lump.worth, packet.flow, id));
        }
        if lump.last == place {
            flow.lumps.remove(&id);
        } else if !core::mem::replace(&mut lump.worth.has_begun, true) {
            self.ranking.insert((lump.worth, packet.flow, id));
        }
    }

    fn forget(&mut self, id: FlowId) {
        let Some(flow) = self.flows.remove(&id) else { return };
        for (lump, Lump { worth, .. }) in flow.lumps {
            self.ranking.remove(&(worth, id, lump));
        }
    }
}
