//! Cohorts: gathered within a latency budget, paced, and served a few members at a time.

use core::time::Duration;

use super::*;

const BUDGET: Duration = Duration::from_millis(50);

fn at(bench: &mut Bench, millis: u64) {
    bench.now = Time::from_millis(millis);
}

/// Two members of a cohort that have everything up to now.
fn live(timing: Timing) -> (Bench, [SinkKey; 2]) {
    let mut bench = Bench::new(1 << 20);
    bench.timing = timing;
    bench.gop(1);
    let keys = [(); 2].map(|()| bench.join(Transport::Stream, Priority::Normal));
    bench.serve();
    bench.sent.iter_mut().for_each(Vec::clear);
    (bench, keys)
}

#[test]
fn packets_wait_for_company_as_long_as_the_budget_allows() {
    let (mut bench, [a, b]) = live(Timing { latency_budget: BUDGET, ..Timing::default() });
    at(&mut bench, 100);
    bench.push(0, false);
    bench.serve();
    at(&mut bench, 149);
    bench.push(0, false);
    bench.serve();
    assert!(bench.sent[a.0].is_empty());
    assert_eq!(bench.branch.next_turn(), Some(Time::from_millis(150)));
    at(&mut bench, 150);
    let order = bench.next().expect("the first has waited long enough");
    assert_eq!((order.from, order.to), (1, 3), "both go together");
    bench.carry_out(&order);
    assert_eq!(bench.sent[b.0], [1, 2]);
    assert_eq!(bench.branch.next_turn(), None);
}

#[test]
fn enough_packets_do_not_wait() {
    let (mut bench, [a, _]) = live(Timing { latency_budget: BUDGET, ..Timing::default() });
    for _ in 0..60 {
        bench.push(0, false);
    }
    bench.serve();
    assert_eq!(bench.sent[a.0].len(), 60, "60 KiB are worth a write of their own");
}

#[test]
fn one_that_joins_while_packets_are_gathered_gets_each_once() {
    let (mut bench, [a, _]) = live(Timing { latency_budget: BUDGET, ..Timing::default() });
    at(&mut bench, 100);
    bench.push(0, false);
    let late = bench.join(Transport::Stream, Priority::Normal);
    bench.serve();
    assert_eq!(bench.sent[late.0], [0], "what the others have had");
    at(&mut bench, 150);
    bench.serve();
    bench.push(0, false);
    at(&mut bench, 300);
    bench.serve();
    assert_eq!((&bench.sent[a.0][..], &bench.sent[late.0][..]), (&[1, 2][..], &[0, 1, 2][..]));
    assert!(matches!(bench.sinks[late.0].place(), Place::Live { .. }));
}

#[test]
fn a_pace_spreads_a_burst_out() {
    let pace = 8 * SIZE as u64 * 1000;
    let (mut bench, [a, _]) = live(Timing { pace_bps: Some(pace), ..Timing::default() });
    at(&mut bench, 1_000);
    for _ in 0..20 {
        bench.push(0, false);
    }
    bench.serve();
    assert!((1..=3).contains(&bench.sent[a.0].len()), "{:?}", bench.sent[a.0]);
    while let Some(turn) = bench.branch.next_turn() {
        bench.now = turn;
        bench.serve();
    }
    assert_eq!(bench.sent[a.0], (1..21).collect::<Vec<_>>());
    let taken = bench.now.since(Time::from_millis(1_000));
    assert!((15..=20).contains(&(taken.as_millis() as u64)), "a packet a millisecond: {taken:?}");
}

#[test]
fn members_are_served_a_few_at_a_time_and_may_leave_or_block_meanwhile() {
    let mut bench = Bench::new(1 << 20);
    bench.gop(1);
    let keys: Vec<_> = (0..10).map(|_| bench.join(Transport::Datagram, Priority::Normal)).collect();
    bench.serve();
    bench.sent.iter_mut().for_each(Vec::clear);
    bench.room = Room { datagram: 4, stream: 4 };
    bench.push(0, false);
    bench.push(0, false);
    let order = bench.next().expect("owed");
    assert_eq!(bench.carry_out(&order).len(), 4);
    // One that was served and one that was not go; one that was served took nothing.
    bench.branch.remove(&mut bench.sinks, keys[1]);
    bench.branch.remove(&mut bench.sinks, keys[8]);
    bench.sent[keys[2].0].clear();
    bench.branch.blocked(&mut bench.sinks, keys[2], 1);
    assert_eq!(bench.branch.counters(&bench.sinks, keys[8]).packets, 1, "the turn was not its");
    assert_eq!(bench.branch.counters(&bench.sinks, keys[1]).packets, 3);
    bench.branch.writable(&mut bench.sinks, keys[2]);
    bench.serve();
    for (index, key) in keys.iter().enumerate().filter(|(index, _)| ![1, 8].contains(index)) {
        assert_eq!(bench.sent[key.0], [1, 2], "{index}");
        assert_eq!(bench.branch.counters(&bench.sinks, *key).packets, 3, "{index}");
    }
}

#[test]
fn a_higher_class_does_not_wait_until_all_members_are_served() {
    let mut bench = Bench::new(1 << 20);
    bench.gop(1);
    let low: Vec<_> = (0..4).map(|_| bench.join(Transport::Datagram, Priority::Low)).collect();
    let high = bench.join(Transport::Datagram, Priority::High);
    bench.serve();
    bench.room = Room { datagram: 2, stream: 2 };
    bench.push(0, false);
    let served: Vec<_> = core::iter::from_fn(|| bench.next().map(|order| bench.carry_out(&order))).collect();
    assert_eq!(served[0], [high]);
    bench.push(0, false);
    let order = bench.branch.next_order(bench.now, &mut bench.sinks, Priority::Low, bench.room, 0);
    assert_eq!(bench.carry_out(&order.expect("owed")), &low[..2]);
    assert_eq!(bench.next().map(|order| bench.carry_out(&order)), Some(vec![high]));
    assert_eq!(bench.next().map(|order| bench.carry_out(&order)), Some(low[2..].to_vec()));
}

#[test]
fn orders_of_many_packets_go_to_fewer() {
    let room = Room { datagram: 64, stream: 32 };
    assert_eq!((room.of(Transport::Datagram, 1), room.of(Transport::Stream, 1)), (64, 32));
    assert_eq!((room.of(Transport::Datagram, 64), room.of(Transport::Stream, 64)), (21, 5));
    assert_eq!(room.part(8), Room { datagram: 8, stream: 4 });
    let least = room.part(1000);
    assert_eq!((least.of(Transport::Datagram, 64), least.of(Transport::Stream, 64)), (1, 1));
    assert_eq!(Room::UNLIMITED.part(1), Room::UNLIMITED);
}
