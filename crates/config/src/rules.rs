//! Rules: what is to change in a stream's services, or in what its receivers get, when something is measured.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use outflow_graph::{ElementPlan, Input, Plan};
use outflow_packet::Level;
use toml::de::DeTable;

use crate::section::unknown;
use crate::value::{Fault, Given, Text, Value, type_fault};
use crate::{Invalid, Vocabulary, check_name, parse_duration, words};

/// Keys of a rule.
pub(crate) const RULE_KEYS: &[&str] = &["when", "for", "then", "until", "hold"];

/// The rules of a stream, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules(pub BTreeMap<String, Rule>);

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// When it begins to hold.
    pub when: Condition,
    /// How long that must be so.
    pub lasting: Duration,
    /// What then changes.
    pub then: Vec<Action>,
    /// When that is undone: as soon as `when` is no longer so, if nothing is said.
    pub until: Option<Condition>,
    /// How long it stays in any case, so that services do not swing to and fro.
    pub hold: Duration,
}

words! {
    /// What can be measured.
    pub enum Measure: "a measure" {
        /// CPU of an element, or of all elements of the stream: percent of a core.
        Cpu = "cpu",
        /// How long an element, or any of the stream, holds its thread at a time, about the longest of lately:
        /// milliseconds.
        Turn = "turn",
        /// 99th percentile, over the receivers, of the age of the oldest packet that waits: milliseconds.
        Delay = "delay",
        /// 99th percentile, over the receivers, of the loss that they report by RTCP: percent.
        Loss = "loss",
        /// Packets lost before they came here, of all that should have come lately: percent.
        SourceLoss = "source-loss",
    }
}

/// Something measured, compared with a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// What is measured.
    pub measure: Measure,
    /// Of which element.
    pub element: Option<String>,
    /// Whether it has to be above the bound; else below.
    pub above: bool,
    /// The bound, in thousandths of percent or of milliseconds.
    pub bound_milli: u64,
}

/// Something that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// "bypass E": the element lets everything pass.
    Bypass(String),
    /// "move E to C": the element runs in this context.
    Move(String, String),
    /// "give B from I": the branch is made of this.
    Give(String, Input),
    /// "lower to N", "lower B to N": receivers, or those of a branch, get no better level than this.
    Lower(Option<String>, Level),
}

impl Measure {
    /// Whether it is a time; else it is a share.
    fn is_time(self) -> bool {
        matches!(self, Measure::Delay | Measure::Turn)
    }
}

impl Condition {
    /// Whether it is so, for a value in percent or milliseconds.
    pub fn holds(&self, value: f64) -> bool {
        let bound = self.bound_milli as f64 / 1000.0;
        if self.above { value > bound } else { value < bound }
    }
}

impl Action {
    /// Whether it changes the services.
    pub fn is_of_services(&self) -> bool {
        !matches!(self, Action::Lower(..))
    }

    /// Changes a plan. Names that are not there are left alone; `check` finds them before.
    pub fn apply(&self, plan: &mut Plan) {
        let mut element = |name: &str, change: &dyn Fn(&mut ElementPlan)| {
            plan.elements.get_mut(name).into_iter().for_each(change);
        };
        match self {
            Action::Bypass(name) => element(name, &|element| element.bypass = true),
            Action::Move(name, context) => element(name, &|e| e.context = Some(context.clone())),
            Action::Give(branch, input) => {
                if let Some(inputs) = plan.branches.get_mut(branch) {
                    *inputs = vec![input.clone()];
                }
            }
            // It is for receivers, whatever the plan is.
            Action::Lower(..) => {}
        }
    }

    /// What it names that is not there.
    pub(crate) fn check(&self, plan: &Plan) -> Option<Invalid> {
        match self {
            Action::Bypass(name) | Action::Move(name, _) => missing("element", name, plan.elements.keys()),
            Action::Give(name, _) | Action::Lower(Some(name), _) => {
                missing("branch", name, plan.branches.keys())
            }
            Action::Lower(None, _) => None,
        }
    }
}

impl Condition {
    /// What it names that is not there.
    pub(crate) fn check(&self, plan: &Plan) -> Option<Invalid> {
        missing("element", self.element.as_ref()?, plan.elements.keys())
    }
}

/// That there is nothing of this name, if so.
fn missing<'n>(
    kind: &str,
    name: &String,
    mut known: impl Iterator<Item = &'n String> + Clone,
) -> Option<Invalid> {
    let possible: Vec<_> = known.clone().map(String::as_str).collect();
    let help = format!("possible: {}", possible.join(", "));
    (!known.any(|other| other == name)).then(|| Invalid::new(format!("there is no {kind} '{name}'"), help))
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.measure)?;
        if let Some(element) = &self.element {
            write!(f, " of {element}")?;
        }
        let unit = if self.measure.is_time() { "ms" } else { "%" };
        let sign = if self.above { ">" } else { "<" };
        write!(f, " {sign} {} {unit}", self.bound_milli as f64 / 1000.0)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Bypass(name) => write!(f, "bypass {name}"),
            Action::Move(name, context) => write!(f, "move {name} to {context}"),
            Action::Give(branch, input) => write!(f, "give {branch} from {input}"),
            Action::Lower(None, level) => write!(f, "lower to {level}"),
            Action::Lower(Some(branch), level) => write!(f, "lower {branch} to {level}"),
        }
    }
}

impl Text for Condition {
    const KIND: &'static str = "a condition";
    const EXAMPLE: &'static str = "cpu of shrink > 80 %";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        let wrong = |what: &str| {
            let help = "write it like \"cpu > 80 %\", \"cpu of shrink > 50 %\", \"turn > 5 ms\", \
                        \"delay > 20 ms\", \"loss > 1 %\" or \"source-loss > 1 %\"";
            Invalid::new(format!("'{text}' is no condition: {what}"), help)
        };
        let at = text.find(['<', '>']).ok_or_else(|| wrong("it compares nothing"))?;
        let (what, bound) = (text[..at].trim(), text[at + 1..].trim());
        let (measure, element) = match what.split_once(" of ") {
            Some((measure, element)) => (measure.trim(), Some(element.trim().to_owned())),
            None => (what, None),
        };
        let measure: Measure = measure.parse()?;
        if element.is_some() && !matches!(measure, Measure::Cpu | Measure::Turn) {
            return Err(wrong("only cpu and turn can be those of an element"));
        }
        let bound_milli = match measure {
            _ if measure.is_time() => parse_duration(bound)?.as_micros() as u64,
            _ => {
                let number = bound.strip_suffix('%').ok_or_else(|| wrong("a share is in percent"))?;
                let percent: f64 = number.trim().parse().map_err(|_| wrong("that is no number"))?;
                if !(0.0..=100_000.0).contains(&percent) {
                    return Err(wrong("no share is like that"));
                }
                (percent * 1000.0) as u64
            }
        };
        Ok(Condition { measure, element, above: text.as_bytes()[at] == b'>', bound_milli })
    }
}

impl Text for Action {
    const KIND: &'static str = "a change";
    const EXAMPLE: &'static str = "bypass shrink";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        let words: Vec<_> = text.split_whitespace().collect();
        match words.as_slice() {
            ["bypass", element] => Ok(Action::Bypass((*element).to_owned())),
            ["move", element, "to", context] => {
                Ok(Action::Move((*element).to_owned(), (*context).to_owned()))
            }
            ["give", branch, "from", input] => Ok(Action::Give((*branch).to_owned(), Input::parse(input))),
            ["lower", "to", level] => Ok(Action::Lower(None, lower_level(level)?)),
            ["lower", branch, "to", level] => {
                Ok(Action::Lower(Some((*branch).to_owned()), lower_level(level)?))
            }
            _ => {
                let help = "write it like \"bypass shrink\", \"move shrink to images\", \
                            \"give small from source\", \"lower to 3\" or \"lower small to 3\"";
                Err(Invalid::new(format!("'{text}' is no change"), help))
            }
        }
    }
}

/// Reads a level that is less than all.
fn lower_level(text: &str) -> Result<Level, Invalid> {
    let range = format!("write 2 to {}: the higher the number, the less is sent", Level::MAX);
    match text.parse() {
        Ok(Level::BEST) => Err(Invalid::new("level 1 is all there is, so this lowers nothing", range)),
        Ok(level) => Ok(level),
        Err(_) => Err(Invalid::new(format!("'{text}' is no level"), range)),
    }
}

impl Value for Rules {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        Self::read_among(given, &Vocabulary::default())
    }

    fn read_among(given: &Given<'_>, known: &Vocabulary) -> Result<Self, Fault> {
        let example = "[streams.stage.rules.busy]";
        let tables =
            given.get_ref().as_table().ok_or_else(|| type_fault(given, "a table of rules", example))?;
        let mut rules = BTreeMap::new();
        for (name, given) in tables {
            check_name(name.get_ref()).map_err(|invalid| (name.span(), invalid))?;
            let table = given.get_ref().as_table().ok_or_else(|| type_fault(given, "a table", example))?;
            let rule = rule(table, known)
                .map_err(|(span, invalid)| (span.unwrap_or_else(|| name.span()), invalid))?;
            rules.insert(name.get_ref().to_string(), rule);
        }
        Ok(Rules(rules))
    }
}

/// What is wrong, and where; `None` for the rule as a whole.
type RuleFault = (Option<core::ops::Range<usize>>, Invalid);

fn rule(table: &DeTable<'_>, known: &Vocabulary) -> Result<Rule, RuleFault> {
    let at = |(span, invalid): Fault| (Some(span), invalid);
    let (mut when, mut then, mut until) = (None, Vec::new(), None);
    let (mut lasting, mut hold) = (Duration::from_secs(5), Duration::from_secs(30));
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "when" => when = Some(Condition::read(value).map_err(at)?),
            "until" => until = Some(Condition::read(value).map_err(at)?),
            "for" => lasting = Duration::read(value).map_err(at)?,
            "hold" => hold = Duration::read(value).map_err(at)?,
            "then" => {
                let list = value.get_ref().as_array();
                let list =
                    list.ok_or_else(|| at(type_fault(value, "a list of changes", "[\"bypass shrink\"]")))?;
                then = list.iter().map(|one| Action::read(one).map_err(at)).collect::<Result<_, _>>()?;
            }
            other => {
                return Err((
                    Some(key.span()),
                    unknown(other, " in [streams.NAME.rules.NAME]", RULE_KEYS, &known.own_sections),
                ));
            }
        }
    }
    let missing = |key: &str, example: &str| {
        let help = format!("add it, as in {key} = {example}");
        (None, Invalid::new(format!("this rule has no '{key}'"), help))
    };
    let when = when.ok_or_else(|| missing("when", "\"cpu > 80 %\""))?;
    if then.is_empty() {
        return Err(missing("then", "[\"bypass shrink\"]"));
    }
    Ok(Rule { when, lasting, then, until, hold })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_they_are_written() {
        for text in [
            "cpu > 80 %",
            "cpu of shrink > 0.5 %",
            "turn > 5 ms",
            "turn of shrink < 1 ms",
            "delay > 20 ms",
            "loss < 1 %",
            "source-loss > 0 %",
        ] {
            assert_eq!(Condition::from_text(text).map(|c| c.to_string()), Ok(text.to_owned()));
        }
        let delay = Condition::from_text("delay > 1.5 s").expect("a condition");
        assert!(delay.holds(1500.1) && !delay.holds(1500.0));
        for text in ["cpu", "cpu > 80", "cpuu > 1 %", "loss of x > 1 %", "delay > 5 %", "cpu > -1 %"] {
            assert!(Condition::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn changes_are_made_to_what_they_name() {
        let written = [
            "bypass a",
            "move a to x",
            "give b from a.rest",
            "lower to 2",
            "lower b to 128",
            "lower to to 3",
        ];
        for text in written {
            assert_eq!(Action::from_text(text).map(|action| action.to_string()), Ok(text.to_owned()));
        }
        assert!(Action::from_text("drop a").is_err());
        let mut plan = Plan::default();
        plan.elements.insert("a".to_owned(), ElementPlan::default());
        plan.branches.insert("b".to_owned(), Vec::new());
        let actions = ["bypass a", "move a to x", "give b from a.rest"].map(Action::from_text);
        for action in actions.into_iter().map(|action| action.expect("a change")) {
            assert_eq!(action.check(&plan), None);
            action.apply(&mut plan);
        }
        let element = &plan.elements["a"];
        assert!(element.bypass && element.context.as_deref() == Some("x"));
        assert_eq!(plan.branches["b"], [Input::parse("a.rest")]);
        assert!(Action::Bypass("c".to_owned()).check(&plan).is_some());
        let check = |text| {
            let action = Action::from_text(text).expect("a change");
            assert!(!action.is_of_services());
            action.check(&plan).map(|invalid| invalid.what)
        };
        assert_eq!([check("lower to 3"), check("lower b to 3")], [None, None]);
        assert_eq!(check("lower c to 3").as_deref(), Some("there is no branch 'c'"));
    }

    #[test]
    fn levels_to_lower_to_are_less_than_all() {
        for (text, what) in [("1", "lowers nothing"), ("0", "is no level"), ("129", "is no level")] {
            let wrong = Action::from_text(&format!("lower to {text}")).expect_err("not lower");
            assert!(wrong.what.contains(what) && wrong.help.contains("2 to 128"), "{wrong:?}");
        }
        assert!(Action::from_text("lower b 3").is_err());
    }
}
