//! A sender with our controller.

use core::time::Duration;
use std::collections::BTreeMap;

use outflow_media::Time;

use super::{Random, Sender};
use crate::{Acked, Change, Controller, Lost, Options, Reason, State};

const PACKET: u64 = 1200;
const FRAME: Duration = Duration::from_millis(40);

/// What there is to send.
#[derive(Debug)]
pub enum App {
    /// Always something.
    Greedy,
    /// A frame each 40 ms: so much of the rate that the controller says, in percent, but no more than so
    /// many bits a second.
    Video {
        /// Of the rate that the controller says.
        percent: u64,
        /// No more than that.
        most_bps: u64,
    },
}

/// The sender.
#[derive(Debug)]
pub struct Ours {
    controller: Controller,
    app: App,
    random: Random,
    next: u64,
    sent: BTreeMap<u64, (u64, Time)>,
    rtt: Duration,
    backlog: u64,
    frame: Time,
    /// Frames that could not have gone in time.
    pub frames_dropped: u64,
    /// Changes of the controller.
    pub changes: Vec<Change>,
    /// Every 100 ms or so, what it would tell an encoder.
    pub rates: Vec<(Time, u64, State)>,
}

impl Ours {
    /// A sender of what an application has.
    pub fn new(options: Options, app: App, seed: u64) -> Self {
        Ours {
            controller: Controller::new(options),
            app,
            random: Random(seed),
            next: 0,
            sent: BTreeMap::new(),
            rtt: Duration::from_millis(100),
            backlog: 0,
            frame: Time::ZERO,
            frames_dropped: 0,
            changes: Vec::new(),
            rates: Vec::new(),
        }
    }

    /// One that always has something to send.
    pub fn greedy() -> Self {
        Ours::new(Options::default(), App::Greedy, 1)
    }

    /// How often it changed for a reason.
    pub fn count(&self, reason: Reason) -> usize {
        self.changes.iter().filter(|change| change.reason == reason).count()
    }

    /// The share of the time from one moment to another in which it was in a state.
    pub fn share_in(&self, state: State, from_ms: u64, to_ms: u64) -> f64 {
        let within = |at: Time| (from_ms..to_ms).contains(&at.as_millis());
        let all = self.rates.iter().filter(|(at, ..)| within(*at)).count();
        let some = self.rates.iter().filter(|(at, _, s)| within(*at) && *s == state).count();
        some as f64 / all.max(1) as f64
    }

    fn note(&mut self, now: Time) {
        while let Some(change) = self.controller.poll() {
            self.changes.push(change);
        }
        if self.rates.last().is_none_or(|(at, ..)| now.since(*at) >= Duration::from_millis(100)) {
            self.rates.push((now, self.controller.rate_bps(), self.controller.state()));
        }
    }

    fn lose(&mut self, now: Time, is_lost: impl Fn(u64, Time) -> bool) {
        let lost: Vec<Lost> = self
            .sent
            .iter()
            .filter(|(number, (_, sent))| is_lost(**number, *sent))
            .map(|(number, (bytes, sent))| Lost { number: *number, bytes: *bytes, sent: *sent })
            .collect();
        for lost in &lost {
            self.sent.remove(&lost.number);
        }
        self.controller.handle_lost(now, &lost);
    }

    /// Frames that are due.
    fn make_frames(&mut self, now: Time) {
        let App::Video { percent, most_bps } = self.app else { return };
        if self.frame == Time::ZERO {
            self.frame = now;
        }
        while self.frame <= now {
            self.frame = self.frame + FRAME;
            let rate = (self.controller.rate_bps() * percent / 100).min(most_bps);
            let size = rate as f64 / 8.0 * FRAME.as_secs_f64() * (0.7 + 0.6 * self.random.unit());
            // What cannot go in a fifth of a second is not sent.
            if self.backlog > self.controller.affordable(now, Duration::from_millis(200)) {
                self.frames_dropped += 1;
            } else {
                self.backlog += size as u64;
            }
        }
    }

    fn size(&self) -> u64 {
        if matches!(self.app, App::Greedy) { PACKET } else { self.backlog.min(PACKET) }
    }

    fn loss_timer(&self) -> Option<Time> {
        let patience = (self.rtt * 4).max(Duration::from_secs(1));
        self.sent.values().next().map(|(_, sent)| *sent + patience)
    }
}

impl Sender for Ours {
    fn send(&mut self, now: Time) -> Option<(u64, u64)> {
        self.make_frames(now);
        let bytes = self.size();
        let may = bytes > 0 && self.controller.next_send(now, bytes).is_some_and(|at| at <= now);
        if !may {
            return None;
        }
        self.backlog = self.backlog.saturating_sub(bytes);
        let is_waiting = self.size() > 0;
        self.controller.handle_sent(now, self.next, bytes, is_waiting);
        self.sent.insert(self.next, (bytes, now));
        self.next += 1;
        Some((self.next - 1, bytes))
    }

    fn wake(&self, now: Time) -> Option<Time> {
        let bytes = self.size();
        let send = (bytes > 0).then(|| self.controller.next_send(now, bytes)).flatten();
        let frame = matches!(self.app, App::Video { .. }).then_some(self.frame);
        [send, frame, self.controller.next_timeout(), self.loss_timer()].into_iter().flatten().min()
    }

    fn acked(&mut self, now: Time, batch: &[Acked], rtt: Duration) {
        let known: Vec<Acked> =
            batch.iter().filter(|acked| self.sent.remove(&acked.number).is_some()).copied().collect();
        self.rtt = rtt;
        self.controller.handle_acked(now, &known, rtt);
        let newest = batch.iter().map(|acked| acked.number).max().unwrap_or(0);
        self.lose(now, |number, _| number + 3 <= newest);
        self.note(now);
    }

    fn timeout(&mut self, now: Time) {
        self.controller.handle_timeout(now);
        if self.loss_timer().is_some_and(|due| due <= now) {
            let patience = (self.rtt * 4).max(Duration::from_secs(1));
            self.lose(now, |_, sent| sent + patience <= now);
        }
        self.note(now);
    }

    fn as_ours(&self) -> Option<&Ours> {
        Some(self)
    }
}
