//! What is promised of a flow, checked from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use outflow_media::Time;
use outflow_petri::net::{Carries, Net, TransitionId};
use outflow_petri::service::{Class, Flow};

use super::super::NotSent;
use super::scenario::is_patient;
use crate::recovery::GiveUp;

/// What an application gave: how long it was, until when it was useful, and how it was to be sent again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    pub(super) bytes: usize,
    pub(super) until: Option<Time>,
    pub(super) class: Class,
}

/// Bytes that nothing else has.
pub(super) fn data(unit: u64, bytes: usize) -> Bytes {
    (0..bytes as u64).map(|at| (at ^ (at >> 8) ^ unit.wrapping_mul(37)) as u8).collect()
}

/// Of one flow.
pub(super) struct Oracle {
    pub(super) flow: Flow,
    is_patient: bool,
    pub(super) given: BTreeMap<u64, Given>,
    pub(super) lost: BTreeSet<u64>,
    pub(super) given_up: BTreeMap<u64, NotSent>,
    pub(super) delivered: BTreeSet<u64>,
    pub(super) missed: BTreeSet<u64>,
    order: Order,
    /// Came when the net had gone on, or after they were given up: not to be delivered.
    pub(super) over: BTreeSet<u64>,
}

impl Oracle {
    pub(super) fn new(flow: Flow) -> Self {
        Oracle {
            is_patient: is_patient(&flow),
            order: Order::new(flow.net.clone()),
            flow,
            given: BTreeMap::new(),
            lost: BTreeSet::new(),
            given_up: BTreeMap::new(),
            delivered: BTreeSet::new(),
            missed: BTreeSet::new(),
            over: BTreeSet::new(),
        }
    }

    pub(super) fn handle_delivered(&mut self, unit: u64, bytes: &Bytes) {
        let given = self.given.get(&unit).unwrap_or_else(|| panic!("unit {unit} was never sent"));
        assert!(
            given.bytes == bytes.len() && *bytes == data(unit, given.bytes),
            "unit {unit} is another one"
        );
        assert!(!self.over.contains(&unit), "unit {unit} is delivered though it was over");
        self.order.check(unit);
        self.handle_over(unit);
        self.delivered.insert(unit);
    }

    pub(super) fn handle_missed(&mut self, unit: u64) {
        self.handle_over(unit);
        self.missed.insert(unit);
    }

    fn handle_over(&mut self, unit: u64) {
        assert!(!self.delivered.contains(&unit), "unit {unit} was delivered before");
        assert!(!self.missed.contains(&unit), "unit {unit} was missed before");
        self.order.handle_over(unit);
    }

    /// The sender's application is told, when it takes `margin` to get there.
    pub(super) fn handle_given_up(&mut self, unit: u64, why: NotSent, at_the_receiver: Time) {
        let Given { until, class, .. } = *self.given.get(&unit).expect("it was given");
        assert!(self.given_up.insert(unit, why).is_none(), "unit {unit} was given up before");
        let is_late = || until.is_some_and(|until| until <= at_the_receiver);
        match why {
            NotSent::TooLate => assert!(is_late(), "unit {unit} was given up in time: {until:?}"),
            NotSent::Overload => assert_ne!(class, Class::Reliable, "unit {unit} is reliable"),
            NotSent::Dependency => assert!(self.flow.is_dependent, "unit {unit} needs nothing"),
            NotSent::NotNeeded | NotSent::NotRepaired(GiveUp::NotNeeded | GiveUp::TooLate) => (),
            NotSent::NotRepaired(GiveUp::Unreliable) => assert_eq!(class, Class::Unreliable),
            NotSent::NotRepaired(GiveUp::Attempts) => assert_eq!(class, Class::Partial),
        }
    }

    pub(super) fn handle_lost(&mut self, unit: u64) {
        assert!(self.lost.insert(unit), "unit {unit} was lost before");
    }

    /// The sender says that the receiver is done with all of these.
    pub(super) fn finish(&self, next: u64) {
        for unit in 0..next {
            let (is_there, is_missed) = (self.delivered.contains(&unit), self.missed.contains(&unit));
            assert!(is_there || is_missed, "unit {unit} has no fate");
            assert_eq!(is_missed, self.lost.contains(&unit), "both ends know of unit {unit}");
        }
        for (unit, given) in &self.given {
            let is_reliable = given.class == Class::Reliable && given.until.is_none();
            if is_reliable && self.is_patient {
                assert!(self.delivered.contains(unit), "unit {unit} is reliable, and was lost");
            }
        }
    }
}

/// What may have fired at the most: everything whose objects are over, as soon as they are.
struct Order {
    net: Arc<Net>,
    fired: Vec<u64>,
    over: BTreeSet<u64>,
    object_of: BTreeMap<usize, usize>,
}

impl Order {
    fn new(net: Arc<Net>) -> Self {
        let object_of = (0..net.objects()).map(|object| (net.place_of(object).index(), object)).collect();
        let fired = vec![0; net.transitions().len()];
        let mut order = Order { net, fired, over: BTreeSet::new(), object_of };
        order.run((0..order.fired.len()).collect());
        order
    }

    /// What has to be completed before a unit was.
    fn check(&self, unit: u64) {
        let (round, object) = self.net.split(unit);
        let place = &self.net.places()[self.net.place_of(object).index()];
        let fired = self.fired[place.producer.index()];
        assert!(round < fired + u64::from(place.initial), "unit {unit} comes before what it follows");
    }

    fn handle_over(&mut self, unit: u64) {
        self.over.insert(unit);
        let (_, object) = self.net.split(unit);
        let place = &self.net.places()[self.net.place_of(object).index()];
        self.run(vec![place.consumer.index()]);
    }

    fn run(&mut self, mut open: Vec<usize>) {
        // A transition without objects may run ahead as far as places let it, which are bounded.
        while let Some(transition) = open.pop() {
            while self.can_fire(transition) {
                self.fired[transition] += 1;
                let outputs = self.net.outputs(TransitionId(transition as u32));
                open.extend(outputs.map(|place| self.net.places()[place.index()].consumer.index()));
            }
        }
    }

    fn can_fire(&self, transition: usize) -> bool {
        let round = self.fired[transition];
        self.net.inputs(TransitionId(transition as u32)).all(|id| {
            let place = &self.net.places()[id.index()];
            let holds = round < self.fired[place.producer.index()] + u64::from(place.initial);
            let is_over = || self.over.contains(&self.net.unit(round, self.object_of[&id.index()]));
            holds && (place.carries == Carries::Order || is_over())
        })
    }
}
