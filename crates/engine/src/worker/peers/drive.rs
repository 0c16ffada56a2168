//! The worker's part: when peers have their turn, and what becomes of what they tell.

use std::os::fd::AsFd;

use outflow_relay::{Priority, Report};
use rustix::event::epoll;
use rustix::event::epoll::EventFlags;

use super::super::stream::{LiveSink, Out};
use super::super::tasks::Task;
use super::super::{Watched, Worker};
use super::{Heard, Whose};
use crate::limits::WORK_ROUND;
use crate::message::{CloseReason, Peer, PeerEvent, PeerPath, ReceiverId, StreamId};

impl Worker {
    /// A receiver's state machine is there: packets may flow.
    pub(in super::super) fn start_peer(
        &mut self,
        id: StreamId,
        receiver: ReceiverId,
        peer: Box<dyn Peer>,
        path: PeerPath,
    ) {
        let now = self.clock.now();
        let Some((index, key)) = self.find_sink(id, receiver) else { return };
        let stream = &mut self.streams[index];
        let class = stream.core.spec(key).map_or(Priority::default(), |spec| spec.priority);
        let Some(LiveSink { out: Out::Peer { place, .. }, .. }) = stream.sink_mut(key) else { return };
        let whose = Whose { stream: index, sink: key, receiver };
        let before = place.replace(self.peers.add(peer, path, (whose, class)));
        stream.core.handle_report(key, Report::Writable);
        stream.touched = true;
        let left = before.and_then(|place| self.peers.remove(now, place, None));
        left.into_iter().for_each(|port| self.forget_port(&port));
        self.plan_peers();
    }

    /// A receiver's state machine is no longer needed. The receiver is told why, unless it knows.
    pub(in super::super) fn end_peer(&mut self, place: usize, reason: CloseReason) {
        let why = (reason != CloseReason::PeerGone).then(|| reason.to_string());
        if let Some(port) = self.peers.remove(self.clock.now(), place, why.as_deref()) {
            self.forget_port(&port);
        }
        self.wait_for_peer_ports();
    }

    fn forget_port(&mut self, port: &super::ports::Port) {
        if let Some(token) = port.token {
            // Others may have the socket open, which keeps it in the epoll set.
            let _ = epoll::delete(&self.epoll, &port.udp);
            self.watched.try_remove(token);
        }
    }

    /// Puts down what is to be done for peers to which something has happened.
    pub(in super::super) fn plan_peers(&mut self) {
        for class in Priority::ALL {
            if self.peers.has_ready(class) {
                self.tasks.add(class, Task::Transmit);
            }
        }
    }

    /// Takes what has come for peers; what is left is taken in the next round.
    pub(in super::super) fn take_parcels(&mut self) {
        let began = self.clock.now();
        let mut now = began;
        while now < began + WORK_ROUND {
            let Some(mut parcel) = self.peers.parcels.take() else { return self.plan_peers() };
            self.peers.take(now, &mut parcel);
            now = self.clock.now();
        }
        self.bell.ring();
        self.plan_peers();
    }

    /// Sends what peers of a class have to send until that is all, or others have to have their turn.
    pub(in super::super) fn transmit(&mut self, class: Priority) {
        let ends = self.clock.now() + WORK_ROUND / self.parts(class);
        loop {
            let now = self.clock.now();
            if now >= ends {
                self.tasks.add(class, Task::Transmit);
                break;
            }
            let is_more = self.peers.transmit(now, class);
            self.hear_peers();
            if !is_more {
                break;
            }
        }
        self.wait_for_peer_ports();
    }

    fn hear_peers(&mut self) {
        let mut heard = core::mem::take(&mut self.peers.heard);
        for Heard { whose, event } in heard.drain(..) {
            let Whose { stream: index, sink: key, receiver } = whose;
            let Some(stream) = self.streams.get_mut(index) else { continue };
            if stream.sink_mut(key).is_none_or(|sink| sink.id != receiver) {
                continue;
            }
            match event {
                PeerEvent::Rtcp(bytes) => self.receiver_report(index, key, None, &bytes),
                PeerEvent::Report(report) => {
                    stream.core.handle_report(key, report);
                    stream.touched = true;
                }
                PeerEvent::Closed(why) => {
                    tracing::debug!(stream = stream.name, receiver, why, "a receiver's connection is over");
                    self.end(index, key, CloseReason::PeerGone);
                }
            }
        }
        self.peers.heard = heard;
    }

    /// Waits until sockets take datagrams again that are full.
    fn wait_for_peer_ports(&mut self) {
        while let Some((number, port)) = self.peers.ports.filled() {
            let flags = EventFlags::OUT | EventFlags::ONESHOT;
            let waited = match port.token {
                Some(token) => {
                    let data = epoll::EventData::new_u64(token as u64);
                    epoll::modify(&self.epoll, port.udp.as_fd(), data, flags)
                }
                None => {
                    let token = self.watched.vacant_key();
                    let data = epoll::EventData::new_u64(token as u64);
                    let added = epoll::add(&self.epoll, port.udp.as_fd(), data, flags);
                    if added.is_ok() {
                        port.token = Some(self.watched.insert(Watched::PeerPort { port: number }));
                    }
                    added
                }
            };
            if let Err(error) = waited {
                tracing::error!(%error, "cannot wait for a socket that is full");
            }
        }
    }

    /// A socket takes datagrams again: those that waited for it go on.
    pub(in super::super) fn peer_port_writable(&mut self, port: usize) {
        let waited = self.peers.ports.writable(port);
        self.peers.go_on(waited);
        self.wait_for_peer_ports();
        self.plan_peers();
    }
}
