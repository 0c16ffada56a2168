//! Which router of the link asks, and when it asks all (RFC 3376 sections 6.6.2 and 8, RFC 3810 section 7.6.2).

use core::time::Duration;
use std::net::IpAddr;

use outflow_media::Time;

use super::settings::RouterSettings;
use crate::membership::Version;
use crate::membership::packet::{Query, QueryHead};

/// Which router asks.
#[derive(Debug, Clone, Copy)]
enum Role {
    /// This router, next at that time. `at_start` queries are left that are sent at the start.
    Asks { next: Time, at_start: u8 },
    /// Another one, unless it is silent until then.
    Listens { querier: IpAddr, until: Time },
}

/// Which router asks, and what it says of its robustness and interval.
#[derive(Debug)]
pub(super) struct Querier {
    role: Role,
    robustness: u8,
    interval: Duration,
    is_due: bool,
    told: Option<IpAddr>,
}

impl Querier {
    pub(super) const fn new(now: Time, settings: &RouterSettings) -> Self {
        Querier {
            role: Role::Asks { next: now, at_start: settings.robustness },
            robustness: settings.robustness,
            interval: settings.query_interval,
            is_due: false,
            told: None,
        }
    }

    pub(super) const fn is_self(&self) -> bool {
        matches!(self.role, Role::Asks { .. })
    }

    pub(super) const fn address(&self, settings: &RouterSettings) -> IpAddr {
        match self.role {
            Role::Asks { .. } => settings.link.address,
            Role::Listens { querier, .. } => querier,
        }
    }

    /// The robustness variable in force.
    pub(super) const fn robustness(&self) -> u8 {
        self.robustness
    }

    /// Group Membership Interval, and Older Host Present Interval (RFC 3376 sections 8.4 and 8.13).
    pub(super) fn membership(&self, settings: &RouterSettings) -> Duration {
        self.interval * u32::from(self.robustness) + settings.query_response
    }

    pub(super) const fn next_timeout(&self) -> Time {
        match self.role {
            Role::Asks { next, .. } => next,
            Role::Listens { until, .. } => until,
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time, settings: &RouterSettings) {
        match self.role {
            Role::Asks { next, at_start } if next <= now => {
                self.is_due = true;
                let startup = at_start.saturating_sub(1);
                let wait = if startup > 0 { settings.query_interval / 4 } else { settings.query_interval };
                // An interval of zero would be due forever.
                let next = now + wait.max(Duration::from_millis(100));
                self.role = Role::Asks { next, at_start: startup };
            }
            Role::Listens { until, .. } if until <= now => {
                // What the other one said is over with it.
                let told = self.told;
                *self = Querier { told, ..Querier::new(now, settings) };
                self.role = Role::Asks { next: now, at_start: 0 };
                self.handle_timeout(now, settings);
            }
            Role::Asks { .. } | Role::Listens { .. } => (),
        }
    }

    /// Another router with a lower address asks.
    pub(super) fn yield_to(
        &mut self,
        querier: IpAddr,
        query: &Query<'_>,
        now: Time,
        settings: &RouterSettings,
    ) {
        if query.head.version == Version::V3 {
            // Section 4.1.6: zero is none of its own, so ours is used.
            let said = query.head.robustness;
            self.robustness = if said == 0 { settings.robustness } else { said };
            let said = query.head.interval;
            self.interval = if said.is_zero() { settings.query_interval } else { said };
        }
        let present = self.interval * u32::from(self.robustness) + settings.query_response / 2;
        self.role = Role::Listens { querier, until: now + present };
        self.is_due = false;
    }

    /// The general query, if it is due.
    pub(super) fn take_general(&mut self, settings: &RouterSettings) -> Option<QueryHead> {
        core::mem::take(&mut self.is_due).then_some(QueryHead {
            version: settings.version,
            group: None,
            max_response: settings.query_response,
            suppress: false,
            robustness: settings.robustness,
            interval: settings.query_interval,
        })
    }

    /// The querier, if it is not the one that was told of.
    pub(super) fn take_change(&mut self, settings: &RouterSettings) -> Option<IpAddr> {
        let querier = self.address(settings);
        (self.told.replace(querier) != Some(querier)).then_some(querier)
    }
}
