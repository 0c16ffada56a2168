//! What wakes a worker that sleeps.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// Wakes a worker; ringing it again before the worker has heard it costs nothing.
#[derive(Debug)]
pub(crate) struct Bell {
    fd: OwnedFd,
    rung: AtomicBool,
}

impl Bell {
    /// One that has not rung.
    pub(crate) fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Bell { fd, rung: AtomicBool::new(false) })
    }

    /// Wakes the worker.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            // Only a full counter could fail, which rings as well.
            let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
        }
    }

    /// The worker has heard it, and will look at everything that was put down before.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
        // A swap, so that what a thread that found it rung has put down is seen after this.
        self.rung.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
