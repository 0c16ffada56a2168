//! An array of the BPF programs in the memory of this process (BPF_F_MMAPABLE): changing an entry
//! costs no system call.

use core::ptr::{NonNull, null_mut};
use std::io;
use std::os::fd::AsFd;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Entries of a BPF array.
///
/// # Safety
/// Any bytes are a valid value, and there is no padding.
pub(super) unsafe trait Plain: Copy {}

/// `length` entries of a BPF array.
#[derive(Debug)]
pub(super) struct Shared<T: Plain> {
    entries: NonNull<T>,
    length: u32,
}

// SAFETY: the mapping belongs to this value alone and is valid in every thread of the process.
unsafe impl<T: Plain> Send for Shared<T> {}

impl<T: Plain> Shared<T> {
    /// Maps the array `map`, which has `length` entries of the size of `T`.
    pub(super) fn new(map: impl AsFd, length: u32) -> io::Result<Self> {
        let bytes = Self::bytes(length);
        // SAFETY: a new mapping, at an address of the kernel's choice, overlaps no other memory.
        let at =
            unsafe { mmap(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, map, 0)? };
        let entries = NonNull::new(at.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Shared { entries, length })
    }

    fn bytes(length: u32) -> usize {
        length as usize * size_of::<T>()
    }

    fn at(&self, index: u32) -> *mut T {
        assert!(index < self.length, "entry {index} of {}", self.length);
        // SAFETY: within the mapping, as was just checked.
        unsafe { self.entries.as_ptr().add(index as usize) }
    }

    pub(super) fn get(&self, index: u32) -> T {
        // SAFETY: `at` is in the mapping and aligned, since that begins with a page, and any bytes are
        // a valid value. Programs write there only during system calls of the thread that has `self`.
        unsafe { self.at(index).read_volatile() }
    }

    pub(super) fn set(&mut self, index: u32, value: T) {
        // SAFETY: as in `get`; nothing else in this process has the mapping.
        unsafe { self.at(index).write_volatile(value) }
    }
}

impl<T: Plain> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: `new` mapped just that, and no reference into it was ever handed out.
        let result = unsafe { munmap(self.entries.as_ptr().cast(), Self::bytes(self.length)) };
        debug_assert!(result.is_ok(), "munmap of a mapping of our own: {result:?}");
    }
}
