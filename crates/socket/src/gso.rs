//! UDP segmentation (GSO): the kernel, or the device, cuts what it is given into packets.

use std::os::fd::AsRawFd;

use crate::set_int;

/// How the kernel cuts what is sent by a socket (UDP_SEGMENT as an option of it).
#[derive(Debug, Default, Clone, Copy)]
pub struct Cutting {
    /// Into packets of how many bytes of payload; 0: not at all.
    bytes: usize,
    /// What that was to be last.
    asked: usize,
}

impl Cutting {
    /// Whether this many bytes that the socket sends now go as packets of `bytes` each, of which the last may have fewer;
    /// 0: as one. To change that is a system call, which is worth it for what is cut the same way twice in a row, as
    /// pictures of many packets are: it is not done before.
    pub fn fits(&mut self, socket: &impl AsRawFd, length: usize, bytes: usize) -> bool {
        // One packet that is smaller is sent as it is.
        if bytes == 0 && length <= self.bytes {
            return true;
        }
        let is_again = core::mem::replace(&mut self.asked, bytes) == bytes;
        if self.bytes == bytes {
            return true;
        }
        if is_again && set_int(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes as i32).is_ok() {
            self.bytes = bytes;
        }
        self.bytes == bytes
    }
}

/// The control message that carries the segment size (UDP_SEGMENT).
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Segment([u8; 24]);

impl Segment {
    /// Packets are to have `bytes` bytes of payload; the last may have fewer.
    pub fn of(bytes: usize) -> Self {
        const LENGTH: usize = size_of::<libc::cmsghdr>() + size_of::<u16>();
        let mut control = [0; 24];
        control[..8].copy_from_slice(&LENGTH.to_ne_bytes());
        control[8..12].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
        control[12..16].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
        control[16..18].copy_from_slice(&(bytes as u16).to_ne_bytes());
        Segment(control)
    }

    /// Puts it into a message, which points to it from then on.
    pub fn attach(&mut self, header: &mut libc::msghdr) {
        header.msg_control = self.0.as_mut_ptr().cast();
        header.msg_controllen = size_of::<Self>() as _;
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test of sockets")]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_socket_cuts_what_is_to_be_cut_alike_twice_and_what_is_one_packet_stays_one() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        receiver.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        sender.connect(receiver.local_addr().expect("an address")).expect("connected");
        let mut cutting = Cutting::default();
        for (length, bytes, fits, packets) in [
            (50, 0, true, &[50][..]),
            (25, 10, false, &[]),
            (25, 10, true, &[10, 10, 5]),
            (30, 10, true, &[10, 10, 10]),
            (10, 0, true, &[10]),
            (11, 0, false, &[]),
            (25, 10, true, &[10, 10, 5]),
            (11, 0, false, &[]),
            (11, 0, true, &[11]),
            (25, 10, false, &[]),
        ] {
            assert_eq!(cutting.fits(&sender, length, bytes), fits, "{length} as {bytes}");
            if fits {
                sender.send(&[7; 50][..length]).expect("sent");
            }
            for bytes in packets {
                assert_eq!(receiver.recv(&mut [0; 100]).expect("a packet"), *bytes);
            }
        }
    }
}
