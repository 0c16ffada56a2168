//! Shares of the processor: elements that have used theirs up leave frames out, the less important
//! ones first, with all that needs them.

use outflow_media::Time;
use outflow_packet::DropReason;

use super::Item;
use crate::elements::{Kept, Memory, reserve};
use crate::limits::{BUDGET_BURST_PARTS, BUDGET_PARTS};

const SECOND_NS: u128 = 1_000_000_000;

/// How much time elements may take, and how much of it is left.
#[derive(Debug)]
pub struct Budget {
    /// Nanoseconds of work a second.
    per_second_ns: u64,
    /// What is left; below zero it is owed.
    left_ns: i64,
    at: Option<Time>,
    verdicts: Memory<Kept>,
}

impl Budget {
    /// `parts` of [`BUDGET_PARTS`] parts of a core.
    pub fn new(parts: u64) -> Self {
        let per_second_ns = u64::try_from(u128::from(parts) * SECOND_NS / u128::from(BUDGET_PARTS));
        let per_second_ns = per_second_ns.unwrap_or(u64::MAX);
        Budget::of(per_second_ns)
    }

    fn of(per_second_ns: u64) -> Self {
        let mut budget = Budget { per_second_ns, left_ns: 0, at: None, verdicts: Memory::default() };
        budget.left_ns = budget.burst_ns();
        budget
    }

    /// The same with nothing used up yet.
    pub(super) fn renewed(&self) -> Self {
        Budget::of(self.per_second_ns)
    }

    /// The same of another share; what was decided stays.
    pub(super) fn scaled(mut self, share: impl Fn(u64) -> u64) -> Self {
        self.per_second_ns = share(self.per_second_ns).max(1);
        self.left_ns = self.left_ns.min(self.burst_ns());
        self
    }

    /// What can be saved up.
    fn burst_ns(&self) -> i64 {
        i64::try_from(self.per_second_ns / BUDGET_BURST_PARTS).unwrap_or(i64::MAX).max(1)
    }

    /// Takes out of a batch what there is no time for; `refused` is told why.
    pub(super) fn admit(&mut self, now: Time, batch: &mut Vec<Item>, mut refused: impl FnMut(DropReason)) {
        self.fill(now);
        batch.retain(|item| match self.verdict(item) {
            Kept::Yes => true,
            Kept::No(reason) => {
                refused(reason);
                false
            }
        });
    }

    /// So much time was taken.
    pub(super) fn spend(&mut self, nanos: u64) {
        self.left_ns = self.left_ns.saturating_sub_unsigned(nanos);
    }

    fn fill(&mut self, now: Time) {
        let passed = now.since(self.at.replace(now).unwrap_or(now)).as_nanos();
        let more = passed * u128::from(self.per_second_ns) / SECOND_NS;
        let more = i64::try_from(more).unwrap_or(i64::MAX);
        self.left_ns = self.left_ns.saturating_add(more).min(self.burst_ns());
    }

    /// One verdict a frame.
    fn verdict(&mut self, item: &Item) -> Kept {
        let tag = &item.packet.tag;
        let stands_between = tag.stands_between();
        if let Some(known) = self.verdicts.get(tag.track, tag.frame).filter(|_| !stands_between) {
            return known;
        }
        let is_orphan = self.verdicts.misses(tag.track, tag.frame, tag.needs);
        let has_time =
            i128::from(self.left_ns) * 128 > i128::from(self.burst_ns()) * i128::from(reserve(tag));
        let verdict = match (is_orphan, has_time) {
            (true, _) => Kept::No(DropReason::DependsOnDropped),
            (false, true) => Kept::Yes,
            (false, false) => Kept::No(DropReason::CpuBudget),
        };
        if !stands_between {
            self.verdicts.set(tag.track, tag.frame, verdict);
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use outflow_media::{Content, Kind, Needs, Tag};

    use super::*;

    fn item(frame: u32, key: bool) -> Item {
        let mut item = Item::empty();
        let (kind, needs) =
            if key { (Kind::Intra, Needs::NOTHING) } else { (Kind::Predicted, Needs::back(1)) };
        item.packet.tag = Tag { frame, key, kind, needs, first: true, last: true, ..Tag::default() };
        item
    }

    /// Offers a frame that costs so much; says what became of it.
    fn offer(budget: &mut Budget, at_ms: u64, item: Item, cost_ms: u64) -> Option<DropReason> {
        let (mut batch, mut reason) = (vec![item], None);
        budget.admit(Time::from_millis(at_ms), &mut batch, |why| reason = Some(why));
        budget.spend(batch.len() as u64 * cost_ms * 1_000_000);
        reason
    }

    #[test]
    fn sound_between_the_packets_of_a_picture_does_not_share_its_fate() {
        let mut budget = Budget::new(BUDGET_PARTS / 10);
        let sound = || {
            let mut sound = item(1, false);
            sound.packet.tag = Tag { frame: 1, content: Content::Sound, ..Tag::default() };
            sound
        };
        assert_eq!(offer(&mut budget, 0, item(0, true), 2), None);
        let left = u64::try_from(budget.left_ns / 1_000_000).expect("something is left");
        assert_eq!(offer(&mut budget, 0, sound(), left - 1), None);
        assert_eq!(offer(&mut budget, 0, item(1, false), 1), Some(DropReason::CpuBudget));
        assert_eq!(offer(&mut budget, 0, sound(), 0), None);
    }

    #[test]
    fn work_keeps_to_its_share_and_what_is_left_out_takes_its_dependents_along() {
        // A tenth of a core; each frame of 10 ms takes 2 ms: every second one is too much.
        let mut budget = Budget::new(BUDGET_PARTS / 10);
        let (mut worked, mut orphans, mut over) = (0, 0, 0);
        for frame in 0..1000_u32 {
            let at = u64::from(frame) * 10;
            match offer(&mut budget, at, item(frame, frame % 10 == 0), 2) {
                None => worked += 1,
                Some(DropReason::DependsOnDropped) => orphans += 1,
                Some(_) => over += 1,
            }
        }
        assert!((400..=505).contains(&worked), "{worked} worked, {orphans} orphans, {over} over");
        assert!(orphans > 100 && over > 0, "{orphans} orphans, {over} over");
    }

    #[test]
    fn key_frames_are_the_last_to_go() {
        let mut budget = Budget::new(BUDGET_PARTS / 10);
        assert_eq!(offer(&mut budget, 0, item(0, true), 8), None);
        assert_eq!(offer(&mut budget, 1, item(1, false), 2), Some(DropReason::CpuBudget));
        assert_eq!(offer(&mut budget, 2, item(2, true), 2), None, "there is a little left");
    }

    #[test]
    fn time_is_not_saved_up_for_long() {
        let mut budget = Budget::new(BUDGET_PARTS / 10);
        budget.fill(Time::ZERO);
        budget.fill(Time::ZERO + Duration::from_secs(60));
        assert_eq!(budget.left_ns, budget.burst_ns());
    }
}
