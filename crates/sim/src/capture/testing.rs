//! Captures, written by hand.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;

/// How a capture is written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Pcap { big_endian: bool, nanos: bool },
    Pcapng { big_endian: bool, resolution: u8 },
}

pub(super) const PCAP: Form = Form::Pcap { big_endian: false, nanos: true };

/// A frame: when it was captured in nanoseconds, and its bytes.
pub(super) type Frame = (u64, Vec<u8>);

struct Writer {
    big_endian: bool,
    out: Vec<u8>,
}

impl Writer {
    fn u16(&mut self, number: u16) {
        self.out.extend(if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() });
    }

    fn u32(&mut self, number: u32) {
        self.out.extend(if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() });
    }

    /// A block of pcapng.
    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Self)) {
        let mut inner = Writer { big_endian: self.big_endian, out: Vec::new() };
        body(&mut inner);
        inner.out.resize(inner.out.len().next_multiple_of(4), 0);
        let length = inner.out.len() as u32 + 12;
        self.u32(kind);
        self.u32(length);
        self.out.extend(inner.out);
        self.u32(length);
    }
}

/// A capture of frames of a link layer, of which at most `snap` bytes were captured.
pub(super) fn capture(form: Form, link: u16, snap: usize, frames: &[Frame]) -> Bytes {
    let out = match form {
        Form::Pcap { big_endian, nanos } => pcap(big_endian, nanos, link, snap, frames),
        Form::Pcapng { big_endian, resolution } => pcapng(big_endian, resolution, link, snap, frames),
    };
    out.into()
}

fn pcap(big_endian: bool, nanos: bool, link: u16, snap: usize, frames: &[Frame]) -> Vec<u8> {
    let mut writer = Writer { big_endian, out: Vec::new() };
    writer.u32(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
    writer.u16(2);
    writer.u16(4);
    [0, 0, 262_144, u32::from(link)].into_iter().for_each(|number| writer.u32(number));
    for (at, frame) in frames {
        let part = (at % 1_000_000_000) as u32;
        writer.u32((at / 1_000_000_000) as u32);
        writer.u32(if nanos { part } else { part / 1_000 });
        writer.u32(frame.len().min(snap) as u32);
        writer.u32(frame.len() as u32);
        writer.out.extend(&frame[..frame.len().min(snap)]);
    }
    writer.out
}

fn pcapng(big_endian: bool, resolution: u8, link: u16, snap: usize, frames: &[Frame]) -> Vec<u8> {
    let mut writer = Writer { big_endian, out: Vec::new() };
    writer.block(0x0a0d_0d0a, |block| {
        block.u32(0x1a2b_3c4d);
        block.u16(1);
        block.u16(0);
        block.u32(u32::MAX);
        block.u32(u32::MAX);
    });
    writer.block(1, |block| {
        block.u16(link);
        block.u16(0);
        block.u32(262_144);
        // if_tsresol, and the end of options.
        block.u16(9);
        block.u16(1);
        block.out.extend([resolution, 0, 0, 0]);
        block.u32(0);
    });
    // A block of names, which says nothing here.
    writer.block(4, |block| block.u32(0));
    let units = match resolution & 0x80 {
        0 => 10_u128.pow(u32::from(resolution)),
        _ => 1 << (resolution & 0x7f),
    };
    for (at, frame) in frames {
        let time = (u128::from(*at) * units).div_ceil(1_000_000_000) as u64;
        writer.block(6, |block| {
            let kept = frame.len().min(snap);
            block.u32(0);
            block.u32((time >> 32) as u32);
            block.u32(time as u32);
            block.u32(kept as u32);
            block.u32(frame.len() as u32);
            block.out.extend(&frame[..kept]);
        });
    }
    writer.out
}

pub(super) const FROM: &str = "10.0.0.1:5004";
pub(super) const TO: &str = "10.0.0.2:6000";

/// An IP packet with a UDP datagram.
pub(super) fn ip(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
    let (from, to): (SocketAddr, SocketAddr) = (from.parse().expect("from"), to.parse().expect("to"));
    let length = payload.len() as u16 + 8;
    let mut packet = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let [high, low] = (length + 20).to_be_bytes();
            [&[0x45, 0, high, low, 0, 1, 0, 0, 64, 17, 0, 0][..], &from.octets(), &to.octets()].concat()
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let [high, low] = length.to_be_bytes();
            [&[0x60, 0, 0, 0, high, low, 17, 64][..], &from.octets(), &to.octets()].concat()
        }
        _ => panic!("two families"),
    };
    for word in [from.port(), to.port(), length, 0] {
        packet.extend(word.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

/// A frame of Ethernet.
pub(super) fn ethernet(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
    let packet = ip(from, to, payload);
    let kind = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [0x08, 0x00] };
    [&[2; 12][..], &kind, &packet].concat()
}

/// A capture of datagrams, one a millisecond, all from one place to another.
pub(super) fn flow<'a>(payloads: impl IntoIterator<Item = &'a [u8]>) -> Bytes {
    let frame = |(at, payload): (u64, &[u8])| (at * 1_000_000, ethernet(FROM, TO, payload));
    let frames: Vec<_> = (0..).zip(payloads).map(frame).collect();
    capture(PCAP, 1, usize::MAX, &frames)
}
