//! Orders, and waits that do not add up.

use super::super::play::Play;
use super::*;

const MS_200: Option<Duration> = Some(Duration::from_millis(200));

fn play(order: Order, latency: Option<Duration>) -> Play {
    Play::new(&datagrams(order, latency, Class::Partial).expect("a flow"))
}

/// Across the end of a period: what is missing, and what comes behind it.
const FIRST: u64 = 4 * IN_ORDER.0 as u64 - 3;

#[test]
fn in_total_order_what_is_missing_holds_up_the_rest_until_it_comes() {
    let mut play = play(Order::Total, None);
    play.receive(0, 0..FIRST);
    assert_eq!(play.units(), (0..FIRST).collect::<Vec<_>>());
    play.receive(10, (FIRST + 1..FIRST + 9).rev());
    play.wait(60_000);
    assert_eq!(play.units(), []);
    play.receive(60_000, [FIRST]);
    assert_eq!(play.units(), (FIRST..FIRST + 9).collect::<Vec<_>>());
    assert_eq!(play.lost, []);
}

#[test]
fn units_lost_in_a_row_are_gone_after_one_latency() {
    let mut play = play(Order::Total, MS_200);
    play.receive(0, 0..FIRST);
    play.delivered.clear();
    // Twenty are lost; what comes behind the first ten is told of 50 ms before what comes behind the others.
    play.receive(100, [FIRST + 10]);
    play.receive(150, [FIRST + 21]);
    play.wait(1000);
    assert_eq!(play.delivered, [(300, FIRST + 10), (350, FIRST + 21)]);
    assert_eq!(play.lost.len(), 20);
}

#[test]
fn after_an_outage_of_many_rounds_one_latency_passes_too() {
    let mut play = play(Order::Total, MS_200);
    let behind = 31 * u64::from(IN_ORDER.0);
    play.receive(100, behind..behind + 500);
    play.wait(2000);
    let at_300: Vec<_> = (behind..behind + 500).map(|unit| (300, unit)).collect();
    assert_eq!(play.delivered, at_300);
}

#[test]
fn units_swap_as_far_as_they_may() {
    let mut play = play(Order::Partial(4), MS_200);
    play.receive(0, 0..FIRST);
    play.units();
    // FIRST is missing: the four behind it may come before it, others not.
    play.receive(10, FIRST + 1..FIRST + 9);
    assert_eq!(play.units(), (FIRST + 1..FIRST + 5).collect::<Vec<_>>());
    play.receive(20, [FIRST]);
    assert_eq!(play.units(), [FIRST, FIRST + 5, FIRST + 6, FIRST + 7, FIRST + 8]);
    // What may come before its turn does not free what waits for others before it.
    play.receive(30, [FIRST + 10, FIRST + 11, FIRST + 14, FIRST + 15, FIRST + 16]);
    assert_eq!(play.units(), [FIRST + 10, FIRST + 11]);
    play.wait(229);
    assert_eq!(play.units(), []);
    play.wait(230);
    assert_eq!(play.units(), [FIRST + 14, FIRST + 15, FIRST + 16]);
}

#[test]
fn units_swap_no_further_than_a_period() {
    let mut play = play(Order::Partial(u32::MAX), None);
    play.receive(0, 1..6000);
    assert!(play.units() == (1..4096).collect::<Vec<_>>());
}

#[test]
fn without_an_order_everything_is_delivered_as_it_comes() {
    let mut play = play(Order::None, MS_200);
    let units: Vec<_> = (1..4096).rev().step_by(7).collect();
    play.receive(0, units.iter().copied());
    assert!(play.units() == units);
    play.receive(10, [4096 + 4, 4096, 4096 + 7]);
    assert_eq!(play.units(), [4096 + 7], "units 0 and 4 are missing");
    play.wait(200);
    assert_eq!(play.units(), [4096, 4096 + 4], "and given up after the latency");
}

#[test]
fn a_latency_is_the_validity_too() {
    let flow = datagrams(Order::Total, MS_200, Class::Reliable).expect("a flow");
    assert_eq!(flow.class(7), ServiceClass { repair: Class::Reliable, validity: MS_200 });
    let flow = datagrams(Order::Total, Some(Duration::MAX), Class::Reliable).expect("lowered to what can be");
    assert_eq!(flow.check(), Ok(()));
}

#[test]
fn a_few_are_delivered_as_they_come() {
    let flow = few(MS_200, Class::Partial).expect("a flow");
    assert_eq!((flow.check(), flow.net.objects()), (Ok(()), 64));
    let mut play = Play::new(&flow);
    let units: Vec<_> = (1..64).rev().step_by(7).collect();
    play.receive(0, units.iter().copied());
    assert_eq!(play.units(), units);
    // Those in between are waited for, and hold up no other unit.
    play.receive(100, 64..128);
    play.wait(400);
    play.receive(400, 128..2048);
    assert_eq!(play.units().last(), Some(&2047));
}
