//! What it answers to each input.

use super::*;

const RTT: Duration = Duration::from_millis(50);

/// Sends and acknowledges packets one by one.
struct Hand {
    controller: Controller,
    now: Time,
    next: u64,
}

impl Hand {
    fn new(options: Options) -> Self {
        Hand { controller: Controller::new(options), now: Time::from_millis(1000), next: 0 }
    }

    fn send(&mut self) -> Acked {
        self.controller.handle_sent(self.now, self.next, 1200, true);
        self.next += 1;
        Acked { number: self.next - 1, bytes: 1200, sent: self.now, received: self.now + RTT / 2 }
    }

    /// `count` packets are sent, and acknowledged a round trip later.
    fn round(&mut self, count: usize) {
        let acked: Vec<Acked> = (0..count).map(|_| self.send()).collect();
        self.now = self.now + RTT;
        for acked in acked {
            self.controller.handle_acked(self.now, &[acked], RTT);
        }
    }

    fn lose(&mut self, acked: &[Acked]) -> Vec<Lost> {
        let lost = |acked: &Acked| Lost { number: acked.number, bytes: acked.bytes, sent: acked.sent };
        let lost: Vec<Lost> = acked.iter().map(lost).collect();
        self.controller.handle_lost(self.now, &lost);
        lost
    }

    fn reasons(&mut self) -> Vec<Reason> {
        core::iter::from_fn(|| self.controller.poll()).map(|change| change.reason).collect()
    }
}

#[test]
fn it_starts_at_the_rate_that_it_is_told() {
    let mut hand = Hand::new(Options { initial_bps: 2 * MBIT, ..Options::default() });
    assert_eq!(hand.controller.rate_bps(), 2 * MBIT);
    let first = hand.send();
    hand.now = hand.now + RTT;
    hand.controller.handle_acked(hand.now, &[first], RTT);
    assert!((1_900_000..2_500_000).contains(&hand.controller.rate_bps()), "{}", hand.controller.rate_bps());
}

#[test]
fn wishes_beyond_the_limits_are_moved_to_them() {
    let mut options = Options { initial_bps: 0, min_bps: 0, max_bps: 0, ..Options::default() };
    assert_eq!(Controller::new(options).rate_bps(), crate::limits::RATE_BPS_LEAST);
    options = Options { initial_bps: u64::MAX, max_bps: u64::MAX, datagram_bytes: 0, ..options };
    assert_eq!(Controller::new(options).rate_bps(), crate::limits::RATE_BPS_MOST);
}

#[test]
fn a_full_window_waits_for_acknowledgements() {
    let mut hand = Hand::new(Options::default());
    let window = hand.controller.window_bytes();
    let sent: Vec<Acked> = (0..window / 1200).map(|_| hand.send()).collect();
    assert_eq!(hand.controller.next_send(hand.now, 1200), None);
    assert_eq!(hand.controller.in_flight_bytes(), window / 1200 * 1200);
    hand.now = hand.now + RTT;
    hand.controller.handle_acked(hand.now, &sent[..8], RTT);
    assert!(hand.controller.next_send(hand.now, 1200).is_some());
}

#[test]
fn a_window_that_is_used_grows_and_one_that_is_not_does_not() {
    let mut hand = Hand::new(Options::default());
    hand.round(10);
    hand.round(2);
    hand.round(2);
    let before = hand.controller.window_bytes();
    for _ in 0..5 {
        hand.round(2);
    }
    assert_eq!(hand.controller.window_bytes(), before);
    for _ in 0..3 {
        let full = (hand.controller.window_bytes() / 1200) as usize;
        hand.round(full);
    }
    assert!(hand.controller.window_bytes() > before * 13 / 10);
}

#[test]
fn silence_halves_the_window_and_then_leaves_the_least() {
    let mut hand = Hand::new(Options::default());
    hand.round(10);
    let before = hand.controller.window_bytes();
    hand.send();
    let due = hand.controller.next_timeout().expect("something is in flight");
    hand.controller.handle_timeout(due);
    let after = hand.controller.window_bytes();
    assert!(after <= before / 2 + 1 || after == 2400, "{before} {after}");
    hand.controller.handle_timeout(due + Duration::from_secs(60));
    assert_eq!(hand.controller.window_bytes(), 2400);
    assert!(hand.reasons().iter().all(|reason| *reason == Reason::Silent));
}

#[test]
fn marks_count_once_a_round_and_scalable_ones_by_their_share() {
    let run = |ecn: Ecn, marked: u64| {
        let mut hand = Hand::new(Options { ecn, initial_bps: 10 * MBIT, ..Options::default() });
        hand.round(50);
        let before = hand.controller.window_bytes();
        let mut counts = MarkCounts::default();
        for ce in 0..marked {
            counts = MarkCounts { ect0: 0, ect1: 10 * (ce + 1), ce: ce + 1 };
            hand.controller.handle_ecn(hand.now, counts);
        }
        hand.round(10);
        let _ = counts;
        hand.controller.window_bytes() as f64 / before as f64
    };
    assert!(run(Ecn::Classic, 0) >= 1.0);
    let once = run(Ecn::Classic, 1);
    assert!((0.8..0.9).contains(&once), "{once}");
    assert_eq!(run(Ecn::Classic, 5), once);
    let scalable = run(Ecn::Scalable, 5);
    assert!((0.45..0.6).contains(&scalable), "{scalable}: nothing is known of the share at first");
}

#[test]
fn what_was_not_lost_after_all_is_given_back() {
    let mut hand = Hand::new(Options { initial_bps: 10 * MBIT, ..Options::default() });
    hand.round(40);
    let before = hand.controller.window_bytes();
    let sent: Vec<Acked> = (0..40).map(|_| hand.send()).collect();
    hand.now = hand.now + RTT;
    hand.controller.handle_acked(hand.now, &sent[30..], RTT);
    let lost = hand.lose(&sent[..30]);
    assert!(hand.controller.window_bytes() < before, "a flood at the start");
    hand.controller.handle_spurious(hand.now, &lost);
    assert!(hand.controller.window_bytes() >= before);
    assert_eq!(hand.reasons(), [Reason::Overflow, Reason::Spurious]);
    assert_eq!(hand.controller.in_flight_bytes(), 0);
}

#[test]
fn what_is_affordable_is_what_then_goes() {
    let mut hand = Hand::new(Options { initial_bps: 8 * MBIT, ..Options::default() });
    hand.round(10);
    let horizon = Duration::from_millis(100);
    let said = hand.controller.affordable(hand.now, horizon);
    let expected = hand.controller.rate_bps() / 80;
    assert!((expected * 9 / 10..expected * 12 / 10).contains(&said), "{said} {expected}");
    let before = hand.controller.affordable(hand.now, Duration::from_millis(10));
    for _ in 0..12 {
        hand.send();
    }
    assert!(hand.controller.affordable(hand.now, Duration::from_millis(10)) < before);
}

#[test]
fn a_new_path_is_begun_again() {
    let mut hand = Hand::new(Options::default());
    for _ in 0..10 {
        let full = (hand.controller.window_bytes() / 1200) as usize;
        hand.round(full);
    }
    assert!(hand.controller.rate_bps() > 5 * MBIT);
    hand.controller.handle_path_changed(hand.now);
    assert_eq!((hand.controller.rate_bps(), hand.controller.state()), (MBIT, State::Start));
    assert_eq!(hand.reasons(), [Reason::Moved]);
}

#[test]
fn changes_that_are_not_read_are_counted() {
    let mut hand = Hand::new(Options::default());
    for _ in 0..CHANGES_MAX + 3 {
        hand.controller.handle_path_changed(hand.now);
    }
    assert_eq!(hand.controller.counts().1, 3);
    assert_eq!(hand.reasons().len(), CHANGES_MAX);
    let moved = hand.controller.counts().0.find(|(reason, _)| *reason == Reason::Moved);
    assert_eq!(moved, Some((Reason::Moved, CHANGES_MAX as u64 + 3)));
}
