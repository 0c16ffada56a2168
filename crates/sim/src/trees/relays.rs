//! All relays: where they are, which of them reach each other, and how streams flow between them.

use core::ops::{Index, IndexMut};
use core::time::Duration;

use fastrand::Rng;
use outflow_routing::tree::{Contact, Location, RelayId, StreamId};

use super::relay::{Relay, View};

/// What a message takes besides its way.
const HANDLING: Duration = Duration::from_micros(500);
/// Where relays are: places on a map of `MAP_KM` kilometres, and around them.
const PLACES: usize = 10;
const MAP_KM: (i32, i32) = (16_000, 8_000);
const AROUND_KM: i32 = 50;

/// Relays by their number.
#[derive(Debug)]
pub(super) struct Relays {
    all: Vec<Relay>,
}

impl Index<usize> for Relays {
    type Output = Relay;

    fn index(&self, relay: usize) -> &Relay {
        &self.all[relay]
    }
}

impl IndexMut<usize> for Relays {
    fn index_mut(&mut self, relay: usize) -> &mut Relay {
        &mut self.all[relay]
    }
}

impl Relays {
    /// This many, somewhere on the map. They have and want nothing.
    pub(super) fn new(count: usize, children_max: usize, random: &mut Rng) -> Self {
        let place = |_| Location { x_km: random.i32(0..MAP_KM.0), y_km: random.i32(0..MAP_KM.1) };
        let places: Vec<_> = (0..PLACES).map(place).collect();
        let mut around = || random.i32(-AROUND_KM..AROUND_KM);
        let mut locations = Vec::with_capacity(count);
        for _ in 0..count {
            locations.push((around(), around()));
        }
        let relay = |(relay, (x_km, y_km)): (usize, (i32, i32))| {
            let place = places[random.usize(..places.len())];
            let location = Location { x_km: place.x_km + x_km, y_km: place.y_km + y_km };
            let address = ([10, (relay >> 16) as u8, (relay >> 8) as u8, relay as u8], 4433).into();
            let contact = Contact { relay: RelayId(relay as u64), address, location };
            Relay::new(contact, children_max)
        };
        Relays { all: locations.into_iter().enumerate().map(relay).collect() }
    }

    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Relay> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Relay> {
        self.all.iter_mut()
    }

    pub(super) fn streams_of(&self, relay: usize) -> Vec<StreamId> {
        self[relay].views.keys().copied().collect()
    }

    pub(super) fn reaches(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self[a], &self[b]);
        a.is_alive && b.is_alive && a.part == b.part
    }

    /// What a message takes from one to the other.
    pub(super) fn way(&self, from: usize, to: usize) -> Duration {
        let there = self[to].contact.location;
        self[from].contact.location.round_trip(there) / 2 + HANDLING
    }

    /// Edges that one of their ends names, with the relay above and the one below, in order: those that are
    /// of concern.
    pub(super) fn named(&self, is_concerned: impl Fn(usize, usize) -> bool) -> Vec<(StreamId, usize, usize)> {
        let mut edges = Vec::new();
        for (relay, it) in self.iter().enumerate() {
            for stream in it.views.keys() {
                let parent = it.node.parent(*stream).map(|(parent, _)| (*stream, parent.0 as usize, relay));
                let children =
                    it.node.children(*stream).map(|(child, ..)| (*stream, relay, child.0 as usize));
                edges.extend(children.chain(parent).filter(|(_, above, below)| is_concerned(*above, *below)));
            }
        }
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// From which relay a stream flows to another.
    pub(super) fn edge(&self, stream: StreamId, below: usize) -> Option<usize> {
        let child = &self[below];
        let (parent, ask) = child.node.parent(stream).filter(|_| child.is_alive)?;
        let above = parent.0 as usize;
        (self.reaches(above, below) && self.serves(stream, above, below) == Some(ask)).then_some(above)
    }

    /// By which number one serves the other.
    fn serves(&self, stream: StreamId, above: usize, below: usize) -> Option<u32> {
        let id = RelayId(below as u64);
        let mut children = self[above].node.children(stream);
        children.find(|(child, ..)| *child == id).map(|(.., ask)| ask)
    }

    /// Whether one sends a stream to the other, which may not take it from there.
    pub(super) fn is_sent(&self, stream: StreamId, above: usize, below: usize) -> bool {
        self.reaches(above, below) && self.serves(stream, above, below).is_some()
    }

    /// Whether a stream comes back to a relay that it flows from. A new edge can only close loops that it is in.
    pub(super) fn is_loop(&self, stream: StreamId, relay: usize) -> bool {
        let above = |relay: &usize| self[*relay].view(stream)?.above;
        let mut chain = core::iter::successors(above(&relay), above).take(self.len());
        chain.any(|other| other == relay)
    }

    /// How long a packet takes from the source to each relay that has the stream, and how long it would take
    /// straight from there.
    pub(super) fn ways(&self, stream: StreamId) -> Vec<(Duration, Duration)> {
        let mut ways = Vec::new();
        for source in self.sources(stream) {
            let mut row = vec![(source, Duration::ZERO)];
            while let Some((relay, way)) = row.pop() {
                if relay != source {
                    ways.push((way, self.way(source, relay)));
                }
                row.extend(
                    self.below(stream, relay).iter().map(|child| (*child, way + self.way(relay, *child))),
                );
            }
        }
        ways
    }

    /// How many relays are between each that has the stream and its source, counting itself.
    pub(super) fn depths(&self, stream: StreamId) -> Vec<Option<usize>> {
        let mut depths = vec![None; self.len()];
        let mut row: Vec<_> = self.sources(stream).map(|source| (source, 0)).collect();
        while let Some((relay, depth)) = row.pop() {
            depths[relay] = Some(depth);
            row.extend(self.below(stream, relay).iter().map(|child| (*child, depth + 1)));
        }
        depths
    }

    /// The relays to which a stream flows from one.
    pub(super) fn below(&self, stream: StreamId, relay: usize) -> &[usize] {
        self[relay].view(stream).map_or(&[][..], |view| &view.below)
    }

    /// Relays that are alive and have a source of the stream.
    pub(super) fn sources(&self, stream: StreamId) -> impl Iterator<Item = usize> {
        self.that(stream, |it, view| it.is_alive && view.source.is_some())
    }

    /// The relays that are alive and have receivers of the stream.
    pub(super) fn wanting(&self, stream: StreamId) -> impl Iterator<Item = usize> {
        self.that(stream, |it, view| it.is_alive && view.is_wanted())
    }

    /// The relays whose receivers do not get the stream.
    pub(super) fn dark(&self, stream: StreamId) -> impl Iterator<Item = usize> {
        self.that(stream, |_, view| view.dark_since.is_some())
    }

    fn that(&self, stream: StreamId, is: fn(&Relay, &View) -> bool) -> impl Iterator<Item = usize> {
        let is = move |relay: &usize| self[*relay].view(stream).is_some_and(|view| is(&self[*relay], view));
        (0..self.len()).filter(is)
    }
}
