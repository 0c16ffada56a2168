//! When routes are told (section 3.4.5): all of them within a minute, a few at a time; what changed soon, but
//! not too often.

use outflow_media::{Prefix, Time};

use crate::Random;
use crate::dvmrp::earliest;
use crate::dvmrp::limits::{FLASH_INTERVAL_MIN, REPORT_INTERVAL, REPORT_ROUTES_MAX};
use crate::dvmrp::routes::RouteTable;

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

    /// Whether what changed is told now.
    pub(super) fn takes_flash(&mut self, now: Time) -> bool {
        let is_due = self.flash_at.is_some_and(|at| at <= now);
        if is_due {
            self.flash_at = None;
            self.flashed_at = Some(now);
        }
        is_due
    }

    /// The routes that are told now as part of all of them, if any are due.
    pub(super) fn take_part(&mut self, now: Time, routes: &RouteTable) -> Option<Vec<Prefix>> {
        if self.part_at.is_none_or(|at| at > now) {
            return None;
        }
        let part: Vec<_> = routes.behind(self.told).take(REPORT_ROUTES_MAX).collect();
        // From the last part on it begins again.
        self.told = part.last().copied().filter(|_| part.len() == REPORT_ROUTES_MAX);
        let parts = routes.len().div_ceil(REPORT_ROUTES_MAX).max(1) as u32;
        self.part_at = Some(now + REPORT_INTERVAL / parts);
        Some(part)
    }
}
