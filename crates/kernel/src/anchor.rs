//! The anchor: a network device of our own, at which the programs are attached.
//!
//! A TAP device that no packet ever leaves through: its classifier takes all of them. It is gone
//! with the process, however that ends, and takes the programs along; the operator's devices are
//! never touched.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::device::{configure, named};

/// The largest that the TAP driver takes (`max_mtu` in drivers/net/tun.c).
pub(super) const MTU: i32 = 65_521;

/// The device, there for as long as this value is.
#[derive(Debug)]
pub(super) struct Anchor {
    _file: File,
    pub(super) ifindex: u32,
}

impl Anchor {
    /// Makes the device and switches it on. The kernel chooses the number in its name.
    pub(super) fn open() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
        let mut request = named("outflow%d");
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        configure(&file, libc::TUNSETIFF, &mut request)?;
        let name = name_of(&request)?;
        // What is sent here needs no checksums yet: the last device makes them.
        offload(&file)?;

        // Before the device is switched on: IPv6 would at once send router solicitations through it.
        // Where /proc/sys is read-only they are sent; the classifier ends them.
        let _without = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let socket: OwnedFd = socket_with(AddressFamily::INET, kind, flags, None)?;
        request.ifr_ifru.ifru_mtu = MTU;
        configure(&socket, libc::SIOCSIFMTU, &mut request)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_NOARP) as libc::c_short;
        configure(&socket, libc::SIOCSIFFLAGS, &mut request)?;
        let ifindex = rustix::net::netdevice::name_to_index(&socket, &name)?;
        Ok(Anchor { _file: file, ifindex })
    }
}

/// Says that this end, which never reads, could finish checksums (TUN_F_CSUM of linux/if_tun.h).
fn offload(file: &File) -> io::Result<()> {
    const CHECKSUMS: libc::c_ulong = 1;
    // SAFETY: this request takes its argument as a number.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, CHECKSUMS) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn name_of(request: &libc::ifreq) -> io::Result<String> {
    let bytes = request.ifr_name.map(|char| char as u8);
    let name = CStr::from_bytes_until_nul(&bytes).map_err(io::Error::other)?;
    name.to_str().map(str::to_owned).map_err(io::Error::other)
}
