//! io_uring: sends to many sockets by one system call, each with its own answer.
//!
//! A worker has one ring, which only its thread uses. An order's bytes are put together once
//! ([`Uring::compose`]), noted for each socket that is to get them ([`Uring::push`]), and sent to
//! all by one call ([`Uring::submit`]). Sends never wait (`MSG_DONTWAIT`): they are all done, or
//! refused, when the call returns. Bytes sent without a copy stay where they are until the kernel
//! says that it needs them no longer ([`pool`]).
//!
//! Where the kernel has no io_uring or forbids it, the log says so once and [`Uring::works`] is
//! false; everyone then sends as without it.

mod open;
mod pool;
mod slots;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use io_uring::squeue::Flags;
use io_uring::{IoUring, cqueue, opcode, squeue, types};

use crate::limits::{REGISTERED_FILES_MAX, URING_BATCH, URING_TRIES};
use open::Support;
use pool::Pool;
use slots::Slots;

/// A worker's ring, if the kernel gives it one.
pub(crate) struct Uring {
    ring: Option<Ring>,
}

struct Ring {
    // Goes first: the kernel must have let go of the ring before its buffers are freed.
    io: IoUring,
    support: Support,
    slots: Slots,
    pool: Pool,
    /// The bytes of this order that are copied when they are sent.
    copied: Vec<u8>,
    batch: Vec<Entry>,
}

/// A socket as the ring knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Descriptor {
    /// Its place in the ring's table of descriptors.
    Slot(u32),
    /// The table is full, or there is none: the kernel looks the descriptor up at each send.
    Plain(RawFd),
}

/// Bytes that were put together to be sent, until the order is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parcel {
    place: Place,
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// From this byte of [`Ring::copied`] on.
    Copied(usize),
    /// In this buffer of the pool.
    Pooled(u16),
}

/// The bytes of an order: calls what it is given with one part after the other, each time it is
/// called.
pub(crate) type Parts<'a> = &'a dyn Fn(&mut dyn FnMut(&[u8]));

/// Which sends are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// All: a byte stream may have taken a part.
    All,
    /// Those that failed. A datagram goes whole or not at all.
    Failures,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    to: Descriptor,
    parcel: Parcel,
    zero_copy: bool,
    answered: bool,
}

/// What a ring's failure left undone: the sends from this index on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotSent {
    pub(crate) from: usize,
}

impl Uring {
    /// The calling thread's ring: no other may use it.
    pub(crate) fn open() -> Self {
        Self::open_with(URING_BATCH as u32, REGISTERED_FILES_MAX)
    }

    /// One whose submission queue and whose table of descriptors are of these sizes.
    fn open_with(sends: u32, files: u32) -> Self {
        let ring = match open::open(sends) {
            Ok((io, support)) => Some(Ring::new(io, support, files)),
            Err(error) => {
                open::complain(&error);
                None
            }
        };
        Uring { ring }
    }

    /// None: what else there is does the work.
    pub(crate) fn without() -> Self {
        Uring { ring: None }
    }

    /// Whether there is a ring.
    pub(crate) fn works(&self) -> bool {
        self.ring.is_some()
    }

    /// Makes a socket known to the ring, which keeps it open until [`Uring::remove`]. `None` if
    /// there is no ring.
    pub(crate) fn add(&mut self, socket: BorrowedFd<'_>) -> Option<Descriptor> {
        let ring = self.ring.as_mut()?;
        let slot = ring.slots.add(&ring.io.submitter(), socket);
        Some(slot.map_or(Descriptor::Plain(socket.as_raw_fd()), Descriptor::Slot))
    }

    /// Lets go of a socket, before it is closed.
    pub(crate) fn remove(&mut self, descriptor: Descriptor) {
        if let (Some(ring), Descriptor::Slot(slot)) = (&mut self.ring, descriptor) {
            ring.slots.remove(&ring.io.submitter(), slot);
        }
    }

    /// Begins an order: what was put together for the last one is forgotten.
    pub(crate) fn begin(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.copied.clear();
            ring.batch.clear();
            ring.pool.end_order();
        }
    }

    /// Puts the bytes of an order together: `parts` hands them on piece by piece, and `bytes` is how
    /// many they are. With `zero_copy` they go where the kernel can send them from without a copy,
    /// if there is room; those that lie there from an order before are used again. `None` if
    /// there is no ring.
    pub(crate) fn compose(&mut self, bytes: usize, zero_copy: bool, parts: Parts<'_>) -> Option<Parcel> {
        let ring = self.ring.as_mut()?;
        if zero_copy && bytes <= ring.pool.buffer_bytes() {
            ring.collect();
            if let Some(buffer) = ring.pool.take(&ring.io.submitter(), bytes, parts) {
                return Some(Parcel { place: Place::Pooled(buffer), bytes });
            }
        }
        let start = ring.copied.len();
        parts(&mut |part| ring.copied.extend_from_slice(part));
        Some(Parcel { place: Place::Copied(start), bytes: ring.copied.len() - start })
    }

    /// Notes that `parcel` is to go to this socket. `zero_copy`: the socket can send without a
    /// copy, if the parcel lies where that works. At most [`URING_BATCH`] before each
    /// [`Uring::submit`].
    pub(crate) fn push(&mut self, to: Descriptor, parcel: Parcel, zero_copy: bool) {
        if let Some(ring) = &mut self.ring {
            let zero_copy = zero_copy && matches!(parcel.place, Place::Pooled(_));
            ring.batch.push(Entry { to, parcel, zero_copy, answered: false });
        }
    }

    /// Sends what was noted. `done` is told each answer with its number, counted from the first
    /// send noted: bytes sent, or the error.
    ///
    /// # Errors
    /// The kernel took no more sends. The ring is given up then: see [`Uring::works`].
    pub(crate) fn submit(
        &mut self,
        answers: Answers,
        mut done: impl FnMut(usize, io::Result<usize>),
    ) -> Result<(), NotSent> {
        let Some(ring) = &mut self.ring else { return Err(NotSent { from: 0 }) };
        let result = ring.submit(answers, &mut done);
        ring.batch.clear();
        if result.is_err() {
            self.ring = None;
        }
        result
    }
}

/// The user data of a send: its number in the batch, and above this bit, for a send without a
/// copy, the number of its buffer.
const BUFFER_SHIFT: u32 = 32;

impl Ring {
    fn new(io: IoUring, support: Support, files: u32) -> Self {
        let slots = Slots::new(&io.submitter(), files);
        let pool = Pool::new(&io.submitter(), support.zero_copy);
        Ring { io, support, slots, pool, copied: Vec::new(), batch: Vec::with_capacity(URING_BATCH) }
    }

    fn submit(
        &mut self,
        answers: Answers,
        done: &mut dyn FnMut(usize, io::Result<usize>),
    ) -> Result<(), NotSent> {
        let skip = answers == Answers::Failures && self.support.skip_success;
        let count = self.batch.len();
        let (mut filled, mut sent, mut answered, mut idle) = (0, 0, 0, 0);
        while sent < count || (!skip && answered < count) {
            filled = self.fill(filled, skip);
            // Sends that never wait are answered when the call returns; else it waits for them.
            let want = usize::from(sent == count);
            let before = (sent, answered);
            match self.io.submit_and_wait(want) {
                Ok(taken) => sent += taken,
                // A signal; answers that find no room; memory that is short. Read them, try again.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {}
                Err(error) => return Err(self.give_up(sent, skip, &error, done)),
            }
            answered += self.drain(done);
            idle = if before == (sent, answered) { idle + 1 } else { 0 };
            if idle > URING_TRIES {
                let error = io::Error::from(io::ErrorKind::TimedOut);
                return Err(self.give_up(sent, skip, &error, done));
            }
        }
        Ok(())
    }

    /// Puts sends, from number `next` on, into the submission queue, as many as it takes. Returns
    /// the number of the first that has yet to go there.
    fn fill(&mut self, mut next: usize, skip: bool) -> usize {
        let mut queue = self.io.submission();
        while let Some(entry) = self.batch.get(next) {
            let bytes = match entry.parcel.place {
                Place::Copied(start) => self.copied.get(start..).unwrap_or_default(),
                Place::Pooled(buffer) => self.pool.bytes(buffer),
            };
            let bytes = bytes.get(..entry.parcel.bytes).unwrap_or_default();
            let request = entry.request(bytes, next as u64, skip);
            // SAFETY: the descriptor is looked up by the kernel, which refuses what is none. The
            // bytes lie in `copied`, which is not touched until `submit` has returned, and so all
            // sends have, as they never wait; or in a buffer of the pool, which is not touched
            // until `Pool::given_back` was called for each send, nor freed before.
            if unsafe { queue.push(&request) }.is_err() {
                break;
            }
            if let (true, Place::Pooled(buffer)) = (entry.zero_copy, entry.parcel.place) {
                self.pool.given(buffer);
            }
            next += 1;
        }
        next
    }

    /// Reads all answers that are there. Returns how many sends they were for.
    fn drain(&mut self, done: &mut dyn FnMut(usize, io::Result<usize>)) -> usize {
        let mut answered = 0;
        for answer in self.io.completion() {
            let (index, buffer) = (answer.user_data() as u32 as usize, answer.user_data() >> BUFFER_SHIFT);
            let notice = cqueue::notif(answer.flags());
            // A send without a copy has two answers: its result, and that its bytes are free
            // again; only the first if it came to nothing.
            if (notice || !cqueue::more(answer.flags()))
                && let Some(buffer) = buffer.checked_sub(1)
            {
                self.pool.given_back(buffer as u16);
            }
            if let (false, Some(entry)) = (notice, self.batch.get_mut(index)) {
                entry.answered = true;
                answered += 1;
                let result = answer.result();
                done(index, usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result)));
            }
        }
        answered
    }

    /// Learns which buffers have become free.
    fn collect(&mut self) {
        let queue = self.io.submission();
        let waiting = queue.taskrun() || queue.cq_overflow();
        drop(queue);
        // Without this call the kernel keeps its notices to itself (IORING_SETUP_DEFER_TASKRUN).
        // Should it fail, the buffers are learned of next time.
        if waiting {
            let _ = self.io.submit();
        }
        self.drain(&mut |_, _| {});
    }

    /// The kernel does not go on. What it took and has not answered counts as failed.
    fn give_up(
        &mut self,
        sent: usize,
        skip: bool,
        error: &io::Error,
        done: &mut dyn FnMut(usize, io::Result<usize>),
    ) -> NotSent {
        tracing::error!(%error, "io_uring does not work any more: packets are sent without it from now on");
        let unanswered = |(_, entry): &(usize, &Entry)| !skip && !entry.answered;
        for (index, _) in self.batch[..sent].iter().enumerate().filter(unanswered) {
            done(index, Err(io::Error::from_raw_os_error(libc::EIO)));
        }
        NotSent { from: sent }
    }
}

impl Entry {
    fn request(&self, bytes: &[u8], number: u64, skip: bool) -> squeue::Entry {
        use opcode::{Send, SendZc};
        const FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        let (start, length) = (bytes.as_ptr(), bytes.len() as u32);
        if let (true, Place::Pooled(buffer)) = (self.zero_copy, self.parcel.place) {
            let send = match self.to {
                Descriptor::Slot(slot) => SendZc::new(types::Fixed(slot), start, length),
                Descriptor::Plain(fd) => SendZc::new(types::Fd(fd), start, length),
            };
            let user_data = number | (u64::from(buffer) + 1) << BUFFER_SHIFT;
            return send.flags(FLAGS).buf_index(Some(buffer)).build().user_data(user_data);
        }
        let send = match self.to {
            Descriptor::Slot(slot) => Send::new(types::Fixed(slot), start, length),
            Descriptor::Plain(fd) => Send::new(types::Fd(fd), start, length),
        };
        let flags = if skip { Flags::SKIP_SUCCESS } else { Flags::empty() };
        send.flags(FLAGS).build().flags(flags).user_data(number)
    }
}

#[cfg(test)]
pub(crate) mod tests;
