//! Whether a net can be run: its parts, and its circuits.

use core::cmp::Reverse;
use core::fmt::Write as _;
use std::collections::BinaryHeap;

use super::edges::{Edges, components};
use super::{Carries, Name, Net, Place, PlaceId, Transition};
use crate::limits::{CIRCUIT_NAMED_MAX, INITIAL_TOKENS_MAX, NAME_BYTES_MAX, PLACES_MAX, TRANSITIONS_MAX};

/// Why something is not a net that can be run, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// There is nothing to carry.
    #[error("the net carries no objects: give it a transition, and a place for each object of a period")]
    Empty,
    /// It is larger than a net may be.
    #[error("the net has {count} {what}; {max} are allowed: describe a shorter period, or larger objects")]
    TooMany {
        /// Transitions or places.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many are allowed.
        max: usize,
    },
    /// A name that a text could not say.
    #[error("\"{name}\" is no name: use letters, digits, '-', '_' and '.', {NAME_BYTES_MAX} at most")]
    BadName {
        /// It.
        name: String,
    },
    /// Two of a name.
    #[error("two {what} are called {name}: give one of them another name")]
    SameName {
        /// Transitions or places.
        what: &'static str,
        /// The name.
        name: Name,
    },
    /// A place of a transition that is not in the net.
    #[error("place {place} leads from or to a transition that the net does not have")]
    UnknownTransition {
        /// The place.
        place: Name,
    },
    /// An interval that is none.
    #[error("the interval of place {place} {problem}")]
    BadInterval {
        /// The place.
        place: Name,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// More tokens than a place may hold at the start.
    #[error("place {place} holds {tokens} tokens at the start; {INITIAL_TOKENS_MAX} are allowed")]
    TooManyTokens {
        /// The place.
        place: Name,
        /// How many it holds.
        tokens: u32,
    },
    /// A rule without the master that it needs.
    #[error("transition {transition} fires by its master, and has none: say which of its places it is")]
    NoMaster {
        /// The transition.
        transition: Name,
    },
    /// A master that the rule does not look at.
    #[error("transition {transition} has a master, and a rule without one: take another rule, or no master")]
    NeedlessMaster {
        /// The transition.
        transition: Name,
    },
    /// A master that is not an input.
    #[error("the master of transition {transition} is not a place that leads to it: choose one that does")]
    ForeignMaster {
        /// The transition.
        transition: Name,
    },
    /// A transition without places.
    #[error("no place leads to transition {transition} or from it: leave it out, or connect it")]
    Unconnected {
        /// The transition.
        transition: Name,
    },
    /// A circuit that never moves.
    #[error(
        "nothing on this circuit can ever fire, for each waits for the one before: {circuit}; let one of its \
         places hold a token at the start"
    )]
    NotLive {
        /// Its transitions and places.
        circuit: String,
    },
    /// A place that fills without end.
    #[error(
        "place {place} lies on no circuit, so that {producer} could run ahead of {consumer} without end: lead \
         a place from {consumer} back to {producer}, directly or through others"
    )]
    NotBounded {
        /// The place.
        place: Name,
        /// What fills it.
        producer: Name,
        /// What empties it.
        consumer: Name,
    },
}

impl NetError {
    /// The same without names, for peers on a wire, which have none.
    pub fn reason(&self) -> &'static str {
        match self {
            NetError::Empty => "the net carries no objects",
            NetError::TooMany { .. } => "the net is too large",
            NetError::BadName { .. } | NetError::SameName { .. } => "names are wrong",
            NetError::UnknownTransition { .. } => "a place of a transition that there is not",
            NetError::BadInterval { .. } => "an interval is not in order or too long",
            NetError::TooManyTokens { .. } => "too many tokens in a place",
            NetError::NoMaster { .. } => "a rule needs a master",
            NetError::NeedlessMaster { .. } => "a rule needs no master",
            NetError::ForeignMaster { .. } => "a master of another transition",
            NetError::Unconnected { .. } => "a transition without places",
            NetError::NotLive { .. } => "a circuit without a token",
            NetError::NotBounded { .. } => "a place on no circuit",
        }
    }
}

/// What can be said of each transition and place by itself.
pub(super) fn parts(transitions: &[Transition], places: &[Place]) -> Result<(), NetError> {
    let within =
        |what, count, max| if count > max { Err(NetError::TooMany { what, count, max }) } else { Ok(()) };
    within("transitions", transitions.len(), TRANSITIONS_MAX)?;
    within("places", places.len(), PLACES_MAX)?;
    names("transitions", transitions.iter().map(|transition| &transition.name))?;
    names("places", places.iter().map(|place| &place.name))?;
    for place in places {
        let name = || place.name.clone();
        if place.producer.index().max(place.consumer.index()) >= transitions.len() {
            return Err(NetError::UnknownTransition { place: name() });
        }
        if let Some(problem) = place.interval.problem() {
            return Err(NetError::BadInterval { place: name(), problem });
        }
        if place.initial > INITIAL_TOKENS_MAX {
            return Err(NetError::TooManyTokens { place: name(), tokens: place.initial });
        }
    }
    if !places.iter().any(|place| place.carries == Carries::Object) {
        return Err(NetError::Empty);
    }
    Ok(())
}

fn names<'a>(what: &'static str, names: impl Iterator<Item = &'a Name>) -> Result<(), NetError> {
    let mut sorted: Vec<_> = names.collect();
    if let Some(bad) = sorted.iter().find(|name| !name.is_valid()) {
        return Err(NetError::BadName { name: bad.to_string() });
    }
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(NetError::SameName { what, name: pair[0].clone() }),
        None => Ok(()),
    }
}

/// What can be said of the net as a whole.
pub(super) fn graph(net: &Net) -> Result<(), NetError> {
    for (i, transition) in net.transitions.iter().enumerate() {
        let name = || transition.name.clone();
        let is_input = |master: PlaceId| net.inputs.of(i).contains(&master.0);
        match transition.master {
            None if transition.rule.needs_master() => return Err(NetError::NoMaster { transition: name() }),
            Some(_) if !transition.rule.needs_master() => {
                return Err(NetError::NeedlessMaster { transition: name() });
            }
            Some(master) if !is_input(master) => return Err(NetError::ForeignMaster { transition: name() }),
            _ => {}
        }
        if net.inputs.of(i).is_empty() && net.outputs.of(i).is_empty() {
            return Err(NetError::Unconnected { transition: name() });
        }
    }
    live(net)?;
    bounded(net)
}

/// Every circuit holds a token: the places without one form no circuit. Takes away, again and again, a
/// transition that no place without a token leads to (Kahn, 1962); what is left goes round in circles.
fn live(net: &Net) -> Result<(), NetError> {
    let empty = |place: &&u32| net.places[**place as usize].initial == 0;
    let mut waits: Vec<_> =
        (0..net.transitions.len()).map(|i| net.inputs.of(i).iter().filter(empty).count()).collect();
    let mut free: Vec<_> = (0..waits.len()).filter(|i| waits[*i] == 0).collect();
    while let Some(i) = free.pop() {
        for place in net.outputs.of(i).iter().filter(empty) {
            let consumer = net.places[*place as usize].consumer.index();
            waits[consumer] -= 1;
            if waits[consumer] == 0 {
                free.push(consumer);
            }
        }
    }
    let Some(mut at) = waits.iter().position(|waits| *waits > 0) else { return Ok(()) };
    // Each of what is left waits for another one of them: going back from one to the other ends in a circuit.
    let mut way: Vec<(usize, u32)> = Vec::new();
    let mut seen = vec![usize::MAX; waits.len()];
    while seen[at] == usize::MAX {
        seen[at] = way.len();
        let left = |place: &&u32| empty(place) && waits[net.places[**place as usize].producer.index()] > 0;
        let Some(place) = net.inputs.of(at).iter().find(left) else { break };
        seen[at] = way.len();
        way.push((at, *place));
        at = net.places[*place as usize].producer.index();
    }
    let circuit = way.split_off(seen[at].min(way.len()));
    Err(NetError::NotLive { circuit: described(net, &circuit) })
}

/// A circuit that was gone along backwards, in the order in which it would fire.
fn described(net: &Net, circuit: &[(usize, u32)]) -> String {
    let mut text = String::new();
    let named = circuit.len().min(CIRCUIT_NAMED_MAX);
    for (transition, place) in circuit.iter().rev().take(named) {
        let place = &net.places[*place as usize];
        let (from, to) = (&net.transitions[place.producer.index()], &net.transitions[*transition]);
        if text.is_empty() {
            let _ = write!(text, "{}", from.name);
        }
        let _ = write!(text, " → ({}) → {}", place.name, to.name);
    }
    if circuit.len() > named {
        let _ = write!(text, " → … and {} more", circuit.len() - named);
    }
    text
}

/// Every place lies on a circuit: producer and consumer can be reached from each other.
fn bounded(net: &Net) -> Result<(), NetError> {
    let pairs = net.places.iter().map(|place| (place.producer.index(), place.consumer.index()));
    let component = components(&Edges::new(net.transitions.len(), pairs));
    for place in &net.places {
        let (producer, consumer) = (place.producer.index(), place.consumer.index());
        if component[producer] != component[consumer] {
            let name = |i: usize| net.transitions[i].name.clone();
            let (producer, consumer) = (name(producer), name(consumer));
            return Err(NetError::NotBounded { place: place.name.clone(), producer, consumer });
        }
    }
    Ok(())
}

impl Net {
    /// For each place, the most tokens that it ever holds: the rounds that its producer can be ahead of its
    /// consumer. The time that this takes grows with the square of the transitions; an engine does not need
    /// it, because its window limits how far anything runs ahead.
    pub fn bounds(&self) -> Vec<u32> {
        bounds(self)
    }
}

/// For each place the least number of tokens on a circuit through it: its own, and those of the poorest way
/// back from its consumer to its producer. One search a transition (Dijkstra, 1959).
fn bounds(net: &Net) -> Vec<u32> {
    let mut bounds = vec![0; net.places.len()];
    let mut least = vec![u32::MAX; net.transitions.len()];
    for start in 0..net.transitions.len() {
        least.fill(u32::MAX);
        least[start] = 0;
        let mut next = BinaryHeap::from([Reverse((0_u32, start))]);
        while let Some(Reverse((tokens, at))) = next.pop() {
            if tokens > least[at] {
                continue;
            }
            for place in net.outputs.of(at) {
                let place = &net.places[*place as usize];
                let (to, sum) = (place.consumer.index(), tokens + place.initial);
                if sum < least[to] {
                    least[to] = sum;
                    next.push(Reverse((sum, to)));
                }
            }
        }
        for place in net.inputs.of(start) {
            let i = *place as usize;
            bounds[i] = net.places[i].initial + least[net.places[i].producer.index()];
        }
    }
    bounds
}

#[cfg(test)]
mod tests;
