//! A relay in a network: for each stream that comes to it the live core, which says what goes where.

use core::time::Duration;
use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use outflow_media::{Format, Tag, Time};
use outflow_packet::Level;
use outflow_relay::{
    Driven, Driver, Encapsulation, Event, Order, SinkKey, SinkSpec, Stream, StreamOptions, Transport,
    WhenFull, drive,
};
use outflow_rtp::HEADER;

use crate::receiver::wire;

/// After so long without a packet, a source counts as away.
pub(super) const SOURCE_TIMEOUT: Duration = Duration::from_secs(2);

/// A stream at a relay.
#[derive(Debug)]
pub(super) struct Node {
    stream: Stream,
    /// The flows to receivers.
    flows: BTreeMap<SinkKey, u32>,
    /// When it will be asked next, if that was put down.
    pub(super) awaited: Option<Time>,
}

/// A packet that a relay sends.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) flow: u32,
    pub(super) tag: Tag,
    pub(super) payload: Bytes,
}

/// The core is served, at a time that stands still.
struct Turn<'a> {
    node: &'a mut Node,
    now: Time,
    out: &'a mut Vec<Outgoing>,
}

impl Driver for Turn<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn stream(&mut self) -> Option<&mut Stream> {
        Some(&mut self.node.stream)
    }

    fn send(&mut self, _: Time, order: &Order) {
        self.node.carry_out(order, self.out);
    }

    fn event(&mut self, event: Event) {
        if let Event::SinkEnded { key, .. } = event {
            self.node.flows.remove(&key);
        }
    }
}

impl Node {
    pub(super) fn new(format: Format, ring_bytes: usize, seed: u64) -> Self {
        let mut stream = Stream::new(StreamOptions {
            ring_bytes,
            hopeless_after: SOURCE_TIMEOUT,
            source_timeout: SOURCE_TIMEOUT,
            when_full: WhenFull::SlowestSink,
            ssrc: 1,
            seed,
            ntp_at_zero: 0,
            layers: 0,
            is_relayed: false,
            weight: 1,
            reserve: 0,
            reserve_bps: 0,
        });
        stream.handle_source(Time::ZERO, format);
        Node { stream, flows: BTreeMap::new(), awaited: None }
    }

    /// A receiver joins, and is sent a flow.
    pub(super) fn join(&mut self, now: Time, flow: u32, level: Level) {
        let spec = SinkSpec { level, ..SinkSpec::new(Encapsulation::Rtp, Transport::Datagram) };
        let key = self.stream.handle_join(now, u64::from(flow), spec);
        self.flows.insert(key, flow);
    }

    /// A receiver leaves.
    pub(super) fn leave(&mut self, now: Time, flow: u32) {
        if let Some(key) = self.key(flow) {
            self.flows.remove(&key);
            self.stream.handle_leave(now, key);
        }
    }

    /// A receiver takes another level; beyond the last one, that.
    pub(super) fn set_level(&mut self, flow: u32, level: Level) {
        let last = Level::new(self.layers()).unwrap_or(level);
        if let Some(key) = self.key(flow) {
            // There is such a level.
            let _ = self.stream.set_level(key, level.min(last));
        }
    }

    fn key(&self, flow: u32) -> Option<SinkKey> {
        self.flows.iter().find(|(_, of)| **of == flow).map(|(key, _)| *key)
    }

    /// Other relays hand the stream on. At its source it has this number of layers; 0 if that is not known.
    pub(super) fn set_relayed(&mut self, layers: u8) {
        let options = StreamOptions { is_relayed: true, layers, ..*self.stream.options() };
        self.stream.set_options(options);
    }

    /// How many layers the stream has at its source; 0 if that is not known.
    pub(super) fn layers(&self) -> u8 {
        self.stream.levels()
    }

    /// A packet of its source arrives.
    pub(super) fn receive(&mut self, now: Time, payload: Bytes) {
        self.stream.handle_media(now, 0, payload.into());
    }

    /// Takes what the core wants to be sent now. Returns when it wants to be asked again, if that was not said
    /// before.
    pub(super) fn poll(&mut self, now: Time, out: &mut Vec<Outgoing>) -> Option<Time> {
        self.awaited = self.awaited.filter(|at| *at > now);
        let Driven::Until(until) = drive(&mut Turn { node: self, now, out }, None) else { return None };
        let at = until.filter(|at| *at > now)?;
        if self.awaited.is_some_and(|awaited| awaited <= at) {
            return None;
        }
        self.awaited = Some(at);
        self.awaited
    }

    fn carry_out(&self, order: &Order, out: &mut Vec<Outgoing>) {
        for key in self.stream.members(order) {
            let Some(&flow) = self.flows.get(key) else { continue };
            for (_, entry, sequence_offset) in self.stream.packets(order, self.stream.share(order, *key)) {
                out.push(Outgoing {
                    flow,
                    tag: entry.packet.tag,
                    payload: sent(wire(entry), sequence_offset),
                });
            }
        }
    }
}

/// A packet as it goes out, its sequence number lower by what its receiver does not take.
fn sent((header, body): (&[u8], &[u8]), sequence_offset: u16) -> Bytes {
    let mut packet = BytesMut::with_capacity(header.len() + body.len());
    packet.extend_from_slice(header);
    packet.extend_from_slice(body);
    if let Some([_, _, high, low, ..]) = packet.first_chunk_mut::<HEADER>() {
        [*high, *low] = u16::from_be_bytes([*high, *low]).wrapping_sub(sequence_offset).to_be_bytes();
    }
    packet.freeze()
}
