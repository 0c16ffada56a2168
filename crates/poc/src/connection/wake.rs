//! When a connection is to be called at the latest, and why.

use outflow_media::Time;

use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::{Connection, State, one_way};

/// Why a connection wants to be called at a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// The peer has been silent for too long, or does not know the connection: it ends.
    Silence,
    /// It is closed, and what of that still has to be said or heard is over.
    Over,
    /// A packet counts as lost, or the peer is asked what came.
    Recovery,
    /// Nothing is heard of what is in flight: less is sent.
    Congestion,
    /// What waits to be sent is of no use any more.
    TooLate,
    /// A copy of something lost is sent.
    Copy,
    /// A unit that has not come is waited for no longer.
    Missed,
    /// The peer is told what came.
    Acknowledgement,
    /// The peer is told what this end is done with.
    Progress,
    /// The peer is asked whether it is at another address.
    Path,
    /// A larger datagram is tried.
    Size,
    /// Data may go.
    Pace,
    /// The peer is asked whether it is there.
    KeepAlive,
}

impl Connection {
    /// When to call [`handle_timeout`](Self::handle_timeout), or [`poll_transmit`](Self::poll_transmit) at
    /// the latest, and why. All other calls may change it.
    pub fn next_timeout(&self) -> Option<(Time, Wake)> {
        if let State::Closing { until } | State::Draining { until } = self.state {
            return (!self.is_over()).then_some((until, Wake::Over));
        }
        let outgoing = self.outgoing.as_ref();
        // Nothing is sent before some of what is under way is over, so nothing of that is waited for.
        let sends = |at: Option<Time>| at.filter(|_| !self.sent.is_full());
        let full = outgoing.filter(|outgoing| outgoing.has_data()).map(|_| self.mtu.bytes() as u64);
        let waits = [
            (Some(self.heard + self.settings.idle), Wake::Silence),
            (self.reset_at, Wake::Silence),
            (self.sent.next_timeout(), Wake::Recovery),
            (self.controller.next_timeout(), Wake::Congestion),
            (outgoing.and_then(|outgoing| outgoing.next_late(one_way(self.sent.rtt()))), Wake::TooLate),
            (outgoing.and_then(Outgoing::next_copy), Wake::Copy),
            (self.incoming.as_ref().and_then(Incoming::next_timeout), Wake::Missed),
            (sends(self.received.next_timeout()), Wake::Acknowledgement),
            (sends(self.progress_at), Wake::Progress),
            (sends(self.path.next_timeout()), Wake::Path),
            (sends(self.size_to_try().map(|(at, _)| at)), Wake::Size),
            (sends(full.and_then(|bytes| self.controller.next_send(self.now, bytes))), Wake::Pace),
            (Some(self.spoke + self.settings.keep_alive), Wake::KeepAlive),
        ];
        waits.into_iter().filter_map(|(at, why)| Some((at?, why))).min()
    }
}
