//! What a controller hands over to another one, which goes on with the same path: the window, and what is known of
//! the delay. What it watches others by is not among that: a competing flow that fills the queue is found again.

use core::time::Duration;

use outflow_media::Time;
use outflow_media::ecn::MarkCounts;

use super::delay::Known;
use super::{Controller, Options, State};

/// Longest that the next packet may be put off by what was sent before. What says more is not believed.
const OWED_MAX: Duration = Duration::from_secs(1);

/// What goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handover {
    /// Bytes that may be in flight.
    pub window_bytes: u64,
    /// Whether packets never waited so far, so that the window still grows quickly.
    pub is_start: bool,
    /// What is known of the delay; nothing before the first acknowledgement.
    pub known: Option<Known>,
    /// Up to when all that was sent is paid for.
    pub paid_until: Time,
    /// When a packet was sent last.
    pub sent: Time,
    /// What the peer has counted of marks.
    pub marks: MarkCounts,
}

impl Controller {
    /// What another one needs to go on.
    pub fn hand_over(&self) -> Handover {
        // What it would come back to after a pause.
        let window = if self.state == State::Slowdown { self.pause.0.max(self.window) } else { self.window };
        Handover {
            window_bytes: window as u64,
            is_start: self.state == State::Start,
            known: self.delay.known(),
            paid_until: self.pacer.paid_until(),
            sent: self.sent,
            marks: self.marks.counts,
        }
    }

    /// One that goes on, with these bytes in flight, and this number for the next packet. What cannot be is moved
    /// to what can.
    pub fn go_on(now: Time, options: Options, handover: &Handover, in_flight: u64, next: u64) -> Self {
        let mut controller = Controller::new(options);
        if let Some(known) = handover.known {
            controller.delay.go_on(now, known);
        }
        controller.window = (handover.window_bytes as f64).max(controller.least_window());
        controller.state = if handover.is_start { State::Start } else { State::Delay };
        controller.pacer.owe(handover.paid_until.min(now + OWED_MAX));
        controller.marks.counts = handover.marks;
        (controller.in_flight, controller.next) = (in_flight, next);
        controller.round.peak = in_flight;
        (controller.felt_from, controller.loss_felt_from, controller.round.end) = (next, next, next);
        (controller.heard, controller.empty_at, controller.paused_at) = (now, now, now);
        controller.sent = handover.sent.min(now);
        controller.bound();
        controller
    }
}

#[cfg(test)]
mod tests {
    use super::super::Acked;
    use super::*;

    const PACKET: u64 = 1200;

    /// One that has sent for two seconds, in which nothing waited, and has nothing in flight.
    fn quiet() -> (Time, Controller) {
        let mut controller = Controller::new(Options::default());
        let mut now = Time::from_millis(1000);
        for number in 0..200 {
            controller.handle_sent(now, number, PACKET, true);
            let (sent, received) = (now, now + Duration::from_millis(7015));
            now = now + Duration::from_millis(30);
            let acked = Acked { number, bytes: PACKET, sent, received };
            controller.handle_acked(now, &[acked], Duration::from_millis(30));
        }
        (now, controller)
    }

    #[test]
    fn it_goes_on_at_the_rate_and_with_the_window_of_the_one_before() {
        let (now, before) = quiet();
        let after = Controller::go_on(now, Options::default(), &before.hand_over(), 0, 200);
        let told = |controller: &Controller| {
            (controller.window_bytes(), controller.next_send(now, PACKET), controller.state())
        };
        assert_eq!(told(&after), told(&before));
        assert!(after.rate_bps().abs_diff(before.rate_bps()) < 1000, "{} of a rate", after.rate_bps());
        let fresh = Controller::new(Options::default());
        assert_ne!(told(&fresh), told(&before), "one that begins stands elsewhere");
    }

    #[test]
    fn a_queue_is_seen_by_the_least_delay_of_the_one_before() {
        let (now, before) = quiet();
        let mut after = Controller::go_on(now, Options::default(), &before.hand_over(), 0, 200);
        after.handle_sent(now, 200, PACKET, true);
        let received = now + Duration::from_millis(7035);
        let acked = Acked { number: 200, bytes: PACKET, sent: now, received };
        after.handle_acked(now + Duration::from_millis(50), &[acked], Duration::from_millis(50));
        assert_eq!(after.queue_delay(), Duration::from_millis(20));
    }

    #[test]
    fn what_cannot_be_is_moved_to_what_can() {
        let all = Duration::MAX;
        let known = Known { smoothed: all, in_flight: all, least: all, least_one_way: i64::MIN };
        let handover = Handover {
            window_bytes: u64::MAX,
            known: Some(known),
            paid_until: Time::from_nanos(u64::MAX),
            sent: Time::from_nanos(u64::MAX),
            ..Handover::default()
        };
        let now = Time::from_millis(5);
        let mut controller = Controller::go_on(now, Options::default(), &handover, 0, 7);
        assert!(controller.next_send(now, PACKET) <= Some(now + OWED_MAX));
        controller.handle_sent(now, 7, PACKET, true);
        let acked = Acked { number: 7, bytes: PACKET, sent: now, received: now };
        controller.handle_acked(now + OWED_MAX, &[acked], OWED_MAX);
        assert!(controller.rate_bps() <= Options::default().max_bps);
        let nothing = Controller::go_on(now, Options::default(), &Handover::default(), 0, 0);
        assert_eq!(nothing.window_bytes(), 2 * PACKET);
    }
}
