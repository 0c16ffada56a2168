//! UDP segmentation (GSO): the kernel, or the device, cuts what it is given into packets.

use std::io;
use std::os::fd::AsRawFd;

use crate::set_int;

/// Has the kernel cut whatever is sent by a socket into packets of `bytes` of payload; 0: no more.
///
/// # Errors
/// The system's.
pub fn cut(socket: &impl AsRawFd, bytes: usize) -> io::Result<()> {
    set_int(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes as i32)
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
