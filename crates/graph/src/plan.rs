//! What a configuration says of a stream's services: elements by name, what goes where, and which
//! branches come out. A plan is checked before anything is made of it.

use std::collections::{BTreeMap, BTreeSet};

use super::catalogue::{CATALOGUE, find};
use super::content::Contents;
use super::fit::{Fit, check_settings};
use super::settings::Settings;
use crate::limits::{BRANCHES_MAX, ELEMENTS_MAX};

/// The name of what comes in: the stream itself.
pub const SOURCE: &str = "source";

/// The services of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The elements, by name.
    pub elements: BTreeMap<String, ElementPlan>,
    /// The branches that come out, by name: what each is made of.
    pub branches: BTreeMap<String, Vec<Input>>,
}

/// An element of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ElementPlan {
    /// What it is: a name of the catalogue.
    pub kind: String,
    /// What was chosen for its options.
    pub settings: Settings,
    /// What goes into it; the stream itself if nothing is said.
    pub inputs: Vec<Input>,
    /// The execution context that it runs in; that of what it takes from if none is named, which is the
    /// stream's own worker in the beginning.
    pub context: Option<String>,
    /// It works in this many lanes at a time, each a thread, frame by frame in turn; what comes out is in
    /// the order in which it came in. 0 and 1 are one.
    pub lanes: usize,
    /// It lets everything pass as it is.
    pub bypass: bool,
    /// How many of [`BUDGET_PARTS`](crate::limits::BUDGET_PARTS) parts of a core it may take, if that is
    /// limited.
    pub budget: Option<u64>,
}

/// One output of something in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// An element, or [`SOURCE`].
    pub from: String,
    /// Its output; the first if none is named.
    pub output: Option<String>,
}

impl Input {
    /// What comes in from the source.
    pub fn source() -> Self {
        Input { from: SOURCE.to_owned(), output: None }
    }

    /// As it is written: a name, or "name.output".
    pub fn parse(text: &str) -> Self {
        match text.split_once('.') {
            Some((from, output)) => Input { from: from.to_owned(), output: Some(output.to_owned()) },
            None => Input { from: text.to_owned(), output: None },
        }
    }
}

impl core::fmt::Display for Input {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.from)?;
        self.output.as_ref().map_or(Ok(()), |output| write!(f, ".{output}"))
    }
}

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// Where.
    pub at: At,
    /// What.
    pub what: String,
    /// What to do.
    pub help: String,
}

/// A place in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// The kind of an element.
    Kind(String),
    /// The inputs of an element.
    Inputs(String),
    /// In how many lanes an element works.
    Lanes(String),
    /// An option of an element.
    Setting(String, String),
    /// A branch.
    Branch(String),
    /// All of it.
    All,
}

/// A plan that fits together.
#[derive(Debug)]
pub struct Checked<'p> {
    /// The elements, each behind all that it takes from, with the number of their stage: 0 is the
    /// stream's own worker, 1 the first of the contexts.
    pub order: Vec<(&'p str, usize)>,
    /// The execution contexts by name, in the order in which packets go through them; the stream's
    /// own worker comes before them and is not among them.
    pub contexts: Vec<&'p str>,
    /// In how many lanes each of them works.
    pub lanes: Vec<usize>,
}

impl Plan {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty() && self.branches.is_empty()
    }

    /// Checks that everything is there and fits together, for a stream that may carry `worlds`.
    ///
    /// # Errors
    /// All that is wrong with names and wires, or else all that does not fit.
    pub fn check(&self, worlds: Contents) -> Result<Checked<'_>, Vec<PlanError>> {
        let mut errors = self.check_names();
        if !errors.is_empty() {
            return Err(errors);
        }
        let sorted = self.sorted().map_err(|error| vec![error])?;
        let contexts = self.contexts(&sorted).map_err(|error| vec![error])?;
        let order = self.staged(&sorted, &contexts);
        let lanes: Vec<_> = contexts.iter().map(|context| self.lanes(context)).collect();
        let laned = |stage: usize| {
            let context = stage.checked_sub(1)?;
            (lanes[context] > 1).then_some(contexts[context])
        };
        errors.extend(Fit::new(self, worlds).check(order.iter().map(|(name, stage)| (*name, laned(*stage)))));
        if errors.is_empty() { Ok(Checked { order, contexts, lanes }) } else { Err(errors) }
    }

    fn check_names(&self) -> Vec<PlanError> {
        let mut errors = Vec::new();
        if self.elements.len() > ELEMENTS_MAX || self.branches.len() > BRANCHES_MAX {
            let what = format!("{} elements and {} branches", self.elements.len(), self.branches.len());
            let help = format!("a stream has {ELEMENTS_MAX} elements and {BRANCHES_MAX} branches at most");
            errors.push(PlanError { at: At::All, what, help });
        }
        for (name, element) in &self.elements {
            match find(&element.kind) {
                Some(kind) => errors.extend(check_settings(name, kind, &element.settings)),
                None => errors.push(PlanError {
                    at: At::Kind(name.clone()),
                    what: format!("there is no element \"{}\"", element.kind),
                    help: format!("possible: {}", names().join(", ")),
                }),
            }
            let inputs = element.inputs.iter().filter_map(|input| self.check_input(input));
            errors.extend(inputs.map(|(what, help)| PlanError { at: At::Inputs(name.clone()), what, help }));
        }
        for (name, inputs) in &self.branches {
            let inputs = inputs.iter().filter_map(|input| self.check_input(input));
            errors.extend(inputs.map(|(what, help)| PlanError { at: At::Branch(name.clone()), what, help }));
        }
        errors
    }

    fn check_input(&self, input: &Input) -> Option<(String, String)> {
        if input.from == SOURCE {
            let output = input.output.as_ref()?;
            return Some((format!("the source has no output '{output}'"), format!("write \"{SOURCE}\"")));
        }
        let Some(element) = self.elements.get(&input.from) else {
            let known: Vec<_> =
                [SOURCE].into_iter().chain(self.elements.keys().map(String::as_str)).collect();
            return Some((
                format!("there is no element named '{}' here", input.from),
                format!("possible: {}", known.join(", ")),
            ));
        };
        let (kind, output) = (find(&element.kind)?, input.output.as_ref()?);
        kind.output(output).is_none().then(|| {
            (
                format!("'{}' has no output '{output}'", input.from),
                format!("possible: {}", kind.outputs.join(", ")),
            )
        })
    }

    /// What goes into an element.
    pub(super) fn inputs(&self, name: &str) -> Vec<Input> {
        match self.elements.get(name) {
            Some(element) if !element.inputs.is_empty() => element.inputs.clone(),
            _ => vec![Input::source()],
        }
    }

    /// The elements, each behind all that it takes from.
    fn sorted(&self) -> Result<Vec<&str>, PlanError> {
        let mut left: Vec<&str> = self.elements.keys().map(String::as_str).collect();
        let mut done: Vec<&str> = Vec::new();
        while !left.is_empty() {
            let is_next = |name: &&str| {
                self.inputs(name).iter().all(|i| i.from == SOURCE || done.contains(&i.from.as_str()))
            };
            let Some(at) = left.iter().position(is_next) else {
                return Err(PlanError {
                    at: At::Inputs(left[0].to_owned()),
                    what: format!("packets would go in circles: {}", left.join(", ")),
                    help: "let every element take only from what comes before it".to_owned(),
                });
            };
            done.push(left.remove(at));
        }
        Ok(done)
    }

    /// The context that an element names; several lanes are one of their own.
    fn context<'p>(&'p self, name: &'p str) -> Option<&'p str> {
        let element = self.elements.get(name)?;
        element.context.as_deref().or((element.lanes > 1).then_some(name))
    }

    /// In how many lanes a context works.
    fn lanes(&self, context: &str) -> usize {
        let of_it = self.elements.iter().filter(|(name, _)| self.context(name) == Some(context));
        of_it.map(|(_, element)| element.lanes).max().unwrap_or(1).max(1)
    }

    /// The contexts in an order in which packets go from each only to later ones. An element that
    /// names none is in the latest of those that it takes from.
    fn contexts<'p>(&'p self, order: &[&'p str]) -> Result<Vec<&'p str>, PlanError> {
        let mut of_element: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut feeds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for name in order {
            let inputs = self.inputs(name);
            let before = inputs.iter().filter_map(|input| of_element.get(input.from.as_str())).flatten();
            let mut contexts: BTreeSet<&str> = before.copied().collect();
            if let Some(own) = self.context(name) {
                contexts.remove(own);
                feeds.entry(own).or_default().extend(&contexts);
                contexts = BTreeSet::from([own]);
            }
            of_element.insert(name, contexts);
        }
        let mut done: Vec<&str> = Vec::new();
        while done.len() < feeds.len() {
            let is_next = |context: &&&str| {
                !done.contains(*context) && feeds[**context].iter().all(|other| done.contains(other))
            };
            let Some(next) = feeds.keys().find(is_next) else {
                let left: Vec<_> = feeds.keys().copied().filter(|context| !done.contains(context)).collect();
                return Err(PlanError {
                    at: At::All,
                    what: format!("packets would go in circles between the contexts {}", left.join(", ")),
                    help: "let packets go from one context only to later ones".to_owned(),
                });
            };
            done.push(next);
        }
        Ok(done)
    }

    /// The elements stage by stage, with the number of the stage: 0 is the stream's own worker.
    fn staged<'p>(&'p self, order: &[&'p str], contexts: &[&str]) -> Vec<(&'p str, usize)> {
        let mut stages: BTreeMap<&str, usize> = BTreeMap::new();
        for name in order {
            let own = self.context(name);
            let own = own.and_then(|own| contexts.iter().position(|context| *context == own));
            let inputs = self.inputs(name);
            let before = inputs.iter().filter_map(|input| stages.get(input.from.as_str())).copied().max();
            stages.insert(name, own.map_or(before.unwrap_or(0), |own| own + 1));
        }
        let mut staged: Vec<_> = order.iter().map(|name| (*name, stages[name])).collect();
        staged.sort_by_key(|(_, stage)| *stage);
        staged
    }
}

fn names() -> Vec<&'static str> {
    CATALOGUE.iter().map(|kind| kind.name).collect()
}
