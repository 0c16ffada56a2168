//! What user space has forwarded, and what not.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was forwarded in user space, and what was not, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct UserCounts {
    /// Packets that came in to be forwarded, whether or not any port wants them.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Copies that were sent.
    pub copies: u64,
    /// Packets that were lost, as they came faster than they were read, or could not be read.
    pub lost: u64,
    /// Packets that are none of IPv4 to a group, or that have a wrong length, checksum or source.
    pub malformed: u64,
    /// Packets whose TTL allows them to go no farther.
    pub ttl: u64,
    /// Packets that were merged on their way in, in a way that cannot be undone.
    pub merged: u64,
    /// Packets that had waited for too long, or found no room to wait, until it was known where they go.
    pub unresolved: u64,
    /// Packets that came in by another interface than those of their source and group do.
    pub elsewhere: u64,
    /// Copies that were left out, as their layer is not wanted at their interface.
    pub thinned: u64,
    /// Copies that are too long for their interface, and not to be fragmented.
    pub too_long: u64,
    /// Copies for which their interface had no room.
    pub no_room: u64,
    /// Copies that could not be sent otherwise: most often as their interface is gone.
    pub send_errors: u64,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Packets,
    Bytes,
    Copies,
    Lost,
    Malformed,
    Ttl,
    Merged,
    Unresolved,
    Elsewhere,
    Thinned,
    TooLong,
    NoRoom,
    SendErrors,
}

const COUNTS: usize = Count::SendErrors as usize + 1;

/// They, as one thread counts and others read.
#[derive(Debug)]
pub(super) struct Counters([AtomicU64; COUNTS]);

impl Default for Counters {
    fn default() -> Self {
        Counters(array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Counters {
    pub(super) fn add(&self, which: Count, count: usize) {
        self.0[which as usize].fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> UserCounts {
        let read = |which: Count| self.0[which as usize].load(Ordering::Relaxed);
        UserCounts {
            packets: read(Count::Packets),
            bytes: read(Count::Bytes),
            copies: read(Count::Copies),
            lost: read(Count::Lost),
            malformed: read(Count::Malformed),
            ttl: read(Count::Ttl),
            merged: read(Count::Merged),
            unresolved: read(Count::Unresolved),
            elsewhere: read(Count::Elsewhere),
            thinned: read(Count::Thinned),
            too_long: read(Count::TooLong),
            no_room: read(Count::NoRoom),
            send_errors: read(Count::SendErrors),
        }
    }
}
