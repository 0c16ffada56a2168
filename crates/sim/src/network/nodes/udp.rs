//! Datagrams in packets of IP.

use core::net::SocketAddr;

use bytes::Bytes;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};

/// How far packets go (RFC 1700 recommends it).
const HOPS: u8 = 64;

/// A packet of IP with a datagram; nothing if the addresses are of two families, or it is too long.
pub(super) fn datagram(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Option<Bytes> {
    let builder = match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            PacketBuilder::ipv4(from.ip().octets(), to.ip().octets(), HOPS)
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            PacketBuilder::ipv6(from.ip().octets(), to.ip().octets(), HOPS)
        }
        _ => return None,
    };
    let builder = builder.udp(from.port(), to.port());
    let mut packet = Vec::with_capacity(builder.size(payload.len()));
    builder.write(&mut packet, payload).ok()?;
    Some(packet.into())
}

/// A datagram of a packet: from where, to where, and what it holds. Nothing if it is none, or not whole.
pub(super) fn payload(packet: &Bytes) -> Option<(SocketAddr, SocketAddr, Bytes)> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let TransportSlice::Udp(udp) = sliced.transport? else { return None };
    let (from, to) = match sliced.net? {
        NetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        NetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        NetSlice::Arp(_) => return None,
    };
    let ports = (udp.source_port(), udp.destination_port());
    Some((SocketAddr::new(from, ports.0), SocketAddr::new(to, ports.1), packet.slice_ref(udp.payload())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for (from, to) in [("10.0.0.1:5", "239.1.1.1:6"), ("[fd00::1]:5", "[ff0e::1]:6")] {
            let (from, to) = (from.parse().expect("one"), to.parse().expect("one"));
            let packet = datagram(from, to, b"payload").expect("it fits");
            assert_eq!(payload(&packet), Some((from, to, Bytes::from_static(b"payload"))));
            assert_eq!(payload(&packet.slice(..packet.len() - 1)), None, "it is cut off");
        }
        assert_eq!(datagram("10.0.0.1:5".parse().expect("one"), "[::1]:6".parse().expect("one"), b""), None);
    }
}
