//! Beside TCP.

use super::*;

fn beside(growth: Growth, rate: u64, rtt: u64, buffer_ms: u64, late: bool) -> f64 {
    let mut world = World::new(Link::of_ms(rate * MBIT, buffer_ms));
    let (ours_at, tcp_at) = if late { (10_000, 0) } else { (0, 10_000) };
    let ours = world.add(TestPath::of(rtt).from(ours_at), Ours::greedy());
    let tcp = world.add(TestPath::of(rtt).from(tcp_at), Tcp::new(growth));
    // In deep buffers everything takes longer.
    let to = if buffer_ms > 2 * rtt { 240_000 } else { 100_000 };
    world.run_to(to);
    let from = 30_000;
    let share = world.record.rate(ours, from, to) / world.record.rate(tcp, from, to).max(1.0);
    println!(
        "beside {growth:?} {rate} Mbit/s {rtt} ms, buffer {buffer_ms} ms, {}: \
         {:.2} to {:.2}: {share:.2}; compete {:.2}",
        if late { "later" } else { "first" },
        world.record.rate(ours, from, to) / 1e6,
        world.record.rate(tcp, from, to) / 1e6,
        world.ours(ours).share_in(State::Compete, from, to)
    );
    print_changes(&world, ours);
    share
}

fn check(growth: Growth) {
    let mut bad = 0;
    for (rate, rtt) in [(10, 50), (20, 20), (10, 100), (3, 50)] {
        for times in [0.5, 1.0, 2.0, 6.0] {
            for late in [false, true] {
                let share = beside(growth, rate, rtt, bdp_ms(rtt, times), late);
                bad += u32::from(!(1.0 / 3.0..3.0).contains(&share));
            }
        }
    }
    assert_eq!(bad, 0);
}

#[test]
fn beside_cubic_neither_starves() {
    check(Growth::Cubic);
}

#[test]
fn beside_new_reno_neither_starves() {
    check(Growth::Reno);
}

#[test]
fn when_tcp_leaves_the_queue_is_short_again() {
    for count in [1, 3] {
        let mut world = World::new(Link::of_ms(10 * MBIT, 300));
        for _ in 0..count {
            world.add(TestPath::of(50), Ours::greedy());
        }
        world.add(TestPath::of(50).from(10_000).until(50_000), Tcp::new(Growth::Cubic));
        world.run_to(120_000);
        let (during, after) = (world.record.queue(20_000, 50_000), world.record.queue(80_000, 120_000));
        println!(
            "{count}, tcp leaves: during mean {:.1} ms, after mean {:.1} p95 {:.1} ms used {:.3}",
            during.mean_ms, after.mean_ms, after.p95_ms, after.used
        );
        print_changes(&world, 0);
        assert!(after.p95_ms < 60.0 && after.mean_ms < 25.0 && after.used > 0.9);
    }
}

#[test]
fn two_of_each_share() {
    for growth in [Growth::Cubic, Growth::Reno] {
        let mut world = World::new(Link::of_ms(20 * MBIT, 100));
        let (mut ours, mut tcp) = (0.0, 0.0);
        let all: Vec<(usize, usize)> = (0..2)
            .map(|n| {
                let way = |start_ms: u64| TestPath::of(50).from(start_ms + 3000 * n);
                (world.add(way(0), Ours::greedy()), world.add(way(1500), Tcp::new(growth)))
            })
            .collect();
        world.run_to(100_000);
        for (a, b) in all {
            ours += world.record.rate(a, 20_000, 100_000);
            tcp += world.record.rate(b, 20_000, 100_000);
        }
        println!("two beside two {growth:?}: {:.2} to {:.2}: {:.2}", ours / 1e6, tcp / 1e6, ours / tcp);
        print_changes(&world, 0);
        assert!((1.0 / 3.0..3.0).contains(&(ours / tcp)));
    }
}
