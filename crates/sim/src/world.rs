//! The driver: it gives the core virtual time and carries out its orders on modelled paths.

use core::time::Duration;

use outflow_graph::Graph;
use outflow_media::Time;
use outflow_relay::{
    BranchId, Driven, Driver, Encapsulation, Event, Order, Recipients, Report, SinkKey, SinkSpec, Stream,
    StreamOptions, Transport, drive,
};

use crate::agenda::Agenda;
use crate::outcome::{Outcome, Passed, Viewing};
use crate::receiver::{Path, Viewer, wire};
use crate::scenario::{Pausing, Receivers, Scenario, ScenarioError};
use crate::services;
use crate::source::Source;

#[derive(Debug, Clone, Copy)]
enum Happening {
    Frame,
    Join(usize),
    Stall(usize),
    Pause(usize),
    Resume(usize),
    Writable(usize),
    Poll,
}

/// A receiver: what it is, and what became of it.
struct Player {
    path: Option<Path>,
    kind: Kind,
    key: Option<SinkKey>,
    joined: Time,
    viewer: Viewer,
    /// It takes nothing, and nothing is put down that would change that.
    stuck: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Healthy,
    Slow,
    Pausing,
    Stalling,
}

struct World {
    agenda: Agenda<Happening>,
    stream: Stream,
    source: Source,
    /// What every player joins; the stream as it comes in if none.
    branch: Option<BranchId>,
    /// The first packet of it that no player got yet.
    unseen: u64,
    players: Vec<Player>,
    /// Players by their sink's key.
    by_key: Vec<Option<usize>>,
    pausing: Option<Pausing>,
    rng: fastrand::Rng,
    outcome: Outcome,
}

/// Plays a scenario.
///
/// # Errors
/// Its services cannot be made, or nothing comes out of them.
pub fn run(scenario: &Scenario) -> Result<Outcome, ScenarioError> {
    let mut world = World::new(scenario)?;
    let end = seconds(scenario.duration);
    while world.agenda.next_at().is_some_and(|at| at < end) {
        let Some((now, happening)) = world.agenda.take() else { break };
        world.happen(now, happening);
        world.serve(now);
    }
    Ok(world.close())
}

/// The core is served, at a time that stands still.
struct Turn<'a> {
    world: &'a mut World,
    now: Time,
}

impl Driver for Turn<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn stream(&mut self) -> Option<&mut Stream> {
        Some(&mut self.world.stream)
    }

    fn send(&mut self, now: Time, order: &Order) {
        self.world.carry_out(now, order);
    }

    fn event(&mut self, event: Event) {
        if let Event::SinkEnded { key, id, .. } = event {
            self.world.by_key[key.0] = None;
            self.world.players[id as usize].key = None;
            self.world.outcome.ended += 1;
        }
    }
}

impl World {
    fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let options = StreamOptions {
            ring_bytes: scenario.relay.ring_bytes,
            hopeless_after: Duration::from_secs_f64(scenario.relay.hopeless_after),
            source_timeout: Duration::from_secs(2),
            when_full: scenario.relay.when_full,
            ssrc: 1,
            seed: scenario.seed,
            ntp_at_zero: 0,
            layers: 0,
            is_relayed: false,
            weight: 1,
            reserve: 0,
            reserve_bps: 0,
        };
        let mut world = World {
            agenda: Agenda::new(),
            stream: Stream::new(options),
            source: Source::new(scenario.source.clone()),
            branch: None,
            unseen: 0,
            players: Vec::new(),
            by_key: Vec::new(),
            pausing: scenario.receivers.pausing.clone(),
            rng: fastrand::Rng::with_seed(scenario.seed),
            outcome: Outcome::default(),
        };
        world.stream.handle_source(Time::ZERO, Source::format());
        world.branch = services::put(&mut world.stream, scenario)?;
        world.agenda.add(Time::ZERO, Happening::Frame);
        world.invite(scenario);
        Ok(world)
    }

    fn invite(&mut self, scenario: &Scenario) {
        let receivers = &scenario.receivers;
        for index in 0..receivers.count {
            let datagram = self.rng.f64() < receivers.datagram_share;
            let kind = if datagram { Kind::Healthy } else { kind(receivers, self.rng.f64()) };
            let bps = match &receivers.slow {
                Some(slow) if kind == Kind::Slow => {
                    let share = slow.rate_from + (slow.rate_to - slow.rate_from) * self.rng.f64();
                    (scenario.source.mean_bps() * share) as u64
                }
                _ => receivers.link_bps,
            };
            let path = (!datagram).then(|| Path::new(bps, receivers.buffer_bytes, Time::ZERO));
            let joins = seconds(self.rng.f64() * receivers.join_spread);
            let viewer = Viewer::default();
            self.players.push(Player { path, kind, key: None, joined: joins, viewer, stuck: false });
            self.agenda.add(joins, Happening::Join(index));
            match kind {
                Kind::Stalling => self.agenda.add(seconds(receivers.stall_at), Happening::Stall(index)),
                Kind::Pausing => self.agenda.add(joins, Happening::Resume(index)),
                Kind::Healthy | Kind::Slow => {}
            }
        }
    }

    fn happen(&mut self, now: Time, happening: Happening) {
        match happening {
            Happening::Frame => {
                for packet in self.source.frame(&mut self.rng) {
                    self.outcome.source_packets += 1;
                    self.stream.handle_media(now, 0, packet.into());
                }
                let (held, _) = self.stream.ring_use();
                self.outcome.ring_bytes_most = self.outcome.ring_bytes_most.max(held);
                self.agenda.add(self.source.due(), Happening::Frame);
            }
            Happening::Join(player) => self.join(now, player),
            Happening::Stall(player) => {
                if let Some(path) = &mut self.players[player].path {
                    path.stall(now);
                }
            }
            Happening::Pause(player) => self.pause(now, player),
            Happening::Resume(player) => self.resume(now, player),
            Happening::Writable(player) => {
                if let Some(key) = self.players[player].key {
                    self.stream.handle_report(key, Report::Writable);
                }
            }
            Happening::Poll => {}
        }
    }

    /// A receiver stops reading for a while.
    fn pause(&mut self, now: Time, player: usize) {
        let (Some(path), Some(pausing)) = (&mut self.players[player].path, &self.pausing) else { return };
        path.stall(now);
        let lasting = about(&mut self.rng, pausing.lasting);
        self.agenda.add(now + lasting, Happening::Resume(player));
    }

    /// It reads again, until the next pause.
    fn resume(&mut self, now: Time, player: usize) {
        let stuck = core::mem::take(&mut self.players[player].stuck);
        let (Some(path), Some(pausing)) = (&mut self.players[player].path, &self.pausing) else { return };
        path.resume(now);
        if let Some(at) = path.writable_at(now).filter(|_| stuck) {
            self.agenda.add(at, Happening::Writable(player));
        }
        let every = about(&mut self.rng, pausing.every);
        self.agenda.add(now + every, Happening::Pause(player));
    }

    fn join(&mut self, now: Time, player: usize) {
        let datagram = self.players[player].path.is_none();
        let transport = if datagram { Transport::Datagram } else { Transport::Stream };
        let spec = SinkSpec { branch: self.branch, ..SinkSpec::new(Encapsulation::Rtp, transport) };
        let key = self.stream.handle_join(now, player as u64, spec);
        self.players[player].key = Some(key);
        self.by_key.resize(self.by_key.len().max(key.0 + 1), None);
        self.by_key[key.0] = Some(player);
    }

    /// Does what the core asks until it has nothing more to ask.
    fn serve(&mut self, now: Time) {
        let Driven::Until(Some(at)) = drive(&mut Turn { world: self, now }, None) else { return };
        // A poll too many is harmless; one is put down only if none comes before it.
        if at > now && self.agenda.next_at().is_none_or(|next| at < next) {
            self.agenda.add(at, Happening::Poll);
        }
    }

    fn carry_out(&mut self, now: Time, order: &Order) {
        let members = self.stream.members(order).to_vec();
        for key in members {
            if let Some(player) = self.by_key.get(key.0).copied().flatten() {
                self.deliver(now, order, key, player);
            }
        }
    }

    fn deliver(&mut self, now: Time, order: &Order, key: SinkKey, player: usize) {
        let mut blocked = None;
        for (seq, entry, _) in self.stream.packets(order, self.stream.share(order, key)) {
            let (header, body) = wire(entry);
            let bytes = header.len() + body.len();
            let Player { path, viewer, kind, joined, .. } = &mut self.players[player];
            if path.as_mut().is_some_and(|path| !path.take(now, bytes)) {
                blocked = Some(seq);
                break;
            }
            viewer.packet(entry);
            let through = path.as_ref().map_or(Some(now), |path| path.through_at(now));
            let through = through.filter(|_| entry.packet.arrived >= *joined);
            if let (Some(at), Some(viewing)) = (through, viewing(&mut self.outcome, *kind)) {
                viewing.delays.add(at.since(entry.packet.arrived));
            }
            self.outcome.delivered += 1;
            self.outcome.digest.delivery(player as u64, seq, now);
            if seq >= self.unseen {
                self.unseen = seq + 1;
                self.outcome.content.bytes(header);
                self.outcome.content.bytes(body);
            }
            if matches!(order.recipients, Recipients::Cohort { .. }) && *kind == Kind::Healthy {
                let delay = now.since(entry.packet.arrived).as_nanos() as u64;
                self.outcome.healthy_delay_most_ns = self.outcome.healthy_delay_most_ns.max(delay);
            }
        }
        let Some(next) = blocked else { return };
        self.stream.handle_report(key, Report::Blocked { next });
        let path = self.players[player].path.as_mut();
        match path.and_then(|path| path.writable_at(now)) {
            Some(at) => self.agenda.add(at, Happening::Writable(player)),
            None => self.players[player].stuck = true,
        }
    }

    fn close(mut self) -> Outcome {
        for (key, _) in self.stream.sinks() {
            let lost = self.stream.sink_drops(key).total();
            match self.by_key.get(key.0).copied().flatten() {
                Some(player) if self.players[player].kind != Kind::Healthy => {
                    self.outcome.others_lost += lost
                }
                _ => self.outcome.healthy_lost += lost,
            }
        }
        for Player { kind, viewer, .. } in &self.players {
            if let (Some(first), Some(viewing)) = (viewer.first, viewing(&mut self.outcome, *kind)) {
                viewing.receivers += 1;
                viewing.frames += self.source.frames_since(first);
                viewing.decodable += viewer.decodable;
            }
        }
        let (_, mut drops, _) = self.stream.past();
        self.outcome.others_lost += drops.total();
        self.stream.sinks().for_each(|(key, _)| drops.merge(&self.stream.sink_drops(key)));
        drops.merge(&self.stream.source_counters().drops);
        for report in self.stream.services().into_iter().flat_map(Graph::report) {
            drops.merge(&report.drops);
            let (packets_in, packets_out) = (report.gauge.packets_in, report.gauge.packets_out);
            let passed = Passed { packets_in, packets_out, faults: report.faults, fault: report.fault };
            self.outcome.elements.insert(report.name, passed);
        }
        self.outcome.drops = drops.iter().filter(|(_, n)| *n > 0).map(|(r, n)| (r.as_str(), n)).collect();
        self.outcome
    }
}

/// The kind of a byte stream, drawn by `chance`, which is 0 to 1.
fn kind(receivers: &Receivers, chance: f64) -> Kind {
    let stalling = receivers.stalled_share;
    let slow = stalling + receivers.slow.as_ref().map_or(0.0, |slow| slow.share);
    let pausing = slow + receivers.pausing.as_ref().map_or(0.0, |pausing| pausing.share);
    match chance {
        chance if chance < stalling => Kind::Stalling,
        chance if chance < slow => Kind::Slow,
        chance if chance < pausing => Kind::Pausing,
        _ => Kind::Healthy,
    }
}

/// Where it is counted what receivers of a kind saw.
fn viewing(outcome: &mut Outcome, kind: Kind) -> Option<&mut Viewing> {
    match kind {
        Kind::Healthy => Some(&mut outcome.healthy),
        Kind::Slow | Kind::Pausing => Some(&mut outcome.lagging),
        Kind::Stalling => None,
    }
}

/// A time between nothing and twice that mean, in seconds.
fn about(rng: &mut fastrand::Rng, mean: f64) -> Duration {
    Duration::from_secs_f64(2.0 * mean * rng.f64())
}

fn seconds(s: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(s)
}
