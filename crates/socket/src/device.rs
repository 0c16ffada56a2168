//! Network devices that belong to a file: they are gone when it is closed, however the process ends.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// A device whose packets are written and read by this process: those that are sent through it are read, those that
/// are written come in by it. A packet is one of IP, whole and with checksums, without anything before it.
#[derive(Debug)]
pub struct Tun {
    /// Each read gives one packet, each write takes one. It does not wait.
    pub file: File,
    /// What the kernel has called it.
    pub name: String,
    /// Its number in the network namespace in which it was made.
    pub ifindex: u32,
}

impl Tun {
    /// Makes one in the network namespace of this thread. `%d` in the name stands for the first number that is free.
    ///
    /// # Errors
    /// The system's; `CAP_NET_ADMIN` or `/dev/net/tun` is missing.
    pub fn open(name: &str) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: a name, and a union of C integers, addresses and pointers: zeros are valid for all.
        let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
        // The last byte stays 0.
        for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.as_bytes()) {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes an `ifreq`, which outlives the call.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let bytes = request.ifr_name.map(|char| char as u8);
        let name = CStr::from_bytes_until_nul(&bytes).map_err(io::Error::other)?;
        // SAFETY: a C string, which outlives the call.
        let ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if ifindex == 0 {
            return Err(io::Error::last_os_error());
        }
        let name = name.to_str().map_err(io::Error::other)?.to_owned();
        Ok(Tun { file, name, ifindex })
    }
}
