//! Whether a competing flow fills the queue.
//!
//! A flow that keeps to a short queue cuts its window when packets wait. If all do, the queue goes by as much
//! as the windows went. If it does not, a competing flow ignores delay and grows until packets are lost. This
//! is what tells a CUBIC or Reno flow from others of our own kind, however many they are, without a look at
//! what queues did before.

use core::time::Duration;

use outflow_media::Time;

use super::State;
use super::delay::{BASE_SECONDS, BASE_SECONDS_FILLED};

/// Rounds until an episode is judged: the window was cut this many times, or as far as it is before that.
const ROUNDS: u32 = 4;

/// What is kept of the window until then.
pub(super) const KEPT: f64 = 0.3;

/// Rounds until a test is over.
const TEST_ROUNDS: u32 = 5;

/// A queue of which so much is left after a round is going, and one of which so much is left after a test was
/// one's own.
const FALLING: f64 = 0.85;
const LEFT: f64 = 0.15;

/// Time between two tests whether a competing flow still fills the queue: when the queue goes down, and in
/// any case.
const TEST_AFTER: Duration = Duration::from_secs(8);
const TEST_AFTER_MOST: Duration = Duration::from_secs(15);

/// After more cuts than that, to less than that share, the queue was empty once unless a flow competes.
const CUTS: u32 = 5;
const CUT_TO: f64 = 0.6;

/// For so long it is remembered what was given away.
const GIVEN: Duration = Duration::from_secs(10);

/// The queue goes down when it is shorter than that share of its longest after it was longer than the other.
const DOWN: f64 = 0.9;
const UP: f64 = 0.95;

/// It goes down so far, so soon after the last test, when another one leaves.
const DOWN_FAR: f64 = 0.75;
const JOIN_AFTER: Duration = Duration::from_secs(2);

/// Since packets wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Episode {
    /// The window before it was cut.
    pub(super) window: f64,
    queue: Duration,
    /// The queue a round ago.
    last: Duration,
    rounds: u32,
    /// Whether a competing flow was there before.
    pub(super) is_test: bool,
}

/// What an episode says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Nothing yet.
    Open,
    /// The queue went as the window did.
    Alone,
    /// It did not.
    Filled,
}

impl Episode {
    pub(super) fn new(window: f64, queue: Duration) -> Self {
        Episode { window, queue, last: queue, rounds: 0, is_test: false }
    }

    pub(super) fn test(window: f64, queue: Duration) -> Self {
        Episode { is_test: true, ..Episode::new(window, queue) }
    }

    /// The same of a test. It is passed if little is left of the queue. As long as the queue goes down by
    /// more than this sender's part, others leave, too.
    pub(super) fn judge_test(&mut self, queue: Duration, is_short: bool) -> Judgement {
        self.rounds += 1;
        let is_falling = queue < self.last.mul_f64(FALLING);
        self.last = queue;
        match self.rounds {
            2.. if is_short || queue < self.queue.mul_f64(LEFT) => Judgement::Alone,
            TEST_ROUNDS.. if !is_falling || self.rounds >= 2 * TEST_ROUNDS => Judgement::Filled,
            _ => Judgement::Open,
        }
    }

    /// A round has passed; what waits now, and what the window is.
    pub(super) fn judge(&mut self, queue: Duration, window: f64, base: Duration) -> Judgement {
        self.rounds += 1;
        if self.rounds < ROUNDS {
            return Judgement::Open;
        }
        let (before, base, now) = (self.queue.as_secs_f64(), base.as_secs_f64(), queue.as_secs_f64());
        let share = (window / self.window.max(1.0)).min(1.0);
        // If all windows were cut by this share. Without a competing flow they fill base and queue.
        let expected = (share * (base + before) - base).max(0.0);
        let went = before - now;
        if went < 0.5 * (before - expected) { Judgement::Filled } else { Judgement::Alone }
    }
}

/// What is known of competing flows that fill the queue.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Competition {
    since: Time,
    /// Whether the queue was as long as it gets, and did not go down since.
    was_long: bool,
    /// Rounds with an empty queue, in a row.
    pub(super) empty: u32,
    /// When the buffer last overflowed.
    pub(super) overflow: Option<Time>,
    /// The window before it was cut because packets waited, once or again and again.
    given: Option<(Time, f64)>,
    /// Since the queue was empty: how often, and from which window on, it was cut.
    cuts: u32,
    uncut: f64,
    cut: Time,
}

impl Competition {
    pub(super) fn begin(&mut self, now: Time) {
        (self.since, self.was_long, self.empty, self.given, self.cuts) = (now, false, 0, None, 0);
    }

    /// The window is cut because packets wait. Whether that happened so often that the queue should have run
    /// empty in between if no competing flow filled it: then each cut is the gain of one (Copa takes a
    /// queue that is not empty once in five round trips for that).
    pub(super) fn gives(&mut self, now: Time, window: f64, empty: Time) -> bool {
        if self.given(now) <= window {
            self.given = Some((now, window));
        }
        if self.cuts == 0 || empty > self.cut {
            (self.cuts, self.uncut) = (0, window);
        }
        (self.cut, self.cuts) = (now, self.cuts + 1);
        self.cuts > CUTS && window < CUT_TO * self.uncut
    }

    /// The largest window that was given away lately.
    pub(super) fn given(&self, now: Time) -> f64 {
        self.given.filter(|(at, _)| now.since(*at) < GIVEN).map_or(0.0, |(_, window)| window)
    }

    /// Seconds for which the least delay is remembered.
    pub(super) fn keeps(state: State, is_test: bool) -> u64 {
        if state == State::Compete || is_test { BASE_SECONDS_FILLED } else { BASE_SECONDS }
    }

    /// Whether it is time to see if a competing flow is still there: when the queue goes down. That is the
    /// same moment for all flows that share it, so that all of our kind leave together, and see that no
    /// competing flow is there.
    pub(super) fn is_due(&mut self, now: Time, queue: Duration, longest: Duration) -> bool {
        let share = queue.as_secs_f64() / longest.as_secs_f64().max(1e-3);
        let goes_down = self.was_long && share < DOWN;
        let goes_far = self.was_long && share < DOWN_FAR;
        let age = now.since(self.since);
        let is_due = (goes_down && age >= TEST_AFTER) || (goes_far && age >= JOIN_AFTER);
        self.was_long = share > UP || (self.was_long && !goes_far && !is_due);
        is_due || age >= TEST_AFTER_MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(before_ms: u64, after_ms: u64, share: f64, base_ms: u64) -> Judgement {
        let ms = Duration::from_millis;
        let mut episode = Episode::new(100_000.0, ms(before_ms));
        for _ in 1..ROUNDS {
            assert_eq!(episode.judge(ms(before_ms), 50_000.0, ms(base_ms)), Judgement::Open);
        }
        episode.judge(ms(after_ms), 100_000.0 * share, ms(base_ms))
    }

    #[test]
    fn a_queue_that_goes_with_the_window_is_ones_own() {
        assert_eq!(judged(100, 0, 0.3, 50), Judgement::Alone);
        assert_eq!(judged(100, 45, 0.6, 50), Judgement::Alone);
        assert_eq!(judged(200, 20, 0.3, 10), Judgement::Alone);
    }

    #[test]
    fn a_queue_that_stays_is_somebody_elses() {
        assert_eq!(judged(100, 100, 0.3, 50), Judgement::Filled);
        assert_eq!(judged(100, 60, 0.3, 50), Judgement::Filled);
        assert_eq!(judged(100, 130, 0.5, 50), Judgement::Filled);
    }

    #[test]
    fn tests_are_due_when_the_queue_goes_down() {
        let mut competition = Competition::default();
        let (at, ms) = (Time::from_millis, Duration::from_millis);
        competition.begin(at(0));
        assert!(!competition.is_due(at(9000), ms(50), ms(100)), "it was not up");
        assert!(!competition.is_due(at(9100), ms(96), ms(100)));
        assert!(!competition.is_due(at(9200), ms(92), ms(100)));
        assert!(competition.is_due(at(9300), ms(80), ms(100)));
        assert!(!competition.is_due(at(9400), ms(80), ms(100)), "once");
        assert!(competition.is_due(at(15_000), ms(100), ms(100)), "at last in any case");
    }
}
