//! The branches of a stream: the stream itself, those that its services make, and those that are
//! derived from one because a receiver wants it in another form.

mod lifecycle;
mod messages;
mod places;
mod services;

pub use services::Far;
pub(in crate::control) use services::Services;

use outflow_graph::{Graph, View};
use outflow_media::{Format, Time};
use outflow_packet::{Drops, Parsed};

use super::levels::{TsLevelBranch, TsLevels};
use crate::buffer::{Entry, Ring, Seq};
use crate::limits::VIEWS_MAX;
use crate::schedule::{Branch, BranchId};
use messages::Sender;

/// The stream as it came in.
pub(in crate::control) const ORIGINAL: usize = 0;

/// A branch in its place. Its index in the stream is that of its orders.
#[derive(Debug)]
pub(in crate::control) struct Slot {
    pub(in crate::control) branch: Branch,
    /// What it carries; `None` for the stream's own format.
    format: Option<Format>,
    pub(in crate::control) made: Made,
    /// Where its frames begin, and what its levels are, if it is a whole transport stream.
    pub(in crate::control) levels: Option<Box<TsLevels>>,
    /// What its packets say of each track, where they are not the stream's own.
    senders: Vec<Sender>,
    /// Since when nothing wants it.
    pub(in crate::control) idle_since: Option<Time>,
}

/// What makes a branch.
#[derive(Debug)]
pub(in crate::control) enum Made {
    /// The source; or the first of the stream's renditions.
    Original,
    /// Another of its renditions.
    Rendition,
    /// The stream's services, under this name.
    Declared(BranchId),
    /// A chain of its own, from the packets of another branch.
    Derived { base: usize, what: What, chain: Box<Graph> },
    /// The filter, from the packets of another branch that is a transport stream.
    Level { base: usize, level: Box<TsLevelBranch> },
}

/// What is made of another branch because receivers want it like that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::control) enum What {
    /// A transport stream.
    Ts,
    /// What some of them want to see.
    View(View),
}

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

    /// The tracks of the stream that have no place in a branch, nor in what it is made of.
    fn left_out<'a>(&'a self, index: usize, services: &'a Services) -> impl Iterator<Item = &'a str> {
        let way = core::iter::successors(Some(index), move |at| self.slot(*at)?.base());
        let left_out = move |slot: &'a Slot| match &slot.made {
            Made::Original | Made::Rendition | Made::Level { .. } => &[],
            Made::Derived { chain, .. } => chain.exit_left_out(0),
            Made::Declared(id) => services.left_out(*id),
        };
        way.filter_map(|at| self.slot(at)).flat_map(left_out).map(String::as_str)
    }

    fn insert(&mut self, make: impl FnOnce(usize) -> Slot) -> usize {
        let index = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let slot = Some(make(index));
        match self.slots.get_mut(index) {
            Some(place) => *place = slot,
            None => self.slots.push(slot),
        }
        index
    }

    /// Adds a branch behind all others.
    fn push(&mut self, slot: Slot) {
        self.slots.push(Some(slot));
    }

    /// Takes a branch out.
    fn take(&mut self, index: usize) -> Option<Slot> {
        self.slots.get_mut(index).and_then(Option::take)
    }

    /// Takes all branches out.
    fn clear(&mut self) {
        for chain in core::mem::take(&mut self.slots).iter().flatten().filter_map(Slot::chain) {
            self.keep_drops(chain);
        }
    }

    /// The branches that are derived from one, and from those; none stands before what it is derived from.
    fn derived_from(&self, index: usize) -> Vec<usize> {
        let mut of = vec![index];
        let mut next = 0;
        while let Some(&base) = of.get(next) {
            let is_of = |at: &usize| self.slots[*at].as_ref().and_then(Slot::base) == Some(base);
            of.extend((0..self.slots.len()).filter(is_of));
            next += 1;
        }
        of.split_off(1)
    }

    pub(in crate::control) fn find(&self, mut is: impl FnMut(&Slot) -> bool) -> Option<usize> {
        self.slots.iter().position(|slot| slot.as_ref().is_some_and(&mut is))
    }

    /// Whether a view is there already, or may be made.
    fn has_room_for(&self, wanted: View) -> bool {
        let views = self.slots.iter().flatten().filter_map(|slot| match slot.made {
            Made::Derived { what: What::View(view), .. } => Some(view),
            _ => None,
        });
        let views: Vec<View> = views.collect();
        views.contains(&wanted) || views.len() < VIEWS_MAX
    }

    fn keep_drops(&mut self, graph: &Graph) {
        graph.report().for_each(|report| self.past_drops.merge(&report.drops));
    }
}

impl Slot {
    fn new(branch: Branch, made: Made, format: Option<Format>) -> Self {
        let levels = format.as_ref().and_then(TsLevels::of);
        Slot { branch, format, made, levels, senders: Vec::new(), idle_since: None }
    }

    /// A level of another branch, which no sink reads yet.
    pub(in crate::control) fn of_level(
        now: Time,
        branch: Branch,
        (base, level): (usize, Box<TsLevelBranch>),
    ) -> Self {
        let slot = Slot::new(branch, Made::Level { base, level }, Some(Format::Ts));
        Slot { levels: None, idle_since: Some(now), ..slot }
    }

    /// The branch that it is a level of, and how it is made.
    pub(in crate::control) fn level(&self) -> Option<(usize, &TsLevelBranch)> {
        match &self.made {
            Made::Level { base, level } => Some((*base, level)),
            _ => None,
        }
    }

    fn chain(&self) -> Option<&Graph> {
        match &self.made {
            Made::Derived { chain, .. } => Some(chain),
            Made::Original | Made::Rendition | Made::Declared(_) | Made::Level { .. } => None,
        }
    }

    fn base(&self) -> Option<usize> {
        match self.made {
            Made::Derived { base, .. } | Made::Level { base, .. } => Some(base),
            Made::Original | Made::Rendition | Made::Declared(_) => None,
        }
    }

    fn is_derived(&self, of: usize, wanted: What) -> bool {
        matches!(self.made, Made::Derived { base, what, .. } if (base, what) == (of, wanted))
    }
}

/// The packets of a ring from a position on, as they would come in. In the ring, a preamble stands
/// with the first packet of its frame; it comes with those that tell that the frame is a key frame.
pub(in crate::control) fn held(ring: &Ring, from: Seq) -> Vec<Parsed> {
    let mut newest = None;
    let understood = |(_, entry): (_, &Entry)| {
        newest = entry.preamble.clone().or(newest.take());
        let preamble = newest.clone().filter(|_| entry.packet.tag.key);
        Parsed { packet: entry.packet.clone(), rtp_header: entry.rtp_header, preamble }
    };
    ring.range(from, ring.head()).map(understood).collect()
}
