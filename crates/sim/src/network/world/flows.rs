//! Flows of traffic, the ways that they go, and what has become of their packets.

use std::collections::VecDeque;

use bytes::Bytes;
use outflow_link::FlowId;
use outflow_media::{Tag, Time};
use outflow_packet::DropReason;

use crate::network::ledger::{Fate, Ledger};
use crate::network::outcome::TrafficOutcome;
use crate::network::parcel::Parcel;
use crate::outcome::Digest;

#[derive(Debug)]
pub(super) struct Flow {
    /// The relay at its end.
    pub(super) to: Option<u32>,
    /// What it is counted with: traffic, or receivers.
    pub(super) traffic: usize,
    pub(super) ledger: Ledger,
    /// Where its places stand, and how many links it goes through.
    pub(super) first: usize,
    pub(super) hops: usize,
}

/// Flows, the ways that they go, and what has become of their packets.
#[derive(Debug)]
pub(super) struct Flows {
    pub(super) from: Time,
    pub(super) flows: Vec<Flow>,
    /// Of all flows: each link of its way, and its number there, if that has a buffer.
    pub(super) places: Vec<(usize, Option<FlowId>)>,
    /// By traffic, then receivers: the links of its way.
    pub(super) ways: Vec<Vec<usize>>,
    pub(super) outcomes: Vec<TrafficOutcome>,
    /// What has come to relays, and when.
    pub(super) arrived: VecDeque<(u32, Time, Bytes)>,
    pub(super) events: u64,
    digest: Digest,
}

impl Flows {
    pub(super) fn new(from: Time) -> Self {
        Flows {
            from,
            flows: Vec::new(),
            places: Vec::new(),
            ways: Vec::new(),
            outcomes: Vec::new(),
            arrived: VecDeque::new(),
            events: 0,
            digest: Digest::default(),
        }
    }

    pub(super) fn next(&self, parcel: &Parcel) -> Option<(usize, Option<FlowId>)> {
        let flow = &self.flows[parcel.flow as usize];
        let hop = usize::from(parcel.hops);
        (hop < flow.hops).then(|| self.places[flow.first + hop])
    }

    pub(super) fn is_final(&self, parcel: &Parcel) -> bool {
        let flow = &self.flows[parcel.flow as usize];
        flow.to.is_none() && usize::from(parcel.hops) == flow.hops
    }

    pub(super) const fn departed(&mut self) {
        self.events += 1;
    }

    /// A packet goes no further.
    fn missing(&mut self, parcel: &Parcel, tag: Tag, bytes: usize) -> usize {
        let flow = &mut self.flows[parcel.flow as usize];
        flow.ledger.settle(fate(parcel, tag, bytes), false);
        flow.traffic
    }

    pub(super) fn dropped(&mut self, parcel: &Parcel, tag: Tag, bytes: usize, reason: DropReason) {
        self.events += 1;
        let traffic = self.missing(parcel, tag, bytes);
        if parcel.sent >= self.from {
            self.outcomes[traffic].drops.add(reason, 1);
        }
    }

    pub(super) fn lost(&mut self, parcel: &Parcel, tag: Tag, bytes: usize) {
        let traffic = self.missing(parcel, tag, bytes);
        if parcel.sent >= self.from {
            self.outcomes[traffic].lost += 1;
        }
    }

    pub(super) fn copied(&mut self, parcel: &Parcel, tag: Tag, bytes: usize) {
        self.flows[parcel.flow as usize].ledger.copied(fate(parcel, tag, bytes));
    }

    /// A packet is at its end, with what it held for a relay there.
    pub(super) fn delivered(
        &mut self,
        at: Time,
        parcel: &Parcel,
        (tag, bytes): (Tag, usize),
        payload: Option<Bytes>,
    ) {
        let flow = &mut self.flows[parcel.flow as usize];
        let is_new = flow.ledger.settle(fate(parcel, tag, bytes), true);
        self.events += 1;
        self.digest.word(u64::from(parcel.flow));
        self.digest.word(parcel.number);
        self.digest.word(at.as_nanos());
        if is_new && parcel.sent >= self.from {
            let outcome = &mut self.outcomes[flow.traffic];
            outcome.arrived += 1;
            outcome.delays.add(at.since(parcel.sent));
        }
        if let (Some(relay), Some(payload)) = (flow.to, payload) {
            self.arrived.push_back((relay, at, payload));
        }
    }

    /// A packet of IP has come to a port.
    pub(super) fn digest_packet(&mut self, port: usize, at: Time, bytes: usize) {
        self.events += 1;
        self.digest.word(port as u64);
        self.digest.word(bytes as u64);
        self.digest.word(at.as_nanos());
    }

    /// Packets of each flow that are on their way.
    #[cfg(test)]
    pub(super) fn open(&self) -> Vec<usize> {
        self.flows.iter().map(|flow| flow.ledger.open()).collect()
    }

    /// Of each traffic, then receivers, what came of it so far. Frames that are not at their end do not count.
    pub(super) fn outcomes_so_far(&self) -> Vec<TrafficOutcome> {
        let mut outcomes = self.outcomes.clone();
        for flow in &self.flows {
            outcomes[flow.traffic].flows.push(flow.ledger.so_far());
        }
        outcomes
    }

    pub(super) fn close(self) -> (Vec<TrafficOutcome>, u64, Digest) {
        let Flows { flows, mut outcomes, events, digest, .. } = self;
        for flow in flows {
            outcomes[flow.traffic].flows.push(flow.ledger.outcome());
        }
        (outcomes, events, digest)
    }
}

/// As its flow settles it.
fn fate(parcel: &Parcel, tag: Tag, bytes: usize) -> Fate {
    Fate { number: parcel.number, sent: parcel.sent, tag, bytes }
}
