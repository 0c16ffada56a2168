//! Where packets of groups go, and which of them.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use outflow_media::Time;
use outflow_packet::gmc::Ways;
use outflow_routing::Level;
use outflow_routing::dvmrp::forwarding::Flow as TreeFlow;
use outflow_routing::forwarding::{Head, Output, Pair, thin};

/// Flows that are known of a router. Packets of a further one are dropped, and counted.
const FLOWS_MAX: usize = 4096;

/// Where packets of a source and group go.
#[derive(Debug, Default)]
struct Flow {
    ways: Ways,
    wants: Vec<(usize, Level)>,
}

/// Of a router: its flows, and what it forwards.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    flows: BTreeMap<Pair, Flow>,
    made: Vec<u8>,
    pub(super) out: VecDeque<(usize, Bytes)>,
    /// Copies that were sent.
    pub(super) forwarded: u64,
    /// Ways that packets did not go, as their layer is not wanted there.
    pub(super) left_out: u64,
    pub(super) dropped: u64,
}

impl Forwarding {
    /// Sends a packet to the ports at which it is wanted. The header was read, and the packet is to go on.
    pub(super) fn forward(&mut self, head: &Head, packet: &Bytes, wants: Vec<(usize, Level)>) {
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&head.pair()) {
            self.dropped += 1;
            return;
        }
        let flow = self.flows.entry(head.pair()).or_default();
        if flow.wants != wants {
            let levels = wants.iter().filter_map(|(port, level)| {
                Some((*port as u32, outflow_packet::Level::new(level.number())?))
            });
            flow.ways.set(levels, |_| false);
            flow.wants = wants;
        }
        let mut packet = packet[..head.total_bytes()].to_vec();
        Head::lower_ttl(&mut packet);
        self.made.clear();
        let mut copies = Vec::new();
        self.left_out += thin(&mut flow.ways, &packet, &mut self.made, |copy| copies.push(copy)) as u64;
        let packet = Bytes::from(packet);
        for copy in copies {
            self.forwarded += 1;
            self.out.push_back(match copy {
                Output::AsItIs(port) => (port as usize, packet.clone()),
                Output::Made(port, range) => (port as usize, Bytes::copy_from_slice(&self.made[range])),
            });
        }
    }
}

/// What a router of DVMRP was told of, when, and by which port that came.
#[derive(Debug, Default)]
pub(super) struct Told(BTreeMap<Pair, (TreeFlow, Time, usize)>);

impl Told {
    /// The flow of a packet, if the router was told of it lately, as said by `again`, and it came by the same port.
    pub(super) fn flow(
        &self,
        now: Time,
        pair: Pair,
        port: usize,
        again: impl Fn(TreeFlow) -> Duration,
    ) -> Option<TreeFlow> {
        let (flow, at, from) = *self.0.get(&pair)?;
        (from == port && now.since(at) < again(flow)).then_some(flow)
    }

    /// The router is told of a packet of a flow.
    pub(super) fn tell(&mut self, now: Time, pair: Pair, port: usize, flow: TreeFlow) {
        if self.0.len() < FLOWS_MAX || self.0.contains_key(&pair) {
            self.0.insert(pair, (flow, now, port));
        }
    }

    /// Nothing is known of a flow any more.
    pub(super) fn forget(&mut self, is_over: impl Fn(&Pair) -> bool) {
        self.0.retain(|pair, _| !is_over(pair));
    }
}
