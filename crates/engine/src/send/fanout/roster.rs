//! A cohort as the kernel's fan-out has it: each member has the place in a group of the kernel's
//! table that it has in the cohort, track by track.

use std::net::{IpAddr, SocketAddr};

use outflow_kernel::{Ends, Group, Kernel, Part, TableFull, Target};
use outflow_relay::SinkKey;
use outflow_routes::Routes;
use slab::Slab;

use super::rule::FanoutPath;
use super::standing::{LOOPS, NO_PORT, OTHER_FAMILY, Standing, TABLE_FULL};
use crate::send::udp::{UdpPort, UdpRoute};

/// Destination, source and device of a route that is asked for.
pub(super) type Flow = (IpAddr, Option<IpAddr>, Option<u32>);

/// The states of receivers and of routes of which a roster is made; each rises with every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Versions {
    pub(super) receivers: u64,
    pub(super) routes: u64,
    /// Of the cohort's members.
    pub(super) members: u64,
}

/// Members of a cohort, and their places in the kernel's table.
#[derive(Debug, Default)]
pub(super) struct Roster {
    /// The members as they were when they got their places.
    members: Vec<Member>,
    versions: Versions,
    tracks: Vec<Listed>,
    /// The way that the last packets went.
    pub(super) path: Option<FanoutPath>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Member {
    key: SinkKey,
    receiver: u64,
    part: Part,
}

/// The targets of one track.
#[derive(Debug)]
pub(super) struct Listed {
    track: u8,
    pub(super) group: Group,
    places: Vec<Place>,
    /// Members that the kernel reaches.
    pub(super) reached: usize,
    /// Bytes of payload that fit the MTU of every target.
    pub(super) payload_max: usize,
    /// All devices take XDP frames.
    pub(super) xdp: bool,
}

/// A member's place.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// What its route was asked for, if it has an address of which that can be asked.
    asked: Option<Flow>,
    /// Whether the kernel reaches it.
    reached: bool,
}

/// What a roster is made from.
pub(super) struct Sources<'a, R> {
    pub(super) kernel: &'a mut Kernel,
    pub(super) routes: &'a mut Routes,
    pub(super) ports: &'a Slab<UdpPort>,
    pub(super) route_of: R,
    /// What a member gets of layered packets.
    pub(super) part_of: &'a dyn Fn(SinkKey) -> Part,
    pub(super) versions: Versions,
}

impl Roster {
    /// Brings it up to date, if members, their addresses or the routes to them have changed; `tell`
    /// learns how the members concerned stand. Returns the targets of `track`.
    pub(super) fn update<'r, R: Fn(SinkKey) -> Option<&'r UdpRoute>>(
        &mut self,
        all: &[SinkKey],
        track: u8,
        mut sources: Sources<'_, R>,
        mut tell: impl FnMut(SinkKey, Result<(), Standing>),
    ) -> Option<&mut Listed> {
        if self.versions.routes != sources.versions.routes {
            self.clear(sources.kernel);
        }
        let are_members = || self.members.iter().map(|member| member.key).eq(all.iter().copied());
        if self.versions != sources.versions || !are_members() {
            if self.follow(all, &mut sources, &mut tell).is_err() {
                self.clear(sources.kernel);
                all.iter().for_each(|key| tell(*key, Err(TABLE_FULL)));
                return None;
            }
            self.versions = sources.versions;
        }
        let index = match self.tracks.iter().position(|listed| listed.track == track) {
            Some(index) => index,
            None => {
                let listed = Listed::new(track, all, &mut sources, &mut tell);
                let full = |_: &TableFull| all.iter().for_each(|key| tell(*key, Err(TABLE_FULL)));
                self.tracks.push(listed.inspect_err(full).ok()?);
                self.tracks.len() - 1
            }
        };
        self.tracks.get_mut(index)
    }

    /// Gives places to members that have come or moved.
    fn follow<'r, R: Fn(SinkKey) -> Option<&'r UdpRoute>>(
        &mut self,
        all: &[SinkKey],
        sources: &mut Sources<'_, R>,
        tell: &mut impl FnMut(SinkKey, Result<(), Standing>),
    ) -> Result<(), TableFull> {
        for listed in &mut self.tracks {
            listed.resize(all.len(), sources.kernel)?;
        }
        self.members.truncate(all.len());
        for (place, &key) in all.iter().enumerate() {
            let receiver = (sources.route_of)(key).map_or(0, |route| route.receiver);
            let member = Member { key, receiver, part: (sources.part_of)(key) };
            match self.members.get_mut(place) {
                Some(known) if *known == member => continue,
                Some(known) => *known = member,
                None => self.members.push(member),
            }
            for listed in &mut self.tracks {
                listed.put(place, key, sources, tell);
            }
        }
        Ok(())
    }

    /// The targets of a track, as they were found by [`Roster::update`].
    pub(super) fn listed(&mut self, track: u8) -> Option<&mut Listed> {
        self.tracks.iter_mut().find(|listed| listed.track == track)
    }

    /// What routes were asked for its members.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Flow> {
        self.tracks.iter().flat_map(|listed| listed.places.iter().filter_map(|place| place.asked.as_ref()))
    }

    /// Frees its entries in the kernel's table.
    pub(super) fn clear(&mut self, kernel: &mut Kernel) {
        self.tracks.drain(..).for_each(|listed| kernel.remove_group(listed.group));
        self.members.clear();
    }
}

impl Listed {
    fn new<'r, R: Fn(SinkKey) -> Option<&'r UdpRoute>>(
        track: u8,
        all: &[SinkKey],
        sources: &mut Sources<'_, R>,
        tell: &mut impl FnMut(SinkKey, Result<(), Standing>),
    ) -> Result<Self, TableFull> {
        let group = sources.kernel.add_group(all.len())?;
        let places = vec![Place::default(); all.len()];
        let mut listed = Listed { track, group, places, reached: 0, payload_max: usize::MAX, xdp: true };
        for (place, &key) in all.iter().enumerate() {
            listed.put(place, key, sources, tell);
        }
        Ok(listed)
    }

    fn resize(&mut self, members: usize, kernel: &mut Kernel) -> Result<(), TableFull> {
        self.reached -= self.places.iter().skip(members).filter(|place| place.reached).count();
        self.places.resize(members, Place::default());
        kernel.resize_group(&mut self.group, members)
    }

    /// Gives a place to a member: with its addresses, or blank if the kernel does not reach it.
    fn put<'r, R: Fn(SinkKey) -> Option<&'r UdpRoute>>(
        &mut self,
        place: usize,
        key: SinkKey,
        sources: &mut Sources<'_, R>,
        tell: &mut impl FnMut(SinkKey, Result<(), Standing>),
    ) {
        let asked = (sources.route_of)(key).ok_or(NO_PORT);
        let asked = asked.and_then(|route| Asked::of(route, self.track, sources.ports));
        let flow = asked.as_ref().ok().map(|asked| asked.flow);
        let part = (sources.part_of)(key);
        let found = asked.and_then(|asked| asked.resolve(sources.routes, part));
        let reached = found.is_ok();
        self.reached += usize::from(reached);
        self.reached -= usize::from(self.places[place].reached);
        self.places[place] = Place { asked: flow, reached };
        match found {
            Ok(found) => {
                self.payload_max = self.payload_max.min(found.payload_max);
                self.xdp &= found.xdp;
                sources.kernel.set_target(&mut self.group, place, Some(&found.target));
                tell(key, Ok(()));
            }
            Err(standing) => {
                sources.kernel.set_target(&mut self.group, place, None);
                tell(key, Err(standing));
            }
        }
    }
}

/// How the kernel reaches a sink.
struct Found {
    target: Target,
    payload_max: usize,
    xdp: bool,
}

/// A sink's address, and what its route is asked for.
struct Asked<'a> {
    to: SocketAddr,
    port: &'a UdpPort,
    flow: Flow,
}

impl<'a> Asked<'a> {
    fn of(route: &UdpRoute, track: u8, ports: &'a Slab<UdpPort>) -> Result<Self, Standing> {
        let to = route.address(track).and_then(|to| to.as_socket());
        let (Some(to), Some(port)) = (to, ports.get(route.socket)) else { return Err(NO_PORT) };
        if port.loops() {
            return Err(LOOPS);
        }
        // An address of a link says by which device.
        let scope = if let SocketAddr::V6(to) = to { to.scope_id() } else { 0 };
        let interface = port.interface.or((scope != 0).then_some(scope));
        Ok(Asked { to, port, flow: (to.ip(), port.own_address(), interface) })
    }

    fn resolve(self, routes: &mut Routes, part: Part) -> Result<Found, Standing> {
        let Asked { to, port, flow } = self;
        let hop = routes.resolve(flow.0, flow.1, flow.2).map_err(|no| Standing::from(&no))?;
        let from = SocketAddr::new(hop.source, port.local.port());
        let ends = Ends::new(from, to).ok_or(OTHER_FAMILY)?;
        let target = Target {
            ifindex: hop.ifindex,
            source_mac: hop.source_mac,
            target_mac: hop.target_mac,
            ends,
            ttl: port.ttl,
            tos: port.tos,
            part,
        };
        let payload_max = (hop.mtu as usize).saturating_sub(ends.header_bytes());
        Ok(Found { target, payload_max, xdp: hop.xdp_transmit })
    }
}
