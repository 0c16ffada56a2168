//! Trees of relays in virtual time, at several sizes: one line of JSON each.
//!
//! `cargo run --release -p outflow-routing --example trees [RELAYS…]`. A hundred receivers at each relay want
//! the stream of one source at once. Then, one after another, relays with children die while the directory is away, and half
//! of the relays are cut off for half a minute.

mod network;

use core::time::Duration;

use network::{Network, STREAM};
use outflow_media::Time;
use outflow_routing::Level;

const RECEIVERS_EACH: u64 = 100;
const CHILDREN_MAX: usize = 16;
const DEATHS: usize = 20;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![10, 100, 1_000, 10_000] } else { sizes };
    for size in sizes {
        println!("{}", measure(size));
    }
}

fn sent(network: &Network) -> Vec<u64> {
    network.relays.iter().map(|relay| relay.node.counters().sent).collect()
}

fn measure(size: usize) -> String {
    let mut network = Network::new(size, CHILDREN_MAX, size as u64);
    network.set_source(0, Some(0));
    network.run(Duration::from_secs(1));
    let start = network.now;
    for relay in 1..size {
        let level = Level::lowered(network.random.u8(1..9)).expect("from 1");
        network.set_receivers(relay, level, RECEIVERS_EACH);
    }
    let converged = converge(&mut network, start);
    let flood: u64 = sent(&network).iter().sum();
    network.run(Duration::from_secs(60));
    let before = sent(&network);
    network.run(Duration::from_secs(60));
    let settled: Vec<_> = sent(&network).iter().zip(before).map(|(after, before)| after - before).collect();
    let states: Vec<_> = network.relays.iter().map(|relay| relay.node.state()).collect();
    let depth = network.depths().into_iter().flatten().max().unwrap_or(0);
    network.set_directory(false);
    let gaps = kill_parents(&mut network);
    network.set_directory(true);
    let healed = heal(&mut network);
    let per_second = |count: u64| count as f64 / 60.0;
    let mean = |sum: u64| sum as f64 / size as f64;
    format!(
        "{{\"relays\":{size},\"receivers\":{},\"converged_s\":{:.2},\"messages_each_until_then\":{:.1},\
         \"messages_s_mean\":{:.2},\"messages_s_most\":{:.1},\"entries_mean\":{:.1},\"entries_most\":{},\
         \"depth\":{depth},\"gaps\":{},\"gap_ms_median\":{},\"gap_ms_99\":{},\
         \"gap_ms_most\":{},\"healed_s\":{:.2}}}",
        (size as u64 - 1) * RECEIVERS_EACH,
        converged.as_secs_f64(),
        mean(flood),
        per_second(settled.iter().sum()) / size as f64,
        per_second(settled.iter().copied().max().unwrap_or(0)),
        mean(states.iter().map(|state| *state as u64).sum()),
        states.iter().max().unwrap_or(&0),
        gaps.len(),
        at(&gaps, 50),
        at(&gaps, 99),
        at(&gaps, 100),
        healed.as_secs_f64(),
    )
}

/// How long it takes until all have the stream.
fn converge(network: &mut Network, start: Time) -> Duration {
    while !network.dark().is_empty() && network.now.since(start) < Duration::from_secs(120) {
        network.run(network::STEP);
    }
    network.now.since(start)
}

/// Half of the relays are cut off for half a minute. How long it then takes until all have the stream.
fn heal(network: &mut Network) -> Duration {
    let half = network.relays.len() / 2;
    network.divide(|relay| u8::from(relay >= half));
    network.run(Duration::from_secs(30));
    network.divide(|_| 0);
    converge(network, network.now)
}

/// Relays with children die one after another. How long their subtrees were without the stream, in order.
fn kill_parents(network: &mut Network) -> Vec<Duration> {
    network.gaps.clear();
    for _ in 0..DEATHS {
        let has_children = |relay: &usize| network.relays[*relay].node.children(STREAM).next().is_some();
        let parents: Vec<_> = (1..network.relays.len()).filter(has_children).collect();
        let Some(victim) = parents.get(network.random.usize(..parents.len().max(1))).copied() else { break };
        network.kill(victim);
        network.run(Duration::from_secs(5));
        network.restart(victim);
        network.run(Duration::from_secs(5));
    }
    let mut gaps = core::mem::take(&mut network.gaps);
    gaps.sort();
    gaps
}

fn at(gaps: &[Duration], percent: usize) -> u128 {
    let last = gaps.len().saturating_sub(1);
    gaps.get(last * percent / 100).map_or(0, Duration::as_millis)
}
