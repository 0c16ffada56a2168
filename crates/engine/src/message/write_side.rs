//! What the worker writes to for a receiver.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use tokio::net::TcpStream;

/// The write side of a receiver's connection: TCP, or a local socket to a task that encrypts.
#[derive(Debug)]
pub enum WriteSide {
    /// It is not shared.
    Own(OwnedFd),
    /// Control reads from it meanwhile. Two descriptors of one connection would do as well, but a relay that
    /// serves thousands has none to give away.
    Shared(Arc<TcpStream>),
}

impl AsFd for WriteSide {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            WriteSide::Own(fd) => fd.as_fd(),
            WriteSide::Shared(tcp) => tcp.as_fd(),
        }
    }
}

impl AsRawFd for WriteSide {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
