//! Socket options and control messages that no library has.

mod gso;
pub mod limits;

use std::io;
use std::os::fd::AsRawFd;

pub use gso::Segment;

/// Asks for a buffer beyond the system's limit, which root may, or else up to it.
pub fn set_buffer(socket: &impl AsRawFd, force: i32, plain: i32, bytes: usize) {
    let bytes = bytes as i32;
    if set_int(socket, libc::SOL_SOCKET, force, bytes).is_err() {
        let _ = set_int(socket, libc::SOL_SOCKET, plain, bytes);
    }
}

/// Sets a socket option that is an int.
///
/// # Errors
/// The system's.
pub fn set_int(socket: &impl AsRawFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    set_option(socket, level, option, &value)
}

/// Sets a socket option whose value is the C structure `value`.
///
/// # Errors
/// The system's.
pub fn set_option<T>(socket: &impl AsRawFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes at `value`, which outlives the call.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
