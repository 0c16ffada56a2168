//! What is asked of the neighbour that we depend on: prunes (sections 3.5.4 and 3.5.5), grafts (section 3.6.1)
//! and demands.

use outflow_media::{Backoff, Time};

use super::tree::{Above, Tree};
use super::{Context, Flow, Forwarding};
use crate::demand::Level;
use crate::dvmrp::interface::neighbour;
use crate::dvmrp::limits::{
    DEMAND_INTERVAL, DEMAND_LIFETIME, GRAFT_AGAIN, PRUNE_AGAIN, PRUNE_LIFETIME, PRUNE_LIFETIME_MIN,
};
use crate::dvmrp::packet::{Demand, DemandAck, Message, Pair};
use crate::dvmrp::routes::Via;
use crate::dvmrp::{Peer, Refusal};

impl Forwarding {
    fn upstream_of(&self, flow: Flow) -> Option<Peer> {
        match self.trees.get(&flow)? {
            Tree { upstream: Via::Neighbour(peer), is_routed: true, .. } => Some(*peer),
            _ => None,
        }
    }

    /// Says above what is wanted, if that is not what was said before.
    pub(super) fn ask(&mut self, cx: &mut Context<'_>, flow: Flow) {
        let Some(peer) = self.upstream_of(flow) else { return };
        let has_levels = cx.has_levels && neighbour(cx.interfaces, peer).is_some_and(|it| it.has_levels());
        let Some(above) = self.trees.get(&flow).map(|tree| tree.above) else { return };
        match (self.demand.demand(&flow), above) {
            (None, Above::Pruned { .. }) => (),
            (None, _) => self.prune(cx, flow, peer),
            (Some(Level::BEST), Above::Nothing) => (),
            (Some(wanted), Above::Level { level, .. }) if has_levels && level == wanted => (),
            (Some(level), _) if has_levels => {
                self.sequence = self.sequence.wrapping_add(1);
                self.say_level(cx, flow, peer, level, self.sequence, GRAFT_AGAIN);
            }
            (Some(_), Above::Pruned { .. } | Above::Unknown) => self.graft(cx, flow, peer, GRAFT_AGAIN),
            (Some(_), Above::Nothing | Above::Graft { .. }) => (),
            // It does not understand levels any more.
            (Some(_), Above::Level { .. }) => self.set_above(flow, Above::Nothing),
        }
    }

    fn set_above(&mut self, flow: Flow, above: Above) {
        if let Some(tree) = self.trees.get_mut(&flow) {
            tree.above = above;
        }
    }

    /// Data came that is not wanted: if that was said, it did not arrive, or others on the link want it.
    pub(super) fn handle_unwanted(&mut self, cx: &mut Context<'_>, flow: Flow) {
        let Some(peer) = self.upstream_of(flow) else { return };
        match self.trees.get(&flow).map(|tree| tree.above) {
            Some(Above::Pruned { until, again, backoff }) if cx.now >= again => {
                self.send_prune(cx, flow, peer, until, backoff);
            }
            Some(Above::Pruned { .. }) | None => (),
            Some(_) => self.prune(cx, flow, peer),
        }
    }

    fn prune(&mut self, cx: &mut Context<'_>, flow: Flow, peer: Peer) {
        let Some(tree) = self.trees.get(&flow) else { return };
        let (least, most) = PRUNE_LIFETIME;
        let ours = cx.now + cx.random.between(least, most);
        let until = tree.pruned_until().map_or(ours, |below| below.min(ours));
        self.send_prune(cx, flow, peer, until, PRUNE_AGAIN);
    }

    fn send_prune(
        &mut self,
        cx: &mut Context<'_>,
        flow: Flow,
        peer: Peer,
        until: Time,
        mut backoff: Backoff,
    ) {
        let Some(tree) = self.trees.get_mut(&flow) else { return };
        let lifetime_s = until.since(cx.now).as_secs();
        if lifetime_s <= PRUNE_LIFETIME_MIN.as_secs() {
            // No neighbour would listen; it is over in a moment.
            tree.above = Above::Nothing;
            return;
        }
        let again = cx.now + cx.random.stretched(backoff.wait());
        tree.above = Above::Pruned { until, again, backoff };
        tree.pruned_at.insert(peer, until);
        let pair = Pair { source: tree.host, group: flow.group, mask: None };
        let message = Message::Prune(pair, lifetime_s as u32);
        cx.outbox.send_to(peer, cx.interfaces, &message, cx.counters);
    }

    fn graft(&mut self, cx: &mut Context<'_>, flow: Flow, peer: Peer, mut backoff: Backoff) {
        let Some(tree) = self.trees.get_mut(&flow) else { return };
        tree.above = Above::Graft { again: cx.now + cx.random.stretched(backoff.wait()), backoff };
        let message = Message::Graft(Pair { source: tree.host, group: flow.group, mask: None });
        cx.outbox.send_to(peer, cx.interfaces, &message, cx.counters);
    }

    fn say_level(
        &mut self,
        cx: &mut Context<'_>,
        flow: Flow,
        peer: Peer,
        level: Level,
        sequence: u32,
        mut backoff: Backoff,
    ) {
        let again = cx.now + cx.random.stretched(backoff.wait());
        self.set_above(flow, Above::Level { level, sequence, is_acked: false, again, backoff });
        let (network, group) = (flow.source, flow.group);
        let lifetime_s = DEMAND_LIFETIME.as_secs() as u32;
        let message = Message::Demand(Demand { network, group, level, lifetime_s, sequence });
        cx.outbox.send_to(peer, cx.interfaces, &message, cx.counters);
    }

    /// Says again what was not acknowledged, or may be forgotten.
    pub(super) fn handle_above_timeout(&mut self, cx: &mut Context<'_>, flow: Flow) {
        let Some(peer) = self.upstream_of(flow) else { return };
        match self.trees.get(&flow).map(|tree| tree.above) {
            Some(Above::Graft { again, backoff }) if again <= cx.now => {
                self.graft(cx, flow, peer, backoff);
            }
            Some(Above::Level { level, sequence, is_acked: false, again, backoff }) if again <= cx.now => {
                self.say_level(cx, flow, peer, level, sequence, backoff);
            }
            Some(Above::Level { level, again, .. }) if again <= cx.now => {
                self.sequence = self.sequence.wrapping_add(1);
                self.say_level(cx, flow, peer, level, self.sequence, GRAFT_AGAIN);
            }
            // Data comes again; if it is not wanted, that is said again.
            Some(Above::Pruned { until, .. }) if until <= cx.now => self.set_above(flow, Above::Nothing),
            _ => (),
        }
    }

    /// A graft was heard (section 3.6.5).
    pub(in crate::dvmrp) fn handle_graft_ack(
        &mut self,
        cx: &mut Context<'_>,
        from: Peer,
        pair: Pair,
    ) -> Result<(), Refusal> {
        let (source, _) = cx.routes.lookup(pair.source).ok_or(Refusal::NoRoute)?;
        let flow = Flow { source, group: pair.group };
        let tree = self.trees.get_mut(&flow).ok_or(Refusal::UnexpectedAck)?;
        if tree.upstream != Via::Neighbour(from) || !matches!(tree.above, Above::Graft { .. }) {
            return Err(Refusal::UnexpectedAck);
        }
        tree.above = Above::Nothing;
        tree.pruned_at.remove(&from);
        self.schedule(flow);
        Ok(())
    }

    /// A demand was heard, and is remembered.
    pub(in crate::dvmrp) fn handle_demand_ack(
        &mut self,
        cx: &mut Context<'_>,
        from: Peer,
        ack: DemandAck,
    ) -> Result<(), Refusal> {
        let flow = Flow { source: ack.network, group: ack.group };
        let tree = self.trees.get_mut(&flow).ok_or(Refusal::UnexpectedAck)?;
        match &mut tree.above {
            Above::Level { sequence, is_acked, again, backoff, .. }
                if *sequence == ack.sequence && !*is_acked && tree.upstream == Via::Neighbour(from) =>
            {
                *is_acked = true;
                tree.pruned_at.remove(&from);
                backoff.reset();
                *again = cx.now + cx.random.stretched(DEMAND_INTERVAL);
            }
            _ => return Err(Refusal::UnexpectedAck),
        }
        self.schedule(flow);
        Ok(())
    }
}
