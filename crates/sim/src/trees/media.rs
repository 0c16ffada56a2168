//! Along which edges streams flow, which relays have them, and what must never be.

use core::fmt;
use core::time::Duration;

use outflow_routing::tree::limits::CHILD_LIFE;
use outflow_routing::tree::{RelayId, StreamId};
use outflow_routing::{Level, demand};

use super::network::Network;
use super::relay::View;

/// Faults that are told in words; further ones are counted.
const TOLD: usize = 20;

/// A time in which the receivers at a relay did not have a stream that they wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dark {
    /// At which relay.
    pub relay: usize,
    /// For how long.
    pub lasted: Duration,
    /// Whether they had had it: a gap. Otherwise it is what joining took.
    pub is_gap: bool,
}

#[derive(Debug, Default)]
pub(super) struct Media {
    /// Relays, once for each stream, whose receivers do not have it.
    dark: usize,
    over: Vec<Dark>,
    twice: Vec<Duration>,
    faults: u64,
    told: Vec<String>,
}

impl Network {
    /// How many relays have receivers of a stream that they do not get, once for each stream.
    pub const fn dark(&self) -> usize {
        self.media.dark
    }

    /// The times without a stream that are over, since this was asked last.
    pub fn take_dark(&mut self) -> Vec<Dark> {
        core::mem::take(&mut self.media.over)
    }

    /// For how long relays were sent a stream by two at once, each time that is over, since this was asked
    /// last.
    pub fn take_twice(&mut self) -> Vec<Duration> {
        core::mem::take(&mut self.media.twice)
    }

    /// What was not as it has to be at any time: how often, and the first of it in words.
    pub fn faults(&self) -> (u64, &[String]) {
        (self.media.faults, &self.media.told)
    }

    pub(super) fn fault(&mut self, what: fmt::Arguments<'_>) {
        self.media.faults += 1;
        if self.media.told.len() < TOLD {
            self.media.told.push(format!("{}: {what}", self.now));
        }
    }

    fn edge(&self, stream: StreamId, below: usize) -> Option<usize> {
        let child = &self.relays[below];
        let (parent, ask) = child.node.parent(stream).filter(|_| child.is_alive)?;
        let above = parent.0 as usize;
        (self.reaches(above, below) && self.serves(stream, above, below) == Some(ask)).then_some(above)
    }

    /// By which number one serves the other.
    fn serves(&self, stream: StreamId, above: usize, below: usize) -> Option<u32> {
        let id = RelayId(below as u64);
        let mut children = self.relays[above].node.children(stream);
        children.find(|(child, ..)| *child == id).map(|(.., ask)| ask)
    }

    /// Brings up to date whether one sends to the other.
    pub(super) fn sends(&mut self, stream: StreamId, above: usize, below: usize) {
        let is_sent = self.reaches(above, below) && self.serves(stream, above, below).is_some();
        let view = self.relays[below].views.entry(stream).or_default();
        let place = view.senders.iter().position(|sender| *sender == above);
        match place {
            None if is_sent => view.senders.push(above),
            Some(place) if !is_sent => drop(view.senders.swap_remove(place)),
            _ => return,
        }
        if view.senders.len() > 1 {
            view.twice_since.get_or_insert(self.now);
        } else if let Some(since) = view.twice_since.take() {
            let lasted = self.now.since(since);
            self.media.twice.push(lasted);
            if lasted > CHILD_LIFE {
                self.fault(format_args!("{below} was sent {stream:?} twice for {lasted:?}"));
            }
        }
    }

    /// Brings up to date from which relays streams flow to others. Edges that are gone are removed first, so
    /// that no loop is seen that never was.
    pub(super) fn refresh(&mut self, edges: &[(StreamId, usize)]) {
        for (stream, below) in edges {
            let is_there = self.edge(*stream, *below);
            let view = self.relays[*below].views.entry(*stream).or_default();
            let before = view.above.filter(|above| Some(*above) != is_there);
            if let Some(before) = before {
                view.above = None;
                if let Some(view) = self.relays[before].views.get_mut(stream) {
                    view.below.retain(|child| child != below);
                }
            }
        }
        for (stream, below) in edges {
            self.link(*stream, *below);
            self.relight(*stream, *below);
        }
    }

    fn link(&mut self, stream: StreamId, below: usize) {
        let above = self.edge(stream, below);
        let view = self.relays[below].views.entry(stream).or_default();
        if view.above == above {
            return;
        }
        view.above = above;
        if let Some(above) = above {
            self.relays[above].views.entry(stream).or_default().below.push(below);
            if self.is_loop(stream, below) {
                self.fault(format_args!("{below} is in a loop of {stream:?}"));
            }
        }
    }

    /// A new edge can only close loops that it is in.
    fn is_loop(&self, stream: StreamId, relay: usize) -> bool {
        let above = |relay: &usize| self.relays[*relay].view(stream)?.above;
        let mut chain = core::iter::successors(above(&relay), above).take(self.relays.len());
        chain.any(|other| other == relay)
    }

    /// Brings up to date which relays have the stream, from this relay downwards.
    pub(super) fn relight(&mut self, stream: StreamId, relay: usize) {
        let mut changed = vec![relay];
        while let Some(relay) = changed.pop() {
            let Some(view) = self.relays[relay].view(stream) else { continue };
            let has = |above: usize| self.relays[above].view(stream).is_some_and(|view| view.is_lit);
            let is_lit =
                self.relays[relay].is_alive && (view.source.is_some() || view.above.is_some_and(has));
            if let Some(view) = self.relays[relay].views.get_mut(&stream)
                && view.is_lit != is_lit
            {
                view.is_lit = is_lit;
                changed.extend(&view.below);
                self.settle_darkness(relay, stream);
            }
        }
    }

    /// Notes whether the receivers at a relay have what they want.
    pub(super) fn settle_darkness(&mut self, relay: usize, stream: StreamId) {
        let (now, is_alive) = (self.now, self.relays[relay].is_alive);
        let Some(view) = self.relays[relay].views.get_mut(&stream) else { return };
        if !is_alive {
            view.is_lit = false;
        }
        let wants = is_alive && view.is_wanted();
        if wants && !view.is_lit {
            if view.dark_since.is_none() {
                view.dark_since = Some(now);
                self.media.dark += 1;
            }
            return;
        }
        if let Some(since) = view.dark_since.take() {
            self.media.dark -= 1;
            if wants {
                let dark = Dark { relay, lasted: now.since(since), is_gap: view.had_it };
                self.media.over.push(dark);
            }
        }
        view.had_it = wants;
    }

    /// Sees that a relay asks for the best that is wanted below it: for no less at any time, and for no more
    /// for longer than the hold.
    pub(super) fn look(&mut self, relay: usize, stream: StreamId) {
        let it = &self.relays[relay];
        let Some(view) = it.view(stream) else { return };
        let (best, asked) = (best_below(it, view, stream), it.node.demand(stream));
        let is_less = match (best, asked) {
            (Some(best), Some(asked)) => asked > best,
            (best, asked) => best.is_some() && asked.is_none(),
        };
        if is_less {
            self.fault(format_args!("{relay} asks for {asked:?} of {stream:?}, {best:?} is wanted"));
        }
        let hold = demand::Settings::default().hold.max(demand::Settings::default().linger);
        let now = self.now;
        let Some(view) = self.relays[relay].views.get_mut(&stream) else { return };
        if best == asked {
            view.held_since = None;
        } else if now.since(*view.held_since.get_or_insert(now)) > hold {
            self.fault(format_args!("{relay} still asks for {asked:?} of {stream:?}, {best:?} is wanted"));
        }
    }

    /// How long a packet takes from the source to each relay that has the stream, and how long it would take
    /// straight from there.
    pub fn ways(&self, stream: StreamId) -> Vec<(Duration, Duration)> {
        let mut ways = Vec::new();
        for source in self.sources(stream) {
            let mut row = vec![(source, Duration::ZERO)];
            while let Some((relay, way)) = row.pop() {
                if relay != source {
                    ways.push((way, self.way(source, relay)));
                }
                let below = self.relays[relay].view(stream).map_or(&[][..], |view| &view.below);
                row.extend(below.iter().map(|child| (*child, way + self.way(relay, *child))));
            }
        }
        ways
    }

    /// Relays that are alive and have a source of the stream.
    pub fn sources(&self, stream: StreamId) -> impl Iterator<Item = usize> {
        let has = move |relay: &usize| {
            let it = &self.relays[*relay];
            it.is_alive && it.view(stream).is_some_and(|view| view.source.is_some())
        };
        (0..self.relays.len()).filter(has)
    }

    /// How many relays are between each that has the stream and its source, counting itself.
    pub fn depths(&self, stream: StreamId) -> Vec<Option<usize>> {
        let mut depths = vec![None; self.relays.len()];
        let mut row: Vec<_> = self.sources(stream).map(|source| (source, 0)).collect();
        while let Some((relay, depth)) = row.pop() {
            depths[relay] = Some(depth);
            let below = self.relays[relay].view(stream).map_or(&[][..], |view| &view.below);
            row.extend(below.iter().map(|child| (*child, depth + 1)));
        }
        depths
    }

    /// The source that a relay has a stream of.
    pub fn root(&self, relay: usize, stream: StreamId) -> Option<usize> {
        let it = &self.relays[relay];
        it.node.path(self.now, stream).map(|path| path.root.relay.0 as usize)
    }

    /// Whether the relay serves others with the stream.
    pub fn has_children(&self, relay: usize, stream: StreamId) -> bool {
        self.relays[relay].view(stream).is_some_and(|view| !view.below.is_empty())
    }

    /// The relays that are alive and have receivers of the stream.
    pub fn wanting(&self, stream: StreamId) -> Vec<usize> {
        let wants = |relay: &usize| {
            let it = &self.relays[*relay];
            it.is_alive && it.view(stream).is_some_and(View::is_wanted)
        };
        (0..self.relays.len()).filter(wants).collect()
    }

    /// The relays whose receivers do not get the stream.
    pub fn dark_relays(&self, stream: StreamId) -> Vec<usize> {
        let is_dark =
            |relay: &usize| self.relays[*relay].view(stream).is_some_and(|view| view.dark_since.is_some());
        (0..self.relays.len()).filter(is_dark).collect()
    }
}

/// The best level that is wanted of a relay.
pub(super) fn best_below(relay: &super::relay::Relay, view: &View, stream: StreamId) -> Option<Level> {
    let here = view.receivers.iter().filter(|(_, count)| **count > 0).map(|(level, _)| *level);
    here.chain(relay.node.children(stream).map(|(_, level, _)| level)).min()
}
