//! The rate of a link, followed from what its receivers report (draft-ietf-rmcat-gcc-02, section 6).
//!
//! Receivers say by RTCP how many packets they miss. Those that the link itself gave up are known here, and are
//! taken off: what is left was lost behind it, where the real bottleneck is. Every second the rate becomes
//!
//! * less by half the share that was lost, if that is more than a tenth,
//! * a twentieth more, if it is less than a fiftieth, and the link was in use: a low rate tells nothing,
//! * what it was, otherwise.
//!
//! Others know by themselves what their way carries, and say it (REMB, TMMBR). Where all receivers behind the link
//! have, it is no faster than the sum: as the draft's sender takes the lesser of its own rate and theirs.

use std::collections::BTreeMap;

use outflow_media::Time;

use crate::flow::FlowId;
use crate::limits::{FOLLOW_EVERY, FOLLOW_EXPECTED_MIN, FOLLOW_LIMIT_HOLDS};

/// What a receiver says of a flow (RFC 3550, section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported {
    /// Extended highest sequence number received.
    pub highest: u32,
    /// Packets lost since it began; negative where copies came.
    pub lost: i32,
}

/// Finds the rate of a link.
#[derive(Debug)]
pub struct Follow {
    least_bps: u64,
    most_bps: u64,
    /// By what gets lost alone.
    by_loss_bps: u64,
    rate_bps: u64,
    flows: BTreeMap<FlowId, Heard>,
    /// What receivers said that their ways carry, in bits a second, and until when that holds.
    limits: BTreeMap<u64, (u64, Time)>,
    limits_changed: bool,
    /// Since the rate was changed last.
    since: Time,
    expected: u64,
    lost: u64,
    used: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    last: Option<Reported>,
    /// Packets that the link gave up and that no report has shown yet.
    given_up: u64,
}

impl Follow {
    /// Between these rates, and with the higher one at first: it takes seconds to come down, and minutes to
    /// find out that more is possible.
    pub fn new(now: Time, least_bps: u64, most_bps: u64) -> Self {
        let most_bps = most_bps.max(least_bps);
        Follow {
            least_bps,
            most_bps,
            by_loss_bps: most_bps,
            rate_bps: most_bps,
            flows: BTreeMap::new(),
            limits: BTreeMap::new(),
            limits_changed: false,
            since: now,
            expected: 0,
            lost: 0,
            used: false,
        }
    }

    /// The rate.
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// Other bounds.
    pub fn set_bounds(&mut self, least_bps: u64, most_bps: u64) {
        (self.least_bps, self.most_bps) = (least_bps, most_bps.max(least_bps));
        self.by_loss_bps = self.by_loss_bps.clamp(self.least_bps, self.most_bps);
        self.rate_bps = self.rate_bps.clamp(self.least_bps, self.most_bps);
    }

    /// The link gave up a packet of a flow: its receiver will miss it.
    pub fn handle_given_up(&mut self, flow: FlowId) {
        self.flows.entry(flow).or_default().given_up += 1;
        self.used = true;
    }

    /// The link had something to send and could not at once: what it has is in use.
    pub fn handle_used(&mut self) {
        self.used = true;
    }

    /// The receiver of a flow reports.
    pub fn handle_report(&mut self, flow: FlowId, reported: Reported) {
        let heard = self.flows.entry(flow).or_default();
        let Some(last) = heard.last.replace(reported) else {
            // It began with this: what was given up before is in it.
            heard.given_up = 0;
            return;
        };
        let expected = reported.highest.wrapping_sub(last.highest);
        // A flow that began again, or a report that came twice, tells nothing.
        if expected == 0 || expected > 1 << 24 {
            return;
        }
        let lost = u64::from(reported.lost.wrapping_sub(last.lost).max(0).cast_unsigned());
        let lost = lost.min(expected.into());
        let ours = lost.min(heard.given_up);
        heard.given_up -= ours;
        self.expected += u64::from(expected) - ours;
        self.lost += lost - ours;
    }

    /// A receiver says what its way carries, for all that it is sent: REMB (draft-alvestrand-rmcat-remb-03) or
    /// TMMBR (RFC 5104, section 4.2.1).
    pub fn handle_limit(&mut self, now: Time, receiver: u64, bps: u64) {
        self.limits.insert(receiver, (bps, now + FOLLOW_LIMIT_HOLDS));
        self.limits_changed = true;
    }

    /// A flow ends.
    pub fn forget(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }

    /// A receiver leaves.
    pub fn forget_receiver(&mut self, receiver: u64) {
        self.limits_changed |= self.limits.remove(&receiver).is_some();
    }

    /// The rate, if it is another one from now on. To be asked a few times a second, with the number of receivers
    /// that are behind the link.
    pub fn poll(&mut self, now: Time, receivers: usize) -> Option<u64> {
        let before = self.rate_bps;
        let waited = now.since(self.since) >= FOLLOW_EVERY;
        if waited && self.expected >= FOLLOW_EXPECTED_MIN {
            self.weigh_losses(now);
        } else if !core::mem::take(&mut self.limits_changed) {
            return None;
        }
        let limit = self.limit_bps(now, receivers).unwrap_or(u64::MAX);
        self.rate_bps = self.by_loss_bps.min(limit).clamp(self.least_bps, self.most_bps);
        (self.rate_bps != before).then_some(self.rate_bps)
    }

    fn weigh_losses(&mut self, now: Time) {
        let rate_bps = self.rate_bps;
        if self.lost * 10 > self.expected {
            let (rate, twice) = (u128::from(rate_bps), u128::from(self.expected) * 2);
            let less = rate * u128::from(self.lost) / twice;
            self.by_loss_bps = rate_bps - u64::try_from(less).unwrap_or(rate_bps);
        } else if self.lost * 50 < self.expected && self.used {
            self.by_loss_bps += self.by_loss_bps / 20;
        }
        self.by_loss_bps = self.by_loss_bps.clamp(self.least_bps, self.most_bps);
        (self.since, self.expected, self.lost, self.used) = (now, 0, 0, false);
    }

    /// What all receivers together said that they can be sent, if all have.
    fn limit_bps(&mut self, now: Time, receivers: usize) -> Option<u64> {
        self.limits.retain(|_, (_, until)| *until > now);
        let all = receivers > 0 && self.limits.len() >= receivers;
        all.then(|| self.limits.values().fold(0_u64, |sum, (bps, _)| sum.saturating_add(*bps)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FLOW: FlowId = FlowId(1);

    struct Receiver {
        follow: Follow,
        now: Time,
        reported: Reported,
    }

    impl Receiver {
        fn new() -> Self {
            let mut follow = Follow::new(Time::ZERO, 1_000_000, 10_000_000);
            let reported = Reported { highest: u32::MAX - 500, lost: 0 };
            follow.handle_report(FLOW, reported);
            Receiver { follow, now: Time::ZERO, reported }
        }

        /// A second with `packets` packets, of which the link gave up some, and others got lost behind it.
        fn second(&mut self, packets: u32, given_up: u32, lost: u32) -> u64 {
            (0..given_up).for_each(|_| self.follow.handle_given_up(FLOW));
            self.reported.highest = self.reported.highest.wrapping_add(packets);
            self.reported.lost += (given_up + lost) as i32;
            self.follow.handle_report(FLOW, self.reported);
            self.now = self.now + FOLLOW_EVERY;
            self.follow.poll(self.now, 1);
            self.follow.rate_bps()
        }
    }

    #[test]
    fn loss_behind_the_link_lowers_the_rate_by_half_of_its_share() {
        let mut receiver = Receiver::new();
        assert_eq!(receiver.second(1000, 0, 200), 9_000_000);
        assert_eq!(receiver.second(1000, 0, 50), 9_000_000, "between the two it stays");
        assert_eq!(receiver.second(1000, 0, 1000), 4_500_000);
        (0..20).for_each(|_| {
            receiver.second(1000, 0, 900);
        });
        assert_eq!(receiver.follow.rate_bps(), 1_000_000, "no less than the least");
    }

    #[test]
    fn what_the_link_gave_up_itself_is_no_loss() {
        let mut receiver = Receiver::new();
        assert_eq!(receiver.second(1000, 600, 0), 10_000_000);
        assert_eq!(receiver.second(1000, 500, 100), 9_000_000, "100 of 500");
    }

    #[test]
    fn a_link_in_use_without_loss_gets_more_and_an_idle_one_does_not() {
        let mut receiver = Receiver::new();
        receiver.second(1000, 0, 1000);
        let before = receiver.follow.rate_bps();
        assert_eq!(receiver.second(1000, 0, 0), before, "idle");
        receiver.follow.handle_used();
        assert_eq!(receiver.second(1000, 0, 0), before + before / 20);
    }

    #[test]
    fn reports_that_begin_again_tell_nothing() {
        let mut receiver = Receiver::new();
        receiver.reported = Reported { highest: 5, lost: 0 };
        receiver.follow.handle_report(FLOW, receiver.reported);
        receiver.follow.handle_report(FLOW, Reported { highest: 3, lost: 9 });
        assert_eq!(receiver.follow.poll(Time::from_millis(9000), 1), None);
        receiver.follow.forget(FLOW);
        assert!(receiver.follow.flows.is_empty());
    }

    #[test]
    fn what_all_receivers_say_that_they_can_take_bounds_the_rate() {
        let mut follow = Follow::new(Time::ZERO, 1_000_000, 10_000_000);
        let at = |second: u64| Time::from_millis(second * 1000);
        follow.handle_limit(at(1), 7, 2_000_000);
        assert_eq!(follow.poll(at(1), 2), None, "another one has not said anything");
        follow.handle_limit(at(1), 8, 3_000_000);
        assert_eq!(
            (follow.poll(at(1), 2), follow.poll(at(1), 2)),
            (Some(5_000_000), None),
            "at once, and once"
        );
        follow.handle_limit(at(2), 8, 100);
        assert_eq!(follow.poll(at(2), 2), Some(2_000_100));
        follow.forget_receiver(7);
        assert_eq!(follow.poll(at(3), 1), Some(1_000_000), "no less than the least");
        follow.handle_limit(at(4), 9, u64::MAX);
        assert_eq!(follow.poll(at(4), 2), Some(10_000_000), "nor more than the most");
        follow.handle_limit(at(4), 9, 1_000_000);
        assert_eq!(follow.poll(at(5), 2), Some(1_000_100));
        let mut reported = Reported { highest: 0, lost: 0 };
        follow.handle_report(FLOW, reported);
        reported.highest += 1000;
        follow.handle_report(FLOW, reported);
        assert_eq!(follow.poll(at(40), 2), Some(10_000_000), "it holds only so long");
    }

    proptest! {
        #[test]
        fn the_rate_stays_within_its_bounds(
            reports in proptest::collection::vec((any::<u32>(), any::<i32>(), 0_u8..3), 0..200),
            (least, most) in (1_u64..1 << 40, 1_u64..1 << 40),
        ) {
            let mut follow = Follow::new(Time::ZERO, least, most);
            for (second, (highest, lost, flow)) in (1..).zip(reports) {
                follow.handle_given_up(FlowId(flow.into()));
                follow.handle_report(FlowId(flow.into()), Reported { highest, lost });
                follow.handle_limit(Time::from_millis(second * 900), flow.into(), highest.into());
                follow.poll(Time::from_millis(second * 1000), 3);
                prop_assert!((least..=most.max(least)).contains(&follow.rate_bps()));
            }
        }
    }
}
