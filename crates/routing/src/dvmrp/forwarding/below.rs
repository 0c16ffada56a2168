//! What neighbours say that depend on us: prunes (section 3.5.3), grafts (section 3.6.2) and demands.

use core::time::Duration;

use super::tree::Below;
use super::{Context, Flow, Forwarding};
use crate::dvmrp::limits::{DEMAND_LIFETIME_MAX, PRUNE_LIFETIME_MAX, PRUNE_LIFETIME_MIN};
use crate::dvmrp::packet::{Demand, DemandAck, Message, Pair};
use crate::dvmrp::{Peer, Refusal};

impl Forwarding {
    pub(in crate::dvmrp) fn handle_prune(
        &mut self,
        cx: &mut Context<'_>,
        from: Peer,
        pair: Pair,
        lifetime_s: u32,
    ) -> Result<(), Refusal> {
        let flow = self.flow_of(cx, pair)?;
        let lifetime = Duration::from_secs(u64::from(lifetime_s)).min(PRUNE_LIFETIME_MAX);
        if lifetime <= PRUNE_LIFETIME_MIN {
            return Err(Refusal::Lifetime);
        }
        self.say(cx, flow, from, Below::Pruned { until: cx.now + lifetime })
    }

    /// It is acknowledged whatever becomes of it (section 3.6.4).
    pub(in crate::dvmrp) fn handle_graft(
        &mut self,
        cx: &mut Context<'_>,
        from: Peer,
        pair: Pair,
    ) -> Result<(), Refusal> {
        // As it came, but without what others may not be prepared to read.
        let ack = Message::GraftAck(Pair { mask: None, ..pair });
        cx.outbox.send_to(from, cx.interfaces, &ack, cx.counters);
        let flow = self.flow_of(cx, pair)?;
        let tree = self.trees.get_mut(&flow).ok_or(Refusal::UnknownFlow)?;
        if matches!(tree.below.get(&from), Some(Below::Pruned { .. })) {
            tree.below.remove(&from);
            self.refresh(cx, flow);
        }
        Ok(())
    }

    /// It is not acknowledged to a router that does not depend on us yet, and so comes again. Of what no data
    /// was seen there is nothing to remember: when there is, the best is served until this is said again.
    pub(in crate::dvmrp) fn handle_demand(
        &mut self,
        cx: &mut Context<'_>,
        from: Peer,
        demand: Demand,
    ) -> Result<(), Refusal> {
        let Demand { network, group, level, lifetime_s, sequence } = demand;
        let flow = Flow { source: network, group };
        if let Some(tree) = self.trees.get(&flow)
            && let Some(Below::Wants { sequence: last, .. }) = tree.below.get(&from)
            && sequence.wrapping_sub(*last) > u32::MAX / 2
        {
            return Err(Refusal::Older);
        }
        let lifetime = Duration::from_secs(u64::from(lifetime_s)).min(DEMAND_LIFETIME_MAX);
        let said = self.say(cx, flow, from, Below::Wants { level, until: cx.now + lifetime, sequence });
        if said != Err(Refusal::NotDependent) {
            let ack = Message::DemandAck(DemandAck { network, group, level, sequence });
            cx.outbox.send_to(from, cx.interfaces, &ack, cx.counters);
        }
        said
    }

    fn say(&mut self, cx: &mut Context<'_>, flow: Flow, from: Peer, said: Below) -> Result<(), Refusal> {
        let depends = cx.routes.dependents(flow.source, from.interface).any(|peer| peer == from);
        let tree = self.trees.get_mut(&flow).ok_or(Refusal::UnknownFlow)?;
        if !depends || tree.upstream.interface() == from.interface {
            return Err(Refusal::NotDependent);
        }
        tree.below.insert(from, said);
        self.refresh(cx, flow);
        Ok(())
    }

    /// Which flow a prune or graft is about: its source may be a host, or its network (section 3.5.2).
    fn flow_of(&self, cx: &Context<'_>, pair: Pair) -> Result<Flow, Refusal> {
        let (source, _) = cx.routes.lookup(pair.source).ok_or(Refusal::NoRoute)?;
        let flow = Flow { source, group: pair.group };
        if pair.mask.is_some_and(|mask| mask != source.mask()) {
            return Err(Refusal::Netmask);
        }
        if self.trees.contains_key(&flow) { Ok(flow) } else { Err(Refusal::UnknownFlow) }
    }
}
