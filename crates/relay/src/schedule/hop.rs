//! Sinks that go from one branch to another where these carry the same: nothing is repeated, nothing missing.

use super::branch::Branch;
use super::ids::SinkKey;
use super::share::Share;
use super::sink::{Place, Sinks, Stop};
use super::spec::Transport;
use super::splice::Splice;
use crate::send::{Order, Recipients};
use outflow_ring::Seq;

impl Branch {
    /// A sink is to stop at a position that it has not reached, or has just: see [`Branch::stopped`].
    pub(crate) fn stop_at(&mut self, sinks: &mut Sinks, key: SinkKey, stop: Stop) {
        let cursor = self.cursor(sinks, key);
        self.detach(sinks, key);
        let Some(sink) = sinks.get_mut(key.0) else { return };
        sink.stop = Some(stop);
        if let (Place::Paused, Some(cursor)) = (sink.place, cursor) {
            self.place_behind(sinks, key, cursor);
        }
        self.set_going(sinks, key);
    }

    /// A sink that was to stop goes on here.
    pub(crate) fn go_on(&mut self, sinks: &mut Sinks, key: SinkKey) {
        if let Some(sink) = sinks.get_mut(key.0)
            && sink.stop.take().is_some()
        {
            self.set_going(sinks, key);
        }
    }

    fn set_going(&mut self, sinks: &mut Sinks, key: SinkKey) {
        self.stopped.retain(|&stopped| stopped != key);
        let is_ready = |place: Place, blocked: bool| matches!(place, Place::Behind(_)) && !blocked;
        if sinks.get(key.0).is_some_and(|sink| is_ready(sink.place, sink.blocked)) {
            self.make_ready(sinks, key);
        }
    }

    /// Sinks that have reached where they were to stop.
    pub(crate) fn stopped(&self) -> &[SinkKey] {
        &self.stopped
    }

    /// A sink comes from another branch, and goes on here at `at`, behind what it is greeted with. Its sequence
    /// numbers are `sequence_offset` here. `frame` is the one that begins there, where both branches have the same.
    pub(crate) fn enter(
        &mut self,
        sinks: &mut Sinks,
        key: SinkKey,
        (frame, at, sequence_offset): (Option<u32>, Seq, u16),
        splice: Splice,
    ) {
        let Some(sink) = sinks.get_mut(key.0) else { return };
        (sink.branch, sink.sequence_offset, sink.splice) = (Some(self.index), sequence_offset, splice);
        sink.came_at = frame;
        sink.max_layer = sink.spec.level.of(self.layers);
        self.place_behind(sinks, key, at);
    }

    /// The next of what a sink is greeted with.
    pub(super) fn greet(&mut self, sinks: &mut Sinks, key: SinkKey, from: Seq) -> Option<Order> {
        let sink = sinks.get_mut(key.0)?;
        let Some((bytes, _)) = sink.splice.give() else {
            sink.splice = Splice::default();
            return None;
        };
        sink.counters.packets += 1;
        sink.counters.bytes += bytes.len() as u64;
        let (share, tracks) =
            (Share { max_layer: sink.max_layer, sequence_offset: sink.sequence_offset }, sink.spec.tracks);
        self.make_ready(sinks, key);
        let (branch, recipients) = (self.index, Recipients::One(key));
        Some(Order {
            branch,
            recipients,
            from,
            to: from,
            tracks,
            share: Some(share),
            preamble: true,
            leaves: false,
        })
    }

    /// The driver took nothing from `next` on: what of a splice was given with the last order has to be
    /// given again. Byte streams take it in any case.
    pub(super) fn greet_again(&mut self, sinks: &mut Sinks, key: SinkKey, next: Seq) {
        let Some(sink) = sinks.get_mut(key.0) else { return };
        if sink.place != Place::Behind(next) || sink.spec.transport != Transport::Datagram {
            return;
        }
        if let Some((bytes, _)) = sink.splice.given() {
            sink.counters.packets -= 1;
            sink.counters.bytes -= bytes.len() as u64;
            sink.splice.take_back();
        }
    }
}
