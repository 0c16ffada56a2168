//! How long packets wait on the way: their delay, less the least that was seen.
//!
//! The peer's clock has any offset, and runs a little faster or slower; so the delay of one way alone would
//! seem to grow. The round trip has no such error, but knows the way back, too. Both have their own least
//! value; what waits is taken to be the smaller of the two excesses.

use core::time::Duration;

use outflow_media::Time;

use super::Acked;

/// Seconds over which the least delay is remembered: 10 s at 200 ppm are an error of 2 ms.
pub(super) const BASE_SECONDS: u64 = 10;

/// While a competing flow keeps the queue filled, the least delay is seen less often.
pub(super) const BASE_SECONDS_FILLED: u64 = 30;

/// A delay that changes by so much from one packet to the next while the round trip does not is a step of
/// the peer's clock.
const STEP: i64 = 50_000_000;

/// Packets that come within so long come at about the same time: what waits for a queue that grows does so for
/// about the same time, too. The same for all, so that round trips make no difference.
const TOGETHER: Duration = Duration::from_millis(10);

const SLOTS: usize = 32;

/// The least of the values of some seconds.
#[derive(Debug, Clone)]
struct Least {
    /// The least of each second, by its number modulo their count.
    seconds: [i64; SLOTS],
    newest: Option<u64>,
    least: i64,
}

impl Least {
    fn new() -> Self {
        Least { seconds: [i64::MAX; SLOTS], newest: None, least: i64::MAX }
    }

    /// Notes a value, and forgets what is `keep` seconds old.
    fn note(&mut self, now: Time, value: i64, keep: u64) {
        let second = now.as_millis() / 1000;
        let newest = self.newest.unwrap_or(second);
        if self.newest != Some(second) {
            for skipped in newest + 1..=second.min(newest + SLOTS as u64) {
                self.seconds[skipped as usize % SLOTS] = i64::MAX;
            }
            if self.newest.is_none() || second > newest + SLOTS as u64 {
                self.seconds = [i64::MAX; SLOTS];
            }
            self.newest = Some(second.max(newest));
        }
        let slot = &mut self.seconds[second as usize % SLOTS];
        *slot = value.min(*slot);
        let kept = (0..keep.min(SLOTS as u64)).filter_map(|ago| second.checked_sub(ago));
        let of = |second: u64| self.seconds[second as usize % SLOTS];
        self.least = kept.map(of).min().unwrap_or(value).min(value);
    }

    fn shift(&mut self, by: i64) {
        for value in self.seconds.iter_mut().chain([&mut self.least]) {
            *value = if *value == i64::MAX { i64::MAX } else { value.saturating_add(by) };
        }
    }
}

/// The least value of about the last half of a round trip, of two halves of that.
#[derive(Debug, Clone, Copy)]
struct Standing {
    since: Time,
    before: i64,
    current: i64,
    /// The most of the current one.
    most: i64,
}

impl Standing {
    const NONE: Standing = Standing { since: Time::ZERO, before: i64::MAX, current: i64::MAX, most: 0 };

    /// Notes a value. Answers how far those of a half were apart, if one has passed.
    fn note(&mut self, now: Time, value: i64, span: Duration) -> Option<i64> {
        let age = now.since(self.since);
        let mut apart = None;
        if age >= span {
            apart = Some(self.most - self.current).filter(|_| self.current != i64::MAX);
            self.before = if age < span * 2 { self.current } else { i64::MAX };
            (self.since, self.current, self.most) = (now, value, value);
        }
        self.current = self.current.min(value);
        self.most = self.most.max(value);
        apart
    }

    fn get(&self) -> Option<i64> {
        Some(self.before.min(self.current)).filter(|least| *least != i64::MAX)
    }
}

/// What is known of the delay of a path, for one that goes on with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The round trip, smoothed.
    pub smoothed: Duration,
    /// How long packets are in flight, smoothed: with the time that the peer waits before it answers.
    pub in_flight: Duration,
    /// The shortest round trip of some seconds.
    pub least: Duration,
    /// The least of the peer's clock at an arrival less ours when that was sent, in nanoseconds.
    pub least_one_way: i64,
}

/// What is known of the delay.
#[derive(Debug, Clone)]
pub(super) struct Delay {
    one_way: Least,
    round_trip: Least,
    /// The negative of the longest round trip of some seconds, and the longest of the last one or two: with
    /// all waiting on the way there, and none on the way back.
    longest: Least,
    recent: [(Time, i64); 2],
    standing: Standing,
    /// The same of packets that come at about the same time.
    together: Standing,
    /// Of the newest packet: its number, delay of one way, and round trip.
    last: Option<(u64, i64, i64)>,
    smoothed: Option<i64>,
    /// How long packets are in flight, smoothed: with the time that the peer waits before it answers.
    in_flight: i64,
    queue: i64,
    /// How much packets that come at about the same time wait longer than others, smoothed.
    spread: i64,
}

impl Delay {
    pub(super) fn new() -> Self {
        Delay {
            one_way: Least::new(),
            round_trip: Least::new(),
            longest: Least::new(),
            recent: [(Time::ZERO, 0); 2],
            standing: Standing::NONE,
            together: Standing::NONE,
            last: None,
            smoothed: None,
            in_flight: 0,
            queue: 0,
            spread: 0,
        }
    }

    /// What another one needs to go on, if anything is known.
    pub(super) fn known(&self) -> Option<Known> {
        let smoothed = duration(self.smoothed?);
        let (in_flight, least) = (duration(self.in_flight), self.base());
        Some(Known { smoothed, in_flight, least, least_one_way: self.one_way.least })
    }

    /// This was known before.
    pub(super) fn go_on(&mut self, now: Time, known: Known) {
        self.smoothed = Some(nanos(known.smoothed));
        self.in_flight = nanos(known.in_flight);
        self.one_way.note(now, known.least_one_way, BASE_SECONDS);
        self.round_trip.note(now, nanos(known.least), BASE_SECONDS);
    }

    /// Packets were received: not empty. Of them, `newest` has the highest number. Samples of packets sent
    /// before a change that is still to be felt do not count as standing.
    pub(super) fn note(
        &mut self,
        now: Time,
        (batch, newest): (&[Acked], &Acked),
        rtt: Duration,
        keep: u64,
        is_felt: bool,
    ) {
        let rtt = nanos(rtt).max(1);
        let delay = |acked: &Acked| acked.received.as_nanos().wrapping_sub(acked.sent.as_nanos()) as i64;
        let one_way = delay(newest);
        self.note_steps(newest.number, one_way, rtt);
        let (least, most) =
            batch.iter().map(delay).fold((one_way, one_way), |(a, b), d| (a.min(d), b.max(d)));
        self.one_way.note(now, least, keep);
        self.round_trip.note(now, rtt, keep);
        let smoothed = self.smoothed.unwrap_or(rtt);
        let is_first = self.smoothed.is_none();
        self.smoothed = Some(smoothed + (rtt - smoothed) / 8);
        let flights: i64 = batch.iter().map(|acked| nanos(now.since(acked.sent)) / batch.len() as i64).sum();
        let before = if is_first { flights } else { self.in_flight };
        self.in_flight = before + (flights - before) / 8;

        let one_way_excess = one_way.saturating_sub(self.one_way.least);
        self.queue = one_way_excess.min(rtt - self.round_trip.least).max(0);
        let highest = self.queue.saturating_add(most.saturating_sub(one_way));
        let highest = highest.saturating_add(self.round_trip.least);
        self.note_longest(now, highest, keep);
        if is_felt {
            let span = (self.smoothed() / 4).clamp(Duration::from_micros(2500), Duration::from_millis(50));
            self.standing.note(now, self.queue, span);
            if let Some(apart) = self.together.note(now, self.queue, TOGETHER) {
                self.spread += (apart - self.spread) / 16;
            }
        }
    }

    fn note_longest(&mut self, now: Time, highest: i64, keep: u64) {
        self.longest.note(now, highest.saturating_neg(), keep);
        let [before, current] = &mut self.recent;
        if now.since(current.0) >= Duration::from_nanos(self.smoothed.unwrap_or(1).unsigned_abs()) {
            (*before, *current) = (*current, (now, 0));
        }
        current.1 = current.1.max(highest);
    }

    /// A step of the peer's clock must not be taken for a queue, nor for its end.
    fn note_steps(&mut self, number: u64, one_way: i64, rtt: i64) {
        if let Some((last, before, rtt_before)) = self.last {
            if number <= last {
                return;
            }
            let (moved, rtt_moved) = (one_way.wrapping_sub(before), rtt - rtt_before);
            let apart = moved.saturating_sub(rtt_moved);
            if apart.saturating_abs() > STEP && rtt_moved.saturating_abs() < moved.saturating_abs() / 2 {
                self.one_way.shift(apart);
            }
        }
        self.last = Some((number, one_way, rtt));
    }

    /// What waits now is no longer known, because the window was just changed.
    pub(super) fn forget_standing(&mut self) {
        (self.standing, self.together) = (Standing::NONE, Standing::NONE);
    }

    /// The way has become longer: what was the least delay is no longer.
    pub(super) fn forget_base(&mut self) {
        (self.one_way, self.round_trip) = (Least::new(), Least::new());
        if let Some((_, one_way, rtt)) = self.last {
            self.one_way.least = one_way;
            self.round_trip.least = rtt;
        }
    }

    /// How far the waiting of packets that come at about the same time is apart.
    pub(super) fn spread(&self) -> Duration {
        duration(self.spread)
    }

    /// The shortest that packets waited over the last half of a round trip.
    pub(super) fn standing(&self) -> Option<Duration> {
        self.standing.get().map(duration)
    }

    /// How long the newest packet waited.
    pub(super) fn queue(&self) -> Duration {
        duration(self.queue)
    }

    /// The longest that packets waited over the last round trip or two, and over some seconds.
    pub(super) fn longest(&self) -> (Duration, Duration) {
        let recent = self.recent[0].1.max(self.recent[1].1);
        let longest = self.longest.least.saturating_neg();
        let beyond = |round_trip: i64| duration(round_trip.saturating_sub(self.round_trip.least));
        (beyond(recent), beyond(longest))
    }

    /// The shortest round trip of some seconds.
    pub(super) fn base(&self) -> Duration {
        if self.round_trip.least == i64::MAX { Duration::ZERO } else { duration(self.round_trip.least) }
    }

    /// The round trip, smoothed (RFC 9002, section 5.3); before the first, an assumed one.
    pub(super) fn smoothed(&self) -> Duration {
        self.smoothed.map_or(super::RTT_ASSUMED, duration)
    }

    /// How long a packet is in flight on average, so that bytes in flight are the rate times this; before
    /// the first, an assumed time.
    pub(super) fn in_flight(&self) -> Duration {
        if self.is_known() { duration(self.in_flight.max(1)) } else { super::RTT_ASSUMED }
    }

    pub(super) fn is_known(&self) -> bool {
        self.smoothed.is_some()
    }
}

fn nanos(duration: Duration) -> i64 {
    // A day, so that sums of some of them fit.
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX).min(86_400_000_000_000)
}

fn duration(nanos: i64) -> Duration {
    Duration::from_nanos(nanos.max(0).unsigned_abs())
}

#[cfg(test)]
mod tests;
