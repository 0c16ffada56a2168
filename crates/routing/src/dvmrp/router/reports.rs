//! When routes are told (section 3.4.5): all of them within a minute, a few at a time; what changed soon, but
//! not too often; and all at once to a neighbour that is new.

use outflow_media::Time;

use super::Router;
use crate::Random;
use crate::dvmrp::limits::{FLASH_INTERVAL_MIN, FLASH_ROUTES_MAX, REPORT_INTERVAL, REPORT_ROUTES_MAX};
use crate::dvmrp::outbox::Transmit;
use crate::dvmrp::packet::{ALL_ROUTERS, Advertised, Message, ReportWriter};
use crate::dvmrp::routes::{INFINITY, RouteTable};
use crate::dvmrp::{InterfaceId, Peer, Prefix, earliest};

/// When the next reports are due.
#[derive(Debug)]
pub(super) struct Schedule {
    part_at: Option<Time>,
    /// The last route of the part before.
    told: Option<Prefix>,
    flash_at: Option<Time>,
    flashed_at: Option<Time>,
}

impl Schedule {
    pub(super) const fn new() -> Self {
        Schedule { part_at: None, told: None, flash_at: None, flashed_at: None }
    }

    /// Reports begin somewhere in the first interval, so that those of routers do not keep step.
    pub(super) fn begin(&mut self, now: Time, random: &mut Random) {
        if self.part_at.is_none() {
            self.part_at = Some(now + random.between(REPORT_INTERVAL / 6, REPORT_INTERVAL));
        }
    }

    /// Something changed, perhaps: it is told as soon as that is allowed.
    pub(super) fn flash(&mut self, now: Time, routes: &RouteTable) {
        if routes.has_changed() && self.flash_at.is_none() {
            let soonest = self.flashed_at.map_or(now, |at| at + FLASH_INTERVAL_MIN);
            self.flash_at = Some(soonest.max(now));
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        earliest([self.part_at, self.flash_at])
    }
}

impl Router {
    /// Sends the reports that are due.
    pub(super) fn report(&mut self, now: Time) {
        if self.schedule.flash_at.is_some_and(|at| at <= now) {
            self.schedule.flash_at = None;
            self.schedule.flashed_at = Some(now);
            let changed = self.routes.take_changed(FLASH_ROUTES_MAX);
            self.tell_all(&changed);
            self.schedule.flash(now, &self.routes);
        }
        if self.schedule.part_at.is_some_and(|at| at <= now) {
            let part: Vec<_> = self.routes.behind(self.schedule.told).take(REPORT_ROUTES_MAX).collect();
            self.tell_all(&part);
            // From the last part on it begins again.
            self.schedule.told = part.last().copied().filter(|_| part.len() == REPORT_ROUTES_MAX);
            let parts = self.routes.len().div_ceil(REPORT_ROUTES_MAX).max(1) as u32;
            self.schedule.part_at = Some(now + REPORT_INTERVAL / parts);
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
