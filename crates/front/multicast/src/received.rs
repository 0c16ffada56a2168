//! Groups that streams come in as: each is asked for at the best level that receivers here want. No I/O.

use std::collections::BTreeMap;
use std::net::IpAddr;

use outflow_config::{Config, StreamConfig};
use outflow_engine::message::StreamId;
use outflow_front_groups::of_tree;
use outflow_packet::Level;

/// What the configuration says of a stream that comes in as a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) group: IpAddr,
    /// Services work on all of it.
    is_worked_on: bool,
    /// Streams that hand it on as it is.
    rendition_of: Vec<String>,
}

/// The streams that come in as groups, by name.
pub(super) fn received(config: &Config) -> BTreeMap<String, Received> {
    let with_group = config.streams.iter().filter_map(|(name, stream)| {
        let is_of = |other: &StreamConfig| other.source.renditions().contains(name);
        let others = config.streams.iter().filter(|(_, other)| is_of(other));
        let received = Received {
            group: group(stream)?,
            is_worked_on: !stream.plan().is_empty(),
            rendition_of: others.map(|(name, _)| name.clone()).collect(),
        };
        Some((name.clone(), received))
    });
    with_group.collect()
}

fn group(stream: &StreamConfig) -> Option<IpAddr> {
    stream.source.udp().map(|source| source.at.ip()).filter(IpAddr::is_multicast)
}

/// What receivers want of streams, by the number of the stream.
#[derive(Debug, Default)]
pub(super) struct Receivers {
    by: BTreeMap<StreamId, (String, Level)>,
}

impl Receivers {
    /// The receivers of a stream want this from now on; without a level, or as the stream has no name any more,
    /// nothing.
    pub(super) fn want(&mut self, number: StreamId, stream: Option<String>, level: Option<Level>) {
        match stream.zip(level) {
            Some(wanted) => _ = self.by.insert(number, wanted),
            None => _ = self.by.remove(&number),
        }
    }

    /// What is to be asked of each group: of several streams the best, and the last level of one that no receiver
    /// wants. It stays up with that, and costs least.
    pub(super) fn levels(
        &self,
        received: &BTreeMap<String, Received>,
    ) -> BTreeMap<IpAddr, outflow_routing::Level> {
        let mut levels = BTreeMap::new();
        for (name, one) in received {
            let level = self.of(name, one).map_or(outflow_routing::Level::LAST, of_tree);
            let best = levels.entry(one.group).or_insert(level);
            *best = level.min(*best);
        }
        levels
    }

    fn of(&self, name: &str, received: &Received) -> Option<Level> {
        let wants = self.by.values().filter_map(|(stream, level)| match stream {
            stream if received.rendition_of.contains(stream) => Some(Level::BEST),
            stream if stream == name => Some(if received.is_worked_on { Level::BEST } else { *level }),
            _ => None,
        });
        wants.min()
    }
}

#[cfg(test)]
mod tests {
    use outflow_config::Protocols;

    use super::*;

    const GROUP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(239, 1, 1, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(239, 1, 1, 2));

    fn streams(text: &str) -> BTreeMap<String, Received> {
        let config = Config::parse(text, "o.toml", &Protocols::default());
        received(&config.unwrap_or_else(|errors| panic!("{errors}")))
    }

    fn level(number: u8) -> Option<Level> {
        Level::new(number)
    }

    #[test]
    fn the_best_that_receivers_want_is_asked_for() {
        let streams = streams(
            "[streams.a]\nsource = \"udp://239.1.1.1:5000\"\n[streams.b]\nsource = \"udp://239.1.1.1:6000\"\n\
             [streams.c]\nsource = \"udp://239.1.1.2:5000\"\n[streams.d]\nsource = \"push\"\n",
        );
        let mut receivers = Receivers::default();
        let levels = |receivers: &Receivers| receivers.levels(&streams).into_values().collect::<Vec<_>>();
        let [best, two, three, last] =
            [1, 2, 3, 127].map(|number| outflow_routing::Level::new(number).expect("a level"));
        assert_eq!(receivers.levels(&streams).into_keys().collect::<Vec<_>>(), [GROUP, OTHER]);
        assert_eq!(levels(&receivers), [last, last], "none is there");
        receivers.want(1, Some("a".to_owned()), level(3));
        receivers.want(2, Some("b".to_owned()), level(2));
        receivers.want(3, Some("d".to_owned()), level(1));
        assert_eq!(levels(&receivers), [two, last]);
        receivers.want(4, Some("a".to_owned()), level(1));
        assert_eq!(levels(&receivers), [best, last], "with another worker");
        receivers.want(4, Some("a".to_owned()), None);
        receivers.want(2, None, level(2));
        assert_eq!(levels(&receivers), [three, last], "the stream has gone");
    }

    #[test]
    fn all_is_wanted_of_what_is_worked_on_or_handed_on() {
        let streams = streams(
            "[streams.low]\nsource = \"udp://239.1.1.1:5000\"\n[streams.high]\nsource = \"udp://239.1.1.2:5000\"\n\
             [streams.hall]\nsource = [\"low\", \"high\"]\n",
        );
        let mut receivers = Receivers::default();
        receivers.want(1, Some("hall".to_owned()), level(2));
        let best = outflow_routing::Level::BEST;
        assert_eq!(receivers.levels(&streams), [(GROUP, best), (OTHER, best)].into());
    }
}
