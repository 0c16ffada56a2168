//! The net: its parts, and what leads where.

use core::fmt;
use std::sync::Arc;

use super::engine::Tables;
use super::{Edges, Name, Place, PlaceId, Transition, TransitionId};

/// A service: a marked graph that is live and bounded. It does not change.
#[derive(Clone, PartialEq, Eq)]
pub struct Net {
    pub(super) transitions: Vec<Transition>,
    pub(super) places: Vec<Place>,
    /// The places that carry objects, in order.
    pub(super) objects: Vec<u32>,
    pub(super) inputs: Edges,
    pub(super) outputs: Edges,
    /// The same for engines, which share it.
    pub(super) tables: Arc<Tables>,
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
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
