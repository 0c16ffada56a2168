//! Whatever comes, the kernel's filter and user space send the same bytes.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{LinkAddr, MsgFlags, recvfrom, sendto, setsockopt, sockopt};
use outflow_media::group_mac;
use outflow_routing::membership::Family;
use outflow_routing::membership::packet::checksum;
use socket2::{Domain, Protocol, Socket, Type};

use crate::described::{JPEG_2000, describe, jpeg2000};
use crate::hosts::{GROUP, PORT, SOURCE};
use crate::mld;
use crate::net::{Namespace, lacks_filter};
use crate::relay::Thins;
use crate::thinned::Fork;

const UDP: u8 = 17;
const PACKETS: usize = 6000;
/// Between two changes of levels.
const PHASE: usize = 1000;
/// From here on there are packets that the filter leaves to user space, and with them the rest.
const HANDED_OVER_FROM: usize = 4000;

/// Numbers by chance, the same ones each time.
struct Chance(u32);

impl Chance {
    fn of(&mut self, count: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) % count
    }

    fn is(&mut self, one_in: u32) -> bool {
        self.of(one_in) == 0
    }
}

/// The number of a packet of a track, whose numbers are lost, late and doubled.
fn number(chance: &mut Chance, sequence: u16) -> u16 {
    match chance.of(20) {
        0 => sequence.wrapping_sub(chance.of(90) as u16),
        1 => sequence.wrapping_add(chance.of(90) as u16),
        2 if chance.is(20) => chance.of(65_536) as u16,
        _ => sequence,
    }
}

/// A packet of RTP, or what looks like one.
fn rtp(chance: &mut Chance, sequence: u16) -> Vec<u8> {
    let sequence = number(chance, sequence);
    let (marker, ssrc) = (chance.of(2) << 7, chance.of(3));
    let mut packet = vec![0x90 | (chance.of(8) / 7 * 0x20) as u8, (96 | marker) as u8];
    packet.extend(sequence.to_be_bytes());
    packet.extend(chance.of(1 << 24).to_be_bytes());
    packet.extend(ssrc.to_be_bytes());
    if chance.is(25) {
        // No extension; or RTCP.
        packet[0] &= 0xef;
        packet[1] = if chance.is(2) { 200 } else { packet[1] };
    } else {
        let layers = chance.of(4) + 2;
        let (layer, flags) = (chance.of(layers), chance.of(16));
        let grown = if chance.is(6) { chance.of(layers) } else { 0 };
        let ends = if chance.is(3) { chance.of(layers) } else { 0xff };
        let is_long = chance.is(6);
        packet.extend(if is_long { &[0x10, 0, 0, 3, 14, 7][..] } else { &[0xbe, 0xde, 0, 2, 0xe6] });
        packet.extend(b"OF");
        packet.extend([layer, layers, grown, flags, ends].map(|byte| byte as u8));
        packet.extend(if is_long { &[0; 3][..] } else { &[] });
        if chance.is(30) {
            let at = 12 + chance.of(12) as usize;
            packet[at] = chance.of(256) as u8;
        }
    }
    packet.extend((0..chance.of(40)).map(|byte| byte as u8));
    if chance.is(40) {
        packet.truncate(chance.of(24) as usize);
    }
    packet
}

/// A packet of JPEG 2000 in frames of eight packets: its RTP header is a plain one, or not.
fn prioritized(chance: &mut Chance, sequence: u16, is_plain: bool) -> Vec<u8> {
    let frame = u32::from(sequence / 8 + if chance.is(10) { chance.of(9) as u16 } else { 0 });
    let sequence = number(chance, sequence);
    let (marker, ssrc) = (u32::from(chance.is(8)) << 7, 10 + chance.of(2));
    let payload_type = if chance.is(30) { JPEG_2000 + 1 } else { JPEG_2000 };
    let mut packet = vec![if is_plain { 0x80 } else { 0x90 }, payload_type | marker as u8];
    packet.extend(sequence.to_be_bytes());
    packet.extend((frame * 3000).to_be_bytes());
    packet.extend(ssrc.to_be_bytes());
    packet.extend(if is_plain { &[][..] } else { &[0xbe, 0xde, 0, 1, 0x10, 7, 0, 0] });
    let priority = if chance.is(20) { 255 } else { chance.of(6) };
    let offset = 64 * chance.of(4);
    packet.extend([0, priority as u8, 0, 0, 0, 0, 0, offset as u8]);
    match chance.of(4) {
        _ if offset == 0 && !chance.is(8) => packet.extend(main_header(chance)),
        0..=2 => {
            // A tile-part of the layer, most often.
            let layer = if chance.is(4) { chance.of(5) } else { priority.saturating_sub(1) };
            packet.extend([0xff, 0x90, 0, 10, 0, 0, 0, 0, 0, 64 + 64 * chance.of(2) as u8, layer as u8, 5]);
            packet.extend([0x55; 52]);
        }
        _ => packet.extend([0x55; 64]),
    }
    if chance.is(20) {
        packet.truncate(12 + chance.of(70) as usize);
    }
    if chance.is(30) && packet.len() > 24 {
        // Not the priority: it would be that of more layers than there are from then on.
        let at = 14 + chance.of(10) as usize;
        packet[at] = chance.of(256) as u8;
    }
    packet
}

/// The begin of a codestream of five layers, mostly, of one tile or of two (ITU-T T.800, A.4 to A.6).
fn main_header(chance: &mut Chance) -> Vec<u8> {
    let mut header = vec![0xff, 0x4f, 0xff, 0x51, 0, 41, 0, 0];
    let width = if chance.is(8) { 32 } else { 64 };
    for number in [64, 64, 0, 0, width, 64, 0, 0_u32] {
        header.extend(number.to_be_bytes());
    }
    header.extend([0, 1, 7, 1, 1]);
    for _ in 0..chance.of(3) {
        header.extend([0xff, 0x64, 0, 6, 0, 1, b'h', b'i']);
    }
    let layers = if chance.is(8) { chance.of(5) } else { 5 };
    header.extend([0xff, 0x52, 0, 12, 0, 0, 0, layers as u8, 0, 5, 4, 4, 0, 0]);
    header
}

fn put(packet: &mut [u8], at: usize, word: u16) {
    packet[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// Packets of which the filter judges the first kind alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Usual,
    WithOptions,
    /// It has to be cut for the second host, or does not come there.
    Long,
    /// Of a track that says its layer by its priority, which stands somewhere else.
    Extended,
}

/// Bytes of a packet on the second link: for IPv6, no link may take less (RFC 8200, section 5).
const fn mtu(family: Family) -> usize {
    match family {
        Family::V4 => 600,
        Family::V6 => 1280,
    }
}

/// The protocol of a link that carries it.
const fn ethertype(family: Family) -> u16 {
    match family {
        Family::V4 => 0x0800,
        Family::V6 => 0x86dd,
    }
}

/// A packet to the group, most often with a datagram that is whole, and what a link may add behind it.
fn packet(family: Family, chance: &mut Chance, sequence: u16, kind: Kind) -> Vec<u8> {
    let mut payload = match kind {
        Kind::Extended => prioritized(chance, sequence, false),
        Kind::Usual if chance.is(2) => prioritized(chance, sequence, true),
        _ => rtp(chance, sequence),
    };
    if kind == Kind::Long {
        let longer = if family == Family::V4 { 800 } else { 170 };
        payload.resize(mtu(family) + chance.of(longer) as usize, 5);
    }
    let mut packet = match family {
        Family::V4 => packet_v4(chance, kind, &payload),
        Family::V6 => packet_v6(chance, kind, &payload),
    };
    if chance.is(8) {
        packet.extend(vec![0; chance.of(20) as usize]);
    }
    packet
}

/// A datagram whose checksum is right, but for the addresses; or is none, or a wrong one.
fn datagram(chance: &mut Chance, addresses: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let port = PORT + 2 * chance.of(2) as u16;
    let mut datagram = [0x1388, port, length, 0].map(u16::to_be_bytes).concat();
    datagram.extend(payload);
    let words = addresses.as_chunks().0.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
    let sum = checksum(words.sum::<u32>() + u32::from(UDP) + u32::from(length), &datagram);
    let sum = if sum == 0 { 0xffff } else { sum };
    put(&mut datagram, 6, if chance.is(8) { chance.of(2) as u16 } else { sum });
    datagram
}

/// One of IPv6. What has options has another header before the datagram: this says nothing of layers to either.
fn packet_v6(chance: &mut Chance, kind: Kind, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 0, 8];
    packet.extend(mld::address(1, 2).octets());
    packet.extend(mld::GROUP.octets());
    let datagram = datagram(chance, &packet[8..], payload);
    let protocol = if chance.is(60) { 59 } else { UDP };
    if kind == Kind::WithOptions || chance.is(60) {
        // Options for the destination (RFC 8200, section 4.6): padding.
        packet[6] = 60;
        packet.extend([protocol, 0, 1, 4, 0, 0, 0, 0]);
    } else {
        packet[6] = protocol;
    }
    packet.extend(datagram);
    let length = (packet.len() - 40) as u16;
    put(&mut packet, 4, if chance.is(60) { length - 1 + 2 * chance.of(2) as u16 } else { length });
    packet[0] = if chance.is(60) { 0x50 } else { 0x60 };
    packet[7] = if chance.is(50) { 1 } else { packet[7] };
    packet
}

/// One of IPv4.
fn packet_v4(chance: &mut Chance, kind: Kind, payload: &[u8]) -> Vec<u8> {
    let words = if kind == Kind::WithOptions { 6 } else { 5 };
    let protocol = if chance.is(60) { 99 } else { UDP };
    let (length, header) = (words * 4 + 8 + payload.len(), words * 4);
    let mut packet = vec![0x40 | words as u8, 0, 0, 0, 0, 0, 0, 0, 8, protocol, 0, 0];
    packet.extend(SOURCE.octets());
    packet.extend(GROUP.octets());
    // No operation, and the end (RFC 791, section 3.1).
    packet.extend(&[1, 1, 1, 0][..header - 20]);
    let datagram = datagram(chance, &packet[12..20], payload);
    packet.extend(datagram);
    put(&mut packet, 2, length as u16);
    put(&mut packet, 4, chance.of(65_536) as u16);
    put(&mut packet, 6, if chance.is(50) { 0x2000 } else { 0x4000 * chance.of(2) as u16 });
    packet[8] = if chance.is(50) { 1 } else { packet[8] };
    let sum = checksum(0, &packet[..header]);
    put(&mut packet, 10, if chance.is(60) { sum ^ 1 } else { sum });
    packet
}

/// Reads or sends packets at an interface `eth0`.
struct Raw {
    socket: Socket,
    family: Family,
    group: IpAddr,
}

impl Raw {
    fn open(fork: &Fork, namespace: &Namespace, kind: Type) -> Self {
        let (family, group) = (fork.family, fork.group());
        namespace.run(|| {
            let protocol = Protocol::from(i32::from(ethertype(family).to_be()));
            let socket = Socket::new(Domain::PACKET, kind, Some(protocol)).expect("root may");
            socket.set_nonblocking(true).expect("an option");
            setsockopt(&socket, sockopt::RcvBufForce, &(32 << 20)).expect("an option");
            Raw { socket, family, group }
        })
    }

    /// Sends a packet from an interface of Ethernet, to the group.
    fn send(&self, by: &LinkAddr, packet: &[u8]) {
        let to = group_mac(self.group);
        let kind = ethertype(self.family).to_be_bytes();
        let frame = [&to, &by.addr().expect("an address")[..], &kind, packet].concat();
        let sent = sendto(self.socket.as_raw_fd(), &frame, by, MsgFlags::empty());
        assert_eq!(sent, Ok(frame.len()));
    }

    /// Whether a packet is for the group.
    fn is_it(&self, packet: &[u8]) -> bool {
        match self.group {
            IpAddr::V4(group) => packet.get(16..20) == Some(&group.octets()),
            IpAddr::V6(group) => packet.get(24..40) == Some(&group.octets()),
        }
    }

    /// What has come for the group, until nothing comes for a while.
    fn come(&self) -> Vec<Vec<u8>> {
        let (mut packets, mut buffer) = (Vec::new(), [0; 2048]);
        let mut end = Instant::now() + Duration::from_millis(500);
        while Instant::now() < end {
            match recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut buffer) {
                Ok((length, _)) if self.is_it(&buffer[..length]) => {
                    packets.push(buffer[..length].to_vec());
                    end = Instant::now() + Duration::from_millis(500);
                }
                Ok(_) => (),
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        packets
    }
}

/// What comes to both hosts in each phase, by one way of thinning.
fn outcome(family: Family, (thins, first): (Thins, Kind)) -> Vec<Vec<Vec<u8>>> {
    let fork = Fork::new(family, thins);
    describe(&fork.relay, fork.group(), jpeg2000());
    fork.narrow(mtu(family));
    let _members = fork.members(&fork.sender());
    let raw = Raw::open(&fork, &fork.source, Type::RAW);
    let device = fork.source.run(|| {
        getifaddrs()
            .expect("a list")
            .find_map(|one| one.address.filter(|_| one.interface_name == "eth0")?.as_link_addr().copied())
    });
    let device = device.expect("an interface");
    let hosts = fork.hosts().map(|host| Raw::open(&fork, host, Type::DGRAM));
    hosts.iter().for_each(|host| drop(host.come()));
    let (mut chance, mut outcome) = (Chance(7), Vec::new());
    for number in 0..PACKETS {
        if number % PHASE == 0 {
            let (host, level) = [(1, 2), (0, 3), (1, 3), (0, 1), (1, 1), (0, 2)][number / PHASE];
            fork.say(host, level);
        }
        let kind = match number {
            HANDED_OVER_FROM => first,
            HANDED_OVER_FROM.. if chance.is(50) => {
                [Kind::WithOptions, Kind::Long, Kind::Extended][chance.of(3) as usize]
            }
            _ => Kind::Usual,
        };
        raw.send(&device, &packet(family, &mut chance, 65_000_u16.wrapping_add(number as u16), kind));
        if number % 20 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        if number + 1 == HANDED_OVER_FROM {
            let user = fork.counts().user;
            assert_eq!(user.packets == 0, thins == Thins::Kernel, "{user:?}");
        }
        if (number + 1) % PHASE == 0 {
            outcome.extend(hosts.iter().map(Raw::come));
        }
    }
    let (filter, user) = (fork.counts().filter, fork.counts().user);
    let is_kernels = thins == Thins::Kernel;
    assert_eq!(
        (filter.packets > 1000, filter.handed_over),
        (is_kernels, u64::from(is_kernels)),
        "{filter:?}"
    );
    assert!(user.packets > 100 && filter.failed == 0, "the rest is user space's: {user:?}");
    outcome
}

#[test]
fn the_kernel_and_user_space_send_the_same_bytes() {
    if lacks_filter("the_kernel_and_user_space_send_the_same_bytes") {
        return;
    }
    // Whichever it is that the filter leaves to user space first.
    for first in [Kind::Long, Kind::WithOptions, Kind::Extended] {
        alike(&[Thins::Kernel, Thins::User].map(|thins| outcome(Family::V4, (thins, first))));
    }
}

#[test]
fn the_kernel_and_user_space_send_the_same_bytes_of_ipv6() {
    if lacks_filter("the_kernel_and_user_space_send_the_same_bytes_of_ipv6") {
        return;
    }
    alike(&[Thins::Kernel, Thins::User].map(|thins| outcome(Family::V6, (thins, Kind::Long))));
}

fn alike([by_kernel, by_user]: &[Vec<Vec<Vec<u8>>>; 2]) {
    for (place, (kernel, user)) in by_kernel.iter().zip(by_user).enumerate() {
        let differs = kernel.iter().zip(user).position(|(one, other)| one != other);
        let at = differs.map(|at| (at, &kernel[at], &user[at]));
        assert_eq!((at, kernel.len()), (None, user.len()), "phase {}, host {}", place / 2, place % 2);
    }
    let count = by_kernel.iter().map(Vec::len).sum::<usize>();
    assert!(count > PACKETS && count < 2 * PACKETS, "some were left out: {count}");
}
