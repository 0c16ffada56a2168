//! Rings and connections for tests, of other crates too; and a ring that fails.

use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::time::Duration;

use crate::limits::{BATCH, REGISTERED_FILES_MAX};
use crate::{Uring, open};

/// A ring, unless this kernel has none: then it is said that the test is skipped.
pub fn ring() -> Option<Uring> {
    ring_of(BATCH as u32, REGISTERED_FILES_MAX)
}

/// The same, whose submission queue and whose table of descriptors are of these sizes.
pub(crate) fn ring_of(sends: u32, files: u32) -> Option<Uring> {
    let uring = Uring::open_with(sends, files);
    if !uring.works() {
        let why = open::open(sends).err();
        outflow_skip::skipped(
            "sends through io_uring",
            format!("the kernel does not give us a ring: {why:?}"),
        );
    }
    uring.works().then_some(uring)
}

impl Uring {
    /// Makes the ring's own descriptor one that is no ring: the next [`Uring::submit`] fails.
    pub fn put_something_else_in_its_place(&self) {
        let ring = self.ring.as_ref().expect("a ring");
        let nothing = std::fs::File::open("/dev/null").expect("it is always there");
        // SAFETY: the descriptor is open, and its owner closes it as before; there is nothing in
        // memory that depends on what it names.
        let mut own = unsafe { std::os::fd::OwnedFd::from_raw_fd(ring.io.as_raw_fd()) };
        rustix::io::dup2(&nothing, &mut own).expect("a descriptor");
        let _ = own.into_raw_fd();
    }
}

/// Two ends of a TCP connection; ours does not wait.
pub fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let theirs = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let (ours, _) = listener.accept().expect("accept");
    ours.set_nonblocking(true).expect("nonblocking");
    theirs.set_read_timeout(Some(Duration::from_secs(5))).expect("timeout");
    (ours, theirs)
}
