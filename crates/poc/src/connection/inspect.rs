//! What tests want to know of a connection.

use outflow_petri::net::Need;

use super::Connection;
use super::incoming::Incoming;
use super::outgoing::Outgoing;

impl Connection {
    /// Until when a unit is needed that is received here.
    pub(super) fn need(&self, unit: u64) -> Need {
        self.incoming.as_ref().map_or(Need::No, |incoming| incoming.need(unit))
    }

    /// Whether the peer is done with all that was sent.
    pub(super) fn is_all_over(&self) -> bool {
        self.outgoing.as_ref().is_none_or(Outgoing::is_done)
    }

    /// What is counted is what there is, and no more than may be.
    pub(super) fn check_accounts(&self) {
        if let Some(outgoing) = &self.outgoing {
            outgoing.check_accounts();
        }
        if let Some(incoming) = &self.incoming {
            incoming.check_accounts();
        }
    }

    pub(super) fn describe(&self) -> String {
        let outgoing = self.outgoing.as_ref().map(Outgoing::describe);
        let incoming = self.incoming.as_ref().map(Incoming::describe);
        let sent = (self.sent.next_number(), self.sent.in_flight(), self.sent.counts());
        let (now, next) = (self.now, self.next_timeout());
        format!(
            "{:?} at {now}, next {next:?}: sent {sent:?}, {:?}, out {outgoing:?}, in {incoming:?}",
            self.state, self.counts
        )
    }
}
