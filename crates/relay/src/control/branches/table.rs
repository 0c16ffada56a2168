//! The branches of a stream, by their indices.

use outflow_graph::{Graph, View};
use outflow_packet::{Drops, Parsed};

use super::slot::{Made, Slot, What};
use crate::limits::VIEWS_MAX;
use crate::schedule::Branch;
use outflow_ring::{Entry, Ring, Seq};

/// The stream as it came in.
pub(in crate::control) const ORIGINAL: usize = 0;

/// All branches of a stream.
#[derive(Debug, Default)]
pub(in crate::control) struct Branches {
    /// By index; empty where one was.
    slots: Vec<Option<Slot>>,
    /// Drops of chains that are gone.
    past_drops: Drops,
}

impl Branches {
    pub(in crate::control) fn get(&self, index: usize) -> Option<&Branch> {
        Some(&self.slots.get(index)?.as_ref()?.branch)
    }

    pub(in crate::control) fn get_mut(&mut self, index: usize) -> Option<&mut Branch> {
        Some(&mut self.slots.get_mut(index)?.as_mut()?.branch)
    }

    pub(in crate::control) fn slot(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index)?.as_ref()
    }

    pub(in crate::control) fn slot_mut(&mut self, index: usize) -> Option<&mut Slot> {
        self.slots.get_mut(index)?.as_mut()
    }

    /// The first index behind all branches.
    pub(in crate::control) fn end(&self) -> usize {
        self.slots.len()
    }

    /// The branches, with their indices.
    pub(in crate::control) fn slots(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
    }

    pub(in crate::control) fn slots_mut(&mut self) -> impl Iterator<Item = (usize, &mut Slot)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| Some((index, slot.as_mut()?)))
    }

    /// Where the newest key frame of a branch begins.
    pub(in crate::control) fn newest_key(&self, index: usize) -> Option<Seq> {
        self.get(index)?.ring().newest_key()
    }

    /// The branch of which this one is a level, or itself.
    pub(in crate::control) fn whole(&self, index: usize) -> usize {
        self.slot(index).and_then(Slot::level).map_or(index, |(whole, _)| whole)
    }

    /// What comes from now on does not go on from what came.
    pub(in crate::control) fn break_off(&mut self) {
        self.iter_mut().for_each(|branch| branch.ring_mut().break_off());
    }

    pub(in crate::control) fn iter(&self) -> impl Iterator<Item = &Branch> {
        self.slots.iter().flatten().map(|slot| &slot.branch)
    }

    pub(in crate::control) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Branch> {
        self.slots.iter_mut().flatten().map(|slot| &mut slot.branch)
    }

    /// What could not be brought into the form that receivers asked for; chains that are gone included.
    pub(in crate::control) fn drops(&self) -> Drops {
        let mut drops = self.past_drops;
        let chains = self.slots.iter().flatten().filter_map(Slot::chain);
        for report in chains.flat_map(Graph::report) {
            drops.merge(&report.drops);
        }
        drops
    }

    /// Adds a branch, in the first free place.
    pub(super) fn insert(&mut self, make: impl FnOnce(usize) -> Slot) -> usize {
        let index = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let slot = Some(make(index));
        match self.slots.get_mut(index) {
            Some(place) => *place = slot,
            None => self.slots.push(slot),
        }
        index
    }

    /// Adds a branch behind all others.
    pub(super) fn push(&mut self, slot: Slot) {
        self.slots.push(Some(slot));
    }

    /// Takes a branch out.
    pub(super) fn take(&mut self, index: usize) -> Option<Slot> {
        self.slots.get_mut(index).and_then(Option::take)
    }

    /// Takes all branches out.
    pub(super) fn clear(&mut self) {
        for chain in core::mem::take(&mut self.slots).iter().flatten().filter_map(Slot::chain) {
            self.keep_drops(chain);
        }
    }

    /// A branch, that which it is made of, and so on.
    pub(super) fn way(&self, index: usize) -> impl Iterator<Item = &Slot> {
        core::iter::successors(self.slot(index), |slot| self.slot(slot.base()?))
    }

    /// The branches that are derived from one, and from those; none stands before what it is derived from.
    pub(super) fn derived_from(&self, index: usize) -> Vec<usize> {
        let mut of = vec![index];
        let mut next = 0;
        while let Some(&base) = of.get(next) {
            let is_of = |(at, slot): (usize, &Slot)| (slot.needs(base) && !of.contains(&at)).then_some(at);
            let further: Vec<_> = self.slots().filter_map(is_of).collect();
            of.extend(further);
            next += 1;
        }
        of.split_off(1)
    }

    pub(in crate::control) fn find(&self, mut is: impl FnMut(&Slot) -> bool) -> Option<usize> {
        self.slots.iter().position(|slot| slot.as_ref().is_some_and(&mut is))
    }

    /// Whether a view is there already, or may be made.
    pub(super) fn has_room_for(&self, wanted: View) -> bool {
        let views = self.slots.iter().flatten().filter_map(|slot| match slot.made {
            Made::Derived { what: What::View(view), .. } => Some(view),
            _ => None,
        });
        let views: Vec<View> = views.collect();
        views.contains(&wanted) || views.len() < VIEWS_MAX
    }

    /// A chain is gone: what it dropped stays known.
    pub(super) fn keep_drops(&mut self, graph: &Graph) {
        graph.report().for_each(|report| self.past_drops.merge(&report.drops));
    }
}

/// The packets of a ring from a position on, as they would come in. In the ring, a preamble stands
/// with the first packet of its frame; it comes with those that tell that the frame is a key frame.
pub(in crate::control) fn held(ring: &Ring, from: Seq) -> Vec<Parsed> {
    let mut newest = None;
    let parsed = |(_, entry): (_, &Entry)| {
        newest = entry.preamble.clone().or(newest.take());
        let preamble = newest.clone().filter(|_| entry.packet.tag.key);
        Parsed { packet: entry.packet.clone(), rtp_header: entry.rtp_header, preamble, found: None }
    };
    ring.range(from, ring.head()).map(parsed).collect()
}
