//! The drivers that run: one of each family.

use std::collections::BTreeMap;
use std::future::pending;
use std::net::IpAddr;

use outflow_multicast::{Event, Multicast};
use outflow_routing::Level;
use outflow_routing::membership::Family;
use tokio::sync::mpsc;

use super::demand::Demand;
use super::interfaces::Interfaces;

/// A driver, and what it has.
pub(super) struct Driver {
    pub(super) multicast: Multicast,
    pub(super) events: mpsc::Receiver<Event>,
    pub(super) interfaces: Interfaces,
    pub(super) demand: Demand,
    /// What it was told last to ask of groups that streams come in as.
    pub(super) asked: BTreeMap<IpAddr, Level>,
}

impl Driver {
    pub(super) fn new(family: Family, multicast: Multicast, events: mpsc::Receiver<Event>) -> Self {
        let (demand, asked) = (Demand::default(), BTreeMap::new());
        Driver { multicast, events, interfaces: Interfaces::new(family), demand, asked }
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Drivers {
    v4: Option<Driver>,
    v6: Option<Driver>,
}

impl Drivers {
    pub(super) const fn of(&self, family: Family) -> Option<&Driver> {
        match family {
            Family::V4 => self.v4.as_ref(),
            Family::V6 => self.v6.as_ref(),
        }
    }

    /// Where that of a family is, if it runs.
    pub(super) const fn at(&mut self, family: Family) -> &mut Option<Driver> {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }

    /// Those that run.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Family, &Driver)> {
        [(Family::V4, &self.v4), (Family::V6, &self.v6)]
            .into_iter()
            .filter_map(|(family, driver)| Some((family, driver.as_ref()?)))
    }

    /// The next event of any; none if that one has ended.
    pub(super) async fn next(&mut self) -> (Family, Option<Event>) {
        tokio::select! {
            event = next(&mut self.v4) => (Family::V4, event),
            event = next(&mut self.v6) => (Family::V6, event),
        }
    }
}

async fn next(driver: &mut Option<Driver>) -> Option<Event> {
    match driver {
        Some(driver) => driver.events.recv().await,
        None => pending().await,
    }
}
