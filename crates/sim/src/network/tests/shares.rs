//! Links that are shared by weight.

use super::*;

/// Three kinds of traffic, each of which offers about as much as the link carries.
const SHARED: &str = r#"
seed = 1
duration = "20 s"
warm_up = "1 s"

[links.out]
rate = "4 Mbit/s"
buffer = "20 kB"
policy = "pfb"
scheduler = "shares"

[links.out.applications.data]
weight = 3

[traffic.video]
model = "video"
flows = 10
via = ["out"]

[traffic.large]
model = "data"
rate = "4 Mbit/s"
packet_bytes = 1200
weight = 2
via = ["out"]

[traffic.small]
model = "data"
rate = "4 Mbit/s"
packet_bytes = 300
via = ["out"]
"#;

/// The bytes of each that arrive, in parts of what the link carries: those of data have a size.
fn parts(text: &str) -> [f64; 2] {
    let network = Network::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let outcome = play(&network).expect("it is valid");
    assert_eq!(outcome, play(&network).expect("it is valid"), "the same again");
    let part = |name: &str, bytes: u64| {
        let bits = (outcome.traffic[name].arrived * bytes * 8) as f64;
        bits / (4e6 * (network.duration - network.warm_up).as_secs_f64())
    };
    [part("large", 1200), part("small", 300)]
}

#[track_caller]
fn assert_parts(text: &str, wanted: [f64; 2]) {
    let parts = parts(text);
    let is_near = parts.iter().zip(wanted).all(|(part, wanted)| (part - wanted).abs() <= 0.02 * wanted);
    assert!(is_near, "{parts:?} instead of {wanted:?}");
}

#[test]
fn a_link_is_shared_by_the_weights_of_applications_and_of_their_flows() {
    assert_parts(SHARED, [0.5, 0.25]);
    assert_parts(&SHARED.replace("weight = 3", "weight = 1"), [1.0 / 3.0, 1.0 / 6.0]);
    assert_parts(&SHARED.replace("flows = 10", "flows = 0"), [2.0 / 3.0, 1.0 / 3.0]);
}

#[test]
fn weights_are_numbers_within_their_range() {
    let refused = |from: &str, to: &str| {
        assert!(SHARED.contains(from), "{from}");
        Network::parse(&SHARED.replace(from, to)).expect_err(to).to_string()
    };
    assert!(refused("weight = 3", "weight = 0").contains("0 is too little: possible: 1 to 1000"));
    assert!(refused("weight = 2", "weight = 1001").contains("1001 is too much: possible: 1 to 1000"));
    assert!(refused("weight = 3", "").contains("needs buffer or buffer_per_flow"));
    assert!(refused("\"shares\"", "\"share\"").contains("write one of wrr, weq"));
}

/// Traffic of two classes, each of which offers more than the link carries. What a class of 5 % has in its buffer takes
/// 0.8 s: at the end that has not arrived.
const CLASSES: &str = r#"
seed = 1
duration = "100 s"
warm_up = "1 s"

[links.out]
rate = "4 Mbit/s"
buffer = "20 kB"
policy = "pfb"
scheduler = "priority"

[traffic.large]
model = "data"
rate = "5 Mbit/s"
packet_bytes = 1200
via = ["out"]

[traffic.small]
model = "data"
rate = "5 Mbit/s"
packet_bytes = 300
class = 1
via = ["out"]
"#;

#[test]
fn a_lower_class_has_its_share_of_a_link_unless_classes_are_strict() {
    let with = |share: &str| {
        let key = format!("scheduler = \"priority\"\nlower_share = \"{share}\"");
        CLASSES.replace("scheduler = \"priority\"", &key)
    };
    assert_parts(CLASSES, [0.95, 0.05]);
    assert_parts(&with("20 %"), [0.8, 0.2]);
    assert_eq!(parts(&with("off"))[1], 0.0);
    let of = |text: &str| Network::parse(text).and_then(|network| play(&network)).map(|_| ());
    let wrong = |text: &str| of(text).expect_err("it is not possible").to_string();
    assert!(wrong(&with("50 %")).contains("lower_share must be 1 % to 45 %, or \"off\""));
    let weq = with("20 %").replace("scheduler = \"priority\"", "scheduler = \"weq\"");
    assert!(wrong(&weq).contains("lower_share needs scheduler = \"priority\""));
}
