//! What happened to datagrams, counted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

/// Datagrams of a socket so far, by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Received.
    pub received: u64,
    /// Received, but longer than is taken ([`Batch::new`](super::Batch::new)).
    pub left_out: u64,
    /// Received, but dropped: there was no room where they are read ([`Inbox`](super::Inbox)).
    pub unread: u64,
    /// Given to the kernel.
    pub sent: u64,
    /// Not sent: longer than the way to the receiver carries (EMSGSIZE).
    pub too_long: u64,
    /// Not sent: forbidden by a rule of this machine (EPERM, EACCES).
    pub forbidden: u64,
    /// The peer, or a router, said that no socket receives there (ECONNREFUSED), or there is no way
    /// (ENETUNREACH, EHOSTUNREACH), or it is no address to send to.
    pub unreachable: u64,
    /// Not sent: the kernel had no memory (ENOBUFS, ENOMEM).
    pub no_memory: u64,
    /// Not sent: the kernel would not, for another reason; an own address that is none, say.
    pub invalid: u64,
}

/// Why a datagram was not sent, or what was said of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    TooLong,
    Forbidden,
    Unreachable,
    NoMemory,
    Invalid,
}

impl Failure {
    /// What an error is about; the error itself if it is about the socket.
    pub(super) fn of(error: io::Error) -> io::Result<Failure> {
        match Errno::from_io_error(&error) {
            None | Some(Errno::AGAIN | Errno::BADF | Errno::NOTSOCK | Errno::FAULT | Errno::PIPE) => {
                Err(error)
            }
            Some(Errno::MSGSIZE) => Ok(Failure::TooLong),
            Some(Errno::PERM | Errno::ACCESS) => Ok(Failure::Forbidden),
            Some(Errno::NOBUFS | Errno::NOMEM) => Ok(Failure::NoMemory),
            Some(
                Errno::CONNREFUSED
                | Errno::NETUNREACH
                | Errno::HOSTUNREACH
                | Errno::NETDOWN
                | Errno::HOSTDOWN
                | Errno::NOPROTOOPT
                | Errno::OPNOTSUPP
                | Errno::NONET
                | Errno::ADDRNOTAVAIL,
            ) => Ok(Failure::Unreachable),
            Some(_) => Ok(Failure::Invalid),
        }
    }
}

/// The same while they are counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    received: AtomicU64,
    left_out: AtomicU64,
    unread: AtomicU64,
    sent: AtomicU64,
    too_long: AtomicU64,
    forbidden: AtomicU64,
    unreachable: AtomicU64,
    no_memory: AtomicU64,
    invalid: AtomicU64,
}

impl Counters {
    pub(super) fn received(&self, taken: u64, left_out: u64) {
        self.received.fetch_add(taken, Ordering::Relaxed);
        if left_out > 0 {
            self.left_out.fetch_add(left_out, Ordering::Relaxed);
        }
    }

    pub(super) fn unread(&self, datagrams: u64) {
        self.unread.fetch_add(datagrams, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, datagrams: u64) {
        self.sent.fetch_add(datagrams, Ordering::Relaxed);
    }

    pub(super) fn failed(&self, failure: Failure, datagrams: u64) {
        let counter = match failure {
            Failure::TooLong => &self.too_long,
            Failure::Forbidden => &self.forbidden,
            Failure::Unreachable => &self.unreachable,
            Failure::NoMemory => &self.no_memory,
            Failure::Invalid => &self.invalid,
        };
        counter.fetch_add(datagrams, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            received: read(&self.received),
            left_out: read(&self.left_out),
            unread: read(&self.unread),
            sent: read(&self.sent),
            too_long: read(&self.too_long),
            forbidden: read(&self.forbidden),
            unreachable: read(&self.unreachable),
            no_memory: read(&self.no_memory),
            invalid: read(&self.invalid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_single_datagrams_are_not_the_end_of_the_socket() {
        let of = |errno: Errno| Failure::of(errno.into()).ok();
        assert_eq!(of(Errno::CONNREFUSED), Some(Failure::Unreachable));
        assert_eq!(of(Errno::MSGSIZE), Some(Failure::TooLong));
        assert_eq!(of(Errno::PERM), Some(Failure::Forbidden));
        assert_eq!(of(Errno::NOBUFS), Some(Failure::NoMemory));
        assert_eq!(of(Errno::INVAL), Some(Failure::Invalid));
        assert_eq!((of(Errno::BADF), of(Errno::AGAIN)), (None, None));
    }
}
