//! What is not sent when there is more than can be sent in time: whole groups of units that a transition
//! completes, a picture, say; and with one all that needs it. What is reliable is not left out for others:
//! it is sent, later, as long as it is valid.

use core::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use outflow_petri::net::{Net, TransitionId};
use outflow_petri::service::{Class, Flow};

/// Units in a row that the same transition completes in the same round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) first: u64,
    pub(super) last: u64,
    round: u64,
    transition: TransitionId,
    /// The strongest class of its units, and the highest rank.
    class: Class,
    rank: u8,
}

/// How much a group is missed: the least goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Missed {
    class: Reverse<Class>,
    rank: u8,
    /// How many others need it.
    needed_by: u32,
}

/// Knows what is worth how much.
#[derive(Debug)]
pub(super) struct Shedder {
    net: Arc<Net>,
    /// For each transition, how many others of its round need it; nothing if order is all that the net says.
    needed_by: Vec<u32>,
    is_dependent: bool,
    /// Those of which nothing was sent, and at most one in front of them of which something was; of those that
    /// are missed alike, the oldest first.
    groups: BTreeMap<Missed, VecDeque<Group>>,
    /// The one behind them, which may still grow.
    newest: Option<Group>,
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
            groups: BTreeMap::new(),
            newest: None,
            orphans: BTreeMap::new(),
            net,
        }
    }

    /// A unit waits to be sent, the last one so far.
    pub(super) fn note(&mut self, unit: u64, class: Class, rank: u8) {
        let (round, transition) = self.split(unit);
        match &mut self.newest {
            Some(group) if (group.round, group.transition) == (round, transition) => {
                group.last = unit;
                (group.class, group.rank) = (group.class.min(class), group.rank.max(rank));
            }
            newest => {
                let group = Group { first: unit, last: unit, round, transition, class, rank };
                if let Some(group) = newest.replace(group) {
                    self.groups.entry(self.missed(&group)).or_default().push_back(group);
                }
            }
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
        let is_over = |group: &mut Group| group.last < unit;
        self.newest.take_if(is_over);
        self.groups.retain(|_, groups| {
            while groups.pop_front_if(is_over).is_some() {}
            !groups.is_empty()
        });
        while self.orphans.first_key_value().is_some_and(|(round, _)| self.net.unit(round + 1, 0) <= unit) {
            self.orphans.pop_first();
        }
    }

    /// Takes out the group that is missed the least, of those that begin at `from` or behind it: of the
    /// weakest class, of the lowest rank, which the fewest others need, and of these the oldest. What needs it
    /// is without it from now on.
    pub(super) fn take_least(&mut self, from: u64) -> Option<Group> {
        let least = self.find(|group| group.first >= from);
        // What is reliable comes last of all.
        let group = self.take(least.filter(|(missed, _)| missed.class.0 != Class::Reliable)?)?;
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
        let orphan = self.find(|group| group.first >= from && self.is_orphan(group.first))?;
        self.take(orphan)
    }

    fn missed(&self, group: &Group) -> Missed {
        let needed_by = self.needed_by[group.transition.index()];
        Missed { class: Reverse(group.class), rank: group.rank, needed_by }
    }

    /// Of those that may go, the one that is missed the least, and where it is among those that are missed
    /// alike: nowhere if it is the newest.
    fn find(&self, may_go: impl Fn(&Group) -> bool) -> Option<(Missed, Option<usize>)> {
        let place = |groups: &VecDeque<Group>| groups.iter().position(&may_go);
        let older = self.groups.iter().find_map(|(missed, groups)| Some((*missed, Some(place(groups)?))));
        let newest = self.newest.filter(&may_go).map(|group| (self.missed(&group), None));
        older.into_iter().chain(newest).min_by_key(|(missed, _)| *missed)
    }

    fn take(&mut self, (missed, place): (Missed, Option<usize>)) -> Option<Group> {
        let Some(place) = place else { return self.newest.take() };
        let groups = self.groups.get_mut(&missed)?;
        let group = groups.remove(place);
        if groups.is_empty() {
            self.groups.remove(&missed);
        }
        group
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

mod save;

#[cfg(test)]
mod tests {
    use outflow_petri::net::{mpeg_gop, mpeg_shape, of_gop};
    use outflow_petri::service::ServiceClass;

    use super::*;

    /// Of the units of these pictures, which wait.
    fn shedder(pictures: &[u64]) -> Shedder {
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
        pictures.iter().for_each(|picture| note(&mut shedder, *picture, Class::Partial, 0));
        shedder
    }

    fn note(shedder: &mut Shedder, picture: u64, class: Class, rank: u8) {
        (picture * 15..picture * 15 + 15).for_each(|unit| shedder.note(unit, class, rank));
    }

    fn least(shedder: &mut Shedder, from: u64) -> Option<u64> {
        shedder.take_least(from).map(|group| group.first / 15)
    }

    fn order(shedder: &mut Shedder) -> Vec<u64> {
        core::iter::from_fn(|| least(shedder, 0)).collect()
    }

    #[test]
    fn b_pictures_go_first_and_the_key_picture_last() {
        let mut shedder = shedder(&Vec::from_iter(0..12));
        // I B B B P B B B P B B B: B pictures, oldest first, then P from the last one on.
        assert_eq!(order(&mut shedder), [1, 2, 3, 5, 6, 7, 9, 10, 11, 8, 4, 0]);
    }

    #[test]
    fn what_needs_a_picture_goes_with_it_and_what_was_begun_is_kept() {
        let mut shedder = shedder(&[4, 6, 7, 8]);
        assert_eq!(least(&mut shedder, 60), Some(6));
        assert_eq!(least(&mut shedder, 110), Some(8), "the seventh was begun");
        assert!(shedder.is_orphan(9 * 15) && !shedder.is_orphan(5 * 15) && !shedder.is_orphan(180 + 9 * 15));
        assert_eq!(least(&mut shedder, 110), None);
    }

    #[test]
    fn of_one_class_the_lowest_rank_goes_first_however_much_waits_before_it() {
        let mut shedder = shedder(&[]);
        let rank = |picture: u64| 2 - (picture % 3) as u8;
        (0..1000).for_each(|picture| note(&mut shedder, picture, Class::Partial, rank(picture)));
        note(&mut shedder, 1000, Class::Unreliable, 9);
        let order = order(&mut shedder);
        assert_eq!((order.len(), order[0]), (1001, 1000), "first what is of a weaker class");
        assert!(order[1..].is_sorted_by_key(|picture| rank(*picture)));
    }

    #[test]
    fn what_is_reliable_is_kept() {
        let mut shedder = shedder(&[10, 11]);
        note(&mut shedder, 12, Class::Reliable, 0);
        assert_eq!(order(&mut shedder), [10, 11]);
        note(&mut shedder, 13, Class::Reliable, 0);
        assert_eq!(order(&mut shedder), []);
    }

    #[test]
    fn a_picture_is_worth_what_its_best_unit_is() {
        let mut shedder = shedder(&[]);
        shedder.note(0, Class::Unreliable, 3);
        shedder.note(1, Class::Partial, 0);
        note(&mut shedder, 1, Class::Partial, 2);
        note(&mut shedder, 2, Class::Partial, 4);
        assert_eq!(order(&mut shedder), [1, 0, 2]);
    }

    #[test]
    fn what_was_sent_is_forgotten() {
        let mut shedder = shedder(&[0, 1, 2, 3]);
        shedder.forget_below(31);
        assert_eq!((least(&mut shedder, 31), least(&mut shedder, 31)), (Some(3), None));
        shedder.forget_below(60);
        assert!(shedder.groups.is_empty() && shedder.newest.is_none());
    }

    #[test]
    fn an_orphan_in_the_queue_is_found() {
        let mut shedder = shedder(&[8, 9, 13]);
        assert_eq!(shedder.take_orphan(0), None);
        assert_eq!(order(&mut shedder), [9, 13, 8]);
        note(&mut shedder, 7, Class::Partial, 0);
        note(&mut shedder, 9, Class::Partial, 0);
        assert_eq!(shedder.take_orphan(0).map(|group| group.first), Some(135));
        assert_eq!(shedder.take_orphan(0), None);
    }
}
