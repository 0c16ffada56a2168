//! One flow at a bottleneck.

use super::*;

#[test]
fn it_fills_the_link_and_not_the_queue() {
    for rate in [1, 3, 10, 50] {
        for rtt in [10, 50, 200] {
            let mut world = one(Link::of_ms(rate * MBIT, 2000), rtt);
            world.run_to(60_000);
            let start = world.record.queue(0, 5_000);
            let queue = world.record.queue(10_000, 60_000);
            println!(
                "alone {rate:>2} Mbit/s {rtt:>3} ms: mean {:.1} p95 {:.1} most {:.1} ms, used {:.3}; \
                 start: most {:.1}",
                queue.mean_ms, queue.p95_ms, queue.most_ms, queue.used, start.most_ms
            );
            print_changes(&world, 0);
            assert!(queue.mean_ms < 25.0 && queue.p95_ms < 60.0);
            assert!(queue.used > 0.9);
            assert!(start.most_ms < 100.0);
        }
    }
}

#[test]
fn it_finds_the_rate_from_the_start() {
    for (rate, rtt) in [(10, 50), (50, 50), (50, 200)] {
        let mut world = one(Link::of_ms(rate * MBIT, 2000), rtt);
        world.run_to(20_000);
        let (low, high) = (0.85 * (rate * MBIT) as f64, 1.1 * (rate * MBIT) as f64);
        let after = world.record.settles(0, 0, 19_000, (low, high));
        println!("start {rate} Mbit/s {rtt} ms: after {after:?} ms");
        assert!(after.expect("it gets there") < 5_000);
    }
}

#[test]
fn it_follows_the_rate_of_the_path() {
    for rtt in [20, 50, 100] {
        let mut world = one(Link::of_ms(10 * MBIT, 2000), rtt);
        world.rate_from(20_000, 5 * MBIT);
        world.rate_from(40_000, 10 * MBIT);
        world.run_to(60_000);
        let drained = world.record.queue(21_000, 22_000);
        let down = world.record.queue(20_000, 30_000);
        let up = world.record.settles(0, 40_000, 59_000, (9.0e6, 11.0e6));
        println!(
            "half, {rtt} ms: most {:.0} ms, a second later p95 {:.1} ms, used {:.3}; up after {up:?} ms",
            down.most_ms, drained.p95_ms, down.used
        );
        print_changes(&world, 0);
        assert!(drained.p95_ms < 60.0);
        assert!(up.expect("it gets there") < 5_000);
    }
}

#[test]
fn losses_without_a_queue_cost_little() {
    for (loss, least) in [(0.0, 0.9), (0.02, 0.85), (0.05, 0.7), (0.10, 0.4)] {
        let mut world = one(Link::of_ms(10 * MBIT, 500).lossy(loss, 7), 50);
        world.run_to(60_000);
        let queue = world.record.queue(10_000, 60_000);
        println!("loss {loss}: used {:.3}, mean {:.1} p95 {:.1}", queue.used, queue.mean_ms, queue.p95_ms);
        print_changes(&world, 0);
        assert!(queue.used > least);
    }
}

#[test]
fn heavy_losses_that_persist_end_at_the_floor() {
    let mut world = one(Link::of_ms(10 * MBIT, 500).lossy(0.4, 7), 50);
    world.run_to(30_000);
    let rate = world.record.rate(0, 20_000, 30_000);
    println!("loss 0.4: {rate:.0} bit/s");
    assert!(rate < 500_000.0);
}

#[test]
fn a_short_buffer_is_enough() {
    for (rtt, buffer) in [(50, 5), (50, 25), (20, 10)] {
        let mut world = one(Link::of_ms(10 * MBIT, buffer), rtt);
        world.run_to(60_000);
        let queue = world.record.queue(10_000, 60_000);
        println!("buffer {buffer} ms, {rtt} ms: used {:.3}, mean {:.1}", queue.used, queue.mean_ms);
        print_changes(&world, 0);
        assert!(queue.used > 0.8);
    }
}

fn video(percent: u64, most_bps: u64) -> Ours {
    Ours::new(Options::default(), App::Video { percent, most_bps }, 5)
}

#[test]
fn a_video_source_does_not_make_it_oscillate() {
    for rtt in [10, 50, 150] {
        let mut world = World::new(Link::of_ms(5 * MBIT, 1000));
        let flow = world.add(TestPath::of(rtt), video(95, u64::MAX));
        world.run_to(60_000);
        let queue = world.record.queue(10_000, 60_000);
        let rates: Vec<f64> = (10..60).map(|s| world.record.rate(flow, s * 1000, s * 1000 + 1000)).collect();
        let (low, high) = rates.iter().fold((f64::MAX, 0.0_f64), |(a, b), r| (a.min(*r), b.max(*r)));
        println!(
            "video {rtt} ms: {:.2} to {:.2} Mbit/s, used {:.3}, mean {:.1} p95 {:.1} ms, \
             frames dropped {}",
            low / 1e6,
            high / 1e6,
            queue.used,
            queue.mean_ms,
            queue.p95_ms,
            world.ours(flow).frames_dropped
        );
        print_changes(&world, 0);
        assert!(low > 0.6 * high);
    }
}

#[test]
fn what_the_application_does_not_use_does_not_grow() {
    let mut world = World::new(Link::of_ms(20 * MBIT, 1000));
    let flow = world.add(TestPath::of(50), video(95, 2 * MBIT));
    world.run_to(60_000);
    let told: Vec<u64> = world
        .ours(flow)
        .rates
        .iter()
        .filter(|(at, ..)| at.as_millis() > 10_000)
        .map(|(_, rate, _)| *rate)
        .collect();
    let (low, high) = (told.iter().min().expect("told"), told.iter().max().expect("told"));
    println!("limited to 2 Mbit/s: told {:.2} to {:.2} Mbit/s", *low as f64 / 1e6, *high as f64 / 1e6);
    print_changes(&world, 0);
    assert!(*low > 2 * MBIT && *high < 20 * MBIT);
}

#[test]
fn a_peers_clock_that_drifts_or_steps_does_no_harm() {
    for way in [
        TestPath { drift_ppm: 200, ..TestPath::of(50) },
        TestPath { drift_ppm: -200, ..TestPath::of(50) },
        TestPath { step_ms: Some((20_000, 700)), ..TestPath::of(50) },
        TestPath { step_ms: Some((20_000, -700)), ..TestPath::of(50) },
        TestPath { ack_ms: 25, ..TestPath::of(50) },
    ] {
        let mut world = World::new(Link::of_ms(10 * MBIT, 1000));
        world.add(way, Ours::greedy());
        world.run_to(60_000);
        let queue = world.record.queue(10_000, 60_000);
        println!("{way:?}: used {:.3}, mean {:.1} p95 {:.1}", queue.used, queue.mean_ms, queue.p95_ms);
        assert!(queue.used > 0.9 && queue.mean_ms < 25.0 && queue.p95_ms < 60.0);
    }
}

#[test]
fn jitter_costs_little() {
    for (rtt, jitter_ms) in [(50, 3), (50, 10), (20, 10), (100, 15)] {
        let mut world = World::new(Link::of_ms(10 * MBIT, 1000));
        let flow = world.add(TestPath { jitter_ms, ..TestPath::of(rtt) }, Ours::greedy());
        world.run_to(60_000);
        let queue = world.record.queue(10_000, 60_000);
        println!(
            "jitter {jitter_ms} ms, {rtt} ms: used {:.3}, mean {:.1} p95 {:.1}",
            queue.used, queue.mean_ms, queue.p95_ms
        );
        println!("      compete {:.2}", world.ours(flow).share_in(State::Compete, 10_000, 60_000));
        print_changes(&world, 0);
        assert!(queue.used > 0.6 && queue.p95_ms < 100.0);
    }
}
