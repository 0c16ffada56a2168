//! The interfaces that take part: taken when they come, let go when they go.

use std::collections::BTreeMap;
use std::net::IpAddr;

use outflow_multicast::{Addresses, Downstream, Error, Interface, Multicast};
use outflow_routing::membership::Prefix;

use super::demand::Demand;

/// The interfaces of a driver.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    below: BTreeMap<String, Interface>,
    upstream: Option<Interface>,
    /// Why one is not used, by its name.
    problems: BTreeMap<String, String>,
}

impl Interfaces {
    /// Takes those of `settings` that are there now, as they are now, and lets go all others. True if any
    /// changed.
    pub(super) async fn look(
        &mut self,
        driver: &Multicast,
        settings: &outflow_config::Multicast,
        demand: &mut Demand,
    ) -> bool {
        let all = Addresses::list();
        let names = &settings.interfaces.0;
        let found: BTreeMap<_, _> = names.iter().map(|one| (&one.0, self.find(&all, &one.0))).collect();
        let upstream = settings.upstream.as_ref().and_then(|one| self.find(&all, &one.0));
        self.problems.retain(|name, _| settings.has(name));
        let is_there = |name: &String, as_it_is: &Interface| found.get(name) == Some(&Some(as_it_is.clone()));
        let gone = self.below.iter().filter(|(name, one)| !is_there(name, one));
        let gone: Vec<_> = gone.map(|(name, _)| name.clone()).collect();
        for name in &gone {
            self.let_go(driver, name, demand).await;
        }
        let mut is_changed = !gone.is_empty();
        if self.upstream != upstream && self.upstream.take().is_some() {
            is_changed = true;
            // It cannot fail to be let go.
            let _taken_none = driver.set_upstream(None).await;
        }
        // In the order of the configuration: the first ones are the kernel's.
        for interface in names.iter().filter_map(|name| found.get(&name.0)?.as_ref()) {
            if !self.below.contains_key(&interface.name) {
                is_changed |= self.take(driver, settings, interface.clone(), demand).await;
            }
        }
        if let Some(interface) = upstream.filter(|_| self.upstream.is_none()) {
            is_changed |= self.take_upstream(driver, interface).await;
        }
        is_changed
    }

    /// Lets go all with hosts, so that they are taken anew.
    pub(super) async fn let_all_go(&mut self, driver: &Multicast, demand: &mut Demand) {
        for name in self.below.keys().cloned().collect::<Vec<_>>() {
            self.let_go(driver, &name, demand).await;
        }
    }

    /// Why an interface is not used, if it is not.
    pub(super) fn problem(&self, name: &str) -> Option<&String> {
        self.problems.get(name)
    }

    fn find(&mut self, all: &Result<Addresses, Error>, name: &str) -> Option<Interface> {
        let found = match all {
            Ok(all) => all.find(name).map_err(|error| self.note(name, &error)),
            Err(error) => Err(self.note(name, error)),
        };
        found.ok()
    }

    async fn take(
        &mut self,
        driver: &Multicast,
        settings: &outflow_config::Multicast,
        interface: Interface,
        demand: &mut Demand,
    ) -> bool {
        let name = interface.name.clone();
        match driver.add(downstream(settings, interface.clone())).await {
            Ok(warnings) => {
                self.problems.remove(&name);
                tracing::info!(interface = name, address = %interface.address, "hosts join groups here");
                warnings.iter().for_each(|warning| tracing::warn!(interface = name, "{warning}"));
                demand.add(&name, interface.address);
                self.below.insert(name, interface);
                true
            }
            Err(error) => {
                self.note(&name, &error);
                false
            }
        }
    }

    async fn take_upstream(&mut self, driver: &Multicast, interface: Interface) -> bool {
        let name = interface.name.clone();
        match driver.set_upstream(Some(interface.clone())).await {
            Ok(warnings) => {
                self.problems.remove(&name);
                tracing::info!(interface = name, "what hosts want is joined here");
                warnings.iter().for_each(|warning| tracing::warn!(interface = name, "{warning}"));
                self.upstream = Some(interface);
                true
            }
            Err(error) => {
                self.note(&name, &error);
                false
            }
        }
    }

    async fn let_go(&mut self, driver: &Multicast, name: &str, demand: &mut Demand) {
        self.below.remove(name);
        demand.remove(name);
        tracing::info!(interface = name, "hosts join no groups here any more");
        // It may be gone with its device.
        let _gone_already = driver.remove(name).await;
    }

    /// Says once why an interface is not used.
    fn note(&mut self, name: &str, error: &Error) {
        let text = error.to_string();
        if self.problems.get(name) != Some(&text) {
            tracing::warn!(interface = name, error = text, "no multicast by an interface; it is tried again");
            self.problems.insert(name.to_owned(), text);
        }
    }
}

/// How hosts of an interface are asked.
fn downstream(settings: &outflow_config::Multicast, interface: Interface) -> Downstream {
    let mut downstream = Downstream::new(interface);
    let router = &mut downstream.settings;
    // Both are checked to be small.
    router.robustness = settings.robustness as u8;
    router.query_interval = settings.query_interval;
    router.query_response = settings.query_response;
    router.last_member_interval = settings.last_member_interval;
    router.fast_leave = settings.fast_leave;
    let prefix = |one: &outflow_config::Prefix| Prefix { address: IpAddr::V4(one.address), bits: one.bits };
    downstream.sources = settings.sources.0.iter().map(prefix).collect();
    downstream
}

/// Whether hosts are asked in the same way by both.
pub(super) fn ask_alike(a: &outflow_config::Multicast, b: &outflow_config::Multicast) -> bool {
    let asking = |of: &outflow_config::Multicast| {
        let times = (of.query_interval, of.query_response, of.last_member_interval);
        (times, of.robustness, of.fast_leave, of.sources.clone())
    };
    asking(a) == asking(b)
}
