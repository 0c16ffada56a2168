//! Services, as control sees to them: made aside, put in place as a value, put back if they fail.

use std::collections::BTreeMap;
use std::time::Duration;

use outflow_config::Share;
use outflow_engine::message::{Command, ControlError, Services, ServicesCommand, Swapped};
use outflow_engine::system::{Part, keep_privileges};
use outflow_external::External;
use outflow_graph::limits::MAKE_TIME_MAX;
use outflow_graph::{Element, Graph, Kind, Maker, Plan, Settings, Unfit};
use outflow_relay::{Encapsulation, Selection};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::control::Control;
use crate::limits::{TRIAL_LOOK, TRIAL_TIME};

/// Makes the elements that need more than the core has.
struct Driver(Control);

impl Maker for Driver {
    fn make(&mut self, _: &str, kind: &'static Kind, settings: &Settings) -> Result<Box<dyn Element>, Unfit> {
        if kind.name == "external" {
            return Ok(Box::new(External::new(settings)?));
        }
        let make = self.0.fronts().maker(kind.name).ok_or_else(|| {
            let what = format!("this program was built without elements of the kind \"{}\"", kind.name);
            Unfit::new(what, "build it with that feature")
        });
        make?(settings)
    }
}

/// The services that are on trial, by stream.
#[derive(Debug, Default)]
pub(crate) struct Trials(BTreeMap<String, AbortHandle>);

impl Trials {
    /// Gives a stream the services of a plan, which may take so much of a core. Should they fail within
    /// the trial time, those before them are put back. Returns how long packets had to wait.
    ///
    /// # Errors
    /// What keeps them from being made; those that are there stay.
    pub(crate) async fn put(
        &mut self,
        control: &Control,
        stream: &str,
        plan: Plan,
        budget: Option<Share>,
    ) -> Result<Duration, ControlError> {
        let mut graph = make(control, stream, plan).await?;
        if let Some(graph) = &mut graph {
            graph.set_budget(budget.map(|share| share.0));
        }
        if let Some(before) = self.0.remove(stream) {
            // What was on trial has stood it.
            before.abort();
        }
        let is_new = graph.is_some();
        let Swapped { before, took } = swap(control, stream, graph, None).await?;
        tracing::info!(stream, took_us = took.as_micros() as u64, "the stream has other services now");
        if let Some(before) = before.filter(|_| is_new) {
            let faults = faults(control, stream);
            let trial = watch(control.clone(), stream.to_owned(), before, faults);
            self.0.insert(stream.to_owned(), tokio::spawn(trial).abort_handle());
        }
        Ok(took)
    }
}

/// What a plan says, ready to run; it can take long, and does so elsewhere.
async fn make(control: &Control, stream: &str, plan: Plan) -> Result<Option<Box<Graph>>, ControlError> {
    if plan.is_empty() {
        return Ok(None);
    }
    let (done, made) = oneshot::channel();
    let mut driver = Driver(control.clone());
    let work = move || {
        outflow_context::stand_back();
        keep_privileges("services", Part::Reader);
        let _ = done.send(Graph::new(&plan, &mut driver));
    };
    // A thread of its own: one that has stood back once cannot come forward again.
    std::thread::Builder::new()
        .name("services".to_owned())
        .spawn(work)
        .map_err(|e| ControlError::system("starting a thread that makes services".to_owned(), &e))?;
    let wrong =
        |what: String| ControlError::Configuration(format!("stream '{stream}': making its services {what}"));
    // It is left to itself then: nothing else waits for it.
    let made = tokio::time::timeout(MAKE_TIME_MAX, made).await.map_err(|_| {
        wrong(format!("takes longer than {} s: leave plug-ins out, or strip them", MAKE_TIME_MAX.as_secs()))
    })?;
    let made = made.map_err(|_| wrong("failed; see the log".to_owned()))?;
    made.map(|graph| Some(Box::new(graph))).map_err(|(element, unfit)| {
        ControlError::Configuration(format!("stream '{stream}', element '{element}': {unfit}"))
    })
}

/// Puts services in place; bound beforehand to what the stream carries now, so that its packets need
/// not wait for that.
async fn swap(
    control: &Control,
    stream: &str,
    mut graph: Option<Box<Graph>>,
    note: Option<String>,
) -> Result<Swapped, ControlError> {
    let owner = control.entry(stream)?.owner;
    let mut line = None;
    if let Some(graph) = &mut graph {
        // A stream without a source has nothing to bind to yet.
        if let Ok(described) = control.describe(stream, Selection::default(), Encapsulation::Rtp).await {
            graph.bind(&described.format);
        }
        let contexts: Vec<_> = graph.contexts().map(|(name, lanes)| (name.to_owned(), lanes)).collect();
        if !contexts.is_empty() {
            line = Some(control.workers().line(&owner, &contexts)?);
        }
    }
    let services = Services { graph, line, note };
    let stream = owner.stream;
    let command = |reply| Command::Services(ServicesCommand::Put { stream, services, reply });
    control.workers().ask(&owner, command).await
}

/// Looks at new services for a while, and puts those before them back if they fail.
async fn watch(control: Control, stream: String, before: Box<Graph>, faults_before: BTreeMap<String, u64>) {
    let mut before = Some(before);
    for _ in 0..TRIAL_TIME.as_millis() / TRIAL_LOOK.as_millis() {
        tokio::time::sleep(TRIAL_LOOK).await;
        let Some(why) = failure(&control, &stream, &faults_before) else { continue };
        let note = format!("put back after a trial: {why}");
        tracing::warn!(stream, why, "the new services failed; those before them are back");
        // A stream that is gone needs no services.
        let _ = swap(&control, &stream, before.take(), Some(note)).await;
        return;
    }
}

/// How often something has gone wrong in a stream's elements.
fn faults(control: &Control, stream: &str) -> BTreeMap<String, u64> {
    let state = control.state();
    let stream = state.stream(stream);
    let elements = stream.into_iter().flat_map(|stream| &stream.elements);
    elements.map(|element| (element.name.clone(), element.faults)).collect()
}

/// What is wrong with a stream's services that was not before.
fn failure(control: &Control, stream: &str, before: &BTreeMap<String, u64>) -> Option<String> {
    let state = control.state();
    let stream = state.stream(stream)?;
    let failing = stream
        .elements
        .iter()
        .find(|element| element.unfit || element.faults > before.get(&element.name).copied().unwrap_or(0))?;
    let fault = failing.fault.as_deref().unwrap_or("it failed");
    Some(format!("element '{}': {fault}", failing.name))
}
