//! What the relay says to a process beside it: single messages of a socket pair, of which each may have descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Sends one, with no descriptor or one. It does not wait.
///
/// # Errors
/// The other process is late, or gone.
pub(crate) fn send(
    to: impl AsFd,
    bytes: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptor) = &descriptor {
        control.push(SendAncillaryMessage::ScmRights(core::slice::from_ref(descriptor)));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(to, &[IoSlice::new(bytes)], &mut control, flags).map(drop)
}

/// Waits for the next one. Answers its length, which is 0 if the other process has ended, and its descriptor.
///
/// # Errors
/// A signal came, or the socket is none.
pub(crate) fn receive(from: impl AsFd, bytes: &mut [u8]) -> rustix::io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(bytes)];
    let length = recvmsg(from, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok((length, descriptor))
}
