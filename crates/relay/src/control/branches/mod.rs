//! The branches of a stream: the stream itself, those that its services make, and those that are
//! derived from one because a receiver wants it in another form.

mod lifecycle;
mod messages;
mod places;
mod services;

use outflow_media::{Format, Time};

use super::levels::{TsLevelBranch, TsLevels};
use super::share::Understood;
use crate::buffer::{Entry, Ring, Seq};
use crate::drops::Drops;
use crate::element::view::View;
use crate::graph::{Graph, Item, Message, Probe, Target};
use crate::limits::VIEWS_MAX;
use crate::schedule::{Branch, BranchId, Cut};
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
    /// Since when nobody wants it.
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

/// What goes to the stages of a graph that run elsewhere, in this order, and from each to the next.
#[derive(Debug, Clone)]
pub enum Far {
    /// A packet, and where it goes.
    Packet(Target, Item),
    /// The packets before this belong together: the stage works on them, at this time.
    End(Time),
    /// What the source tells, and where it goes.
    Message(Time, Target, Message),
    /// Whether anybody wants what comes out of each element ([`Graph::wishes`]).
    Wanted(std::sync::Arc<[bool]>),
    /// An element is to let everything pass as it is, or no longer.
    Bypass(std::sync::Arc<str>, bool),
}

/// All branches of a stream, and what makes them.
#[derive(Debug, Default)]
pub(in crate::control) struct Branches {
    /// By index; empty where one was.
    pub(in crate::control) slots: Vec<Option<Slot>>,
    /// The declared services.
    graph: Option<Box<Graph>>,
    /// By number of an exit of the services: the slot of that branch, if there is one.
    exits: Vec<Option<usize>>,
    /// Names of declared branches that were ever asked for; their indices are [`BranchId`]s.
    names: Vec<String>,
    /// Packets that wait for services.
    waiting: usize,
    /// Packets that came while the services may not work.
    held: Option<Vec<Understood>>,
    /// What is for stages that run elsewhere.
    far: Vec<Far>,
    probe: Option<Probe>,
    /// Kept so that no memory is asked for a batch.
    made: Vec<(usize, Understood)>,
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
    fn left_out(&self, index: usize) -> impl Iterator<Item = &str> {
        let slot = |at: usize| self.slots.get(at).and_then(Option::as_ref);
        let way = core::iter::successors(Some(index), move |at| slot(*at)?.base());
        way.filter_map(slot).flat_map(|slot| self.left_out_by(&slot.made)).map(String::as_str)
    }

    fn left_out_by<'a>(&'a self, made: &'a Made) -> &'a [String] {
        match made {
            Made::Original | Made::Rendition | Made::Level { .. } => &[],
            Made::Derived { chain, .. } => chain.exit_left_out(0),
            Made::Declared(id) => {
                let graph = self.exit(*id).zip(self.graph.as_ref());
                graph.map_or(&[], |(exit, graph)| graph.exit_left_out(exit))
            }
        }
    }

    fn insert(&mut self, make: impl FnOnce(usize) -> Slot) -> usize {
        let index = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let slot = Some(make(index));
        match self.slots.get_mut(index) {
            Some(place) => *place = slot,
            None => self.slots.push(slot),
        }
        self.map_exits();
        index
    }

    /// A branch that is a level of another one; nobody wants it yet.
    pub(in crate::control) fn insert_level(&mut self, now: Time, base: usize, cut: Cut, ring: Ring) -> usize {
        let level = Box::new(TsLevelBranch::new(cut));
        self.insert(|index| Slot {
            levels: None,
            idle_since: Some(now),
            ..Slot::new(Branch::new(index, ring), Made::Level { base, level }, Some(Format::Ts))
        })
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

    fn find(&self, mut is: impl FnMut(&Slot) -> bool) -> Option<usize> {
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

    /// Looks anew which slot belongs to which exit of the services.
    fn map_exits(&mut self) {
        let Branches { slots, graph, names, exits, .. } = self;
        let name = |slot: &Option<Slot>| match slot {
            Some(Slot { made: Made::Declared(id), .. }) => names.get(id.0 as usize).map(String::as_str),
            _ => None,
        };
        let slot = |exit: &str| slots.iter().position(|slot| name(slot) == Some(exit));
        *exits = graph.as_ref().map_or_else(Vec::new, |graph| graph.exits().map(slot).collect());
    }

    /// The name under which a branch is declared, or was.
    pub(in crate::control) fn name(&self, id: BranchId) -> Option<&str> {
        self.names.get(id.0 as usize).map(String::as_str)
    }

    /// How many layers transport streams have at least.
    pub(in crate::control) fn set_layers(&mut self, layers: u8) {
        for levels in self.slots.iter_mut().flatten().filter_map(|slot| slot.levels.as_mut()) {
            levels.set_least(layers);
        }
    }

    /// The number that a branch has among what the services make.
    fn exit(&self, id: BranchId) -> Option<usize> {
        let name = self.name(id)?;
        self.graph.as_ref()?.exits().position(|exit| exit == name)
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
pub(in crate::control) fn held(ring: &Ring, from: Seq) -> Vec<Understood> {
    let mut newest = None;
    let understood = |(_, entry): (_, &Entry)| {
        newest = entry.preamble.clone().or(newest.take());
        let preamble = newest.clone().filter(|_| entry.packet.tag.key);
        Understood { packet: entry.packet.clone(), rtp_header: entry.rtp_header, preamble }
    };
    ring.range(from, ring.head()).map(understood).collect()
}
