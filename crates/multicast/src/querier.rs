//! An interface with hosts: its router's side of IGMP or MLD, and what it sends and tells.

use std::net::IpAddr;

use outflow_media::{Network, Time};
use outflow_routing::membership;
use outflow_routing::membership::{Family, Level, Router, RouterSettings, Wants};

use crate::error::Error;
use crate::event::{Event, InterfaceState, Name};
use crate::interfaces::Interface;
use crate::sys::Membership;

/// An interface with hosts, and how they are asked.
#[derive(Debug, Clone)]
pub struct Downstream {
    /// The interface.
    pub interface: Interface,
    /// What its router is to do; what the RFCs recommend, if nothing else is said. It is for the link of the
    /// interface.
    pub settings: RouterSettings,
    /// From where packets may come in there, beside the interface's own link.
    pub sources: Vec<Network>,
}

impl Downstream {
    /// As the RFCs recommend.
    pub fn new(interface: Interface) -> Self {
        Downstream { settings: RouterSettings::new(interface.link()), interface, sources: Vec::new() }
    }
}

/// The router's side of an interface.
#[derive(Debug)]
pub(crate) struct Querier {
    pub(crate) name: Name,
    pub(crate) interface: Interface,
    pub(crate) router: Router,
    sources: Vec<Network>,
    _membership: Membership,
}

/// What a change is about: for forwarders, and for joins upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Concerns {
    Group(IpAddr),
    All,
}

impl Querier {
    pub(crate) fn new(now: Time, downstream: Downstream) -> Result<Self, Error> {
        let Downstream { interface, settings, sources } = downstream;
        // Where leaves and reports of the newest version go to. All others go to their group, which a router hears anyway.
        let family = Family::of(interface.address);
        let membership = Membership::new(&[family.all_routers(), family.all_reports()], interface.index)
            .map_err(|error| Error::Join { name: interface.name.clone(), error })?;
        let router = Router::new(now, settings);
        let name = Name::from(interface.name.as_str());
        Ok(Querier { name, interface, router, sources, _membership: membership })
    }

    /// The next event, and what it is about.
    pub(crate) fn poll(&mut self) -> Option<(Event, Concerns)> {
        let interface = Name::clone(&self.name);
        Some(match self.router.poll()? {
            membership::Event::GroupWanted { group, level } => {
                // It is wanted still, as nothing happened since.
                let wanted = self.router.wanted(group).map(Wants::from);
                let all = Wants { mode: membership::Mode::Exclude, sources: Vec::new(), level };
                let wanted = wanted.unwrap_or(all);
                (Event::Wanted { interface, group, wanted }, Concerns::Group(group))
            }
            membership::Event::GroupGone { group } => {
                (Event::Gone { interface, group }, Concerns::Group(group))
            }
            membership::Event::QuerierChanged { querier } => {
                let is_self = self.router.is_querier();
                (Event::Querier { interface, querier, is_self }, Concerns::All)
            }
        })
    }

    /// At which level packets are wanted here, if they are and it is for this router to forward them.
    pub(crate) fn wants(&self, source: IpAddr, group: IpAddr) -> Option<Level> {
        let wanted = self.router.wanted(group).filter(|_| self.router.is_querier())?;
        wanted.receives(source).then_some(wanted.level)
    }

    /// What of a group this router is to bring here.
    pub(crate) fn wanted(&self, group: IpAddr) -> Option<Wants> {
        self.router.wanted(group).filter(|_| self.router.is_querier()).map(Wants::from)
    }

    /// Whether the hosts that want a group, if any do, take packets that this machine itself sends to it.
    pub(crate) fn hears_us(&self, group: IpAddr) -> bool {
        let wanted = self.router.wanted(group);
        wanted.is_none_or(|wanted| wanted.receives(self.interface.sends_from()))
    }

    /// From where packets may come in here, beside the link.
    pub(crate) fn sources(&self) -> &[Network] {
        &self.sources
    }

    /// Whether packets of this source may come in here.
    pub(crate) fn may_send(&self, source: IpAddr) -> bool {
        self.interface.is_of_link(source) || self.sources.iter().any(|network| network.contains(source))
    }

    pub(crate) fn state(&self) -> InterfaceState {
        InterfaceState {
            name: Name::clone(&self.name),
            querier: self.router.querier(),
            is_querier: self.router.is_querier(),
            groups: self.router.groups().map(|(group, wanted)| (group, wanted.into())).collect(),
            usage: self.router.usage(),
            refused: self.router.counters().iter().filter(|(_, times)| *times > 0).collect(),
        }
    }
}
