//! When a packet is given to the transport, and for how long it is of use then.

use std::time::Duration;

use crate::saved::SavedPace;

/// What is to be done with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is part of what a receiver begins with: when there is room for it.
    CatchUp,
    /// It is of use for so long.
    Now(Duration),
    /// It is of no use any more.
    Late,
}

/// A receiver begins with what is kept for it, from the newest key frame on, and catches up as fast as the path
/// lets it. From then on, or if it falls behind instead, packets are of use for as long as they are worth sending
/// again; those of key frames come late rather than never.
#[derive(Debug)]
pub(super) struct Pace {
    latency: Duration,
    /// How old the first packet was.
    begun: Option<Duration>,
    is_up: bool,
}

impl Pace {
    pub(super) fn new(latency: Duration) -> Self {
        Pace { latency, begun: None, is_up: false }
    }

    pub(super) fn save(&self) -> SavedPace {
        SavedPace { begun: self.begun.map(|age| age.as_nanos() as u64), is_up: self.is_up }
    }

    pub(super) fn restore(latency: Duration, saved: SavedPace) -> Self {
        Pace { latency, begun: saved.begun.map(Duration::from_nanos), is_up: saved.is_up }
    }

    /// A packet that came so long ago.
    pub(super) fn turn(&mut self, age: Duration, is_key: bool) -> Turn {
        let begun = *self.begun.get_or_insert(age);
        self.is_up |= age <= self.latency / 2 || age > begun + self.latency;
        match self.latency.checked_sub(age) {
            _ if !self.is_up => Turn::CatchUp,
            Some(left) if !left.is_zero() => Turn::Now(left),
            _ if is_key => Turn::Now(self.latency),
            _ => Turn::Late,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Duration = Duration::from_millis(200);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn one_that_joins_catches_up_first_and_is_late_afterwards() {
        let mut pace = Pace::new(LATENCY);
        for age in [900, 1_000, 500, 150] {
            assert_eq!(pace.turn(ms(age), false), Turn::CatchUp, "{age}");
        }
        assert_eq!(pace.turn(ms(20), false), Turn::Now(ms(180)));
        assert_eq!(pace.turn(ms(199), false), Turn::Now(ms(1)));
        assert_eq!(pace.turn(ms(200), false), Turn::Late);
        assert_eq!(pace.turn(ms(700), true), Turn::Now(LATENCY));
    }

    #[test]
    fn it_goes_on_in_another_process() {
        let mut pace = Pace::new(LATENCY);
        for age in [900, 1_000, 20, 199] {
            let turn = pace.turn(ms(age), false);
            let expected = if age > 200 { Turn::CatchUp } else { Turn::Now(LATENCY - ms(age)) };
            assert_eq!(turn, expected, "{age}");
            pace = Pace::restore(LATENCY, pace.save());
        }
        assert_eq!(pace.turn(ms(900), false), Turn::Late);
    }

    #[test]
    fn one_that_falls_behind_does_not_catch_up_for_ever() {
        let mut pace = Pace::new(LATENCY);
        assert_eq!(pace.turn(ms(900), true), Turn::CatchUp);
        assert_eq!(pace.turn(ms(1_100), false), Turn::CatchUp);
        assert_eq!(pace.turn(ms(1_101), false), Turn::Late);
        assert_eq!(pace.turn(ms(600), false), Turn::Late);
        assert_eq!(pace.turn(ms(150), false), Turn::Now(ms(50)));
    }
}
