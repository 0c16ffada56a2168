//! The streams whose flows share a buffer, and what each weighs.

use std::collections::BTreeMap;

use crate::flow::FlowId;

/// What an application's part of the service is divided among.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Party {
    /// A stream with this number.
    Stream(usize),
    /// A flow that is of no stream with a number: it is one by itself.
    Flow(FlowId),
    /// A buffer that streams share.
    Buffer(usize),
}

/// The streams that have flows in a buffer.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// Flows and weight of each.
    all: BTreeMap<Party, (usize, u32)>,
    /// Of all of them.
    flows: usize,
    weight: u64,
}

impl Streams {
    /// One more flow of a stream, which weighs that from now on.
    pub(super) fn add(&mut self, stream: Party, weight: u32) {
        if self.flows == 0 {
            *self = Streams::default();
        }
        let (flows, weighs) = self.all.entry(stream).or_default();
        self.weight = self.weight - u64::from(*weighs) + u64::from(weight);
        (*flows, *weighs) = (*flows + 1, weight);
        self.flows += 1;
    }

    /// One flow less of a stream. The last of all leaves its weight: what waits of it goes as it would have.
    pub(super) fn remove(&mut self, stream: Party) {
        let Some((flows, weight)) = self.all.get_mut(&stream) else { return };
        *flows -= 1;
        self.flows -= 1;
        if *flows == 0 && self.flows > 0 {
            self.weight -= u64::from(*weight);
            self.all.remove(&stream);
        }
    }

    /// What all of them weigh together.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_weighs_the_same_however_many_flows_it_has() {
        let mut streams = Streams::default();
        let [one, other] = [1, 2].map(Party::Stream);
        (0..3).for_each(|_| streams.add(one, 5));
        streams.add(other, 2);
        assert_eq!(streams.weight(), 7);
        streams.remove(one);
        assert_eq!(streams.weight(), 7);
        (0..2).for_each(|_| streams.remove(one));
        assert_eq!(streams.weight(), 2);
        streams.remove(other);
        assert_eq!(streams.weight(), 2, "something of it may wait");
        streams.add(one, 9);
        assert_eq!(streams.weight(), 9);
    }
}
