//! How the window follows what is seen.

use core::time::Duration;

use outflow_media::Time;

use super::cubic::BETA;
use super::episode::{Competition, Episode, Judgement, KEPT};
use super::{Change, Controller, Reason, Round, State, Undo};
use crate::Ecn;
use crate::limits::CHANGES_MAX;

/// Packets may wait `QUEUE_TARGET`, and the time of `QUEUE_PACKETS` of the flow's own: a flow that sends less
/// may fill the queue a little more, so that all come to send the same (Copa's 1/(δ λ), Swift's scaling by
/// flows).
const QUEUE_TARGET: Duration = Duration::from_millis(5);
const QUEUE_PACKETS: f64 = 2.0;
const QUEUE_TARGET_MAX: Duration = Duration::from_millis(18);

/// So much jitter is tolerated beyond the target.
const SPREAD_MAX: Duration = Duration::from_millis(20);

/// A queue is as good as empty below that, or below a quarter of the target, and what jitter adds.
const QUEUE_EMPTY: Duration = Duration::from_millis(1);

/// A flow that starts stops growing quickly when packets wait longer.
const START_QUEUE: Duration = Duration::from_millis(4);

/// Growth at the start, as a share of what is acknowledged: so much in a round trip. The queue is seen a
/// round trip late, so it is that share of a round trip at most.
const START_GROWTH: f64 = 0.4;

/// When packets wait, the window is cut by what waits, and this much more: so the queue runs empty, all that
/// share it see the least delay, and larger windows are cut by more.
const CUT_BEYOND: f64 = 0.05;

/// What is kept at least when packets wait.
const CUT_MOST: f64 = 0.5;

/// The part that is taken back of what was given away for nothing.
const GIVEN_BACK: f64 = 0.9;

/// Rounds with an empty queue until the window grows by a share of itself, and that share at first and at
/// last.
const QUIET_ROUNDS: u32 = 8;
const QUIET_GROWTH: f64 = 1.0 / 64.0;
const QUIET_GROWTH_MAX: f64 = 1.0 / 8.0;

/// The window grows by a packet in a round trip of this many seconds, by more in a longer one: so all gain
/// the same window for each round trip's length, and those far away do not fall behind.
const GROWTH_RTT: f64 = 0.03;

/// If the queue was not seen empty for so long, it is emptied.
const SLOWDOWN_AFTER: Duration = Duration::from_secs(5);
const SLOWDOWN_ROUNDS: u32 = 3;

/// A loss while packets waited for less than that share of the longest was not by overflow.
const OVERFLOW_QUEUE: f64 = 0.85;
/// And those that waited the least, so much of that.
const OVERFLOW_STANDING: f64 = 0.5;
const OVERFLOW_QUEUE_LEAST: Duration = Duration::from_millis(2);

/// Above this share of losses it sends no more than ten times what TCP would (RFC 8083, section 4.3); above
/// the next, less and less.
const LOSS_MUCH: f64 = 0.10;
const LOSS_TOO_MUCH: f64 = 0.15;

/// What is kept of the window after a classic mark (RFC 8511).
const MARK_KEPT: f64 = 0.85;

/// How fast the share of marks is smoothed (RFC 8257, section 3.3).
const MARK_GAIN: f64 = 1.0 / 16.0;

/// After so long without sending, it starts again.
const IDLE: Duration = Duration::from_secs(10);

/// A queue that is empty for this many rounds, `EMPTY_AFTER` after the last overflow, has no competing flow.
const EMPTY_ROUNDS: u32 = 10;
const EMPTY_AFTER: Duration = Duration::from_secs(3);

impl Controller {
    /// Packets were acknowledged.
    pub(super) fn adapt(&mut self, now: Time, newest: u64, bytes: u64) {
        let empty = (self.target() / 4).max(QUEUE_EMPTY) + self.delay.spread();
        if self.delay.queue() <= empty {
            self.empty_at = now;
        }
        let queue = self.delay.standing();
        if let Some(queue) = queue {
            self.round.queue = Some(self.round.queue.map_or(queue, |least| least.min(queue)));
        }
        match (self.state, queue) {
            (State::Start, Some(queue)) if queue > START_QUEUE => {
                let window = self.window / (1.0 + START_GROWTH) * (1.0 - CUT_BEYOND);
                self.change(now, Reason::Delayed, State::Delay, window);
            }
            (State::Start, _) => self.grow(bytes as f64 * START_GROWTH),
            (State::Delay, Some(queue)) => self.keep_short(now, queue, bytes),
            (State::Compete, _) if self.is_used() => {
                let (window, acked) = (self.segments(self.window), self.segments(bytes as f64));
                let grown = self.cubic.acked(now, window, acked, self.delay.smoothed());
                self.window = grown * self.options.datagram_bytes as f64;
            }
            _ => {}
        }
        if newest >= self.round.end {
            self.end_round(now);
        }
    }

    /// How long packets may wait.
    pub(super) fn target(&self) -> Duration {
        let packet = self.delay.in_flight().as_secs_f64() / self.segments(self.window).max(1.0);
        let own = Duration::from_secs_f64((QUEUE_PACKETS * packet).min(1.0));
        let jitter = self.delay.spread().saturating_sub(own / 2).min(SPREAD_MAX);
        (QUEUE_TARGET + own).min(QUEUE_TARGET_MAX) + jitter
    }

    /// Cuts what is too much; else grows by about a packet in a round trip.
    fn keep_short(&mut self, now: Time, queue: Duration, bytes: u64) {
        if self.episode.is_some_and(|episode| episode.is_test) {
            return;
        }
        if queue > self.target() {
            return self.cut(now, queue);
        }
        self.episode = None;
        let packet = self.options.datagram_bytes as f64;
        let fair = packet * self.delay.base().as_secs_f64() / GROWTH_RTT;
        let slow = fair.clamp(packet / 2.0, (self.window / 16.0).max(packet / 2.0));
        let quiet = self.round.quiet.saturating_sub(QUIET_ROUNDS);
        let share = (QUIET_GROWTH * f64::from(1 << quiet.min(3))).min(QUIET_GROWTH_MAX);
        let quick = if self.round.quiet > QUIET_ROUNDS { self.window * share } else { 0.0 };
        self.grow(slow.max(quick) * bytes as f64 / self.window);
    }

    /// To what leaves the queue empty, if all flows that share it do the same.
    fn cut(&mut self, now: Time, queue: Duration) {
        if self.competition.gives(now, self.window, self.empty_at) {
            let window = GIVEN_BACK * self.competition.given(now);
            return self.compete(now, Reason::Filled, window);
        }
        let episode = *self.episode.get_or_insert(Episode::new(self.window, queue));
        let kept = self.emptying(queue).max(CUT_MOST);
        let window = (self.in_use() * kept).max(episode.window * KEPT);
        if window < self.window {
            self.change(now, Reason::Delayed, State::Delay, window);
        }
    }

    /// The share of the window that leaves the queue empty, if all flows that share it do the same.
    fn emptying(&self, queue: Duration) -> f64 {
        // What the peer holds back before it answers is in flight, too.
        let held = self.delay.in_flight().saturating_sub(self.delay.smoothed());
        let (base, waits) = ((self.delay.base() + held).as_secs_f64(), queue.as_secs_f64());
        base / (base + waits).max(1e-6) * (1.0 - CUT_BEYOND)
    }

    /// The part of the window that was used.
    fn in_use(&self) -> f64 {
        let peak = self.round.peak.max(self.round.peak_before) as f64;
        self.window.min(peak * 1.25).max(self.least_window())
    }

    /// Whether the window is what holds up the sender: it was used, and something waited.
    fn is_used(&self) -> bool {
        let peak = self.round.peak.max(self.round.peak_before) as f64;
        let packet = self.options.datagram_bytes as f64;
        (self.round.is_busy || self.round.was_busy)
            && (peak + packet > self.window || peak >= 0.8 * self.window)
    }

    fn grow(&mut self, by: f64) {
        if self.is_used() {
            self.window += by;
        }
    }

    fn end_round(&mut self, now: Time) {
        let queue = self.round.queue.unwrap_or(self.delay.queue());
        let is_quiet = self.round.queue.is_some_and(|queue| queue < self.target() / 4);
        self.heed_heavy_loss(now);
        self.heed_share_of_marks(now);
        match self.state {
            State::Delay => self.end_of_round_in_delay(now, queue),
            State::Slowdown => {
                self.pause.1 -= 1;
                if self.pause.1 == 0 {
                    self.change(now, Reason::Seen, State::Delay, self.pause.0);
                }
            }
            State::Compete => self.end_of_round_in_competition(now, queue, is_quiet),
            State::Start => {}
        }
        let quiet = if is_quiet { self.round.quiet.saturating_add(1) } else { 0 };
        self.round = Round {
            end: self.next,
            peak: self.in_flight,
            peak_before: self.round.peak,
            was_busy: self.round.is_busy,
            quiet,
            ..Round::default()
        };
    }

    fn end_of_round_in_delay(&mut self, now: Time, queue: Duration) {
        let base = self.delay.base();
        if let Some(mut episode) = self.episode {
            let is_short = self.delay.standing().is_some_and(|queue| queue <= self.target());
            let judgement = if episode.is_test {
                episode.judge_test(queue, is_short)
            } else {
                episode.judge(queue, self.window, base)
            };
            match judgement {
                Judgement::Open => self.episode = Some(episode),
                Judgement::Alone if episode.is_test => {
                    self.episode = None;
                    if !is_short {
                        // With no competing flow in the queue, what seems to wait is the length of the path.
                        self.delay.forget_base();
                    }
                    self.change(now, Reason::Alone, State::Delay, self.window);
                }
                Judgement::Alone => self.episode = None,
                Judgement::Filled => {
                    let window = GIVEN_BACK * episode.window.max(self.competition.given(now));
                    self.compete(now, Reason::Filled, window);
                }
            }
        } else if now.since(self.empty_at.max(self.paused_at)) > SLOWDOWN_AFTER {
            let share = base.as_secs_f64() / (base + queue).as_secs_f64().max(1e-6);
            self.pause = (self.window * share, SLOWDOWN_ROUNDS);
            self.paused_at = now;
            self.change(now, Reason::Unseen, State::Slowdown, self.window / 2.0);
        }
    }

    /// Goes by losses from now on, from the window before it gave way.
    fn compete(&mut self, now: Time, reason: Reason, window: f64) {
        self.episode = None;
        self.competition.begin(now);
        self.cubic.begin(now, self.segments(window));
        self.change(now, reason, State::Compete, window);
    }

    fn end_of_round_in_competition(&mut self, now: Time, queue: Duration, is_quiet: bool) {
        let competition: &mut Competition = &mut self.competition;
        competition.empty = if is_quiet { competition.empty + 1 } else { 0 };
        let overflow = competition.overflow.map_or(Duration::MAX, |at| now.since(at));
        if competition.empty >= EMPTY_ROUNDS && overflow > EMPTY_AFTER {
            return self.change(now, Reason::Alone, State::Delay, self.window);
        }
        if competition.is_due(now, queue, self.delay.longest().1) {
            let window = self.in_use() * self.emptying(queue);
            self.episode = Some(Episode::test(self.window, queue));
            self.competition.gives(now, self.window, now);
            self.change(now, Reason::Tested, State::Delay, window);
        }
    }

    /// Packets were lost: if that was because the buffer overflowed, as CUBIC does; else nothing.
    pub(super) fn adapt_to_loss(&mut self, now: Time, newest: u64, lost: u64) {
        if newest < self.loss_felt_from {
            if let Some(undo) = &mut self.undo {
                undo.lost += lost;
            }
            return;
        }
        let (recent, longest) = self.delay.longest();
        // In a full buffer all packets wait; where only some do, it is jitter.
        let all_wait = self.delay.standing().is_none_or(|queue| queue >= recent.mul_f64(OVERFLOW_STANDING));
        let is_long = recent >= longest.mul_f64(OVERFLOW_QUEUE) && recent >= OVERFLOW_QUEUE_LEAST && all_wait;
        let is_flooded = self.state == State::Compete && self.losses.share() >= LOSS_MUCH;
        let is_full = is_long || (is_flooded && recent > self.target());
        let is_start = self.state == State::Start;
        let all = self.round.lost + self.round.acked;
        let is_flood = is_start && self.round.lost >= 3 && self.round.lost * 100 >= all * 15;
        if !is_full && !is_flood {
            return;
        }
        self.loss_felt_from = self.next;
        self.competition.overflow = Some(now);
        self.undo = Some(Undo { window: self.window, lost });
        let used = self.in_use();
        let kept = self.cubic.lost(now, self.segments(used)) * self.options.datagram_bytes as f64;
        if is_start {
            return self.change(now, Reason::Overflow, State::Delay, used / 2.0);
        }
        if self.state != State::Compete {
            self.episode = None;
            self.competition.begin(now);
        }
        self.change(now, Reason::Overflow, State::Compete, kept.min(self.window * BETA.max(KEPT)));
    }

    fn heed_heavy_loss(&mut self, now: Time) {
        let share = self.losses.share();
        if share >= LOSS_TOO_MUCH {
            let window = self.in_use() * (1.0 - share / 2.0);
            return self.change(now, Reason::Lossy, self.after_start(), window);
        }
        // TCP sends sqrt(3/2) segments over the root of the share in a round trip.
        let ten_times = 10.0 * (1.5 / share.max(1e-6)).sqrt() * self.options.datagram_bytes as f64;
        if share >= LOSS_MUCH && self.window > ten_times {
            self.change(now, Reason::Lossy, self.after_start(), ten_times);
        }
    }

    fn after_start(&self) -> State {
        if self.state == State::Start { State::Delay } else { self.state }
    }

    /// As for a loss, but for less.
    pub(super) fn adapt_to_marks(&mut self, now: Time) {
        if self.options.ecn == Ecn::Classic && self.next > self.loss_felt_from {
            self.loss_felt_from = self.next.saturating_add(self.packets_in_flight());
            let window = self.in_use() * MARK_KEPT;
            let _ = self.cubic.lost(now, self.segments(window));
            self.change(now, Reason::Marked, self.after_start(), window);
        }
    }

    /// How many packets are sent until one that is sent now is acknowledged, about.
    fn packets_in_flight(&self) -> u64 {
        self.in_flight / self.options.datagram_bytes
    }

    /// By half of the share of marks (RFC 8257, section 3.3; RFC 9331).
    fn heed_share_of_marks(&mut self, now: Time) {
        let (marked, all) = (self.marks.marked, self.marks.all);
        (self.marks.marked, self.marks.all) = (0, 0);
        if self.options.ecn != Ecn::Scalable || all == 0 {
            return;
        }
        let share = marked as f64 / all as f64;
        self.marks.share += MARK_GAIN * (share - self.marks.share);
        if marked > 0 {
            let window = self.in_use() * (1.0 - self.marks.share / 2.0);
            self.change(now, Reason::Marked, self.after_start(), window);
        }
    }

    /// Nothing is heard: by half each time (RFC 8085, section 3.1.1), in the end to the least (RFC 9002,
    /// section 7.6).
    pub(super) fn adapt_to_silence(&mut self, now: Time) {
        let window = if self.timeouts > 3 { 0.0 } else { self.window / 2.0 };
        self.episode = None;
        self.change(now, Reason::Silent, State::Delay, window);
    }

    /// Nothing was in flight. What was known of the path may be old.
    pub(super) fn resume(&mut self, now: Time) {
        let idle = now.since(self.sent);
        self.heard = now;
        self.timeouts = 0;
        self.cubic.paused(now, idle);
        if idle > IDLE && self.delay.is_known() {
            let window = self.initial_window().min(self.window);
            (self.state, self.window, self.episode) = (State::Start, window, None);
        }
    }

    /// Sets state and window, and says why. What was sent before does not feel it.
    pub(super) fn change(&mut self, now: Time, reason: Reason, state: State, window: f64) {
        let before = self.window as u64;
        (self.state, self.window) = (state, window);
        self.bound();
        self.felt_from = self.next;
        self.delay.forget_standing();
        self.counts[reason as usize] += 1;
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
            self.unread += 1;
        }
        self.changes.push_back(Change {
            at: now,
            reason,
            state,
            rate_bps: self.rate_bps(),
            window_bytes: (before, self.window as u64),
            queue: self.delay.queue(),
        });
    }

    /// Keeps the window to its bounds.
    pub(super) fn bound(&mut self) {
        let most = super::pacer::bytes_in(self.delay.in_flight(), self.options.max_bps) as f64;
        let least = self.least_window();
        self.window = self.window.max(least).min(most.max(least));
    }
}
