//! Services in virtual time: those of a configuration, with the very same plug-ins.

use outflow_sim::{Outcome, Scenario, ScenarioError, run};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/services.toml");
const TEXT: &str = include_str!("../scenarios/services.toml");

fn scenario() -> Scenario {
    Scenario::parse(TEXT, FILE).expect("the shipped scenario is valid")
}

fn played(branch: Option<&str>) -> Outcome {
    let mut scenario = scenario();
    scenario.receivers.branch = branch.map(str::to_owned);
    run(&scenario).expect("it can be played")
}

/// What is wrong with the shipped scenario once something in it stands otherwise.
fn refused(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "{from}");
    let played = Scenario::parse(&TEXT.replacen(from, to, 1), FILE).and_then(|scenario| run(&scenario));
    played.expect_err(to).to_string()
}

#[test]
fn plug_ins_give_the_same_for_the_same_seed() {
    let mut scenario = scenario();
    let first = run(&scenario).expect("it can be played");
    assert_eq!(Ok(&first), run(&scenario).as_ref());
    let mark = &first.elements["mark"];
    assert!(mark.packets_in > 1000 && mark.packets_in == mark.packets_out, "{mark:?}");
    assert_eq!((mark.faults, &mark.fault), (0, &None));
    assert_eq!(first.healthy.goodput(), 1.0);
    scenario.seed += 1;
    let other = run(&scenario).expect("it can be played");
    assert!(other.digest != first.digest && other.content != first.content);
}

#[test]
fn a_filter_delivers_less_and_says_what_it_left_out() {
    let (all, keys) = (played(Some("all")), played(Some("keys")));
    assert!(keys.delivered * 2 < all.delivered, "{} of {}", keys.delivered, all.delivered);
    let thin = &keys.elements["thin"];
    assert_eq!(keys.drops["filtered"], thin.packets_in - thin.packets_out);
    assert_eq!(keys.healthy_lost, 0, "what is left out is no loss");
    // A frame of each second; the last one may be one.
    assert!((0.04..0.06).contains(&keys.healthy.goodput()), "{}", keys.healthy.goodput());
    assert!(all.drops.is_empty() && all.elements["thin"].packets_in == 0, "what is not wanted rests");
}

#[test]
fn a_branch_through_which_all_passes_is_the_stream_itself() {
    let (stream, all) = (played(None), played(Some("all")));
    assert_eq!((stream.digest, stream.content), (all.digest, all.content));
}

#[test]
fn a_transport_stream_goes_out_by_rtp() {
    let outcome = played(Some("ts"));
    assert!(outcome.delivered > 1000 && outcome.healthy_lost == 0, "{outcome:?}");
    assert!(outcome.healthy.goodput() > 0.9, "{}", outcome.healthy.goodput());
}

#[test]
fn what_cannot_be_played_says_why_and_what_to_do() {
    let list = "services = [\"to-ts\", { element = \"external\", command = [\"cat\"] }]";
    let external = refused("services = [\"pass\"]", list);
    assert!(external.contains("clock of its own") && external.contains("plug-in in its place"), "{external}");
    let images = refused("services = [\"pass\"]", "services = [\"gray\"]");
    assert!(images.contains("scenarios/services.toml:") && images.contains("takes raw video"), "{images}");
    let typo = refused("services = [\"pass\"]", "services = [\"pas\"]");
    assert!(typo.contains("did you mean \"pass\"?"), "{typo}");
    let branch = refused("branch = \"marked\"", "branch = \"market\"");
    assert!(branch.contains("there are all, keys, marked, ts"), "{branch}");
    let missing = refused("watermark.wasm", "nothing.wasm");
    assert!(missing.contains("element 'mark'") && missing.contains("cannot be read"), "{missing}");
    let picky = refused("watermark.wasm", "gray.wasm");
    assert!(picky.contains("'mark': the plug-in refuses"), "{picky}");
    let text = TEXT.replacen("[relay.branches.all]", "[relay.branch.all]", 1);
    let key = Scenario::parse(&text, FILE).expect_err("no such table");
    assert!(matches!(&key, ScenarioError::Syntax(words) if words.contains("branch")), "{key}");
}
