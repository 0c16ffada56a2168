//! Rules of the streams, and where their services run: what is measured is compared, and what follows
//! from it is decided here; carrying it out is the supervisor's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use outflow_config::{Action, Condition, Config, ContextChoice, Measure, Rule, StreamConfig};
use outflow_engine::PLUGIN_CONTEXT;
use outflow_engine::message::{ElementState, RelayState, StreamState};
use outflow_graph::Plan;
use outflow_relay::LevelBounds;

use crate::limits::{
    OWN_CONTEXT_ABOVE_MS, OWN_CONTEXT_ABOVE_PERCENT, OWN_CONTEXT_AFTER, OWN_CONTEXT_BELOW_MS,
    OWN_CONTEXT_BELOW_PERCENT, OWN_CONTEXT_HOLD,
};

/// The rules of these names are the relay's own: services that take much of a core, or hold it for long at a time,
/// get a context.
const OWN_CONTEXT: [&str; 2] = ["(own context)", "(own context: long turns)"];

/// How all rules stand.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// By stream and rule.
    standing: BTreeMap<(String, String), Standing>,
    /// The configuration as it was looked at last.
    config: Arc<Config>,
    /// Its streams that are under rules; the others are not looked at.
    ruled: BTreeMap<String, Ruled>,
    /// A thread more can run while one of the workers does.
    has_room: bool,
}

/// A stream under rules.
#[derive(Debug)]
struct Ruled {
    rules: Vec<(String, Rule)>,
    /// What came in and was lost when it was last looked at.
    counts: Option<(u64, u64)>,
}

/// How a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Its condition holds since then, but not long enough.
    Rising(Instant),
    /// It is in force since then.
    InForce(Instant),
}

/// A rule begins or ends to be in force.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decision {
    /// The stream.
    pub(crate) stream: String,
    /// The rule.
    pub(crate) rule: String,
    /// Whether it is in force from now on.
    pub(crate) begins: bool,
    /// What was measured, and what it was compared with.
    pub(crate) why: String,
    /// What the rule changes; nothing where the configuration has it no more.
    pub(crate) changes: Vec<Action>,
}

impl Rules {
    /// `has_room`: a thread more can run while one of the workers does.
    pub(crate) fn new(has_room: bool) -> Self {
        Rules { has_room, ..Rules::default() }
    }

    /// Looks at what is measured now. Returns what is to be done; it counts as done.
    pub(crate) fn look(&mut self, now: Instant, state: &RelayState, config: &Arc<Config>) -> Vec<Decision> {
        let gone = self.follow(config);
        let (mut decisions, mut ruled) = (Vec::new(), std::mem::take(&mut self.ruled));
        for (name, Ruled { rules, counts: before }) in &mut ruled {
            let from = state.streams.partition_point(|stream| stream.name < *name);
            for stream in state.streams[from..].iter().take_while(|stream| stream.name == *name) {
                let measured = Measured::new(stream, before.replace(counts(stream)));
                for (name, rule) in rules.iter() {
                    decisions.extend(self.judge(now, stream, (name, rule), &measured));
                }
            }
        }
        self.ruled = ruled;
        decisions.extend(gone);
        decisions
    }

    /// Follows what changed in the configuration. Returns the end of rules that it has no more.
    fn follow(&mut self, config: &Arc<Config>) -> Vec<Decision> {
        if Arc::ptr_eq(&self.config, config) {
            return Vec::new();
        }
        let before = std::mem::replace(&mut self.config, Arc::clone(config));
        let is_same = |name: &str, of: &Arc<StreamConfig>| {
            before.streams.get(name).is_some_and(|before| Arc::ptr_eq(before, of))
        };
        for (name, of) in config.streams.iter().filter(|(name, of)| !is_same(name, of)) {
            let counts = self.ruled.remove(name).and_then(|ruled| ruled.counts);
            let own = own_context(of).map(|(name, rule)| (name.to_owned(), rule));
            let rules: Vec<_> = of.rules.0.clone().into_iter().chain(own).collect();
            if !rules.is_empty() {
                self.ruled.insert(name.clone(), Ruled { rules, counts });
            }
        }
        self.ruled.retain(|name, _| config.streams.contains_key(name));
        let is_there = |(stream, rule): &(String, String)| {
            let of = config.streams.get(stream);
            of.is_some_and(|of| of.rules.0.contains_key(rule) || OWN_CONTEXT.contains(&rule.as_str()))
        };
        let gone = self.standing.extract_if(.., |key, _| !is_there(key));
        let ended = gone.filter(|(_, standing)| matches!(standing, Standing::InForce(_)));
        let decision = |((stream, rule), _)| {
            let why = "the configuration has it no more".to_owned();
            Decision { stream, rule, begins: false, why, changes: Vec::new() }
        };
        ended.map(decision).collect()
    }

    fn judge(
        &mut self,
        now: Instant,
        stream: &StreamState,
        (name, rule): (&str, &Rule),
        measured: &Measured,
    ) -> Option<Decision> {
        let key = (stream.name.clone(), name.to_owned());
        let holds = measured.holds(stream, &rule.when);
        let (next, begins) = match self.standing.get(&key).copied() {
            None if !holds => return None,
            None => (Some(Standing::Rising(now)), None),
            Some(Standing::Rising(_)) if !holds => (None, None),
            Some(Standing::Rising(since)) if now.duration_since(since) < rule.lasting => return None,
            Some(Standing::Rising(_)) => (Some(Standing::InForce(now)), Some(true)),
            Some(Standing::InForce(since)) => {
                let over = rule.until.as_ref().map_or(!holds, |until| measured.holds(stream, until));
                if !over || now.duration_since(since) < rule.hold {
                    return None;
                }
                (None, Some(false))
            }
        };
        match next {
            Some(standing) => self.standing.insert(key, standing),
            None => self.standing.remove(&key),
        };
        let condition =
            if begins == Some(false) { rule.until.as_ref().unwrap_or(&rule.when) } else { &rule.when };
        let why = format!("{condition}: it is {:.2}", measured.value(stream, condition));
        let (stream, rule, changes) = (stream.name.clone(), name.to_owned(), rule.then.clone());
        begins.map(|begins| Decision { stream, rule, begins, why, changes })
    }

    /// The plan of a stream as it is configured, with what says where its elements run.
    pub(crate) fn placed(&self, name: &str, config: &StreamConfig) -> Plan {
        let mut plan = config.plan();
        if config.contexts == ContextChoice::Auto && self.has_room {
            keep_apart(name, &mut plan);
        }
        plan
    }

    /// The plan of a stream with the changes of all rules that are in force.
    pub(crate) fn plan(&self, name: &str, config: &StreamConfig) -> Plan {
        let mut plan = self.placed(name, config);
        self.changes(name, config).iter().for_each(|action| action.apply(&mut plan));
        plan
    }

    /// The levels to which all rules that are in force lower receivers of a stream.
    pub(crate) fn bounds(&self, name: &str, config: &StreamConfig) -> LevelBounds {
        let mut bounds = LevelBounds::default();
        for action in self.changes(name, config) {
            if let Action::Lower(branch, to) = action {
                bounds.lower(branch.as_deref(), to);
            }
        }
        bounds
    }

    /// What all rules that are in force say of a stream.
    fn changes(&self, name: &str, config: &StreamConfig) -> Vec<Action> {
        let own: Vec<_> = own_context(config).collect();
        let rules = config.rules.0.iter().map(|(name, rule)| (name.as_str(), rule));
        let rules = rules.chain(own.iter().map(|(name, rule)| (*name, rule)));
        let is_in_force = |rule: &str| {
            let key = (name.to_owned(), rule.to_owned());
            matches!(self.standing.get(&key), Some(Standing::InForce(_)))
        };
        rules.filter(|(name, _)| is_in_force(name)).flat_map(|(_, rule)| rule.then.clone()).collect()
    }

    /// Names of the rules of a stream that are in force.
    pub(crate) fn in_force(&self, stream: &str) -> Vec<String> {
        let of = self.standing.iter().filter(|((of, _), _)| of == stream);
        let in_force = of.filter(|(_, standing)| matches!(standing, Standing::InForce(_)));
        in_force.map(|((_, rule), _)| rule.clone()).collect()
    }
}

/// Plug-ins get a context of the stream's own, unless the plan says where elements run: whatever they do,
/// no other stream waits for it.
fn keep_apart(name: &str, plan: &mut Plan) {
    if plan.elements.values().all(|element| element.context.is_none() && element.lanes <= 1) {
        for element in plan.elements.values_mut().filter(|element| element.kind == "wasm") {
            element.context = Some(format!("{PLUGIN_CONTEXT}{name}"));
        }
    }
}

/// Services that name no context move into one of the stream's own when they take much of a core, or much at a time:
/// the stream's worker is for its receivers.
fn own_context(config: &StreamConfig) -> impl Iterator<Item = (&'static str, Rule)> + use<> {
    let plan = config.plan();
    let names_none = plan.elements.values().all(|element| element.context.is_none());
    let may_move = config.contexts == ContextChoice::Auto && names_none;
    let context = plan.elements.keys().next().cloned().filter(|_| may_move);
    let bounds = [
        (Measure::Cpu, OWN_CONTEXT_ABOVE_PERCENT, OWN_CONTEXT_BELOW_PERCENT),
        (Measure::Turn, OWN_CONTEXT_ABOVE_MS, OWN_CONTEXT_BELOW_MS),
    ];
    context.into_iter().flat_map(move |context| {
        let then = plan.elements.keys().map(|name| Action::Move(name.clone(), context.clone()));
        let then: Vec<_> = then.collect();
        OWN_CONTEXT.into_iter().zip(bounds).map(move |(name, (measure, most, least))| {
            let condition =
                |above, bound: u64| Condition { measure, element: None, above, bound_milli: bound * 1000 };
            let rule = Rule {
                when: condition(true, most),
                lasting: OWN_CONTEXT_AFTER,
                then: then.clone(),
                until: Some(condition(false, least)),
                hold: OWN_CONTEXT_HOLD,
            };
            (name, rule)
        })
    })
}

/// Packets that came in, and that were lost before.
fn counts(stream: &StreamState) -> (u64, u64) {
    (stream.source.packets, stream.source.lost)
}

/// What is measured of a stream, as far as it is not in its state.
#[derive(Debug)]
struct Measured {
    source_loss_percent: f64,
}

impl Measured {
    fn new(stream: &StreamState, before: Option<(u64, u64)>) -> Self {
        let (packets, lost) = counts(stream);
        let (packets_before, lost_before) = before.unwrap_or((packets, lost));
        let came = packets.saturating_sub(packets_before) as f64;
        let missed = lost.saturating_sub(lost_before) as f64;
        let all = came + missed;
        Measured { source_loss_percent: if all > 0.0 { 100.0 * missed / all } else { 0.0 } }
    }

    fn holds(&self, stream: &StreamState, condition: &Condition) -> bool {
        condition.holds(self.value(stream, condition))
    }

    /// In percent or milliseconds.
    fn value(&self, stream: &StreamState, condition: &Condition) -> f64 {
        match condition.measure {
            Measure::Cpu => elements(stream, condition).map(|element| element.cpu_percent).sum(),
            Measure::Turn => {
                let longest = elements(stream, condition).map(|element| element.turn_us).max();
                longest.map_or(0.0, |longest_us| longest_us as f64 / 1000.0)
            }
            Measure::Delay => p99(stream.receivers.iter().map(|receiver| receiver.queue_delay_ms as f64)),
            Measure::Loss => {
                let reports = stream.receivers.iter().flat_map(|receiver| &receiver.reports);
                p99(reports.map(|report| 100.0 * report.fraction_lost))
            }
            Measure::SourceLoss => self.source_loss_percent,
        }
    }
}

/// The elements of a stream that a condition is about.
fn elements<'s>(
    stream: &'s StreamState,
    condition: &'s Condition,
) -> impl Iterator<Item = &'s ElementState> + 's {
    let is_meant = |name: &str| condition.element.as_deref().is_none_or(|element| element == name);
    stream.elements.iter().filter(move |element| is_meant(&element.name))
}

/// The 99th percentile by the nearest rank; 0 of nothing.
fn p99(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    let rank = (values.len() * 99).div_ceil(100);
    if rank == 0 {
        return 0.0;
    }
    let (_, value, _) = values.select_nth_unstable_by(rank - 1, f64::total_cmp);
    *value
}

#[cfg(test)]
mod tests {
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
        let (config, mut rules, now) =
            (config(&format!("{RULED}{levels}")), Rules::default(), Instant::now());
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
        let other =
            "[streams.plain.rules.busy]\nwhen = \"cpu > 80 %\"\nfor = \"5 s\"\nthen = [\"lower to 2\"]\n";
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
        let measured = Measured::new(&stream, Some((100, 10)));
        assert_eq!(measured.source_loss_percent, 10.0);
        assert_eq!(p99((1..=200).map(f64::from)), 198.0);
        assert_eq!(p99([].into_iter()), 0.0);
    }
}
