//! Random networks in which links and routers fail and messages are lost, and what is true of them when that
//! is over: routes are shortest paths, each link has at most one copy of data, each link with members just
//! one, those without need none, and each has the best level that is wanted behind it.
//!
//! A network is a number; one that fails is run alone by `DVMRP_CHAOS_SEED=…`, and `DVMRP_CHAOS_SEEDS=10000`
//! runs that many.

use core::net::Ipv4Addr;
use core::time::Duration;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::network::Network;
use super::oracle::Paths;

const SEEDS: u64 = 150;

const GROUPS: [Ipv4Addr; 2] = [Ipv4Addr::new(225, 1, 2, 3), Ipv4Addr::new(239, 0, 0, 1)];

/// Routers in a row of links, so that all can be reached, and further links among them; hosts on some.
fn random_network(seed: u64) -> (Network, Vec<usize>) {
    let mut net = Network::new(seed);
    let count = net.random.usize(2..9);
    let has_plain = net.random.u32(0..3) == 0;
    for _ in 0..count {
        let has_levels = !has_plain || net.random.bool();
        net.add_node(has_levels);
    }
    let mut sources = Vec::new();
    for node in 0..count {
        let mut nodes = vec![node];
        if node > 0 {
            nodes.push(net.random.usize(0..node));
        }
        let metric = net.random.u8(1..4);
        let is_lan = node == 0 || net.random.bool();
        let wire = net.add_wire(&nodes, is_lan, metric);
        if is_lan {
            sources.push(wire);
        }
    }
    for _ in 0..net.random.usize(0..=count) {
        let size = net.random.usize(1..5);
        let mut nodes: Vec<usize> = (0..count).collect();
        net.random.shuffle(&mut nodes);
        nodes.truncate(size);
        let is_lan = nodes.len() != 2 || net.random.bool();
        let metric = net.random.u8(1..4);
        let wire = net.add_wire(&nodes, is_lan, metric);
        if is_lan {
            sources.push(wire);
        }
    }
    net.random.shuffle(&mut sources);
    sources.truncate(2);
    (net, sources)
}

fn change_members(net: &mut Network) {
    let lans: Vec<_> = (0..net.wires.len()).filter(|wire| net.wires[*wire].is_lan).collect();
    let wire = lans[net.random.usize(0..lans.len())];
    let group = GROUPS[net.random.usize(0..2)];
    let level = net.random.bool().then(|| net.random.u8(1..34));
    net.set_member(wire, group, level);
}

fn disturb(net: &mut Network) {
    let wire = net.random.usize(0..net.wires.len());
    match net.random.u32(0..8) {
        0 => net.set_up(wire, !net.wires[wire].is_up),
        1 => net.wires[wire].is_cut = !net.wires[wire].is_cut,
        2 => {
            let node = net.random.usize(0..net.nodes.len());
            net.restart(node);
        }
        3 => net.loss = net.random.u32(0..30),
        _ => change_members(net),
    }
}

fn run_with_data(net: &mut Network, sources: &[usize], seconds: u64) {
    for _ in 0..seconds / 5 {
        net.run(Duration::from_secs(5));
        for source in sources {
            GROUPS.iter().for_each(|group| drop(net.data(*source, *group)));
        }
    }
}

/// How it is, after all failures.
fn play(seed: u64) -> Network {
    let (mut net, sources) = random_network(seed);
    for _ in 0..4 {
        change_members(&mut net);
    }
    for _ in 0..net.random.u32(0..20) {
        let wait = net.random.u64(0..80);
        run_with_data(&mut net, &sources, wait);
        disturb(&mut net);
    }
    net.loss = 0;
    net.wires.iter_mut().for_each(|wire| wire.is_cut = false);
    run_with_data(&mut net, &sources, 900);
    for source in sources {
        let copies: Vec<_> = GROUPS.map(|group| net.data(source, group)).into();
        let paths = Paths::new(&net, source);
        paths.check(&GROUPS);
        for (group, copies) in GROUPS.iter().zip(copies) {
            assert_eq!(copies, paths.copies(*group), "copies by link, from {source} to {group}");
        }
    }
    net
}

#[test]
fn after_all_failures_trees_are_shortest_and_carry_one_copy_of_the_best_wanted_level() {
    let number = |name| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("DVMRP_CHAOS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DVMRP_CHAOS_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(play(seed)))) {
            eprintln!("it was DVMRP_CHAOS_SEED={seed}");
            resume_unwind(panic);
        }
    }
}

#[test]
fn the_same_seed_makes_the_same_of_a_network() {
    let summary = |seed| {
        let net = play(seed);
        let of_node = |node: &super::network::Node| (node.sent, node.router.counters().clone());
        (net.now, net.nodes.iter().map(of_node).collect::<Vec<_>>())
    };
    for seed in 0..10 {
        assert_eq!(summary(seed), summary(seed));
    }
}
