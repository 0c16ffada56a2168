//! Reports of routes: those that are due, and all at once to a neighbour that is new.

use outflow_media::{Prefix, Time};

use super::Router;
use crate::dvmrp::limits::FLASH_ROUTES_MAX;
use crate::dvmrp::outbox::Transmit;
use crate::dvmrp::packet::{ALL_ROUTERS, Advertised, Message, ReportWriter};
use crate::dvmrp::routes::INFINITY;
use crate::dvmrp::{InterfaceId, Peer};

impl Router {
    /// Sends the reports that are due.
    pub(super) fn report(&mut self, now: Time) {
        if self.schedule.takes_flash(now) {
            let changed = self.routes.take_changed(FLASH_ROUTES_MAX);
            self.tell_all(&changed);
            self.schedule.flash(now, &self.routes);
        }
        if let Some(part) = self.schedule.take_part(now, &self.routes) {
            self.tell_all(&part);
        }
    }

    fn tell_all(&mut self, networks: &[Prefix]) {
        for (id, interface) in &self.interfaces {
            if interface.neighbours.has_two_way() {
                let to = Transmit { interface: *id, destination: ALL_ROUTERS };
                let told = networks.iter().filter_map(|network| self.routes.told(*network, *id));
                for report in &reports(told) {
                    self.outbox.send(to, &Message::Report(report.routes()), &mut self.counters);
                }
            }
        }
    }

    /// Sends all routes to one neighbour, so that it need not wait for them (sections 3.2.2 and 3.4.5). A probe
    /// goes before them: one that does not know yet that we hear it would not take them, and wait for the next
    /// full report.
    pub(super) fn copy_routes(&mut self, now: Time, to: Peer) {
        let Some(interface) = self.interfaces.get_mut(&to.interface) else { return };
        let destination = interface.destination(to.address);
        let neighbour = interface.neighbours.get_mut(to.address);
        if neighbour.is_none_or(|neighbour| !neighbour.is_two_way() || !neighbour.take_copy(now)) {
            return;
        }
        self.probe(to.interface);
        let told = self.routes.behind(None).filter_map(|network| self.routes.told(network, to.interface));
        for report in &reports(told) {
            let to = Transmit { interface: to.interface, destination };
            self.outbox.send(to, &Message::Report(report.routes()), &mut self.counters);
        }
    }

    /// Takes back all that was told on a link.
    pub(super) fn tell_unreachable(&mut self, id: InterfaceId) {
        let metric = INFINITY;
        let told = self.routes.behind(None).map(|network| Advertised { network, metric });
        for report in &reports(told) {
            let to = Transmit { interface: id, destination: ALL_ROUTERS };
            self.outbox.send(to, &Message::Report(report.routes()), &mut self.counters);
        }
    }
}

/// As many as it takes.
fn reports(routes: impl Iterator<Item = Advertised>) -> Vec<ReportWriter> {
    let mut all: Vec<ReportWriter> = Vec::new();
    for route in routes {
        if all.last_mut().is_none_or(|last| !last.push(route)) {
            let mut next = ReportWriter::default();
            next.push(route);
            all.push(next);
        }
    }
    all
}
