//! A sender of video to a viewer, whose rate follows the estimator.

use core::cell::RefCell;
use core::time::Duration;
use std::rc::Rc;

use outflow_media::Time;

use crate::pacer::time_of;
use crate::testing::{Random, Sender};
use crate::{Acked, Bounds, Estimator, Ledger};

const PACKET: u64 = 1200;
const FRAME: Duration = Duration::from_millis(40);

/// Packets leave so much faster than the estimate, in percent.
const PACE_PERCENT: u64 = 150;

/// Packets of a probe.
const PROBE_PACKETS: u64 = 20;

/// What it could use where a probe has shown that it fits, in bits a second.
const WANTED_BPS: u64 = 10_000_000;

/// The estimate, with each message of the receiver.
pub(super) type Log = Rc<RefCell<Vec<(Time, u64)>>>;

/// The sender.
#[derive(Debug)]
pub(super) struct Viewer {
    ledger: Ledger,
    estimator: Estimator,
    most_bps: u64,
    does_probe: bool,
    random: Random,
    frame: Option<Time>,
    backlog: u64,
    next: Time,
    /// The next packet that the receiver says something of.
    unsaid: u64,
    /// Rate and packets left of a probe that is being sent.
    probe: Option<(u64, u64)>,
    log: Log,
}

impl Viewer {
    /// One that sends as much as is estimated, but no more than that.
    pub(super) fn new(bounds: Bounds, most_bps: u64) -> Self {
        let ledger = Ledger::new(65_000);
        let unsaid = ledger.next_number();
        Viewer {
            ledger,
            estimator: Estimator::new(bounds),
            most_bps,
            does_probe: false,
            random: Random(5),
            frame: None,
            backlog: 0,
            next: Time::ZERO,
            unsaid,
            probe: None,
            log: Log::default(),
        }
    }

    pub(super) fn probing(self, does_probe: bool) -> Self {
        Viewer { does_probe, ..self }
    }

    pub(super) fn log(&self) -> Log {
        self.log.clone()
    }

    /// Frames that are due.
    fn make_frames(&mut self, now: Time) {
        let mut due = self.frame.unwrap_or(now);
        while due <= now {
            due = due + FRAME;
            let rate = self.estimator.estimate_bps().min(self.most_bps);
            let size = rate as f64 / 8.0 * FRAME.as_secs_f64() * (0.7 + 0.6 * self.random.unit());
            // What would be late is not sent.
            if time_of(self.backlog, self.estimator.estimate_bps()) < Duration::from_millis(200) {
                self.backlog += size as u64;
            }
        }
        self.frame = Some(due);
    }

    /// Bytes of the next packet, and the rate at which it leaves.
    fn due(&self) -> Option<(u64, u64)> {
        match self.probe {
            Some((bps, _)) => Some((PACKET, bps)),
            None if self.backlog == 0 => None,
            None => Some((self.backlog.min(PACKET), self.estimator.estimate_bps() * PACE_PERCENT / 100)),
        }
    }
}

impl Sender for Viewer {
    fn send(&mut self, now: Time) -> Option<(u64, u64)> {
        self.make_frames(now);
        let wanted =
            self.estimator.probe_bps(now, WANTED_BPS).filter(|_| self.does_probe && self.probe.is_none());
        if let Some(bps) = wanted {
            self.estimator.handle_probe(now, self.ledger.next_number(), PROBE_PACKETS, bps);
            self.probe = Some((bps, PROBE_PACKETS));
        }
        let (bytes, bps) = self.due().filter(|_| self.next <= now)?;
        let number = self.ledger.handle_sent(now, bytes);
        self.next = now + time_of(bytes, bps);
        self.backlog = self.backlog.saturating_sub(bytes);
        self.probe = self.probe.map(|(bps, left)| (bps, left - 1)).filter(|(_, left)| *left > 0);
        Some((number, bytes))
    }

    fn wake(&self, _: Time) -> Option<Time> {
        let due = self.due().map(|_| self.next);
        due.into_iter().chain(self.frame).min()
    }

    fn acked(&mut self, now: Time, batch: &[Acked], _: Duration) {
        let Some(first) = batch.first() else { return };
        let reference = first.received.as_micros() / 64_000;
        let mut statuses = Vec::new();
        for acked in batch {
            statuses.extend((self.unsaid..acked.number).map(|number| (number as u16, None)));
            let at = acked.received.as_micros().cast_signed() - (reference * 64_000).cast_signed();
            statuses.push((acked.number as u16, Some(at)));
            self.unsaid = acked.number + 1;
        }
        let outcomes = self.ledger.handle_feedback(now, (reference & 0xff_ffff) as u32, statuses);
        self.estimator.handle(now, outcomes);
        self.log.borrow_mut().push((now, self.estimator.estimate_bps()));
    }

    fn timeout(&mut self, _: Time) {}
}
