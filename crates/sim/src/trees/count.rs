//! What is sent.

use core::time::Duration;

use outflow_media::Time;

/// What a driver that gathers what goes to the same relay waits for more.
pub(super) const GATHERED: Duration = Duration::from_millis(50);

/// What relays said to each other, or one relay to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Messages.
    pub messages: u64,
    /// Those of one relay to another in the same instant as one.
    pub batches: u64,
    /// Those of one relay to another within 50 ms as one.
    pub gathered: u64,
    /// Questions to the directory, and what it is told.
    pub directory: u64,
    /// Parents that were taken.
    pub taken: u64,
}

impl Traffic {
    /// What came since then.
    pub const fn since(self, before: Traffic) -> Traffic {
        Traffic {
            messages: self.messages - before.messages,
            batches: self.batches - before.batches,
            gathered: self.gathered - before.gathered,
            directory: self.directory - before.directory,
            taken: self.taken - before.taken,
        }
    }

    pub(super) const fn add(&mut self, other: Traffic) {
        self.messages += other.messages;
        self.batches += other.batches;
        self.gathered += other.gathered;
        self.directory += other.directory;
        self.taken += other.taken;
    }
}

/// What one relay sends.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) traffic: Traffic,
    /// The most messages in a second, since that was looked at.
    pub(super) most_in_second: u64,
    second: u64,
    in_second: u64,
    instant: Time,
    told_in_instant: Vec<usize>,
    /// When a message to these waits for others no more.
    gathering: Vec<(usize, Time)>,
}

impl Counted {
    pub(super) fn sent(&mut self, now: Time, to: usize) {
        self.traffic.messages += 1;
        let second = now.as_millis() / 1000;
        self.in_second = if second == self.second { self.in_second + 1 } else { 1 };
        self.second = second;
        self.most_in_second = self.most_in_second.max(self.in_second);
        if self.instant != now {
            self.instant = now;
            self.told_in_instant.clear();
        }
        if !self.told_in_instant.contains(&to) {
            self.told_in_instant.push(to);
            self.traffic.batches += 1;
        }
        self.gathering.retain(|(_, until)| *until > now);
        if self.gathering.iter().all(|(other, _)| *other != to) {
            self.gathering.push((to, now + GATHERED));
            self.traffic.gathered += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_to_one_at_once_is_a_batch() {
        let mut counted = Counted::default();
        for (ms, to) in [(1, 1), (1, 2), (1, 1), (20, 1), (51, 1), (1001, 1)] {
            counted.sent(Time::from_millis(ms), to);
        }
        let expected = Traffic { messages: 6, batches: 5, gathered: 4, ..Traffic::default() };
        assert_eq!((counted.traffic, counted.most_in_second), (expected, 5));
    }
}
