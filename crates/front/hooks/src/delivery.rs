//! Events on their way: in order, one at a time, each again until it was taken. Without I/O.

use std::collections::VecDeque;
use std::sync::Arc;

use outflow_control::Event;
use outflow_media::Backoff;
use tokio::time::Instant;

use crate::limits::{AGAIN, TOLD_FOR, WAITING_MAX};

/// What the address said to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has it.
    Taken,
    /// It does not want it, and would not if it were asked again.
    Refused(String),
    /// It did not answer, or not well.
    Failed(String),
    /// There is no address any more.
    Unwanted,
}

/// Events that wait.
#[derive(Debug)]
pub(crate) struct Delivery {
    waiting: VecDeque<Arc<Event>>,
    again: Backoff,
    /// When the first may be told, and when that was tried first.
    at: Option<Instant>,
    since: Option<Instant>,
}

impl Default for Delivery {
    fn default() -> Self {
        Delivery { waiting: VecDeque::new(), again: AGAIN, at: None, since: None }
    }
}

impl Delivery {
    /// Takes one more, and answers how many are lost for it.
    pub(crate) fn push(&mut self, now: Instant, event: Arc<Event>) -> u64 {
        // The first may be on its way: the one behind it goes.
        let lost = if self.waiting.len() >= WAITING_MAX { self.waiting.remove(1) } else { None };
        self.waiting.push_back(event);
        self.at.get_or_insert(now);
        lost.map_or(0, |_| 1)
    }

    /// When the next may be told, if there is one.
    pub(crate) fn at(&self) -> Option<Instant> {
        self.at
    }

    /// The next.
    pub(crate) fn next(&self) -> Option<Arc<Event>> {
        self.waiting.front().cloned()
    }

    /// What has become of it. Answers why it is lost, if so.
    pub(crate) fn done(&mut self, now: Instant, outcome: Outcome) -> Option<String> {
        let since = *self.since.get_or_insert(now);
        let lost = match outcome {
            Outcome::Taken | Outcome::Unwanted => None,
            Outcome::Refused(why) => Some(why),
            Outcome::Failed(why) if now.duration_since(since) >= TOLD_FOR => Some(why),
            Outcome::Failed(_) => {
                self.at = Some(now + self.again.wait());
                return None;
            }
        };
        // After one that was given up, the address is no better: the next waits as long.
        let at = if lost.is_some() && since != now { now + self.again.wait() } else { now };
        if lost.is_none() {
            self.again.reset();
        }
        self.waiting.pop_front();
        (self.since, self.at) = (None, (!self.waiting.is_empty()).then_some(at));
        lost
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outflow_control::Happened;

    use super::*;

    fn event(number: u64) -> Arc<Event> {
        let what = Happened::Gone { stream: "a".to_owned(), peer: "x".to_owned() };
        Arc::new(Event { number, at: 0.0, what })
    }

    fn failed() -> Outcome {
        Outcome::Failed("no answer".to_owned())
    }

    #[test]
    fn events_are_told_in_order_and_again_after_longer_and_longer_waits() {
        let (mut delivery, start) = (Delivery::default(), Instant::now());
        assert_eq!(delivery.at(), None);
        assert_eq!((delivery.push(start, event(1)), delivery.push(start, event(2))), (0, 0));
        let (mut now, mut waits) = (start, Vec::new());
        for _ in 0..3 {
            assert_eq!(delivery.next().map(|event| event.number), Some(1));
            assert_eq!(delivery.done(now, failed()), None);
            let at = delivery.at().expect("it is told again");
            waits.push((at - now).as_secs());
            now = at;
        }
        assert_eq!(waits, [1, 2, 4]);
        assert_eq!(delivery.done(now, Outcome::Taken), None);
        assert_eq!((delivery.next().map(|event| event.number), delivery.at()), (Some(2), Some(now)));
        assert_eq!(delivery.done(now, failed()), None);
        assert_eq!(delivery.at(), Some(now + Duration::from_secs(1)), "as at first");
    }

    #[test]
    fn one_that_is_refused_or_told_for_too_long_is_lost() {
        let (mut delivery, start) = (Delivery::default(), Instant::now());
        (1..4).for_each(|number| assert_eq!(delivery.push(start, event(number)), 0));
        let refused = Outcome::Refused("400".to_owned());
        assert_eq!(delivery.done(start, refused), Some("400".to_owned()));
        assert_eq!(delivery.at(), Some(start), "the next at once");
        assert_eq!(delivery.done(start, failed()), None);
        assert_eq!(delivery.done(start + TOLD_FOR, failed()), Some("no answer".to_owned()));
        assert!(delivery.at() > Some(start + TOLD_FOR), "the address is no better");
        assert_eq!(delivery.next().map(|event| event.number), Some(3));
        assert_eq!(delivery.done(start + TOLD_FOR, Outcome::Unwanted), None);
        assert_eq!((delivery.next(), delivery.at()), (None, None));
    }

    #[test]
    fn beyond_the_bound_the_oldest_that_is_not_on_its_way_is_lost() {
        let (mut delivery, now) = (Delivery::default(), Instant::now());
        let lost: u64 = (0..WAITING_MAX as u64 + 2).map(|number| delivery.push(now, event(number))).sum();
        assert_eq!(lost, 2);
        assert_eq!(delivery.next().map(|event| event.number), Some(0));
        delivery.done(now, Outcome::Taken);
        assert_eq!(delivery.next().map(|event| event.number), Some(3));
    }
}
