//! Execution contexts: threads in which stages of streams' services run.
//!
//! A stream's *line* goes from its worker through the contexts that its services name, one behind the
//! other, and back, by queues with one writer and one reader each; so packets never change places. A
//! full queue drops packets, and counts them. Stages themselves travel the line: they are sent out to
//! their contexts, and recalled, in their place between the packets.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a driver owns threads")]

mod clock;
mod error;
mod hop;
mod inlet;
pub mod limits;
mod line;
mod outlet;
mod passed;
mod ringer;
#[cfg(test)]
mod tests;
mod thread;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use outflow_vital::Vital;

pub use clock::probe;
pub use error::LineError;
use limits::{CONTEXTS_MAX, PLUGIN_CONTEXTS_MAX};
pub use line::{Arrived, Line};
pub use ringer::Owner;
use ringer::Ringer;
use thread::Thread;
pub use thread::stand_back;

/// What the names of contexts begin with that streams' plug-ins get without asking, before the name of
/// the stream.
pub const PLUGIN_CONTEXT: &str = "plug-ins of ";

/// All contexts of the relay, by name.
#[derive(Debug, Default)]
pub struct Contexts {
    threads: Mutex<BTreeMap<String, Thread>>,
    vital: Vital,
}

impl Contexts {
    /// None yet. If the thread of one ends by a panic, `vital` learns of it.
    pub fn new(vital: Vital) -> Self {
        Contexts { vital, ..Contexts::default() }
    }

    /// A line through these contexts, each with this many lanes; they are made if there are none of those
    /// names yet. `owner` is called when something comes back.
    ///
    /// # Errors
    /// There would be too many contexts, or the system refuses a thread.
    pub fn line(&self, contexts: &[(String, usize)], owner: Arc<dyn Owner>) -> Result<Line, LineError> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let lanes = |(name, lanes): &(String, usize)| {
            let name = shared(&threads, name);
            (0..*lanes).map(|lane| lane_name(name, lane)).collect()
        };
        let names: Vec<Vec<String>> = contexts.iter().map(lanes).collect();
        for name in names.iter().flatten() {
            if threads.contains_key(name) {
                continue;
            }
            if threads.len() >= CONTEXTS_MAX {
                return Err(LineError::TooMany);
            }
            let stands_back = name.starts_with(PLUGIN_CONTEXT.trim_end());
            threads.insert(name.clone(), Thread::start(name, stands_back, self.vital.clone())?);
        }
        let along = |lanes: &Vec<String>| lanes.iter().filter_map(|name| threads.get(name)).collect();
        let along: Vec<Vec<&Thread>> = names.iter().map(along).collect();
        let ringers = |lanes: &Vec<&Thread>| lanes.iter().map(|thread| thread.ringer()).collect();
        let ringers: Vec<_> = along.iter().map(ringers).collect();
        let (line, hops) = Line::new(&ringers, Ringer::Owner(owner));
        for (thread, hop) in along.iter().flatten().zip(hops.into_iter().flatten()) {
            thread.attach(hop);
        }
        Ok(line)
    }
}

/// The name of a lane's thread: that of the context, with a number from the second on.
fn lane_name(context: &str, lane: usize) -> String {
    if lane == 0 { context.to_owned() } else { format!("{context}/{}", lane + 1) }
}

/// The context of that name, or, where too many streams have one for their plug-ins, that of all others.
fn shared<'n>(threads: &BTreeMap<String, Thread>, name: &'n str) -> &'n str {
    let is_own = |name: &str| name.starts_with(PLUGIN_CONTEXT);
    let own = threads.keys().filter(|name| is_own(name)).count();
    if is_own(name) && own >= PLUGIN_CONTEXTS_MAX && !threads.contains_key(name) {
        return PLUGIN_CONTEXT.trim_end();
    }
    name
}
