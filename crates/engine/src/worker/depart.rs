//! What links let go is sent, and links come and go.

use outflow_config::LinkConfig;
use outflow_packet::DropReason;
use outflow_relay::limits::ORDER_PACKETS_MAX;
use outflow_relay::{LinkId, Priority, Report, SinkKey};

use super::Worker;
use super::links::Parcel;
use super::sink::Out;
use super::stream::LiveStream;
use super::tasks::Task;
use crate::message::CloseReason;
use crate::send::Pieces;
use crate::send::fanout::Audience;
use crate::send::stream::Outcome;

impl Worker {
    /// There is such a link from now on, or it is another one.
    pub(super) fn put_link(&mut self, id: LinkId, name: String, config: &LinkConfig) {
        self.links.put(self.clock.now(), id, name, config);
        self.settle(id);
    }

    /// A link is no more: what waits goes at once, and so does what comes after it.
    pub(super) fn remove_link(&mut self, id: LinkId) {
        let now = self.clock.now();
        let Some(mut link) = self.links.remove(now, id) else { return };
        let mut batch = self.links.take_batch();
        let mut then = Some(now);
        while let Some(now) = then {
            then = link.take_rest(now, &mut batch);
            self.send_parcels(&mut batch);
        }
        self.links.give_back(batch);
    }

    /// Tells the core what a link gave up.
    pub(super) fn settle(&mut self, id: LinkId) {
        self.links.settle(id, |index, key, report| self.streams.report(index, key, report));
    }

    /// Sends what a link lets go now.
    pub(super) fn depart(&mut self, id: LinkId) {
        let mut batch = self.links.take_batch();
        if self.links.depart(self.clock.now(), id, &mut batch) {
            self.tasks.add(Priority::High, Task::Depart(id));
        }
        self.send_parcels(&mut batch);
        self.links.give_back(batch);
    }

    /// Sends packets, those for a sink together and in their order.
    fn send_parcels(&mut self, batch: &mut Vec<Parcel>) {
        batch.sort_unstable_by_key(|parcel| (parcel.stream, parcel.sink, parcel.place));
        let one_sink =
            |a: &Parcel, b: &Parcel| (a.stream, a.sink, a.receiver) == (b.stream, b.sink, b.receiver);
        for parcels in batch.chunk_by(one_sink).flat_map(|parcels| parcels.chunks(ORDER_PACKETS_MAX)) {
            self.send_to_one(parcels);
        }
        batch.clear();
    }

    /// Sends packets to one sink. What does not go is counted there: it had its time on the link.
    fn send_to_one(&mut self, parcels: &[Parcel]) {
        let Some(&Parcel { stream: index, sink: key, receiver, .. }) = parcels.first() else { return };
        let Some(stream) = self.streams.get_mut(index) else { return };
        if stream.sink_mut(key).is_none_or(|sink| sink.id != receiver) {
            return;
        }
        let pieces: Pieces<'_> = (0..).zip(parcels).map(|(place, parcel)| parcel.piece(place)).collect();
        let mut is_gone = false;
        let mut blocked = None;
        let out = stream.sinks[key.0].as_ref().map(|sink| &sink.out);
        if matches!(out, Some(Out::Udp { .. })) {
            let to = (&stream.core, &stream.sinks[..]);
            self.paths.send_datagrams(to, index, Audience::Some(&[key]), &pieces);
        } else if let Some(place) = out.and_then(Out::peer) {
            blocked = self.paths.send_to_peer(self.clock.now(), &pieces, (key, place));
        } else {
            match self.paths.send_to_connection(&pieces, key, &mut stream.sinks) {
                Outcome::Sent => {}
                Outcome::Blocked(next) => blocked = Some(next),
                Outcome::Gone => is_gone = true,
            }
        }
        drop(pieces);
        let from = blocked.and_then(|next| usize::try_from(next).ok()).unwrap_or(parcels.len());
        self.settle_sent(index, key, parcels, from);
        self.settle_peers();
        if is_gone {
            self.end(index, key, CloseReason::PeerGone);
        }
    }

    /// Tells the core what of a sink's packets did not go: those that the socket reports, and, of a
    /// connection, all from a place on.
    fn settle_sent(&mut self, index: usize, key: SinkKey, parcels: &[Parcel], from: usize) {
        let Some(LiveStream { core, sinks, .. }) = self.streams.get_mut(index) else { return };
        for parcel in parcels.get(from..).unwrap_or_default() {
            core.handle_report(key, parcel.given_up(DropReason::ConnectionFull));
        }
        self.paths.settle(&self.watch, (index, sinks), |key, report| {
            let Report::Blocked { next } = report else { return core.handle_report(key, report) };
            let from = usize::try_from(next).unwrap_or(usize::MAX);
            for parcel in parcels.get(from..).unwrap_or_default() {
                core.handle_report(key, parcel.given_up(DropReason::DeviceFull));
            }
        });
    }
}
