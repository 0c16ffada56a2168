//! Trees of relays in virtual time, in which relays, links and the directory fail: what is true at any time,
//! and what is true a while later.

use core::time::Duration;

use outflow_routing::Level;
use outflow_routing::tree::StreamId;
use outflow_sim::trees::{Crowd, Network, Settings};

const STREAM: StreamId = StreamId(1);

fn level(number: u8) -> Level {
    Level::new(number).expect("a level")
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn network(relays: usize, children_max: usize, seed: u64) -> Network {
    Network::new(Settings { relays, children_max, seed })
}

/// A tree in which every relay has receivers and the stream.
fn settled(count: usize, children_max: usize, seed: u64) -> Network {
    let mut network = network(count, children_max, seed);
    network.set_source(0, STREAM, Some(0));
    for relay in 1..count {
        let wanted = level(network.random().u8(1..9));
        network.set_receivers(relay, STREAM, wanted, 100);
    }
    network.run(seconds(60));
    assert_eq!(network.dark(), 0, "seed {seed}");
    network.take_dark();
    network
}

/// Nothing was wrong at any time, and in the end all is as it has to be.
fn check(network: &mut Network, context: &str) {
    assert_eq!(network.settle(seconds(60)), Vec::<String>::new(), "{context}");
    assert_eq!(network.faults(), (0, &[][..]), "{context}");
}

fn happen(network: &mut Network) {
    let count = network.len();
    let relay = network.random().usize(..count);
    let is_up = network.random().bool();
    match network.random().u8(..11) {
        0 | 1 if network.is_alive(relay) => network.kill(relay),
        0..=2 => network.restart(relay),
        3..=5 => {
            let (wanted, count) = (level(network.random().u8(1..9)), network.random().u64(..2) * 1000);
            network.set_receivers(relay, STREAM, wanted, count);
        }
        6 => network.set_directory(is_up),
        7 => {
            let parts: Vec<_> = (0..count).map(|_| network.random().u8(..2)).collect();
            network.divide(|relay| parts[relay]);
        }
        8 => network.divide(|_| 0),
        9 => network.fail(relay, STREAM),
        _ => {
            let loss = network.random().u32(..300);
            network.set_loss(loss);
        }
    }
}

/// Whatever happens there are no faults.
fn chaos(count: usize, sources: usize, seed: u64) {
    let mut network = network(count, 2 + seed as usize % 4, seed);
    for source in 0..sources {
        network.set_source(source, STREAM, Some(source as u8));
    }
    for relay in sources..count {
        network.set_receivers(relay, STREAM, level(1 + relay as u8 % 5), 10);
    }
    for _ in 0..40 {
        happen(&mut network);
        let wait = network.random().u64(..3000);
        network.run(Duration::from_millis(wait));
    }
    network.set_loss(0);
    network.set_directory(true);
    for source in 0..sources {
        if !network.is_alive(source) {
            network.restart(source);
        }
    }
    // In a part without the directory, no relay may know any other.
    if seed.is_multiple_of(3) {
        network.run(seconds(60));
        assert_eq!(network.faults(), (0, &[][..]), "seed {seed}");
    } else {
        network.divide(|_| 0);
        network.run(seconds(60));
        check(&mut network, &format!("{count} relays, seed {seed}"));
    }
}

#[test]
fn whatever_fails_there_is_no_loop_and_in_the_end_each_is_served_once_at_what_it_wants() {
    (0..200).for_each(|seed| chaos(6 + (seed as usize * 7) % 30, 1, seed));
}

#[test]
fn in_larger_networks_the_same_is_true() {
    (0..6).for_each(|seed| chaos(200, 1, seed));
}

#[test]
fn with_several_sources_of_one_stream_the_same_is_true() {
    (0..60).for_each(|seed| chaos(6 + (seed as usize * 7) % 30, 3, seed));
}

#[test]
fn with_many_streams_and_a_crowd_that_changes_none_asks_for_less_or_for_longer_than_is_wanted() {
    let mut network = network(60, 8, 9);
    let crowd = Crowd { receivers: 50, stay: seconds(20), presence: seconds(30), absence: seconds(10) };
    let streams: Vec<_> = (0..10).map(StreamId).collect();
    for (source, stream) in streams.iter().enumerate() {
        network.set_source(source, *stream, Some(0));
        for relay in (0..60).filter(|relay| relay % 10 != source && relay % 3 == source % 3) {
            network.gather(relay, *stream, &crowd);
        }
    }
    network.set_crowd(Some(crowd));
    network.run(seconds(120));
    let dark = network.take_dark();
    assert!(dark.iter().filter(|dark| !dark.is_gap).count() > 100, "receivers came again and again");
    network.set_crowd(None);
    network.run(seconds(10));
    check(&mut network, "a crowd");
}

#[test]
fn after_a_parents_death_the_stream_is_back_within_a_second_without_the_directory() {
    let mut gaps = Vec::new();
    for seed in 0..10 {
        let mut network = settled(200, 6, seed);
        network.set_directory(false);
        for _ in 0..20 {
            let parents: Vec<_> = (1..200).filter(|relay| network.has_children(*relay, STREAM)).collect();
            let victim = parents[network.random().usize(..parents.len())];
            network.kill(victim);
            network.run(seconds(5));
        }
        assert_eq!(network.dark(), 0, "seed {seed}");
        gaps.append(&mut network.take_dark());
    }
    let (count, longest) = (gaps.len(), gaps.iter().map(|gap| gap.lasted).max());
    let late = gaps.iter().filter(|gap| gap.lasted > seconds(1)).count();
    assert!(count > 200 && late * 50 < count, "{late} of {count} gaps are longer than a second");
    assert!(longest < Some(seconds(2)), "the longest gap is {longest:?}");
}

#[test]
fn a_thousand_relays_that_want_a_stream_at_once_have_it_within_seconds() {
    let mut network = network(1000, 8, 3);
    network.set_source(0, STREAM, Some(0));
    (1..1000).for_each(|relay| network.set_receivers(relay, STREAM, Level::BEST, 1000));
    network.run(seconds(8));
    assert_eq!(network.dark(), 0);
    network.run(seconds(30));
    check(&mut network, "a thousand");
}

#[test]
fn others_are_not_asked_in_a_storm_when_a_source_is_away_for_a_moment() {
    for seed in 0..4 {
        let mut network = settled(300, 8, seed);
        network.take_most_in_second();
        network.kill(0);
        network.run(seconds(2));
        network.restart(0);
        network.run(seconds(10));
        assert_eq!(network.dark(), 0, "seed {seed}");
        let most = network.take_most_in_second();
        assert!(most < 1000, "a relay sent {most} messages in a second, seed {seed}");
    }
}

#[test]
fn a_part_without_a_source_is_dark_until_the_partition_is_over() {
    let mut network = settled(60, 5, 4);
    network.divide(|relay| u8::from(relay >= 30));
    network.run(seconds(60));
    assert_eq!(network.dark_relays(STREAM), (30..60).collect::<Vec<_>>());
    network.divide(|_| 0);
    network.run(seconds(12));
    assert_eq!(network.dark(), 0);
    network.run(seconds(30));
    check(&mut network, "after a partition");
}

#[test]
fn each_part_has_the_source_it_can_reach_and_then_all_have_the_preferred_one() {
    let mut network = settled(40, 4, 5);
    network.set_source(39, STREAM, Some(7));
    network.divide(|relay| u8::from(relay >= 20));
    network.run(seconds(60));
    let dark = network.dark_relays(STREAM);
    let lit: Vec<_> = (20..39).filter(|relay| !dark.contains(relay)).collect();
    assert!(lit.iter().all(|relay| network.root(*relay, STREAM) == Some(39)), "nothing of the other is left");
    assert!((1..20).all(|relay| network.root(relay, STREAM) == Some(0)));
    network.divide(|_| 0);
    network.run(seconds(90));
    assert!((1..39).all(|relay| network.root(relay, STREAM) == Some(0)), "the smaller root is taken by all");
    network.kill(0);
    network.run(seconds(20));
    assert!((1..39).all(|relay| network.root(relay, STREAM) == Some(39)), "and the other when it is gone");
}

#[test]
fn what_none_wants_none_has() {
    let mut network = settled(50, 4, 6);
    (1..50).for_each(|relay| network.scatter(relay, STREAM));
    network.run(seconds(30));
    let served = network.depths(STREAM).into_iter().flatten().count();
    assert_eq!(served, 1, "but its source");
    assert!((1..50).all(|relay| network.entries(relay) == 0));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut network = settled(50, 4, seed);
        network.kill(7);
        network.run(seconds(5));
        (network.events(), network.traffic(), network.take_dark())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
