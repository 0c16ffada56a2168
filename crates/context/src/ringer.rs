//! What wakes the reader of a queue: a context's thread, or the worker at the line's owner.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A line's owner, as threads of contexts know it.
pub trait Owner: Send + Sync + fmt::Debug {
    /// Something has come back. Called again before the owner has looked, it costs nothing.
    fn ring(&self);
}

/// What wakes the reader of the next queue.
#[derive(Debug, Clone)]
pub(super) enum Ringer {
    Context(Arc<Parked>),
    Owner(Arc<dyn Owner>),
}

impl Ringer {
    pub(super) fn ring(&self) {
        match self {
            Ringer::Context(parked) => parked.wake(),
            Ringer::Owner(owner) => owner.ring(),
        }
    }
}

/// A thread that waits to be woken; waking it again before it has looked costs nothing.
#[derive(Debug, Default)]
pub(super) struct Parked {
    thread: OnceLock<std::thread::Thread>,
    woken: AtomicBool,
}

impl Parked {
    /// It is this thread that waits.
    pub(super) fn begin(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    /// The thread will look at everything that was put down before.
    pub(super) fn clear(&self) {
        self.woken.swap(false, Ordering::AcqRel);
    }

    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    pub(super) fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}
