//! Datagrams read many at a time, with the times at which the kernel got them.

use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, MultiHeaders, recvmmsg};
use nix::sys::time::TimeSpec;

use crate::media::wall_nanos;

/// Datagrams read by one call.
const COUNT: usize = 16;
/// Room for one of them.
const DATAGRAM: usize = 2048;

/// Room for what one call reads.
pub(super) struct Batch {
    headers: MultiHeaders<()>,
    buffers: Vec<[u8; DATAGRAM]>,
}

impl Batch {
    pub(super) fn new() -> Self {
        let headers = MultiHeaders::preallocate(COUNT, Some(nix::cmsg_space!(TimeSpec)));
        Self { headers, buffers: vec![[0; DATAGRAM]; COUNT] }
    }

    /// Reads all that waits. Times are nanoseconds since 1970.
    pub(super) fn read(&mut self, socket: &UdpSocket, take: &mut impl FnMut(&[u8], u64)) {
        loop {
            let mut slices: Vec<_> = self.buffers.iter_mut().map(|b| [IoSliceMut::new(b)]).collect();
            let flags = MsgFlags::MSG_DONTWAIT;
            let Ok(results) = recvmmsg(socket.as_raw_fd(), &mut self.headers, &mut slices, flags, None)
            else {
                return;
            };
            let mut count = 0;
            for message in results {
                count += 1;
                let stamp = message.cmsgs().ok().and_then(|mut all| {
                    all.find_map(|one| match one {
                        ControlMessageOwned::ScmTimestampns(time) => Some(nanos(time)),
                        _ => None,
                    })
                });
                let bytes = message.iovs().next().unwrap_or_default();
                take(bytes, stamp.unwrap_or_else(wall_nanos));
            }
            if count < COUNT {
                return;
            }
        }
    }
}

fn nanos(time: TimeSpec) -> u64 {
    u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_waits_is_read_and_stamped() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        let option = nix::sys::socket::sockopt::ReceiveTimestampns;
        nix::sys::socket::setsockopt(&receiver, option, &true).expect("the kernel stamps");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        let before = wall_nanos();
        for number in 0..40u8 {
            let to = receiver.local_addr().expect("it is bound");
            sender.send_to(&[number; 100], to).expect("the loopback takes it");
        }
        let mut seen = Vec::new();
        Batch::new().read(&receiver, &mut |bytes, arrived| {
            assert_eq!(bytes.len(), 100);
            assert!(arrived >= before);
            seen.push(bytes[0]);
        });
        assert_eq!(seen, (0..40).collect::<Vec<_>>());
    }
}
