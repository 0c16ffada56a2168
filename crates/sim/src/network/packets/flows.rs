//! Flows: what they are, and their places at the links of their ways.

use std::collections::BTreeMap;

use outflow_link::{ApplicationId, FlowId, Medium};
use outflow_media::{Tag, Time};
use outflow_rtp::sdp::MediaDescription;
use slab::Slab;

use super::key::{Key, Looked};
use crate::capture::LiveFlow;
use crate::limits::{LOOKED_AT_FLOWS_MAX, PACKET_FLOWS_MAX};
use crate::network::links::Links;
use crate::network::wiring::Way;

/// Packets of one key that go one way.
#[derive(Debug)]
struct Flow {
    at: (usize, Option<Key>),
    /// Its number at each link of its way; none where there is no buffer.
    ids: Vec<Option<FlowId>>,
    contents: LiveFlow,
    medium: Medium,
    seen: Time,
    /// Packets on their way.
    travels: usize,
}

/// All of them.
#[derive(Debug, Default)]
pub(in crate::network) struct Flows {
    flows: Slab<Flow>,
    /// By way and key; those that are too many are one without a key.
    known: BTreeMap<(usize, Option<Key>), usize>,
    /// Of how many it is looked for what they are.
    looked_at: usize,
}

impl Flows {
    /// A packet sets out on a way: its flow, and what it means.
    pub(in crate::network) fn set_out<T: Clone>(
        &mut self,
        now: Time,
        (way, ways): (usize, &[Way]),
        (looked, packet): (&Looked, &[u8]),
        described: &[MediaDescription],
        links: &mut Links<T>,
    ) -> (u32, Tag) {
        let slot = self.find(now, (way, ways), looked, described, links);
        let Flow { contents, medium, seen, travels, ids, .. } = &mut self.flows[slot];
        (*seen, *travels) = (now, *travels + 1);
        let payload = looked.datagram.and_then(|(from, to)| packet.get(from..to)).unwrap_or_default();
        let was_looked_at = contents.is_looked_at();
        let tag = contents.tag(payload);
        self.looked_at -= usize::from(was_looked_at && !contents.is_looked_at());
        if contents.medium() != *medium {
            *medium = contents.medium();
            // What waits goes on as it would have, and what comes may overtake it.
            leave(links, &ways[way], ids);
            *ids = enter(links, &ways[way], *medium);
        }
        (slot as u32, tag)
    }

    fn find<T: Clone>(
        &mut self,
        now: Time,
        (way, ways): (usize, &[Way]),
        looked: &Looked,
        described: &[MediaDescription],
        links: &mut Links<T>,
    ) -> usize {
        let mut at = (way, Some(looked.key));
        if let Some(slot) = self.known.get(&at) {
            return *slot;
        }
        if self.flows.len() >= PACKET_FLOWS_MAX && !self.forget_oldest(ways, links) {
            at.1 = None;
            if let Some(slot) = self.known.get(&at) {
                return *slot;
            }
        }
        let is_looked_at =
            at.1.is_some() && looked.datagram.is_some() && self.looked_at < LOOKED_AT_FLOWS_MAX;
        self.looked_at += usize::from(is_looked_at);
        let contents = match is_looked_at {
            true => LiveFlow::new(looked.key.source, looked.key.destination, described),
            false => LiveFlow::data(),
        };
        let ids = enter(links, &ways[way], Medium::Data);
        let flow = Flow { at, ids, contents, medium: Medium::Data, seen: now, travels: 0 };
        let slot = self.flows.insert(flow);
        self.known.insert(at, slot);
        slot
    }

    /// Forgets the flow that was silent longest, of those that have nothing on its way. Whether there is one.
    fn forget_oldest<T: Clone>(&mut self, ways: &[Way], links: &mut Links<T>) -> bool {
        let silent = self.flows.iter().filter(|(_, flow)| flow.travels == 0);
        let Some(oldest) = silent.min_by_key(|(_, flow)| flow.seen).map(|(slot, _)| slot) else {
            return false;
        };
        let flow = self.flows.remove(oldest);
        self.known.remove(&flow.at);
        self.looked_at -= usize::from(flow.contents.is_looked_at());
        leave(links, &ways[flow.at.0], &flow.ids);
        true
    }

    /// A flow's number at a link of its way.
    pub(in crate::network) fn id(&self, slot: u32, hop: usize) -> Option<FlowId> {
        self.flows.get(slot as usize)?.ids.get(hop).copied().flatten()
    }

    /// There is one more of a packet on its way, or one less.
    pub(in crate::network) fn count(&mut self, slot: u32, more: bool) {
        if let Some(flow) = self.flows.get_mut(slot as usize) {
            flow.travels = if more { flow.travels + 1 } else { flow.travels.saturating_sub(1) };
        }
    }

    /// What flows are that are not data: way, key, words.
    pub(in crate::network) fn media(&self) -> impl Iterator<Item = (usize, Key, String)> + '_ {
        let media = self.flows.iter().filter(|(_, flow)| flow.medium != Medium::Data);
        media.filter_map(|(_, flow)| Some((flow.at.0, flow.at.1?, flow.contents.carries())))
    }
}

fn enter<T: Clone>(links: &mut Links<T>, way: &Way, medium: Medium) -> Vec<Option<FlowId>> {
    way.links.iter().map(|link| links.add_flow(*link, ApplicationId::of(medium, 0), 0)).collect()
}

fn leave<T: Clone>(links: &mut Links<T>, way: &Way, ids: &[Option<FlowId>]) {
    for (link, id) in way.links.iter().zip(ids) {
        if let Some(id) = id {
            links.remove_flow(*link, *id);
        }
    }
}
