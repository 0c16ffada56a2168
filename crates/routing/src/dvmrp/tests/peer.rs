//! One router, and neighbours that say what a test makes them say.

use core::net::Ipv4Addr;
use core::time::Duration;

use outflow_media::{Prefix, Time};

use crate::demand;
use crate::dvmrp::packet::{
    ALL_ROUTERS, Addresses, Advertised, GENERATIONS, LEVELS, Message, PRUNES, Packet, Pair, ReportWriter,
    emit_ip,
};
use crate::dvmrp::{Event, InterfaceId, InterfaceSettings, Link, Refusal, Router, Settings};

pub(super) const GROUP: Ipv4Addr = Ipv4Addr::new(225, 1, 2, 3);

/// What the neighbours of mrouted can do, and what ours can.
pub(super) const PLAIN: u8 = PRUNES | GENERATIONS;
pub(super) const OURS: u8 = PLAIN | LEVELS;

/// A router with interfaces 0, 1 and 2, on 10.0.0.0/24, 10.1.0.0/24 and 10.2.0.0/24, as the fifth of each.
pub(super) struct Bench {
    pub(super) now: Time,
    pub(super) router: Router,
    /// What it sent, since that was looked at: interface, destination, packet.
    sent: Vec<(u32, Ipv4Addr, Vec<u8>)>,
    pub(super) events: Vec<Event>,
}

/// A message as it was sent, in words that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sent {
    Probe(Vec<Ipv4Addr>),
    Report(Vec<(Prefix, u8)>),
    Prune(Pair, u32),
    Graft(Pair),
    GraftAck(Pair),
    Demand(Prefix, u8, u32),
    DemandAck(u32),
}

pub(super) fn lan(interface: u32) -> Prefix {
    Prefix::of(on(interface, 0), 24)
}

/// A host or router on a link.
pub(super) const fn on(interface: u32, last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, interface as u8, 0, last)
}

pub(super) const fn pair(source: Ipv4Addr) -> Pair {
    Pair { source, group: GROUP, mask: None }
}

pub(super) fn packet(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    message: &Message<'_>,
    abilities: u8,
) -> Vec<u8> {
    let (mut body, mut packet) = (Vec::new(), Vec::new());
    message.emit(abilities, &mut body);
    emit_ip(source, destination, body.len(), &mut packet);
    packet.extend(body);
    packet
}

impl Bench {
    pub(super) fn new() -> Self {
        let settings =
            Settings { generation: 7, seed: 1, has_levels: true, demand: demand::Settings::default() };
        let now = Time::from_millis(1000);
        let mut bench = Bench { now, router: Router::new(settings), sent: Vec::new(), events: Vec::new() };
        (0..3).for_each(|interface| bench.bring_up(interface));
        bench
    }

    pub(super) fn bring_up(&mut self, interface: u32) {
        let link = Link::Lan(lan(interface));
        let settings = InterfaceSettings { address: on(interface, 5), link, metric: 1 };
        self.router.add_interface(self.now, InterfaceId(interface), settings).expect("few interfaces");
        self.drain();
    }

    pub(super) fn drain(&mut self) {
        let mut packet = Vec::new();
        while let Some(to) = self.router.poll_transmit(&mut packet) {
            self.sent.push((to.interface.0, to.destination, packet.clone()));
        }
        self.events.extend(core::iter::from_fn(|| self.router.poll()));
    }

    /// A packet comes from a neighbour.
    pub(super) fn receive(&mut self, interface: u32, packet: &[u8]) {
        self.router.handle_packet(self.now, InterfaceId(interface), packet);
        self.drain();
    }

    pub(super) fn hear(&mut self, interface: u32, last: u8, message: &Message<'_>, abilities: u8) {
        let destination = match message {
            Message::Probe { .. } | Message::Report(_) => ALL_ROUTERS,
            _ => on(interface, 5),
        };
        self.receive(interface, &packet(on(interface, last), destination, message, abilities));
    }

    /// A probe of a neighbour that hears us, or does not.
    pub(super) fn probe(&mut self, interface: u32, last: u8, generation: u32, hears: bool, abilities: u8) {
        let named = [on(interface, 5).octets()];
        let neighbours = Addresses::new(&named[..usize::from(hears)]);
        self.hear(interface, last, &Message::Probe { generation, neighbours }, abilities);
    }

    /// A report of one route.
    pub(super) fn report(&mut self, interface: u32, last: u8, network: Prefix, metric: u8) {
        let mut writer = ReportWriter::default();
        assert!(writer.push(Advertised { network, metric }), "it fits");
        self.hear(interface, last, &Message::Report(writer.routes()), PLAIN);
    }

    pub(super) fn data(&mut self, interface: u32, source: Ipv4Addr) -> Result<(), Refusal> {
        let told = self.router.handle_data(self.now, InterfaceId(interface), source, GROUP).map(drop);
        self.drain();
        told
    }

    pub(super) fn member(&mut self, interface: u32, level: Option<u8>) {
        let level = level.and_then(demand::Level::new);
        self.router.set_member(self.now, InterfaceId(interface), GROUP, level).expect("few groups");
        self.drain();
    }

    /// Lets time pass, a second at a time at the most. Neighbours that are given stay there: they send
    /// probes, and tell their routes again.
    pub(super) fn pass(&mut self, seconds: u64, kept: &[(u32, u8, u8)], routes: &[(u32, u8, Prefix, u8)]) {
        for second in 0..seconds {
            let end = self.now + Duration::from_secs(1);
            while let Some(at) = self.router.next_timeout().filter(|at| *at <= end) {
                self.now = at.max(self.now);
                self.router.handle_timeout(self.now);
                self.drain();
            }
            self.now = end;
            if second % 10 == 0 {
                kept.iter().for_each(|(on, last, can)| self.probe(*on, *last, 1, true, *can));
            }
            if second % 60 == 0 {
                routes.iter().for_each(|(on, last, to, metric)| self.report(*on, *last, *to, *metric));
            }
        }
    }

    /// What was sent on an interface since this was asked last, in the order it was.
    pub(super) fn sent(&mut self, interface: u32) -> Vec<(Ipv4Addr, Sent)> {
        let (there, elsewhere) =
            core::mem::take(&mut self.sent).into_iter().partition(|(on, ..)| *on == interface);
        self.sent = elsewhere;
        let there: Vec<(u32, Ipv4Addr, Vec<u8>)> = there;
        there.into_iter().map(|(_, to, packet)| (to, said(&packet))).collect()
    }

    /// The same without probes and reports.
    pub(super) fn asked(&mut self, interface: u32) -> Vec<(Ipv4Addr, Sent)> {
        let is_asked = |said: &Sent| !matches!(said, Sent::Probe(_) | Sent::Report(_));
        self.sent(interface).into_iter().filter(|(_, said)| is_asked(said)).collect()
    }

    /// The metrics that reports on an interface had for a network, since this was asked last.
    pub(super) fn told(&mut self, interface: u32, network: Prefix) -> Vec<u8> {
        let reports = self.sent(interface).into_iter().filter_map(|(_, said)| match said {
            Sent::Report(routes) => Some(routes),
            _ => None,
        });
        reports.flatten().filter(|(to, _)| *to == network).map(|(_, metric)| metric).collect()
    }

    pub(super) fn refused(&self, why: Refusal) -> u64 {
        self.router.counters().refused(why)
    }

    /// Where data from here goes: interfaces and levels.
    pub(super) fn outgoing(&self, source: Prefix) -> Vec<(u32, u8)> {
        let flow = crate::dvmrp::forwarding::Flow { source, group: GROUP };
        let outgoing = self.router.forwarding(flow).map(|(_, outgoing)| outgoing).unwrap_or_default();
        outgoing.iter().map(|to| (to.interface.0, to.level.number())).collect()
    }
}

fn said(packet: &[u8]) -> Sent {
    let packet = Packet::parse(packet).expect("it was written here");
    match packet.message().expect("well formed") {
        Message::Probe { neighbours, .. } => Sent::Probe(neighbours.iter().collect()),
        Message::Report(routes) => {
            let routes = routes.map(|route| route.expect("legal"));
            Sent::Report(routes.map(|route| (route.network, route.metric)).collect())
        }
        Message::Prune(pair, lifetime_s) => Sent::Prune(pair, lifetime_s),
        Message::Graft(pair) => Sent::Graft(pair),
        Message::GraftAck(pair) => Sent::GraftAck(pair),
        Message::Demand(demand) => Sent::Demand(demand.network, demand.level.number(), demand.sequence),
        Message::DemandAck(ack) => Sent::DemandAck(ack.sequence),
        message => panic!("it does not send {message:?}"),
    }
}
