//! Sockets that receive.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};

use outflow_socket::{Buffer, choose_families, join_group, set_buffer, set_int};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::limits::{REPORTS_BUFFER_BYTES, SOURCE_BUFFER_BYTES};
use crate::message::ControlError;

/// An RTP port and the RTCP port above it.
#[derive(Debug)]
pub struct PortPair {
    /// For media.
    pub rtp: UdpSocket,
    /// For reports.
    pub rtcp: UdpSocket,
    /// Their ports.
    pub ports: (u16, u16),
}

/// Binds the next free pair of ports, even and odd (RFC 3550, section 11), from `range`.
///
/// # Errors
/// All pairs of the range are taken.
pub fn bind_pair(ip: IpAddr, range: &RangeInclusive<u16>) -> Result<PortPair, ControlError> {
    // Where to look first; moving on lets a port rest before it is used again.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = u32::from(range.start().next_multiple_of(2));
    let pairs = (u32::from(*range.end()) + 1).saturating_sub(first) / 2;
    for _ in 0..pairs {
        let port = (first + NEXT.fetch_add(1, Ordering::Relaxed) % pairs * 2) as u16;
        if let Ok(pair) = bind_pair_at(ip, port) {
            return Ok(pair);
        }
    }
    let (what, key) = ("the RTP port pairs in use", "listen.rtp_ports");
    Err(ControlError::Limit { what, limit: pairs as usize, key })
}

/// Binds this port and the one above it.
///
/// # Errors
/// One of them is taken, or the address is not there.
pub(crate) fn bind_pair_at(ip: IpAddr, port: u16) -> io::Result<PortPair> {
    let rtp = bind(SocketAddr::new(ip, port), For::Media)?;
    let rtcp = bind(SocketAddr::new(ip, port + 1), For::Reports)?;
    Ok(PortPair { rtp, rtcp, ports: (port, port + 1) })
}

/// Binds the ports of two sockets that are bound to no address, at this one.
///
/// # Errors
/// The address is not there, or another socket has the ports there.
pub(crate) fn bind_pair_beside(ip: IpAddr, (rtp, rtcp): (SockRef<'_>, SockRef<'_>)) -> io::Result<PortPair> {
    let beside = |shared: &SockRef<'_>, what: For| -> io::Result<(UdpSocket, u16)> {
        let local = shared.local_addr()?.as_socket().map_or(0, |local| local.port());
        let at = SocketAddr::new(ip, local);
        let socket = open(at, what)?;
        // Both must agree to share the port, and do so only as long as this takes, so that no other socket
        // can bind beside them.
        socket.set_reuse_address(true)?;
        shared.set_reuse_address(true)?;
        let bound = socket.bind(&at.into());
        shared.set_reuse_address(false)?;
        bound?;
        socket.set_reuse_address(false)?;
        Ok((socket.into(), local))
    };
    let ((rtp, rtp_port), (rtcp, rtcp_port)) = (beside(&rtp, For::Media)?, beside(&rtcp, For::Reports)?);
    Ok(PortPair { rtp, rtcp, ports: (rtp_port, rtcp_port) })
}

/// Binds a socket for a configured source: a plain port, at `[::]` of IPv4 as well, or a multicast group, of any source
/// or of one (RFC 4607).
///
/// # Errors
/// What the system says, with what was being done.
pub fn bind_source(
    at: SocketAddr,
    from: Option<IpAddr>,
    interface: Option<&str>,
) -> Result<UdpSocket, ControlError> {
    let doing = |step: &str| format!("{step} {at}");
    let socket = open(at, For::Media).map_err(|e| ControlError::system(doing("opening a socket for"), &e))?;
    if at.ip().is_multicast() {
        socket.set_reuse_address(true).map_err(|e| ControlError::system(doing("sharing"), &e))?;
    }
    choose_families(&socket, at).map_err(|e| ControlError::system(doing("choosing what comes to"), &e))?;
    socket.bind(&at.into()).map_err(|e| ControlError::system(doing("binding"), &e))?;
    if at.ip().is_multicast() {
        join(&socket, at.ip(), from, interface).map_err(|e| ControlError::system(doing("joining"), &e))?;
    }
    Ok(socket.into())
}

/// What a socket receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    Media,
    /// RTCP: little, and from any address.
    Reports,
}

fn bind(at: SocketAddr, what: For) -> io::Result<UdpSocket> {
    let socket = open(at, what)?;
    socket.bind(&at.into())?;
    Ok(socket.into())
}

fn open(at: SocketAddr, what: For) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if at.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    let buffer = if what == For::Media { SOURCE_BUFFER_BYTES } else { REPORTS_BUFFER_BYTES };
    set_buffer(&socket, Buffer::Receive, buffer);
    // Both only help: a kernel without them still receives.
    if what == For::Media {
        let _ = set_int(&socket, libc::SOL_UDP, libc::UDP_GRO, 1);
    }
    let _ = set_int(&socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    Ok(socket)
}

fn join(socket: &Socket, group: IpAddr, from: Option<IpAddr>, interface: Option<&str>) -> io::Result<()> {
    let index = match interface {
        Some(name) => rustix::net::netdevice::name_to_index(socket, name)?,
        None => 0,
    };
    join_group(socket, group, from, index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_even_and_odd_and_end_with_the_range() {
        let range = 42_001..=42_006;
        let ip = IpAddr::from([127, 0, 0, 1]);
        let a = bind_pair(ip, &range).expect("two pairs are free");
        let b = bind_pair(ip, &range).expect("one pair is free");
        assert!(a.ports.0.is_multiple_of(2) && a.ports.1 == a.ports.0 + 1 && a.ports != b.ports);
        assert!(matches!(bind_pair(ip, &range), Err(ControlError::Limit { limit: 2, .. })));
    }

    #[test]
    fn reports_have_little_room() {
        let pair = bind_pair(IpAddr::from([127, 0, 0, 1]), &(42_011..=42_098)).expect("a pair is free");
        let room = SockRef::from(&pair.rtcp).recv_buffer_size().expect("it has one");
        // The system counts what it keeps beside them, too.
        assert!(room <= 2 * REPORTS_BUFFER_BYTES, "{room}");
    }
}
