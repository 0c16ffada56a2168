//! Every error by itself, and bounds.

use super::*;
use crate::net::{Builder, Interval, Rule, TransitionId, samples};

fn place(name: &str, from: u32, to: u32, initial: u32) -> Place {
    let (producer, consumer) = (TransitionId(from), TransitionId(to));
    let name = Name::new(name);
    Place { name, carries: Carries::Object, producer, consumer, interval: Interval::ALWAYS, initial }
}

/// Transitions a, b, c that fire when all is there, and these places.
fn built(places: &[Place]) -> Result<Net, NetError> {
    let mut builder = Builder::new();
    ["a", "b", "c"].iter().for_each(|name| _ = builder.transition(*name, Rule::And));
    places.iter().for_each(|place| _ = builder.place(place.clone()));
    builder.build()
}

fn ring() -> [Place; 3] {
    [place("x", 0, 1, 0), place("y", 1, 2, 0), place("z", 2, 0, 1)]
}

/// What is said of a ring in which something is changed.
fn complaint(change: impl FnOnce(&mut Vec<Place>)) -> String {
    let mut places = ring().to_vec();
    change(&mut places);
    let error = built(&places).expect_err("no net");
    assert!(!error.reason().is_empty());
    error.to_string()
}

#[test]
fn a_ring_with_a_token_is_a_net() {
    assert_eq!(built(&ring()).expect("a net").objects(), 3);
}

#[test]
fn a_net_without_objects_is_refused() {
    assert!(Builder::new().build().expect_err("empty").to_string().contains("no objects"));
    assert!(
        complaint(|places| places.iter_mut().for_each(|p| p.carries = Carries::Order)).contains("no objects")
    );
}

#[test]
fn names_must_be_names_and_differ() {
    assert!(complaint(|places| places[0].name = Name::new("")).contains("\"\" is no name"));
    assert!(complaint(|places| places[0].name = Name::new("a b")).contains("\"a b\" is no name"));
    assert!(complaint(|places| places[0].name = Name::new(&"x".repeat(33))).contains("32 at most"));
    assert!(complaint(|places| places[0].name = Name::new("y")).contains("two places are called y"));
    let mut builder = Builder::new();
    ["a", "a"].iter().for_each(|name| _ = builder.transition(*name, Rule::And));
    assert!(builder.build().expect_err("twice").to_string().contains("two transitions are called a"));
}

#[test]
fn places_have_ends_intervals_and_a_few_tokens() {
    assert!(complaint(|places| places[1].consumer = TransitionId(3)).contains("place y leads from or to"));
    let interval = Interval { nominal: core::time::Duration::from_nanos(1), ..Interval::ALWAYS };
    assert!(complaint(|places| places[2].interval = interval).contains("place z is not in whole micro"));
    assert!(complaint(|places| places[2].initial = 33).contains("33 tokens at the start; 32 are"));
}

#[test]
fn sizes_are_limited() {
    let mut builder = Builder::new();
    (0..=TRANSITIONS_MAX as u32).for_each(|i| _ = builder.transition(Name::new("t").numbered(i), Rule::And));
    assert!(builder.build().expect_err("many").to_string().contains("4097 transitions; 4096 are"));
    let many = |places: &mut Vec<Place>| {
        let name = Name::new("p");
        places.extend((0..PLACES_MAX as u32).map(|i| Place { name: name.numbered(i), ..place("", 0, 0, 1) }));
    };
    assert!(complaint(many).contains("16387 places; 16384 are"));
}

#[test]
fn masters_are_inputs_of_rules_that_need_them() {
    let with = |rule, master: Option<u32>| {
        let mut builder = Builder::new();
        builder.transition("a", rule);
        builder.transition("b", Rule::And);
        [place("x", 0, 1, 0), place("y", 1, 0, 1)].into_iter().for_each(|place| _ = builder.place(place));
        master.into_iter().for_each(|master| builder.master(PlaceId(master)));
        builder.build().map_err(|error| error.to_string())
    };
    assert!(with(Rule::Master, Some(1)).is_ok());
    assert!(with(Rule::Master, None).expect_err("none").contains("a fires by its master, and has none"));
    assert!(with(Rule::And, Some(1)).expect_err("needless").contains("a has a master, and a rule without"));
    let parts = [Transition { name: "a".into(), rule: Rule::Master, master: Some(PlaceId(0)) }];
    let mut net = built(&ring()).expect("a net");
    net.transitions[..1].clone_from_slice(&parts);
    assert!(graph(&net).expect_err("foreign").to_string().contains("master of transition a is not a place"));
}

#[test]
fn a_transition_has_places() {
    let circuit = |places: &mut Vec<Place>| *places = vec![place("x", 0, 1, 0), place("y", 1, 0, 1)];
    assert!(complaint(circuit).contains("no place leads to transition c or from it"));
}

#[test]
fn a_circuit_without_a_token_is_named() {
    let error = complaint(|places| places[2].initial = 0);
    let circuits = [
        "a → (x) → b → (y) → c → (z) → a",
        "b → (y) → c → (z) → a → (x) → b",
        "c → (z) → a → (x) → b → (y) → c",
    ];
    assert!(circuits.iter().any(|circuit| error.contains(circuit)), "{error}");
    // What merely waits for a circuit is not part of it.
    let error = complaint(|places| {
        places.extend([place("v", 0, 0, 0), place("w", 1, 1, 1)]);
    });
    assert!(error.contains("a → (v) → a; let"), "{error}");
}

#[test]
fn a_long_circuit_is_cut_short() {
    let mut builder = Builder::new();
    for i in 0..20 {
        builder.transition(Name::new("t").numbered(i), Rule::And);
        builder.place(Place { name: Name::new("p").numbered(i), ..place("", i, (i + 1) % 20, 0) });
    }
    let error = builder.build().expect_err("no token").to_string();
    assert!(error.contains("→ … and 12 more"), "{error}");
}

#[test]
fn a_place_that_could_fill_without_end_is_named() {
    let error =
        complaint(|places| *places = vec![place("x", 0, 0, 1), place("y", 0, 1, 0), place("z", 1, 2, 0)]);
    assert!(error.contains("place y lies on no circuit, so that a could run ahead of b"), "{error}");
    assert!(complaint(|places| drop(places.pop())).contains("place x lies on no circuit"));
}

#[test]
fn a_place_holds_as_much_as_the_poorest_circuit_through_it() {
    let mut places = ring().to_vec();
    places[2].initial = 3;
    places.push(place("back", 1, 0, 2));
    places.push(place("alone", 2, 2, 5));
    assert_eq!(built(&places).expect("a net").bounds(), [2, 3, 3, 2, 5]);
    assert!(samples::mpeg().bounds().iter().all(|bound| (1..=3).contains(bound)));
}

#[test]
fn the_largest_net_is_checked_in_a_moment() {
    // A ring of all transitions, and a place from each to itself three times: nothing is searched more than
    // once.
    let mut builder = Builder::new();
    let (count, name) = (TRANSITIONS_MAX as u32, Name::new("p"));
    for i in 0..count {
        builder.transition(Name::new("t").numbered(i), Rule::And);
        let next = place("", i, (i + 1) % count, u32::from(i + 1 == count));
        builder.place(Place { name: name.numbered(i), ..next });
        for copy in 1..4 {
            builder.place(Place { name: name.numbered(copy * count + i), ..place("", i, i, 1) });
        }
    }
    assert_eq!(builder.build().expect("a net").places().len(), PLACES_MAX);
}
