//! What user space and the BPF programs share. The same layout in C: `bpf/layout.h`.

use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

use outflow_packet::{Level, MaxLayer};

use super::checksum::Sum;
use super::shared::Plain;

/// Ethernet, IPv4 without options, UDP: packets come to the programs with so much in front of their payload.
pub(super) const HEADER_BYTES: usize = 42;
/// Where the IP header begins.
const IP: usize = 14;
/// Where the UDP header begins behind one of IPv4, and behind one of IPv6.
const IPV4_UDP: usize = 34;
const IPV6_UDP: usize = 54;
/// Room for the headers of either, in words.
const HEADER_WORDS: usize = 8;

/// A receiver of packets: from which device and addresses, to which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The device that its packets leave through.
    pub ifindex: u32,
    /// Of that device.
    pub source_mac: [u8; 6],
    /// Of the next hop.
    pub target_mac: [u8; 6],
    /// From where its packets come, and where they go.
    pub ends: Ends,
    /// Their time to live, or hop limit.
    pub ttl: u8,
    /// DSCP and ECN, as in the IP header (RFC 2474, RFC 3168).
    pub tos: u8,
    /// What it gets of layered packets.
    pub part: Part,
}

/// The source address and port of a target's packets, and their destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ends {
    /// By IPv4.
    V4 {
        /// The source.
        from: SocketAddrV4,
        /// The destination.
        to: SocketAddrV4,
    },
    /// By IPv6.
    V6 {
        /// The source.
        from: SocketAddrV6,
        /// The destination.
        to: SocketAddrV6,
    },
}

impl Ends {
    /// `None` if the two are of different families.
    pub fn new(from: SocketAddr, to: SocketAddr) -> Option<Self> {
        match (from, to) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => Some(Ends::V4 { from, to }),
            (SocketAddr::V6(from), SocketAddr::V6(to)) => Some(Ends::V6 { from, to }),
            _ => None,
        }
    }

    /// Bytes of the IP and UDP headers: what a packet's MTU has to hold besides its payload.
    pub fn header_bytes(&self) -> usize {
        self.udp_at() + 8 - IP
    }

    fn udp_at(&self) -> usize {
        match self {
            Ends::V4 { .. } => IPV4_UDP,
            Ends::V6 { .. } => IPV6_UDP,
        }
    }

    fn ports(&self) -> [u16; 2] {
        match self {
            Ends::V4 { from, to } => [from.port(), to.port()],
            Ends::V6 { from, to } => [from.port(), to.port()],
        }
    }
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
    pseudo_sum: u16,
    ip_sum: u16,
    /// 0 if the entry is blank.
    pub(super) ifindex: u32,
    pub(super) failed: u64,
    pub(super) error: i16,
    apart: u16,
    priority: u8,
    max_layer: u8,
    udp_at: u8,
    unused: u8,
    words: [u64; HEADER_WORDS],
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

const _: () = assert!(size_of::<Entry>() == 88 && size_of::<Control>() == 48, "as in layout.h");

// SAFETY: integers without padding between them; any bytes are a valid value.
unsafe impl Plain for Entry {}
// SAFETY: integers without padding between them; any bytes are a valid value.
unsafe impl Plain for Control {}
// SAFETY: an integer; any bytes are a valid value.
unsafe impl Plain for u16 {}

impl Entry {
    /// Nothing is sent there.
    pub(super) const BLANK: Entry = Entry {
        pseudo_sum: 0,
        ip_sum: 0,
        ifindex: 0,
        failed: 0,
        error: 0,
        apart: 0,
        priority: 0,
        max_layer: 0,
        udp_at: 0,
        unused: 0,
        words: [0; HEADER_WORDS],
    };

    /// The highest layer that is sent there; `None` if nothing is.
    pub(super) fn max_layer(&self) -> Option<u8> {
        (self.ifindex != 0).then_some(self.max_layer)
    }

    pub(super) fn new(target: &Target) -> Self {
        let (header, pseudo_sum) = header(target);
        let (words, _) = header.as_chunks::<8>();
        // Only of IPv4 has the header a checksum, and the device's queue is chosen by the type of service.
        let (ip_sum, priority) = match target.ends {
            Ends::V4 { .. } => (Sum::default().add(&header[IP..IPV4_UDP]).folded(), priority(target.tos)),
            Ends::V6 { .. } => (0, 0),
        };
        Entry {
            pseudo_sum,
            ip_sum,
            ifindex: target.ifindex,
            apart: target.part.apart,
            priority,
            max_layer: target.part.max_layer.layer(),
            udp_at: target.ends.udp_at() as u8,
            words: core::array::from_fn(|i| u64::from_ne_bytes(words[i])),
            ..Entry::BLANK
        }
    }
}

/// The headers of a packet to `target`, in which lengths and checksums are 0; and the sum of the pseudo-header without
/// the length.
fn header(target: &Target) -> ([u8; 8 * HEADER_WORDS], u16) {
    const PROTOCOL: u8 = libc::IPPROTO_UDP as u8;
    let mut header = [0; 8 * HEADER_WORDS];
    header[..6].copy_from_slice(&target.target_mac);
    header[6..12].copy_from_slice(&target.source_mac);
    let udp_at = target.ends.udp_at();
    let ip = &mut header[IP..udp_at];
    let (kind, addresses) = match target.ends {
        Ends::V4 { from, to } => {
            ip[0] = 0x45; // IPv4, a header of five words
            ip[1] = target.tos;
            // "Don't fragment", as the system's own UDP sockets have it. Such packets need no identification
            // (RFC 6864, section 4.1).
            ip[6] = 0x40;
            (ip[8], ip[9]) = (target.ttl, PROTOCOL);
            ip[12..16].copy_from_slice(&from.ip().octets());
            ip[16..20].copy_from_slice(&to.ip().octets());
            (libc::ETH_P_IP, &ip[12..20])
        }
        Ends::V6 { from, to } => {
            // IPv6, and the traffic class across the halves of the first two bytes; without a flow label.
            (ip[0], ip[1]) = (0x60 | target.tos >> 4, target.tos << 4);
            (ip[6], ip[7]) = (PROTOCOL, target.ttl);
            ip[8..24].copy_from_slice(&from.ip().octets());
            ip[24..40].copy_from_slice(&to.ip().octets());
            (libc::ETH_P_IPV6, &ip[8..40])
        }
    };
    let pseudo = Sum::default().add(addresses).add(&[0, PROTOCOL]);
    header[12..14].copy_from_slice(&(kind as u16).to_be_bytes());
    let [from, to] = target.ends.ports().map(u16::to_be_bytes);
    header[udp_at..udp_at + 2].copy_from_slice(&from);
    header[udp_at + 2..udp_at + 4].copy_from_slice(&to);
    (header, pseudo.folded())
}

/// The priority that the kernel gives the packets of a socket with this IP_TOS (`ip_tos2prio` in
/// net/ipv4/route.c): queues and VLAN priorities go by it. With IPV6_TCLASS it gives none.
fn priority(tos: u8) -> u8 {
    const BEST_EFFORT: u8 = 0;
    const BULK: u8 = 2;
    const INTERACTIVE_BULK: u8 = 4;
    const INTERACTIVE: u8 = 6;
    match (tos & 0x1e) >> 3 {
        0 => BEST_EFFORT,
        1 => BULK,
        2 => INTERACTIVE,
        _ => INTERACTIVE_BULK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(from: &str, to: &str) -> Target {
        let [from, to] = [from, to].map(|text| text.parse().expect("an address"));
        Target {
            ifindex: 7,
            source_mac: [2, 0, 0, 0, 0, 1],
            target_mac: [2, 0, 0, 0, 0, 2],
            ends: Ends::new(from, to).expect("of one family"),
            ttl: 17,
            tos: 0xb8,
            part: Part::WHOLE,
        }
    }

    fn written(entry: &Entry) -> Vec<u8> {
        entry.words.map(u64::to_ne_bytes).concat()
    }

    #[test]
    fn a_header_of_ipv4_has_every_field_in_its_place() {
        let entry = Entry::new(&target("10.1.2.3:5004", "10.9.8.7:6000"));
        let expected = [
            2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet
            0x45, 0xb8, 0, 0, 0, 0, 0x40, 0, 17, 17, 0, 0, 10, 1, 2, 3, 10, 9, 8, 7, // IPv4
            0x13, 0x8c, 0x17, 0x70, 0, 0, 0, 0, // UDP
        ];
        assert_eq!(written(&entry)[..HEADER_BYTES], expected);
        assert_eq!((entry.udp_at, usize::from(entry.udp_at) + 8), (34, HEADER_BYTES));
        let pseudo = Sum::default().add(&[10, 1, 2, 3, 10, 9, 8, 7, 0, 17]).folded();
        let ip = Sum::default().add(&expected[14..34]).folded();
        assert_eq!((entry.pseudo_sum, entry.ip_sum), (pseudo, ip));
    }

    #[test]
    fn a_header_of_ipv6_has_every_field_in_its_place() {
        let target = target("[2001:db8::1:2]:5004", "[2001:db8:ff::7]:6000");
        let entry = Entry::new(&target);
        let addresses = [
            0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, // from
            0x20, 1, 0x0d, 0xb8, 0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, // to
        ];
        let expected = [
            &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd][..], // Ethernet
            &[0x6b, 0x80, 0, 0, 0, 0, 17, 17],                     // IPv6
            &addresses,
            &[0x13, 0x8c, 0x17, 0x70, 0, 0, 0, 0], // UDP
        ];
        assert_eq!(written(&entry)[..62], expected.concat());
        assert_eq!((entry.udp_at, target.ends.header_bytes()), (54, 48));
        let pseudo = Sum::default().add(&addresses).add(&[0, 17]).folded();
        assert_eq!((entry.pseudo_sum, entry.ip_sum, entry.priority), (pseudo, 0, 0));
    }

    #[test]
    fn ends_are_of_one_family() {
        let [v4, v6] = ["10.1.2.3:5004", "[::1]:5004"].map(|text| text.parse().expect("an address"));
        assert_eq!((Ends::new(v4, v6), Ends::new(v6, v4)), (None, None));
        assert_eq!(Ends::new(v4, v4).expect("one").header_bytes(), 28);
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
        let Ok(socket) = std::net::UdpSocket::bind("[::1]:0") else {
            return outflow_skip::skipped("priorities of IPv6", "no IPv6 here");
        };
        outflow_socket::set_int(&socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, 0xb8).expect("IPV6_TCLASS");
        assert_eq!(socket2::SockRef::from(&socket).priority().expect("SO_PRIORITY"), 0);
    }
}
