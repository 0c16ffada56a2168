//! What can be asked of a connection.

use core::net::SocketAddr;

use outflow_congestion::Controller;
use outflow_petri::service::Flow;

use super::incoming::{Incoming, IncomingCounts};
use super::outgoing::{Outgoing, OutgoingCounts};
use super::{Closed, Connection, DatagramCounts};
use crate::packet::ConnectionId;
use crate::recovery::{Rtt, SentCounts};

impl Connection {
    /// How it ended, if it did.
    pub fn closed(&self) -> Option<&Closed> {
        self.closed.as_ref()
    }

    /// How this end calls it.
    pub fn local(&self) -> ConnectionId {
        self.local
    }

    /// How the peer calls it.
    pub fn remote(&self) -> ConnectionId {
        self.remote
    }

    /// Where the peer is.
    pub fn address(&self) -> SocketAddr {
        self.path.address()
    }

    /// How often the peer was found at another address.
    pub fn path_changes(&self) -> u64 {
        self.path.changes()
    }

    /// What it sends.
    pub fn outgoing(&self) -> Option<&Flow> {
        self.outgoing.as_ref().map(Outgoing::flow)
    }

    /// What it receives.
    pub fn incoming(&self) -> Option<&Flow> {
        self.incoming.as_ref().map(Incoming::flow)
    }

    /// What became of units that were sent.
    pub fn outgoing_counts(&self) -> OutgoingCounts {
        self.outgoing.as_ref().map(Outgoing::counts).unwrap_or_default()
    }

    /// What became of units that were received.
    pub fn incoming_counts(&self) -> IncomingCounts {
        self.incoming.as_ref().map(Incoming::counts).unwrap_or_default()
    }

    /// What became of datagrams.
    pub fn counts(&self) -> DatagramCounts {
        DatagramCounts { duplicate: self.received.duplicates(), ..self.counts }
    }

    /// What became of packets.
    pub fn sent_counts(&self) -> SentCounts {
        self.sent.counts()
    }

    /// What is known of round trips.
    pub fn rtt(&self) -> &Rtt {
        self.sent.rtt()
    }

    /// How fast it sends, and why.
    pub fn congestion(&self) -> &Controller {
        &self.controller
    }

    /// Changes of how fast it sends: to be read now and then.
    pub fn congestion_mut(&mut self) -> &mut Controller {
        &mut self.controller
    }

    /// Bytes that wait to be sent for the first time, and bytes of units that were received and are kept.
    pub fn buffered_bytes(&self) -> (u64, u64) {
        let queued = self.outgoing.as_ref().map_or(0, Outgoing::queued_bytes);
        (queued, self.incoming.as_ref().map_or(0, Incoming::buffered))
    }

    /// Bytes that a datagram may have on this path, as far as is known.
    pub fn datagram_bytes(&self) -> usize {
        self.mtu.bytes()
    }
}
