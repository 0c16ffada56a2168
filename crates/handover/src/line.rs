//! The line: a pair of sockets that keep packets apart. A message is a first packet, with its value or the file that
//! holds it, and as many others as its descriptors take.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::error::LineError;
use crate::limits::{DESCRIPTORS_IN_PACKET_MAX, DESCRIPTORS_MAX, VALUE_BYTES_MAX, VALUE_IN_PACKET_MAX};
use crate::memfd;

/// What a first packet begins with.
const MAGIC: [u8; 4] = *b"Ofl1";

/// The head of a first packet: magic, kind, length of the value, number of descriptors; little endian.
pub(crate) const HEAD_BYTES: usize = MAGIC.len() + 1 + 4 + 4;

/// How long to wait for the other process to take descriptors, if there are as many on their way as the system allows.
const CROWDED: Duration = Duration::from_millis(1);

/// One end of a line.
#[derive(Debug)]
pub struct Line(OwnedFd);

/// What is said by it.
pub struct Message {
    /// What it is about.
    pub kind: u8,
    /// What it says.
    pub value: Vec<u8>,
    /// What the value names by number.
    pub descriptors: Vec<OwnedFd>,
}

impl fmt::Debug for Message {
    /// Values have keys in them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, descriptors) = (self.value.len(), self.descriptors.len());
        write!(f, "Message {{ kind: {}, {bytes} bytes, {descriptors} descriptors }}", self.kind)
    }
}

impl Line {
    /// A line, and its other end, for the other process's standard input.
    ///
    /// # Errors
    /// The system refuses.
    pub fn pair() -> io::Result<(Line, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Line(ours), theirs))
    }

    /// The other end, in the process that was given it.
    ///
    /// # Errors
    /// It is no end of a line.
    pub fn taken(end: OwnedFd) -> io::Result<Line> {
        if socket_domain(&end)? != AddressFamily::UNIX || socket_type(&end)? != SocketType::SEQPACKET {
            return Err(Errno::PROTOTYPE.into());
        }
        fcntl_setfd(&end, FdFlags::CLOEXEC)?;
        Ok(Line(end))
    }

    /// Sends it, within this time. Its descriptors are closed here then.
    ///
    /// # Errors
    /// Not all of it was sent.
    pub fn send(&self, message: Message, within: Duration) -> Result<(), LineError> {
        let until = Instant::now() + within;
        let Message { kind, value, descriptors } = message;
        let head = Head { kind, length: value.len(), descriptors: descriptors.len() };
        head.check().map_err(|(what, number, most)| LineError::TooMuch { what, number, most })?;
        if head.is_in_packet() {
            self.put(&[&head.emit(), &value], &[], until)?;
        } else {
            let file = memfd::sealed(&value)?;
            drop(value);
            self.put(&[&head.emit()], &[file.as_fd()], until)?;
        }
        for some in descriptors.chunks(DESCRIPTORS_IN_PACKET_MAX) {
            let borrowed: Vec<_> = some.iter().map(|descriptor| descriptor.as_fd()).collect();
            self.put(&[&[some.len() as u8]], &borrowed, until)?;
        }
        Ok(())
    }

    /// The next message, if it comes within this time. If it is late and nothing of it has come, it may still be
    /// waited for.
    ///
    /// # Errors
    /// It did not come, not as a whole, or is none.
    pub fn receive(&self, within: Duration) -> Result<Message, LineError> {
        let until = Instant::now() + within;
        let mut packet = vec![0; HEAD_BYTES + VALUE_IN_PACKET_MAX];
        let (length, mut files) = self.get(&mut packet, until)?;
        let (head, value) = Head::parse(&packet[..length])?;
        let value = match (files.pop(), head.is_in_packet()) {
            (None, true) if value.len() == head.length => value.to_vec(),
            (Some(file), false) if value.is_empty() && files.is_empty() => memfd::read(file, head.length)?,
            _ => return Err(LineError::Malformed("a value that is not where it should be")),
        };
        let mut descriptors = Vec::new();
        while descriptors.len() < head.descriptors {
            let (length, some) = self.get(&mut packet, until)?;
            if packet[..length] != [some.len() as u8] || some.is_empty() {
                return Err(LineError::Malformed("descriptors that are not as many as is said"));
            }
            descriptors.extend(some);
        }
        if descriptors.len() > head.descriptors {
            return Err(LineError::Malformed("more descriptors than is said"));
        }
        Ok(Message { kind: head.kind, value, descriptors })
    }

    /// Sends a packet.
    fn put(&self, bytes: &[&[u8]], descriptors: &[BorrowedFd<'_>], until: Instant) -> Result<(), LineError> {
        let bytes: Vec<_> = bytes.iter().map(|part| IoSlice::new(part)).collect();
        loop {
            let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_IN_PACKET_MAX))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !descriptors.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(descriptors));
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match sendmsg(&self.0, &bytes, &mut control, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, until)?,
                // The other process takes some of them meanwhile.
                Err(Errno::TOOMANYREFS) if Instant::now() < until => std::thread::sleep(CROWDED),
                Err(Errno::TOOMANYREFS) => return Err(LineError::Late),
                Err(error) => ended(error)?,
            }
        }
    }

    /// The next packet: how long it is, and its descriptors.
    fn get(&self, into: &mut [u8], until: Instant) -> Result<(usize, Vec<OwnedFd>), LineError> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_IN_PACKET_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            match recvmsg(&self.0, &mut [IoSliceMut::new(into)], &mut control, flags) {
                Ok(received) => break received,
                Err(Errno::AGAIN) => self.wait(PollFlags::IN, until)?,
                Err(error) => ended(error)?,
            }
        };
        if received.flags.contains(ReturnFlags::TRUNC) {
            return Err(LineError::Malformed("a packet that is too long"));
        }
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(LineError::Lost);
        }
        if received.bytes == 0 {
            return Err(LineError::Gone);
        }
        let descriptors = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        Ok((received.bytes, descriptors.flatten().collect()))
    }

    /// Waits until something can be sent, or has come.
    fn wait(&self, what: PollFlags, until: Instant) -> Result<(), LineError> {
        let left = until.saturating_duration_since(Instant::now());
        let wait = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.0, what)], Some(&wait)) {
            Ok(0) => Err(LineError::Late),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(LineError::System(error.into())),
        }
    }
}

/// What an error of the socket means; that a signal came means nothing.
fn ended(error: Errno) -> Result<(), LineError> {
    match error {
        Errno::INTR => Ok(()),
        Errno::PIPE | Errno::CONNRESET => Err(LineError::Gone),
        error => Err(LineError::System(error.into())),
    }
}

/// What a first packet says.
struct Head {
    kind: u8,
    length: usize,
    descriptors: usize,
}

impl Head {
    fn parse(packet: &[u8]) -> Result<(Head, &[u8]), LineError> {
        let malformed = LineError::Malformed("no message");
        let Some((head, rest)) = packet.split_first_chunk::<HEAD_BYTES>() else { return Err(malformed) };
        let [m0, m1, m2, m3, kind, l0, l1, l2, l3, d0, d1, d2, d3] = *head;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(malformed);
        }
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let descriptors = u32::from_le_bytes([d0, d1, d2, d3]) as usize;
        let head = Head { kind, length, descriptors };
        head.check().map_err(|_| LineError::Malformed("more than a message may hold"))?;
        Ok((head, rest))
    }

    /// It has been checked: the numbers fit.
    fn emit(&self) -> [u8; HEAD_BYTES] {
        let [l0, l1, l2, l3] = (self.length as u32).to_le_bytes();
        let [d0, d1, d2, d3] = (self.descriptors as u32).to_le_bytes();
        let [m0, m1, m2, m3] = MAGIC;
        [m0, m1, m2, m3, self.kind, l0, l1, l2, l3, d0, d1, d2, d3]
    }

    /// What there is too much of, how much, and how much there may be.
    fn check(&self) -> Result<(), (&'static str, usize, usize)> {
        for (what, number, most) in
            [("bytes", self.length, VALUE_BYTES_MAX), ("descriptors", self.descriptors, DESCRIPTORS_MAX)]
        {
            if number > most {
                return Err((what, number, most));
            }
        }
        Ok(())
    }

    fn is_in_packet(&self) -> bool {
        self.length <= VALUE_IN_PACKET_MAX
    }
}
