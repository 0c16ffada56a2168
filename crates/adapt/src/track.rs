//! A way with a bottleneck between a relay and a receiver, in virtual time: frames of 33 layers at 15 a second,
//! a token bucket with a queue that drops what does not fit.

use core::time::Duration;
use std::collections::VecDeque;

use outflow_media::Time;

use super::*;

pub(crate) const LEVELS: u8 = 33;
const PACKET: usize = 1400;
const FRAMES_A_SECOND: u64 = 15;
const ONE_WAY: Duration = Duration::from_millis(5);

/// Bytes of a frame of each level, the best first: from 60 kB down to 500 B.
pub(crate) fn frame_bytes(level: u8) -> usize {
    (60_000.0 * (500.0_f64 / 60_000.0).powf(f64::from(level - 1) / 32.0)) as usize
}

pub(crate) fn rates() -> Vec<u64> {
    (1..=LEVELS).map(|level| frame_bytes(level) as u64 * FRAMES_A_SECOND).collect()
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// When which level was asked for.
    pub(crate) asked: Vec<(Time, Decision)>,
    /// Which level was in force when each frame was sent, and whether all of it came.
    pub(crate) frames: Vec<(u8, bool)>,
    pub(crate) queue_most: Duration,
}

impl Outcome {
    pub(crate) fn whole(&self) -> usize {
        self.frames.iter().filter(|(_, whole)| *whole).count()
    }

    /// The levels in force from one frame on to another.
    pub(crate) fn levels(&self, frames: core::ops::Range<usize>) -> Vec<u8> {
        self.frames[frames].iter().map(|(level, _)| *level).collect()
    }

    /// Milliseconds from `since` until the first request after it.
    pub(crate) fn first_after(&self, since: u64) -> Option<u64> {
        let after = self.asked.iter().find(|(at, _)| at.as_millis() >= since);
        after.map(|(at, _)| at.as_millis() - since)
    }
}

/// A token bucket: bytes a second, by time; a burst; how many bytes may wait.
pub(crate) struct Bottleneck {
    pub(crate) rate_at: fn(u64) -> u64,
    pub(crate) burst: usize,
    pub(crate) room: usize,
    /// At these milliseconds nothing gets through: until when. All of it comes at once then.
    pub(crate) still: fn(u64) -> Option<u64>,
}

/// How frames leave the sender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sending {
    /// The percentage of the time between two frames over which a frame's packets are spread.
    pub(crate) spread: u32,
    /// B pictures after each picture that leaves before them.
    pub(crate) early: u64,
    /// Packets are late by up to so much by chance.
    pub(crate) jitter_us: u64,
}

impl Sending {
    pub(crate) const PLAIN: Self = Sending { spread: 50, early: 0, jitter_us: 2000 };

    /// The place of a frame among those that are shown.
    fn shown(self, frame: u64) -> u64 {
        // I B B P B B leave as I P B B P B B: every first of a group is shown after all of it.
        match frame.checked_sub(1).map(|i| i % (self.early + 1)) {
            None => 0,
            Some(0) => frame + self.early,
            Some(_) => frame - 1,
        }
    }
}

/// What is on its way.
struct InFlight {
    leaves: Time,
    arrives: Time,
    bytes: usize,
    sent: Time,
    number: u64,
    frame: usize,
}

/// The relay, the way, and the receiver.
struct Track<'a> {
    policy: &'a mut dyn Policy,
    way: &'a Bottleneck,
    rates: Vec<u64>,
    outcome: Outcome,
    /// What is in force at the relay, what was asked for last, and what is on its way to the relay.
    level: u8,
    asked: u8,
    requests: VecDeque<(Time, u8)>,
    in_flight: VecDeque<InFlight>,
    /// Packets of the frame that goes out, and when.
    outbox: VecDeque<(Time, usize, Time, usize)>,
    tokens: f64,
    free_at: Time,
    number: u64,
    expected: u64,
    missing: Vec<usize>,
    chance: u64,
    sending: Sending,
}

/// Runs `frames` frames through it.
pub(crate) fn run(policy: &mut dyn Policy, way: &Bottleneck, frames: u64, sending: Sending) -> Outcome {
    let mut track = Track {
        policy,
        way,
        rates: rates(),
        outcome: Outcome::default(),
        level: 1,
        asked: 1,
        requests: VecDeque::new(),
        in_flight: VecDeque::new(),
        outbox: VecDeque::new(),
        tokens: way.burst as f64,
        free_at: Time::ZERO,
        number: 0,
        expected: 0,
        missing: vec![0; frames as usize],
        chance: 1,
        sending,
    };
    let end = frames * 1000 / FRAMES_A_SECOND;
    for ms in 0..end + 1000 {
        let now = Time::from_millis(ms);
        let frame = ms * FRAMES_A_SECOND / 1000;
        let begins = ms == 0 || frame != (ms - 1) * FRAMES_A_SECOND / 1000;
        while track.requests.front().is_some_and(|(at, _)| *at <= now) {
            track.level = track.requests.pop_front().expect("it is there").1;
        }
        if begins && frame < frames {
            track.begin_frame(now, frame as usize);
        }
        while track.outbox.front().is_some_and(|(at, ..)| *at <= now) {
            let (at, bytes, sent, frame) = track.outbox.pop_front().expect("it is there");
            track.send(at, (bytes, sent, frame));
        }
        track.arrive(now);
    }
    for (frame, (_, whole)) in track.outcome.frames.iter_mut().enumerate() {
        *whole = track.missing[frame] == 0;
    }
    track.outcome
}

impl Track<'_> {
    /// A frame's packets go out within some of the time until the next.
    fn begin_frame(&mut self, now: Time, frame: usize) {
        self.outcome.frames.push((self.level, false));
        let mut left = frame_bytes(self.level);
        let count = left.div_ceil(PACKET);
        let apart =
            Duration::from_secs(1) * self.sending.spread / (100 * FRAMES_A_SECOND as u32 * count as u32);
        let sent = Time::from_millis(self.sending.shown(frame as u64) * 1000 / FRAMES_A_SECOND);
        for packet in 0..count {
            let bytes = left.min(PACKET);
            left -= bytes;
            self.outbox.push_back((now + apart * packet as u32, bytes, sent, frame));
        }
    }

    /// A packet comes to the bottleneck.
    fn send(&mut self, at: Time, (bytes, sent, frame): (usize, Time, usize)) {
        let number = self.number;
        self.number += 1;
        self.missing[frame] += 1;
        let waiting: usize = self.in_flight.iter().filter(|p| p.leaves > at).map(|p| p.bytes).sum();
        if waiting + bytes > self.way.room {
            return;
        }
        let rate = (self.way.rate_at)(at.as_millis()) as f64;
        if at > self.free_at {
            let more = at.since(self.free_at).as_secs_f64() * rate;
            self.tokens = (self.tokens + more).min(self.way.burst as f64);
            self.free_at = at;
        }
        self.tokens -= bytes as f64;
        let wait = (-self.tokens / rate).max(0.0);
        self.tokens = self.tokens.max(0.0);
        self.free_at = self.free_at + Duration::from_secs_f64(wait);
        self.outcome.queue_most = self.outcome.queue_most.max(self.free_at.since(at));
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let jitter = Duration::from_micros((self.chance >> 33) % self.sending.jitter_us.max(1));
        let leaves = self.free_at;
        let arrives = leaves + ONE_WAY + jitter;
        let arrives = (self.way.still)(arrives.as_millis()).map_or(arrives, Time::from_millis);
        self.in_flight.push_back(InFlight { leaves, arrives, bytes, sent, number, frame });
    }

    fn arrive(&mut self, now: Time) {
        while self.in_flight.front().is_some_and(|packet| packet.arrives <= now) {
            let packet = self.in_flight.pop_front().expect("it is there");
            self.missing[packet.frame] -= 1;
            let lost = (packet.number - self.expected) as u16;
            self.expected = packet.number + 1;
            let arrival = Arrival { media: packet.sent, bytes: packet.bytes, lost };
            self.policy.arrived(packet.arrives, arrival);
            self.decide(packet.arrives);
        }
        if self.policy.due().is_some_and(|due| due <= now) {
            self.decide(now);
        }
    }

    fn decide(&mut self, now: Time) {
        let choice = Choice { rates: &self.rates, current: self.asked, ideal: 1 };
        if let Some(decision) = self.policy.decide(now, &choice) {
            self.asked = decision.level;
            self.outcome.asked.push((now, decision));
            self.requests.push_back((now + ONE_WAY, decision.level));
        }
    }
}
