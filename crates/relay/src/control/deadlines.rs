//! What a stream does because time passes.

use core::time::Duration;

use outflow_media::Time;

use super::output::{SinkEnd, Wake};
use super::stream::Stream;
use crate::limits::BRANCH_LINGER;
use crate::schedule::{Branch, Sink};

impl Stream {
    pub(super) fn check_source(&mut self, now: Time) {
        let silent = now.since(self.source.last_packet);
        // A replica is told.
        if self.source.up && silent >= self.options.source_timeout && !self.is_replica() {
            self.source_went_away(now);
        }
    }

    /// Looks for hopeless sinks, ten times within the time they have.
    pub(super) fn check_hopeless(&mut self, now: Time) {
        if now < self.hopeless_check {
            return;
        }
        let limit = self.options.hopeless_after;
        self.hopeless_check = now + (limit / 10).max(Duration::from_millis(10));
        let is_hopeless = |sink: &Sink| sink.lossy_since.is_some_and(|since| now.since(since) >= limit);
        let sinks = &self.sinks;
        let hopeless: Vec<_> = self
            .branches
            .iter()
            .flat_map(Branch::laggards)
            .filter(|key| sinks.get(key.0).is_some_and(is_hopeless))
            .collect();
        for key in hopeless {
            self.end_sink(now, key, SinkEnd::Hopeless);
        }
    }

    pub(super) fn check_linger(&mut self, now: Time) {
        for index in 0..self.branches.slots.len() {
            let idle_since = self.branches.slots[index].as_ref().and_then(|slot| slot.idle_since);
            if idle_since.is_none_or(|since| now.since(since) < BRANCH_LINGER) {
                continue;
            }
            if self.is_awaited(now, index) {
                self.branches.slots[index].iter_mut().for_each(|slot| slot.idle_since = Some(now));
            } else {
                self.remove_branch(now, index);
            }
        }
    }

    pub(super) fn next_wake(&self) -> Option<(Time, Wake)> {
        let up = self.source.up;
        let idle = self.branches.slots.iter().flatten().filter_map(|slot| slot.idle_since);
        let lagging = self.branches.iter().any(|branch| branch.laggards().next().is_some());
        let turns = self.branches.iter().filter_map(Branch::next_turn).min();
        [
            turns.map(|at| (at, Wake::CatchUp)),
            (up && !self.is_replica())
                .then(|| (self.source.last_packet + self.options.source_timeout, Wake::SourceTimeout)),
            lagging.then_some((self.hopeless_check, Wake::Hopeless)),
            up.then_some((self.reports_due, Wake::SenderReports)),
            idle.min().map(|since| (since + BRANCH_LINGER, Wake::BranchLinger)),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
