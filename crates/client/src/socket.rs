//! UDP sockets that receive: plain, in pairs, and in multicast groups.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};

use bytes::{Bytes, BytesMut};
use outflow_rtsp::Pair;
use outflow_socket::join_group;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use crate::Error;
use crate::limits::{DATAGRAM_BYTES, DATAGRAMS_A_TURN, PORT_ATTEMPTS};

/// Where datagrams are expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// A local address (any, mostly), or a group.
    pub(crate) at: SocketAddr,
    /// The only source to hear, RFC 4607.
    pub(crate) source: Option<IpAddr>,
    /// Name or address of the interface to join a group at.
    pub(crate) interface: Option<String>,
}

/// A socket and the memory that its datagrams land in.
#[derive(Debug)]
pub(crate) struct Datagrams {
    socket: UdpSocket,
    buffer: BytesMut,
    /// Others are not heard.
    pub(crate) only_from: Option<IpAddr>,
    /// Datagrams from others.
    pub(crate) strangers: u64,
}

impl Datagrams {
    pub(crate) fn new(socket: UdpSocket) -> Self {
        Datagrams { socket, buffer: BytesMut::new(), only_from: None, strangers: 0 }
    }

    /// A copy of its descriptor for another process.
    pub(crate) fn copied(&self) -> Option<OwnedFd> {
        self.socket.as_fd().try_clone_to_owned().ok()
    }

    pub(crate) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Hands on what is there, up to a turn's worth.
    pub(crate) fn receive(&mut self, mut tell: impl FnMut(Bytes, SocketAddr)) -> io::Result<()> {
        for _ in 0..DATAGRAMS_A_TURN {
            if self.buffer.capacity() < DATAGRAM_BYTES {
                self.buffer = BytesMut::with_capacity(4 * DATAGRAM_BYTES);
            }
            match self.socket.try_recv_buf_from(&mut self.buffer) {
                Ok((_, from)) => {
                    let bytes = self.buffer.split().freeze();
                    if self.only_from.is_none_or(|ip| ip == from.ip().to_canonical()) {
                        tell(bytes, from);
                    } else {
                        self.strangers += 1;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // What an ICMP message said of something that was sent here earlier.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A socket that another process has had.
pub(crate) fn taken(descriptor: OwnedFd) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::from(descriptor);
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// Binds a socket, and joins the group if the address is one.
pub(crate) fn bind(place: &Place, buffer: usize) -> Result<UdpSocket, Error> {
    let at = place.at;
    let doing = |what: &str| Error::system(format!("{what} {at}"));
    let socket = open(at, buffer).map_err(doing("opening a socket for"))?;
    let group = at.ip().is_multicast();
    if group {
        socket.set_reuse_address(true).map_err(doing("sharing"))?;
    }
    socket.bind(&at.into()).map_err(doing("binding"))?;
    if group {
        join(&socket, place).map_err(doing("joining"))?;
    }
    UdpSocket::from_std(socket.into()).map_err(doing("binding"))
}

/// Binds an even port and the odd one above it (RFC 3550 section 11), wherever two are free.
pub(crate) fn bind_pair(ip: IpAddr, buffer: usize) -> Result<(Pair<u16>, UdpSocket, UdpSocket), Error> {
    let any = |port| Place { at: SocketAddr::new(ip, port), source: None, interface: None };
    for _ in 0..PORT_ATTEMPTS {
        let rtp = bind(&any(0), buffer)?;
        let port = rtp.local_addr().map_err(Error::system("binding"))?.port();
        if port % 2 == 0
            && let Ok(rtcp) = bind(&any(port + 1), 0)
        {
            return Ok((Pair { rtp: port, rtcp: port + 1 }, rtp, rtcp));
        }
    }
    let error = io::Error::from(io::ErrorKind::AddrInUse);
    Err(Error::System { doing: format!("finding two neighbouring UDP ports of {ip}"), error })
}

fn open(at: SocketAddr, buffer: usize) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if buffer > 0 {
        // As much as the system allows: net.core.rmem_max.
        let _ = socket.set_recv_buffer_size(buffer);
    }
    Ok(socket)
}

fn join(socket: &Socket, place: &Place) -> io::Result<()> {
    let interface = place.interface.as_deref().map(index_of).transpose()?;
    join_group(socket, place.at.ip(), place.source, interface.unwrap_or(0))
}

/// The index of an interface, by its name, or by one of its addresses.
fn index_of(wanted: &str) -> io::Result<u32> {
    let ip: Option<IpAddr> = wanted.parse().ok();
    let mut all = if_addrs::get_if_addrs()?.into_iter();
    let found = all.find(|one| one.name == wanted || Some(one.ip()) == ip).and_then(|one| one.index);
    found.ok_or_else(|| io::Error::other(format!("no interface '{wanted}' with an address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pairs_are_even_and_odd() {
        let (ports, rtp, rtcp) = bind_pair(IpAddr::from([127, 0, 0, 1]), 1 << 16).unwrap();
        assert!(ports.rtp % 2 == 0 && ports.rtcp == ports.rtp + 1);
        assert_eq!(rtp.local_addr().unwrap().port(), ports.rtp);
        assert_eq!(rtcp.local_addr().unwrap().port(), ports.rtcp);
    }

    #[tokio::test]
    async fn strangers_are_not_heard() {
        let (_, rtp, _other) = bind_pair(IpAddr::from([127, 0, 0, 1]), 1 << 16).unwrap();
        let to = rtp.local_addr().unwrap();
        let mut datagrams = Datagrams::new(rtp);
        let from = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut got = Vec::new();
        for only in ["127.0.0.1", "127.0.0.9"] {
            datagrams.only_from = only.parse().ok();
            from.send_to(only.as_bytes(), to).await.unwrap();
            datagrams.socket().readable().await.unwrap();
            datagrams.receive(|bytes, _| got.push(bytes)).unwrap();
        }
        assert_eq!(got, ["127.0.0.1"]);
        assert_eq!(datagrams.strangers, 1);
    }

    #[tokio::test]
    async fn interfaces_are_found_by_name_and_address() {
        assert_eq!(index_of("127.0.0.1").unwrap(), index_of("lo").unwrap());
        assert!(index_of("no-such-interface").is_err());
    }
}
