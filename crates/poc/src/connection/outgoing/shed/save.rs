//! What waits, and how much it is missed, is handed over.

use outflow_petri::service::Flow;

use super::super::save::{class_of, number_of};
use super::{Group, Shedder};
use crate::save::{SavedGroup, SavedOrphans, SavedOutgoing, Unfit, check};

const WHAT: &str = "group of units";

impl Shedder {
    /// What another one needs to go on.
    pub(in super::super) fn save(&self) -> (Vec<SavedGroup>, Option<SavedGroup>, Vec<SavedOrphans>) {
        let mut groups: Vec<_> = self.groups.values().flatten().map(Group::save).collect();
        groups.sort_unstable_by_key(|group| group.first);
        let orphans = self.orphans.iter().map(|(round, orphans)| SavedOrphans {
            round: *round,
            transitions: (0..).zip(orphans).filter(|(_, is)| **is).map(|(i, _)| i).collect(),
        });
        (groups, self.newest.as_ref().map(Group::save), orphans.collect())
    }

    /// One that goes on with this flow.
    pub(in super::super) fn restore(flow: &Flow, saved: &SavedOutgoing) -> Result<Self, Unfit> {
        let mut shedder = Shedder::new(flow);
        let mut next = 0;
        for group in saved.groups.iter().chain(&saved.newest) {
            check(next <= group.first && group.first <= group.last, WHAT, "another order")?;
            check(group.last < saved.next, WHAT, "units that were not given")?;
            let is_one = shedder.split(group.first) == shedder.split(group.last);
            check(is_one, WHAT, "units of several")?;
            next = group.last + 1;
        }
        for group in &saved.groups {
            let group = shedder.group(group)?;
            shedder.groups.entry(shedder.missed(&group)).or_default().push_back(group);
        }
        shedder.newest = saved.newest.as_ref().map(|group| shedder.group(group)).transpose()?;
        let rounds = [saved.base.min(saved.next), saved.next].map(|unit| flow.net.split(unit).0);
        for orphans in &saved.orphans {
            check((rounds[0]..=rounds[1]).contains(&orphans.round), WHAT, "rounds that do not wait")?;
            let count = flow.net.transitions().len();
            let of_round = shedder.orphans.entry(orphans.round).or_insert_with(|| vec![false; count]);
            for transition in &orphans.transitions {
                let orphan = of_round.get_mut(*transition as usize);
                *orphan.ok_or(Unfit { what: WHAT, why: "a transition that there is not" })? = true;
            }
        }
        Ok(shedder)
    }

    fn group(&self, saved: &SavedGroup) -> Result<Group, Unfit> {
        let (round, transition) = self.split(saved.first);
        let SavedGroup { first, last, rank, .. } = *saved;
        Ok(Group { first, last, round, transition, class: class_of(saved.class)?, rank })
    }
}

impl Group {
    fn save(&self) -> SavedGroup {
        SavedGroup { first: self.first, last: self.last, class: number_of(self.class), rank: self.rank }
    }
}
