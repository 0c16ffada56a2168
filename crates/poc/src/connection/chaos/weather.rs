//! What happens to datagrams, and how that changes.

use core::time::Duration;

use fastrand::Rng;
use outflow_media::Time;

use super::scenario::ms;
use crate::packet::Mark;

pub(super) struct Weather {
    delay: Duration,
    jitter: Duration,
    /// Of a thousand: those lost alone, and those that a row of losses begins with.
    lost: u32,
    bursts: u32,
    burst: Duration,
    doubled: u32,
    marked: u32,
    /// Whether marks get through.
    marks: bool,
    datagram_bytes: usize,
    /// Bits a second, and what may wait.
    rate_bps: u64,
    queue: Duration,
    free_at: [Time; 2],
    /// Nothing gets through in a direction until then.
    dark_until: [Time; 2],
    pub(super) changes_at: Time,
    /// Which end moved last, and when the other one may.
    pub(super) moved: usize,
    pub(super) calm_until: Time,
}

impl Weather {
    pub(super) fn new(now: Time) -> Self {
        Weather {
            delay: Duration::from_millis(20),
            jitter: Duration::ZERO,
            lost: 0,
            bursts: 0,
            burst: Duration::ZERO,
            doubled: 0,
            marked: 0,
            marks: true,
            datagram_bytes: 1500,
            rate_bps: 20_000_000,
            queue: Duration::from_millis(200),
            free_at: [now; 2],
            dark_until: [now; 2],
            changes_at: now,
            moved: 0,
            calm_until: now,
        }
    }

    pub(super) fn change(&mut self, now: Time, random: &mut Rng, is_mild: bool) {
        self.changes_at = now + ms(random, 50, 900);
        let (delay, jitter) = ([5000, 50_000, 150_000][random.usize(..3)], [0, 10, 100][random.usize(..3)]);
        self.delay = Duration::from_micros(random.u64(200..delay));
        self.jitter = ms(random, 0, jitter);
        self.lost = [0, 10, 100, 300][random.usize(..4)];
        self.bursts = [0, 0, 30][random.usize(..3)];
        self.burst = ms(random, 2, 80);
        self.doubled = [0, 0, 50][random.usize(..3)];
        self.marked = [0, 0, 200][random.usize(..3)];
        self.marks = random.u8(..3) > 0;
        self.datagram_bytes = [1200, 1300, 1500, 9000][random.usize(..4)];
        self.rate_bps = [300_000, 2_000_000, 50_000_000][random.usize(..3)];
        self.queue = ms(random, 20, 300);
        if is_mild {
            (self.lost, self.bursts) = (self.lost.min(20), 0);
            self.changes_at = now + ms(random, 500, 5000);
        } else if random.u8(..10) == 0 {
            let both = random.usize(..3);
            let until = now + ms(random, 50, 600);
            (0..2).filter(|to| both == 2 || both == *to).for_each(|to| self.dark_until[to] = until);
        }
    }

    /// When a datagram arrives: once, twice, or never.
    pub(super) fn fly(
        &mut self,
        now: Time,
        to: usize,
        bytes: usize,
        mark: Mark,
        random: &mut Rng,
    ) -> [Option<(Time, Mark)>; 2] {
        let is_dark = self.dark_until[to] > now;
        let free_at = self.free_at[to].max(now);
        if is_dark || bytes > self.datagram_bytes || free_at > now + self.queue {
            return [None; 2];
        }
        self.free_at[to] = free_at + Duration::from_nanos(bytes as u64 * 8_000_000_000 / self.rate_bps);
        let happens = |random: &mut Rng, share: u32| share > 0 && random.u32(..1000) < share;
        if happens(random, self.bursts) {
            self.dark_until[to] = now + self.burst;
        }
        if happens(random, self.lost) {
            return [None; 2];
        }
        let mark = match mark {
            _ if !self.marks => Mark::None,
            Mark::Ect0 if happens(random, self.marked) => Mark::Ce,
            mark => mark,
        };
        let copies = 1 + usize::from(happens(random, self.doubled));
        let mut arrivals = [None; 2];
        for arrival in &mut arrivals[..copies] {
            let jitter = Duration::from_micros(random.u64(..=self.jitter.as_micros() as u64));
            *arrival = Some((self.free_at[to] + self.delay + jitter, mark));
        }
        arrivals
    }
}
