//! Messages that wait to be sent.

use core::net::Ipv4Addr;
use std::collections::VecDeque;

use super::interface::Interfaces;
use super::limits::TRANSMITS_MAX;
use super::packet::{Message, emit_ip};
use super::{Counters, InterfaceId, Peer, Refusal};

/// Where a packet is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Over which interface.
    pub interface: InterfaceId,
    /// To which address, as in the packet: all routers, or one.
    pub destination: Ipv4Addr,
}

#[derive(Debug)]
pub(super) struct Outbox {
    waiting: VecDeque<(Transmit, Vec<u8>)>,
    capabilities: u8,
}

impl Outbox {
    pub(super) const fn new(capabilities: u8) -> Self {
        Outbox { waiting: VecDeque::new(), capabilities }
    }

    pub(super) fn send(&mut self, to: Transmit, message: &Message<'_>, counters: &mut Counters) {
        if self.waiting.len() >= TRANSMITS_MAX {
            return counters.refuse(Refusal::TransmitsFull);
        }
        let mut bytes = Vec::new();
        message.emit(self.capabilities, &mut bytes);
        self.waiting.push_back((to, bytes));
    }

    /// To one neighbour.
    pub(super) fn send_to(
        &mut self,
        peer: Peer,
        interfaces: &Interfaces,
        message: &Message<'_>,
        counters: &mut Counters,
    ) {
        if let Some(interface) = interfaces.get(&peer.interface) {
            let to = Transmit { interface: peer.interface, destination: interface.destination(peer.address) };
            self.send(to, message, counters);
        }
    }

    /// The next one as a packet, written to `out`, which is cleared.
    pub(super) fn poll(&mut self, interfaces: &Interfaces, out: &mut Vec<u8>) -> Option<Transmit> {
        while let Some((to, message)) = self.waiting.pop_front() {
            // What was for an interface that went down is dropped.
            let Some(interface) = interfaces.get(&to.interface) else { continue };
            out.clear();
            emit_ip(interface.settings.address, to.destination, message.len(), out);
            out.extend(message);
            return Some(to);
        }
        None
    }
}
