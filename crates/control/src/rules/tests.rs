use std::time::Duration;

use outflow_config::Protocols;
use outflow_engine::message::ElementState;

use super::*;

const RULED: &str = r#"
[streams.s]
[streams.s.elements.heavy]
element = "pass"
context = "here"
[streams.s.branches.b]
input = "heavy"
[streams.s.rules.busy]
when = "cpu of heavy > 80 %"
for = "5 s"
then = ["bypass heavy"]
until = "cpu of heavy < 40 %"
hold = "10 s"
"#;

fn config(text: &str) -> Arc<Config> {
    Arc::new(Config::parse(text, "a.toml", &Protocols::default()).unwrap_or_else(|e| panic!("{e}")))
}

fn state(cpu_percent: f64) -> RelayState {
    let element = ElementState { name: "heavy".to_owned(), cpu_percent, ..ElementState::default() };
    let stream = StreamState { name: "s".to_owned(), elements: vec![element], ..StreamState::default() };
    RelayState { streams: vec![stream], ..RelayState::default() }
}

#[test]
fn a_rule_is_in_force_after_a_while_and_until_another_bound() {
    let (config, mut rules, zero) = (config(RULED), Rules::default(), Instant::now());
    let look = |rules: &mut Rules, second: u64, cpu: f64| -> Vec<bool> {
        let decisions = rules.look(zero + Duration::from_secs(second), &state(cpu), &config);
        decisions.iter().map(|decision| decision.begins).collect()
    };
    assert_eq!(look(&mut rules, 0, 90.0), [false; 0]);
    assert_eq!(look(&mut rules, 4, 90.0), [false; 0]);
    assert_eq!(look(&mut rules, 4, 70.0), [false; 0], "it begins again");
    assert_eq!(look(&mut rules, 5, 90.0), [false; 0]);
    assert_eq!(look(&mut rules, 10, 90.0), [true]);
    assert!(rules.plan("s", &config.streams["s"]).elements["heavy"].bypass);
    assert_eq!(rules.in_force("s"), ["busy"]);
    assert_eq!(look(&mut rules, 15, 10.0), [false; 0], "it is held");
    assert_eq!(look(&mut rules, 20, 60.0), [false; 0], "between the bounds nothing changes");
    assert_eq!(look(&mut rules, 21, 10.0), [false]);
    assert!(!rules.plan("s", &config.streams["s"]).elements["heavy"].bypass);
}

#[test]
fn the_lowest_of_all_levels_in_force_holds_until_its_rule_ends_or_is_gone() {
    let levels = r#"
[streams.s.rules.less]
when = "cpu of heavy > 50 %"
for = "0 s"
then = ["lower b to 3", "lower to 2"]
hold = "0 s"
[streams.s.rules.least]
when = "cpu of heavy > 80 %"
for = "0 s"
then = ["lower to 5"]
hold = "0 s"
"#;
    let (config, mut rules, now) = (config(&format!("{RULED}{levels}")), Rules::default(), Instant::now());
    let mut look = |config: &Arc<Config>, cpu: f64| {
        rules.look(now, &state(cpu), config);
        let decisions = rules.look(now, &state(cpu), config);
        let bounds = config.streams.get("s").map(|of| rules.bounds("s", of)).unwrap_or_default();
        let of_branch = bounds.branches.get("b").map(|level| level.number());
        let changes = decisions.into_iter().flat_map(|d| d.changes).map(|change| change.to_string());
        ((bounds.stream.number(), of_branch), changes.collect::<Vec<_>>())
    };
    let all = ["lower to 5", "lower b to 3", "lower to 2"].map(str::to_owned).to_vec();
    assert_eq!(look(&config, 90.0), ((5, Some(3)), all));
    assert_eq!(look(&config, 60.0), ((2, Some(3)), Vec::new()), "ended at the first of two looks");
    let without = self::config(RULED);
    assert_eq!(rules.bounds("s", &without.streams["s"]), LevelBounds::default());
    let gone = rules.look(now, &state(60.0), &without);
    assert_eq!(gone.iter().map(|d| (&*d.rule, d.begins)).collect::<Vec<_>>(), [("less", false)]);
    assert!(gone[0].changes.is_empty() && rules.in_force("s").is_empty());
}

#[test]
fn only_streams_under_rules_are_looked_at_as_the_configuration_changes() {
    let plain = format!("[streams.before]\n[streams.plain]\n{RULED}");
    let (mut rules, now) = (Rules::default(), Instant::now());
    let mut ruled = |text: &str| {
        rules.look(now, &state(0.0), &config(text));
        rules.ruled.iter().map(|(name, ruled)| (name.clone(), ruled.rules.len())).collect::<Vec<_>>()
    };
    let s = || ("s".to_owned(), 1);
    assert_eq!(ruled(&plain), [s()]);
    let other = "[streams.plain.rules.busy]\nwhen = \"cpu > 80 %\"\nfor = \"5 s\"\nthen = [\"lower to 2\"]\n";
    assert_eq!(ruled(&format!("{plain}{other}")), [("plain".to_owned(), 1), s()]);
    assert!(ruled("[streams.plain]").is_empty());
}

#[test]
fn heavy_services_get_a_context_unless_they_name_one() {
    let own =
        RULED.replace("context = \"here\"", "").replace("[streams.s.rules.busy]", "[streams.s.rules.x]");
    let (config, mut rules, zero) = (config(&own), Rules::default(), Instant::now());
    rules.look(zero, &state(70.0), &config);
    let decisions = rules.look(zero + OWN_CONTEXT_AFTER, &state(70.0), &config);
    assert_eq!(decisions.iter().map(|d| d.rule.as_str()).collect::<Vec<_>>(), [OWN_CONTEXT[0]]);
    assert_eq!(rules.plan("s", &config.streams["s"]).elements["heavy"].context.as_deref(), Some("heavy"));
}

#[test]
fn services_that_hold_the_worker_for_long_get_a_context_however_seldom_they_do() {
    let own =
        RULED.replace("context = \"here\"", "").replace("[streams.s.rules.busy]", "[streams.s.rules.x]");
    let (config, mut rules, zero) = (config(&own), Rules::default(), Instant::now());
    let state = |turn_us| {
        let mut state = state(3.0);
        state.streams[0].elements[0].turn_us = turn_us;
        state
    };
    let after = zero + OWN_CONTEXT_AFTER;
    for turn_us in [4_900, 5_100] {
        rules.look(zero, &state(turn_us), &config);
        let of = rules.look(after, &state(turn_us), &config);
        let decided: Vec<_> = of.iter().map(|decision| decision.rule.as_str()).collect();
        assert_eq!(decided, if turn_us > 5_000 { &OWN_CONTEXT[1..] } else { &[] });
    }
    assert_eq!(rules.plan("s", &config.streams["s"]).elements["heavy"].context.as_deref(), Some("heavy"));
    let ended = rules.look(after + OWN_CONTEXT_HOLD, &state(1_900), &config);
    assert_eq!(ended.iter().map(|decision| decision.begins).collect::<Vec<_>>(), [false]);
}

#[test]
fn one_turn_that_is_far_too_long_is_enough() {
    let own =
        RULED.replace("context = \"here\"", "").replace("[streams.s.rules.busy]", "[streams.s.rules.x]");
    let (config, mut rules, zero) = (config(&own), Rules::default(), Instant::now());
    let mut look = |after: Duration, long_turns| -> Vec<(String, bool)> {
        let mut state = state(3.0);
        (state.streams[0].elements[0].long_turns, state.streams[0].elements[0].turn_us) = (long_turns, 900);
        let of = rules.look(zero + after, &state, &config);
        of.into_iter().map(|decision| (decision.rule, decision.begins)).collect()
    };
    let second = Duration::from_secs(1);
    assert_eq!(look(Duration::ZERO, 0), []);
    assert_eq!(look(second, 1), [(LONG_TURNS.to_owned(), true)], "seen at once, though forgotten by now");
    assert_eq!(look(second * 31, 2), [], "with another one, it is held on");
    assert_eq!(look(second + OWN_CONTEXT_HOLD, 2), []);
    assert_eq!(look(second * 31 + OWN_CONTEXT_HOLD, 2), [(LONG_TURNS.to_owned(), false)]);
    assert_eq!(look(second * 32 + OWN_CONTEXT_HOLD, 2), []);
    let elsewhere = self::config(RULED);
    let mut long = state(3.0);
    long.streams[0].elements[0].long_turns = 1;
    assert_eq!(Rules::default().look(zero, &long, &elsewhere), [], "it names a context");
    assert_eq!(Rules::default().look(zero, &long, &config).len(), 1, "turns before the first look count");
}

#[test]
fn plug_ins_are_kept_apart_unless_contexts_are_named() {
    let text = r#"
[streams.s.elements.plain]
element = "pass"
[streams.s.elements.plugin]
element = "wasm"
file = "a.wasm"
input = "plain"
[streams.s.branches.b]
input = "plugin"
"#;
    let placed = |text: &str, has_room| {
        let plan = Rules::new(has_room).plan("s", &config(text).streams["s"]);
        plan.elements.into_values().map(|element| element.context).collect::<Vec<_>>()
    };
    let contexts = |text: &str| placed(text, true);
    assert_eq!(contexts(text), [None, Some("plug-ins of s".to_owned())]);
    assert_eq!(placed(text, false), [None, None], "there is one processor for all");
    let named = text.replace("\"pass\"", "\"pass\"\ncontext = \"here\"");
    assert_eq!(contexts(&named), [Some("here".to_owned()), None]);
    let in_lanes = text.replace("\"a.wasm\"", "\"a.wasm\"\nlanes = 2");
    assert_eq!(contexts(&in_lanes), [None, None], "they have their own");
}

#[test]
fn loss_is_that_since_the_last_look() {
    let mut stream = StreamState { name: "s".to_owned(), ..StreamState::default() };
    (stream.source.packets, stream.source.lost) = (190, 20);
    let before = Counts { packets: 100, lost: 10, long_turns: 0 };
    let measured = Measured::new(&stream, Some(before));
    assert_eq!(measured.source_loss_percent, 10.0);
    assert_eq!(p99((1..=200).map(f64::from)), 198.0);
    assert_eq!(p99([].into_iter()), 0.0);
}
