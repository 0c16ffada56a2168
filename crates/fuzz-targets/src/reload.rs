//! A configuration that takes the place of another one, in a relay where some of it cannot be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outflow_config::{Changes, Config, Protocols, SinkConfig, StreamConfig, Unmade, diff};

/// What a relay has, by name.
#[derive(Debug, PartialEq)]
struct Relay {
    streams: BTreeMap<String, Arc<StreamConfig>>,
    sinks: BTreeMap<String, SinkConfig>,
}

impl Relay {
    fn of(config: &Config) -> Self {
        let sinks = config.sinks.iter().map(|sink| (sink.name.clone(), sink.clone()));
        Relay { streams: config.streams.clone(), sinks: sinks.collect() }
    }

    /// Makes the changes one by one, as control does. Those that fail leave what was there, or nothing.
    fn apply(&mut self, old: &Config, new: &Config, changes: &Changes, fate: &mut Fate<'_>) -> Vec<Unmade> {
        let mut unmade = Vec::new();
        for name in changes.sinks_removed.iter().chain(&changes.sinks_changed) {
            assert!(self.sinks.remove(name).is_some(), "{name} was there");
        }
        for name in &changes.streams_removed {
            assert!(self.streams.remove(name).is_some(), "{name} was there");
        }
        for name in &changes.streams_added {
            let (fails, back) = fate.next();
            let made = if fails { old.streams.get(name).filter(|_| back) } else { new.streams.get(name) };
            let before = self.streams.insert(name.clone(), new.streams[name].clone());
            assert!(before.is_none(), "{name} was not there");
            match made {
                Some(made) => drop(self.streams.insert(name.clone(), made.clone())),
                None => drop(self.streams.remove(name)),
            }
            unmade.extend(fails.then(|| Unmade::Stream(name.clone(), made.is_some())));
        }
        for name in &changes.streams_changed {
            assert!(self.streams.contains_key(name), "{name} goes on");
            let (fails, _) = fate.next();
            if !fails {
                self.streams.insert(name.clone(), new.streams[name].clone());
            }
            unmade.extend(fails.then(|| Unmade::Stream(name.clone(), true)));
        }
        let (had, wanted) = (Relay::of(old).sinks, Relay::of(new).sinks);
        for name in changes.sinks_added.iter().chain(&changes.sinks_changed) {
            let (fails, back) = fate.next();
            let made = if fails { had.get(name).filter(|_| back) } else { wanted.get(name) };
            if let Some(made) = made {
                assert!(self.sinks.insert(name.clone(), made.clone()).is_none(), "{name} was not there");
            }
            unmade.extend(fails.then(|| Unmade::Sink(name.clone(), made.is_some())));
        }
        unmade
    }
}

/// What fails, as bytes say: two bits for each change.
struct Fate<'a>(&'a [u8]);

impl Fate<'_> {
    /// Whether it fails, and if so, whether what was there comes back.
    fn next(&mut self) -> (bool, bool) {
        let Some((byte, rest)) = self.0.split_first() else { return (false, false) };
        self.0 = rest;
        (byte & 1 != 0, byte & 2 != 0)
    }
}

/// Two texts and what fails, with a byte 0 between them: both parsed, and the second takes the place of the first.
pub(crate) fn reload(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let [Some(old), Some(new)] = [parts.next(), parts.next()] else { return };
    let known = &outflow_fronts::protocols();
    let (Some(old), Some(new)) = (parsed(old, known), parsed(new, known)) else { return };
    let changes = diff(&old, &new);
    let mut relay = Relay::of(&old);
    let unmade = relay.apply(&old, &new, &changes, &mut Fate(parts.next().unwrap_or_default()));
    let mut in_force = new.clone();
    unmade.iter().for_each(|unmade| in_force.put_back(&old, unmade));
    assert_eq!(Relay::of(&in_force), relay, "what is said to be in force is");
    let links = in_force.streams.values().filter_map(|stream| stream.link.as_ref());
    let links = links.chain(in_force.sinks.iter().filter_map(|sink| sink.link.as_ref()));
    links.for_each(|link| assert!(in_force.links.contains_key(&link.0), "{} is behind nothing", link.0));
    assert!(diff(&in_force, &in_force).is_empty());
    let failed: BTreeSet<_> = unmade.iter().filter_map(name_of).collect();
    let again = diff(&in_force, &new);
    let left = again.streams_added.iter().chain(&again.streams_removed).chain(&again.streams_changed);
    let left = left.chain(&again.sinks_added).chain(&again.sinks_removed).chain(&again.sinks_changed);
    for name in left {
        // A sink goes with a stream that is replaced.
        let stream = in_force.sinks.iter().find(|sink| sink.name == *name).map(|sink| sink.stream.as_str());
        assert!(failed.contains(name.as_str()) || stream.is_some_and(|name| failed.contains(name)), "{name}");
    }
}

fn parsed(text: &[u8], known: &Protocols) -> Option<Config> {
    Config::parse(&String::from_utf8_lossy(text), "fuzz.toml", known).ok()
}

fn name_of(unmade: &Unmade) -> Option<&str> {
    match unmade {
        Unmade::Stream(name, _) | Unmade::Sink(name, _) => Some(name),
        Unmade::Protocol => None,
    }
}
