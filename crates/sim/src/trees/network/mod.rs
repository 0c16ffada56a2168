//! What happens from outside: sources, receivers, deaths, partitions; and how the time passes.

mod events;
mod figures;

use core::time::Duration;

use fastrand::Rng;
use outflow_media::Time;
use outflow_routing::Level;
use outflow_routing::tree::StreamId;

use super::crowd::{Crowd, departures};
use super::directory::Directory;
use super::media::Media;
use super::relays::Relays;
use super::timetable::{Event, Timetable};

/// What a driver needs to see that media no longer flows, or that no relay answers: least, and most on top.
const SILENCE_MS: (u64, u64) = (400, 100);

/// A network to be made.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Relays.
    pub relays: usize,
    /// How many others each of them serves at the most.
    pub children_max: usize,
    /// What all chance comes from.
    pub seed: u64,
}

/// Relays, what is under way between them, and what came of it so far.
#[derive(Debug)]
pub struct Network {
    timetable: Timetable,
    relays: Relays,
    random: Rng,
    media: Media,
    crowd: Option<Crowd>,
    settings: Settings,
    loss: u32,
    directory: Directory,
    /// Relays to which another edge may lead.
    touched: Vec<(StreamId, usize)>,
}

impl Network {
    /// Relays that have and want nothing.
    pub fn new(settings: Settings) -> Self {
        let mut random = Rng::with_seed(settings.seed);
        Network {
            timetable: Timetable::new(),
            relays: Relays::new(settings.relays, settings.children_max, &mut random),
            random,
            media: Media::default(),
            crowd: None,
            settings,
            loss: 0,
            directory: Directory::new(),
            touched: Vec::new(),
        }
    }

    /// Where what is to be chosen by chance is drawn from.
    pub const fn random(&mut self) -> &mut Rng {
        &mut self.random
    }

    /// Of a thousand messages `of_a_thousand` are lost from now on.
    pub const fn set_loss(&mut self, of_a_thousand: u32) {
        self.loss = of_a_thousand;
    }

    /// A source of the stream comes to the relay, with this preference, or goes.
    pub fn set_source(&mut self, relay: usize, stream: StreamId, preference: Option<u8>) {
        let now = self.now();
        self.relays[relay].views.entry(stream).or_default().source = preference;
        if self.relays[relay].is_alive {
            self.relays[relay].node.handle_source(now, stream, preference);
            self.media.relight(now, &mut self.relays, stream, relay);
            self.drain(relay);
            self.look(relay, stream);
        }
    }

    /// `count` receivers at the relay want this level from now on.
    pub fn set_receivers(&mut self, relay: usize, stream: StreamId, level: Level, count: u64) {
        self.relays[relay].views.entry(stream).or_default().receivers.insert(level, count);
        self.media.settle_darkness(self.timetable.now(), &mut self.relays, relay, stream);
        if self.relays[relay].is_alive {
            self.tell_receivers(relay, stream, level, count);
            self.look(relay, stream);
        }
    }

    fn tell_receivers(&mut self, relay: usize, stream: StreamId, level: Level, count: u64) {
        let now = self.now();
        let node = &mut self.relays[relay].node;
        if node.handle_receivers(now, stream, level, count).is_err() {
            self.media.fault(now, format_args!("{relay} has no room for receivers of {stream:?}"));
        }
        self.drain(relay);
    }

    /// As many receivers as there are in the crowd come to the relay, each with a level of its own.
    pub fn gather(&mut self, relay: usize, stream: StreamId, crowd: &Crowd) {
        let arrivals = crowd.arrivals(&mut self.random);
        self.set_all_receivers(relay, stream, arrivals);
    }

    /// All receivers of the stream leave the relay.
    pub fn scatter(&mut self, relay: usize, stream: StreamId) {
        let departures = self.relays[relay].view(stream).map(departures).unwrap_or_default();
        self.set_all_receivers(relay, stream, departures);
    }

    fn set_all_receivers(&mut self, relay: usize, stream: StreamId, counts: Vec<(Level, u64)>) {
        for (level, count) in counts {
            self.set_receivers(relay, stream, level, count);
        }
    }

    /// From now on receivers come, go and change as this crowd does, or no more.
    pub fn set_crowd(&mut self, crowd: Option<Crowd>) {
        let was = core::mem::replace(&mut self.crowd, crowd);
        if let Some(crowd) = crowd
            && was.is_none()
        {
            for relay in 0..self.relays.len() {
                self.change_again(relay, &crowd);
            }
        }
    }

    fn change_again(&mut self, relay: usize, crowd: &Crowd) {
        let wait = crowd.wait(&mut self.random);
        self.timetable.add(wait, Event::Change { relay });
    }

    /// The relay is gone without a word.
    pub fn kill(&mut self, relay: usize) {
        self.relays[relay].is_alive = false;
        self.relays[relay].life += 1;
        for stream in self.relays.streams_of(relay) {
            self.media.settle_darkness(self.timetable.now(), &mut self.relays, relay, stream);
        }
        self.lose_unreachable(|a, b| a == relay || b == relay);
    }

    /// The relay does not get the stream from its parent, though both are there and say what they should.
    pub fn fail(&mut self, relay: usize, stream: StreamId) {
        let now = self.now();
        let it = &mut self.relays[relay];
        if let Some((parent, _)) = it.node.parent(stream).filter(|_| it.is_alive) {
            it.node.handle_failed(now, stream, parent);
            self.drain(relay);
            self.look(relay, stream);
        }
    }

    /// It starts again, with the receivers and the sources it had.
    pub fn restart(&mut self, relay: usize) {
        if self.relays[relay].is_alive {
            self.kill(relay);
        }
        self.relays[relay].restart(self.settings.children_max);
        for stream in self.relays.streams_of(relay) {
            let Some(view) = self.relays[relay].view(stream) else { continue };
            let (source, receivers) = (view.source, view.receivers.clone());
            self.media.settle_darkness(self.timetable.now(), &mut self.relays, relay, stream);
            for (level, count) in receivers.into_iter().filter(|(_, count)| *count > 0) {
                self.tell_receivers(relay, stream, level, count);
            }
            if source.is_some() {
                self.set_source(relay, stream, source);
            }
            self.look(relay, stream);
        }
    }

    /// Which relay is in which part from now on. The directory is in part 0.
    pub fn divide(&mut self, part: impl Fn(usize) -> u8) {
        for relay in 0..self.relays.len() {
            let before = core::mem::replace(&mut self.relays[relay].part, part(relay));
            if before != 0 && self.relays[relay].part == 0 {
                self.directory_back(relay);
            }
        }
        self.lose_unreachable(|_, _| true);
    }

    /// The directory fails or is back. What it knew, it knows still, as far as that is not too old.
    pub fn set_directory(&mut self, is_there: bool) {
        self.directory.is_there = is_there;
        for relay in 0..self.relays.len() {
            if is_there {
                self.directory_back(relay);
            }
        }
    }

    fn directory_back(&mut self, relay: usize) {
        let wait = Duration::from_millis(self.random.u64(..1000));
        let life = self.relays[relay].life;
        self.timetable.add(wait, Event::Back { relay, life });
    }

    /// The relay finds out a while later that it does not reach the other any more.
    fn find_lost(&mut self, relay: usize, life: u64, peer: usize) {
        let after = Duration::from_millis(SILENCE_MS.0 + self.random.u64(..SILENCE_MS.1));
        // If the other is dead, it was in the life before that the connection was made.
        let (is_alive, peer_life) = (self.relays[peer].is_alive, self.relays[peer].life);
        let peer_life = peer_life - u64::from(!is_alive);
        self.timetable.add(after, Event::Lost { relay, life, peer, peer_life });
    }

    /// Edges between relays that do not reach each other are gone, and those that are alive find out.
    fn lose_unreachable(&mut self, is_concerned: impl Fn(usize, usize) -> bool) {
        let edges = self.relays.named(is_concerned);
        for (stream, above, below) in edges.iter().copied() {
            if !self.relays.reaches(above, below) {
                for (relay, peer) in [(above, below), (below, above)] {
                    if self.relays[relay].is_alive {
                        self.find_lost(relay, self.relays[relay].life, peer);
                    }
                }
            }
            self.media.sends(self.timetable.now(), &mut self.relays, (stream, above, below));
        }
        let edges: Vec<_> = edges.into_iter().map(|(stream, _, below)| (stream, below)).collect();
        self.media.refresh(self.timetable.now(), &mut self.relays, &edges);
    }

    /// Lets the time pass.
    pub fn run(&mut self, duration: Duration) {
        let end = self.now() + duration;
        self.run_until(end, |_| false);
    }

    /// Lets the time pass until something is so, at the most until then. Whether it came to be so.
    pub fn run_until(&mut self, end: Time, is_enough: impl Fn(&Network) -> bool) -> bool {
        while !is_enough(self) {
            let Some(event) = self.timetable.take(end) else { return false };
            self.handle(event);
        }
        true
    }

    /// Lets the time pass until nothing is [unsettled](Self::unsettled), for so long at the most. What still
    /// is then. A change of parents is followed by holds on the way up, and reviews go on forever: one moment
    /// is enough, which in a large network may never be.
    pub fn settle(&mut self, most: Duration) -> Vec<String> {
        let end = self.now() + most;
        loop {
            let unsettled = self.unsettled();
            if unsettled.is_empty() || self.now() >= end {
                return unsettled;
            }
            self.run(Duration::from_millis(500));
        }
    }
}
