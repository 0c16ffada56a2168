//! What each policy of a full ring promises, with forty receivers of which some cannot keep up.

use outflow_relay::WhenFull;
use outflow_sim::{Outcome, Scenario};

fn scenario(when_full: WhenFull, slow: f64, pausing: f64) -> Scenario {
    let mut scenario = Scenario::parse(include_str!("../scenarios/policies.toml"), "")
        .expect("the shipped scenario is valid");
    scenario.duration = 30.0;
    scenario.relay.when_full = when_full;
    scenario.receivers.count = 40;
    scenario.receivers.slow.as_mut().expect("it has some").share = slow;
    scenario.receivers.pausing.as_mut().expect("it has some").share = pausing;
    scenario
}

fn drops(outcome: &Outcome, reason: &str) -> u64 {
    outcome.drops.get(reason).copied().unwrap_or(0)
}

fn run(scenario: &Scenario) -> Outcome {
    outflow_sim::run(scenario).expect("it has no services")
}

#[test]
fn while_all_keep_up_no_policy_costs_anyone_anything() {
    for &when_full in WhenFull::ALL {
        let outcome = run(&scenario(when_full, 0.0, 0.0));
        assert_eq!((outcome.healthy.receivers, outcome.healthy.goodput()), (40, 1.0), "{when_full:?}");
        assert_eq!(outcome.drops.values().sum::<u64>(), 0, "{when_full:?}");
    }
}

#[test]
fn with_slowest_sink_healthy_receivers_lose_nothing_and_slow_ones_see_whole_frames() {
    let outcome = run(&scenario(WhenFull::SlowestSink, 0.2, 0.2));
    assert_eq!((outcome.healthy_lost, outcome.healthy.goodput()), (0, 1.0));
    assert!(drops(&outcome, "slow-sink") > 0 && drops(&outcome, "depends-on-dropped") > 0, "{outcome:?}");
    assert!((0.4..1.0).contains(&outcome.lagging.goodput()), "{}", outcome.lagging.goodput());
    let delays = [&outcome.healthy, &outcome.lagging].map(|seen| seen.delays.quantile_ms(0.99));
    assert!(delays[0] < 50 && delays[1] > 500, "only those that lag are late: {delays:?} ms");
}

#[test]
fn with_tail_and_red_healthy_receivers_lose_for_the_slow_ones() {
    for (when_full, reason) in [(WhenFull::Tail, "tail-drop"), (WhenFull::Red, "red")] {
        let outcome = run(&scenario(when_full, 0.2, 0.0));
        assert!(drops(&outcome, reason) > 0, "{when_full:?}: {:?}", outcome.drops);
        assert_eq!(drops(&outcome, "slow-sink"), 0, "{when_full:?}");
        // Those that are there lose the same packets: a fifth of them is slow.
        let share = outcome.healthy_lost as f64 / (outcome.healthy_lost + outcome.others_lost) as f64;
        let healthy = outcome.healthy.receivers as f64 / 40.0;
        assert!((share - healthy).abs() < 0.01, "{when_full:?}: {share}, not {healthy}");
        assert!(outcome.healthy.goodput() < 0.9, "{when_full:?}: {}", outcome.healthy.goodput());
    }
}

#[test]
fn chance_comes_from_the_seed_alone() {
    let mut scenario = scenario(WhenFull::Red, 0.2, 0.2);
    let first = run(&scenario);
    assert_eq!(first, run(&scenario));
    scenario.seed += 1;
    assert_ne!(first.digest, run(&scenario).digest);
}
