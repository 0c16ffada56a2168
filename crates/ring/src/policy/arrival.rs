//! A packet arrives at a ring: what a policy is told, and what it answers.

use core::fmt::Debug;

use outflow_media::Time;
use outflow_packet::DropReason;

use crate::limits::RING_PACKETS_MAX;

/// What becomes of a packet that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes into the ring, where it fits.
    Admit,
    /// It goes into the ring; what does not fit any more is taken from the sinks that lag furthest.
    MakeRoom,
    /// It does not: all sinks that want its track lose it, for this reason.
    Refuse(DropReason),
}

/// How full a ring is when a packet arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    /// Bytes of the arriving packet.
    pub arriving_bytes: usize,
    /// Bytes that are owed to at least one sink.
    pub owed_bytes: usize,
    /// Packets that are owed to at least one sink.
    pub owed_packets: usize,
    /// Bytes that the ring may hold.
    pub bytes_max: usize,
}

impl Load {
    /// Whether the arriving packet does not fit beside what is owed.
    pub(super) fn is_full(&self) -> bool {
        self.owed_bytes + self.arriving_bytes > self.bytes_max || self.owed_packets >= RING_PACKETS_MAX
    }
}

/// Decides about the packets that arrive at one ring.
pub(crate) trait Policy: Debug + Send {
    /// At its beginning. All its chance comes from `seed`.
    fn new(seed: u64) -> Self
    where
        Self: Sized;

    /// What becomes of the packet that arrives at `now`. Asked once a packet, in their order.
    fn arrives(&mut self, now: Time, load: &Load) -> Verdict;
}
