//! io_uring: sends to many sockets by one system call, each with its own answer.
//!
//! A thread that sends has one ring, which it alone uses. An order's bytes are put together once
//! ([`Uring::compose`]), noted for each socket that is to get them ([`Uring::push`]), and sent to
//! all by one call ([`Uring::submit`]). Sends never wait (`MSG_DONTWAIT`): they are all done, or
//! refused, when the call returns. Bytes sent without a copy stay where they are until the kernel
//! says that it needs them no longer (`pool.rs`).
//!
//! Where the kernel has no io_uring or forbids it, the log says so once and [`Uring::works`] is
//! false; every sender then sends as without it.

#![allow(clippy::disallowed_methods, reason = "sockets are what this is for")]

pub mod limits;
mod open;
mod pool;
mod slots;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use io_uring::squeue::Flags;
use io_uring::{IoUring, cqueue, opcode, squeue, types};

use crate::limits::{BATCH, REGISTERED_FILES_MAX, TRIES, ZERO_COPY_BUFFERS};
use open::Support;
use pool::Pool;
use slots::Slots;

/// A thread's ring, if the kernel gives it one.
pub struct Uring {
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
pub enum Descriptor {
    /// Its place in the ring's table of descriptors.
    Slot(u32),
    /// The table is full, or there is none: the kernel looks the descriptor up at each send.
    Plain(RawFd),
}

/// Bytes that were put together to be sent, until the order is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parcel {
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

/// The bytes of an order: calls what it is given with one part after the other, with the same ones
/// each time it is called.
pub type Parts<'a> = &'a dyn Fn(&mut dyn FnMut(&[u8]));

/// Which sends are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
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
pub struct NotSent {
    /// The number of the first of them, counted from the first send noted.
    pub from: usize,
}

impl Uring {
    /// The calling thread's ring: no other may use it.
    pub fn open() -> Self {
        Self::open_with(BATCH as u32, REGISTERED_FILES_MAX)
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
    pub fn without() -> Self {
        Uring { ring: None }
    }

    /// Whether there is a ring.
    #[inline]
    pub fn works(&self) -> bool {
        self.ring.is_some()
    }

    /// Makes a socket known to the ring, which keeps it open until [`Uring::remove`]. `zero_copy`:
    /// it can send without a copy. `None` if there is no ring.
    pub fn add(&mut self, socket: BorrowedFd<'_>, zero_copy: bool) -> Option<Descriptor> {
        let ring = self.ring.as_mut()?;
        let slot = ring.slots.add(&ring.io.submitter(), socket, zero_copy);
        Some(slot.map_or(Descriptor::Plain(socket.as_raw_fd()), Descriptor::Slot))
    }

    /// Lets go of a socket, before it is closed.
    pub fn remove(&mut self, descriptor: Descriptor) {
        if let (Some(ring), Descriptor::Slot(slot)) = (&mut self.ring, descriptor) {
            ring.slots.remove(&ring.io.submitter(), slot);
        }
    }

    /// Begins an order: what was put together for the last one is forgotten.
    pub fn begin(&mut self) {
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
    pub fn compose(&mut self, bytes: usize, zero_copy: bool, parts: Parts<'_>) -> Option<Parcel> {
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

    /// Notes that `parcel` is to go to this socket. At most [`BATCH`] before each
    /// [`Uring::submit`].
    #[inline]
    pub fn push(&mut self, to: Descriptor, parcel: Parcel) {
        if let Some(ring) = &mut self.ring {
            let can = matches!(to, Descriptor::Slot(slot) if ring.slots.zero_copy(slot));
            let zero_copy = can && matches!(parcel.place, Place::Pooled(_));
            ring.batch.push(Entry { to, parcel, zero_copy, answered: false });
        }
    }

    /// Sends what was noted. `done` is told each answer with its number, counted from the first
    /// send noted: bytes sent, or the error.
    ///
    /// # Errors
    /// The kernel took no more sends. The ring is given up then: see [`Uring::works`].
    pub fn submit(
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

/// What comes back with each answer. The answers to a send without a copy may come long after its
/// batch is done, so it names the buffer and the socket, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tag {
    /// Its number in the batch.
    index: u16,
    /// For a send without a copy: which buffer, and the socket's slot.
    zero_copy: Option<(u16, u32)>,
}

const _: () = assert!(BATCH <= 1 << 16 && ZERO_COPY_BUFFERS < 1 << 16, "they fit a tag");

impl Tag {
    fn encode(self) -> u64 {
        let (buffer, slot) = self.zero_copy.map_or((0, 0), |(buffer, slot)| (u64::from(buffer) + 1, slot));
        u64::from(self.index) | buffer << 16 | u64::from(slot) << 32
    }

    fn decode(user_data: u64) -> Self {
        let slot = (user_data >> 32) as u32;
        let zero_copy = ((user_data >> 16) as u16).checked_sub(1).map(|buffer| (buffer, slot));
        Tag { index: user_data as u16, zero_copy }
    }
}

/// Asks to be told in the notice whether the bytes were copied after all, as towards a receiver on
/// the same machine (IORING_SEND_ZC_REPORT_USAGE and IORING_NOTIF_USAGE_ZC_COPIED of
/// linux/io_uring.h).
const REPORT_USAGE: u16 = 1 << 3;
const USAGE_COPIED: i32 = i32::MIN;

impl Ring {
    fn new(io: IoUring, support: Support, files: u32) -> Self {
        let slots = Slots::new(&io.submitter(), files);
        let pool = Pool::new(&io.submitter(), support.zero_copy);
        Ring { io, support, slots, pool, copied: Vec::new(), batch: Vec::with_capacity(BATCH) }
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
            if idle > TRIES {
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
            let request = entry.request(bytes, next as u16, skip);
            // SAFETY: the descriptor is looked up by the kernel, which refuses what is none. A send
            // with a copy never waits, so it is done when `submit` returns; until then its bytes are
            // not touched. A send without a copy reads a buffer of the pool, which is not touched
            // until `Pool::given_back` was called for that send, nor freed before.
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
            let (tag, result) = (Tag::decode(answer.user_data()), answer.result());
            let notice = cqueue::notif(answer.flags());
            // A send without a copy has two answers: its result, and that its bytes are free
            // again; only the first if it came to nothing.
            if let Some((buffer, slot)) = tag.zero_copy {
                if notice || !cqueue::more(answer.flags()) {
                    self.pool.given_back(buffer);
                }
                // It would be copied again, and that costs more than a plain send. (Should the slot
                // be another socket's by now, that one sends with a copy, too.)
                if notice && result & USAGE_COPIED != 0 {
                    self.slots.set_zero_copy(slot, false);
                }
            }
            if let (false, Some(entry)) = (notice, self.batch.get_mut(usize::from(tag.index))) {
                entry.answered = true;
                answered += 1;
                let result = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
                done(usize::from(tag.index), result);
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
    fn request(&self, bytes: &[u8], index: u16, skip: bool) -> squeue::Entry {
        use opcode::{Send, SendZc};
        const FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        let (start, length) = (bytes.as_ptr(), bytes.len() as u32);
        let (request, zero_copy) = match (self.to, self.parcel.place) {
            (Descriptor::Slot(slot), Place::Pooled(buffer)) if self.zero_copy => {
                let send = SendZc::new(types::Fixed(slot), start, length).zc_flags(REPORT_USAGE);
                (send.flags(FLAGS).buf_index(Some(buffer)).build(), Some((buffer, slot)))
            }
            (Descriptor::Slot(slot), _) => {
                (Send::new(types::Fixed(slot), start, length).flags(FLAGS).build(), None)
            }
            (Descriptor::Plain(fd), _) => {
                (Send::new(types::Fd(fd), start, length).flags(FLAGS).build(), None)
            }
        };
        let flags = if skip { Flags::SKIP_SUCCESS } else { Flags::empty() };
        request.flags(flags).user_data(Tag { index, zero_copy }.encode())
    }
}

#[cfg(test)]
mod tests;
