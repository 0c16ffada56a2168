//! Random paths and random inputs.

use proptest::prelude::*;

use super::testing::{App, Growth, Link, Ours, Tcp, TestPath, World};
use super::*;

/// What a caller tells, and how long after the last.
#[derive(Debug, Clone)]
enum Input {
    Send(u64),
    Ack { skip: usize, count: usize, extra_us: u64, clock_us: i64 },
    Lose { skip: usize, count: usize },
    Spurious,
    Ecn(u64, u64),
    Timeout,
    Moved,
}

fn input() -> impl Strategy<Value = Input> {
    let ack = (0..3_usize, 1..9_usize, 0..300_000_u64, prop_oneof![9 => -500..500_i64, 1 => any::<i64>()]);
    prop_oneof![
        12 => (0..3000_u64).prop_map(Input::Send),
        8 => ack.prop_map(|(skip, count, extra_us, clock_us)| Input::Ack { skip, count, extra_us, clock_us }),
        2 => (0..3_usize, 1..9_usize).prop_map(|(skip, count)| Input::Lose { skip, count }),
        1 => Just(Input::Spurious),
        1 => (0..50_u64, 0..50_u64).prop_map(|(all, marked)| Input::Ecn(all, marked)),
        1 => Just(Input::Timeout),
        1 => Just(Input::Moved),
    ]
}

/// Runs inputs, and checks after each what must always hold. Answers what it told.
fn run(options: Options, inputs: &[(Input, u64)]) -> Vec<(u64, u64)> {
    let mut controller = Controller::new(options);
    let checked = options.checked();
    let (mut now, mut next, mut told) = (Time::from_millis(500), 0_u64, Vec::new());
    let (mut flying, mut gone): (Vec<Acked>, Vec<Lost>) = (Vec::new(), Vec::new());
    let mut counts = MarkCounts::default();
    for (input, after_us) in inputs {
        now = now + Duration::from_micros(*after_us);
        match *input {
            Input::Send(bytes) => {
                controller.handle_sent(now, next, bytes, bytes % 2 == 0);
                flying.push(Acked { number: next, bytes, sent: now, received: now });
                next += 1;
            }
            Input::Ack { skip, count, extra_us, clock_us } => {
                let skip = skip.min(flying.len());
                let mut batch: Vec<Acked> = flying.drain(skip..(skip + count).min(flying.len())).collect();
                for acked in &mut batch {
                    let clock = clock_us.saturating_mul(1000);
                    acked.received = Time::from_nanos(now.as_nanos().wrapping_add_signed(clock));
                }
                let oldest = batch.iter().map(|acked| acked.sent).max().unwrap_or(now);
                controller.handle_acked(now, &batch, now.since(oldest) + Duration::from_micros(extra_us));
            }
            Input::Lose { skip, count } => {
                let skip = skip.min(flying.len());
                let lost = flying.drain(skip..(skip + count).min(flying.len()));
                gone = lost.map(|a| Lost { number: a.number, bytes: a.bytes, sent: a.sent }).collect();
                controller.handle_lost(now, &gone);
            }
            Input::Spurious => controller.handle_spurious(now, &core::mem::take(&mut gone)),
            Input::Ecn(all, marked) => {
                counts = MarkCounts { ect0: counts.ect0 + all, ect1: 0, ce: counts.ce + marked };
                controller.handle_ecn(now, counts);
            }
            Input::Timeout => controller.handle_timeout(now),
            Input::Moved => controller.handle_path_changed(now),
        }
        let in_flight: u64 = flying.iter().map(|packet| packet.bytes).sum();
        assert_eq!(controller.in_flight_bytes(), in_flight);
        assert!((checked.min_bps..=checked.max_bps).contains(&controller.rate_bps()));
        assert!(controller.window_bytes() >= 2 * checked.datagram_bytes);
        assert!(controller.window.is_finite());
        assert!(controller.next_send(now, 1200).is_none_or(|at| at >= now));
        assert!((0.0..=1.0).contains(&controller.loss_share()));
        let short = controller.affordable(now, Duration::from_millis(10));
        assert!(short <= controller.affordable(now, Duration::from_millis(50)));
        told.push((controller.rate_bps(), controller.window_bytes()));
    }
    told
}

fn options() -> impl Strategy<Value = Options> {
    let ecn = prop_oneof![Just(Ecn::Classic), Just(Ecn::Scalable)];
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), 0..200_u64, ecn).prop_map(
        |(initial_bps, min_bps, max_bps, datagram_bytes, burst_ms, ecn)| Options {
            initial_bps: initial_bps >> 30,
            min_bps: min_bps >> 44,
            max_bps: max_bps >> 28,
            datagram_bytes: datagram_bytes >> 50,
            burst: Duration::from_millis(burst_ms),
            ecn,
        },
    )
}

/// A greedy flow of ours on some path, maybe beside TCP. Answers what arrived, and what it told.
fn on_path(path: (u64, u64, u64), loss: f64, drift_ppm: i64, tcp: bool) -> (f64, Vec<Change>) {
    let (rate_kbit, rtt, buffer_ms) = path;
    let mut world = World::new(Link::of_ms(rate_kbit * 1000, buffer_ms).lossy(loss, rtt));
    let way = TestPath { drift_ppm, step_ms: Some((3000, drift_ppm * 10)), ..TestPath::of(rtt) };
    let flow = world.add(way, Ours::new(Options::default(), App::Greedy, 3));
    if tcp {
        world.add(TestPath::of(rtt).from(1000), Tcp::new(Growth::Cubic));
    }
    world.run_to(8000);
    (world.record.rate(flow, 0, 8000), world.ours(flow).changes.clone())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_it_is_told_it_keeps_to_its_bounds(
        options in options(),
        inputs in prop::collection::vec((input(), 0..20_000_u64), 1..400),
    ) {
        let told = run(options, &inputs);
        prop_assert_eq!(told, run(options, &inputs), "the same again");
    }

    #[test]
    fn the_pacer_never_lets_more_go_than_its_bound(
        rates in prop::collection::vec(8_000..100_000_000_u64, 1..20),
        steps in prop::collection::vec((1..1500_u64, 0..50_000_u64), 1..200),
        burst_ms in 0..50_u64,
    ) {
        let burst = Duration::from_millis(burst_ms);
        let mut pacer = Pacer::new(burst);
        let mut now = Time::from_millis(1000);
        // Seconds of sending at the rates of their time, since each packet.
        let mut sent: Vec<(Time, f64)> = Vec::new();
        for (i, (bytes, idle_us)) in steps.iter().enumerate() {
            let rate = rates[i % rates.len()];
            now = pacer.next(now + Duration::from_micros(if i % 7 == 0 { *idle_us } else { 0 }));
            pacer.sent(now, *bytes, rate);
            for (since, time) in &sent {
                let allowed = now.since(*since) + burst;
                prop_assert!(*time <= allowed.as_secs_f64() + 1e-6);
            }
            let takes = *bytes as f64 * 8.0 / rate as f64;
            sent.push((now, 0.0));
            sent.iter_mut().for_each(|(_, time)| *time += takes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn on_any_path_something_arrives_and_the_same_seed_gives_the_same(
        path in (300..20_000_u64, 2..200_u64, 5..800_u64),
        loss in prop_oneof![Just(0.0), 0.0..0.05],
        drift_ppm in -200..200_i64,
        tcp in any::<bool>(),
    ) {
        let (rate, changes) = on_path(path, loss, drift_ppm, tcp);
        prop_assert!(rate > path.0 as f64 * 1000.0 / 20.0, "{rate}");
        prop_assert_eq!((rate, changes), on_path(path, loss, drift_ppm, tcp));
    }
}
