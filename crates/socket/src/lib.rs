//! Socket options and control messages that no library has.

mod gso;
pub mod limits;

use std::io;
use std::os::fd::{AsFd, AsRawFd};

pub use gso::Segment;
pub use outflow_privilege::Buffer;

/// Asks for a buffer beyond the system's limit, which root may and the helper for privileges, or else up to it.
pub fn set_buffer(socket: &impl AsFd, buffer: Buffer, bytes: usize) {
    if force_buffer(socket, buffer, bytes).is_err() {
        let plain = if buffer == Buffer::Send { libc::SO_SNDBUF } else { libc::SO_RCVBUF };
        let _ = set_int(&socket.as_fd(), libc::SOL_SOCKET, plain, bytes as i32);
        let _ = outflow_privilege::enlarge(socket.as_fd(), buffer, bytes);
    }
}

/// Asks for a buffer beyond the system's limit.
///
/// # Errors
/// This thread may not, or the system's.
pub fn force_buffer(socket: &impl AsFd, buffer: Buffer, bytes: usize) -> io::Result<()> {
    let force = if buffer == Buffer::Send { libc::SO_SNDBUFFORCE } else { libc::SO_RCVBUFFORCE };
    set_int(&socket.as_fd(), libc::SOL_SOCKET, force, bytes as i32)
}

/// Has a raw socket of IGMP choose a table of multicast routing.
///
/// # Errors
/// This thread may not, or the system's.
pub fn choose_multicast_table(socket: &impl AsFd, table: u32) -> io::Result<()> {
    /// Of linux/mroute.h.
    const MRT_TABLE: i32 = 209;
    set_option(&socket.as_fd(), libc::IPPROTO_IP, MRT_TABLE, &table)
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
