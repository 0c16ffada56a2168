//! A net as the engine reads it: numbers side by side.

use outflow_media::Time;

use super::super::{Carries, Driver, Edges, Place, Transition, Upper};

/// Stands for "no object".
pub(super) const NO_OBJECT: u32 = u32::MAX;

/// A time that never comes.
pub(super) const NEVER: Time = Time::from_nanos(u64::MAX);

/// The time `ns` nanoseconds later.
pub(super) const fn after(time: Time, ns: u64) -> Time {
    Time::from_nanos(time.as_nanos().saturating_add(ns))
}

/// A place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arc {
    pub(super) producer: u32,
    pub(super) consumer: u32,
    pub(super) initial: u32,
    /// The index of its object, or [`NO_OBJECT`].
    pub(super) object: u32,
    /// Nanoseconds.
    pub(super) earliest: u64,
    /// Nanoseconds; `u64::MAX` for no end.
    pub(super) latest: u64,
}

/// A transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) driver: Driver,
    pub(super) upper: Upper,
    /// Objects among its inputs.
    pub(super) objects: u32,
    /// The master place; any number where there is none.
    pub(super) master: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::net) struct Tables {
    pub(super) arcs: Vec<Arc>,
    pub(super) shapes: Vec<Shape>,
    /// The place of each object.
    pub(super) places: Vec<u32>,
}

impl Tables {
    /// `inputs` are the places of each transition.
    pub(in crate::net) fn new(transitions: &[Transition], all: &[Place], inputs: &Edges) -> Self {
        let (mut places, mut arcs) = (Vec::new(), Vec::with_capacity(all.len()));
        for (i, place) in (0..).zip(all) {
            let is_object = place.carries == Carries::Object;
            let object = if is_object { places.len() as u32 } else { NO_OBJECT };
            if is_object {
                places.push(i);
            }
            arcs.push(Arc {
                producer: place.producer.0,
                consumer: place.consumer.0,
                initial: place.initial,
                object,
                earliest: place.interval.earliest.as_nanos() as u64,
                latest: place.interval.latest.map_or(u64::MAX, |latest| latest.as_nanos() as u64),
            });
        }
        let shape = |(i, transition): (usize, &Transition)| {
            let of_object = |place: &&u32| arcs[**place as usize].object != NO_OBJECT;
            let objects = inputs.of(i).iter().filter(of_object).count() as u32;
            let master = transition.master.map_or(0, |place| place.0);
            Shape { driver: transition.rule.driver(), upper: transition.rule.upper(), objects, master }
        };
        let shapes = transitions.iter().enumerate().map(shape).collect();
        Tables { arcs, shapes, places }
    }
}
