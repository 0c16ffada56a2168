//! UDP datagrams in captured frames.

use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};

/// A UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Datagram<'a> {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    /// Bytes of its IP packet, on the wire.
    pub(super) bytes: usize,
    /// What was captured of its payload.
    pub(super) payload: &'a [u8],
}

/// What captured bytes begin with (<https://www.tcpdump.org/linktypes.html>).
mod link {
    /// BSD loopback: a word with the address family.
    pub(super) const NULL: u16 = 0;
    /// The same of OpenBSD.
    pub(super) const LOOP: u16 = 108;
    pub(super) const ETHERNET: u16 = 1;
    /// IP; the first two are what some systems write.
    pub(super) const RAW: [u16; 5] = [12, 14, 101, 228, 229];
    /// Linux's `any` device, and its newer form.
    pub(super) const LINUX_SLL: u16 = 113;
    pub(super) const LINUX_SLL2: u16 = 276;
}

/// Reads a frame.
///
/// # Errors
/// Why it is none.
pub(super) fn read(link: u16, data: &[u8]) -> Result<Datagram<'_>, &'static str> {
    const MALFORMED: &str = "malformed frame";
    let behind = |header: usize| data.get(header..).ok_or(MALFORMED);
    let word = |at: usize| match data.get(at..at + 2) {
        Some(&[high, low]) => Ok(u16::from_be_bytes([high, low])),
        _ => Err(MALFORMED),
    };
    let ip = |bytes| LaxSlicedPacket::from_ip(bytes).map_err(|_| "malformed IP packet");
    let sliced = match link {
        link::ETHERNET => LaxSlicedPacket::from_ethernet(data).map_err(|_| MALFORMED)?,
        link::LINUX_SLL => LaxSlicedPacket::from_ether_type(EtherType(word(14)?), behind(16)?),
        link::LINUX_SLL2 => LaxSlicedPacket::from_ether_type(EtherType(word(0)?), behind(20)?),
        link::NULL | link::LOOP => ip(behind(4)?)?,
        link if link::RAW.contains(&link) => ip(data)?,
        _ => return Err("link layer that is not known here"),
    };
    datagram(&sliced)
}

fn datagram<'a>(sliced: &LaxSlicedPacket<'a>) -> Result<Datagram<'a>, &'static str> {
    let (from, to, claimed, header, payload): (IpAddr, IpAddr, _, _, _) = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let claimed = usize::from(header.total_len());
            let (from, to) = (header.source_addr().into(), header.destination_addr().into());
            (from, to, claimed, header.slice().len(), ip.payload())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let claimed = match usize::from(header.payload_length()) {
                0 => 0,
                behind => behind + header.slice().len(),
            };
            let (from, to) = (header.source_addr().into(), header.destination_addr().into());
            (from, to, claimed, header.slice().len() + ip.extensions().slice().len(), ip.payload())
        }
        Some(LaxNetSlice::Arp(_)) => return Err("not IP"),
        None if sliced.stop_err.is_some() => return Err("malformed IP packet"),
        None => return Err("not IP"),
    };
    if payload.fragmented {
        return Err("fragment of an IP packet");
    }
    match &sliced.transport {
        Some(TransportSlice::Udp(udp)) => Ok(Datagram {
            source: SocketAddr::new(from, udp.source_port()),
            destination: SocketAddr::new(to, udp.destination_port()),
            // A length of zero: to be filled in by the network card, or a jumbogram.
            bytes: if claimed == 0 { header + payload.payload.len() } else { claimed },
            payload: udp.payload(),
        }),
        Some(_) => Err("not UDP"),
        None if sliced.stop_err.is_some() => Err("malformed UDP packet"),
        None => Err("not UDP"),
    }
}
