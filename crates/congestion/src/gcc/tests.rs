//! What the estimator promises, at a bottleneck in virtual time. Each test prints what it measured.

use proptest::prelude::*;

use self::viewer::{Log, Viewer};
use super::*;
use crate::Ledger;
use crate::testing::{Growth, Link, Tcp, TestPath, World};

mod viewer;

const MBIT: u64 = 1_000_000;

/// A way of 50 ms whose receiver says every 50 ms what came.
fn way() -> TestPath {
    TestPath { ack_ms: 50, ..TestPath::of(50) }
}

/// A world with a viewer on this link.
fn one(link: Link, way: TestPath, viewer: Viewer) -> (World, Log) {
    let mut world = World::new(link);
    let log = viewer.log();
    world.add(way, viewer);
    (world, log)
}

/// The least and the most of the estimates between two moments, in kbit/s.
fn range(log: &Log, from_ms: u64, to_ms: u64) -> (u64, u64) {
    let log = log.borrow();
    let within = log.iter().filter(|(at, _)| (from_ms..to_ms).contains(&at.as_millis()));
    let (least, most) =
        within.fold((u64::MAX, 0), |(least, most), (_, bps)| (least.min(*bps), most.max(*bps)));
    (least / 1000, most / 1000)
}

/// Milliseconds from a moment on until the estimate is within a range.
fn until(log: &Log, from_ms: u64, is_there: impl Fn(u64) -> bool) -> Option<u64> {
    let log = log.borrow();
    let there = log.iter().find(|(at, bps)| at.as_millis() >= from_ms && is_there(*bps));
    there.map(|(at, _)| at.as_millis() - from_ms)
}

#[test]
fn it_follows_a_way_that_becomes_narrow_and_wide_again() {
    for (probes, back_within_ms) in [(true, 12_000), (false, 50_000)] {
        let viewer = Viewer::new(Bounds::default(), 6 * MBIT).probing(probes);
        let (mut world, log) = one(Link::new(5 * MBIT, 62_500), way(), viewer);
        world.rate_from(60_000, MBIT / 2);
        world.rate_from(80_000, 5 * MBIT);
        world.run_to(140_000);
        let first = until(&log, 0, |bps| bps > 4 * MBIT);
        let wide = range(&log, 50_000, 60_000);
        let down = until(&log, 60_000, |bps| bps < MBIT / 2);
        let narrow = range(&log, 62_000, 80_000);
        let back = until(&log, 80_000, |bps| bps > 4 * MBIT);
        let (fell, narrow_queue) = (world.record.queue(60_000, 63_000), world.record.queue(65_000, 80_000));
        println!(
            "5 Mbit/s, 0.5, 5; probes {probes}: 4 Mbit/s after {first:?} ms, {wide:?} kbit/s; \
             below 0.5 after {down:?} ms (queue at most {:.0} ms), {narrow:?} kbit/s, \
             queue mean {:.0} p95 {:.0} ms, used {:.2}; 4 Mbit/s again after {back:?} ms",
            fell.most_ms, narrow_queue.mean_ms, narrow_queue.p95_ms, narrow_queue.used
        );
        assert!(first.expect("it gets there") <= back_within_ms);
        assert!(wide.0 >= 3_000 && wide.1 <= 5_800);
        assert!(down.expect("it falls") <= 1_500);
        assert!(narrow.0 >= 300 && narrow.1 <= 750);
        assert!(back.expect("it gets there") <= back_within_ms);
    }
}

#[test]
fn it_begins_with_the_rate_that_it_is_given() {
    let bounds = Bounds { initial_bps: 3 * MBIT, ..Bounds::default() };
    assert_eq!(Estimator::new(bounds).estimate_bps(), 3 * MBIT);
    assert_eq!(Estimator::new(Bounds { max_bps: 2 * MBIT, ..bounds }).estimate_bps(), 2 * MBIT);
    assert_eq!(Estimator::new(Bounds { min_bps: 4 * MBIT, ..bounds }).estimate_bps(), 4 * MBIT);
    assert_eq!(
        Estimator::new(Bounds { initial_bps: 0, min_bps: 0, max_bps: 0 }).estimate_bps(),
        RATE_BPS_LEAST
    );
}

#[test]
fn what_is_not_used_does_not_grow_unless_a_probe_shows_that_it_fits() {
    for (probes, least, most) in [(false, 1_400, 1_900), (true, 7_000, 10_100)] {
        // A megabit is all that there is to send; ten could be used.
        let viewer = Viewer::new(Bounds { max_bps: 20 * MBIT, ..Bounds::default() }, MBIT).probing(probes);
        let (mut world, log) = one(Link::of_ms(10 * MBIT, 300), way(), viewer);
        world.run_to(60_000);
        let told = range(&log, 50_000, 60_000);
        let queue = world.record.queue(10_000, 60_000);
        println!("1 of 10 Mbit/s used, probes {probes}: {told:?} kbit/s, queue p95 {:.0} ms", queue.p95_ms);
        assert!(told.0 >= least && told.1 <= most);
        assert!(queue.p95_ms < 20.0);
    }
}

#[test]
fn few_losses_cost_nothing_and_heavy_ones_lower_it() {
    for (loss, least, most) in [(0.01, 3_500, 5_800), (0.3, 64, 900)] {
        let viewer = Viewer::new(Bounds::default(), 6 * MBIT);
        let (mut world, log) = one(Link::of_ms(5 * MBIT, 300).lossy(loss, 7), way(), viewer);
        world.run_to(60_000);
        let told = range(&log, 40_000, 60_000);
        println!("loss {loss}: {told:?} kbit/s");
        assert!(told.0 >= least && told.1 <= most);
    }
}

#[test]
fn a_buffer_that_is_short_is_not_overrun_for_long() {
    let (mut world, log) = one(Link::of_ms(2 * MBIT, 10), way(), Viewer::new(Bounds::default(), 6 * MBIT));
    world.run_to(60_000);
    let (told, queue) = (range(&log, 20_000, 60_000), world.record.queue(20_000, 60_000));
    println!("buffer 10 ms: {told:?} kbit/s, used {:.2}", queue.used);
    assert!(told.1 < 3_500 && queue.used > 0.6);
}

#[test]
fn jitter_drift_and_leaps_of_the_receivers_clock_do_little_harm() {
    for way in [
        TestPath { jitter_ms: 5, ..way() },
        TestPath { jitter_ms: 15, ..way() },
        TestPath { drift_ppm: 200, ..way() },
        TestPath { drift_ppm: -200, ..way() },
        TestPath { step_ms: Some((45_000, 700)), ..way() },
        TestPath { step_ms: Some((45_000, -700)), ..way() },
        TestPath { step_ms: Some((45_000, 70_000)), ..way() },
        TestPath { ack_ms: 250, ..way() },
    ] {
        let viewer = Viewer::new(Bounds::default(), 6 * MBIT).probing(true);
        let (mut world, log) = one(Link::of_ms(5 * MBIT, 300), way, viewer);
        world.run_to(60_000);
        let (told, queue) = (range(&log, 50_000, 60_000), world.record.queue(20_000, 60_000));
        println!("{way:?}: {told:?} kbit/s, used {:.2}, queue p95 {:.0} ms", queue.used, queue.p95_ms);
        assert!(queue.used > 0.7 && queue.p95_ms < 200.0);
    }
}

#[test]
fn it_lives_beside_others() {
    let mut world = World::new(Link::of_ms(6 * MBIT, 200));
    let (first, second) =
        (Viewer::new(Bounds::default(), 9 * MBIT), Viewer::new(Bounds::default(), 9 * MBIT));
    let flows = [world.add(way(), first), world.add(way().from(1_300), second)];
    world.run_to(120_000);
    let (fair, queue) = (world.record.fairness(&flows, 60_000, 120_000), world.record.queue(60_000, 120_000));
    println!("two alike: Jain {fair:.3}, used {:.2}, queue mean {:.0} ms", queue.used, queue.mean_ms);
    assert!(fair > 0.8 && queue.used > 0.7);
}

#[test]
fn tcp_does_not_take_all() {
    for (rate, rtt, buffer) in [(3, 20, 100), (6, 50, 400), (20, 50, 100)] {
        for growth in [Growth::Cubic, Growth::Reno] {
            let mut world = World::new(Link::of_ms(rate * MBIT, buffer));
            let way = TestPath { ack_ms: 50, ..TestPath::of(rtt) };
            let ours = world.add(way, Viewer::new(Bounds::default(), 2 * rate * MBIT));
            let tcp = world.add(TestPath::of(rtt).from(5_000), Tcp::new(growth));
            world.run_to(160_000);
            let bps = |flow| world.record.rate(flow, 40_000, 160_000);
            let ratio = bps(ours) / bps(tcp);
            println!("{rate} Mbit/s, {rtt} ms, buffer {buffer} ms: {ratio:.2} of {growth:?}");
            assert!(ratio > 0.1 && ratio < 4.0);
        }
    }
}

#[test]
fn it_takes_little_memory() {
    println!("estimator {} bytes, ledger {}", size_of::<Estimator>(), size_of::<Ledger>());
    assert!(size_of::<Estimator>() <= 1024 && size_of::<Ledger>() <= 64);
}

/// What a receiver may say: how long after the last, and of each packet whether and when it came.
fn said() -> impl Strategy<Value = (u64, u64, Vec<Option<i64>>)> {
    let arrival = prop_oneof![
        1 => Just(None),
        4 => (0..100_000_i64).prop_map(Some),
        1 => any::<i64>().prop_map(Some),
    ];
    (0..500_000_u64, 1..50_u64, prop::collection::vec(arrival, 0..40))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_it_is_told_it_keeps_to_its_bounds(
        bounds in (any::<u64>(), any::<u64>(), any::<u64>()),
        references in prop::collection::vec(any::<u32>(), 1..4),
        said in prop::collection::vec(said(), 1..60),
    ) {
        let bounds = Bounds { initial_bps: bounds.0 >> 30, min_bps: bounds.1 >> 40, max_bps: bounds.2 >> 28 };
        let (least, most) = (bounds.min_bps.max(RATE_BPS_LEAST), bounds.max_bps.max(RATE_BPS_LEAST));
        let (mut ledger, mut estimator) = (Ledger::new(65_500), Estimator::new(bounds));
        let mut now = Time::from_millis(500);
        for (index, (after_us, bytes, statuses)) in said.into_iter().enumerate() {
            let first = ledger.next_number();
            if let Some(bps) = estimator.probe_bps(now, most) {
                prop_assert!(bps >= estimator.estimate_bps() && bps <= most);
                estimator.handle_probe(now, first, after_us % 40, bps);
            }
            statuses.iter().for_each(|_| {
                ledger.handle_sent(now, bytes * 40);
            });
            now = now + Duration::from_micros(after_us);
            let reference = references[index % references.len()].wrapping_add(index as u32);
            let statuses = statuses.into_iter().enumerate();
            let statuses = statuses.map(|(n, at)| ((first as u16).wrapping_add(n as u16), at));
            estimator.handle(now, ledger.handle_feedback(now, reference, statuses));
            prop_assert!((least..=most.max(least)).contains(&estimator.estimate_bps()));
            prop_assert!((0.0..=1.0).contains(&estimator.loss_share()));
        }
    }
}
