//! Flows of ours at one bottleneck.

use super::*;

/// Flows that start one after the other; the fairness over 30 s after the last has had 10 s.
fn flows(count: u64, rate: u64, rtts: &[u64], gap_ms: u64) -> (World, f64, u64) {
    let mut world = World::new(Link::of_ms(rate * MBIT, 1000));
    let all: Vec<usize> = (0..count)
        .map(|n| world.add(TestPath::of(rtts[n as usize % rtts.len()]).from(n * gap_ms), Ours::greedy()))
        .collect();
    let from = (count - 1) * gap_ms + 10_000;
    world.run_to(from + 30_000);
    let fairness = world.record.fairness(&all, from, from + 30_000);
    (world, fairness, from)
}

fn check(count: u64, rate: u64, rtts: &[u64], gap_ms: u64, least: f64) {
    let (world, fairness, from) = flows(count, rate, rtts, gap_ms);
    let queue = world.record.queue(from, from + 30_000);
    let rates: Vec<String> = (0..count as usize)
        .map(|flow| format!("{:.2}", world.record.rate(flow, from, from + 30_000) / 1e6))
        .collect();
    let competes: f64 = (0..count as usize)
        .map(|flow| world.ours(flow).share_in(State::Compete, from, from + 30_000))
        .sum::<f64>()
        / count as f64;
    println!(
        "{count} at {rate} Mbit/s, {rtts:?} ms, {gap_ms} ms apart: Jain {fairness:.3}, used {:.3}, mean {:.1} \
         p95 {:.1} ms, compete {competes:.2}, {rates:?}",
        queue.used, queue.mean_ms, queue.p95_ms
    );
    print_changes(&world, 0);
    print_changes(&world, count as usize - 1);
    assert!(fairness > least && queue.used > 0.9 && competes < 0.1);
}

#[test]
fn flows_that_start_at_different_times_get_the_same() {
    for count in [2, 4, 8] {
        for (rate, rtt) in [(10, 50), (20, 20), (50, 100)] {
            for gap_ms in [1_300, 5_000] {
                check(count, rate, &[rtt], gap_ms, 0.95);
            }
        }
    }
}

#[test]
fn flows_of_different_round_trips_share() {
    check(2, 10, &[20, 100], 2_000, 0.6);
    check(4, 20, &[20, 50, 100, 150], 2_000, 0.6);
}

#[test]
fn few_take_each_other_for_another_kind() {
    let (mut mistaken, mut all) = (0, 0);
    for count in [2, 3, 5, 8] {
        for (rate, rtt) in [(10, 50), (5, 30), (20, 80), (30, 10)] {
            for gap_ms in [300, 700, 2_100, 3_300, 8_000] {
                let (world, fairness, from) = flows(count, rate, &[rtt], gap_ms);
                let compete = |flow| world.ours(flow).share_in(State::Compete, from, from + 30_000);
                let competes = (0..count as usize).map(compete).sum::<f64>() / count as f64;
                if fairness < 0.96 || competes > 0.0 {
                    let queue = world.record.queue(from, from + 30_000);
                    println!(
                        "{count}, {rate} Mbit/s, {rtt} ms, {gap_ms} ms apart: Jain {fairness:.3}, \
                              compete {competes:.2}, {queue:?}"
                    );
                }
                all += 1;
                mistaken += u32::from(competes > 0.0);
                assert!(fairness > 0.9 && competes < 0.4);
            }
        }
    }
    println!("{mistaken} of {all} had a flow that competed with its own kind");
    assert!(mistaken <= 5);
}
