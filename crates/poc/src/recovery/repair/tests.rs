//! Each rule by itself.

use proptest::prelude::*;

use super::*;

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// 40 ms on average, 20 ms around it: an attempt takes 40 ms to arrive, and 80 ms until its loss is known.
fn rtt() -> Rtt {
    let mut rtt = Rtt::new(Duration::ZERO);
    rtt.handle_sample(Duration::from_millis(40), Duration::ZERO);
    rtt
}

fn piece(until: u64) -> Piece {
    let need = Need::Until(ms(until));
    Piece { need, useful_until: None, class: Class::Reliable, attempts: 1, bytes: 1000 }
}

fn repairs() -> Repairs {
    Repairs::new(Settings::default())
}

const ONE: Repair = Repair::Again { copies: 1 };
const TWO: Repair = Repair::Again { copies: 2 };

#[test]
fn what_would_come_too_late_is_given_up() {
    let mut repairs = repairs();
    assert_eq!(repairs.decide(ms(100), &rtt(), &piece(140)), Repair::GiveUp(GiveUp::TooLate));
    assert_ne!(repairs.decide(ms(100), &rtt(), &piece(141)), Repair::GiveUp(GiveUp::TooLate));
    assert_eq!(repairs.counts().too_late, 1);
}

#[test]
fn the_last_attempt_is_worth_copies() {
    let mut repairs = repairs();
    assert_eq!(repairs.decide(ms(100), &rtt(), &piece(181)), ONE);
    assert_eq!(repairs.decide(ms(100), &rtt(), &piece(180)), TWO);
    assert_eq!((repairs.counts().copies, repairs.counts().copied_bytes), (1, 1000));
}

#[test]
fn the_earlier_deadline_counts() {
    let mut repairs = repairs();
    let soon = Piece { useful_until: Some(ms(120)), ..piece(1000) };
    assert_eq!(repairs.decide(ms(100), &rtt(), &soon), Repair::GiveUp(GiveUp::TooLate));
    let soon = Piece { useful_until: Some(ms(1000)), ..piece(120) };
    assert_eq!(repairs.decide(ms(100), &rtt(), &soon), Repair::GiveUp(GiveUp::TooLate));
    let soon = Piece { need: Need::Unknown, useful_until: Some(ms(120)), ..piece(0) };
    assert_eq!(repairs.decide(ms(100), &rtt(), &soon), Repair::GiveUp(GiveUp::TooLate));
}

#[test]
fn what_has_no_deadline_is_sent_again_once_at_a_time() {
    let mut repairs = repairs();
    for need in [Need::Always, Need::Unknown] {
        let piece = Piece { need, attempts: 99, ..piece(0) };
        assert_eq!(repairs.decide(ms(100), &rtt(), &piece), ONE);
    }
}

#[test]
fn what_is_not_needed_is_given_up() {
    let mut repairs = repairs();
    let piece = Piece { need: Need::No, ..piece(0) };
    assert_eq!(repairs.decide(ms(100), &rtt(), &piece), Repair::GiveUp(GiveUp::NotNeeded));
}

#[test]
fn classes_say_how_often() {
    let mut repairs = repairs();
    let mut decide =
        |class, attempts| repairs.decide(ms(100), &rtt(), &Piece { class, attempts, ..piece(5000) });
    assert_eq!(decide(Class::Unreliable, 1), Repair::GiveUp(GiveUp::Unreliable));
    assert_eq!(decide(Class::Partial, 2), ONE);
    assert_eq!(decide(Class::Partial, 3), Repair::GiveUp(GiveUp::Attempts));
    assert_eq!(decide(Class::Reliable, 30), ONE);
    let reasons = [GiveUp::NotNeeded, GiveUp::TooLate, GiveUp::Unreliable, GiveUp::Attempts];
    let counts = reasons.map(|reason| (reason.name(), repairs.counts().given_up(reason)));
    assert_eq!(counts, [("not_needed", 0), ("too_late", 0), ("unreliable", 1), ("attempts", 1)]);
    assert_eq!(repairs.counts().again, 2);
}

#[test]
fn a_spent_budget_leaves_one_copy_and_grows_with_what_is_sent() {
    let mut repairs =
        Repairs::new(Settings { burst_bytes: 2500, copies: 9, redundancy_pct: 5, ..Settings::default() });
    let decide = |repairs: &mut Repairs| repairs.decide(ms(100), &rtt(), &piece(150));
    assert_eq!(decide(&mut repairs), Repair::Again { copies: 3 });
    assert_eq!(decide(&mut repairs), ONE);
    assert_eq!(repairs.counts().copies_refused, 1 + 3);
    (0..10).for_each(|_| repairs.handle_sent(1000));
    assert_eq!(decide(&mut repairs), TWO);
    assert_eq!(decide(&mut repairs), ONE);
}

proptest! {
    #[test]
    fn copies_never_take_more_than_their_share(
        pieces in prop::collection::vec((0..3000_u32, any::<bool>()), 1..300),
        redundancy_pct in 0..40_u32,
        copies in 0..6_u32,
    ) {
        let burst_bytes = 5000;
        let mut repairs = Repairs::new(Settings { attempts_max: 3, copies, redundancy_pct, burst_bytes });
        let mut sent = 0;
        for (bytes, is_lost) in pieces {
            sent += u64::from(bytes);
            repairs.handle_sent(bytes);
            if is_lost {
                repairs.decide(ms(100), &rtt(), &Piece { bytes, ..piece(150) });
            }
            let allowed = sent * u64::from(redundancy_pct) / 100 + u64::from(burst_bytes);
            prop_assert!(repairs.counts().copied_bytes <= allowed);
        }
    }
}
