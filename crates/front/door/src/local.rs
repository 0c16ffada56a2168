//! Which user a program on this machine belongs to that is connected to the relay: the kernel says it, sock_diag(7).

use std::io;
use std::net::SocketAddr;

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr as NetlinkAddress};

/// Any socket: INET_DIAG_NOCOOKIE of linux/inet_diag.h, twice.
const NO_COOKIE: [u8; 8] = [0xff; 8];

/// A user of this machine, by number.
pub type User = u32;

/// The user that the other end of a TCP connection belongs to; none if that end is not on this machine. `peer` is its
/// address, `here` that of our end.
pub fn user_of(peer: SocketAddr, here: SocketAddr) -> Option<User> {
    if !peer.ip().to_canonical().is_loopback() {
        return None;
    }
    let asked = ask(peer, here);
    if let Err(error) = &asked {
        tracing::debug!(%peer, %error, "the kernel does not say which user a peer belongs to");
    }
    asked.ok().flatten()
}

/// The user that this process acts for.
pub fn own_user() -> User {
    rustix::process::geteuid().as_raw()
}

fn ask(peer: SocketAddr, here: SocketAddr) -> io::Result<Option<User>> {
    let request = emit(peer, here);
    let socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.send_to(&request, &NetlinkAddress::new(0, 0), 0)?;
    // The kernel has answered when the call returns.
    let mut answer = Vec::with_capacity(ANSWER_BYTES);
    socket.recv(&mut answer, libc::MSG_DONTWAIT)?;
    let answer = NetlinkMessage::<SockDiagMessage>::deserialize(&answer).map_err(io::Error::other)?;
    match answer.payload {
        NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(found)) => Ok(Some(found.header.uid)),
        NetlinkPayload::Error(error) if error.raw_code() == -libc::ENOENT => Ok(None),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        other => Err(io::Error::other(format!("an answer that was not expected: {other:?}"))),
    }
}

/// Bytes of an answer without attributes, and some to spare.
const ANSWER_BYTES: usize = 4096;

/// The question for the socket at `peer` that is connected to `here`.
fn emit(peer: SocketAddr, here: SocketAddr) -> Vec<u8> {
    let socket_id = SocketId {
        source_port: peer.port(),
        destination_port: here.port(),
        source_address: peer.ip().to_canonical(),
        destination_address: here.ip().to_canonical(),
        interface_id: 0,
        cookie: NO_COOKIE,
    };
    let request = InetRequest {
        family: if socket_id.source_address.is_ipv4() { AF_INET } else { AF_INET6 },
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::all(),
        socket_id,
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_other_end_of_a_connection_here_belongs_to_this_user() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(at).expect("bound");
            let here = listener.local_addr().expect("an address");
            let peer = TcpStream::connect(here).expect("connected");
            let address = peer.local_addr().expect("an address");
            assert_eq!(user_of(address, here), Some(own_user()), "{at}");
            let other = SocketAddr::new(address.ip(), address.port() ^ 1);
            assert_eq!(user_of(other, here), None, "no such connection");
        }
    }

    #[test]
    fn a_mapped_address_is_that_of_the_socket() {
        let listener = TcpListener::bind("[::]:0").expect("bound");
        let port = listener.local_addr().expect("an address").port();
        let peer = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        let (ours, mapped) = listener.accept().expect("accepted");
        assert_eq!(mapped.port(), peer.local_addr().expect("an address").port());
        assert_eq!(user_of(mapped, ours.local_addr().expect("an address")), Some(own_user()));
    }

    #[test]
    fn a_peer_elsewhere_is_no_user_of_this_machine() {
        let here = SocketAddr::from(([10, 0, 0, 2], 8080));
        assert_eq!(user_of(SocketAddr::from(([10, 0, 0, 1], 5000)), here), None);
    }
}
