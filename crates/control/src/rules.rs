//! Rules of the streams, and where their services run: what is measured is compared, and what follows
//! from it is decided here; carrying it out is the supervisor's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use outflow_config::{Action, Condition, Config, ContextChoice, Measure, Rule, StreamConfig};
use outflow_context::PLUGIN_CONTEXT;
use outflow_engine::message::{ElementState, RelayState, StreamState};
use outflow_graph::Plan;
use outflow_graph::limits::LONG_TURN;
use outflow_relay::LevelBounds;

use crate::limits::{
    OWN_CONTEXT_ABOVE_MS, OWN_CONTEXT_ABOVE_PERCENT, OWN_CONTEXT_AFTER, OWN_CONTEXT_BELOW_MS,
    OWN_CONTEXT_BELOW_PERCENT, OWN_CONTEXT_HOLD,
};

/// The rules of these names are the relay's own: services that take much of a core, or hold it for long at a time,
/// get a context.
const OWN_CONTEXT: [&str; 2] = ["(own context)", LONG_TURNS];

/// A single turn that is too long has this one be in force, too, and at once.
const LONG_TURNS: &str = "(own context: long turns)";

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
    /// What was counted when it was last looked at.
    counts: Option<Counts>,
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
                let measured = Measured::new(stream, before.replace(Counts::of(stream)));
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
        let at_once = name == LONG_TURNS && measured.long_turns > 0;
        let (next, begins) = match self.standing.get(&key).copied() {
            Some(Standing::InForce(_)) if at_once => (Some(Standing::InForce(now)), None),
            _ if at_once => (Some(Standing::InForce(now)), Some(true)),
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
        let why = match measured.long_turns {
            turns if at_once => format!("turns of more than {} ms: {turns}", LONG_TURN.as_millis()),
            _ => format!("{condition}: it is {:.2}", measured.value(stream, condition)),
        };
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

/// What is counted of a stream.
#[derive(Debug, Clone, Copy)]
struct Counts {
    /// Packets that came in.
    packets: u64,
    /// Those that were lost before.
    lost: u64,
    /// Turns of its elements that were too long.
    long_turns: u64,
}

impl Counts {
    fn of(stream: &StreamState) -> Self {
        let long_turns = stream.elements.iter().map(|element| element.long_turns).sum();
        Counts { packets: stream.source.packets, lost: stream.source.lost, long_turns }
    }
}

/// What is measured of a stream, as far as it is not in its state.
#[derive(Debug)]
struct Measured {
    source_loss_percent: f64,
    /// Turns that were too long, since the last look.
    long_turns: u64,
}

impl Measured {
    fn new(stream: &StreamState, before: Option<Counts>) -> Self {
        let now = Counts::of(stream);
        let came_before = before.unwrap_or(now);
        let came = now.packets.saturating_sub(came_before.packets) as f64;
        let missed = now.lost.saturating_sub(came_before.lost) as f64;
        let all = came + missed;
        Measured {
            source_loss_percent: if all > 0.0 { 100.0 * missed / all } else { 0.0 },
            long_turns: now.long_turns.saturating_sub(before.map_or(0, |before| before.long_turns)),
        }
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
mod tests;
