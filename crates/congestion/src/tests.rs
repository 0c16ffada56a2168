//! What the controller promises, at a bottleneck in virtual time. Each test prints what it measured.

use super::testing::{App, Growth, Link, Ours, Tcp, TestPath, World};
use super::*;

mod alone;
mod beside_tcp;
mod interface;
mod together;
mod unseen;

const MBIT: u64 = 1_000_000;

/// Bytes in flight that a link and a round trip hold, as milliseconds of buffer.
fn bdp_ms(rtt_ms: u64, times: f64) -> u64 {
    ((rtt_ms as f64 * times) as u64).max(1)
}

/// A world with a greedy flow of ours that starts at once.
fn one(link: Link, rtt_ms: u64) -> World {
    let mut world = World::new(link);
    world.add(TestPath::of(rtt_ms), Ours::greedy());
    world
}

fn print_changes(world: &World, flow: usize) {
    let ours = world.ours(flow);
    let count: Vec<_> = Reason::ALL
        .into_iter()
        .map(|reason| (reason.as_str(), ours.count(reason)))
        .filter(|(_, n)| *n > 0)
        .collect();
    println!("    flow {flow}: {count:?}");
}
