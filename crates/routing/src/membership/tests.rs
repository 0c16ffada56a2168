//! A link with several hosts and two routers that loses packets, in virtual time: once nothing changes and
//! nothing is lost any more, there is one querier, and all routers know what hosts want.

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use outflow_media::Time;

use super::*;

const HOSTS: usize = 6;
const ROUTERS: usize = 2;

/// What a host wants of a group: the mode, the sources and the level.
type Wanting = (Mode, Vec<IpAddr>, Level);

struct Lan {
    family: Family,
    now: Time,
    routers: Vec<Option<Router>>,
    hosts: Vec<Host>,
    settings: Vec<HostSettings>,
    wishes: BTreeMap<(usize, IpAddr), Wanting>,
    /// Packets under way, with the host or router that they reach next.
    air: BTreeMap<(Time, usize), (usize, Vec<u8>)>,
    sent: usize,
    loss: f64,
    random: fastrand::Rng,
}

fn node(family: Family, number: usize) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([10, 0, 0, 1 + number as u8]),
        Family::V6 => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1 + number as u16).into(),
    }
}

fn group(family: Family, number: usize) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([225, 0, 0, number as u8]),
        Family::V6 => Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 0x100 + number as u16).into(),
    }
}

fn source(family: Family, number: usize) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([192, 0, 2, number as u8]),
        Family::V6 => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number as u16).into(),
    }
}

impl Lan {
    fn new(family: Family, seed: u64, oldest: Version) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let link = |number| Link::new(node(family, number), if family == Family::V4 { 24 } else { 64 });
        let router = |number| Some(Router::new(Time::ZERO, RouterSettings::new(link(number))));
        let older = [Version::V3, oldest];
        let settings: Vec<_> = (0..HOSTS)
            .map(|number| HostSettings {
                version: older[random.usize(..2)],
                says_levels: random.u8(..4) > 0,
                ..HostSettings::new(link(ROUTERS + number), seed * 100 + number as u64)
            })
            .collect();
        Lan {
            family,
            now: Time::ZERO,
            routers: (0..ROUTERS).map(router).collect(),
            hosts: settings.iter().map(|settings| Host::new(Time::ZERO, settings.clone())).collect(),
            settings,
            wishes: BTreeMap::new(),
            air: BTreeMap::new(),
            sent: 0,
            loss: 0.2,
            random,
        }
    }

    /// Sends what all nodes have to send.
    fn drain(&mut self) {
        let mut out = Vec::new();
        for from in 0..ROUTERS + HOSTS {
            loop {
                let is_sent = match from.checked_sub(ROUTERS) {
                    None => {
                        let router = self.routers[from].as_mut();
                        router.and_then(|router| router.poll_transmit(&mut out)).is_some()
                    }
                    Some(host) => self.hosts[host].poll_transmit(&mut out).is_some(),
                };
                if !is_sent {
                    break;
                }
                for to in (0..ROUTERS + HOSTS).filter(|to| *to != from) {
                    if self.random.f64() >= self.loss {
                        let arrives = self.now + Duration::from_micros(self.random.u64(100..5000));
                        self.sent += 1;
                        self.air.insert((arrives, self.sent), (to, out.clone()));
                    }
                }
            }
        }
        for router in self.routers.iter_mut().flatten() {
            while router.poll().is_some() {}
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.drain();
            let routers = self.routers.iter().flatten().map(Router::next_timeout);
            let hosts = self.hosts.iter().filter_map(Host::next_timeout);
            let air = self.air.keys().next().map(|(time, _)| *time);
            let next = routers.chain(hosts).chain(air).min().expect("routers never rest");
            if next > end {
                break;
            }
            assert!(next >= self.now, "time goes on");
            self.now = next;
            self.routers.iter_mut().flatten().for_each(|router| router.handle_timeout(next));
            self.hosts.iter_mut().for_each(|host| host.handle_timeout(next));
            while let Some(entry) = self.air.first_entry().filter(|entry| entry.key().0 <= next) {
                let (to, bytes) = entry.remove();
                match to.checked_sub(ROUTERS) {
                    None => self.routers[to].iter_mut().for_each(|one| one.handle_packet(next, &bytes)),
                    Some(host) => self.hosts[host].handle_packet(next, &bytes),
                }
            }
        }
        self.now = end;
    }

    /// A host changes its mind about a group.
    fn change(&mut self) {
        let (host, number) = (self.random.usize(..HOSTS), self.random.usize(..4));
        let group = group(self.family, number);
        let mode = if self.random.bool() { Mode::Include } else { Mode::Exclude };
        let count = self.random.usize(..4);
        let sources: Vec<_> = (0..count).map(|_| source(self.family, self.random.usize(..5))).collect();
        let level = Level::new(self.random.u8(1..6)).expect("it is not 0");
        let wish = Interest { mode, sources: &sources, level };
        self.hosts[host].set(self.now, group, wish).expect("it may be wished");
        let settings = &self.settings[host];
        let level = if settings.says_levels { level } else { Level::BEST };
        // Older hosts receive all or nothing, at its best.
        let wanting = match settings.version {
            Version::V3 => (mode, sources.clone(), level),
            _ => (Mode::Exclude, Vec::new(), Level::BEST),
        };
        if mode == Mode::Exclude || !sources.is_empty() {
            self.wishes.insert((host, group), wanting);
        } else {
            self.wishes.remove(&(host, group));
        }
    }

    /// A host begins again: it knows nothing but what it wants.
    fn restart(&mut self) {
        let number = self.random.usize(..HOSTS);
        self.settings[number].seed += 1;
        let mut host = Host::new(self.now, self.settings[number].clone());
        for ((_, group), (mode, sources, level)) in self.wishes.iter().filter(|((of, _), _)| *of == number) {
            let wish = Interest { mode: *mode, sources, level: *level };
            host.set(self.now, *group, wish).expect("it may be wished");
        }
        self.hosts[number] = host;
    }

    fn check(&self, what: &str) {
        let alive = self.routers.iter().flatten();
        let queriers: Vec<_> = alive.clone().filter(|router| router.is_querier()).collect();
        assert_eq!(queriers.len(), 1, "{what}: one router asks");
        for router in alive {
            assert_eq!(router.querier(), queriers[0].querier(), "{what}: all know which one");
            for number in 0..4 {
                self.check_group(router, group(self.family, number), what);
            }
        }
    }

    fn check_group(&self, router: &Router, group: IpAddr, what: &str) {
        let wishes = self.wishes.iter().filter(|((_, of), _)| *of == group).map(|(_, wish)| wish);
        let level = wishes.clone().map(|(.., level)| *level).min();
        let wanted = router.wanted(group);
        assert_eq!(wanted.map(|wanted| wanted.level), level, "{what}: {group} of {}", router.querier());
        for number in 0..6 {
            let source = source(self.family, number);
            let wants = |(mode, list, _): &Wanting| list.contains(&source) == (*mode == Mode::Include);
            let receives = wanted.is_some_and(|wanted| wanted.receives(source));
            assert_eq!(receives, wishes.clone().any(wants), "{what}: {group} from {source}");
        }
    }
}

fn churn(lan: &mut Lan, what: &str) {
    lan.loss = 0.2;
    for _ in 0..40 {
        let wait = Duration::from_millis(lan.random.u64(0..8000));
        lan.change();
        if lan.random.u8(..10) == 0 {
            lan.restart();
        }
        lan.run(wait);
    }
    lan.loss = 0.0;
    lan.run(Duration::from_secs(800));
    lan.check(what);
}

#[test]
fn routers_know_what_hosts_want_whatever_was_lost() {
    for seed in 0..60 {
        for family in Family::ALL {
            let mut lan = Lan::new(family, seed, Version::V3);
            churn(&mut lan, &format!("{family:?}, seed {seed}"));
        }
    }
}

#[test]
fn routers_know_what_hosts_of_several_versions_want() {
    for seed in 0..40 {
        for (family, oldest) in
            [(Family::V4, Version::V2), (Family::V6, Version::V2), (Family::V4, Version::V1)]
        {
            let mut lan = Lan::new(family, seed, oldest);
            churn(&mut lan, &format!("{family:?}, {oldest:?}, seed {seed}"));
        }
    }
}

#[test]
fn when_the_querier_is_gone_the_other_router_goes_on() {
    for seed in 0..20 {
        let mut lan = Lan::new(Family::V4, seed, Version::V3);
        churn(&mut lan, &format!("before, seed {seed}"));
        lan.routers[0] = None;
        churn(&mut lan, &format!("after, seed {seed}"));
    }
}

#[test]
fn without_loss_a_change_is_known_at_once_and_a_leave_in_two_seconds() {
    for seed in 0..20 {
        let mut lan = Lan::new(Family::V4, seed, Version::V3);
        lan.loss = 0.0;
        lan.run(Duration::from_secs(60));
        let (host, group) = (lan.random.usize(..HOSTS), group(Family::V4, 1));
        let level = Level::new(3).expect("it is not 0");
        lan.hosts[host].set(lan.now, group, Interest::all(level)).expect("it may be wished");
        lan.run(Duration::from_millis(10));
        for router in lan.routers.iter().flatten() {
            let level = if lan.settings[host].says_levels { level } else { Level::BEST };
            assert_eq!(router.wanted(group).map(|wanted| wanted.level), Some(level));
        }
        let wait = Duration::from_secs(lan.random.u64(0..300));
        lan.run(wait);
        lan.hosts[host].set(lan.now, group, Interest::nothing()).expect("it may be wished");
        lan.run(Duration::from_millis(2010));
        assert!(lan.routers.iter().flatten().all(|router| router.wanted(group).is_none()), "seed {seed}");
    }
}
