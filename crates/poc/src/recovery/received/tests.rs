//! What counts as received, and when that is said.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn at(us: u64) -> Time {
    Time::from_micros(us)
}

fn received() -> Received {
    Received::new(Settings::default(), Time::ZERO)
}

/// Packets of these numbers, all at the beginning.
fn of(numbers: &[u64]) -> Received {
    let mut received = received();
    numbers.iter().for_each(|number| _ = received.handle_received(Time::ZERO, *number, true, Mark::None));
    received
}

fn spans(received: &mut Received) -> Vec<(u64, u64)> {
    let ack = received.ack(Time::ZERO).expect("something was received");
    ack.packets.iter().map(|span| (span.first, span.last)).collect()
}

#[test]
fn ranges_grow_and_meet() {
    assert_eq!(spans(&mut of(&[3, 4, 8, 7, 5])), [(3, 5), (7, 8)]);
    assert_eq!(spans(&mut of(&[3, 4, 8, 7, 5, 6])), [(3, 8)]);
    assert_eq!(spans(&mut of(&[9, 1, 5])), [(1, 1), (5, 5), (9, 9)]);
}

#[test]
fn duplicates_are_told_and_counted() {
    let mut received = of(&[0, 1, 5]);
    for number in [0, 1, 5, 1] {
        assert_eq!(received.handle_received(at(1), number, true, Mark::None), Arrived::Duplicate);
    }
    assert_eq!(received.handle_received(at(1), 4, true, Mark::None), Arrived::New);
    assert_eq!(received.duplicates(), 4);
}

#[test]
fn what_is_forgotten_counts_as_received() {
    let mut received = received();
    for i in 0..=RECEIVED_SPANS_MAX as u64 {
        assert_eq!(received.handle_received(at(i), 10 + 2 * i, true, Mark::None), Arrived::New);
    }
    assert_eq!(received.ranges(), RECEIVED_SPANS_MAX);
    for (number, arrived) in [(3, Arrived::Duplicate), (10, Arrived::Duplicate), (11, Arrived::New)] {
        assert_eq!(received.handle_received(at(9999), number, true, Mark::None), arrived, "{number}");
    }
    assert_eq!(received.handle_received(at(9999), u64::MAX, true, Mark::None), Arrived::Duplicate);
}

#[test]
fn where_a_round_trip_is_short_acknowledgements_are_put_off_for_less() {
    for (rtt_ms, delay_ms) in [(0, 2), (4, 2), (20, 5), (40, 10), (400, 25)] {
        let mut received = received();
        received.handle_round_trip(Duration::from_millis(rtt_ms));
        received.handle_received(at(5), 0, true, Mark::None);
        assert_eq!(received.next_timeout(), Some(at(5) + Duration::from_millis(delay_ms)), "{rtt_ms}");
    }
}

#[test]
fn some_packets_are_acknowledged_at_once_and_one_alone_after_a_while() {
    let settings = Settings { ack_delay_max: Duration::from_millis(5), packets: 2 };
    let mut received = Received::new(settings, Time::ZERO);
    received.handle_received(at(100), 0, true, Mark::None);
    assert_eq!(received.next_timeout(), Some(at(5100)));
    received.handle_received(at(200), 1, true, Mark::None);
    assert_eq!(received.next_timeout(), Some(at(200)));
    assert_eq!(received.ack(at(200)).map(|ack| ack.delay), Some(Duration::ZERO));
    assert_eq!(received.next_timeout(), None);
    received.handle_received(at(300), 2, true, Mark::None);
    assert_eq!(received.next_timeout(), Some(at(5300)));
    assert_eq!(received.ack(at(5300)).map(|ack| ack.delay), Some(Duration::from_millis(5)));
}

#[test]
fn gaps_in_a_row_are_told_as_each_shows_a_loss() {
    let mut received = received();
    let urgent: Vec<u64> = [0, 2, 4, 6, 7, 8, 9, 10]
        .into_iter()
        .filter(|number| {
            received.handle_received(at(*number), *number, true, Mark::None);
            let is_urgent = received.next_timeout() == Some(at(*number));
            received.ack(at(*number));
            is_urgent
        })
        .collect();
    // The first gap by 6, those before 4 and 6 by 8.
    assert_eq!(urgent, [6, 8]);
}

#[test]
fn losses_late_packets_and_congestion_are_told_at_once() {
    let urgent = |before: &[u64], number, mark| {
        let mut received = of(before);
        received.ack(at(1));
        received.handle_received(at(2), number, true, mark);
        received.next_timeout() == Some(at(2))
    };
    assert!(urgent(&[0, 5, 6], 7, Mark::None), "the third behind a gap");
    assert!(!urgent(&[0, 1], 5, Mark::Ect0), "it may only be late");
    assert!(urgent(&[0, 5], 4, Mark::None));
    assert!(urgent(&[0, 1], 2, Mark::Ce));
}

#[test]
fn what_is_due_soon_goes_with_a_packet_that_comes() {
    let mut received = received();
    let ms = |ms| Time::from_millis(ms);
    received.handle_received(ms(100), 0, true, Mark::None);
    received.handle_received(ms(118), 1, true, Mark::None);
    assert_eq!(received.next_timeout(), Some(ms(125)));
    received.handle_received(ms(119), 2, true, Mark::None);
    assert_eq!(received.next_timeout(), Some(ms(119)));
}

#[test]
fn what_is_due_does_not_become_due_later() {
    let mut received = received();
    received.handle_received(at(1), 0, true, Mark::None);
    received.ack(at(1));
    received.handle_received(at(2), 1, true, Mark::Ce);
    received.handle_received(at(3), 2, true, Mark::None);
    assert_eq!(received.next_timeout(), Some(at(2)));
}

#[test]
fn the_delay_is_that_of_the_largest() {
    let mut received = received();
    for (time, number) in [(10, 0), (20, 5), (30, 3)] {
        received.handle_received(at(time), number, true, Mark::None);
    }
    assert_eq!(received.ack(at(50)).map(|ack| ack.delay), Some(Duration::from_micros(30)));
}

#[test]
fn acknowledgements_are_not_acknowledged() {
    let mut received = received();
    for number in [0, 3, 1] {
        received.handle_received(at(number), number, false, Mark::None);
    }
    assert_eq!(received.next_timeout(), None);
    assert_eq!(spans(&mut received), [(0, 1), (3, 3)]);
}

#[test]
fn arrivals_are_told_once_and_the_newest_of_too_many() {
    let mut received = received();
    assert!(received.ack(at(0)).is_none());
    for number in 0..100 {
        received.handle_received(at(1000 + 250 * number), number, true, Mark::None);
    }
    let ack = received.ack(at(30_000)).expect("something was received");
    let newest = Arrival { number: 99, ticks: 206 };
    assert_eq!((ack.arrivals.len(), ack.arrivals.iter().next()), (ARRIVALS_MAX, Some(newest)));
    assert_eq!(newest.time(), Duration::from_micros(25_750));
    received.handle_received(at(40_000), 101, true, Mark::None);
    let ack = received.ack(at(50_000)).expect("something was received");
    assert_eq!(ack.arrivals.iter().collect::<Vec<_>>(), [Arrival { number: 101, ticks: 320 }]);
}

#[test]
fn what_the_peer_knows_is_left_out() {
    let mut received = of(&[0, 2, 4, 100, 102, 200, 202]);
    received.handle_ack_received(102);
    assert_eq!(spans(&mut received), [(100, 100), (102, 102), (200, 200), (202, 202)]);
    // What comes late is not known.
    received.handle_received(at(1), 3, true, Mark::None);
    assert_eq!(spans(&mut received), [(2, 4), (100, 100), (102, 102), (200, 200), (202, 202)]);
    received.handle_ack_received(u64::MAX);
    assert_eq!(spans(&mut received), [(200, 200), (202, 202)]);
}

#[test]
fn marks_are_counted_once() {
    let mut received = of(&[0]);
    assert_eq!(received.ack(at(0)).and_then(|ack| ack.ecn), None);
    for (number, mark) in [(1, Mark::Ect0), (2, Mark::Ce), (2, Mark::Ce), (3, Mark::Ect1)] {
        received.handle_received(at(1), number, true, mark);
    }
    let ecn = MarkCounts { ect0: 1, ect1: 1, ce: 1 };
    assert_eq!(received.ack(at(2)).and_then(|ack| ack.ecn), Some(ecn));
}

proptest! {
    #[test]
    fn it_is_a_set_of_numbers(
        steps in prop::collection::vec((0..8_u64, prop_oneof![4 => 0..4_u64, 1 => 0..40_u64]), 1..1200),
    ) {
        let (mut received, mut set, mut next) = (received(), BTreeSet::new(), 0);
        for (what, distance) in steps {
            let number = if what == 0 { u64::saturating_sub(next, distance) } else { next + distance / 3 };
            next = next.max(number + 1);
            let arrived = received.handle_received(at(next), number, true, Mark::None);
            let is_new = number >= received.floor && set.insert(number);
            // The packet that makes it forget may be the one that is forgotten.
            prop_assert!(arrived == Arrived::Duplicate || is_new || number < received.floor);
            prop_assert!(arrived == Arrived::New || !is_new);
            prop_assert!(received.ranges() <= RECEIVED_SPANS_MAX);
            prop_assert!(received.spans.is_sorted_by(|a, b| a.last + 1 < b.first));
        }
        let floor = received.floor;
        let held: Vec<u64> = received.spans.iter().flat_map(|span| span.first..=span.last).collect();
        prop_assert_eq!(held, set.range(floor..).copied().collect::<Vec<_>>());
    }
}
