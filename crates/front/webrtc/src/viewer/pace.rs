//! When packets go to a viewer: at once while it is up, and no faster than ways carry while it catches up.

use core::time::Duration;

use outflow_media::{Rate, Time, TokenBucket};

use crate::limits::{
    CATCH_UP_BPS, CATCH_UP_BURST, CATCH_UP_TIMES, HELD_BURST, HELD_REPAIRS, LIVE, MEASURED_AFTER,
    REPAIRS_PERCENT,
};

#[derive(Debug)]
pub(super) struct Pace {
    /// Bytes that may go.
    room: TokenBucket,
    /// When there is room for the next packet, if one has found none.
    until: Option<Time>,
    /// The newest packet has been reached.
    is_up: bool,
    /// When the first packet came to the relay, and the bytes that went since.
    sent: Option<(Time, u64)>,
    /// In bits a second: how fast it is while it catches up.
    bps: u64,
    /// Bits a second that the stream has, and the most that it had.
    stream_bps: u64,
    most_bps: u64,
    /// What the way carries, once that is known.
    carried_bps: Option<u64>,
    /// It is less than the stream has, and nothing goes faster: what may go.
    held: Option<(u64, TokenBucket)>,
}

impl Pace {
    pub(super) fn new() -> Self {
        let room = TokenBucket::new(CATCH_UP_BURST);
        Pace {
            room,
            until: None,
            is_up: false,
            sent: None,
            bps: CATCH_UP_BPS,
            stream_bps: 0,
            most_bps: 0,
            carried_bps: None,
            held: None,
        }
    }

    /// That of a viewer that has been up.
    pub(super) fn resume() -> Self {
        Pace { is_up: true, ..Pace::new() }
    }

    /// See [`Peer::warm`](outflow_engine::message::Peer::warm).
    pub(super) fn warm(&self) -> usize {
        usize::from(self.until.is_some() ^ self.held.is_some() ^ self.sent.is_some()) ^ self.bps as usize
    }

    /// Whether a packet may go that came to the relay then.
    pub(super) fn passes(&mut self, now: Time, arrived: Time, bytes: usize) -> bool {
        self.room.fill(now, self.rate());
        let is_live = now.since(arrived) <= LIVE;
        self.is_up |= is_live;
        if let Some(lacks) = self.finds_no_room(now) {
            self.until = Some(now + lacks);
            return false;
        }
        if !is_live && self.room.tokens() <= 0 {
            self.until = Some(now + self.wait());
            return false;
        }
        // What goes at once has to be made up for by what can wait, but not for ever.
        if self.room.tokens() > -(CATCH_UP_BURST as i64) {
            self.room.take(bytes as u64);
        }
        self.spend(bytes);
        self.measure(arrived, bytes);
        true
    }

    /// How long it takes until something may go, if it is held, and a little more goes with it.
    fn finds_no_room(&mut self, now: Time) -> Option<Duration> {
        let (bps, room) = self.held.as_mut()?;
        room.fill(now, Rate::per_second(*bps / 8));
        let owed = Some(room.tokens()).filter(|tokens| *tokens <= 0)?;
        Some(takes(owed.unsigned_abs() + HELD_BURST / 2, *bps))
    }

    fn spend(&mut self, bytes: usize) {
        self.held.iter_mut().for_each(|(_, room)| room.take(bytes as u64));
    }

    /// Whether a packet may be sent once more. Where less is carried than the stream has, one that `is_base`, on which all
    /// depends, goes before what is new.
    pub(super) fn repeats(&mut self, now: Time, bytes: usize, is_base: bool) -> bool {
        self.room.fill(now, self.rate());
        let is_held = self.finds_no_room(now).is_some();
        let owes = self.held.as_ref().map_or(0, |(_, room)| -room.tokens());
        let has_room = !is_held || (is_base && owes < HELD_REPAIRS);
        let repeats = self.room.tokens() > 0 && has_room;
        if repeats {
            self.room.take(bytes as u64);
            self.spend(bytes);
        }
        repeats
    }

    /// Whether pictures are to be shown as soon as they are there: the newest has not been reached yet.
    pub(super) fn is_catching_up(&self) -> bool {
        !self.is_up
    }

    /// The way carries so much.
    pub(super) fn carries(&mut self, bps: u64) {
        self.carried_bps = Some(bps);
    }

    /// Another stream comes, of which nothing has been measured.
    pub(super) fn begin_again(&mut self) {
        (self.sent, self.stream_bps, self.held) = (None, 0, None);
        // What went of the other one need not be made up for.
        self.room = TokenBucket::new(CATCH_UP_BURST);
        self.room.take(CATCH_UP_BURST - HELD_BURST);
    }

    /// Nothing goes faster than this from now on, what is new neither.
    pub(super) fn hold(&mut self, bps: Option<u64>) {
        let room = self.held.take().map_or(TokenBucket::new(HELD_BURST), |(_, room)| room);
        self.held = bps.map(|bps| (bps.max(1), room));
    }

    /// How fast it is while it catches up, if the way carries that.
    pub(super) fn catch_up_bps(&self) -> u64 {
        self.bps
    }

    /// Bits a second that the stream has; 0 before that is known.
    pub(super) fn stream_bps(&self) -> u64 {
        self.stream_bps
    }

    /// The most bits a second that the stream had so far; 0 before that is known.
    pub(super) fn most_bps(&self) -> u64 {
        self.most_bps
    }

    /// When there is room for what has found none.
    pub(super) fn until(&self) -> Option<Time> {
        self.until
    }

    /// Time has passed.
    pub(super) fn pass(&mut self, now: Time) {
        self.until = self.until.filter(|until| *until > now);
    }

    /// A packet of the stream came. Catching up is faster than it comes, however fast that is.
    pub(super) fn measure(&mut self, arrived: Time, bytes: usize) {
        let (begun, sent) = self.sent.get_or_insert((arrived, 0));
        *sent += bytes as u64;
        let passed = arrived.since(*begun);
        if passed >= MEASURED_AFTER {
            let bps = (u128::from(*sent) * 8_000_000_000 / passed.as_nanos().max(1)) as u64;
            self.bps = CATCH_UP_BPS.max(CATCH_UP_TIMES * bps);
            (self.stream_bps, self.most_bps) = (bps, self.most_bps.max(bps));
            (*begun, *sent) = (arrived, 0);
        }
    }

    /// No more than the way carries, but for a tenth of the stream: what is sent anyway must not take all repairs away.
    fn bps(&self) -> u64 {
        let least_bps = self.stream_bps / 100 * (100 + REPAIRS_PERCENT);
        self.carried_bps.map_or(self.bps, |carried| carried.max(least_bps).min(self.bps)).max(1)
    }

    fn rate(&self) -> Rate {
        Rate::per_second(self.bps() / 8)
    }

    /// How long it takes until something may go, and a little more goes with it.
    fn wait(&self) -> Duration {
        takes(self.room.tokens().unsigned_abs() + CATCH_UP_BURST / 8, self.bps())
    }
}

/// How long bytes take at a rate.
fn takes(bytes: u64, bps: u64) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(8_000_000_000) / bps.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_millis(60_000);

    #[test]
    fn what_is_kept_goes_at_the_rate_of_ways_and_what_is_new_at_once() {
        let mut pace = Pace::new();
        let (mut now, mut bytes) = (START, 0_u64);
        while now < START + Duration::from_millis(500) {
            if pace.passes(now, Time::ZERO, 1000) {
                bytes += 1000;
                continue;
            }
            let until = pace.until().expect("it waits");
            assert!(until > now);
            pace.pass(now);
            assert_eq!(pace.until(), Some(until));
            pace.pass(until);
            assert_eq!(pace.until(), None);
            now = until;
        }
        let expected = CATCH_UP_BURST + CATCH_UP_BPS / 8 / 2;
        assert!(bytes.abs_diff(expected) < 10_000, "{bytes}");
        assert!(pace.is_catching_up());
        assert!((0..100).all(|_| pace.passes(now, now, 1000)) && !pace.is_catching_up());
        assert!(!pace.passes(now, Time::ZERO, 1000), "what is new has used it up");
    }

    #[test]
    fn a_stream_that_comes_fast_is_caught_up_with() {
        // 40 Mbit/s, of which two seconds are kept.
        let mut pace = Pace::new();
        let arrived = |number: u64| Time::ZERO + Duration::from_micros(200) * number as u32;
        let (mut now, mut number) = (arrived(10_000), 0_u64);
        while pace.is_catching_up() {
            match pace.passes(now, arrived(number), 1000) {
                true => number += 1,
                false => now = pace.until().expect("it waits"),
            }
            assert!(now < Time::from_millis(20_000), "it lags {number} packets");
        }
    }

    #[test]
    fn where_less_is_carried_than_the_stream_has_a_tenth_of_it_is_left_for_repairs() {
        // 2 Mbit/s, of which a quarter is carried, it seems.
        let (mut pace, mut repaired) = (Pace::new(), 0_u64);
        for number in 0..2_500 {
            let now = START + Duration::from_millis(4) * number;
            assert!(pace.passes(now, now, 1000), "what is new goes at once");
            if number == 500 {
                pace.carries(500_000);
            }
            if number > 1_000 && pace.repeats(now, 1000, false) {
                repaired += 1;
            }
        }
        let expected = 150 + CATCH_UP_BURST / 1000;
        assert!(repaired.abs_diff(expected) < 10, "{repaired}, not {expected}");
    }

    #[test]
    fn repairs_stay_within_it() {
        let mut pace = Pace::new();
        let all = (0..1000).filter(|_| pace.repeats(Time::ZERO, 1000, false)).count() as u64;
        assert_eq!(all, CATCH_UP_BURST.div_ceil(1000));
        let later = Time::from_millis(10);
        let more = (0..1000).filter(|_| pace.repeats(later, 1000, false)).count() as u64;
        assert!(more.abs_diff(CATCH_UP_BPS / 8 / 100 / 1000) <= 1, "{more}");
    }

    #[test]
    fn another_stream_has_a_little_room_at_once_and_then_what_the_way_carries() {
        let mut pace = Pace::new();
        (0..500).for_each(|at| assert!(pace.passes(START, START + Duration::from_millis(at), 1000)));
        pace.carries(400_000);
        pace.hold(Some(400_000));
        assert!(!pace.passes(START, Time::ZERO, 1000), "it owes a lot");
        pace.begin_again();
        assert_eq!((0..100).filter(|_| pace.passes(START, Time::ZERO, 1000)).count(), 5);
        let later = START + Duration::from_millis(100);
        let more = (0..100).filter(|_| pace.passes(later, Time::ZERO, 1000)).count();
        assert!((5..=6).contains(&more), "{more}");
        assert_eq!(pace.stream_bps(), 0);
    }

    #[test]
    fn where_less_is_carried_what_all_depends_on_goes_before_what_is_new() {
        let (mut pace, now) = (Pace::new(), START);
        pace.hold(Some(400_000));
        while pace.passes(now, now, 1000) {}
        assert!(!pace.repeats(now, 1000, false));
        let of_base = (0..100).filter(|_| pace.repeats(now, 1000, true)).count() as i64;
        assert_eq!(of_base, HELD_REPAIRS / 1000);
        // It is paid back: 50 kB a second.
        let later = now + Duration::from_millis(150);
        assert!(!pace.passes(later, later, 1000));
        let later = now + Duration::from_millis(170);
        assert!(pace.passes(later, later, 1000));
    }
}
