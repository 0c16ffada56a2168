//! What a net is made of.

use super::{Interval, Name, Rule};

/// A transition of a net, by its place in the list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransitionId(pub u32);

/// A place of a net, by its place in the list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub(crate) u32);

impl TransitionId {
    /// Its place in [`Net::transitions`](super::Net::transitions).
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PlaceId {
    /// Its place in [`Net::places`](super::Net::places).
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

impl Place {
    /// Whether two differ in their names alone.
    pub(crate) fn is_alike(&self, other: &Place) -> bool {
        let of = |p: &Place| (p.carries, p.producer, p.consumer, p.interval, p.initial);
        of(self) == of(other)
    }
}
