//! How long things take, for a caller that asks for it ([`Options::timings`](crate::Options)). Without, no
//! clock is read for it.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use crate::limits::TIMINGS_MAX;

/// How long it took to do what packets of IGMP that were there at once ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// The packets.
    pub packets: u32,
    /// What was sent for them at once, most often queries.
    pub replies: u32,
    /// From when the kernel had the first one until it was read, by the wall clock.
    pub receive: Duration,
    /// To check and parse them, and to write the replies.
    pub process: Duration,
    /// To send these.
    pub reply: Duration,
    /// To bring tables, the kernel's entries and subscribers to events up to date, after that.
    pub update: Duration,
}

/// Takes the times of what is done one after the other.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    is_on: bool,
    last: Instant,
    turn: Timing,
    kept: VecDeque<Timing>,
}

impl Stopwatch {
    pub(crate) fn new(is_on: bool) -> Self {
        Stopwatch { is_on, last: Instant::now(), turn: Timing::default(), kept: VecDeque::new() }
    }

    /// A packet was read, which the kernel had at `came_ns` of the wall clock.
    pub(crate) fn received(&mut self, came_ns: u64) {
        if !self.is_on {
            return;
        }
        self.turn.packets += 1;
        if self.turn.packets == 1 {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            self.turn.receive = now.saturating_sub(Duration::from_nanos(came_ns));
        }
        self.begin();
    }

    /// What was until now is no part of anything.
    pub(crate) fn begin(&mut self) {
        self.lap();
    }

    /// That was to process what came in, or to write a reply.
    pub(crate) fn processed(&mut self) {
        let time = self.lap();
        self.turn.process += time;
    }

    /// That was to send a reply.
    pub(crate) fn replied(&mut self) {
        let time = self.lap();
        self.turn.reply += time;
        self.turn.replies += 1;
    }

    /// That was to update tables, and all is done.
    pub(crate) fn updated(&mut self) {
        self.turn.update = self.lap();
        let turn = std::mem::take(&mut self.turn);
        if turn.packets > 0 {
            if self.kept.len() >= TIMINGS_MAX {
                self.kept.pop_front();
            }
            self.kept.push_back(turn);
        }
    }

    /// What was noted since this was last asked.
    pub(crate) fn take(&mut self) -> Vec<Timing> {
        self.kept.drain(..).collect()
    }

    fn lap(&mut self) -> Duration {
        if !self.is_on {
            return Duration::ZERO;
        }
        let before = std::mem::replace(&mut self.last, Instant::now());
        self.last.duration_since(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_turns_with_packets_are_kept_and_the_newest_of_them() {
        let mut watch = Stopwatch::new(true);
        watch.begin();
        watch.updated();
        assert_eq!(watch.take(), []);
        for turn in 1..=TIMINGS_MAX + 1 {
            (0..turn).for_each(|_| watch.received(0));
            watch.replied();
            watch.updated();
        }
        let kept = watch.take();
        assert_eq!((kept.len(), kept[0].packets, kept[0].replies), (TIMINGS_MAX, 2, 1));
        assert!(kept[0].receive > Duration::ZERO);
        assert_eq!(watch.take(), []);
    }

    #[test]
    fn nothing_is_kept_unless_somebody_asks_for_it() {
        let mut watch = Stopwatch::new(false);
        watch.received(0);
        watch.replied();
        watch.updated();
        assert_eq!(watch.take(), []);
    }
}
