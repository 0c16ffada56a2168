//! IPv4 and IPv6 by one socket: what is bound to `[::]` takes both.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use crate::set_int;

/// Has a socket that is to be bound there take IPv4, too, if that is `[::]`, and else not, whatever
/// `net.ipv6.bindv6only` says.
///
/// # Errors
/// The system's.
pub fn choose_families(socket: &impl AsRawFd, at: SocketAddr) -> io::Result<()> {
    let SocketAddr::V6(at) = at else { return Ok(()) };
    let only_v6 = i32::from(!at.ip().is_unspecified());
    set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, only_v6)
}

/// Whether the kernel has IPv6, and lets this process use it.
#[allow(clippy::disallowed_methods, reason = "the system is asked what it has")]
pub fn has_v6() -> bool {
    let opened = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0));
    !opened.is_err_and(|error| error.raw_os_error() == Some(libc::EAFNOSUPPORT))
}

/// Where to listen for what is to come to an address: `[::]` is `0.0.0.0` where there is no IPv6.
pub fn place(at: SocketAddr, has_v6: impl FnOnce() -> bool) -> SocketAddr {
    if at.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && !has_v6() {
        return SocketAddr::from((Ipv4Addr::UNSPECIFIED, at.port()));
    }
    at
}

/// The address of a peer as it is shown, compared and sent to: one of IPv4 that came to `[::]` is one of IPv4.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        // With the interface that one of a link belongs to.
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Socket, Type};

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn everywhere_is_everywhere_of_ipv4_where_there_is_no_ipv6() {
        assert_eq!(place(address("[::]:8080"), || false), address("0.0.0.0:8080"));
        for at in ["[::]:8080", "0.0.0.0:8080", "[2001:db8::1]:8080"] {
            assert_eq!(place(address(at), || true), address(at));
        }
        // One that is named is not to be had then, and the system says so.
        assert_eq!(place(address("[2001:db8::1]:8080"), || false), address("[2001:db8::1]:8080"));
    }

    #[test]
    fn addresses_of_ipv4_are_such_and_those_of_a_link_keep_their_interface() {
        assert_eq!(canonical(address("[::ffff:192.0.2.1]:99")), address("192.0.2.1:99"));
        for own in ["192.0.2.1:99", "[2001:db8::1]:99", "[fe80::1%3]:99"] {
            assert_eq!(canonical(address(own)), address(own));
        }
    }

    #[test]
    fn a_socket_everywhere_takes_ipv4_and_another_of_ipv6_does_not_whatever_the_system_does_by_itself() {
        if !has_v6() {
            return outflow_skip::skipped("sockets of both families", "no IPv6 here");
        }
        for (at, only_v6) in [("[::]:0", false), ("[::1]:0", true)] {
            let socket = Socket::new(Domain::IPV6, Type::STREAM, None).expect("there is IPv6");
            socket.set_only_v6(!only_v6).expect("it is not bound yet");
            choose_families(&socket, address(at)).expect("chosen");
            assert_eq!(socket.only_v6().expect("asked"), only_v6, "{at}");
        }
        let v4 = Socket::new(Domain::IPV4, Type::STREAM, None).expect("there is IPv4");
        choose_families(&v4, address("0.0.0.0:0")).expect("there is nothing to choose");
    }
}
