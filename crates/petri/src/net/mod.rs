//! Services as Time Stream Petri Nets (TSPN; Sénac, Diaz, Léger, de Saqui-Sannes, IEEE JSAC 14(1), 1996; for
//! transport: Diaz, Lozes, Chassot, Amer, Annals of Telecommunications 49(5-6), 1994).
//!
//! A [`Net`] describes one period of a stream, say a GOP. Its *places* are the objects of the period
//! (transport service data units; slices of pictures, say), or only order two transitions. Its *transitions*
//! are what is completed together, a picture, say. A transition fires once a *round*: it takes a token from
//! each of its input places and puts one into each of its output places. An object may be delivered when its
//! place holds the token of its round; when its consumer fires, its time is over. An [`Engine`] runs a net.
//!
//! Objects are numbered: the one with index `i` of `n`, of round `r`, is *unit* `r * n + i`. Places are
//! declared in the order in which their objects are sent.
//!
//! # Marked graphs only
//!
//! Each place has one producer and one consumer. A place with two consumers would be a choice: which of them
//! takes the token depends on what arrived, so that two ends that run the same net would come to disagree on
//! what was delivered and what is to be sent again. Without choices the order in which transitions are
//! looked at makes no difference. And what is to be checked is simple: a marked graph is live, which is the
//! same as free of deadlocks if each place lies on a circuit, exactly if every circuit holds a token, and a
//! place never holds more tokens than the poorest circuit through it (Commoner, Holt, Even, Pnueli, 1971).
//! All objects of a live net are reachable.
//!
//! # When a transition fires
//!
//! Each place has an interval `[a, n, b]`. Each token has a date: when its producer put it there, or the
//! start; but not before there was *evidence* that the consumer's round has begun, which is that its first
//! unit or a later one was received, absent or announced. So a source that pauses does not make the net run
//! by itself. A transition whose first object was not told of yet waits, however old its tokens are. (Of one
//! without objects, the first unit of the period counts.)
//!
//! A transition is enabled when all its input places hold their tokens. A token of date `d` can be taken
//! between `d + a` and `d + b`. Nine rules make one interval of those of all input places:
//!
//! | word | from | until | completed by |
//! |---|---|---|---|
//! | `strong-or` | min d+a | min d+b | any object |
//! | `or` | min d+a | max d+b | any object |
//! | `or-master` | min d+a | d+b of the master | any object |
//! | `and` | max d+a | min d+b | all objects |
//! | `weak-and` | max d+a | max d+b | all objects |
//! | `and-master` | max d+a | d+b of the master | all objects |
//! | `strong-master` | d+a of the master | min d+b | the master's object |
//! | `weak-master` | d+a of the master | max d+b | the master's object |
//! | `master` | d+a of the master | d+b of the master | the master's object |
//!
//! The names and that there are nine are those of the model; the bounds are inferred from its structure
//! (three ways to begin, three to end). Where the model leaves something open, this is what was chosen, and
//! why:
//!
//! | question | here | because |
//! |---|---|---|
//! | when does it fire | once it is completed and `from` has come; else at `until`, completed or not | what is there need not wait, what is lost must not hold up the rest |
//! | `until` before `from` | at `until` | the later object came too late for the others |
//! | `until` before it is enabled | when it is enabled | order is never given up, time is |
//! | what is an object that is there | received, or known not to come; and its own `d + a` has come | so `or` begins with an object that can be delivered |
//! | places that only order | are not waited for beyond their token; they count in `until`, and in `from` where that is of all places, or where there are no objects | else an `or` with one of them would be completed at once |
//! | the ends | `from` belongs to the interval, `until` does not | an object that comes when its transition fires is late at both ends |
//! | the date of a token put there by a firing that was noticed late | when it was due | what is delivered does not depend on how often the engine is called |

mod build;
mod check;
mod dot;
mod edges;
mod engine;
mod generate;
mod interval;
mod name;
mod order;
mod pace;
mod rule;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
mod text;
mod wire;

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

pub use build::Builder;
pub use check::NetError;
pub use dot::dot;
pub(crate) use edges::Edges;
use engine::Tables;
pub use engine::{Engine, Event, Need, Verdict};
pub use generate::{Frame, Shape, mpeg_gop, mpeg_shape, of_gop};
pub use interval::Interval;
pub use name::Name;
pub use rule::{Driver, Rule, Upper};
pub use text::TextError;
pub(crate) use wire::stride;
pub use wire::{emit, parse};

/// A transition of a net, by its place in the list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransitionId(pub u32);

/// A place of a net, by its place in the list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub(crate) u32);

impl TransitionId {
    /// Its place in [`Net::transitions`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PlaceId {
    /// Its place in [`Net::places`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is completed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// What people call it; no other transition has the same name.
    pub name: Name,
    /// When it fires.
    pub rule: Rule,
    /// Which of its input places is the master; of rules that need one, and of no others.
    pub master: Option<PlaceId>,
}

/// What a place carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carries {
    /// One object a round.
    Object,
    /// Nothing: its consumer fires after its producer, that is all.
    Order,
}

/// An object of the period, or an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What people call it; no other place has the same name.
    pub name: Name,
    /// What it carries.
    pub carries: Carries,
    /// The transition that puts tokens there: what has to be completed before the object is delivered.
    pub producer: TransitionId,
    /// The transition that takes them: what the object is a part of.
    pub consumer: TransitionId,
    /// When its object may be delivered, counted from the date of the token.
    pub interval: Interval,
    /// Tokens that it holds at the start: the number of rounds in which the consumer does not wait for the
    /// producer.
    pub initial: u32,
}

/// A service: a marked graph that is live and bounded. It does not change.
#[derive(Clone, PartialEq, Eq)]
pub struct Net {
    transitions: Vec<Transition>,
    places: Vec<Place>,
    /// The places that carry objects, in order.
    objects: Vec<u32>,
    inputs: Edges,
    outputs: Edges,
    /// The same for engines, which share it.
    tables: Arc<Tables>,
}

impl Net {
    /// All transitions.
    pub fn transitions(&self) -> &[Transition] {
        &self.transitions
    }

    /// All places; those that carry objects are in the order in which these are sent.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// A transition of this net.
    ///
    /// # Panics
    ///
    /// If it is of another net, a larger one.
    pub fn transition(&self, id: TransitionId) -> &Transition {
        &self.transitions[id.index()]
    }

    /// How many objects a period has, at least one.
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// The place of the object of this index, lower than [`objects`](Self::objects).
    ///
    /// # Panics
    ///
    /// If the index is not.
    pub fn place_of(&self, object: usize) -> PlaceId {
        PlaceId(self.objects[object])
    }

    /// The unit that is the object of this index in this round.
    pub fn unit(&self, round: u64, object: usize) -> u64 {
        round.saturating_mul(self.objects.len() as u64).saturating_add(object as u64)
    }

    /// The round of a unit, and the index of its object.
    pub fn split(&self, unit: u64) -> (u64, usize) {
        let objects = self.objects.len() as u64;
        (unit / objects, (unit % objects) as usize)
    }

    /// The places that a transition takes tokens from.
    pub fn inputs(&self, id: TransitionId) -> impl ExactSizeIterator<Item = PlaceId> {
        self.inputs.of(id.index()).iter().map(|place| PlaceId(*place))
    }

    /// The places that a transition puts tokens into.
    pub fn outputs(&self, id: TransitionId) -> impl ExactSizeIterator<Item = PlaceId> {
        self.outputs.of(id.index()).iter().map(|place| PlaceId(*place))
    }

    /// For each place, the most tokens that it ever holds: the rounds that its producer can be ahead of its
    /// consumer. The time that this takes grows with the square of the transitions; an engine does not need
    /// it, because its window limits how far anything runs ahead.
    pub fn bounds(&self) -> Vec<u32> {
        check::bounds(self)
    }

    /// The longest that a round takes on average if nothing is received, however much is lost: what is
    /// waited for adds up along circuits. `None` if something is waited for without end. A receiver keeps up
    /// with a live source if this is not longer than the period; else it falls behind as long as there are
    /// losses, until its window ends. The time that this takes may grow with the square of the net: it is
    /// meant for authors of nets.
    pub fn slowest_round(&self) -> Option<Duration> {
        pace::slowest_round(self)
    }

    /// Whether each object can be delivered as soon as all before it are over: none waits for one that is sent
    /// behind it. Of other nets a receiver may have to keep all of a window, and a source is to end its last
    /// round.
    pub fn is_sent_in_order(&self) -> bool {
        order::is_sent_in_order(self)
    }

    /// The same with names by position (`t[0]`, `p[0]`): what arrives at the other end of a wire.
    pub fn without_names(&self) -> Net {
        let (mut net, transition, place) = (self.clone(), Name::new("t"), Name::new("p"));
        for (i, t) in (0..).zip(&mut net.transitions) {
            t.name = transition.numbered(i);
        }
        for (i, p) in (0..).zip(&mut net.places) {
            p.name = place.numbered(i);
        }
        net
    }

    /// Whether two neighbours in the list of places differ in their names alone.
    pub(crate) fn alike(a: &Place, b: &Place) -> bool {
        let of = |p: &Place| (p.carries, p.producer, p.consumer, p.interval, p.initial);
        of(a) == of(b)
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
