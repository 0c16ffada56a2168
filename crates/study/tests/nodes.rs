//! The scenarios with nodes, as they are in the repository.

use std::collections::BTreeMap;

use outflow_study::{Point, Study};

fn points(text: &str) -> Vec<Point> {
    Study::parse(text).expect("valid").run(&|_| ()).expect("valid")
}

/// The figures of a point, by names such as `tv.frames`.
fn figures(point: &Point) -> BTreeMap<String, f64> {
    let all = point.figures.iter();
    all.flat_map(|(name, of)| of.iter().map(move |(key, of)| (format!("{name}.{key}"), of.mean))).collect()
}

#[test]
fn each_branch_of_a_multicast_network_carries_what_is_wanted_behind_it() {
    let points = points(include_str!("../../sim/scenarios/multicast.toml"));
    let of = figures(&points[0]);
    assert_eq!((of["tv.layers"], of["tv.missing"], of["tv.decodable_pct"]), (33.0, 0.0, 100.0), "{of:?}");
    // Nine layers for 20 s, four for 15 s; what comes while the level changes is of the better one.
    assert_eq!((of["phone.missing"], of["phone.decodable_pct"]), (0.0, 100.0), "{of:?}");
    let expected = (9.0 * 20.0 + 4.0 * 15.0) / 35.0;
    assert!((of["phone.layers"] - expected).abs() < 0.3, "{} of {expected}", of["phone.layers"]);
    assert!(of["to-right.bytes"] < 0.3 * of["to-left.bytes"], "{of:?}");
    assert!(of["tv.join_ms"] < 100.0 && of["phone.join_ms"] < 100.0, "{of:?}");
}

#[test]
fn the_transport_repeats_what_still_helps() {
    let points = points(include_str!("../../sim/scenarios/transport.toml"));
    let all: Vec<_> = points.iter().map(figures).collect();
    let decodable = |at: usize| all[at]["viewer.decodable_pct"];
    // A round trip takes 80 ms: within 50 ms nothing can be repeated in time.
    assert!(decodable(0) < 60.0 && decodable(2) > 95.0, "{} {} {}", decodable(0), decodable(1), decodable(2));
    assert!(decodable(0) < decodable(1) && decodable(1) <= decodable(2));
    assert!(all[2]["studio.repeated"] > 0.0 && all[2]["there.lost"] > 0.0);
}

#[test]
fn relays_of_a_tree_take_the_stream_from_each_other() {
    let points = points(include_str!("../../sim/scenarios/tree.toml"));
    let of = figures(&points[0]);
    for relay in ["one", "two", "three", "four"] {
        assert!(of[&format!("{relay}.decodable_pct")] > 99.0, "{relay}: {of:?}");
        assert!(of[&format!("{relay}.join_ms")] < 2000.0, "{relay}: {of:?}");
        assert_eq!(of[&format!("{relay}.dark_ms")], 0.0, "{relay}: {of:?}");
    }
    assert!(of["root.children"] <= 2.0 && of["root.depth"] == 0.0, "{of:?}");
    // Two have the stream from others than the root.
    let depths: f64 = ["one", "two", "three"].iter().map(|relay| of[&format!("{relay}.depth")]).sum();
    assert!(depths >= 4.0, "{of:?}");
    assert_eq!(of["directory.entries"], 4.0, "those that have it: {of:?}");
}

/// What the documentation of emulation shows are scenarios.
#[test]
fn networks_that_are_emulated_are_scenarios() {
    let page = include_str!("../../../docs/emulation.md");
    let pieces = page.split("```toml\n").skip(1).filter_map(|piece| piece.split("```").next());
    let read: Vec<_> = pieces.map(|piece| Study::parse(piece).map(|study| study.points())).collect();
    assert!(matches!(read[..], [Ok(1), Ok(1)]), "{read:?}");
}
