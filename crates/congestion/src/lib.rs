//! Congestion control for live media: how much may be in flight, and when the next packet may go.
//!
//! A [`Controller`] is told what is sent, acknowledged, lost and marked, and answers a rate for the encoder,
//! a window, when the next packet may go, and how much can still be sent in time. An [`Estimator`] is told by a
//! [`Ledger`] what became of packets to a browser, and answers a rate alone, as browsers find it; all that follows here
//! is about the controller.
//!
//! # How it decides
//!
//! - **The window** counts bytes in flight, so that a path that carries less slows the sender down by itself
//!   (packet conservation, as SCReAM, RFC 8298). The pacer spreads what the window admits.
//! - **Delay.** What packets wait is their delay beyond the least of some seconds, by one-way delay and by
//!   round trip, whichever says less: the peer's clock may drift and step. While less waits than a target,
//!   the window grows by about a packet in a round trip; above it, it is cut by what waits and a little more.
//!   So the queue runs empty, every flow sees the least delay, and larger windows lose more. The target is
//!   5 ms and the time of two of its own packets: a flow that sends less tolerates more, which makes all come
//!   to the same rate (Copa, NSDI 2018: a target rate of 1/(δ·queue); Swift, SIGCOMM 2020: targets scaled by
//!   the window). A queue that was empty for some rounds lets the window grow by a share of itself.
//! - **Slowdowns.** A flow that has not seen an empty queue for 5 s pauses for three rounds at half of its
//!   window (LEDBAT++, section 4.4): one that came when the queue was not empty learns the least delay then.
//! - **Others.** If the queue does not go as the windows of our kind would make it go, a competing flow fills
//!   it (the question is that of Nimbus, SIGCOMM 2022: is the other traffic elastic?). Then, and when the
//!   buffer overflows before the delay says anything, it takes back what it gave way by, and goes by losses
//!   as CUBIC does (RFC 9438). From time to time, when the queue goes down, it gives way again to see whether
//!   that one is still there. All of our kind see the queue go down at the same time, so they leave together.
//! - **Loss.** A loss counts if packets waited about as long as they ever do: then it was the buffer. Others do
//!   not count until a tenth of the packets is lost: beyond that, it sends no more than ten times what TCP
//!   would, and beyond 15 %, less and less, down to the floor (RFC 8083, section 4.3).
//! - **Marks** cut the window once a round (RFC 3168, RFC 8511), or by half of their share (L4S: RFC 9331,
//!   DCTCP: RFC 8257).
//! - **Silence** halves the window each time, and leaves the least of it in the end (RFC 8085, section 3.1).
//! - **Start**: by 40 % in a round trip until packets wait, which is slower than doubling and overshoots by
//!   less. What the application does not use does not grow.
//!
//! # What holds
//!
//! In virtual time at one bottleneck with a drop-tail buffer; the tests print these figures and assert the
//! bounds. No figure is of a real network.
//!
//! | promise | where | measured |
//! |---|---|---|
//! | alone: mean wait < 25 ms, p95 < 60 ms, use ≥ 90 % | 1–50 Mbit/s, 10–200 ms | 2–25 ms, 6–48 ms, ≥ 95 % |
//! | 2, 4, 8 alike, 1.3 or 5 s apart: Jain ≥ 0.95 | 10–50 Mbit/s, 20–100 ms | 0.986–1.000 |
//! | the same with round trips of 20 to 150 ms | 10, 20 Mbit/s | 0.981, 0.994 |
//! | 1/3 to 3 times the rate of a CUBIC flow | 3–20 Mbit/s, 20–100 ms, buffer 0.5–6 BDP | 0.39–1.91 |
//! | the same of a NewReno flow | the same, either first | 0.51–2.10 |
//! | TCP leaves: the queue is short again | 3 alike, buffer 300 ms, after 30 s | mean 8 ms, p95 14 ms |
//! | half the rate: followed in 1 s; twice: in 5 s | 10 Mbit/s, 20–100 ms | p95 11–17 ms then; 0.2–1.3 s |
//! | random loss of 2, 5, 10 % costs little | 10 Mbit/s, 50 ms | 95, 92, 73 % used |
//! | start from 1 Mbit/s: queue < 100 ms, then 85 % used | to 50 Mbit/s, 200 ms | ≤ 99 ms; 0.4–3.3 s |
//! | video at 95 % of the rate does not oscillate | 5 Mbit/s, 10–150 ms | 4.2–5.0 Mbit/s each second |
//!
//! Constants were chosen by these very paths. On others, that nothing was chosen by: of 45 combinations of 2 to 6
//! flows, five had a Jain index below 0.95 (0.855 to 0.940, all at 4 Mbit/s and 90 ms), and none took its own
//! kind for another; of 36 beside TCP, the ratio was 0.32 to 1.78, two of them below 1/3 (CUBIC, 3 BDP).
//!
//! Whole connections, whose acknowledgements come in bunches, are asked for the same in
//! `poc/src/connection/bottleneck/`: alone 3–22 ms and 93–98 % used, Jain 0.993–1.000, 0.37–1.09 times CUBIC and
//! 0.47–1.61 times NewReno, and of video of 5/4 of the rate at least 99.5 % of what is missed most (99.7 to
//! 100 % on five paths).
//!
//! What does not hold, or only just:
//!
//! - The mean wait alone comes near to its bound where packets are few: 24.7 ms at 1 Mbit/s and 200 ms; of a whole
//!   connection it is 22 ms there.
//! - Where 5 % of the packets are lost of such video, 3 to 6 % of what is missed most are: the rate varies more
//!   than what is left for that.
//! - Flows of our kind may take each other for competing flows, above all where each has but a few packets in
//!   flight: so in 2 of 80 combinations of flows, paths and gaps. They fill the buffer until the next test that
//!   they make together, which may take tens of seconds.
//! - When TCP leaves, it takes up to twenty seconds until the queue is short again.
//! - Beside CUBIC on long paths it may get 0.4 of its rate; beside NewReno up to twice as much.
//! - Jitter of single packets beyond some 10 ms looks like a queue: 83 % used at 15 ms on a path of 100 ms, and a
//!   fifth at 20 ms on one of 50 ms. 30 ms were taken for a competing flow's queue there, and a deep buffer
//!   was filled. Radio links need more than this.
//! - Where the buffer is as short as 5 ms, losses come before the delay says anything: 87 % used.
//! - A least delay that grows is learnt after 10 s, or 30 s while a competing flow fills the queue. A change
//!   of path that is known should be told ([`Controller::handle_path_changed`]).
//! - Nothing was tried with queue management on the way, with policers, or with a way back that is full. What it
//!   makes of marks was tested by hand only, not at a bottleneck that marks.

mod control;
mod cubic;
mod delay;
mod episode;
mod gcc;
mod handover;
mod ledger;
pub mod limits;
mod loss;
mod lowest;
mod pacer;
mod types;

use core::time::Duration;
use std::collections::VecDeque;

use outflow_media::Time;
use outflow_media::ecn::MarkCounts;

use self::cubic::Cubic;
use self::delay::Delay;
pub use self::delay::Known;
use self::episode::{Competition, Episode};
pub use self::gcc::{Bounds, Estimator};
pub use self::handover::Handover;
pub use self::ledger::{Ledger, Outcome};
use self::loss::Losses;
pub use self::lowest::Lowest;
use self::pacer::Pacer;
pub use self::types::{Acked, Change, Ecn, Lost, Options, Reason, State};
use crate::limits::{CHANGES_MAX, WINDOW_PACKETS_MIN};

/// The round trip that is assumed before the first one was measured.
const RTT_ASSUMED: Duration = Duration::from_millis(100);

/// So much faster than the rate packets may leave, in percent: the window, not the pacer, is what holds up a
/// sender that always has something to send; and a frame leaves in less than the time to the next one.
const PACING_PERCENT: u64 = 125;

/// A round: from a packet that is sent to its acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    /// It ends when this number or a later one is acknowledged.
    end: u64,
    /// The most bytes that were in flight, in this one and the one before.
    peak: u64,
    peak_before: u64,
    /// Whether something waited to be sent, in this one or the one before.
    is_busy: bool,
    was_busy: bool,
    acked: u64,
    lost: u64,
    /// Rounds that began with an empty queue, in a row.
    quiet: u32,
    /// The shortest that packets waited.
    queue: Option<Duration>,
}

/// What a loss took away, until it is clear that it was one.
#[derive(Debug, Clone, Copy)]
struct Undo {
    window: f64,
    lost: u64,
}

/// What marks say.
#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    counts: MarkCounts,
    /// Of this round.
    marked: u64,
    all: u64,
    /// The smoothed share (RFC 9332 speaks of it; DCTCP, RFC 8257, section 3.3).
    share: f64,
}

/// Decides how much may be in flight, and when.
///
/// To be told of everything that is sent, acknowledged and lost, each packet once: what was reported lost is
/// not reported as acknowledged later, but to [`handle_spurious`](Self::handle_spurious).
#[derive(Debug, Clone)]
pub struct Controller {
    options: Options,
    state: State,
    /// Bytes.
    window: f64,
    in_flight: u64,
    /// The number that the next packet has at least.
    next: u64,
    delay: Delay,
    losses: Losses,
    pacer: Pacer,
    cubic: Cubic,
    round: Round,
    /// Packets from this number on were sent after the window was changed last: they feel the change.
    felt_from: u64,
    /// The same, after a loss.
    loss_felt_from: u64,
    episode: Option<Episode>,
    competition: Competition,
    /// While it pauses: the window to come back to, and rounds.
    pause: (f64, u32),
    paused_at: Time,
    /// When the queue was last as good as empty.
    empty_at: Time,
    undo: Option<Undo>,
    marks: Marks,
    /// When something was last heard, or sent after nothing was in flight.
    heard: Time,
    sent: Time,
    timeouts: u32,
    changes: VecDeque<Change>,
    unread: u64,
    counts: [u64; Reason::ALL.len()],
}

impl Controller {
    /// At the beginning of a path.
    pub fn new(options: Options) -> Self {
        let options = options.checked();
        let marks = Marks { share: 1.0, ..Marks::default() };
        let mut controller = Controller {
            options,
            state: State::Start,
            window: 0.0,
            in_flight: 0,
            next: 0,
            delay: Delay::new(),
            losses: Losses::default(),
            pacer: Pacer::new(options.burst),
            cubic: Cubic::default(),
            round: Round::default(),
            felt_from: 0,
            loss_felt_from: 0,
            episode: None,
            competition: Competition::default(),
            pause: (0.0, 0),
            paused_at: Time::ZERO,
            empty_at: Time::ZERO,
            undo: None,
            marks,
            heard: Time::ZERO,
            sent: Time::ZERO,
            timeouts: 0,
            changes: VecDeque::with_capacity(CHANGES_MAX),
            unread: 0,
            counts: [0; Reason::ALL.len()],
        };
        controller.window = controller.initial_window();
        controller
    }

    /// A packet was sent. Numbers grow. `is_waiting` says whether the application had more to send, or would
    /// have sent this one earlier: a window that is not used is not enlarged.
    pub fn handle_sent(&mut self, now: Time, number: u64, bytes: u64, is_waiting: bool) {
        if self.in_flight == 0 {
            self.resume(now);
        }
        self.pacer.sent(now, bytes, self.pacing_bps());
        self.in_flight = self.in_flight.saturating_add(bytes);
        self.round.peak = self.round.peak.max(self.in_flight);
        self.round.is_busy |= is_waiting;
        self.next = self.next.max(number.saturating_add(1));
        self.sent = now;
    }

    /// Packets were acknowledged. `rtt` is the round trip of the newest of them, without the time that the
    /// peer waited before it answered (RFC 9002, section 5.3).
    pub fn handle_acked(&mut self, now: Time, batch: &[Acked], rtt: Duration) {
        let Some(newest) = batch.iter().max_by_key(|acked| acked.number) else { return };
        let bytes: u64 = batch.iter().map(|acked| acked.bytes).fold(0, u64::saturating_add);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        (self.heard, self.timeouts) = (now, 0);
        self.losses.acked(now, batch.len() as u64);
        self.round.acked += batch.len() as u64;
        let is_first = !self.delay.is_known();
        let is_test = self.episode.is_some_and(|episode| episode.is_test);
        let keep = Competition::keeps(self.state, is_test);
        let is_felt = newest.number >= self.felt_from;
        self.delay.note(now, (batch, newest), rtt, keep, is_felt);
        if is_first {
            self.window = self.initial_window();
        }
        self.adapt(now, newest.number, bytes);
        self.bound();
    }

    /// Packets are taken for lost.
    pub fn handle_lost(&mut self, now: Time, lost: &[Lost]) {
        let Some(newest) = lost.iter().map(|lost| lost.number).max() else { return };
        let bytes: u64 = lost.iter().map(|lost| lost.bytes).fold(0, u64::saturating_add);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.losses.lost(now, lost.len() as u64);
        self.round.lost += lost.len() as u64;
        self.adapt_to_loss(now, newest, lost.len() as u64);
        self.bound();
    }

    /// Packets that were taken for lost were acknowledged after all. If they all were, what was done because
    /// of them is undone.
    pub fn handle_spurious(&mut self, now: Time, packets: &[Lost]) {
        self.losses.spurious(now, packets.len() as u64);
        self.heard = now;
        let Some(undo) = &mut self.undo else { return };
        undo.lost = undo.lost.saturating_sub(packets.len() as u64);
        if undo.lost == 0 {
            let window = undo.window.max(self.window);
            self.undo = None;
            self.cubic.begin(now, self.segments(window));
            self.change(now, Reason::Spurious, self.state, window);
        }
    }

    /// What the peer counted of ECN fields. Counts that go back are not used.
    pub fn handle_ecn(&mut self, now: Time, counts: MarkCounts) {
        let before = self.marks.counts;
        let grown = |f: fn(&MarkCounts) -> u64| f(&counts).checked_sub(f(&before));
        let grown = (grown(|c| c.ect0), grown(|c| c.ect1), grown(|c| c.ce));
        let (Some(ect0), Some(ect1), Some(ce)) = grown else { return };
        self.marks.counts = counts;
        self.marks.marked += ce;
        self.marks.all += ect0.saturating_add(ect1).saturating_add(ce);
        if ce > 0 {
            self.adapt_to_marks(now);
            self.bound();
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        while self.next_timeout().is_some_and(|due| due <= now) {
            self.timeouts += 1;
            self.adapt_to_silence(now);
            self.bound();
        }
    }

    /// The path is another one: nothing of the old one holds (RFC 9000, section 9.4). What is in flight
    /// still counts.
    pub fn handle_path_changed(&mut self, now: Time) {
        self.delay = Delay::new();
        self.losses = Losses::default();
        (self.episode, self.undo, self.competition) = (None, None, Competition::default());
        (self.felt_from, self.loss_felt_from, self.round.end) = (self.next, self.next, self.next);
        let window = self.initial_window();
        self.change(now, Reason::Moved, State::Start, window);
    }

    /// Full packets have `bytes` bytes now.
    pub fn handle_datagram_bytes(&mut self, bytes: u64) {
        self.options = Options { datagram_bytes: bytes, ..self.options }.checked();
    }

    /// When to call [`handle_timeout`](Self::handle_timeout). All calls that begin with `handle` may change
    /// it.
    pub fn next_timeout(&self) -> Option<Time> {
        let patience = (self.delay.smoothed() * 3).max(Duration::from_millis(300));
        let waited = patience * (1 << self.timeouts.min(8));
        (self.in_flight > 0 && self.timeouts < 32).then(|| self.heard + waited)
    }

    /// What to send at, on average, in bits a second: what an encoder should be told. All calls that begin
    /// with `handle` may change it.
    pub fn rate_bps(&self) -> u64 {
        let time = self.delay.in_flight().as_secs_f64().max(1e-6);
        let rate = (self.window * 8.0 / time) as u64;
        rate.clamp(self.options.min_bps, self.options.max_bps)
    }

    /// Bytes that may be in flight. All calls that begin with `handle` may change it.
    pub fn window_bytes(&self) -> u64 {
        let least = pacer::bytes_in(self.delay.in_flight(), self.options.min_bps);
        (self.window as u64).max(least).max(WINDOW_PACKETS_MIN * self.options.datagram_bytes)
    }

    /// Bytes that are in flight.
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight
    }

    /// When a packet of `bytes` bytes may go: now, or later. `None` if the window has no room for it until
    /// something is acknowledged or lost. All calls that begin with `handle` may change it.
    pub fn next_send(&self, now: Time, bytes: u64) -> Option<Time> {
        let fits = self.in_flight == 0 || self.in_flight.saturating_add(bytes) <= self.window_bytes();
        fits.then(|| self.pacer.next(now))
    }

    /// Bytes that can be sent from now on within a time, if nothing gets worse: what is to be sent after them
    /// comes later than that.
    pub fn affordable(&self, now: Time, horizon: Duration) -> u64 {
        let paced = self.pacer.bytes_within(now, horizon, self.rate_bps());
        let room = self.window_bytes().saturating_sub(self.in_flight);
        paced.min(room.saturating_add(pacer::bytes_in(horizon, self.rate_bps())))
    }

    /// How long packets wait on the way, beyond the least delay that was seen.
    pub fn queue_delay(&self) -> Duration {
        self.delay.standing().unwrap_or(self.delay.queue())
    }

    /// The share of packets that was lost over the last second or two, from 0 to 1.
    pub fn loss_share(&self) -> f64 {
        self.losses.share()
    }

    /// What it does. All calls that begin with `handle` may change it.
    pub fn state(&self) -> State {
        self.state
    }

    /// What changed, oldest first. All calls that begin with `handle` may add changes.
    pub fn poll(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// How often something changed for a reason, and how many changes were not read in time.
    pub fn counts(&self) -> (impl Iterator<Item = (Reason, u64)>, u64) {
        (Reason::ALL.into_iter().zip(self.counts), self.unread)
    }

    /// The rate at which packets leave.
    fn pacing_bps(&self) -> u64 {
        (self.rate_bps() / 100 * PACING_PERCENT).min(self.options.max_bps.max(self.options.min_bps))
    }

    fn initial_window(&self) -> f64 {
        let bytes = pacer::bytes_in(self.delay.in_flight(), self.options.initial_bps);
        (bytes as f64).max(self.least_window())
    }

    fn least_window(&self) -> f64 {
        (WINDOW_PACKETS_MIN * self.options.datagram_bytes) as f64
    }

    fn segments(&self, window: f64) -> f64 {
        window / self.options.datagram_bytes as f64
    }
}

#[cfg(test)]
mod properties;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
