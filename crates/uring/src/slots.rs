//! The ring's table of descriptors: a send to one of them spares the kernel the look-up.

use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::Submitter;
use rustix::process::{Resource, getrlimit};

/// Which places of the table are taken. A socket that finds no place is sent to by its plain
/// descriptor, in the same batches.
pub(super) struct Slots {
    capacity: u32,
    /// Of each place that was ever taken: whether its socket sends without a copy.
    zero_copy: Vec<bool>,
    free: Vec<u32>,
}

impl Slots {
    /// An empty table of at most `capacity` places; of none where the kernel has no such table
    /// (IORING_REGISTER_FILES2, Linux 5.19).
    pub(super) fn new(ring: &Submitter<'_>, capacity: u32) -> Self {
        // The kernel takes no more than the process may have descriptors.
        let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let wanted = capacity.min(u32::try_from(allowed).unwrap_or(u32::MAX));
        let capacity = ring.register_files_sparse(wanted).map_or(0, |()| wanted);
        Slots { capacity, zero_copy: Vec::new(), free: Vec::new() }
    }

    /// Takes a place for a socket, which stays open until it is removed.
    pub(super) fn add(
        &mut self,
        ring: &Submitter<'_>,
        socket: BorrowedFd<'_>,
        zero_copy: bool,
    ) -> Option<u32> {
        let new = self.zero_copy.len() as u32;
        let slot = self.free.last().copied().or((new < self.capacity).then_some(new))?;
        ring.register_files_update(slot, &[socket.as_raw_fd()]).ok()?;
        match self.free.pop() {
            Some(slot) => self.zero_copy[slot as usize] = zero_copy,
            None => self.zero_copy.push(zero_copy),
        }
        Some(slot)
    }

    /// Whether the socket sends without a copy.
    pub(super) fn zero_copy(&self, slot: u32) -> bool {
        self.zero_copy.get(slot as usize).is_some_and(|zero_copy| *zero_copy)
    }

    /// Whether its socket is to send without a copy from now on.
    pub(super) fn set_zero_copy(&mut self, slot: u32, zero_copy: bool) {
        if let Some(known) = self.zero_copy.get_mut(slot as usize) {
            *known = zero_copy;
        }
    }

    pub(super) fn remove(&mut self, ring: &Submitter<'_>, slot: u32) {
        // A place that cannot be emptied would keep its socket open: it is not taken again.
        match ring.register_files_update(slot, &[-1]) {
            Ok(_) => self.free.push(slot),
            Err(error) => tracing::error!(%error, "io_uring keeps a socket open that was closed"),
        }
    }
}
