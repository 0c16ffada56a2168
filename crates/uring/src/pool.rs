//! Buffers that the kernel sends from without a copy.
//!
//! TCP keeps what it was given until the other side has acknowledged it. A buffer is used again
//! only when every send from it is over; receivers that do not read may keep buffers for as long
//! as they are connected, so there is a limit, and a send that finds none sends with a copy.

use io_uring::Submitter;

use super::Parts;
use crate::limits::{ZERO_COPY_BUFFER_BYTES, ZERO_COPY_BUFFERS};

pub(super) struct Pool {
    /// How many there may be.
    capacity: usize,
    buffers: Vec<Buffer>,
}

struct Buffer {
    bytes: Box<[u8]>,
    /// How many of them were put there last.
    length: usize,
    /// Sends that the kernel may still read it for.
    given: u32,
    /// Holds bytes of the order that is being carried out.
    taken: bool,
}

impl Pool {
    /// An empty pool; buffers are made when they are needed.
    pub(super) fn new(ring: &Submitter<'_>, wanted: bool) -> Self {
        let works = wanted && ring.register_buffers_sparse(ZERO_COPY_BUFFERS as u32).is_ok();
        Pool { capacity: if works { ZERO_COPY_BUFFERS } else { 0 }, buffers: Vec::new() }
    }

    pub(super) fn buffer_bytes(&self) -> usize {
        if self.capacity > 0 { ZERO_COPY_BUFFER_BYTES } else { 0 }
    }

    /// A buffer that holds, for this order, the `length` bytes that `parts` hands on. If one holds
    /// them already it is that one: a large order comes a few receivers at a time, and each time
    /// with the same bytes.
    pub(super) fn take(&mut self, ring: &Submitter<'_>, length: usize, parts: Parts<'_>) -> Option<u16> {
        let has_them = |buffer: &Buffer| buffer.length == length && holds(&buffer.bytes[..length], parts);
        let index = match self.buffers.iter().position(has_them) {
            Some(index) => index,
            None => {
                let index = self.find_free(ring)?;
                let buffer = &mut self.buffers[index];
                let mut at = 0;
                parts(&mut |part| {
                    buffer.bytes[at..][..part.len()].copy_from_slice(part);
                    at += part.len();
                });
                buffer.length = length;
                index
            }
        };
        self.buffers[index].taken = true;
        Some(index as u16)
    }

    fn find_free(&mut self, ring: &Submitter<'_>) -> Option<usize> {
        let is_free = |buffer: &Buffer| buffer.given == 0 && !buffer.taken;
        self.buffers.iter().position(is_free).or_else(|| self.make(ring))
    }

    fn make(&mut self, ring: &Submitter<'_>) -> Option<usize> {
        let index = self.buffers.len();
        if index == self.capacity {
            return None;
        }
        let bytes = vec![0; ZERO_COPY_BUFFER_BYTES].into_boxed_slice();
        let vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: the bytes stay where they are until the pool goes, which goes after the ring;
        // the kernel only reads them.
        match unsafe { ring.register_buffers_update(index as u32, &[vector], None) } {
            Ok(()) => {
                self.buffers.push(Buffer { bytes, length: 0, given: 0, taken: false });
                Some(index)
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    buffers = index,
                    "fewer buffers for sends without a copy than wished; raise the limit of locked memory \
                     (ulimit -l, LimitMEMLOCK=) to spare large TCP sends a copy"
                );
                self.capacity = index;
                None
            }
        }
    }

    pub(super) fn bytes(&self, buffer: u16) -> &[u8] {
        self.buffers.get(usize::from(buffer)).map_or(&[], |buffer| &buffer.bytes)
    }

    /// A send from this buffer is with the kernel.
    pub(super) fn given(&mut self, buffer: u16) {
        self.buffers[usize::from(buffer)].given += 1;
    }

    /// The kernel does not need it for one of the sends any more.
    pub(super) fn given_back(&mut self, buffer: u16) {
        if let Some(buffer) = self.buffers.get_mut(usize::from(buffer)) {
            buffer.given = buffer.given.saturating_sub(1);
        }
    }

    /// What was put together for an order is forgotten.
    pub(super) fn end_order(&mut self) {
        self.buffers.iter_mut().for_each(|buffer| buffer.taken = false);
    }

    /// Buffers that the kernel still reads.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.buffers.iter().filter(|buffer| buffer.given > 0).count()
    }
}

/// Whether `bytes` are what `parts` hands on.
fn holds(bytes: &[u8], parts: Parts<'_>) -> bool {
    let mut rest = Some(bytes);
    parts(&mut |part| rest = rest.and_then(|rest| rest.strip_prefix(part)));
    rest.is_some_and(<[u8]>::is_empty)
}

impl Drop for Pool {
    fn drop(&mut self) {
        // What is still under way to receivers must not change: those bytes are never freed. This
        // happens when a thread ends, or its ring fails: once.
        for buffer in self.buffers.drain(..).filter(|buffer| buffer.given > 0) {
            Box::leak(buffer.bytes);
        }
    }
}
