//! The interfaces that take part: taken when they come, let go when they go.

use std::collections::BTreeMap;
use std::net::IpAddr;

use outflow_multicast::{Addresses, Downstream, Error, Interface, Multicast, Neighbours, Warning};
use outflow_routing::membership::Family;

use super::demand::Demand;

/// The interfaces of a driver.
#[derive(Debug)]
pub(super) struct Interfaces {
    family: Family,
    below: BTreeMap<String, Taken>,
    upstream: Option<Interface>,
    /// Why one is not used, by its name.
    problems: BTreeMap<String, String>,
}

/// An interface with hosts, neighbours or both.
#[derive(Debug)]
struct Taken {
    interface: Interface,
    is_with: Parts,
}

/// What an interface is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Parts {
    hosts: bool,
    /// What a hop to neighbours counts.
    metric: Option<u8>,
}

impl Parts {
    fn of(family: Family, settings: &crate::settings::Multicast, name: &str) -> Self {
        let hosts = settings.interfaces.0.iter().any(|one| one.0 == name);
        // Routers of DVMRP have addresses of IPv4. The number is checked to be small.
        let is_routed = family == Family::V4 && settings.has_neighbours_on(name);
        let metric = is_routed.then_some(settings.metric as u8);
        Parts { hosts, metric }
    }

    /// Whether more is enough to be this.
    fn is_part_of(self, all: Parts) -> bool {
        (all.hosts || !self.hosts) && (self.metric.is_none() || self.metric == all.metric)
    }
}

/// Which interfaces may do without an address of a family.
enum Without<'s> {
    /// None of them.
    None,
    /// All of them.
    All,
    /// Those with an address of IPv6 beyond the link, where hosts join groups of that, but for those with neighbours.
    WithV6(Addresses, &'s crate::settings::Multicast),
}

impl<'s> Without<'s> {
    fn new(family: Family, settings: &'s crate::settings::Multicast, is_with_v6: bool) -> Self {
        match family {
            Family::V6 if settings.needs(Family::V6) => Without::None,
            Family::V6 => Without::All,
            Family::V4 if !is_with_v6 => Without::None,
            Family::V4 => Addresses::list(Family::V6)
                .map_or(Without::None, |addresses| Without::WithV6(addresses, settings)),
        }
    }

    fn may(&self, name: &str) -> bool {
        let is_beyond = |ip| matches!(ip, IpAddr::V6(ip) if !ip.is_unicast_link_local());
        match self {
            Without::None => false,
            Without::All => true,
            Without::WithV6(addresses, settings) => {
                let found = addresses.find(name);
                !settings.has_neighbours_on(name) && found.is_ok_and(|found| is_beyond(found.sends_from()))
            }
        }
    }
}

impl Interfaces {
    pub(super) const fn new(family: Family) -> Self {
        Interfaces { family, below: BTreeMap::new(), upstream: None, problems: BTreeMap::new() }
    }

    /// Takes those of `settings` that are there now, as they are now, and lets go all others. True if any
    /// changed. `is_with_v6` says whether multicast of IPv6 is routed, too.
    pub(super) async fn look(
        &mut self,
        driver: &Multicast,
        (settings, is_with_v6): (&crate::settings::Multicast, bool),
        demand: &mut Demand,
    ) -> bool {
        let all = Addresses::list(self.family);
        let without = Without::new(self.family, settings, is_with_v6);
        let names: Vec<_> = settings.with_hosts_or_neighbours().collect();
        let found: BTreeMap<_, _> =
            names.iter().map(|one| (&one.0, self.find(&all, &one.0, &without))).collect();
        let upstream = settings.upstream.as_ref().and_then(|one| self.find(&all, &one.0, &without));
        self.problems.retain(|name, _| settings.takes(name));
        let stays = |name: &String, taken: &Taken| {
            found.get(name) == Some(&Some(taken.interface.clone()))
                && taken.is_with.is_part_of(Parts::of(self.family, settings, name))
        };
        let gone = self.below.iter().filter(|(name, taken)| !stays(name, taken));
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
            is_changed |= self.take(driver, settings, interface.clone(), demand).await;
        }
        if let Some(interface) = upstream.filter(|_| self.upstream.is_none()) {
            is_changed |= self.take_upstream(driver, interface).await;
        }
        is_changed
    }

    /// Lets go all with hosts, so that they are taken again.
    pub(super) async fn let_all_go(&mut self, driver: &Multicast, demand: &mut Demand) {
        let with_hosts = self.below.iter().filter(|(_, taken)| taken.is_with.hosts);
        for name in with_hosts.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.let_go(driver, &name, demand).await;
        }
    }

    /// Why an interface is not used, if it is not.
    pub(super) fn problem(&self, name: &str) -> Option<&String> {
        self.problems.get(name)
    }

    fn find(
        &mut self,
        all: &Result<Addresses, Error>,
        name: &str,
        without: &Without<'_>,
    ) -> Option<Interface> {
        let found = match all {
            Ok(all) => all.find(name),
            Err(error) => {
                self.note(name, error);
                return None;
            }
        };
        match found {
            Ok(interface) => Some(interface),
            Err(Error::NoAddress { .. }) if without.may(name) => {
                self.problems.remove(name);
                None
            }
            Err(error) => {
                self.note(name, &error);
                None
            }
        }
    }

    /// Takes an interface for what it is not taken for yet. True if that succeeded for anything.
    async fn take(
        &mut self,
        driver: &Multicast,
        settings: &crate::settings::Multicast,
        interface: Interface,
        demand: &mut Demand,
    ) -> bool {
        let name = interface.name.clone();
        let before = self.below.get(&name).map(|taken| taken.is_with).unwrap_or_default();
        let (wanted, mut now, mut failed) = (Parts::of(self.family, settings, &name), before, None);
        if wanted.hosts && !before.hosts {
            match driver.add(downstream(settings, interface.clone())).await {
                Ok(warnings) => {
                    self.took(&interface, "hosts join groups here", &warnings);
                    demand.add(&name, interface.sends_from());
                    now.hosts = true;
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(metric) = wanted.metric.filter(|_| before.metric.is_none()) {
            match driver.add_neighbours(Neighbours { interface: interface.clone(), metric }).await {
                Ok(warnings) => {
                    self.took(&interface, "routers of DVMRP may be here", &warnings);
                    demand.add_routed(&name);
                    now.metric = Some(metric);
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            self.note(&name, &error);
        }
        if now != before {
            self.below.insert(name, Taken { interface, is_with: now });
        }
        now != before
    }

    fn took(&mut self, interface: &Interface, why: &str, warnings: &[Warning]) {
        let name = &interface.name;
        self.problems.remove(name);
        tracing::info!(interface = name, address = %interface.address, "{why}");
        warnings.iter().for_each(|warning| tracing::warn!(interface = name, "{warning}"));
    }

    async fn take_upstream(&mut self, driver: &Multicast, interface: Interface) -> bool {
        match driver.set_upstream(Some(interface.clone())).await {
            Ok(warnings) => {
                self.took(&interface, "what hosts want is joined here", &warnings);
                self.upstream = Some(interface);
                true
            }
            Err(error) => {
                self.note(&interface.name, &error);
                false
            }
        }
    }

    async fn let_go(&mut self, driver: &Multicast, name: &str, demand: &mut Demand) {
        self.below.remove(name);
        demand.remove(name);
        tracing::info!(interface = name, "no multicast here any more");
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
fn downstream(settings: &crate::settings::Multicast, interface: Interface) -> Downstream {
    let mut downstream = Downstream::new(interface);
    let router = &mut downstream.settings;
    // Both are checked to be small.
    router.robustness = settings.robustness as u8;
    router.query_interval = settings.query_interval;
    router.query_response = settings.query_response;
    router.last_member_interval = settings.last_member_interval;
    router.fast_leave = settings.fast_leave;
    downstream.sources.clone_from(&settings.sources);
    downstream
}

/// Whether hosts are asked in the same way by both.
pub(super) fn ask_alike(a: &crate::settings::Multicast, b: &crate::settings::Multicast) -> bool {
    let asking = |of: &crate::settings::Multicast| {
        let times = (of.query_interval, of.query_response, of.last_member_interval);
        (times, of.robustness, of.fast_leave, of.sources.clone())
    };
    asking(a) == asking(b)
}
