//! A source, a relay and a thousand receivers, of which a tenth of the byte streams stall.

use outflow_sim::{Outcome, Scenario};

fn fanout() -> Scenario {
    Scenario::parse(include_str!("../scenarios/fanout.toml"), "").expect("the shipped scenario is valid")
}

fn run(scenario: &Scenario) -> Outcome {
    outflow_sim::run(scenario).expect("it has no services")
}

#[test]
fn stalled_receivers_cost_the_healthy_ones_nothing() {
    let scenario = fanout();
    let outcome = run(&scenario);
    assert_eq!(outcome.healthy_lost, 0, "{outcome:?}");
    assert_eq!(outcome.healthy_delay_most_ns, 0, "none that is up waits for another: {outcome:?}");
    assert!(outcome.others_lost > 0, "the ring filled up: {outcome:?}");
    assert!(outcome.ended > 20, "hopeless receivers are let go: {outcome:?}");
    assert!(outcome.ring_bytes_most <= scenario.relay.ring_bytes, "{outcome:?}");
    assert!(outcome.delivered > outcome.source_packets * 800, "{outcome:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let mut scenario = fanout();
    scenario.duration = 8.0;
    let first = run(&scenario);
    assert_eq!(first, run(&scenario));
    scenario.seed += 1;
    assert_ne!(first.digest, run(&scenario).digest);
}
