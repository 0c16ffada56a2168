//! Socket options and control messages that no library has.

mod device;
mod family;
mod group;
mod gso;
pub mod limits;

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

pub use device::{Tap, request_about};
pub use family::{canonical, choose_families, has_v6, place};
pub use group::join_group;
pub use gso::{Cutting, Segment};
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

/// Has a raw socket of IGMP or ICMPv6 choose a table of multicast routing.
///
/// # Errors
/// This thread may not, or the system's.
pub fn choose_multicast_table(socket: &impl AsFd, table: u32) -> io::Result<()> {
    /// Of linux/mroute.h, and linux/mroute6.h.
    const MRT_TABLE: i32 = 209;
    // One of IPv4 refuses this, and one of IPv6 the other: the same number of another level.
    let socket = socket.as_fd();
    set_option(&socket, libc::IPPROTO_IPV6, MRT_TABLE, &table).or_else(|error| match error.raw_os_error() {
        Some(libc::ENOPROTOOPT) => set_option(&socket, libc::IPPROTO_IP, MRT_TABLE, &table),
        _ => Err(error),
    })
}

/// Of linux/tcp.h, from Linux 6.15 on; milliseconds, from 1 s to 120 s.
const TCP_RTO_MAX_MS: i32 = 44;

/// How long TCP waits at most before it sends again what was not acknowledged. Connections that a listener accepts
/// have that of the listener.
///
/// # Errors
/// The kernel is older than Linux 6.15, or the time is none that it takes.
pub fn bound_back_off(socket: &impl AsRawFd, longest: Duration) -> io::Result<()> {
    let longest = i32::try_from(longest.as_millis()).unwrap_or(i32::MAX);
    set_int(socket, libc::IPPROTO_TCP, TCP_RTO_MAX_MS, longest)
}

/// What [`bound_back_off`] has set, or what the system does by itself.
///
/// # Errors
/// The kernel is older than Linux 6.15.
pub fn back_off_bound(socket: &impl AsRawFd) -> io::Result<Duration> {
    let (mut value, mut length) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `length` bytes to `value`, and the length to `length`; both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_RTO_MAX_MS,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Duration::from_millis(value.unsigned_abs().into()))
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
