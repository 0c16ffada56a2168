//! Nets put together by a program.

use std::sync::Arc;

use super::engine::Tables;
use super::{Carries, Edges, Name, Net, NetError, Place, PlaceId, Rule, Transition, TransitionId, check};

/// Collects transitions and places; [`build`](Self::build) says whether they are a net.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    transitions: Vec<Transition>,
    places: Vec<Place>,
}

impl Builder {
    /// Without anything.
    pub fn new() -> Self {
        Builder::default()
    }

    /// Adds a transition.
    pub fn transition(&mut self, name: impl Into<Name>, rule: Rule) -> TransitionId {
        self.transitions.push(Transition { name: name.into(), rule, master: None });
        TransitionId((self.transitions.len() - 1) as u32)
    }

    /// Adds a place. Those that carry objects come in the order in which these are sent.
    pub fn place(&mut self, place: Place) -> PlaceId {
        self.places.push(place);
        PlaceId((self.places.len() - 1) as u32)
    }

    /// Makes a place the master of the transition that takes from it.
    pub fn master(&mut self, place: PlaceId) {
        let consumer = self.places.get(place.index()).map(|place| place.consumer);
        if let Some(transition) = consumer.and_then(|consumer| self.transitions.get_mut(consumer.index())) {
            transition.master = Some(place);
        }
    }

    /// Transitions so far.
    pub(super) fn transitions(&self) -> &[Transition] {
        &self.transitions
    }

    /// Places so far.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// The net, if it is one that every engine can run to no end. The time that this takes is proportional to
    /// the size of the net, but for sorting names.
    pub fn build(self) -> Result<Net, NetError> {
        let Builder { transitions, places } = self;
        check::parts(&transitions, &places)?;
        let of = |end: fn(&Place) -> TransitionId| {
            let pairs = places.iter().enumerate().map(move |(i, place)| (end(place).index(), i));
            Edges::new(transitions.len(), pairs)
        };
        let (inputs, outputs) = (of(|place| place.consumer), of(|place| place.producer));
        let is_object = |i: &u32| places[*i as usize].carries == Carries::Object;
        let objects = (0..places.len() as u32).filter(is_object).collect();
        let tables = Arc::new(Tables::new(&transitions, &places, &inputs));
        let net = Net { transitions, places, objects, inputs, outputs, tables };
        check::graph(&net)?;
        Ok(net)
    }
}
