//! What is not sent when there is more than can be sent in time: whole groups of units that a transition
//! completes, a picture, say; and with one all that needs it. What is reliable is not left out for others:
//! it is sent, later, as long as it is valid.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::limits::GROUPS_LOOKED_AT;
use crate::net::{Net, TransitionId};
use crate::recovery::Class;
use crate::service::Flow;

/// Units in a row that the same transition completes in the same round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) first: u64,
    pub(super) last: u64,
    round: u64,
    transition: TransitionId,
    /// The strongest class of its units.
    class: Class,
}

/// Knows what is worth how much.
#[derive(Debug)]
pub(super) struct Shedder {
    net: Arc<Net>,
    /// For each transition, how many others of its round need it; nothing if order is all that the net says.
    needed_by: Vec<u32>,
    is_dependent: bool,
    /// Those of which nothing was sent, and at most one in front of them of which something was.
    groups: VecDeque<Group>,
    /// Transitions that miss what they need, of rounds.
    orphans: BTreeMap<u64, Vec<bool>>,
}

impl Shedder {
    pub(super) fn new(flow: &Flow) -> Self {
        let (net, transitions) = (Arc::clone(&flow.net), flow.net.transitions().len());
        let needed_by = (0..transitions as u32).map(|transition| {
            if flow.is_dependent { dependents(&net, TransitionId(transition)).len() as u32 } else { 0 }
        });
        Shedder {
            needed_by: needed_by.collect(),
            is_dependent: flow.is_dependent,
            groups: VecDeque::new(),
            orphans: BTreeMap::new(),
            net,
        }
    }

    /// A unit waits to be sent, the last one so far.
    pub(super) fn note(&mut self, unit: u64, class: Class) {
        let (round, transition) = self.split(unit);
        match self.groups.back_mut() {
            Some(group) if (group.round, group.transition) == (round, transition) => {
                group.last = unit;
                group.class = group.class.min(class);
            }
            _ => self.groups.push_back(Group { first: unit, last: unit, round, transition, class }),
        }
    }

    /// Whether what a unit needs was left out.
    pub(super) fn is_orphan(&self, unit: u64) -> bool {
        if self.orphans.is_empty() {
            return false;
        }
        let (round, transition) = self.split(unit);
        self.orphans.get(&round).is_some_and(|orphans| orphans[transition.index()])
    }

    /// All units below were sent, or will not be.
    pub(super) fn forget_below(&mut self, unit: u64) {
        while self.groups.front().is_some_and(|group| group.last < unit) {
            self.groups.pop_front();
        }
        while self.orphans.first_key_value().is_some_and(|(round, _)| self.net.unit(round + 1, 0) <= unit) {
            self.orphans.pop_first();
        }
    }

    /// Takes out the group that is missed the least, of those that begin at `from` or behind it: of the
    /// weakest class, which the fewest others need, and of these the oldest. What needs it is without it
    /// from now on.
    pub(super) fn take_least(&mut self, from: u64) -> Option<Group> {
        let candidates = self.groups.iter().take(GROUPS_LOOKED_AT).enumerate();
        let may_go = |group: &Group| group.first >= from && group.class != Class::Reliable;
        let candidates = candidates.filter(|(_, group)| may_go(group));
        let worth =
            |group: &Group| (core::cmp::Reverse(group.class), self.needed_by[group.transition.index()]);
        let (at, _) = candidates.min_by_key(|(_, group)| worth(group))?;
        let group = self.groups.remove(at)?;
        if self.is_dependent {
            let count = self.net.transitions().len();
            let orphans = self.orphans.entry(group.round).or_insert_with(|| vec![false; count]);
            orphans[group.transition.index()] = true;
            dependents(&self.net, group.transition).into_iter().for_each(|i| orphans[i] = true);
        }
        Some(group)
    }

    /// A group that misses what it needs, of those that begin at `from` or behind it.
    pub(super) fn take_orphan(&mut self, from: u64) -> Option<Group> {
        if self.orphans.is_empty() {
            return None;
        }
        let is_orphan = |group: &Group| group.first >= from && self.is_orphan(group.first);
        let at = self.groups.iter().position(is_orphan)?;
        self.groups.remove(at)
    }

    fn split(&self, unit: u64) -> (u64, TransitionId) {
        let (round, object) = self.net.split(unit);
        (round, self.net.places()[self.net.place_of(object).index()].consumer)
    }
}

/// What comes after a transition in its own round, at any distance.
fn dependents(net: &Net, transition: TransitionId) -> Vec<usize> {
    let mut found = vec![false; net.transitions().len()];
    let mut open = vec![transition];
    while let Some(transition) = open.pop() {
        for place in net.outputs(transition) {
            let place = &net.places()[place.index()];
            if place.initial == 0 && !core::mem::replace(&mut found[place.consumer.index()], true) {
                open.push(place.consumer);
            }
        }
    }
    (0..found.len()).filter(|i| found[*i]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{mpeg_gop, mpeg_shape, of_gop};
    use crate::service::ServiceClass;

    fn shedder() -> Shedder {
        let net = Arc::new(of_gop(&mpeg_gop(), &mpeg_shape()).expect("the paper's net"));
        let flow = Flow {
            class_of: vec![0; net.objects()],
            classes: vec![ServiceClass { repair: Class::Partial, validity: None }],
            net,
            rounds: 4,
            buffer_bytes: 1 << 20,
            period: None,
            is_dependent: true,
        };
        let mut shedder = Shedder::new(&flow);
        (0..180).for_each(|unit| shedder.note(unit, Class::Partial));
        shedder
    }

    #[test]
    fn b_pictures_go_first_and_the_key_picture_last() {
        let mut shedder = shedder();
        let order: Vec<_> =
            core::iter::from_fn(|| shedder.take_least(0)).map(|group| group.first / 15).collect();
        // I B B B P B B B P B B B: B pictures, oldest first, then P from the last one on.
        assert_eq!(order, [1, 2, 3, 5, 6, 7, 9, 10, 11, 8, 4, 0]);
    }

    #[test]
    fn what_needs_a_picture_goes_with_it_and_what_was_begun_is_kept() {
        let mut shedder = shedder();
        shedder.groups.retain(|group| group.first / 15 == 4 || group.first / 15 > 5);
        shedder.groups.retain(|group| !matches!(group.first / 15, 9..=11));
        let least = shedder.take_least(60).map(|group| group.first / 15);
        assert_eq!(least, Some(6));
        shedder.groups.retain(|group| group.first / 15 == 4 || group.first / 15 == 8);
        assert_eq!(shedder.take_least(100).map(|group| group.first / 15), Some(8));
        assert!(shedder.is_orphan(9 * 15) && !shedder.is_orphan(5 * 15) && !shedder.is_orphan(180 + 9 * 15));
        assert_eq!(shedder.take_least(61), None, "it was begun");
    }

    #[test]
    fn what_is_reliable_is_kept() {
        let mut shedder = shedder();
        shedder.groups.retain(|group| group.first >= 150);
        shedder.note(180, Class::Reliable);
        assert!(shedder.take_least(0).is_some() && shedder.take_least(0).is_some());
        assert_eq!(shedder.take_least(0), None);
    }

    #[test]
    fn an_orphan_in_the_queue_is_found() {
        let mut shedder = shedder();
        shedder.groups.retain(|group| matches!(group.first / 15, 4 | 8 | 10));
        shedder.groups.retain(|group| group.first / 15 != 10);
        shedder.note(180 + 15, Class::Partial);
        assert_eq!(shedder.take_orphan(0), None);
        shedder.groups.pop_back();
        shedder.take_least(0);
        shedder.take_least(0);
        (15 * 9..15 * 10).for_each(|unit| shedder.note(unit, Class::Partial));
        assert_eq!(shedder.take_orphan(0).map(|group| group.first), Some(135));
    }
}
