//! Peers have their turn, and what they tell is acted upon.

use outflow_relay::{Priority, Report};

use super::Worker;
use super::peers::{Heard, Whose};
use super::sink::{LiveSink, Out};
use super::tasks::Task;
use crate::limits::WORK_ROUND;
use crate::message::{CloseReason, Peer, PeerEvent, PeerPath, ReceiverId, StreamId};

impl Worker {
    /// A receiver's state machine is there: packets may flow.
    pub(super) fn start_peer(
        &mut self,
        (id, receiver): (StreamId, ReceiverId),
        peer: Box<dyn Peer>,
        path: PeerPath,
    ) {
        let now = self.clock.now();
        let Some((index, key)) = self.streams.find_sink(id, receiver) else { return };
        let stream = &mut self.streams[index];
        let class = stream.core.spec(key).map_or(Priority::default(), |spec| spec.priority);
        let Some(LiveSink { out: Out::Peer { place, .. }, .. }) = stream.sink_mut(key) else { return };
        let whose = Whose { stream: index, sink: key, receiver };
        let peers = self.paths.peers();
        let before = place.replace(peers.add(peer, path, (whose, class)));
        stream.core.handle_report(key, Report::Writable);
        stream.touched = true;
        before.into_iter().for_each(|place| peers.let_go(&mut self.watch, now, place, None));
        peers.plan(&mut self.tasks);
    }

    /// Takes what has come for peers; what is left is taken in the next round.
    pub(super) fn take_parcels(&mut self) {
        let peers = self.paths.peers();
        if peers.take_parcels(&self.clock) {
            self.bell.ring();
        }
        peers.plan(&mut self.tasks);
    }

    /// Sends what peers of a stream in a class have to send until that is all, or others have to have their turn.
    pub(super) fn transmit(&mut self, stream: usize, class: Priority) {
        let ends = self.clock.now() + WORK_ROUND / self.tasks.parts(class);
        loop {
            let now = self.clock.now();
            if now >= ends {
                self.tasks.add(class, Task::Transmit(stream));
                break;
            }
            let is_more = self.paths.peers().transmit(now, (class, stream));
            self.settle_peers();
            if !is_more {
                break;
            }
        }
    }

    /// Acts upon what peers have told, and puts down what they have to do.
    pub(super) fn settle_peers(&mut self) {
        let mut heard = self.paths.peers().take_heard();
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
        let peers = self.paths.peers();
        peers.give_back(heard);
        peers.wait_for_full(&mut self.watch);
        peers.plan(&mut self.tasks);
    }
}
