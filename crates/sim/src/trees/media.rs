//! Which relays have streams, and what must never be.

use core::fmt;
use core::time::Duration;

use outflow_media::Time;
use outflow_routing::demand;
use outflow_routing::tree::StreamId;
use outflow_routing::tree::limits::CHILD_LIFE;

use super::relays::Relays;

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

impl Media {
    /// How many relays have receivers of a stream that they do not get, once for each stream.
    pub(super) const fn dark(&self) -> usize {
        self.dark
    }

    /// The times without a stream that are over, since this was asked last.
    pub(super) fn take_dark(&mut self) -> Vec<Dark> {
        core::mem::take(&mut self.over)
    }

    /// For how long relays were sent a stream by two at once, each time that is over, since this was asked
    /// last.
    pub(super) fn take_twice(&mut self) -> Vec<Duration> {
        core::mem::take(&mut self.twice)
    }

    /// What was not as it has to be at any time: how often, and the first of it in words.
    pub(super) fn faults(&self) -> (u64, &[String]) {
        (self.faults, &self.told)
    }

    pub(super) fn fault(&mut self, now: Time, what: fmt::Arguments<'_>) {
        self.faults += 1;
        if self.told.len() < TOLD {
            self.told.push(format!("{now}: {what}"));
        }
    }

    /// Brings up to date whether one sends to the other.
    pub(super) fn sends(
        &mut self,
        now: Time,
        relays: &mut Relays,
        (stream, above, below): (StreamId, usize, usize),
    ) {
        let is_sent = relays.is_sent(stream, above, below);
        let view = relays[below].views.entry(stream).or_default();
        let place = view.senders.iter().position(|sender| *sender == above);
        match place {
            None if is_sent => view.senders.push(above),
            Some(place) if !is_sent => drop(view.senders.swap_remove(place)),
            _ => return,
        }
        if view.senders.len() > 1 {
            view.twice_since.get_or_insert(now);
        } else if let Some(since) = view.twice_since.take() {
            let lasted = now.since(since);
            self.twice.push(lasted);
            if lasted > CHILD_LIFE {
                self.fault(now, format_args!("{below} was sent {stream:?} twice for {lasted:?}"));
            }
        }
    }

    /// Brings up to date from which relays streams flow to others. Edges that are gone are removed first, so
    /// that no loop is seen that never was.
    pub(super) fn refresh(&mut self, now: Time, relays: &mut Relays, edges: &[(StreamId, usize)]) {
        for (stream, below) in edges {
            let is_there = relays.edge(*stream, *below);
            let view = relays[*below].views.entry(*stream).or_default();
            let before = view.above.filter(|above| Some(*above) != is_there);
            if let Some(before) = before {
                view.above = None;
                if let Some(view) = relays[before].views.get_mut(stream) {
                    view.below.retain(|child| child != below);
                }
            }
        }
        for (stream, below) in edges {
            self.link(now, relays, *stream, *below);
            self.relight(now, relays, *stream, *below);
        }
    }

    fn link(&mut self, now: Time, relays: &mut Relays, stream: StreamId, below: usize) {
        let above = relays.edge(stream, below);
        let view = relays[below].views.entry(stream).or_default();
        if view.above == above {
            return;
        }
        view.above = above;
        if let Some(above) = above {
            relays[above].views.entry(stream).or_default().below.push(below);
            if relays.is_loop(stream, below) {
                self.fault(now, format_args!("{below} is in a loop of {stream:?}"));
            }
        }
    }

    /// Brings up to date which relays have the stream, from this relay downwards.
    pub(super) fn relight(&mut self, now: Time, relays: &mut Relays, stream: StreamId, relay: usize) {
        let mut changed = vec![relay];
        while let Some(relay) = changed.pop() {
            let Some(view) = relays[relay].view(stream) else { continue };
            let has = |above: usize| relays[above].view(stream).is_some_and(|view| view.is_lit);
            let is_lit = relays[relay].is_alive && (view.source.is_some() || view.above.is_some_and(has));
            if let Some(view) = relays[relay].views.get_mut(&stream)
                && view.is_lit != is_lit
            {
                view.is_lit = is_lit;
                changed.extend(&view.below);
                self.settle_darkness(now, relays, relay, stream);
            }
        }
    }

    /// Notes whether the receivers at a relay have what they want.
    pub(super) fn settle_darkness(&mut self, now: Time, relays: &mut Relays, relay: usize, stream: StreamId) {
        let is_alive = relays[relay].is_alive;
        let Some(view) = relays[relay].views.get_mut(&stream) else { return };
        if !is_alive {
            view.is_lit = false;
        }
        let wants = is_alive && view.is_wanted();
        if wants && !view.is_lit {
            if view.dark_since.is_none() {
                view.dark_since = Some(now);
                self.dark += 1;
            }
            return;
        }
        if let Some(since) = view.dark_since.take() {
            self.dark -= 1;
            if wants {
                let dark = Dark { relay, lasted: now.since(since), is_gap: view.had_it };
                self.over.push(dark);
            }
        }
        view.had_it = wants;
    }

    /// Sees that a relay asks for the best that is wanted below it: for no less at any time, and for no more
    /// for longer than the hold.
    pub(super) fn look(&mut self, now: Time, relays: &mut Relays, relay: usize, stream: StreamId) {
        let it = &relays[relay];
        if it.view(stream).is_none() {
            return;
        }
        let (best, asked) = (it.best_below(stream), it.node.demand(stream));
        let is_less = match (best, asked) {
            (Some(best), Some(asked)) => asked > best,
            (best, asked) => best.is_some() && asked.is_none(),
        };
        if is_less {
            self.fault(now, format_args!("{relay} asks for {asked:?} of {stream:?}, {best:?} is wanted"));
        }
        let hold = demand::Settings::default().hold.max(demand::Settings::default().linger);
        let Some(view) = relays[relay].views.get_mut(&stream) else { return };
        if best == asked {
            view.held_since = None;
        } else if now.since(*view.held_since.get_or_insert(now)) > hold {
            self.fault(
                now,
                format_args!("{relay} still asks for {asked:?} of {stream:?}, {best:?} is wanted"),
            );
        }
    }
}
