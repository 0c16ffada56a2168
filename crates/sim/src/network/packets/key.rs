//! Whose a packet is: its addresses and ports.

use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};

/// What packets of a flow have in common: protocol, addresses and ports, which are 0 where it has none or they cannot
/// be seen, as in fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::network) struct Key {
    pub(in crate::network) protocol: u8,
    pub(in crate::network) source: SocketAddr,
    pub(in crate::network) destination: SocketAddr,
}

/// What is known of a packet.
#[derive(Debug, Clone, Copy)]
pub(in crate::network) struct Looked {
    pub(in crate::network) key: Key,
    /// Where its payload begins and ends, if it is of UDP and whole.
    pub(in crate::network) datagram: Option<(usize, usize)>,
}

/// Looks at a packet of IP; nothing if it is none.
pub(in crate::network) fn look(packet: &[u8]) -> Option<Looked> {
    let sliced = LaxSlicedPacket::from_ip(packet).ok()?;
    let (source, destination, payload): (IpAddr, IpAddr, _) = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into(), ip.payload())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into(), ip.payload())
        }
        _ => return None,
    };
    let (ports, datagram) = match &sliced.transport {
        Some(TransportSlice::Udp(udp)) => {
            let begins = udp.payload().as_ptr() as usize - packet.as_ptr() as usize;
            let range = (begins, begins + udp.payload().len());
            ((udp.source_port(), udp.destination_port()), (!payload.fragmented).then_some(range))
        }
        Some(TransportSlice::Tcp(tcp)) => ((tcp.source_port(), tcp.destination_port()), None),
        _ => ((0, 0), None),
    };
    // The first fragment has ports, the others have none: all are one flow.
    let ports = if payload.fragmented { (0, 0) } else { ports };
    let key = Key {
        protocol: payload.ip_number.0,
        source: SocketAddr::new(source, ports.0),
        destination: SocketAddr::new(destination, ports.1),
    };
    Some(Looked { key, datagram })
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    fn packet(builder: etherparse::PacketBuilderStep<etherparse::UdpHeader>, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        builder.write(&mut bytes, payload).expect("it fits");
        bytes
    }

    #[test]
    fn addresses_ports_and_payload_are_found() {
        let four = packet(PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9).udp(5000, 6000), b"media");
        let looked = look(&four).expect("it is IP");
        assert_eq!(looked.key.source, "10.0.0.1:5000".parse().expect("an address"));
        assert_eq!(looked.key.destination, "10.0.0.2:6000".parse().expect("an address"));
        assert_eq!((looked.key.protocol, looked.datagram), (17, Some((28, 33))));
        let six = packet(PacketBuilder::ipv6([1; 16], [2; 16], 9).udp(1, 2), b"media");
        assert_eq!(look(&six).expect("it is IP").datagram, Some((48, 53)));
    }

    #[test]
    fn fragments_are_one_flow_and_what_is_no_ip_is_nothing() {
        let mut first =
            packet(PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9).udp(5000, 6000), b"media");
        // More fragments follow.
        first[6] = 0x20;
        let looked = look(&first).expect("it is IP");
        assert_eq!((looked.key.source.port(), looked.datagram), (0, None));
        // Its offset is 8 bytes.
        (first[6], first[7]) = (0, 1);
        assert_eq!(look(&first).expect("it is IP").key, looked.key);
        assert!(look(&[]).is_none() && look(&[0x20; 40]).is_none() && look(&[0x45; 10]).is_none());
    }
}
