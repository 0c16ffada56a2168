//! The anchor: a network device of our own, at which the programs are attached.
//!
//! A TAP device that no packet ever leaves through: its classifier takes all of them. It is gone
//! with the process, however that ends, and takes the programs along; the operator's devices are
//! never touched.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use outflow_socket::{Tap, request_about};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::device::configure;

/// The largest that the TAP driver takes (`max_mtu` in drivers/net/tun.c).
pub(super) const MTU: i32 = 65_521;

/// The device, there for as long as this value is.
#[derive(Debug)]
pub(super) struct Anchor {
    _tap: Tap,
    pub(super) ifindex: u32,
}

impl Anchor {
    /// Makes the device and switches it on. The kernel chooses the number in its name.
    pub(super) fn open() -> io::Result<Self> {
        let tap = Tap::open("outflow%d")?;
        let mut request = request_about(&tap.name);
        // What is sent here needs no checksums yet: the last device makes them.
        offload(&tap)?;

        // Before the device is switched on: IPv6 would at once send router solicitations through it.
        // Where /proc/sys is read-only they are sent; the classifier ends them.
        let _without = std::fs::write(format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", tap.name), "1");
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let socket: OwnedFd = socket_with(AddressFamily::INET, kind, flags, None)?;
        request.ifr_ifru.ifru_mtu = MTU;
        configure(&socket, libc::SIOCSIFMTU, &mut request)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_NOARP) as libc::c_short;
        configure(&socket, libc::SIOCSIFFLAGS, &mut request)?;
        Ok(Anchor { ifindex: tap.ifindex, _tap: tap })
    }
}

/// Says that this end, which never reads, could finish checksums (TUN_F_CSUM of linux/if_tun.h).
fn offload(tap: &Tap) -> io::Result<()> {
    const CHECKSUMS: libc::c_ulong = 1;
    // SAFETY: this request takes its argument as a number.
    let result = unsafe { libc::ioctl(tap.as_fd().as_raw_fd(), libc::TUNSETOFFLOAD, CHECKSUMS) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
