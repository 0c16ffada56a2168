//! Routers and hosts over segments, in virtual time.

use crate::network::{Network, NetworkOutcome, play};

/// A source behind a router, two routers behind that, a host behind each of these: by IPv4 through DVMRP, by IPv6 each
/// router joins at the one above.
const TREE: &str = r#"
seed = 1
duration = "60 s"

[links.core-west]
[links.west-host]
[links.core-east]
[links.east-host]

[segments.studio]
joins = ["camera", "core"]
[segments.west]
joins = ["core", "left"]
from = { core = ["core-west"] }
[segments.east]
joins = ["core", "right"]
from = { core = ["core-east"] }
[segments.west-hosts]
joins = ["left", "home"]
from = { left = ["west-host"] }
[segments.east-hosts]
joins = ["right", "bar"]
from = { right = ["east-host"] }

[nodes.camera]
kind = "host"
[nodes.core]
kind = "router"
[nodes.left]
kind = "router"
ABOVE
[nodes.right]
kind = "router"
ABOVE

[nodes.home]
kind = "host"
[[nodes.home.wants]]
group = "GROUP"
level = 4
at = "20 s"
[nodes.bar]
kind = "host"
[[nodes.bar.wants]]
group = "GROUP"
level = 1
at = "20 s"
until = "40 s"

[traffic.video]
model = "layered"
layers = 4
rate = "800 kbit/s"
from = "camera"
to = "TO"
"#;

fn tree(group: &str, to: &str, above: &str) -> String {
    TREE.replace("GROUP", group).replace("TO", to).replace("ABOVE", above)
}

fn played(text: &str) -> NetworkOutcome {
    play(&Network::parse(text).expect("valid")).expect("valid")
}

/// Bytes that came to a link.
fn bytes(outcome: &NetworkOutcome, link: &str) -> f64 {
    outcome.links[link].bytes as f64
}

/// The longest, in seconds, that a host that leaves is sent packets, by this number of routers, one behind the other,
/// that ask their hosts.
fn leaves_within(routers: f64) -> f64 {
    // Two queries of a second each; then, but at the last one above, the hold.
    routers * 2.0 + 2.0
}

fn each_branch_has_what_is_wanted_there(outcome: &NetworkOutcome, routers: f64) {
    let (home, bar) = (&outcome.nodes["home"], &outcome.nodes["bar"]);
    assert_eq!((home["missing"], home["decodable_pct"], home["layers"]), (0.0, 100.0, 1.0), "{outcome:?}");
    assert_eq!((bar["missing"], bar["decodable_pct"], bar["layers"]), (0.0, 100.0, 4.0), "{outcome:?}");
    // 40 s at 25 frames a second, and 20 s; joining takes a moment.
    assert!((990.0..=1000.0).contains(&home["frames"]) && (495.0..=500.0).contains(&bar["frames"]));
    assert!(home["join_ms"] < 100.0 && bar["join_ms"] < 100.0);
    // It is sent packets until the router next to it has asked.
    assert!((1000.0..2100.0).contains(&bar["leave_ms"]), "{}", bar["leave_ms"]);
    // A layer of four, and all four for 20 s of 40 and until the leave is over; but for messages.
    let ratio = bytes(outcome, "core-east") / bytes(outcome, "core-west");
    let most = 4.0 * (20.0 + leaves_within(routers)) / 40.0;
    assert!((2.0..most * 1.02).contains(&ratio), "{ratio} of {most}");
    assert!(bytes(outcome, "west-host") <= bytes(outcome, "core-west") * 1.01);
    assert!(outcome.nodes["core"]["left_out"] > 0.0);
}

#[test]
fn routers_of_dvmrp_send_each_branch_its_level() {
    let outcome = played(&tree("239.1.1.1", "239.1.1.1:5004", ""));
    each_branch_has_what_is_wanted_there(&outcome, 1.0);
    let core = &outcome.nodes["core"];
    assert_eq!((core["neighbours"], core["routes"]), (2.0, 5.0));
}

#[test]
fn routers_join_above_what_is_wanted_below() {
    let outcome = played(&tree("ff1e::1", "[ff1e::1]:5004", "above = 'core'"));
    each_branch_has_what_is_wanted_there(&outcome, 2.0);
    let outcome = played(&tree("239.1.1.1", "239.1.1.1:5004", "above = 'core'"));
    each_branch_has_what_is_wanted_there(&outcome, 2.0);
}

#[test]
fn a_group_of_ipv6_that_would_have_to_be_routed_is_refused_with_both_ends_named() {
    let group = |above: &str| tree("ff1e::1", "[ff1e::1]:5004", above);
    let refused = |text: &str| Network::parse(text).expect_err(text).to_string();
    let why = "routers of DVMRP route IPv4, and a group of IPv6 comes through one of them";
    let wrong = refused(&group(""));
    assert!(wrong.contains(&format!("traffic video and bar cannot be joined: {why}")), "{wrong}");
    let right = "[nodes.right]\nkind = \"router\"\n";
    let one = group("").replace(right, &format!("{right}above = \"core\"\n"));
    let wrong = refused(&one);
    assert!(wrong.contains(&format!("traffic video and home cannot be joined: {why}")), "{wrong}");
    // It is wanted behind one router alone; or another group is; or a real router stands between.
    for (from, to) in [
        ("joins = [\"left\", \"home\"]\nfrom = { left = [\"west-host\"] }", "joins = [\"core\", \"home\"]"),
        ("group = \"ff1e::1\"\nlevel = 4", "group = \"ff1e::2\""),
        ("[nodes.left]\nkind = \"router\"", "[ends.left]"),
    ] {
        assert!(one.contains(from), "{from}");
        Network::parse(&one.replacen(from, to, 1)).expect(to);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let text = tree("239.1.1.1", "239.1.1.1:5004", "");
    assert_eq!(played(&text), played(&text));
    assert_ne!(played(&text).digest, played(&text.replace("seed = 1", "seed = 2")).digest);
}

/// A link that loses a tenth: reports that are lost are said again, and what is missing is counted.
#[test]
fn losses_are_seen() {
    let lossy = "[links.west-host]\nimpairments = { loss = '10 %' }";
    let text = tree("239.1.1.1", "239.1.1.1:5004", "").replace("[links.west-host]", lossy);
    let outcome = played(&text);
    let (home, link) = (&outcome.nodes["home"], &outcome.links["west-host"]);
    assert!(home["missing"] > 50.0 && home["missing"] <= link.lost as f64, "{home:?}");
    assert!(home["decodable_pct"] < 99.0);
}

#[test]
fn what_cannot_be_joined_is_refused_with_both_ends_named() {
    let good = tree("239.1.1.1", "239.1.1.1:5004", "");
    for (from, to, error) in [
        (
            "joins = [\"core\", \"left\"]",
            "joins = [\"core\", \"lift\"]",
            "joins 'lift', but there is no such end",
        ),
        ("joins = [\"core\", \"left\"]", "joins = [\"core\"]", "segments.west: must join 2 to 250"),
        ("from = \"camera\"", "from = \"core\"", "traffic video and core cannot be joined: a router sends"),
        ("from = \"camera\"", "from = \"moon\"", "traffic video and moon cannot be joined: there is no such"),
        (
            "to = \"239.1.1.1:5004\"",
            "to = \"nowhere\"",
            "traffic video and camera cannot be joined: a host needs an address",
        ),
        ("group = \"239.1.1.1\"\nlevel = 4", "group = \"10.1.1.1\"", "nodes.home: 10.1.1.1 is no multicast"),
        (
            "joins = [\"left\", \"home\"]",
            "joins = [\"left\", \"bar\"]",
            "nodes.bar: a host is on one segment",
        ),
        (
            "[nodes.right]",
            "[nodes.right]\nabove = \"home\"",
            "router right and home cannot be joined: it is a host: name a node of kind = \"router\"",
        ),
        (
            "[nodes.right]",
            "[nodes.right]\nabove = \"left\"",
            "router right and left cannot be joined: no segment joins them",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        let wrong = Network::parse(&good.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(wrong.contains(error), "{wrong}");
    }
}
