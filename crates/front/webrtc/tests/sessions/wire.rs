//! How peers send and receive, by UDP and by TCP.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};

use crate::PATIENCE;

/// How a peer sends and receives.
pub(crate) enum Wire {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Wire {
    /// To the first candidate of a transport in an answer.
    pub(crate) fn new(answer: &str, transport: &str) -> Self {
        let is_of =
            |line: &&str| line.starts_with("a=candidate:") && line.split(' ').nth(2) == Some(transport);
        let candidate = answer.lines().find(is_of).expect("there is one");
        let candidate: Vec<&str> = candidate.split(' ').collect();
        let at: SocketAddr = format!("{}:{}", candidate[4], candidate[5]).parse().expect("an address");
        if transport == "tcp" {
            let tcp = TcpStream::connect(at).expect("it is listened there");
            tcp.set_read_timeout(Some(PATIENCE)).expect("set");
            return Wire::Tcp(tcp);
        }
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        udp.set_read_timeout(Some(PATIENCE)).expect("set");
        udp.connect(at).expect("there is a way");
        Wire::Udp(udp)
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        match self {
            Wire::Udp(udp) => udp.local_addr(),
            Wire::Tcp(tcp) => tcp.local_addr(),
        }
        .expect("bound")
    }

    pub(crate) fn send(&self, datagram: &[u8]) {
        let sent = match self {
            Wire::Udp(udp) => udp.send(datagram).map(drop),
            Wire::Tcp(tcp) => {
                let length = (datagram.len() as u16).to_be_bytes();
                (&*tcp).write_all(&[&length, datagram].concat())
            }
        };
        sent.expect("sent");
    }

    pub(crate) fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Udp(udp) => udp.recv(buffer),
            Wire::Tcp(tcp) => {
                let (mut tcp, mut length) = (tcp, [0; 2]);
                tcp.read_exact(&mut length)?;
                let length = usize::from(u16::from_be_bytes(length));
                tcp.read_exact(&mut buffer[..length]).map(|()| length)
            }
        }
    }
}

/// The address of IPv4 in an answer to a check (RFC 8489, section 14.2).
pub(crate) fn mapped(message: &[u8]) -> Option<SocketAddr> {
    let at = message.windows(6).position(|bytes| bytes == [0, 0x20, 0, 8, 0, 1])?;
    let [high, low, a, b, c, d] = *message.get(at + 6..)?.first_chunk()?;
    let plain = [high ^ 0x21, low ^ 0x12, a ^ 0x21, b ^ 0x12, c ^ 0xa4, d ^ 0x42];
    Some(SocketAddr::from((
        [plain[2], plain[3], plain[4], plain[5]],
        u16::from_be_bytes([plain[0], plain[1]]),
    )))
}
