//! Relays in virtual time: latencies by place, a directory, failures, partitions and loss.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use outflow_media::Time;
use outflow_routing::tree::limits::ENTRY_LIFE;
use outflow_routing::tree::{Action, Contact, Location, Message, Node, Offer, RelayId, Settings, StreamId};
use outflow_routing::{Level, demand};

/// The stream that everybody wants.
pub(crate) const STREAM: StreamId = StreamId(1);

/// What a driver needs to see that media no longer flows, or that nobody answers: at least, and more at most.
const SILENCE_MS: (u64, u64) = (400, 100);
/// One way to the directory.
const DIRECTORY_MS: u64 = 20;
/// Entries in an answer of the directory.
const ANSWER: usize = 16;
/// How exactly gaps are measured.
pub(crate) const STEP: Duration = Duration::from_millis(50);

#[derive(Debug)]
enum Event {
    Wake { relay: usize },
    Message { from: usize, life: u64, to: usize, message: Message },
    Lost { relay: usize, life: u64, peer: usize },
    Put { offer: Option<Offer>, relay: usize },
    Ask { relay: usize, life: u64 },
    Offers { relay: usize, life: u64, offers: Vec<Offer> },
    Back { relay: usize, life: u64 },
}

/// A relay, dead or alive.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) node: Node,
    pub(crate) is_alive: bool,
    /// Which part of a partition it is in.
    pub(crate) part: u8,
    /// The preference of its source, if it has one.
    pub(crate) source: Option<u8>,
    /// How many receivers want which level.
    pub(crate) receivers: BTreeMap<Level, u64>,
    contact: Contact,
    life: u64,
    timer: Option<Time>,
    /// Since when its receivers get nothing.
    dark_since: Option<Time>,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) now: Time,
    pub(crate) relays: Vec<Relay>,
    pub(crate) random: Rng,
    /// Messages that are lost, of a thousand.
    pub(crate) loss: u32,
    pub(crate) has_directory: bool,
    /// Times without the stream that are over, of relays that had it before.
    pub(crate) gaps: Vec<Duration>,
    entries: BTreeMap<RelayId, (Offer, Time)>,
    queue: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    children_max: usize,
    places: Vec<Location>,
}

impl Network {
    /// So many relays at some places, each of which serves so many others at the most.
    pub(crate) fn new(count: usize, children_max: usize, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let place = |_| Location { x_km: random.i32(0..16_000), y_km: random.i32(0..8_000) };
        let places = (0..10).map(place).collect();
        let mut network = Network {
            now: Time::from_millis(1),
            relays: Vec::new(),
            random,
            loss: 0,
            has_directory: true,
            gaps: Vec::new(),
            entries: BTreeMap::new(),
            queue: BTreeMap::new(),
            sequence: 0,
            children_max,
            places,
        };
        for relay in 0..count {
            network.add(relay);
        }
        network
    }

    fn add(&mut self, relay: usize) {
        let place = self.places[self.random.usize(..self.places.len())];
        let location = Location {
            x_km: place.x_km + self.random.i32(-50..50),
            y_km: place.y_km + self.random.i32(-50..50),
        };
        let address = ([10, (relay >> 16) as u8, (relay >> 8) as u8, relay as u8], 4433).into();
        let contact = Contact { relay: RelayId(relay as u64), address, location };
        self.relays.push(Relay {
            node: node(contact, 1, self.children_max),
            is_alive: true,
            part: 0,
            source: None,
            receivers: BTreeMap::new(),
            contact,
            life: 1,
            timer: None,
            dark_since: None,
        });
    }

    fn push(&mut self, after: Duration, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + after, self.sequence), event);
    }

    pub(crate) fn set_source(&mut self, relay: usize, preference: Option<u8>) {
        self.relays[relay].source = preference;
        self.relays[relay].node.handle_source(self.now, STREAM, preference);
        self.drain(relay);
    }

    pub(crate) fn set_receivers(&mut self, relay: usize, level: Level, count: u64) {
        self.relays[relay].receivers.insert(level, count);
        if self.relays[relay].is_alive {
            let node = &mut self.relays[relay].node;
            node.handle_receivers(self.now, STREAM, level, count).expect("there is room");
            self.drain(relay);
        }
    }

    /// The relay is gone without a word.
    pub(crate) fn kill(&mut self, relay: usize) {
        self.relays[relay].is_alive = false;
        self.relays[relay].dark_since = None;
        self.relays[relay].life += 1;
        self.lose_unreachable();
    }

    /// It starts again, with the receivers and the source it had.
    pub(crate) fn restart(&mut self, relay: usize) {
        if self.relays[relay].is_alive {
            self.kill(relay);
        }
        let (contact, life) = (self.relays[relay].contact, self.relays[relay].life);
        self.relays[relay].is_alive = true;
        self.relays[relay].timer = None;
        self.relays[relay].node = node(contact, life, self.children_max);
        if self.relays[relay].source.is_some() {
            self.set_source(relay, self.relays[relay].source);
        }
        for (level, count) in self.relays[relay].receivers.clone() {
            self.set_receivers(relay, level, count);
        }
    }

    /// Who is in which part from now on. The directory is in part 0.
    pub(crate) fn divide(&mut self, part: impl Fn(usize) -> u8) {
        for relay in 0..self.relays.len() {
            let before = core::mem::replace(&mut self.relays[relay].part, part(relay));
            if before != 0 && self.relays[relay].part == 0 {
                self.directory_back(relay);
            }
        }
        self.lose_unreachable();
    }

    /// The directory fails or is back.
    pub(crate) fn set_directory(&mut self, is_there: bool) {
        self.has_directory = is_there;
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

    fn reaches(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.relays[a], &self.relays[b]);
        a.is_alive && b.is_alive && a.part == b.part
    }

    fn silence(&mut self) -> Duration {
        Duration::from_millis(SILENCE_MS.0 + self.random.u64(..SILENCE_MS.1))
    }

    /// Parents and children that cannot reach each other find out.
    fn lose_unreachable(&mut self) {
        for relay in 0..self.relays.len() {
            let node = &self.relays[relay].node;
            let parent = node.parent(STREAM).map(|(parent, _)| parent);
            let peers: Vec<_> = node.children(STREAM).map(|(child, ..)| child).chain(parent).collect();
            for peer in peers {
                let peer = peer.0 as usize;
                if self.relays[relay].is_alive && !self.reaches(relay, peer) {
                    let (after, life) = (self.silence(), self.relays[relay].life);
                    self.push(after, Event::Lost { relay, life, peer });
                }
            }
        }
    }

    /// Lets the time pass, and measures who has the stream.
    pub(crate) fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.now < end {
            let step = (self.now + STEP).min(end);
            while let Some(entry) = self.queue.first_entry()
                && entry.key().0 <= step
            {
                let ((at, _), event) = entry.remove_entry();
                self.now = at;
                self.handle(event);
            }
            self.now = step;
            self.measure();
        }
    }

    fn handle(&mut self, event: Event) {
        let lives = |relay: usize, life: u64| self.relays[relay].is_alive && self.relays[relay].life == life;
        let relay = match event {
            Event::Wake { relay } => {
                if !self.relays[relay].is_alive || self.relays[relay].timer != Some(self.now) {
                    return;
                }
                self.relays[relay].timer = None;
                self.relays[relay].node.handle_timeout(self.now);
                relay
            }
            Event::Message { from, life, to, message } => {
                if !lives(from, life) || !self.reaches(from, to) {
                    let after = self.silence();
                    self.push(after, Event::Lost { relay: from, life, peer: to });
                    return;
                }
                let contact = self.relays[from].contact;
                self.relays[to].node.handle_message(self.now, contact, STREAM, message);
                to
            }
            Event::Lost { relay, life, peer } if lives(relay, life) => {
                self.relays[relay].node.handle_lost(self.now, RelayId(peer as u64));
                relay
            }
            Event::Offers { relay, life, offers } if lives(relay, life) => {
                self.relays[relay].node.handle_offers(self.now, STREAM, &offers);
                relay
            }
            Event::Back { relay, life } if lives(relay, life) => {
                self.relays[relay].node.handle_directory_back(self.now);
                relay
            }
            Event::Put { offer, relay } => return self.put(relay, offer),
            Event::Ask { relay, life } => return self.answer(relay, life),
            Event::Lost { .. } | Event::Offers { .. } | Event::Back { .. } => return,
        };
        self.drain(relay);
    }

    fn put(&mut self, relay: usize, offer: Option<Offer>) {
        if !self.has_directory || self.relays[relay].part != 0 {
            return;
        }
        let id = self.relays[relay].contact.relay;
        match offer {
            Some(offer) => self.entries.insert(id, (offer, self.now + ENTRY_LIFE)),
            None => self.entries.remove(&id),
        };
    }

    /// Half of the answer are the nearest of a sample, half are any.
    fn answer(&mut self, relay: usize, life: u64) {
        if !self.has_directory || self.relays[relay].part != 0 || self.relays.is_empty() {
            return;
        }
        let (here, count) = (self.relays[relay].contact, self.relays.len() as u64);
        let mut sample = BTreeSet::new();
        for _ in 0..ANSWER * 6 {
            let from = RelayId(self.random.u64(..count));
            let mut behind = self.entries.range(from..).chain(&self.entries);
            sample.extend(behind.next().map(|(id, _)| *id).filter(|id| *id != here.relay));
        }
        let live = sample.iter().filter(|id| self.entries[id].1 > self.now);
        let mut offers: Vec<_> = live.map(|id| self.entries[id].0).collect();
        self.random.shuffle(&mut offers);
        let rest = offers.split_off(offers.len().min(ANSWER / 2));
        let mut near = rest;
        near.sort_by_key(|offer| here.location.round_trip(offer.contact.location));
        offers.extend(near.into_iter().take(ANSWER / 2));
        self.push(Duration::from_millis(DIRECTORY_MS), Event::Offers { relay, life, offers });
    }

    /// Does what a node asks for, and sees that it is in no loop.
    fn drain(&mut self, relay: usize) {
        let life = self.relays[relay].life;
        while let Some(action) = self.relays[relay].node.poll() {
            let directory = Duration::from_millis(DIRECTORY_MS);
            match action {
                Action::Send { to, message, .. } => {
                    if self.random.u32(..1000) < self.loss {
                        continue;
                    }
                    let round_trip = self.relays[relay].contact.location.round_trip(to.location);
                    let after = round_trip / 2 + Duration::from_micros(500);
                    self.push(after, Event::Message { from: relay, life, to: to.relay.0 as usize, message });
                }
                Action::Register { offer, .. } => {
                    self.push(directory, Event::Put { offer: Some(offer), relay })
                }
                Action::Withdraw { .. } => self.push(directory, Event::Put { offer: None, relay }),
                Action::Lookup { .. } => self.push(directory, Event::Ask { relay, life }),
                Action::Take { .. } | Action::Lost { .. } | Action::Serve { .. } | Action::Stop { .. } => (),
            }
        }
        self.check_loop(relay);
        let next = self.relays[relay].node.next_timeout();
        if next != self.relays[relay].timer {
            self.relays[relay].timer = next;
            if let Some(at) = next {
                self.push(at.since(self.now), Event::Wake { relay });
            }
        }
    }

    /// The parent that serves this relay, as both know it.
    pub(crate) fn parent(&self, relay: usize) -> Option<usize> {
        let (parent, ask) = self.relays[relay].node.parent(STREAM)?;
        let above = &self.relays[parent.0 as usize];
        let me = self.relays[relay].contact.relay;
        let is_served = above.node.children(STREAM).any(|(child, _, by)| child == me && by == ask);
        (above.is_alive && is_served).then_some(parent.0 as usize)
    }

    /// A change at a relay can only close loops that it is in.
    fn check_loop(&self, relay: usize) {
        let (mut at, mut steps) = (relay, 0);
        while let Some(parent) = self.parent(at) {
            steps += 1;
            assert!(parent != relay && steps <= self.relays.len(), "{relay} is in a loop at {}", self.now);
            at = parent;
        }
    }

    /// How far from a source the stream comes to each relay, if it does.
    pub(crate) fn depths(&self) -> Vec<Option<usize>> {
        let mut depths: Vec<Option<usize>> = vec![None; self.relays.len()];
        let has_source = |relay: &usize| self.relays[*relay].is_alive && self.relays[*relay].source.is_some();
        let mut row: Vec<_> = (0..self.relays.len()).filter(has_source).collect();
        let mut depth = 0;
        while !row.is_empty() {
            row.iter().for_each(|relay| depths[*relay] = Some(depth));
            depth += 1;
            let mut next = Vec::new();
            for relay in row {
                for (child, _, ask) in self.relays[relay].node.children(STREAM) {
                    let child = child.0 as usize;
                    let takes = self.relays[child].node.parent(STREAM) == Some((RelayId(relay as u64), ask));
                    if takes && self.reaches(relay, child) && depths[child].is_none() {
                        next.push(child);
                    }
                }
            }
            row = next;
        }
        depths
    }

    /// The relays with receivers that do not have the stream.
    pub(crate) fn dark(&self) -> Vec<usize> {
        let depths = self.depths();
        let is_dark = |relay: &usize| {
            let wants = self.relays[*relay].receivers.values().any(|count| *count > 0);
            self.relays[*relay].is_alive && wants && depths[*relay].is_none()
        };
        (0..self.relays.len()).filter(is_dark).collect()
    }

    fn measure(&mut self) {
        let dark = self.dark();
        let mut dark = dark.into_iter().peekable();
        for relay in 0..self.relays.len() {
            let is_dark = dark.next_if_eq(&relay).is_some();
            let since = &mut self.relays[relay].dark_since;
            if is_dark {
                since.get_or_insert(self.now);
            } else if let Some(since) = since.take() {
                self.gaps.push(self.now.since(since));
            }
        }
    }
}

fn node(me: Contact, incarnation: u64, children_max: usize) -> Node {
    let seed = me.relay.0 << 32 | incarnation;
    Node::new(Settings { me, incarnation, seed, children_max, demand: demand::Settings::default() })
}
