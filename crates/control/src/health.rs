//! Whether the relay goes on, by its heartbeats; how much it has to do; and what its log has lost.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outflow_engine::{Clock, WorkerHandle};
use outflow_vital::Beat;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ending::Ending;
use crate::limits::{CONTROL_LATE, WORKER_LATE};
use crate::overload::Overload;

/// What says that the relay goes on.
#[derive(Debug)]
pub struct Health {
    clock: Clock,
    control: Beat,
    workers: Vec<(String, Arc<Beat>)>,
    overload: Overload,
    log: OnceLock<LogCounts>,
    ending: Ending,
}

/// A thread or task that says that it goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Heartbeat {
    /// "control", or the name of a worker's thread.
    pub name: String,
    /// Milliseconds since it said so last.
    pub age_ms: u64,
    /// That is too long: it hangs.
    pub late: bool,
}

/// What has become of the lines of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct LogState {
    /// Lines written.
    pub written: u64,
    /// Lines for which there was no room, and those whose write failed.
    pub lost: u64,
    /// Lines left out because there were too many of their kind.
    pub left_out: u64,
    /// Writes that failed.
    pub write_errors: u64,
}

/// Asks the program that has the log.
struct LogCounts(Box<dyn Fn() -> LogState + Send + Sync>);

impl fmt::Debug for LogCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0().fmt(f)
    }
}

impl Health {
    /// That of these workers, and of control, which goes on now.
    pub(crate) fn new<'w>(
        clock: Clock,
        workers: impl IntoIterator<Item = &'w WorkerHandle>,
        ending: Ending,
    ) -> Self {
        let named = |worker: &WorkerHandle| (worker.name().to_owned(), worker.beat());
        let workers = workers.into_iter().map(named).collect();
        let (overload, log) = (Overload::new(), OnceLock::new());
        let health = Health { clock, control: Beat::default(), workers, overload, log, ending };
        health.control_goes_on();
        health
    }

    pub(crate) fn control_goes_on(&self) {
        self.control.strike(self.clock.now());
    }

    /// Its end, when it is told to.
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// How much the relay has to do.
    pub fn overload(&self) -> &Overload {
        &self.overload
    }

    /// How long the worker has been at work without a pause that does worst.
    pub(crate) fn worker_lag(&self) -> Duration {
        self.workers.iter().map(|(_, beat)| beat.lag()).max().unwrap_or_default()
    }

    /// All heartbeats.
    pub fn heartbeats(&self) -> impl Iterator<Item = Heartbeat> {
        let now = self.clock.now();
        let heartbeat = move |name: &str, beat: &Beat, limit: Duration| {
            let age = beat.silence(now);
            Heartbeat { name: name.to_owned(), age_ms: age.as_millis() as u64, late: age > limit }
        };
        let control = heartbeat("control", &self.control, CONTROL_LATE);
        let workers = self.workers.iter().map(move |(name, beat)| heartbeat(name, beat, WORKER_LATE));
        std::iter::once(control).chain(workers)
    }

    /// Whether all go on.
    ///
    /// # Errors
    /// Which do not, and what to do about it.
    pub fn check(&self) -> Result<(), String> {
        let late = self.heartbeats().filter(|heartbeat| heartbeat.late);
        let late = late.map(|Heartbeat { name, age_ms, .. }| format!("{name} for {age_ms} ms"));
        let late: Vec<_> = late.collect();
        if late.is_empty() {
            return Ok(());
        }
        let late = late.join(", ");
        Err(format!(
            "not heard of: {late}; if that does not end by itself, the relay has to be started again"
        ))
    }

    /// What has become of the lines of the log, as far as it is known.
    pub fn log(&self) -> LogState {
        self.log.get().map(|counts| counts.0()).unwrap_or_default()
    }

    /// Has the log of the program asked by this; the first one stays.
    pub fn set_log(&self, counts: impl Fn() -> LogState + Send + Sync + 'static) {
        let _ = self.log.set(LogCounts(Box::new(counts)));
    }
}
