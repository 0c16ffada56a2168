//! Groups that a socket joins.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use super::set_option;

/// Joins a group on an interface, by its index: what all sources send, or this one (RFC 4607). With index 0, the interface
/// is the one that routes lead to.
///
/// # Errors
/// The system's. Group and source have to be of one family, that of the socket.
pub fn join_group(
    socket: &impl AsRawFd,
    group: IpAddr,
    source: Option<IpAddr>,
    interface: u32,
) -> io::Result<()> {
    let level = if group.is_ipv4() { libc::IPPROTO_IP } else { libc::IPPROTO_IPV6 };
    // The same for both families (RFC 3678, section 5.1).
    match source {
        Some(source) => {
            let request = libc::group_source_req {
                gsr_interface: interface,
                gsr_group: storage(group),
                gsr_source: storage(source),
            };
            set_option(socket, level, libc::MCAST_JOIN_SOURCE_GROUP, &request)
        }
        None => {
            let request = libc::group_req { gr_interface: interface, gr_group: storage(group) };
            set_option(socket, level, libc::MCAST_JOIN_GROUP, &request)
        }
    }
}

/// An address without a port, as the kernel has it.
fn storage(address: IpAddr) -> libc::sockaddr_storage {
    // SAFETY: zeros are a valid value of all its fields.
    let mut storage: libc::sockaddr_storage = unsafe { core::mem::zeroed() };
    let place = &raw mut storage;
    match address {
        IpAddr::V4(address) => {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: 0,
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: it has room for any address, and is aligned for all.
            unsafe { place.cast::<libc::sockaddr_in>().write(address) };
        }
        IpAddr::V6(address) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: 0,
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: address.octets() },
                sin6_scope_id: 0,
            };
            // SAFETY: as above.
            unsafe { place.cast::<libc::sockaddr_in6>().write(address) };
        }
    }
    storage
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "what comes by real sockets is tested")]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
    use std::time::Duration;

    use super::*;

    /// The loopback device, everywhere.
    const LOOPBACK: u32 = 1;

    /// Whether what is sent to a group from an address comes where it was joined from a source.
    fn comes(group: [u8; 4], from: Ipv4Addr, source: Option<Ipv4Addr>) -> bool {
        let group = IpAddr::from(group);
        let receiver = UdpSocket::bind((group, 0)).expect("a free port");
        join_group(&receiver, group, source.map(IpAddr::from), LOOPBACK).expect("it is joined");
        receiver.set_read_timeout(Some(Duration::from_millis(200))).expect("an option");
        let sender = UdpSocket::bind((from, 0)).expect("a free port");
        let by = libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) };
        set_option(&sender, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &by).expect("an option");
        let to = (group, receiver.local_addr().expect("a port").port());
        sender.send_to(b"hello", to).expect("a way out");
        receiver.recv(&mut [0; 8]).is_ok()
    }

    #[test]
    fn a_group_brings_what_is_sent_to_it_by_all_or_by_the_one_source_that_was_asked_for() {
        let here = Ipv4Addr::LOCALHOST;
        assert!(comes([239, 66, 0, 1], here, None));
        assert!(comes([232, 66, 0, 2], here, Some(here)));
        assert!(!comes([232, 66, 0, 3], here, Some(Ipv4Addr::new(127, 0, 0, 9))));
    }

    /// The loopback device has no way to groups of IPv6: this asks the kernel what was joined.
    #[test]
    fn groups_of_ipv6_and_their_sources_are_joined() {
        let socket = UdpSocket::bind("[::]:0").expect("a free port");
        let group = |last| Ipv6Addr::new(0xff35, 0, 0, 0, 0, 0, 0x8000, last);
        let join = |last, source: Option<Ipv6Addr>| {
            join_group(&socket, group(last).into(), source.map(IpAddr::from), LOOPBACK)
        };
        let [one, other] = [9, 10].map(|last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
        join(0x6601, Some(one)).expect("it is joined");
        assert!(join(0x6601, Some(one)).is_err(), "it is joined already");
        join(0x6601, Some(other)).expect("another source");
        join(0x6602, None).expect("all sources");
        let shown = std::fs::read_to_string("/proc/self/net/igmp6").expect("a file");
        for last in [0x6601, 0x6602] {
            assert!(shown.contains(&format!("{:032x}", group(last).to_bits())), "{shown}");
        }
    }

    #[test]
    fn a_group_and_a_source_of_different_families_are_an_error() {
        let socket = UdpSocket::bind("[::]:0").expect("a free port");
        let mixed = join_group(&socket, [232, 1, 1, 1].into(), Some(Ipv6Addr::LOCALHOST.into()), LOOPBACK);
        assert!(mixed.is_err());
    }
}
