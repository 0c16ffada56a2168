//! Each test prints what it measured. Bounds are those of the controller's own tests.

use outflow_congestion::testing::{Growth, Link, Tcp, World};
use outflow_petri::service::Class;
use outflow_petri::service::presets::{Order, datagrams};

use super::*;

const MBIT: u64 = 1_000_000;

const LATENCY: Duration = Duration::from_millis(400);

/// Everything, in order.
fn reliable() -> Flow {
    datagrams(Order::Total, None, Class::Reliable).expect("a flow")
}

fn add_greedy(world: &mut World, way: TestPath) -> usize {
    world.add(way, Whole::new(way, &reliable(), App::Greedy, Settings::default()))
}

#[test]
fn alone_it_fills_the_link_and_not_the_queue() {
    for rate in [1, 3, 10, 50] {
        for rtt in [10, 50, 200] {
            let mut world = World::new(Link::of_ms(rate * MBIT, 2000));
            add_greedy(&mut world, TestPath::of(rtt));
            world.run_to(60_000);
            let (start, queue) = (world.record.queue(0, 5_000), world.record.queue(10_000, 60_000));
            println!(
                "alone {rate:>2} Mbit/s {rtt:>3} ms: mean {:.1} p95 {:.1} most {:.1} ms, used {:.3}; start: \
                 most {:.1}",
                queue.mean_ms, queue.p95_ms, queue.most_ms, queue.used, start.most_ms
            );
            assert!(queue.mean_ms < 25.0 && queue.p95_ms < 60.0 && queue.used > 0.9);
            assert!(start.most_ms < 100.0);
        }
    }
}

#[test]
fn connections_that_start_at_different_times_get_the_same() {
    for count in [2, 8] {
        for (rate, rtt) in [(10, 50), (20, 20), (50, 100)] {
            for gap_ms in [1_300, 5_000] {
                let mut world = World::new(Link::of_ms(rate * MBIT, 1000));
                let all: Vec<usize> =
                    (0..count).map(|n| add_greedy(&mut world, TestPath::of(rtt).from(n * gap_ms))).collect();
                let from = (count - 1) * gap_ms + 10_000;
                world.run_to(from + 30_000);
                let fairness = world.record.fairness(&all, from, from + 30_000);
                let queue = world.record.queue(from, from + 30_000);
                println!(
                    "{count} at {rate} Mbit/s, {rtt} ms, {gap_ms} ms apart: Jain {fairness:.3}, used {:.3}, \
                     mean {:.1} p95 {:.1} ms",
                    queue.used, queue.mean_ms, queue.p95_ms
                );
                assert!(fairness > 0.95 && queue.used > 0.9);
            }
        }
    }
}

#[test]
fn beside_tcp_neither_starves() {
    for growth in [Growth::Cubic, Growth::Reno] {
        for (rate, rtt) in [(10, 50), (20, 20), (10, 100), (3, 50)] {
            for buffer_ms in [rtt, 2 * rtt] {
                for (ours_at, tcp_at) in [(0, 10_000), (10_000, 0)] {
                    let mut world = World::new(Link::of_ms(rate * MBIT, buffer_ms));
                    let ours = add_greedy(&mut world, TestPath::of(rtt).from(ours_at));
                    let tcp = world.add(TestPath::of(rtt).from(tcp_at), Tcp::new(growth));
                    world.run_to(100_000);
                    let rate_of = |flow| world.record.rate(flow, 30_000, 100_000);
                    let share = rate_of(ours) / rate_of(tcp);
                    println!(
                        "beside {growth:?} {rate} Mbit/s {rtt} ms, buffer {buffer_ms} ms, from {ours_at}: {share:.2}"
                    );
                    assert!((1.0 / 3.0..3.0).contains(&share));
                }
            }
        }
    }
}

#[test]
fn losses_without_a_queue_cost_little() {
    for (loss, least) in [(0.02, 0.85), (0.05, 0.7), (0.10, 0.4)] {
        let mut world = World::new(Link::of_ms(10 * MBIT, 500).lossy(loss, 7));
        add_greedy(&mut world, TestPath::of(50));
        world.run_to(60_000);
        let queue = world.record.queue(10_000, 60_000);
        println!("loss {loss}: used {:.3}, mean {:.1} p95 {:.1}", queue.used, queue.mean_ms, queue.p95_ms);
        assert!(queue.used > least);
    }
}

/// Video of more than the path carries; what became of its units, and the mean wait in milliseconds.
fn video(rate: u64, rtt: u64, loss: f64) -> ([Fates; 3], f64) {
    let mut world = World::new(Link::of_ms(rate * MBIT, 1000).lossy(loss, 7));
    let flow = datagrams(Order::Total, Some(LATENCY), Class::Partial).expect("a flow");
    let app = App::Video { bps: rate * MBIT * 5 / 4, useful_for: LATENCY };
    let whole = Whole::new(TestPath::of(rtt), &flow, app, Settings::default());
    world.add(TestPath::of(rtt), whole.clone());
    world.run_to(60_000);
    let (queue, fates) = (world.record.queue(10_000, 60_000), whole.0.borrow().fates);
    println!(
        "video of 5/4 of {rate} Mbit/s, {rtt} ms, loss {loss}: used {:.3}, mean {:.1} p95 {:.1} ms; {fates:?}",
        queue.used, queue.mean_ms, queue.p95_ms
    );
    assert!(queue.used > 0.9 && queue.p95_ms < 60.0);
    (fates, queue.mean_ms)
}

#[test]
fn of_video_that_is_too_much_key_frames_come_and_disposable_ones_are_left_out() {
    for (rate, rtt) in [(3, 20), (3, 50), (10, 20), (10, 50), (10, 100)] {
        let ([disposable, references, key], mean_ms) = video(rate, rtt, 0.0);
        assert!(mean_ms < 25.0);
        assert!(key.lost * 200 < key.given);
        assert!(references.lost * 4 < references.given && disposable.lost * 2 > disposable.given);
    }
}

#[test]
fn most_key_frames_come_where_packets_are_lost_too() {
    for (rate, rtt) in [(3, 50), (10, 50)] {
        let ([_, _, key], _) = video(rate, rtt, 0.05);
        assert!(key.lost * 15 < key.given);
    }
}
