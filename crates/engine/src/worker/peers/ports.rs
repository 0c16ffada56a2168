//! Sockets that peers send through: each is one peer's, or shared by many and with other workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_udp::{Outbox, Outgoing, Udp};
use slab::Slab;

use crate::message::PeerPath;

/// The sockets of a worker's peers.
#[derive(Default)]
pub(super) struct Ports {
    all: Slab<Port>,
    /// By where they lie in memory, as long as they are here.
    by_socket: BTreeMap<usize, usize>,
    /// Those that something was put down for.
    touched: Vec<usize>,
    /// Those that have become full, and are not waited for yet.
    filled: Vec<usize>,
}

/// A socket, and what is to be sent through it.
pub(super) struct Port {
    pub(super) udp: Arc<Udp>,
    outbox: Outbox,
    users: usize,
    is_touched: bool,
    /// Peers that go on when it takes more: all that had something to send since it was full.
    waiting: Vec<usize>,
    is_full: bool,
    /// What it is waited for by, once it was full.
    pub(super) token: Option<usize>,
}

impl Ports {
    /// A peer sends through a socket from now on. Answers its number.
    pub(super) fn enter(&mut self, path: PeerPath) -> usize {
        let PeerPath { udp, .. } = path;
        let socket = Arc::as_ptr(&udp).addr();
        let port = *self.by_socket.entry(socket).or_insert_with(|| {
            let (outbox, users, is_touched) = (Outbox::default(), 0, false);
            let (waiting, is_full, token) = (Vec::new(), false, None);
            self.all.insert(Port { udp, outbox, users, is_touched, waiting, is_full, token })
        });
        self.all[port].users += 1;
        port
    }

    /// One of its peers leaves. Answers the port if that was the last.
    pub(super) fn leave(&mut self, number: usize) -> Option<Port> {
        let port = self.all.get_mut(number)?;
        port.users -= 1;
        if port.users > 0 {
            return None;
        }
        self.by_socket.remove(&Arc::as_ptr(&port.udp).addr());
        self.touched.retain(|touched| *touched != number);
        self.all.try_remove(number)
    }

    /// Whether a port takes nothing now.
    pub(super) fn is_full(&self, port: usize) -> bool {
        self.all.get(port).is_some_and(|port| port.is_full)
    }

    /// Whether a peer has to wait until a port takes more; it is among those that are told.
    pub(super) fn waits(&mut self, port: usize, peer: usize) -> bool {
        match self.all.get_mut(port) {
            Some(port) if port.is_full => {
                port.waiting.push(peer);
                true
            }
            _ => false,
        }
    }

    /// A datagram to be sent, if there is one: see [`Outbox::put`].
    pub(super) fn put(
        &mut self,
        number: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Option<Outgoing>,
    ) -> bool {
        let Some(port) = self.all.get_mut(number) else { return false };
        let is_put = port.outbox.put(write);
        if is_put && !core::mem::replace(&mut port.is_touched, true) {
            self.touched.push(number);
        }
        is_put
    }

    /// Sends what was put down, as far as sockets take it. Answers those that have failed.
    pub(super) fn send(&mut self) -> Vec<usize> {
        let mut failed = Vec::new();
        for number in self.touched.drain(..) {
            let Some(port) = self.all.get_mut(number) else { continue };
            port.is_touched = false;
            match port.outbox.send(&port.udp) {
                Ok(true) => {}
                Ok(false) => {
                    port.is_full = true;
                    self.filled.push(number);
                }
                Err(_) => failed.push(number),
            }
        }
        failed
    }

    /// The next one that has become full, to be waited for.
    pub(super) fn filled(&mut self) -> Option<(usize, &mut Port)> {
        loop {
            let number = self.filled.pop()?;
            if self.all.get(number).is_some_and(|port| port.is_full) {
                return self.all.get_mut(number).map(|port| (number, port));
            }
        }
    }

    /// A socket takes more. Answers the peers that waited for it.
    pub(super) fn writable(&mut self, number: usize) -> Vec<usize> {
        let Some(port) = self.all.get_mut(number) else { return Vec::new() };
        // What is wrong with it shows itself to those that send next.
        port.is_full = matches!(port.outbox.send(&port.udp), Ok(false));
        if port.is_full {
            self.filled.push(number);
            return Vec::new();
        }
        core::mem::take(&mut port.waiting)
    }
}

#[cfg(test)]
impl Ports {
    /// As if a socket took nothing.
    pub(super) fn fill(&mut self, number: usize) {
        self.all[number].is_full = true;
        self.filled.push(number);
    }
}
