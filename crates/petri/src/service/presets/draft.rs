//! Nets whose transitions wait for a time that does not add up.
//!
//! What a place's interval allows is counted from when its producer fired: along a chain, what is waited for
//! adds up, and ten units lost in a row are ten waits. Here each transition has a *clock* instead: a place
//! from itself to itself that only orders, holds a token for each round that the receiver keeps, and is the
//! master of an `and-master`. Its token is old, so that its date is when there was evidence that the round has
//! begun; and since only the master's interval counts, the transition is over so long after that, or, if it is
//! enabled later, at once.

use core::time::Duration;

use crate::limits::INITIAL_TOKENS_MAX;
use crate::net::{Builder, Carries, Interval, Name, Net, NetError, Place, Rule, TransitionId};

/// Most rounds that a receiver may keep of a net with clocks.
pub(in crate::service) const ROUNDS: u32 = INITIAL_TOKENS_MAX;

/// A net in the making.
pub(in crate::service) struct Draft {
    builder: Builder,
    /// When an object is meant to be delivered, counted from what comes before it.
    nominal: Duration,
    /// Rounds that the receiver keeps.
    rounds: u32,
    /// Of transitions, how long they wait.
    clocks: Vec<(TransitionId, Duration)>,
}

impl Draft {
    pub(in crate::service) fn new(nominal: Duration, rounds: u32) -> Self {
        Draft { builder: Builder::new(), nominal, rounds, clocks: Vec::new() }
    }

    /// What is over when all its objects are there, or `wait` after the first unit of its round, or a later
    /// one, was told of; without one it waits for ever.
    pub(in crate::service) fn transition(
        &mut self,
        name: impl Into<Name>,
        wait: Option<Duration>,
    ) -> TransitionId {
        let rule = if wait.is_some() { Rule::AndMaster } else { Rule::And };
        let id = self.builder.transition(name, rule);
        self.clocks.extend(wait.map(|wait| (id, wait)));
        id
    }

    /// An object of the transition `to`, that may be delivered after `from`, `initial` rounds before, and
    /// always after the round before of `to`.
    pub(in crate::service) fn object(
        &mut self,
        name: Name,
        from: TransitionId,
        to: TransitionId,
        initial: u32,
    ) {
        let interval = Interval { nominal: self.nominal, ..Interval::ALWAYS };
        let carries = Carries::Object;
        self.builder.place(Place { name, carries, producer: from, consumer: to, interval, initial });
    }

    /// The transition `to` is over after `from`, `initial` rounds before.
    pub(in crate::service) fn order(
        &mut self,
        name: Name,
        from: TransitionId,
        to: TransitionId,
        initial: u32,
    ) {
        let (carries, interval) = (Carries::Order, Interval::ALWAYS);
        self.builder.place(Place { name, carries, producer: from, consumer: to, interval, initial });
    }

    pub(in crate::service) fn build(mut self) -> Result<Net, NetError> {
        let name = Name::new("clock");
        for (number, (id, wait)) in (0..).zip(core::mem::take(&mut self.clocks)) {
            let interval = Interval { latest: Some(wait), ..Interval::ALWAYS };
            let place = self.builder.place(Place {
                name: name.numbered(number),
                carries: Carries::Order,
                producer: id,
                consumer: id,
                interval,
                initial: self.rounds,
            });
            self.builder.master(place);
        }
        self.builder.build()
    }
}
