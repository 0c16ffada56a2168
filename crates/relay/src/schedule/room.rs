//! To how many sinks one order may go.

use super::spec::Transport;
use crate::limits::{DATAGRAMS_AS_ONE, WRITTEN_AS_ONE};

/// To how many sinks one order of a few packets may go, so that a higher class waits no longer than
/// that. An order of many packets goes to fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Sinks that are reached by datagrams.
    pub datagram: usize,
    /// Sinks that are reached by byte streams.
    pub stream: usize,
}

impl Room {
    /// As many as there are.
    pub const UNLIMITED: Room = Room { datagram: usize::MAX, stream: usize::MAX };

    /// One of `parts` parts of it, but one sink in any case.
    pub fn part(self, parts: usize) -> Self {
        let part = |sinks: usize| (sinks / parts).max(1);
        Room { datagram: part(self.datagram), stream: part(self.stream) }
    }

    /// Sinks for an order of this many packets.
    pub(crate) fn of(self, transport: Transport, packets: u64) -> usize {
        let (sinks, as_one) = match transport {
            Transport::Datagram => (self.datagram, DATAGRAMS_AS_ONE),
            Transport::Stream => (self.stream, WRITTEN_AS_ONE),
        };
        (sinks / (1 + (packets / as_one) as usize)).max(1)
    }
}
