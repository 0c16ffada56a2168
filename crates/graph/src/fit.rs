//! What fits what in a plan: what goes from element to element, the messages that they need, and in how
//! many lanes they may work.

use std::collections::BTreeMap;

use super::catalogue::{CATALOGUE, find};
use super::content::Contents;
use super::contract::Contract;
use super::kind::Kind;
use super::message::Signals;
use super::plan::{At, Plan, PlanError, SOURCE};
use super::settings::Settings;

/// What is known to come out of the elements of a plan.
pub(super) struct Fit<'p> {
    plan: &'p Plan,
    gives: BTreeMap<&'p str, Given>,
}

/// What comes out of something.
#[derive(Debug, Clone, Copy)]
struct Given {
    contents: Contents,
    signals: Signals,
}

impl Given {
    /// Nothing is known of it, or wrong enough already.
    const ANY: Given = Given { contents: Contents::ANY, signals: Signals::ALL };
}

impl<'p> Fit<'p> {
    /// For a stream that may carry `worlds`.
    pub(super) fn new(plan: &'p Plan, worlds: Contents) -> Self {
        let source = Given { contents: worlds, ..Given::ANY };
        Fit { plan, gives: BTreeMap::from([(SOURCE, source)]) }
    }

    /// Looks at all elements, each behind all that it takes from, with the context of several lanes that
    /// it runs in, if it does.
    pub(super) fn check(mut self, order: impl Iterator<Item = (&'p str, Option<&'p str>)>) -> Vec<PlanError> {
        let mut errors = Vec::new();
        for (name, laned) in order {
            let given = self.element(name, laned).unwrap_or_else(|error| {
                errors.push(error);
                Given::ANY
            });
            self.gives.insert(name, given);
        }
        errors
    }

    fn given(&self, from: &str) -> Given {
        self.gives.get(from).copied().unwrap_or(Given::ANY)
    }

    /// What comes out of an element, if what goes in fits.
    fn element(&self, name: &str, laned: Option<&str>) -> Result<Given, PlanError> {
        let element = &self.plan.elements[name];
        let Some(kind) = find(&element.kind) else { return Ok(Given::ANY) };
        let contract = (kind.contract)(&element.settings);
        let mut out = Given { contents: Contents::NONE, signals: Signals::NONE };
        for input in self.plan.inputs(name) {
            let given = self.given(&input.from);
            let through = contract.through(given.contents);
            if through.is_empty() {
                let what =
                    format!("'{name}' takes {}, but '{input}' gives {}", contract.takes, given.contents);
                let help = between(given.contents, contract.takes);
                return Err(PlanError { at: At::Inputs(name.to_owned()), what, help });
            }
            out.contents = out.contents.with(through);
            out.signals = out.signals.with(given.signals);
        }
        self.check_signals(name, &contract, out.signals)?;
        if let Some(context) = laned {
            self.check_lanes(name, context, &contract)?;
        }
        out.signals = out.signals.without(contract.control.ends);
        Ok(out)
    }

    /// Messages that it needs are to come.
    fn check_signals(&self, name: &str, contract: &Contract, come: Signals) -> Result<(), PlanError> {
        let missing = contract.control.needs.without(come);
        if missing.is_empty() {
            return Ok(());
        }
        let mut at = name.to_owned();
        // Back to the element that lets them end.
        let ender = loop {
            let inputs = self.plan.inputs(&at);
            let Some(input) = inputs.first().filter(|input| input.from != SOURCE) else { break at };
            at.clone_from(&input.from);
            let element = &self.plan.elements[&at];
            let ends = find(&element.kind).map(|kind| (kind.contract)(&element.settings).control.ends);
            if ends.is_some_and(|ends| ends.without(missing) != ends) {
                break at;
            }
        };
        Err(PlanError {
            at: At::Inputs(name.to_owned()),
            what: format!("'{name}' needs messages ({missing}), which end at '{ender}'"),
            help: format!("let it take from before '{ender}', or leave `needs` out"),
        })
    }

    /// Several lanes are for what may work on several frames at a time.
    fn check_lanes(&self, name: &str, context: &str, contract: &Contract) -> Result<(), PlanError> {
        let wrong = |at, what, help: &str| Err(PlanError { at, what, help: help.to_owned() });
        let at = At::Lanes(name.to_owned());
        if contract.parallel.is_empty() {
            let what =
                format!("'{name}' works on one packet after the other, and '{context}' has several lanes");
            return wrong(at, what, "give it another `context`, or leave `lanes` out");
        }
        for input in self.plan.inputs(name) {
            let given = self.given(&input.from).contents;
            if given.and(contract.parallel).is_empty() {
                let parallel = contract.parallel;
                let what =
                    format!("'{name}' works on {parallel} in several lanes, but '{input}' gives {given}");
                return wrong(at, what, "leave `lanes` out");
            }
        }
        Ok(())
    }
}

/// What would fit between something that gives this and something that takes that.
fn between(given: Contents, takes: Contents) -> String {
    let fits = |kind: &&&Kind| {
        let through = (kind.contract)(&Settings::default()).through(given);
        !through.and(takes).is_empty() && through != given
    };
    let fitting: Vec<_> = CATALOGUE.iter().filter(fits).map(|kind| format!("\"{}\"", kind.name)).collect();
    match fitting.as_slice() {
        [] => format!("no element makes {takes} of that: let it take from another place"),
        all => format!("what would fit between them: {}", all.join(" or ")),
    }
}

/// What is wrong with the options of an element.
pub(super) fn check_settings(name: &str, kind: &Kind, settings: &Settings) -> Vec<PlanError> {
    let mut errors = Vec::new();
    for (option, _) in settings.iter().filter(|(option, _)| kind.option(option).is_none()) {
        let known: Vec<_> = kind.options.iter().map(|option| option.name).collect();
        errors.push(PlanError {
            at: At::Setting(name.to_owned(), option.to_owned()),
            what: format!("\"{}\" has no option '{option}'", kind.name),
            help: if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("possible: {}", known.join(", "))
            },
        });
    }
    for option in kind.options.iter().filter(|option| option.needed && !settings.has(option.name)) {
        errors.push(PlanError {
            at: At::Kind(name.to_owned()),
            what: format!("\"{}\" needs '{}'", kind.name, option.name),
            help: format!("add it: {} ({})", option.doc.trim_end_matches('.'), option.form.describe()),
        });
    }
    errors
}
