//! How much a way carries, by what its receiver says of each packet: Google congestion control
//! (draft-ietf-rmcat-gcc-02), at the sender, as browsers have it.
//!
//! It is for viewers that speak no transport of ours. The [`Controller`](crate::Controller) keeps the queue shorter
//! and uses more of the way, but has to know of each acknowledgement what it was for, and says little where little is
//! sent. This one takes less than a kilobyte, allocates nothing, answers a rate alone, and goes beyond what is used: so
//! it can say that a better level would fit.
//!
//! A [`Ledger`](crate::Ledger) says what became of packets; all of a message go to [`Estimator::handle`].
//!
//! - **By delay**: packets are put into groups (sections 5.1 and 5.2); a line through their delays says whether they
//!   wait longer and longer (5.3, 5.4); the rate grows until they do, and falls below what gets through (5.5).
//! - **By a queue**: where packets wait longer and longer, what comes meanwhile is what the way carries. Where that is far
//!   less than the estimate, the estimate falls at once; the line says that after a third of a second only.
//! - **By loss**: where packets are lost, there is a bound besides (6).
//! - **What is not used does not grow**: the rate is no higher than half beyond what gets through, unless a probe has
//!   shown that more fits, or it was higher before.
//!
//! What holds, in virtual time at one bottleneck with a drop-tail buffer, where messages come every 50 ms; the tests print
//! these figures and assert bounds:
//!
//! - 5 Mbit/s: it is between 3.5 and 5.1, the queue has 17 ms (p95), and 82 to 92 % are used.
//! - From 1 to 4 Mbit/s it takes 0.4 s with probes, 18 s without; from 0.5 to 4 Mbit/s 0.8 s, or 28 s.
//! - 5 Mbit/s become 0.5: it is below that after 0.25 s. What a buffer of a second then has takes seconds to go: a queue
//!   that stands does not lower the estimate, only one that grows.
//! - Where 1 of 10 Mbit/s is used, it comes to 1.7, with probes to 10.
//! - Losses of 1 % cost nothing; from 10 % on it falls until they are fewer, down to the floor.
//! - Two alike: Jain 0.998. Beside TCP it has 0.13 to 2.0 times its rate: little where the buffer is deep.
//!
//! No figure is of a real network. Nothing follows where nothing is heard at all: that is left to those that end a
//! session.

mod groups;
mod losses;
mod probe;
mod rate;
mod throughput;
mod trend;
mod waiting;

use core::time::Duration;

use outflow_media::Time;

use self::groups::Groups;
use self::losses::Losses;
use self::probe::{Found, Probes};
use self::rate::Rate;
use self::throughput::Throughput;
use self::trend::{Trend, Usage};
use self::waiting::Waiting;
use crate::ledger::Outcome;
use crate::limits::{RATE_BPS_LEAST, RATE_BPS_MOST};

/// After so long without arrivals the line begins again.
const PAUSE: Duration = Duration::from_secs(2);

/// Where a larger share is lost, it is no time to send more (section 6).
const LOSS_CALM: f64 = 0.02;

/// Where packets wait, and less than this share of the estimate comes, the way has become narrow. It is taken to be so for
/// a while.
const NARROW: f64 = 0.5;
const OVERRUN: Duration = Duration::from_millis(500);

/// What to keep to, in bits a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The rate to begin with.
    pub initial_bps: u64,
    /// The rate that it never goes below.
    pub min_bps: u64,
    /// The rate that it never exceeds.
    pub max_bps: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { initial_bps: 1_000_000, min_bps: 64_000, max_bps: 1_000_000_000 }
    }
}

/// Estimates what a way carries.
#[derive(Debug, Clone)]
pub struct Estimator {
    min_bps: u64,
    rate: Rate,
    losses: Losses,
    groups: Groups,
    trend: Trend,
    throughput: Throughput,
    waiting: Waiting,
    probes: Probes,
    rtt: Option<Duration>,
    /// When something arrived last.
    heard: Time,
    /// What came last while packets waited.
    carried_bps: Option<u64>,
    /// When it was seen last that the way has become narrow.
    narrowed: Option<Time>,
}

impl Estimator {
    /// At the beginning of a way. One that goes on from another begins with its estimate.
    pub fn new(bounds: Bounds) -> Self {
        let min_bps = bounds.min_bps.clamp(RATE_BPS_LEAST, RATE_BPS_MOST);
        let max_bps = bounds.max_bps.clamp(min_bps, RATE_BPS_MOST);
        let initial_bps = bounds.initial_bps.clamp(min_bps, max_bps);
        Estimator {
            min_bps,
            rate: Rate::new(initial_bps as f64, (min_bps as f64, max_bps as f64)),
            losses: Losses::default(),
            groups: Groups::default(),
            trend: Trend::new(),
            throughput: Throughput::default(),
            waiting: Waiting::default(),
            probes: Probes::default(),
            rtt: None,
            heard: Time::ZERO,
            carried_bps: None,
            narrowed: None,
        }
    }

    /// A message of the receiver came: what became of packets, in the order of their numbers. It changes the estimate.
    pub fn handle(&mut self, now: Time, outcomes: impl IntoIterator<Item = Outcome>) {
        let (mut newest, mut arrived) = (None, None);
        for outcome in outcomes {
            self.note(now, &outcome);
            newest = newest.max(Some(outcome.number));
            if outcome.received_us.is_some() && !outcome.was_lost {
                arrived = arrived.max(Some(outcome.sent));
            }
        }
        let Some(newest) = newest else { return };
        let usage = self.trend.usage();
        if let Some(sent) = arrived {
            let sample = now.since(sent);
            let rtt = self.rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8);
            self.rtt = Some(rtt);
            self.rate.update(now, usage, self.throughput.bps(), rtt);
        }
        self.losses.update(now, self.rate.bps());
        if let (Some(Found::Fits(bps)), Usage::Normal | Usage::Under) =
            (self.probes.found(now, newest), usage)
        {
            self.rate.raise(bps);
            self.losses.raise(bps);
        }
    }

    /// The next `packets` packets, of which the first has this number, are sent as a probe for `target_bps`: at that rate, media
    /// or what fills up. A dozen, or 20 ms of them, are enough. There is one probe at a time; one that
    /// is not sent within a second says nothing.
    pub fn handle_probe(&mut self, now: Time, first: u64, packets: u64, bps: u64) {
        self.probes.begin(now, first, packets, bps as f64);
    }

    /// What to send at most, in bits a second. [`handle`](Self::handle) alone changes it.
    pub fn estimate_bps(&self) -> u64 {
        self.bps() as u64
    }

    /// The rate of a probe that would be of use now, where the application could use `wanted_bps` bits a second. All
    /// calls that begin with `handle` may change it, and time.
    pub fn probe_bps(&self, now: Time, wanted_bps: u64) -> Option<u64> {
        let is_calm = self.trend.usage() == Usage::Normal && self.losses.share() < LOSS_CALM;
        let wanted = self.probes.wanted(now, self.bps(), wanted_bps as f64).filter(|_| is_calm);
        wanted.map(|bps| bps as u64)
    }

    /// Bits a second that get through; none if that is not known.
    pub fn through_bps(&self) -> Option<u64> {
        self.throughput.bps().map(|bps| bps as u64)
    }

    /// What the way carries, where packets have waited there: bits a second that came meanwhile. It is what to send for a queue
    /// to stay as it is.
    pub fn carried_bps(&self) -> Option<u64> {
        self.carried_bps
    }

    /// How long every packet of the last moments has waited on the way at least; nothing if none has come.
    pub fn waits(&self, now: Time) -> Duration {
        self.waiting.stands(now)
    }

    /// Whether it was seen just now that the way carries far less than was sent: packets waited longer and longer.
    pub fn is_overrun(&self, now: Time) -> bool {
        self.narrowed.is_some_and(|at| now.since(at) < OVERRUN)
    }

    /// The share of packets that was lost over the last half second or more, from 0 to 1.
    pub fn loss_share(&self) -> f64 {
        self.losses.share()
    }

    /// From when a packet is sent until its receiver has said that it came, smoothed; none before the first one.
    pub fn round_trip(&self) -> Option<Duration> {
        self.rtt
    }

    fn bps(&self) -> f64 {
        let bound = self.losses.bound_bps().unwrap_or(f64::INFINITY);
        self.rate.bps().min(bound).max(self.min_bps as f64)
    }

    fn note(&mut self, now: Time, outcome: &Outcome) {
        self.losses.note(outcome);
        self.probes.note(outcome);
        let Some(received_us) = outcome.received_us else { return };
        if now.since(self.heard) > PAUSE {
            (self.groups, self.trend) = (Groups::default(), Trend::new());
        }
        self.heard = now;
        self.throughput.note(received_us, outcome.bytes);
        if let Some(apart) = self.groups.note(outcome.sent, received_us) {
            self.trend.note(apart);
        }
        if outcome.was_lost {
            return;
        }
        if let Some(carried) = self.waiting.arrived(now, outcome.sent, received_us, outcome.bytes) {
            self.carried_bps = Some(carried.bps);
            let bps = carried.bps as f64;
            if carried.is_overrun && bps < self.bps() * NARROW {
                self.narrowed = Some(now);
                self.rate.narrow(now, bps);
            }
        }
    }
}

#[cfg(test)]
mod tests;
