//! A TCP sender with endless data: NewReno (RFC 5681, RFC 6582) or CUBIC (RFC 9438) with selective
//! acknowledgements, as in a textbook. Written apart from the controller, which must not judge itself.

use core::time::Duration;
use std::collections::BTreeMap;

use outflow_media::Time;

use super::Sender;
use crate::Acked;

const SEGMENT: u64 = 1500;

/// How its window grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// As NewReno.
    Reno,
    /// As CUBIC.
    Cubic,
}

/// The sender.
#[derive(Debug)]
pub struct Tcp {
    growth: Growth,
    /// In segments.
    window: f64,
    threshold: f64,
    next: u64,
    sent: BTreeMap<u64, Time>,
    /// Losses below this number belong to the last reduction.
    recover: u64,
    rtt: Duration,
    heard: Time,
    /// Of CUBIC: where the last loss was, when it was, and what Reno would have.
    most: f64,
    epoch: Option<Time>,
    reno: f64,
}

impl Tcp {
    /// One that always has something to send.
    pub fn new(growth: Growth) -> Self {
        Tcp {
            growth,
            window: 10.0,
            threshold: f64::MAX,
            next: 0,
            sent: BTreeMap::new(),
            recover: 0,
            rtt: Duration::from_millis(100),
            heard: Time::ZERO,
            most: 0.0,
            epoch: None,
            reno: 0.0,
        }
    }

    fn grow(&mut self, now: Time, segments: f64) {
        if self.window < self.threshold {
            self.window += segments;
            return;
        }
        if self.growth == Growth::Reno {
            self.window += segments / self.window;
            return;
        }
        let epoch = *self.epoch.get_or_insert(now);
        let k = ((self.most - self.threshold).max(0.0) / 0.4).cbrt();
        let t = (now.since(epoch) + self.rtt).as_secs_f64() - k;
        let target = (self.most + 0.4 * t * t * t).min(1.5 * self.window);
        let alpha = if self.reno < self.most { 3.0 * 0.3 / 1.7 } else { 1.0 };
        self.reno += alpha * segments / self.window;
        if target > self.window {
            self.window += (target - self.window) / self.window * segments;
        }
        self.window = self.window.max(self.reno);
    }

    fn reduce(&mut self, now: Time) {
        let kept = if self.growth == Growth::Reno { 0.5 } else { 0.7 };
        self.most = if self.window < self.most { self.window * 0.85 } else { self.window };
        self.threshold = (self.window * kept).max(2.0);
        (self.window, self.reno) = (self.threshold, self.threshold);
        (self.recover, self.epoch) = (self.next, Some(now));
    }

    fn patience(&self) -> Duration {
        (self.rtt * 2).max(Duration::from_secs(1))
    }
}

impl Sender for Tcp {
    fn send(&mut self, now: Time) -> Option<(u64, u64)> {
        if self.sent.len() as f64 >= self.window.max(1.0) {
            return None;
        }
        if self.sent.is_empty() {
            self.heard = now;
        }
        self.sent.insert(self.next, now);
        self.next += 1;
        Some((self.next - 1, SEGMENT))
    }

    fn wake(&self, _now: Time) -> Option<Time> {
        (!self.sent.is_empty()).then(|| self.heard + self.patience())
    }

    fn acked(&mut self, now: Time, batch: &[Acked], rtt: Duration) {
        (self.rtt, self.heard) = (rtt, now);
        let known = batch.iter().filter(|acked| self.sent.remove(&acked.number).is_some()).count();
        let newest = batch.iter().map(|acked| acked.number).max().unwrap_or(0);
        let lost: Vec<u64> = self.sent.range(..(newest + 1).saturating_sub(3)).map(|(n, _)| *n).collect();
        for number in &lost {
            self.sent.remove(number);
        }
        if lost.iter().any(|number| *number >= self.recover) {
            self.reduce(now);
        } else if newest >= self.recover {
            self.grow(now, known as f64);
        }
    }

    fn timeout(&mut self, now: Time) {
        if self.wake(now).is_some_and(|due| due <= now) {
            self.threshold = (self.window / 2.0).max(2.0);
            (self.window, self.heard, self.recover) = (1.0, now, self.next);
            self.sent.clear();
        }
    }
}
