//! The log of a program that must not stop: a thread that logs never waits for what takes the lines, and a write
//! that fails harms nothing.
//!
//! A line goes into a bounded [queue](Lines) to one thread, which alone writes. When the queue is full, lines are
//! lost and counted; when a write fails, it is counted, and the thread tries again a little later. Lines of one kind
//! are bounded in rate before they are formatted; a line from time to time says how many were left out.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate owns a thread, its time and standard error"
)]

mod bound;
mod counts;
pub mod limits;
mod lines;
mod panics;
mod writer;

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use bound::Bound;
pub use counts::Counts;
use lines::Lines;

/// Where the program's lines go; clones are the same log.
#[derive(Debug, Clone)]
pub struct Log {
    lines: Lines,
    bound: Arc<Bound>,
    is_terminal: bool,
}

impl Log {
    /// One that goes to standard error.
    ///
    /// # Errors
    /// The system gives no thread or descriptor.
    pub fn to_standard_error() -> io::Result<Self> {
        let stderr = io::stderr();
        // A descriptor of its own: the library's has a lock, which a write that does not end would keep.
        let out = File::from(stderr.as_fd().try_clone_to_owned()?);
        Self::to(out, stderr.is_terminal())
    }

    /// One that goes there; a terminal can show a status line.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn to(out: impl Write + Send + 'static, is_terminal: bool) -> io::Result<Self> {
        let bound = Arc::new(Bound::default());
        let lines = Lines::start(out, Arc::clone(&bound))?;
        Ok(Log { lines, bound, is_terminal })
    }

    /// Has all events of the program that `filter` lets pass written here, and all panics: as JSON, one object a
    /// line, or for people.
    pub fn install(&self, filter: Targets, json: bool) {
        let lines = tracing_subscriber::fmt::layer().with_writer(self.lines.clone());
        let bound = bound::Layer(Arc::clone(&self.bound));
        let registry = tracing_subscriber::registry();
        if json {
            registry.with(lines.json().flatten_event(true)).with(filter).with(bound).init();
        } else {
            let lines = lines.with_ansi(self.is_terminal).with_target(false);
            registry.with(lines).with(filter).with(bound).init();
        }
        std::panic::set_hook(Box::new(panics::tell));
    }

    /// Whether there is a terminal to show a status line at.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes a line for people, whatever is filtered.
    pub fn say(&self, text: &str) {
        self.lines.put(format!("{text}\n").as_bytes());
    }

    /// Keeps this line below all others, at a terminal, until the next one.
    pub fn show_status(&self, text: &str) {
        self.lines.show_status(text);
    }

    /// Waits, for a short time, until all that is queued has been written. Returns whether it was.
    pub fn finish(&self) -> bool {
        self.lines.finish()
    }

    /// What has become of lines.
    pub fn counts(&self) -> Counts {
        Counts { left_out: self.bound.left_out(), ..self.lines.counts() }
    }
}
