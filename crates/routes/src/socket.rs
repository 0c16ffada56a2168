//! A netlink socket: requests and their answers, or events.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_ALIGNTO, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};
use outflow_socket::{Buffer, set_buffer};

use crate::limits::{NETLINK_BUFFER_BYTES, NETLINK_MESSAGE_BYTES};

/// One message of the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) kind: u16,
    flags: u16,
    sequence: u32,
    pub(super) payload: &'a [u8],
}

/// A netlink socket of the network namespace in which it was opened.
pub(super) struct Netlink {
    socket: Socket,
    /// What came in last.
    received: Vec<u8>,
    /// What goes out next.
    request: Vec<u8>,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket of a protocol (`NETLINK_…`) that hears these groups.
    ///
    /// # Errors
    /// What the system refused.
    pub(super) fn open(protocol: i32, groups: &[u32]) -> io::Result<Self> {
        let mut socket = Socket::new(protocol as isize)?;
        set_buffer(&socket, Buffer::Receive, NETLINK_BUFFER_BYTES);
        socket.bind_auto()?;
        for group in groups {
            socket.add_membership(*group)?;
        }
        Ok(Netlink {
            socket,
            received: Vec::with_capacity(NETLINK_MESSAGE_BYTES),
            request: Vec::new(),
            sequence: 0,
        })
    }

    /// Puts a request to those that go out with the next [`Netlink::send`].
    pub(super) fn add<I: NetlinkSerializable>(&mut self, flags: u16, request: I) {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(request));
        message.finalize();
        let (start, length) = (self.request.len(), message.buffer_len());
        self.request.resize(start + length.next_multiple_of(NLMSG_ALIGNTO as usize), 0);
        message.serialize(&mut self.request[start..start + length]);
    }

    /// Bytes of the requests that wait.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.request.len()
    }

    /// Sends what waits. The kernel has done it all when this returns.
    ///
    /// # Errors
    /// What the system refused.
    pub(super) fn send(&mut self) -> io::Result<()> {
        let sent = self.socket.send_to(&self.request, &SocketAddr::new(0, 0), 0);
        self.request.clear();
        sent.map(drop)
    }

    /// Has the kernel do something, and reads whether it did; `flags` have NLM_F_ACK.
    ///
    /// # Errors
    /// What the kernel answers.
    pub(super) fn tell<I: NetlinkSerializable>(&mut self, flags: u16, request: I) -> io::Result<()> {
        self.add(flags, request);
        self.send()?;
        let (sequence, mut answer) = (self.sequence, None);
        while self.receive(|message| {
            if message.sequence == sequence && message.kind == NLMSG_ERROR {
                answer = Some(message.error());
            }
            Ok(())
        })? {}
        answer.unwrap_or_else(|| Err(io::Error::other("the kernel gave no answer")))
    }

    /// Asks, and hands every message of the answer over.
    ///
    /// # Errors
    /// What the kernel answers; `Interrupted` if a dump met a change and may be inconsistent.
    pub(super) fn ask<I: NetlinkSerializable>(
        &mut self,
        dump: bool,
        request: I,
        mut tell: impl FnMut(Message<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.add(if dump { NLM_F_DUMP } else { 0 }, request);
        self.send()?;
        let sequence = self.sequence;
        let (mut done, mut interrupted) = (false, false);
        while !done {
            let there = self.receive(|message| {
                if message.sequence != sequence || done {
                    return Ok(()); // what is left of a request that was given up
                }
                interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
                match message.kind {
                    NLMSG_ERROR => {
                        done = true;
                        message.error()
                    }
                    NLMSG_DONE => {
                        done = true;
                        Ok(())
                    }
                    _ => {
                        done = !dump;
                        tell(message)
                    }
                }
            })?;
            if !there && !done {
                return Err(io::Error::other("the kernel gave no answer"));
            }
        }
        if interrupted { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    /// Reads what has come in with one system call, without waiting. Tells whether anything had.
    ///
    /// # Errors
    /// ENOBUFS: messages were lost. What `tell` answers.
    pub(super) fn receive(
        &mut self,
        mut tell: impl FnMut(Message<'_>) -> io::Result<()>,
    ) -> io::Result<bool> {
        self.received.clear();
        let length = loop {
            match self.socket.recv_from(&mut self.received, libc::MSG_DONTWAIT | libc::MSG_TRUNC) {
                // Only the kernel's word counts.
                Ok((_, from)) if from.port_number() != 0 => self.received.clear(),
                Ok((length, _)) => break length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        if length > self.received.len() {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        for message in messages(&self.received) {
            tell(message)?;
        }
        Ok(true)
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Message<'_> {
    /// What an NLMSG_ERROR says: an error number below zero, or zero for "done".
    pub(super) fn error(&self) -> io::Result<()> {
        let number = self.payload.first_chunk().map_or(-libc::EPROTO, |bytes| i32::from_ne_bytes(*bytes));
        if number == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(number.wrapping_neg())) }
    }
}

/// The messages of one datagram, as far as they are whole.
fn messages(mut rest: &[u8]) -> impl Iterator<Item = Message<'_>> {
    core::iter::from_fn(move || {
        let buffer = NetlinkBuffer::new_checked(rest).ok()?;
        let length = buffer.length() as usize;
        let message = Message {
            kind: buffer.message_type(),
            flags: buffer.flags(),
            sequence: buffer.sequence_number(),
            payload: rest.get(length - buffer.payload_length()..length)?,
        };
        rest = rest.get(length.next_multiple_of(NLMSG_ALIGNTO as usize)..).unwrap_or_default();
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, length: u32, payload: &[u8]) -> Vec<u8> {
        let header = [length.to_ne_bytes(), u32::from(kind).to_ne_bytes(), [7, 0, 0, 0], [0; 4]];
        [&header.concat(), payload].concat()
    }

    #[test]
    fn a_datagram_is_taken_apart_into_its_messages_as_far_as_they_are_whole() {
        let padded = [&message(3, 18, &[1, 2])[..], &[0, 0]].concat();
        let datagram = [padded, message(4, 20, &[3; 4]), message(5, 30, &[4; 8])].concat();
        let got: Vec<_> = messages(&datagram).map(|m| (m.kind, m.sequence, m.payload.to_vec())).collect();
        assert_eq!(got, [(3, 7, vec![1, 2]), (4, 7, vec![3; 4])], "the third claims more than there is");
        for length in [0, 3, 15] {
            assert_eq!(messages(&message(3, length, &[])).count(), 0, "shorter than a header");
        }
    }

    #[test]
    fn an_error_is_a_number_below_zero_and_none_is_an_acknowledgement() {
        let error = |payload: &[u8]| Message { kind: NLMSG_ERROR, flags: 0, sequence: 1, payload }.error();
        assert!(error(&[0; 20]).is_ok());
        let refused = error(&(-libc::EPERM).to_ne_bytes()).expect_err("it is one");
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        error(&[0, 0]).expect_err("half a number");
    }
}
