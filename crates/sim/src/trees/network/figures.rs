//! What can be seen of a network: its figures, and how streams flow.

use core::time::Duration;

use outflow_media::Time;
use outflow_routing::tree::StreamId;

use super::Network;
use crate::trees::check;
use crate::trees::count::Traffic;
use crate::trees::media::Dark;

impl Network {
    /// The virtual time.
    pub const fn now(&self) -> Time {
        self.timetable.now()
    }

    /// How many relays there are, dead or alive.
    pub const fn len(&self) -> usize {
        self.relays.len()
    }

    /// Whether there are no relays.
    pub const fn is_empty(&self) -> bool {
        self.relays.is_empty()
    }

    /// What happened so far, to measure the simulator by.
    pub const fn events(&self) -> u64 {
        self.timetable.taken()
    }

    /// Whether the relay is alive.
    pub fn is_alive(&self, relay: usize) -> bool {
        self.relays[relay].is_alive
    }

    /// What all relays said so far.
    pub fn traffic(&self) -> Traffic {
        let mut sum = Traffic::default();
        self.relays.iter().for_each(|relay| sum.add(relay.counted.traffic));
        sum
    }

    /// What a relay said so far.
    pub fn traffic_of(&self, relay: usize) -> Traffic {
        self.relays[relay].counted.traffic
    }

    /// The most that a relay said in a second, since this was asked last.
    pub fn take_most_in_second(&mut self) -> u64 {
        let most = self.relays.iter_mut().map(|relay| core::mem::take(&mut relay.counted.most_in_second));
        most.max().unwrap_or(0)
    }

    /// Entries that a relay keeps: streams, parents, children, asks and candidates.
    pub fn entries(&self, relay: usize) -> usize {
        self.relays[relay].node.state()
    }

    /// How many relays have receivers of a stream that they do not get, once for each stream.
    pub const fn dark(&self) -> usize {
        self.media.dark()
    }

    /// The times without a stream that are over, since this was asked last.
    pub fn take_dark(&mut self) -> Vec<Dark> {
        self.media.take_dark()
    }

    /// For how long relays were sent a stream by two at once, each time that is over, since this was asked
    /// last.
    pub fn take_twice(&mut self) -> Vec<Duration> {
        self.media.take_twice()
    }

    /// What was not as it has to be at any time: how often, and the first of it in words.
    pub fn faults(&self) -> (u64, &[String]) {
        self.media.faults()
    }

    /// What is not as it must be once nothing happens any more: a relay that wants a stream of which a
    /// source is in its part has it, every relay asks for the best wanted below, and none is served by
    /// two, in vain, or with something else than it asks for.
    pub fn unsettled(&self) -> Vec<String> {
        check::unsettled(&self.relays)
    }

    /// How long a packet takes from the source to each relay that has the stream, and how long it would take
    /// straight from there.
    pub fn ways(&self, stream: StreamId) -> Vec<(Duration, Duration)> {
        self.relays.ways(stream)
    }

    /// Relays that are alive and have a source of the stream.
    pub fn sources(&self, stream: StreamId) -> impl Iterator<Item = usize> {
        self.relays.sources(stream)
    }

    /// How many relays are between each that has the stream and its source, counting itself.
    pub fn depths(&self, stream: StreamId) -> Vec<Option<usize>> {
        self.relays.depths(stream)
    }

    /// The source that a relay has a stream of.
    pub fn root(&self, relay: usize, stream: StreamId) -> Option<usize> {
        let it = &self.relays[relay];
        it.node.path(self.now(), stream).map(|path| path.root.relay.0 as usize)
    }

    /// Whether the relay serves others with the stream.
    pub fn has_children(&self, relay: usize, stream: StreamId) -> bool {
        !self.relays.below(stream, relay).is_empty()
    }

    /// The relays that are alive and have receivers of the stream.
    pub fn wanting(&self, stream: StreamId) -> Vec<usize> {
        self.relays.wanting(stream).collect()
    }

    /// The relays whose receivers do not get the stream.
    pub fn dark_relays(&self, stream: StreamId) -> Vec<usize> {
        self.relays.dark(stream).collect()
    }
}
