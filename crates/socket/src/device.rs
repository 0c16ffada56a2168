//! Network devices that belong to a file: they are gone when it is closed, however the process ends.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;

use outflow_media::group_mac;

/// What stands before a packet on a link of Ethernet: to and from what address, and of what protocol the packet is.
const HEADER_BYTES: usize = 14;

/// A device of Ethernet whose frames are written and read by this process: those that are sent through it are read,
/// those that are written come in by it. It has no offloads: packets are whole, with checksums. It asks for no
/// addresses of its neighbours (IFF_NOARP): frames for any of them have its own.
#[derive(Debug)]
pub struct Tap {
    file: File,
    /// What the kernel has called it.
    pub name: String,
    /// Its number in the network namespace in which it was made.
    pub ifindex: u32,
    address: [u8; 6],
}

impl Tap {
    /// Makes one in the network namespace of this thread. `%d` in the name stands for the first number that is free.
    /// It is not switched on, and reading it does not wait.
    ///
    /// # Errors
    /// The system's; `CAP_NET_ADMIN` or `/dev/net/tun` is missing.
    pub fn open(name: &str) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        let mut request = request_about(name);
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        configure(&file, libc::TUNSETIFF, &mut request)?;
        let bytes = request.ifr_name.map(|char| char as u8);
        let name = CStr::from_bytes_until_nul(&bytes).map_err(io::Error::other)?;
        let ifindex = index_of(name)?;
        let name = name.to_str().map_err(io::Error::other)?.to_owned();
        configure(&file, libc::SIOCGIFHWADDR, &mut request)?;
        // SAFETY: the request has written this part of the union.
        let [a, b, c, d, e, f, ..] = unsafe { request.ifr_ifru.ifru_hwaddr }.sa_data.map(|byte| byte as u8);
        request.ifr_ifru.ifru_flags = (libc::IFF_NOARP | libc::IFF_MULTICAST) as libc::c_short;
        // Requests about devices go to a socket, of any kind.
        configure(&UnixDatagram::unbound()?, libc::SIOCSIFFLAGS, &mut request)?;
        Ok(Tap { file, name, ifindex, address: [a, b, c, d, e, f] })
    }

    /// Reads one frame: the bytes of its packet, if that is one of IP.
    ///
    /// # Errors
    /// The system's; there is none (`WouldBlock`).
    pub fn read(&self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        let mut header = [0; HEADER_BYTES];
        let bytes =
            (&self.file).read_vectored(&mut [IoSliceMut::new(&mut header), IoSliceMut::new(packet)])?;
        let protocol = i32::from(u16::from_be_bytes([header[12], header[13]]));
        Ok(bytes.checked_sub(HEADER_BYTES).filter(|_| [libc::ETH_P_IP, libc::ETH_P_IPV6].contains(&protocol)))
    }

    /// Writes a packet of IP.
    ///
    /// # Errors
    /// The system's; it is none.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        let header = header(packet, self.address).ok_or(io::ErrorKind::InvalidInput)?;
        // A frame is taken whole, or not at all.
        let _all = (&self.file).write_vectored(&[IoSlice::new(&header), IoSlice::new(packet)])?;
        Ok(())
    }
}

/// What stands before a packet of IP that comes to a device which has this address.
fn header(packet: &[u8], own: [u8; 6]) -> Option<[u8; HEADER_BYTES]> {
    let (to, protocol): (IpAddr, _) = match packet.first()? >> 4 {
        4 => (Ipv4Addr::from(*packet.get(16..)?.first_chunk::<4>()?).into(), libc::ETH_P_IP),
        6 => (Ipv6Addr::from(*packet.get(24..)?.first_chunk::<16>()?).into(), libc::ETH_P_IPV6),
        _ => return None,
    };
    let to = match to {
        group if group.is_multicast() => group_mac(group),
        IpAddr::V4(Ipv4Addr::BROADCAST) => [0xff; 6],
        _ => own,
    };
    let mut header = [0; HEADER_BYTES];
    header[..6].copy_from_slice(&to);
    header[6..12].copy_from_slice(&own);
    header[12..].copy_from_slice(&(protocol as u16).to_be_bytes());
    Some(header)
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A request that concerns the device `name`.
pub fn request_about(name: &str) -> libc::ifreq {
    // SAFETY: a name, and a union of C integers, addresses and pointers: zeros are valid for all.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    // The last byte stays 0.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.as_bytes()) {
        *to = *from as libc::c_char;
    }
    request
}

/// The number of a device in the network namespace of this thread.
fn index_of(name: &CStr) -> io::Result<u32> {
    // SAFETY: a C string, which outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        ifindex => Ok(ifindex),
    }
}

/// Asks about the device that the request names, or has it changed.
fn configure(of: &impl AsRawFd, request: libc::Ioctl, about: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: the requests of this file read and write an `ifreq`, which outlives the call.
    if unsafe { libc::ioctl(of.as_raw_fd(), request, &raw mut *about) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];

    /// The first bytes of a packet to an address.
    fn packet(to: &str) -> Vec<u8> {
        match to.parse().expect("an address") {
            IpAddr::V4(to) => [&[0x45][..], &[0; 15], &to.octets()].concat(),
            IpAddr::V6(to) => [&[0x60][..], &[0; 23], &to.octets()].concat(),
        }
    }

    #[test]
    fn a_packet_comes_in_a_frame_to_its_group_to_all_or_to_the_device() {
        let (v4, v6) = ([0x08, 0x00], [0x86, 0xdd]);
        for (to, address, protocol) in [
            ("10.0.0.1", OWN, v4),
            ("239.129.2.3", [0x01, 0x00, 0x5e, 0x01, 0x02, 0x03], v4),
            ("255.255.255.255", [0xff; 6], v4),
            ("fd00::1", OWN, v6),
            ("ff08::102:304", [0x33, 0x33, 1, 2, 3, 4], v6),
        ] {
            let header = header(&packet(to), OWN).expect(to);
            assert_eq!(header, *[&address[..], &OWN, &protocol].concat(), "{to}");
        }
        for none in [&[][..], &[0x45; 19], &[0x60; 39], &[0x05; 60]] {
            assert_eq!(header(none, OWN), None, "{none:?}");
        }
    }

    #[test]
    fn it_is_made_with_a_name_and_is_gone_with_its_file() {
        let tap = match Tap::open("socket%d") {
            Ok(tap) => tap,
            Err(error) => return outflow_skip::skipped("a TAP device", &error),
        };
        let name = CString::new(&*tap.name).expect("a name");
        assert_eq!(index_of(&name).expect("it is there"), tap.ifindex);
        assert!(tap.write(b"no packet").is_err(), "what is none of IP is refused");
        drop(tap);
        index_of(&name).expect_err("it is gone");
    }
}
