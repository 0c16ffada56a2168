//! What is played.

use std::collections::BTreeSet;
use std::time::Duration;

use outflow_routing::tree::StreamId;
use outflow_sim::trees::{Crowd, Network, Settings};

/// Others that a relay serves at the most. Twenty streams to sixteen others are 320 of them.
const CHILDREN_MAX: usize = 16;

/// Receivers of a stream at a relay that has any. Each stays at a level for five minutes in the mean; every ten
/// minutes all are away for one.
pub(crate) const CROWD: Crowd = Crowd {
    receivers: 100,
    stay: Duration::from_secs(300),
    presence: Duration::from_secs(600),
    absence: Duration::from_secs(60),
};

/// A size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) relays: usize,
    pub(crate) streams: usize,
    /// How many of them are wanted at each relay.
    pub(crate) wanted: usize,
    /// Whether one relay has all their sources.
    pub(crate) is_one_site: bool,
    /// How long a phase lasts.
    pub(crate) phase: Duration,
}

impl Plan {
    pub(crate) const fn of_one_stream(relays: usize, phase: Duration) -> Self {
        Plan { relays, streams: 1, wanted: 1, is_one_site: true, phase }
    }

    /// A hundred sources, each at another relay; five of them are wanted at each.
    pub(crate) const fn of_many_streams(relays: usize, phase: Duration) -> Self {
        Plan { relays, streams: 100, wanted: 5, is_one_site: false, phase }
    }

    /// One relay has twenty sources, all of which are wanted everywhere.
    pub(crate) const fn of_one_site(relays: usize, phase: Duration) -> Self {
        Plan { relays, streams: 20, wanted: 20, is_one_site: true, phase }
    }

    /// Relays that have sources, with these streams, and want nothing yet.
    pub(crate) fn network(&self) -> Network {
        let children_max = CHILDREN_MAX * if self.is_one_site { self.streams } else { 1 };
        let settings = Settings { relays: self.relays, children_max, seed: self.relays as u64 };
        let mut network = Network::new(settings);
        for (relay, stream) in self.sources() {
            network.set_source(relay, stream, Some(0));
        }
        network
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = (usize, StreamId)> + use<> {
        let apart = if self.is_one_site { 0 } else { self.relays / self.streams };
        (0..self.streams).map(move |number| (number * apart, StreamId(number as u64)))
    }

    /// Receivers come everywhere at once. How many.
    pub(crate) fn gather(&self, network: &mut Network) -> u64 {
        let mut receivers = 0;
        let sources: BTreeSet<_> = self.sources().collect();
        for relay in 0..self.relays {
            let mut wanted = BTreeSet::new();
            while wanted.len() < self.wanted {
                wanted.insert(StreamId(network.random().u64(..self.streams as u64)));
            }
            for stream in wanted {
                if !sources.contains(&(relay, stream)) {
                    network.gather(relay, stream, &CROWD);
                    receivers += CROWD.receivers;
                }
            }
        }
        receivers
    }
}
