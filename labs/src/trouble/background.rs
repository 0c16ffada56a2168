//! What goes on beside the measurement: floods, storms.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::net::Namespace;
use crate::process::be_background;

/// How long one that is to stop may take. It may wait for an answer of a relay that gives none.
const STOPS_WITHIN: Duration = Duration::from_millis(500);

/// A thread that does something until this is dropped. It stands back behind others: an attacker has a machine of
/// its own.
pub(crate) struct Background {
    work: Arc<Work>,
    thread: JoinHandle<()>,
}

/// How it goes on.
#[derive(Default)]
pub(crate) struct Work {
    is_over: AtomicBool,
    done: AtomicU64,
}

impl Work {
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// So much more was done.
    pub(crate) fn add(&self, count: u64) {
        self.done.fetch_add(count, Ordering::Relaxed);
    }

    /// What was done so far.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Keeps to a rate: `done` of `per_second` since `began`.
    pub(crate) fn keep_to(&self, began: Instant, per_second: f64) {
        let due = began + Duration::from_secs_f64(self.done() as f64 / per_second);
        let ahead = due.saturating_duration_since(Instant::now());
        // Many short sleeps cost more than they are worth.
        if ahead > Duration::from_millis(1) {
            std::thread::sleep(ahead);
        }
    }
}

impl Background {
    pub(crate) fn start(place: &Namespace, work: impl FnOnce(&Work) + Send + 'static) -> Self {
        let shared = Arc::new(Work::default());
        let theirs = Arc::clone(&shared);
        let thread = place.spawn(move || {
            be_background();
            work(&theirs);
        });
        Self { work: shared, thread }
    }

    /// Ends it; how much it has done.
    pub(crate) fn stop(self) -> u64 {
        self.work.is_over.store(true, Ordering::Relaxed);
        let until = Instant::now() + STOPS_WITHIN;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.work.done()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.work.is_over.store(true, Ordering::Relaxed);
    }
}
