//! Batched receive: many datagrams by one system call, into blocks that they then share.
//!
//! A datagram lands in a slot of its socket's block and stays there; what is handed on is a
//! reference to it. Where the kernel has put several datagrams of a flow together (UDP_GRO), the
//! first stays where it landed and the others are copied behind it, once.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use bytes::BytesMut;

use crate::limits::{BLOCK_BYTES, DATAGRAM_BYTES_MAX, RECEIVE_BATCH, RECEIVE_FEW, SLOT_BYTES};

const SPILL_BYTES: usize = DATAGRAM_BYTES_MAX - SLOT_BYTES;
/// Room for a segment size (UDP_GRO) and a drop counter (SO_RXQ_OVFL), each a `cmsghdr` and an int.
const CONTROL_BYTES: usize = 64;

/// A datagram as it came.
#[derive(Debug)]
pub(crate) struct Datagram {
    /// Its payload.
    pub(crate) bytes: BytesMut,
    /// The address that it came from.
    pub(crate) from: SocketAddr,
    /// It was larger than any buffer: the end is missing.
    pub(crate) truncated: bool,
}

/// The memory that a socket's datagrams land in.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    block: BytesMut,
    /// There were many the last time.
    is_busy: bool,
    /// The kernel's count of datagrams that found the socket's buffer full.
    overflows: u32,
}

impl Arena {
    /// One of a socket at which the kernel has dropped this many datagrams before.
    pub(crate) fn after(overflows: u32) -> Self {
        Arena { overflows, ..Arena::default() }
    }

    /// How many the kernel has counted.
    pub(crate) fn overflows(&self) -> u32 {
        self.overflows
    }
}

/// What receiving needs besides a socket and its arena; one for a thread.
pub(crate) struct Receiver {
    spill: Vec<u8>,
    names: Vec<libc::sockaddr_storage>,
    controls: Vec<Control>,
    iovecs: Vec<[libc::iovec; 2]>,
    messages: Vec<libc::mmsghdr>,
}

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

impl Receiver {
    pub(crate) fn new() -> Self {
        // SAFETY: sockaddr_storage, iovec and mmsghdr are plain C data, for which zeros are valid.
        let (name, iovec, message) =
            unsafe { (core::mem::zeroed(), core::mem::zeroed(), core::mem::zeroed()) };
        Receiver {
            spill: vec![0; RECEIVE_BATCH * SPILL_BYTES],
            names: vec![name; RECEIVE_BATCH],
            controls: vec![Control([0; CONTROL_BYTES]); RECEIVE_BATCH],
            iovecs: vec![iovec; RECEIVE_BATCH],
            messages: vec![message; RECEIVE_BATCH],
        }
    }

    /// Receives what is there, at most one batch, and hands each datagram to `tell`. Returns whether
    /// there may be more, and how many datagrams the kernel has dropped since the last call.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; else what the system says.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        arena: &mut Arena,
        mut tell: impl FnMut(Datagram),
    ) -> io::Result<(bool, u32)> {
        if arena.block.len() < RECEIVE_BATCH * SLOT_BYTES {
            arena.block = BytesMut::zeroed(BLOCK_BYTES);
        }
        // To ask for many takes longer than to receive one.
        let most = if arena.is_busy { RECEIVE_BATCH } else { RECEIVE_FEW };
        let count = self.recvmmsg(socket, &mut arena.block, most)?;
        arena.is_busy = count >= RECEIVE_FEW;
        let mut dropped = 0;
        for index in 0..count {
            let message = &self.messages[index];
            let length = (message.msg_len as usize).min(DATAGRAM_BYTES_MAX);
            let (segment, overflows) = read_control(&message.msg_hdr, &self.controls[index]);
            if let Some(overflows) = overflows {
                dropped += overflows.wrapping_sub(arena.overflows);
                arena.overflows = overflows;
            }
            let truncated = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let from = address(&self.names[index]);
            // Behind the last message, the rest of its slot can be used for the next batch.
            let taken = if index + 1 == count { length.min(SLOT_BYTES) } else { SLOT_BYTES };
            let mut slot = arena.block.split_to(taken);
            slot.truncate(length);
            let spill = &self.spill[index * SPILL_BYTES..][..length.saturating_sub(slot.len())];
            split(slot, spill, segment.unwrap_or(length), |bytes| tell(Datagram { bytes, from, truncated }));
        }
        Ok((count == most, dropped))
    }

    fn recvmmsg(&mut self, socket: BorrowedFd<'_>, block: &mut BytesMut, most: usize) -> io::Result<usize> {
        for index in 0..most {
            let slot = &mut block[index * SLOT_BYTES..][..SLOT_BYTES];
            let spill = &mut self.spill[index * SPILL_BYTES..][..SPILL_BYTES];
            self.iovecs[index] = [
                libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: SLOT_BYTES },
                libc::iovec { iov_base: spill.as_mut_ptr().cast(), iov_len: SPILL_BYTES },
            ];
            let header = &mut self.messages[index].msg_hdr;
            header.msg_name = (&raw mut self.names[index]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_iov = self.iovecs[index].as_mut_ptr();
            header.msg_iovlen = 2;
            header.msg_control = (&raw mut self.controls[index]).cast();
            header.msg_controllen = CONTROL_BYTES as _;
            header.msg_flags = 0;
        }
        // SAFETY: every message points at a name, a control buffer and two buffers of the lengths
        // given, which live in `self` and `block` and are not touched while the call runs.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                most as u32,
                libc::MSG_DONTWAIT,
                core::ptr::null_mut(),
            )
        };
        if count < 0 { Err(io::Error::last_os_error()) } else { Ok(count as usize) }
    }
}

/// Takes a message apart into the datagrams that it was put together from.
fn split(mut slot: BytesMut, spill: &[u8], segment: usize, mut tell: impl FnMut(BytesMut)) {
    if segment == 0 || slot.len() + spill.len() <= segment {
        if !spill.is_empty() {
            // A datagram larger than a slot: both parts, in a place of its own.
            let mut whole = BytesMut::with_capacity(slot.len() + spill.len());
            whole.extend_from_slice(&slot);
            whole.extend_from_slice(spill);
            slot = whole;
        }
        tell(slot);
        return;
    }
    let mut rest = BytesMut::with_capacity(slot.len() + spill.len());
    if segment <= slot.len() {
        rest.extend_from_slice(&slot[segment..]);
        slot.truncate(segment);
        tell(slot);
    } else {
        rest.extend_from_slice(&slot);
    }
    rest.extend_from_slice(spill);
    while !rest.is_empty() {
        tell(rest.split_to(segment.min(rest.len())));
    }
}

/// Segment size and overflow counter, as far as the kernel gave them.
fn read_control(header: &libc::msghdr, control: &Control) -> (Option<usize>, Option<u32>) {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    let mut found = (None, None);
    let mut rest = &control.0[..header.msg_controllen.min(CONTROL_BYTES)];
    while rest.len() >= HEADER + 4 {
        let length = usize::from_ne_bytes(rest[..8].try_into().unwrap_or_default());
        let level = i32::from_ne_bytes(rest[8..12].try_into().unwrap_or_default());
        let kind = i32::from_ne_bytes(rest[12..16].try_into().unwrap_or_default());
        let value = i32::from_ne_bytes(rest[16..20].try_into().unwrap_or_default());
        match (level, kind) {
            (libc::SOL_UDP, libc::UDP_GRO) => found.0 = usize::try_from(value).ok(),
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => found.1 = Some(value as u32),
            _ => {}
        }
        let aligned = length.max(HEADER).next_multiple_of(8);
        rest = rest.get(aligned..).unwrap_or_default();
    }
    found
}

fn address(name: &libc::sockaddr_storage) -> SocketAddr {
    match i32::from(name.ss_family) {
        libc::AF_INET6 => {
            // SAFETY: the kernel wrote a sockaddr_in6, as the family says; it fits the storage.
            let name = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
            SocketAddr::new(ip.to_canonical(), u16::from_be(name.sin6_port))
        }
        _ => {
            // SAFETY: the kernel wrote a sockaddr_in; were it none, its zeros are read as one.
            let name = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
            SocketAddr::new(ip.into(), u16::from_be(name.sin_port))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let to = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let from = UdpSocket::bind("127.0.0.1:0").expect("bind");
        from.connect(to.local_addr().expect("address")).expect("connect");
        to.set_nonblocking(true).expect("nonblocking");
        (from, to)
    }

    fn receive_all(socket: &UdpSocket, arena: &mut Arena) -> Vec<Datagram> {
        let mut receiver = Receiver::new();
        let mut got = Vec::new();
        while receiver.receive(socket.as_fd(), arena, |datagram| got.push(datagram)).is_ok() {}
        got
    }

    #[test]
    fn datagrams_come_whole_and_in_order_whatever_their_size() {
        let (from, to) = pair();
        let sizes = [0, 1, 188, 1316, 2047, 2048, 2049, 9000, 1316, 60_000];
        for (i, size) in sizes.into_iter().enumerate() {
            from.send(&vec![i as u8; size]).expect("send");
        }
        let mut arena = Arena::default();
        let got = receive_all(&to, &mut arena);
        let lengths: Vec<_> = got.iter().map(|d| d.bytes.len()).collect();
        assert_eq!(lengths, sizes);
        for (i, datagram) in got.iter().enumerate() {
            assert!(datagram.bytes.iter().all(|b| *b == i as u8));
            assert_eq!(datagram.from, from.local_addr().expect("address"));
            assert!(!datagram.truncated);
        }
    }

    #[test]
    fn many_batches_reuse_their_block_until_it_is_full() {
        let (from, to) = pair();
        let mut arena = Arena::default();
        let mut kept = Vec::new();
        for round in 0..600_u32 {
            from.send(&round.to_be_bytes().repeat(329)).expect("send");
            kept.extend(receive_all(&to, &mut arena));
        }
        assert_eq!(kept.len(), 600);
        for (round, datagram) in kept.iter().enumerate() {
            assert_eq!(datagram.bytes[..4], (round as u32).to_be_bytes(), "later batches left it alone");
            assert_eq!(datagram.bytes.len(), 1316);
        }
    }

    #[test]
    fn runs_that_the_kernel_put_together_are_taken_apart() {
        let whole: Vec<u8> = (0..5_000_u32).map(|i| i as u8).collect();
        for (slot, segment) in [(2048, 1316), (2048, 2048), (2048, 3000), (2048, 700)] {
            let mut got = Vec::new();
            split(BytesMut::from(&whole[..slot]), &whole[slot..], segment, |bytes| got.push(bytes));
            assert!(got[..got.len() - 1].iter().all(|bytes| bytes.len() == segment));
            assert_eq!(got.concat(), whole, "segment {segment}");
        }
    }
}
