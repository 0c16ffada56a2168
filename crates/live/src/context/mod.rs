//! Execution contexts: threads in which stages of streams' services run.
//!
//! A stream's *line* goes from its worker through the contexts that its services name, one behind the
//! other, and back, by queues with one writer and one reader each; so packets never change places. A
//! full queue drops packets, and counts them. Stages themselves travel the line: they are sent out to
//! their contexts, and recalled, in their place between the packets.

mod line;
mod thread;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use line::Ringer;
pub(crate) use line::{Arrived, Line};
use thread::Thread;

use crate::limits::{CONTEXTS_MAX, PLUGIN_CONTEXTS_MAX};
use crate::message::ControlError;
use crate::worker::Bell;

/// What the names of contexts begin with that streams' plug-ins get without asking, before the name of
/// the stream.
pub(crate) const PLUGIN_CONTEXT: &str = "plug-ins of ";

/// All contexts of the relay, by name.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    threads: Mutex<BTreeMap<String, Thread>>,
}

impl Contexts {
    /// A line through these contexts, which are made if there are none of those names yet. Whoever is
    /// at its home hears `home` when something comes back.
    ///
    /// # Errors
    /// There would be too many contexts, or the system refuses a thread.
    pub(crate) fn line(&self, names: &[String], home: Arc<Bell>) -> Result<Line, ControlError> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<&str> = names.iter().map(|name| shared(&threads, name)).collect();
        for &name in &names {
            if threads.contains_key(name) {
                continue;
            }
            if threads.len() >= CONTEXTS_MAX {
                let (what, key) = ("the execution contexts", "context, in fewer elements");
                return Err(ControlError::Limit { what, limit: CONTEXTS_MAX, key });
            }
            threads.insert(name.to_owned(), Thread::start(name)?);
        }
        let along: Vec<&Thread> = names.iter().filter_map(|name| threads.get(*name)).collect();
        let ringers = along.iter().map(|thread| thread.ringer()).chain([Ringer::Home(home)]);
        let (line, hops) = Line::new(ringers.collect());
        for (thread, hop) in along.iter().zip(hops) {
            thread.attach(hop);
        }
        Ok(line)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_too_many_streams_have_plug_ins_some_share_a_context() {
        let (contexts, home) = (Contexts::default(), Arc::new(Bell::new().expect("a bell")));
        for number in 0..2 * PLUGIN_CONTEXTS_MAX {
            let name = format!("{PLUGIN_CONTEXT}{number}");
            contexts.line(&[name], Arc::clone(&home)).expect("there is room");
        }
        let threads = contexts.threads.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(threads.len(), PLUGIN_CONTEXTS_MAX + 1);
    }
}
