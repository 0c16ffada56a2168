//! What happens: messages, timeouts, deaths, partitions.

use core::time::Duration;

use fastrand::Rng;
use outflow_media::Time;
use outflow_routing::Level;
use outflow_routing::tree::{Action, Contact, Location, Message, Offer, RelayId, StreamId};
use slab::Slab;

use super::count::Traffic;
use super::crowd::Crowd;
use super::directory::{Directory, WAY};
use super::media::Media;
use super::relay::Relay;
use crate::agenda::Agenda;

/// What a driver needs to see that media no longer flows, or that no relay answers: least, and most on top.
const SILENCE_MS: (u64, u64) = (400, 100);
/// What a message takes besides its way.
const HANDLING: Duration = Duration::from_micros(500);
/// Where relays are: places on a map of `MAP_KM` kilometres, and around them.
const PLACES: usize = 10;
const MAP_KM: (i32, i32) = (16_000, 8_000);
const AROUND_KM: i32 = 50;

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

#[derive(Debug)]
enum Event {
    Wake { relay: usize },
    Message { from: usize, life: u64, to: usize, stream: StreamId, message: Message },
    Lost { relay: usize, life: u64, peer: usize, peer_life: u64 },
    Put { relay: usize, stream: StreamId, offer: Option<Offer> },
    Ask { relay: usize, life: u64, stream: StreamId },
    Offers { relay: usize, life: u64, stream: StreamId, offers: Vec<Offer> },
    Back { relay: usize, life: u64 },
    Change { relay: usize },
}

/// Relays, what is under way between them, and what came of it so far.
#[derive(Debug)]
pub struct Network {
    pub(super) now: Time,
    pub(super) relays: Vec<Relay>,
    pub(super) random: Rng,
    pub(super) media: Media,
    pub(super) crowd: Option<Crowd>,
    settings: Settings,
    loss: u32,
    directory: Directory,
    agenda: Agenda<usize>,
    events: Slab<Event>,
    handled: u64,
    /// Relays to which another edge may lead.
    touched: Vec<(StreamId, usize)>,
}

impl Network {
    /// Relays that have and want nothing.
    pub fn new(settings: Settings) -> Self {
        let mut random = Rng::with_seed(settings.seed);
        let place = |_| Location { x_km: random.i32(0..MAP_KM.0), y_km: random.i32(0..MAP_KM.1) };
        let places: Vec<_> = (0..PLACES).map(place).collect();
        let mut around = || random.i32(-AROUND_KM..AROUND_KM);
        let mut locations = Vec::with_capacity(settings.relays);
        for _ in 0..settings.relays {
            locations.push((around(), around()));
        }
        let relay = |(relay, (x_km, y_km)): (usize, (i32, i32))| {
            let place = places[random.usize(..places.len())];
            let location = Location { x_km: place.x_km + x_km, y_km: place.y_km + y_km };
            let address = ([10, (relay >> 16) as u8, (relay >> 8) as u8, relay as u8], 4433).into();
            let contact = Contact { relay: RelayId(relay as u64), address, location };
            Relay::new(contact, settings.children_max)
        };
        Network {
            now: Time::from_millis(1),
            relays: locations.into_iter().enumerate().map(relay).collect(),
            random,
            media: Media::default(),
            crowd: None,
            settings,
            loss: 0,
            directory: Directory::new(),
            agenda: Agenda::new(),
            events: Slab::new(),
            handled: 0,
            touched: Vec::new(),
        }
    }

    /// The virtual time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// How many relays there are, dead or alive.
    pub const fn len(&self) -> usize {
        self.relays.len()
    }

    /// Whether there are no relays.
    pub const fn is_empty(&self) -> bool {
        self.relays.is_empty()
    }

    /// Where what is to be chosen by chance is drawn from.
    pub const fn random(&mut self) -> &mut Rng {
        &mut self.random
    }

    /// What happened so far, to measure the simulator by.
    pub const fn events(&self) -> u64 {
        self.handled
    }

    /// Whether the relay is alive.
    pub fn is_alive(&self, relay: usize) -> bool {
        self.relays[relay].is_alive
    }

    /// What all relays said so far.
    pub fn traffic(&self) -> Traffic {
        let mut sum = Traffic::default();
        self.relays.iter().for_each(|relay| sum.add(relay.counted.traffic));
        sum
    }

    /// What a relay said so far.
    pub fn traffic_of(&self, relay: usize) -> Traffic {
        self.relays[relay].counted.traffic
    }

    /// The most that a relay said in a second, since this was asked last.
    pub fn take_most_in_second(&mut self) -> u64 {
        let most = self.relays.iter_mut().map(|relay| core::mem::take(&mut relay.counted.most_in_second));
        most.max().unwrap_or(0)
    }

    /// Entries that a relay keeps: streams, parents, children, asks and candidates.
    pub fn entries(&self, relay: usize) -> usize {
        self.relays[relay].node.state()
    }

    /// Of a thousand messages `of_a_thousand` are lost from now on.
    pub const fn set_loss(&mut self, of_a_thousand: u32) {
        self.loss = of_a_thousand;
    }

    fn push(&mut self, after: Duration, event: Event) {
        let key = self.events.insert(event);
        self.agenda.add(self.now + after, key);
    }

    /// A source of the stream comes to the relay, with this preference, or goes.
    pub fn set_source(&mut self, relay: usize, stream: StreamId, preference: Option<u8>) {
        self.relays[relay].views.entry(stream).or_default().source = preference;
        if self.relays[relay].is_alive {
            self.relays[relay].node.handle_source(self.now, stream, preference);
            self.relight(stream, relay);
            self.drain(relay);
            self.look(relay, stream);
        }
    }

    /// `count` receivers at the relay want this level from now on.
    pub fn set_receivers(&mut self, relay: usize, stream: StreamId, level: Level, count: u64) {
        self.relays[relay].views.entry(stream).or_default().receivers.insert(level, count);
        self.settle_darkness(relay, stream);
        if self.relays[relay].is_alive {
            self.tell_receivers(relay, stream, level, count);
            self.look(relay, stream);
        }
    }

    fn tell_receivers(&mut self, relay: usize, stream: StreamId, level: Level, count: u64) {
        let node = &mut self.relays[relay].node;
        if node.handle_receivers(self.now, stream, level, count).is_err() {
            self.fault(format_args!("{relay} has no room for receivers of {stream:?}"));
        }
        self.drain(relay);
    }

    /// The relay is gone without a word.
    pub fn kill(&mut self, relay: usize) {
        self.relays[relay].is_alive = false;
        self.relays[relay].life += 1;
        for stream in self.streams_of(relay) {
            self.settle_darkness(relay, stream);
        }
        self.lose_unreachable(|a, b| a == relay || b == relay);
    }

    /// The relay does not get the stream from its parent, though both are there and say what they should.
    pub fn fail(&mut self, relay: usize, stream: StreamId) {
        let it = &mut self.relays[relay];
        if let Some((parent, _)) = it.node.parent(stream).filter(|_| it.is_alive) {
            it.node.handle_failed(self.now, stream, parent);
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
        for stream in self.streams_of(relay) {
            let Some(view) = self.relays[relay].view(stream) else { continue };
            let (source, receivers) = (view.source, view.receivers.clone());
            self.settle_darkness(relay, stream);
            for (level, count) in receivers.into_iter().filter(|(_, count)| *count > 0) {
                self.tell_receivers(relay, stream, level, count);
            }
            if source.is_some() {
                self.set_source(relay, stream, source);
            }
            self.look(relay, stream);
        }
    }

    pub(super) fn streams_of(&self, relay: usize) -> Vec<StreamId> {
        self.relays[relay].views.keys().copied().collect()
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
        self.push(wait, Event::Back { relay, life: self.relays[relay].life });
    }

    pub(super) fn reaches(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.relays[a], &self.relays[b]);
        a.is_alive && b.is_alive && a.part == b.part
    }

    /// The relay finds out a while later that it does not reach the other any more.
    fn find_lost(&mut self, relay: usize, life: u64, peer: usize) {
        let after = Duration::from_millis(SILENCE_MS.0 + self.random.u64(..SILENCE_MS.1));
        // If the other is dead, it was in the life before that the connection was made.
        let (is_alive, peer_life) = (self.relays[peer].is_alive, self.relays[peer].life);
        let peer_life = peer_life - u64::from(!is_alive);
        self.push(after, Event::Lost { relay, life, peer, peer_life });
    }

    /// Edges between relays that do not reach each other are gone, and those that are alive find out.
    fn lose_unreachable(&mut self, is_concerned: impl Fn(usize, usize) -> bool) {
        let mut edges = Vec::new();
        for (relay, it) in self.relays.iter().enumerate() {
            for stream in it.views.keys() {
                let parent = it.node.parent(*stream).map(|(parent, _)| (*stream, parent.0 as usize, relay));
                let children =
                    it.node.children(*stream).map(|(child, ..)| (*stream, relay, child.0 as usize));
                edges.extend(children.chain(parent).filter(|(_, above, below)| is_concerned(*above, *below)));
            }
        }
        edges.sort_unstable();
        edges.dedup();
        for (stream, above, below) in edges.iter().copied() {
            if !self.reaches(above, below) {
                for (relay, peer) in [(above, below), (below, above)] {
                    if self.relays[relay].is_alive {
                        self.find_lost(relay, self.relays[relay].life, peer);
                    }
                }
            }
            self.sends(stream, above, below);
        }
        let edges: Vec<_> = edges.into_iter().map(|(stream, _, below)| (stream, below)).collect();
        self.refresh(&edges);
    }

    /// Lets the time pass.
    pub fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.run_until(end, |_| false);
    }

    /// Lets the time pass until something is so, at the most until then. Whether it came to be so.
    pub fn run_until(&mut self, end: Time, is_enough: impl Fn(&Network) -> bool) -> bool {
        while !is_enough(self) {
            if self.agenda.next_at().is_none_or(|at| at > end) {
                self.now = end;
                return false;
            }
            let Some((at, key)) = self.agenda.take() else { return false };
            let event = self.events.remove(key);
            self.now = at;
            self.handled += 1;
            self.handle(event);
        }
        true
    }

    fn handle(&mut self, event: Event) {
        let lives = |relay: usize, life: u64| self.relays[relay].is_alive && self.relays[relay].life == life;
        match event {
            Event::Wake { relay } => self.wake(relay),
            Event::Message { from, life, to, stream, message } => {
                if lives(from, life) && self.reaches(from, to) {
                    self.deliver(from, to, stream, message);
                } else {
                    self.find_lost(from, life, to);
                }
            }
            Event::Lost { relay, life, peer, peer_life } if lives(relay, life) => {
                if self.relays[relay].heard.get(&peer).is_none_or(|heard| *heard <= peer_life) {
                    self.relays[relay].node.handle_lost(self.now, RelayId(peer as u64));
                    self.settle_all(relay);
                }
            }
            Event::Put { relay, stream, offer } if self.reaches_directory(relay) => {
                self.directory.put(self.now, stream, self.relays[relay].contact.relay, offer);
            }
            Event::Ask { relay, life, stream } if self.reaches_directory(relay) => {
                let asker = self.relays[relay].contact;
                let offers = self.directory.answer(self.now, stream, asker, &mut self.random);
                self.push(WAY, Event::Offers { relay, life, stream, offers });
            }
            Event::Offers { relay, life, stream, offers } if lives(relay, life) => {
                self.relays[relay].node.handle_offers(self.now, stream, &offers);
                self.drain(relay);
                self.look(relay, stream);
            }
            Event::Back { relay, life } if lives(relay, life) => {
                self.relays[relay].node.handle_directory_back(self.now);
                self.settle_all(relay);
            }
            Event::Change { relay } => self.change(relay),
            Event::Lost { .. }
            | Event::Put { .. }
            | Event::Ask { .. }
            | Event::Offers { .. }
            | Event::Back { .. } => (),
        }
    }

    fn reaches_directory(&self, relay: usize) -> bool {
        self.directory.is_there && self.relays[relay].part == 0 && self.relays[relay].is_alive
    }

    fn wake(&mut self, relay: usize) {
        let it = &mut self.relays[relay];
        if !it.is_alive || it.timer != Some(self.now) {
            return;
        }
        it.timer = None;
        if it.node.next_timeout().is_some_and(|at| at <= self.now) {
            it.node.handle_timeout(self.now);
            self.settle_all(relay);
        } else {
            self.drain(relay);
        }
    }

    fn deliver(&mut self, from: usize, to: usize, stream: StreamId, message: Message) {
        let (contact, life) = (self.relays[from].contact, self.relays[from].life);
        if life > 1 {
            let before = self.relays[to].heard.insert(from, life).unwrap_or(1);
            if before < life && self.is_beside(to, contact.relay) {
                // A new connection: what was said in the old one is of no use any more.
                self.relays[to].node.handle_lost(self.now, contact.relay);
            }
        }
        self.relays[to].node.handle_message(self.now, contact, stream, message);
        self.drain(to);
        self.look(to, stream);
    }

    /// Whether it takes a stream from the other, or serves it.
    fn is_beside(&self, relay: usize, other: RelayId) -> bool {
        let it = &self.relays[relay];
        it.views.keys().any(|stream| {
            let takes = it.node.parent(*stream).is_some_and(|(parent, _)| parent == other);
            takes || it.node.children(*stream).any(|(child, ..)| child == other)
        })
    }

    fn settle_all(&mut self, relay: usize) {
        self.drain(relay);
        for stream in self.streams_of(relay) {
            self.look(relay, stream);
        }
    }

    /// Does what a node asks for, and looks at what became of its edges.
    fn drain(&mut self, relay: usize) {
        while let Some(action) = self.relays[relay].node.poll() {
            self.act(relay, action);
        }
        if !self.touched.is_empty() {
            let mut touched = core::mem::take(&mut self.touched);
            self.refresh(&touched);
            touched.clear();
            self.touched = touched;
        }
        let next = self.relays[relay].node.next_timeout();
        // A relay woken too early goes to sleep again.
        if let Some(at) = next
            && self.relays[relay].timer.is_none_or(|timer| at < timer)
        {
            self.relays[relay].timer = Some(at);
            self.push(at.since(self.now), Event::Wake { relay });
        }
    }

    fn act(&mut self, relay: usize, action: Action) {
        let life = self.relays[relay].life;
        match action {
            Action::Send { to, stream, message } => {
                let to_relay = to.relay.0 as usize;
                self.relays[relay].counted.sent(self.now, to_relay);
                if self.random.u32(..1000) < self.loss {
                    return;
                }
                let after = self.way(relay, to_relay);
                self.push(after, Event::Message { from: relay, life, to: to_relay, stream, message });
            }
            Action::Register { stream, offer } => {
                self.relays[relay].counted.traffic.directory += 1;
                self.push(WAY, Event::Put { relay, stream, offer: Some(offer) });
            }
            Action::Withdraw { stream } => {
                self.relays[relay].counted.traffic.directory += 1;
                self.push(WAY, Event::Put { relay, stream, offer: None });
            }
            Action::Lookup { stream } => {
                self.relays[relay].counted.traffic.directory += 1;
                self.push(WAY, Event::Ask { relay, life, stream });
            }
            // It is the child that knows what it asks for.
            Action::Level { .. } => (),
            Action::Take { stream, .. } | Action::Lost { stream } => {
                let is_taken = matches!(action, Action::Take { .. });
                self.relays[relay].counted.traffic.taken += u64::from(is_taken);
                self.touched.push((stream, relay));
            }
            Action::Serve { stream, child, .. } | Action::Stop { stream, child } => {
                self.sends(stream, relay, child.0 as usize);
                self.touched.push((stream, child.0 as usize));
            }
        }
    }

    /// What a message takes from one to the other.
    pub(super) fn way(&self, from: usize, to: usize) -> Duration {
        let there = self.relays[to].contact.location;
        self.relays[from].contact.location.round_trip(there) / 2 + HANDLING
    }

    pub(super) fn change_after(&mut self, after: Duration, relay: usize) {
        self.push(after, Event::Change { relay });
    }
}
