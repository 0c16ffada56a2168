//! The rate by delay: grows until packets wait, falls to less than what gets through, waits until the queue is gone
//! (section 5.5).

use core::time::Duration;

use outflow_media::Time;

use super::trend::Usage;

/// It falls to so much of what gets through.
const BETA: f64 = 0.85;

/// It grows so much in a second while nothing is known of what the way carries.
const GROWTH: f64 = 1.08;

/// And by this rate in a second, in bits a second, at least.
const GROWTH_BPS_LEAST: f64 = 4_000.0;

/// It grows to no more than this multiple of what gets through: what is not used is not known to fit. The rate below is
/// added, so that it grows from next to nothing.
const BEYOND: f64 = 1.5;
const BEYOND_BPS: f64 = 10_000.0;

/// Longest time that it grows for at once.
const GROWS: Duration = Duration::from_secs(1);

/// What it did is felt after a round trip, which is taken to be between these.
const FELT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// A video of 30 pictures a second in packets of 1200 bytes, by which the section says what a packet has.
const PICTURES_A_SECOND: f64 = 30.0;
const PACKET_BITS: f64 = 9_600.0;

/// How much of a new rate counts for the mean of those that were too much, and how many deviations around that it is
/// taken for the same.
const SMOOTHING: f64 = 0.05;
const DEVIATIONS: f64 = 3.0;

/// The squared deviation, of the mean in kbit/s, at first and between what.
const VARIANCE: f64 = 0.4;
const VARIANCE_LEAST: f64 = 0.4;
const VARIANCE_MOST: f64 = 2.5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Increase,
    Decrease,
    Hold,
}

/// What got through when it was too much.
#[derive(Debug, Clone, Copy)]
struct Capacity {
    mean_kbps: f64,
    variance: f64,
}

impl Capacity {
    /// How far from the mean it is the same.
    fn around(&self) -> f64 {
        DEVIATIONS * (self.variance * self.mean_kbps).sqrt()
    }

    fn note(&mut self, kbps: f64) {
        let error = self.mean_kbps - kbps;
        self.mean_kbps -= SMOOTHING * error;
        let apart = error * error / self.mean_kbps.max(1.0);
        self.variance =
            ((1.0 - SMOOTHING) * self.variance + SMOOTHING * apart).clamp(VARIANCE_LEAST, VARIANCE_MOST);
    }
}

/// The rate, and what it does.
#[derive(Debug, Clone)]
pub(super) struct Rate {
    bps: f64,
    /// Lowest and highest.
    bounds: (f64, f64),
    state: State,
    capacity: Option<Capacity>,
    updated: Option<Time>,
    decreased: Option<Time>,
}

impl Rate {
    pub(super) fn new(bps: f64, bounds: (f64, f64)) -> Self {
        let state = State::Increase;
        Rate { bps, bounds, state, capacity: None, updated: None, decreased: None }
    }

    pub(super) fn bps(&self) -> f64 {
        self.bps
    }

    /// So much is known to fit.
    pub(super) fn raise(&mut self, bps: f64) {
        self.set(self.bps.max(bps));
        let is_more = |capacity: &Capacity| bps / 1000.0 > capacity.mean_kbps + capacity.around();
        if self.capacity.as_ref().is_some_and(is_more) {
            self.capacity = None;
        }
    }

    /// Feedback came: what the detector says, and what gets through, if that is known.
    pub(super) fn update(&mut self, now: Time, usage: Usage, through_bps: Option<f64>, rtt: Duration) {
        self.state = match (usage, self.state) {
            (Usage::Over, _) => State::Decrease,
            (Usage::Under, _) | (Usage::Normal, State::Decrease) => State::Hold,
            (Usage::Normal, State::Hold | State::Increase) => State::Increase,
        };
        let passed = now.since(self.updated.unwrap_or(now)).min(GROWS);
        self.updated = Some(now);
        match self.state {
            State::Hold => {}
            State::Increase => self.increase(passed, through_bps, rtt),
            State::Decrease => self.decrease(now, through_bps, rtt),
        }
    }

    /// By a share of itself; by about half a packet in a response time where it is near to what was too much.
    fn increase(&mut self, passed: Duration, through_bps: Option<f64>, rtt: Duration) {
        let Some(through_bps) = through_bps else { return };
        if self.capacity.is_some_and(|c| through_bps / 1000.0 > c.mean_kbps + c.around()) {
            self.capacity = None;
        }
        let passed = passed.as_secs_f64();
        let growth = match self.capacity {
            None => self.bps * (GROWTH.powf(passed) - 1.0),
            Some(_) => {
                let picture_bits = self.bps / PICTURES_A_SECOND;
                let packet_bits = picture_bits / (picture_bits / PACKET_BITS).ceil().max(1.0);
                packet_bits / (rtt.as_secs_f64() + 0.1) * passed
            }
        };
        let bound = (through_bps * BEYOND + BEYOND_BPS).max(self.bps);
        self.set((self.bps + growth.max(GROWTH_BPS_LEAST * passed)).min(bound));
    }

    fn decrease(&mut self, now: Time, through_bps: Option<f64>, rtt: Duration) {
        let felt = rtt.clamp(FELT.0, FELT.1);
        let is_felt = self.decreased.is_none_or(|at| now.since(at) >= felt);
        if !is_felt && through_bps.is_none_or(|through| through >= self.bps / 2.0) {
            return;
        }
        self.fall(now, through_bps);
    }

    /// Below what gets through.
    fn fall(&mut self, now: Time, through_bps: Option<f64>) {
        self.decreased = Some(now);
        if let Some(through_bps) = through_bps {
            self.note_capacity(through_bps / 1000.0);
        }
        self.set(self.bps.min(BETA * through_bps.unwrap_or(self.bps)));
    }

    /// The way is known to carry no more than this.
    pub(super) fn narrow(&mut self, now: Time, carried_bps: f64) {
        self.state = State::Decrease;
        self.fall(now, Some(carried_bps));
    }

    fn note_capacity(&mut self, kbps: f64) {
        let known = self.capacity.filter(|capacity| kbps >= capacity.mean_kbps - capacity.around());
        let mut capacity = known.unwrap_or(Capacity { mean_kbps: kbps, variance: VARIANCE });
        capacity.note(kbps);
        self.capacity = Some(capacity);
    }

    fn set(&mut self, bps: f64) {
        self.bps = bps.clamp(self.bounds.0, self.bounds.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn rate(bps: f64) -> Rate {
        Rate::new(bps, (1e4, 1e8))
    }

    /// The rate after `updates`, 50 ms apart, from a moment on.
    fn after(rate: &mut Rate, from_ms: u64, updates: u64, usage: Usage, through: Option<f64>) -> f64 {
        (0..updates).for_each(|n| rate.update(Time::from_millis(from_ms + n * 50), usage, through, RTT));
        rate.bps()
    }

    #[test]
    fn it_grows_by_eight_percent_a_second() {
        let grown = after(&mut rate(1e6), 0, 21, Usage::Normal, Some(1e6));
        assert!((grown / 1.08e6 - 1.0).abs() < 0.001, "{grown}");
    }

    #[test]
    fn it_grows_no_further_than_half_beyond_what_gets_through() {
        assert_eq!(after(&mut rate(1e6), 0, 2000, Usage::Normal, Some(1e6)), 1.51e6);
        // What it has already stays, and nothing is known where nothing comes.
        assert_eq!(after(&mut rate(1e6), 0, 2000, Usage::Normal, Some(1e5)), 1e6);
        assert_eq!(after(&mut rate(1e6), 0, 2000, Usage::Normal, None), 1e6);
    }

    #[test]
    fn it_falls_below_what_gets_through_once_in_a_round_trip() {
        let mut rate = rate(5e6);
        assert_eq!(after(&mut rate, 0, 1, Usage::Over, Some(4e6)), 3.4e6);
        assert_eq!(after(&mut rate, 50, 1, Usage::Over, Some(3.9e6)), 3.4e6, "not felt yet");
        assert_eq!(after(&mut rate, 100, 1, Usage::Over, Some(3.6e6)), 3.06e6);
        assert_eq!(after(&mut rate, 150, 1, Usage::Over, Some(1e6)), 0.85e6, "far too much");
        assert_eq!(after(&mut rate, 400, 1, Usage::Over, Some(4e6)), 0.85e6, "it never grows by that");
        assert_eq!(after(&mut rate, 800, 1, Usage::Over, None), 0.85e6 * 0.85);
    }

    #[test]
    fn where_the_way_is_known_to_be_narrow_it_falls_at_once() {
        let mut rate = rate(5e6);
        assert_eq!(after(&mut rate, 0, 1, Usage::Over, Some(4e6)), 3.4e6);
        rate.narrow(Time::from_millis(10), 5e5);
        assert_eq!(rate.bps(), 4.25e5);
        assert_eq!(after(&mut rate, 50, 1, Usage::Normal, Some(5e5)), 4.25e5);
    }

    #[test]
    fn it_waits_while_the_queue_runs_empty() {
        let mut rate = rate(5e6);
        after(&mut rate, 0, 1, Usage::Over, Some(4e6));
        assert_eq!(after(&mut rate, 50, 20, Usage::Under, Some(3e6)), 3.4e6);
        assert!(after(&mut rate, 1050, 2, Usage::Normal, Some(3e6)) > 3.4e6);
    }

    #[test]
    fn near_what_was_too_much_it_grows_by_half_a_packet() {
        let mut rate = rate(5e6);
        after(&mut rate, 0, 1, Usage::Over, Some(4e6));
        after(&mut rate, 50, 2, Usage::Normal, Some(3.4e6));
        let before = rate.bps();
        let grown = after(&mut rate, 150, 20, Usage::Normal, Some(3.4e6)) - before;
        assert!((40_000.0..55_000.0).contains(&grown), "{grown}");
        // More gets through than did then: the way has changed.
        let before = rate.bps();
        let grown = after(&mut rate, 1150, 20, Usage::Normal, Some(4.5e6)) - before;
        assert!(grown > before * 0.07, "{grown}");
    }

    #[test]
    fn it_keeps_to_its_bounds() {
        assert_eq!(after(&mut rate(1e6), 0, 200, Usage::Over, Some(0.0)), 1e4);
        assert_eq!(after(&mut rate(1e8), 0, 200, Usage::Normal, Some(1e9)), 1e8);
        let mut rate = rate(1e6);
        rate.raise(2e9);
        assert_eq!(rate.bps(), 1e8);
    }
}
