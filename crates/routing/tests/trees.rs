//! Trees of relays in virtual time, in which relays, links and the directory fail: what is true at any time,
//! and what is true a while later.

#[path = "../examples/trees/network.rs"]
mod network;

use core::time::Duration;

use network::{Network, STREAM};
use outflow_routing::Level;

fn level(number: u8) -> Level {
    Level::new(number).expect("a level")
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A tree in which everybody has receivers and the stream.
fn settled(count: usize, children_max: usize, seed: u64) -> Network {
    let mut network = Network::new(count, children_max, seed);
    network.set_source(0, Some(0));
    for relay in 1..count {
        let wanted = level(network.random.u8(1..9));
        network.set_receivers(relay, wanted, 100);
    }
    network.run(seconds(60));
    assert_eq!(network.dark(), [], "seed {seed}");
    network.gaps.clear();
    network
}

/// What is not as it has to be when nothing happens any more.
fn faults(network: &Network) -> Vec<String> {
    // With a source in its part, whoever wants the stream has it.
    let sources = network.relays.iter().filter(|relay| relay.is_alive && relay.source.is_some());
    let parts: Vec<_> = sources.map(|relay| relay.part).collect();
    let mut dark = network.dark();
    dark.retain(|relay| parts.contains(&network.relays[*relay].part));
    let mut faults: Vec<_> = dark.iter().map(|relay| format!("{relay} is dark")).collect();
    for (number, relay) in network.relays.iter().enumerate().filter(|(_, relay)| relay.is_alive) {
        let here = relay.receivers.iter().filter(|(_, count)| **count > 0).map(|(level, _)| *level);
        let below = relay.node.children(STREAM).map(|(_, level, _)| level);
        let best = here.chain(below).min();
        let asked = relay.node.demand(STREAM);
        if relay.source.is_none() && asked != best {
            faults.push(format!("{number} asks for {asked:?}, the best below is {best:?}"));
        }
        for (child, served, _) in relay.node.children(STREAM) {
            let child = child.0 as usize;
            let asked = network.relays[child].node.demand(STREAM);
            // Nobody is served by two, or in vain.
            if network.parent(child) != Some(number) || asked != Some(served) {
                faults.push(format!("{number} serves {child} with {served}, who asks for {asked:?}"));
            }
        }
    }
    faults
}

/// Waits until all is as it has to be. A change of parents is followed by holds on the way up.
fn check(network: &mut Network, context: &str) {
    for _ in 0..20 {
        if faults(network).is_empty() {
            return;
        }
        network.run(seconds(3));
    }
    assert_eq!(faults(network), Vec::<String>::new(), "{context}");
}

fn happen(network: &mut Network) {
    let relay = network.random.usize(..network.relays.len());
    let is_up = network.random.bool();
    match network.random.u8(..10) {
        0 | 1 if network.relays[relay].is_alive => network.kill(relay),
        0..=2 => network.restart(relay),
        3..=5 => {
            let (wanted, count) = (level(network.random.u8(1..9)), network.random.u64(..2) * 1000);
            network.set_receivers(relay, wanted, count);
        }
        6 => network.set_directory(is_up),
        7 => {
            let parts: Vec<_> = (0..network.relays.len()).map(|_| network.random.u8(..2)).collect();
            network.divide(|relay| parts[relay]);
        }
        8 => network.divide(|_| 0),
        _ => network.loss = network.random.u32(..300),
    }
}

fn chaos(seed: u64, sources: usize) {
    let count = 6 + (seed as usize * 7) % 30;
    let mut network = Network::new(count, 2 + seed as usize % 4, seed);
    for source in 0..sources {
        network.set_source(source, Some(source as u8));
    }
    for relay in sources..count {
        network.set_receivers(relay, level(1 + relay as u8 % 5), 10);
    }
    for _ in 0..40 {
        happen(&mut network);
        let wait = network.random.u64(..3000);
        network.run(Duration::from_millis(wait));
    }
    network.loss = 0;
    network.set_directory(true);
    (0..sources)
        .filter(|source| !network.relays[*source].is_alive)
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|source| network.restart(source));
    let is_whole = !seed.is_multiple_of(3);
    if is_whole {
        network.divide(|_| 0);
    }
    network.run(seconds(90));
    // In a part without the directory, nobody may know anybody.
    if is_whole {
        check(&mut network, &format!("seed {seed}"));
    }
}

#[test]
fn whatever_fails_there_is_no_loop_and_in_the_end_everybody_is_served_once_at_what_he_wants() {
    (0..60).for_each(|seed| chaos(seed, 1));
}

#[test]
fn with_several_sources_of_one_stream_the_same_is_true() {
    (0..30).for_each(|seed| chaos(seed, 3));
}

#[test]
fn after_a_parents_death_the_stream_is_back_within_a_second_without_the_directory() {
    let mut network = settled(200, 6, 1);
    network.set_directory(false);
    for _ in 0..20 {
        let has_children = |relay: &usize| network.relays[*relay].node.children(STREAM).next().is_some();
        let parents: Vec<_> = (1..200).filter(has_children).collect();
        let victim = parents[network.random.usize(..parents.len())];
        network.kill(victim);
        network.run(seconds(5));
    }
    assert_eq!(network.dark(), []);
    let late = network.gaps.iter().filter(|gap| **gap > seconds(1)).count();
    let count = network.gaps.len();
    assert!(count > 20 && late * 50 < count, "{late} of {count} gaps are longer than a second");
}

#[test]
fn a_thousand_relays_that_want_a_stream_at_once_have_it_within_seconds() {
    let mut network = Network::new(1000, 8, 3);
    network.set_source(0, Some(0));
    (1..1000).for_each(|relay| network.set_receivers(relay, Level::BEST, 1000));
    network.run(seconds(8));
    assert_eq!(network.dark(), []);
    network.run(seconds(60));
    check(&mut network, "a thousand");
}

#[test]
fn a_part_without_a_source_is_dark_until_the_partition_is_over() {
    let mut network = settled(60, 5, 4);
    network.divide(|relay| u8::from(relay >= 30));
    network.run(seconds(60));
    assert_eq!(network.dark(), (30..60).collect::<Vec<_>>());
    network.divide(|_| 0);
    network.run(seconds(12));
    assert_eq!(network.dark(), []);
    network.run(seconds(30));
    check(&mut network, "after a partition");
}

#[test]
fn each_part_has_the_source_it_can_reach_and_then_all_have_the_preferred_one() {
    let mut network = settled(40, 4, 5);
    network.set_source(39, Some(7));
    network.divide(|relay| u8::from(relay >= 20));
    network.run(seconds(60));
    let of = |network: &Network, relay: usize| {
        network.relays[relay].node.path(network.now, STREAM).map(|path| path.root.relay.0)
    };
    let dark = network.dark();
    let lit: Vec<_> = (20..39).filter(|relay| !dark.contains(relay)).collect();
    assert!(lit.iter().all(|relay| of(&network, *relay) == Some(39)), "nothing of the other part is left");
    assert!((1..20).all(|relay| of(&network, relay) == Some(0)));
    network.divide(|_| 0);
    network.run(seconds(90));
    assert!((1..39).all(|relay| of(&network, relay) == Some(0)), "the smaller root is taken by all");
    network.kill(0);
    network.run(seconds(20));
    assert!((1..39).all(|relay| of(&network, relay) == Some(39)), "and the other when it is gone");
}

#[test]
fn nobody_wants_it_so_nobody_has_it() {
    let mut network = settled(50, 4, 6);
    for relay in 1..50 {
        for number in 1..9 {
            network.set_receivers(relay, level(number), 0);
        }
    }
    network.run(seconds(30));
    assert_eq!(network.depths().iter().filter(|depth| depth.is_some()).count(), 1, "but its source");
    assert!(network.relays[1..].iter().all(|relay| relay.node.state() == 0));
}
