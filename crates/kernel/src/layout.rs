//! What user space and the BPF programs share. The same layout in C: `bpf/layout.h`.

use std::net::SocketAddrV4;

use outflow_packet::{Level, MaxLayer};

use super::checksum::Sum;
use super::shared::Plain;

/// Ethernet, IPv4 without options, UDP.
pub(super) const HEADER_BYTES: usize = 42;
/// Where the IP header begins.
const IP: usize = 14;
/// Where the UDP header begins.
pub(super) const UDP: usize = 34;

/// A receiver of packets: from which device and addresses, to which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The device that its packets leave through.
    pub ifindex: u32,
    /// Of that device.
    pub source_mac: [u8; 6],
    /// Of the next hop.
    pub target_mac: [u8; 6],
    /// The source address and port of its packets.
    pub from: SocketAddrV4,
    /// Their destination.
    pub to: SocketAddrV4,
    /// Their time to live.
    pub ttl: u8,
    /// DSCP and ECN, as in the IP header (RFC 2474, RFC 3168).
    pub tos: u8,
    /// What it gets of layered packets.
    pub part: Part,
}

/// What a target gets of layered packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The highest layer.
    pub max_layer: MaxLayer,
    /// Subtracted from sequence numbers beyond what is for others of its maximum layer; see [`super::Kernel::set_sequence_offset`].
    pub apart: u16,
}

impl Part {
    /// All layers.
    pub const WHOLE: Part = Part { max_layer: MaxLayer::ALL, apart: 0 };
}

/// `struct target`: an entry of the table.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    words: [u64; 5],
    pseudo_sum: u16,
    ip_sum: u16,
    /// 0 if the entry is blank.
    pub(super) ifindex: u32,
    pub(super) failed: u64,
    pub(super) error: i16,
    priority: u16,
    apart: u16,
    max_layer: u8,
    unused: u8,
}

/// `struct control`: an order, and what became of it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Control {
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) packets: u32,
    pub(super) length: u16,
    pub(super) payload_sum: u16,
    pub(super) made: u32,
    pub(super) given: u32,
    pub(super) processor: u32,
    pub(super) mark: u32,
    pub(super) failed: u64,
    pub(super) layer: u8,
    pub(super) numbered: u8,
    pub(super) sequence: u16,
    pub(super) head: u16,
    pub(super) ends: u8,
    pub(super) unused: u8,
}

/// An entry of `sequence_offset`: what is subtracted from sequence numbers, by maximum layer.
pub(super) const LAYERS: usize = Level::MAX as usize;

/// Entries of `waiting`.
pub(super) const WAITING: u32 = 64;

const _: () = assert!(size_of::<Entry>() == 64 && size_of::<Control>() == 48, "as in layout.h");

// SAFETY: integers without padding between them; any bytes are a valid value.
unsafe impl Plain for Entry {}
// SAFETY: integers without padding between them; any bytes are a valid value.
unsafe impl Plain for Control {}
// SAFETY: an integer; any bytes are a valid value.
unsafe impl Plain for u16 {}

impl Entry {
    /// Nothing is sent there.
    pub(super) const BLANK: Entry = Entry {
        words: [0; 5],
        pseudo_sum: 0,
        ip_sum: 0,
        ifindex: 0,
        failed: 0,
        error: 0,
        priority: 0,
        apart: 0,
        max_layer: 0,
        unused: 0,
    };

    /// The highest layer that is sent there; `None` if nothing is.
    pub(super) fn max_layer(&self) -> Option<u8> {
        (self.ifindex != 0).then_some(self.max_layer)
    }

    pub(super) fn new(target: &Target) -> Self {
        let header = header(target);
        let (words, _) = header.as_chunks::<8>();
        let pseudo = Sum::default()
            .add(&target.from.ip().octets())
            .add(&target.to.ip().octets())
            .add(&[0, libc::IPPROTO_UDP as u8]);
        Entry {
            words: core::array::from_fn(|i| u64::from_ne_bytes(words[i])),
            pseudo_sum: pseudo.folded(),
            ip_sum: Sum::default().add(&header[IP..UDP]).folded(),
            ifindex: target.ifindex,
            priority: priority(target.tos),
            apart: target.part.apart,
            max_layer: target.part.max_layer.layer(),
            ..Entry::BLANK
        }
    }
}

/// The headers of a packet to `target`; lengths and checksums are 0.
pub(super) fn header(target: &Target) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..6].copy_from_slice(&target.target_mac);
    header[6..12].copy_from_slice(&target.source_mac);
    header[12..14].copy_from_slice(&(libc::ETH_P_IP as u16).to_be_bytes());
    let ip = &mut header[IP..UDP];
    ip[0] = 0x45; // IPv4, a header of five words
    ip[1] = target.tos;
    // "Don't fragment", as the system's own UDP sockets have it. Such packets need no identification
    // (RFC 6864, section 4.1).
    ip[6] = 0x40;
    ip[8] = target.ttl;
    ip[9] = libc::IPPROTO_UDP as u8;
    ip[12..16].copy_from_slice(&target.from.ip().octets());
    ip[16..20].copy_from_slice(&target.to.ip().octets());
    header[UDP..UDP + 2].copy_from_slice(&target.from.port().to_be_bytes());
    header[UDP + 2..UDP + 4].copy_from_slice(&target.to.port().to_be_bytes());
    header
}

/// The priority that the kernel gives the packets of a socket with this IP_TOS (`ip_tos2prio` in
/// net/ipv4/route.c): queues and VLAN priorities go by it.
fn priority(tos: u8) -> u16 {
    const BEST_EFFORT: u16 = 0;
    const BULK: u16 = 2;
    const INTERACTIVE_BULK: u16 = 4;
    const INTERACTIVE: u16 = 6;
    match (tos & 0x1e) >> 3 {
        0 => BEST_EFFORT,
        1 => BULK,
        2 => INTERACTIVE,
        _ => INTERACTIVE_BULK,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_header_has_every_field_in_its_place() {
        let target = Target {
            ifindex: 7,
            source_mac: [2, 0, 0, 0, 0, 1],
            target_mac: [2, 0, 0, 0, 0, 2],
            from: SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 5004),
            to: SocketAddrV4::new(Ipv4Addr::new(10, 9, 8, 7), 6000),
            ttl: 17,
            tos: 0xb8,
            part: Part::WHOLE,
        };
        let expected = [
            2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet
            0x45, 0xb8, 0, 0, 0, 0, 0x40, 0, 17, 17, 0, 0, 10, 1, 2, 3, 10, 9, 8, 7, // IPv4
            0x13, 0x8c, 0x17, 0x70, 0, 0, 0, 0, // UDP
        ];
        assert_eq!(header(&target), expected);
        let entry = Entry::new(&target);
        assert_eq!(entry.words.map(u64::to_ne_bytes).concat(), expected[..40]);
    }

    #[test]
    fn priorities_are_those_of_a_socket_with_that_tos() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("bind");
        for tos in (0..=u8::MAX).step_by(4) {
            let wanted = i32::from(tos);
            outflow_socket::set_int(&socket, libc::IPPROTO_IP, libc::IP_TOS, wanted).expect("IP_TOS");
            let socket = socket2::SockRef::from(&socket);
            assert_eq!(u32::from(priority(tos)), socket.priority().expect("SO_PRIORITY"), "tos {tos:#x}");
        }
    }
}
