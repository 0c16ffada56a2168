//! The driver: it gives the core virtual time and carries out its orders on modelled paths.

use core::time::Duration;

use outflow_media::Time;
use outflow_relay::control::{Event, Output};
use outflow_relay::{
    Carriage, Order, Priority, Report, SinkKey, SinkSpec, Stream, StreamOptions, Timing, TrackMask,
    Transport, WhenFull, Whom,
};

use crate::agenda::Agenda;
use crate::outcome::Outcome;
use crate::receiver::Path;
use crate::scenario::Scenario;
use crate::source::Source;

#[derive(Debug, Clone, Copy)]
enum Happening {
    Frame,
    Join(usize),
    Stall(usize),
    Writable(usize),
    Poll,
}

/// A receiver: what it is, and what became of it.
struct Player {
    path: Option<Path>,
    stalls: bool,
    key: Option<SinkKey>,
}

struct World {
    agenda: Agenda<Happening>,
    stream: Stream,
    source: Source,
    players: Vec<Player>,
    /// Players by their sink's key.
    by_key: Vec<Option<usize>>,
    rng: fastrand::Rng,
    outcome: Outcome,
}

/// Plays a scenario.
pub fn run(scenario: &Scenario) -> Outcome {
    let mut world = World::new(scenario);
    let end = seconds(scenario.duration);
    while world.agenda.next_at().is_some_and(|at| at < end) {
        let Some((now, happening)) = world.agenda.take() else { break };
        world.happen(now, happening);
        world.serve(now);
    }
    world.close()
}

impl World {
    fn new(scenario: &Scenario) -> Self {
        let options = StreamOptions {
            ring_bytes: scenario.relay.ring_bytes,
            hopeless_after: Duration::from_secs_f64(scenario.relay.hopeless_after),
            source_timeout: Duration::from_secs(2),
            when_full: WhenFull::SlowestSink,
            ssrc: 1,
            seed: scenario.seed,
            ntp_at_zero: 0,
        };
        let mut world = World {
            agenda: Agenda::new(),
            stream: Stream::new(options),
            source: Source::new(scenario.source.clone()),
            players: Vec::new(),
            by_key: Vec::new(),
            rng: fastrand::Rng::with_seed(scenario.seed),
            outcome: Outcome::default(),
        };
        world.stream.handle_source(Time::ZERO, Source::format());
        world.agenda.add(Time::ZERO, Happening::Frame);
        world.invite(scenario);
        world
    }

    fn invite(&mut self, scenario: &Scenario) {
        let receivers = &scenario.receivers;
        for index in 0..receivers.count {
            let datagram = self.rng.f64() < receivers.datagram_share;
            let stalls = !datagram && self.rng.f64() < receivers.stalled_share;
            let path = (!datagram).then(|| Path::new(receivers.link_bps, receivers.buffer_bytes, Time::ZERO));
            self.players.push(Player { path, stalls, key: None });
            let joins = seconds(self.rng.f64() * receivers.join_spread);
            self.agenda.add(joins, Happening::Join(index));
            if stalls {
                self.agenda.add(seconds(receivers.stall_at), Happening::Stall(index));
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
            Happening::Writable(player) => {
                if let Some(key) = self.players[player].key {
                    self.stream.handle_report(key, Report::Writable);
                }
            }
            Happening::Poll => {}
        }
    }

    fn join(&mut self, now: Time, player: usize) {
        let datagram = self.players[player].path.is_none();
        let transport = if datagram { Transport::Datagram } else { Transport::Stream };
        let (carriage, tracks) = (Carriage::Rtp, TrackMask::ALL);
        let (priority, timing) = (Priority::Normal, Timing::default());
        let spec = SinkSpec { carriage, transport, tracks, priority, timing, held: false };
        let key = self.stream.handle_join(now, player as u64, spec);
        self.players[player].key = Some(key);
        self.by_key.resize(self.by_key.len().max(key.0 + 1), None);
        self.by_key[key.0] = Some(player);
    }

    /// Does what the core asks until it has nothing more to ask.
    fn serve(&mut self, now: Time) {
        loop {
            match self.stream.poll(now) {
                Output::Order(order) => self.carry_out(now, &order),
                Output::Event(Event::SinkEnded { key, id, .. }) => {
                    self.by_key[key.0] = None;
                    self.players[id as usize].key = None;
                    self.outcome.ended += 1;
                }
                Output::Event(_) | Output::SenderReports(_) => {}
                Output::Wait { until: Some((at, _)) } if at > now => {
                    // A poll too many is harmless; one is put down only if none comes before it.
                    if self.agenda.next_at().is_none_or(|next| at < next) {
                        self.agenda.add(at, Happening::Poll);
                    }
                    return;
                }
                Output::Wait { .. } => return,
            }
        }
    }

    fn carry_out(&mut self, now: Time, order: &Order) {
        let members = match order.whom {
            Whom::One(key) => vec![key],
            Whom::Cohort { .. } => self.stream.members(order).to_vec(),
        };
        for key in members {
            if let Some(player) = self.by_key.get(key.0).copied().flatten() {
                self.deliver(now, order, key, player);
            }
        }
    }

    fn deliver(&mut self, now: Time, order: &Order, key: SinkKey, player: usize) {
        let mut blocked = None;
        for (seq, entry) in self.stream.packets(order) {
            let bytes = entry.packet.bytes.len();
            let path = &mut self.players[player].path;
            if path.as_mut().is_some_and(|path| !path.take(now, bytes)) {
                blocked = Some(seq);
                break;
            }
            self.outcome.delivered += 1;
            self.outcome.digest.delivery(player as u64, seq, now);
            if matches!(order.whom, Whom::Cohort { .. }) && !self.players[player].stalls {
                let delay = now.since(entry.packet.arrived).as_nanos() as u64;
                self.outcome.healthy_delay_most_ns = self.outcome.healthy_delay_most_ns.max(delay);
            }
        }
        let Some(next) = blocked else { return };
        self.stream.handle_report(key, Report::Blocked { next });
        let path = self.players[player].path.as_mut();
        if let Some(at) = path.and_then(|path| path.writable_at(now)) {
            self.agenda.add(at, Happening::Writable(player));
        }
    }

    fn close(mut self) -> Outcome {
        for (key, _) in self.stream.sinks() {
            let lost = self.stream.sink_drops(key).total();
            match self.by_key.get(key.0).copied().flatten() {
                Some(player) if self.players[player].stalls => self.outcome.stalled_lost += lost,
                _ => self.outcome.healthy_lost += lost,
            }
        }
        let (_, mut drops, _) = self.stream.past();
        self.outcome.stalled_lost += drops.total();
        self.stream.sinks().for_each(|(key, _)| drops.merge(&self.stream.sink_drops(key)));
        drops.merge(&self.stream.source_counters().drops);
        self.outcome.drops = drops.iter().filter(|(_, n)| *n > 0).map(|(r, n)| (r.as_str(), n)).collect();
        self.outcome
    }
}

fn seconds(s: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(s)
}
