//! What comes from neighbours.

use core::net::Ipv4Addr;

use outflow_media::Time;

use super::Router;
use crate::dvmrp::event::Event;
use crate::dvmrp::packet::{Addresses, Message, Packet, Routes};
use crate::dvmrp::{InterfaceId, Peer, Refusal};

impl Router {
    /// A packet of IP came from a link. What is wrong with it is counted ([`Router::counters`]).
    pub fn handle_packet(&mut self, now: Time, from: InterfaceId, bytes: &[u8]) {
        match self.handle(now, from, bytes) {
            Ok(()) => self.counters.received += 1,
            Err(why) => self.counters.refuse(why),
        }
    }

    fn handle(&mut self, now: Time, id: InterfaceId, bytes: &[u8]) -> Result<(), Refusal> {
        let packet = Packet::parse(bytes)?;
        let interface = self.interfaces.get_mut(&id).ok_or(Refusal::UnknownInterface)?;
        interface.admits(&packet)?;
        let from = Peer { interface: id, address: packet.source };
        if !packet.is_probe() {
            interface.neighbours.handle_message(now, packet.source)?;
        }
        let message = packet.message().map_err(|_| Refusal::Malformed)?;
        if let Message::Probe { generation, neighbours } = message {
            return self.handle_probe(now, from, &packet, generation, neighbours);
        }
        if let Message::Report(routes) = message {
            self.handle_report(now, from, routes);
            return Ok(());
        }
        let (forwarding, mut cx) = self.parts(now);
        let has_levels = cx.has_levels;
        match message {
            Message::Prune(pair, lifetime_s) => forwarding.handle_prune(&mut cx, from, pair, lifetime_s),
            Message::Graft(pair) => forwarding.handle_graft(&mut cx, from, pair),
            Message::GraftAck(pair) => forwarding.handle_graft_ack(&mut cx, from, pair),
            Message::Demand(demand) if has_levels => forwarding.handle_demand(&mut cx, from, demand),
            Message::DemandAck(ack) if has_levels => forwarding.handle_demand_ack(&mut cx, from, ack),
            _ => Err(Refusal::Code),
        }
    }

    fn handle_probe(
        &mut self,
        now: Time,
        from: Peer,
        packet: &Packet<'_>,
        generation: u32,
        named: Addresses<'_>,
    ) -> Result<(), Refusal> {
        let interface = self.interfaces.get_mut(&from.interface).ok_or(Refusal::UnknownInterface)?;
        let ours: Ipv4Addr = interface.settings.address;
        let names_us = named.iter().any(|address| address == ours);
        let most = interface.neighbours_max();
        let probed = interface.neighbours.handle_probe(now, packet, generation, names_us, most)?;
        if probed.is_up {
            self.event(Event::NeighbourUp(from));
        }
        if probed.has_restarted {
            self.event(Event::NeighbourRestarted(from));
            self.routes.forget_neighbour(now, from);
            self.follow_routes(now);
        }
        if probed.has_restarted || probed.has_other_levels {
            let (forwarding, mut cx) = self.parts(now);
            forwarding.handle_restart(&mut cx, from);
        }
        if probed.is_new {
            self.copy_routes(now, from);
        }
        Ok(())
    }

    /// One route that is refused does not keep the others out.
    fn handle_report(&mut self, now: Time, from: Peer, routes: Routes<'_>) {
        for route in routes {
            let route = route.map_err(|_| Refusal::IllegalRoute);
            let told = route.and_then(|route| self.routes.handle_report(now, from, route));
            if let Err(why) = told {
                self.counters.refuse(why);
            }
        }
        self.follow_routes(now);
    }
}
