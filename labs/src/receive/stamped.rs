//! Reading with the times at which the kernel got the packets: how long the reader took to wake up
//! is no part of a delay.

use std::io::IoSliceMut;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, recvmmsg, recvmsg, setsockopt, sockopt,
};
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
                let stamp = stamp(&message);
                let bytes = message.iovs().next().unwrap_or_default();
                take(bytes, stamp);
            }
            if count < COUNT {
                return;
            }
        }
    }
}

/// Reads datagrams of any size one by one.
#[derive(Debug)]
pub struct Stamped {
    socket: UdpSocket,
    control: Vec<u8>,
    bytes: Vec<u8>,
}

impl Stamped {
    /// Reads from a socket whose datagrams the kernel is to stamp from now on; `within` is how long to
    /// wait for one.
    pub fn new(socket: UdpSocket, within: Duration) -> std::io::Result<Self> {
        ask_for_stamps(&socket)?;
        setsockopt(&socket, sockopt::RcvBufForce, &(8 << 20))?;
        socket.set_read_timeout(Some(within))?;
        Ok(Self { socket, control: nix::cmsg_space!(TimeSpec), bytes: vec![0; 1 << 16] })
    }

    /// The next datagram: its bytes, and when the kernel had all of it; `None` if none comes.
    pub fn read(&mut self) -> Option<(&[u8], u64)> {
        self.read_with(MsgFlags::empty())
    }

    /// The same, but only what is there already.
    pub fn read_now(&mut self) -> Option<(&[u8], u64)> {
        self.read_with(MsgFlags::MSG_DONTWAIT)
    }

    fn read_with(&mut self, flags: MsgFlags) -> Option<(&[u8], u64)> {
        let mut slices = [IoSliceMut::new(&mut self.bytes)];
        let fd = self.socket.as_raw_fd();
        let (length, at) = {
            let message = recvmsg::<()>(fd, &mut slices, Some(&mut self.control), flags).ok()?;
            (message.bytes, stamp(&message))
        };
        Some((&self.bytes[..length], at))
    }
}

/// Room for what is read of a byte stream at once.
pub(super) struct Stream {
    control: Vec<u8>,
    bytes: Vec<u8>,
}

impl Stream {
    pub(super) fn new() -> Self {
        Self { control: nix::cmsg_space!(TimeSpec), bytes: vec![0; 256 << 10] }
    }

    /// Reads once, and tells when the last of it came; an error says why nothing more will.
    pub(super) fn read(&mut self, socket: &TcpStream) -> Result<(&[u8], u64), String> {
        let mut slices = [IoSliceMut::new(&mut self.bytes)];
        let (fd, flags) = (socket.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
        let (read, stamp) = match recvmsg::<()>(fd, &mut slices, Some(&mut self.control), flags) {
            Ok(message) if message.bytes == 0 => return Err("closed by the relay".into()),
            Ok(message) => (message.bytes, stamp(&message)),
            Err(Errno::EAGAIN) => (0, 0),
            Err(error) => return Err(error.to_string()),
        };
        Ok((&self.bytes[..read], stamp))
    }
}

/// Has the kernel stamp what arrives.
pub(super) fn ask_for_stamps(socket: &impl AsFd) -> nix::Result<()> {
    setsockopt(socket, sockopt::ReceiveTimestampns, &true)
}

/// When the kernel got it; now, if it does not say.
fn stamp<S>(message: &RecvMsg<'_, '_, S>) -> u64 {
    let stamp = message.cmsgs().ok().and_then(|mut all| {
        all.find_map(|one| match one {
            ControlMessageOwned::ScmTimestampns(time) => Some(nanos(time)),
            _ => None,
        })
    });
    stamp.unwrap_or_else(wall_nanos)
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
        ask_for_stamps(&receiver).expect("the kernel stamps");
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

    #[test]
    fn byte_streams_are_stamped_too_and_end() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let to = listener.local_addr().expect("it is bound");
        let mut sender = TcpStream::connect(to).expect("the listener takes it");
        let (receiver, _) = listener.accept().expect("it is there");
        ask_for_stamps(&receiver).expect("the kernel stamps");
        let mut stream = Stream::new();
        assert!(stream.read(&receiver).is_ok_and(|(bytes, _)| bytes.is_empty()));
        // The kernel begins to stamp a moment after the first socket of the machine asks for it.
        let stamped_when_it_came = (0..50).any(|_| {
            let before = wall_nanos();
            std::io::Write::write_all(&mut sender, b"abc").expect("the loopback takes it");
            let sent = wall_nanos();
            std::thread::sleep(Duration::from_millis(20));
            let (bytes, stamp) = stream.read(&receiver).expect("it is there");
            assert_eq!(bytes, b"abc");
            assert!(before <= stamp);
            stamp <= sent
        });
        assert!(stamped_when_it_came, "and not when it was read");
        drop(sender);
        assert!(stream.read(&receiver).is_err());
    }
}
