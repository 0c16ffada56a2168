//! Asks a relay for a level over RTCP (GMS, section III.C: the `negotiate_client`). No I/O, no clock.
//!
//! Nothing tells the asking side that a relay was restarted, so it asks again all the time, at intervals that let
//! a relay know within a second.

use core::time::Duration;

use outflow_media::{Backoff, Time};
use outflow_rtp::rtcp::{LevelAnswer, LevelRequest};

/// A request that was answered is repeated after that time.
const REPEAT: Duration = Duration::from_millis(500);

/// Waits until a request without an answer is repeated.
pub(crate) const AGAIN: Backoff = Backoff::new(Duration::from_millis(100), REPEAT);

/// What was asked for, and what the answer was.
#[derive(Debug)]
pub(crate) struct Negotiation {
    /// The level that is wanted; `None` as long as none is wanted.
    level: Option<u8>,
    /// That of the newest request.
    number: u16,
    /// The source that is received.
    media: Option<u32>,
    backoff: Backoff,
    due: Option<Time>,
    is_answered: bool,
}

impl Negotiation {
    /// Numbers of requests begin here: any number does.
    pub(crate) fn new(number: u16) -> Self {
        Negotiation { level: None, number, media: None, backoff: AGAIN, due: None, is_answered: false }
    }

    /// This level is wanted from now on.
    pub(crate) fn ask(&mut self, now: Time, level: u8) {
        if self.level != Some(level) {
            self.number = self.number.wrapping_add(1);
            self.level = Some(level);
            self.begin(now);
        }
    }

    /// The media come from this source. Another one than before: perhaps another relay, which knows nothing.
    pub(crate) fn hear(&mut self, now: Time, media: u32) {
        if self.media.replace(media) != Some(media) {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Time) {
        (self.is_answered, self.backoff) = (false, AGAIN);
        self.due = self.level.and(self.media).map(|_| now);
    }

    /// An answer has come. Returns whether it is one to the newest request: others are late, or forged.
    pub(crate) fn answered(&mut self, answer: &LevelAnswer) -> bool {
        let is_ours =
            self.level.is_some() && Some(answer.media) == self.media && answer.number == self.number;
        self.is_answered |= is_ours;
        is_ours
    }

    /// When the next request is due.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// The request that is due, if one is.
    pub(crate) fn poll(&mut self, now: Time) -> Option<LevelRequest> {
        self.due.filter(|due| *due <= now)?;
        let (level, media) = self.level.zip(self.media)?;
        self.due = Some(now + if self.is_answered { REPEAT } else { self.backoff.wait() });
        Some(LevelRequest { number: self.number, level, media })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn answer(number: u16, media: u32) -> LevelAnswer {
        LevelAnswer { number, level: 2, media, rates: vec![3, 2, 1] }
    }

    /// Milliseconds at which something is asked until `end`, and what.
    fn requests(negotiation: &mut Negotiation, end: u64) -> Vec<(u64, LevelRequest)> {
        let mut all = Vec::new();
        while let Some(due) = negotiation.due().filter(|due| *due <= at(end)) {
            all.push((due.as_millis(), negotiation.poll(due).expect("it is due")));
            assert_eq!(negotiation.poll(due), None, "once");
        }
        all
    }

    #[test]
    fn none_is_asked_before_there_is_a_wish_and_a_source() {
        let mut negotiation = Negotiation::new(9);
        negotiation.hear(at(0), 7);
        assert_eq!(negotiation.due(), None);
        let mut negotiation = Negotiation::new(9);
        negotiation.ask(at(0), 2);
        assert_eq!(negotiation.due(), None);
        negotiation.hear(at(5), 7);
        assert_eq!(requests(&mut negotiation, 5), [(5, LevelRequest { number: 10, level: 2, media: 7 })]);
    }

    #[test]
    fn what_is_not_answered_is_asked_again_and_what_is_answered_now_and_then() {
        let mut negotiation = Negotiation::new(u16::MAX);
        negotiation.hear(at(0), 7);
        negotiation.ask(at(0), 2);
        let times = |requests: Vec<(u64, LevelRequest)>| requests.iter().map(|r| r.0).collect::<Vec<_>>();
        assert_eq!(times(requests(&mut negotiation, 1800)), [0, 100, 300, 700, 1200, 1700]);
        assert!(!negotiation.answered(&answer(1, 7)), "of another request");
        assert!(!negotiation.answered(&answer(0, 8)), "of another source");
        assert!(negotiation.answered(&answer(0, 7)), "numbers wrap");
        assert_eq!(times(requests(&mut negotiation, 3300)), [2200, 2700, 3200]);
    }

    #[test]
    fn another_wish_or_another_source_is_asked_for_at_once() {
        let mut negotiation = Negotiation::new(0);
        negotiation.hear(at(0), 7);
        negotiation.ask(at(0), 2);
        requests(&mut negotiation, 0);
        assert!(negotiation.answered(&answer(1, 7)));
        negotiation.ask(at(10), 2);
        assert_eq!(requests(&mut negotiation, 20), [], "the same");
        negotiation.ask(at(20), 3);
        assert_eq!(requests(&mut negotiation, 20), [(20, LevelRequest { number: 2, level: 3, media: 7 })]);
        negotiation.hear(at(30), 8);
        assert_eq!(requests(&mut negotiation, 30), [(30, LevelRequest { number: 2, level: 3, media: 8 })]);
    }
}
