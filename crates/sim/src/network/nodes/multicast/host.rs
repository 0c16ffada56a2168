//! A host: it says which groups it wants, and at which level; it receives them, and sends to one.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use outflow_media::{Format, Time, Track};
use outflow_routing::Level;
use outflow_routing::membership::{Family, Host as Membership, HostSettings, Interest};
use serde::Deserialize;

use super::links;
use crate::network::nodes::viewer::Viewer;
use crate::network::nodes::{Figures, Node, Place, Port, udp};
use crate::network::traffic::Emission;
use crate::network::units::{duration, maybe_duration};

/// The port that hosts send from.
const PORT: u16 = 5004;

/// What a host is to do.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostModel {
    /// The groups that it wants, each at times.
    #[serde(default)]
    pub wants: Vec<GroupWant>,
}

/// A group that is wanted for a while.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupWant {
    /// Of IPv4 or IPv6.
    pub group: IpAddr,
    /// 1 is the best.
    #[serde(default = "best")]
    pub level: Level,
    /// From then on. In place of what is wanted of the group then, another level may be.
    #[serde(default, deserialize_with = "duration")]
    pub at: Duration,
    /// Until then; else as long as it runs.
    #[serde(default, deserialize_with = "maybe_duration")]
    pub until: Option<Duration>,
}

const fn best() -> Level {
    Level::BEST
}

/// A host with one interface.
#[derive(Debug)]
pub(in crate::network::nodes) struct Host {
    port: Port,
    /// Of IGMP, and of MLD.
    machines: [Membership; 2],
    /// What it wants next, in the order of time: a level, or nothing any more.
    plan: VecDeque<(Time, IpAddr, Option<Level>)>,
    /// By group.
    views: BTreeMap<IpAddr, View>,
    /// Where traffic that begins here goes.
    to: Option<SocketAddr>,
    sent: VecDeque<Bytes>,
    packets_sent: u64,
    unwanted: u64,
}

/// What is received of a group.
#[derive(Debug)]
struct View {
    viewer: Viewer,
    is_wanted: bool,
    /// When it was left last, and how long packets came from then on.
    left: Option<Time>,
    leave: Option<Duration>,
}

impl Host {
    pub(in crate::network::nodes) fn new(
        now: Time,
        model: &HostModel,
        to: Option<SocketAddr>,
        place: &Place<'_>,
    ) -> Result<Self, String> {
        let [port] = place.ports else {
            return Err("a host is on one segment: name it in the joins of one".to_owned());
        };
        let machines = || links(port).map(|link| Membership::new(now, HostSettings::new(link, place.seed)));
        let mut host = Host {
            port: *port,
            machines: machines(),
            plan: plan(&model.wants)?,
            views: BTreeMap::new(),
            to,
            sent: VecDeque::new(),
            packets_sent: 0,
            unwanted: 0,
        };
        // What cannot be wanted is told before anything runs.
        let mut trial = machines();
        for (_, group, level) in &host.plan {
            let [four, six] = &mut trial;
            let machine = if group.is_ipv4() { four } else { six };
            machine.set(now, *group, interest(*level)).map_err(|why| why.to_string())?;
        }
        host.handle_timeout(now);
        Ok(host)
    }

    fn machine(&mut self, group: IpAddr) -> &mut Membership {
        let [four, six] = &mut self.machines;
        if group.is_ipv4() { four } else { six }
    }

    /// It wants a group at a level from now on, or no more.
    fn want(&mut self, now: Time, group: IpAddr, level: Option<Level>) {
        // It was tried before anything ran.
        let _is_possible = self.machine(group).set(now, group, interest(level));
        let view = self.views.entry(group).or_insert_with(|| View {
            viewer: Viewer::new(now, &Format::Rtp(vec![Track::h264()])),
            is_wanted: false,
            left: None,
            leave: None,
        });
        let was_wanted = core::mem::replace(&mut view.is_wanted, level.is_some());
        if was_wanted && level.is_none() {
            view.left = Some(now);
            view.viewer.pause();
        }
    }

    fn view(&mut self, now: Time, group: IpAddr, rtp: &[u8]) {
        match self.views.get_mut(&group) {
            Some(View { viewer, is_wanted: true, .. }) => viewer.handle(now, rtp),
            Some(View { left: Some(left), leave, .. }) => *leave = Some(now.since(*left)),
            _ => self.unwanted += 1,
        }
    }
}

/// What it wants, in the order of time. At the same moment what begins comes after what ends.
fn plan(wants: &[GroupWant]) -> Result<VecDeque<(Time, IpAddr, Option<Level>)>, String> {
    let mut plan = Vec::new();
    for GroupWant { group, level, at, until } in wants {
        if until.is_some_and(|until| until <= *at) {
            return Err("wants: until must be later than at".to_owned());
        }
        plan.push((Time::ZERO + *at, *group, Some(*level)));
        plan.extend(until.map(|until| (Time::ZERO + until, *group, None)));
    }
    plan.sort_by_key(|(at, _, level)| (*at, level.is_some()));
    Ok(plan.into())
}

fn interest(level: Option<Level>) -> Interest<'static> {
    level.map_or(Interest::nothing(), Interest::all)
}

impl Node for Host {
    fn handle_packet(&mut self, now: Time, _: usize, packet: &Bytes) {
        if let Some((_, to, payload)) = udp::payload(packet) {
            return self.view(now, to.ip(), &payload);
        }
        let family =
            if packet.first().is_some_and(|first| first >> 4 == 4) { Family::V4 } else { Family::V6 };
        self.machines[family as usize].handle_packet(now, packet);
    }

    fn handle_traffic(&mut self, _: Time, packet: &Emission) {
        let (Some(to), Some(payload)) = (self.to, &packet.payload) else { return };
        let from = if to.is_ipv4() { IpAddr::V4(self.port.v4) } else { IpAddr::V6(self.port.v6) };
        if let Some(packet) = udp::datagram(SocketAddr::new(from, PORT), to, payload) {
            self.packets_sent += 1;
            self.sent.push_back(packet);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some((_, group, level)) = self.plan.pop_front_if(|(at, ..)| *at <= now) {
            self.want(now, group, level);
        }
        self.machines.iter_mut().for_each(|machine| machine.handle_timeout(now));
    }

    fn next_timeout(&self) -> Option<Time> {
        let machines = self.machines.iter().filter_map(Membership::next_timeout);
        machines.chain(self.plan.front().map(|(at, ..)| *at)).min()
    }

    fn poll_transmit(&mut self, _: Time) -> Option<(usize, Bytes)> {
        if let Some(packet) = self.sent.pop_front() {
            return Some((0, packet));
        }
        let mut out = Vec::new();
        let is_sent = self.machines.iter_mut().any(|machine| machine.poll_transmit(&mut out).is_some());
        is_sent.then(|| (0, out.into()))
    }

    fn figures(&self, _: Time) -> Figures {
        let mut figures = Figures::new();
        if self.to.is_some() {
            figures.insert("sent", self.packets_sent as f64);
        }
        if !self.views.is_empty() {
            Viewer::figures_of(self.views.values().map(|view| &view.viewer), &mut figures);
            let leave = self.views.values().filter_map(|view| view.leave).max();
            figures.extend(leave.map(|leave| ("leave_ms", leave.as_secs_f64() * 1e3)));
            figures.insert("unwanted", self.unwanted as f64);
        }
        figures
    }
}
