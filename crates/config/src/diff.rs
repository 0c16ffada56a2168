//! What changed between two configurations: a reload touches that, and nothing else.

use std::collections::BTreeMap;
use std::fmt;

use crate::extension::Effect;
use crate::section::Section;
use crate::{Config, LinkConfig, SinkConfig, StreamConfig};

/// What changed, by name. What is not named here is the same in both.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Streams only in the new configuration.
    pub streams_added: Vec<String>,
    /// Streams only in the old configuration.
    pub streams_removed: Vec<String>,
    /// Streams in both, but different.
    pub streams_changed: Vec<String>,
    /// Links only in the new configuration.
    pub links_added: Vec<String>,
    /// Links only in the old configuration.
    pub links_removed: Vec<String>,
    /// Links in both, but different.
    pub links_changed: Vec<String>,
    /// Sinks only in the new configuration.
    pub sinks_added: Vec<String>,
    /// Sinks only in the old configuration.
    pub sinks_removed: Vec<String>,
    /// Sinks in both, but different.
    pub sinks_changed: Vec<String>,
    /// Keys such as "access.play" that take effect at once.
    pub settings: Vec<String>,
    /// Keys such as "listen.rtsp" that take effect when the relay is restarted.
    pub restart: Vec<String>,
    lines: Vec<String>,
}

/// What was added, removed and changed among things that have names.
struct Delta {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<(String, Vec<&'static str>)>,
}

/// Keys of `[limits]` that workers begin with.
const OF_WORKERS: [&str; 5] = ["workers", "pin_workers", "normal_share", "low_share", "poll"];

/// What has to be done to get from `old` to `new`.
pub fn diff(old: &Config, new: &Config) -> Changes {
    let under = |table: &'static str, keys: Vec<&'static str>| {
        keys.into_iter().map(move |key| format!("{table}.{key}"))
    };
    let (workers, limits): (Vec<_>, Vec<_>) =
        old.limits.changed(&new.limits).into_iter().partition(|key| OF_WORKERS.contains(key));
    let tls = old.tls != new.tls;
    let restart = under("listen", old.listen.changed(&new.listen))
        .chain(tls.then(|| "tls".to_owned()))
        .chain(under("limits", workers))
        .chain(under("fanout", old.fanout.changed(&new.fanout)))
        .chain(of_protocols(old, new, Effect::Restart))
        .chain(under("log", old.log.changed(&new.log)));
    let settings = under("access", old.access.changed(&new.access))
        .chain(under("limits", limits))
        .chain(of_protocols(old, new, Effect::AtOnce));
    let (restart, settings): (Vec<_>, Vec<_>) = (restart.collect(), settings.collect());
    let streams = delta(&streams(old), &streams(new), Section::changed);
    let links = delta(&links(old), &links(new), Section::changed);
    let sinks = delta(&sinks(old), &sinks(new), changed_sink);
    let lines: Vec<_> = streams
        .lines("stream")
        .chain(links.lines("link"))
        .chain(sinks.lines("sink"))
        .chain(settings.iter().map(|key| format!("{key} changed")))
        .chain(restart.iter().map(|key| format!("{key} changed: needs a restart")))
        .collect();
    let changes = Changes {
        lines,
        streams_added: streams.added,
        streams_removed: streams.removed,
        streams_changed: streams.changed.into_iter().map(|(name, _)| name).collect(),
        links_added: links.added,
        links_removed: links.removed,
        links_changed: links.changed.into_iter().map(|(name, _)| name).collect(),
        sinks_added: sinks.added,
        sinks_removed: sinks.removed,
        sinks_changed: sinks.changed.into_iter().map(|(name, _)| name).collect(),
        settings,
        restart,
    };
    with_replaced(changes, old, new)
}

/// Keys of protocols' tables that changed, of those whose change needs this.
fn of_protocols(old: &Config, new: &Config, effect: Effect) -> Vec<String> {
    let changed = old.tables.changed(&new.tables).into_iter().filter(|(table, _)| table.effect == effect);
    changed
        .flat_map(|(table, keys)| keys.into_iter().map(move |key| format!("{}.{key}", table.name)))
        .collect()
}

/// A stream that gets other renditions, or a source instead, is another stream; so its sinks are others, too.
fn with_replaced(mut changes: Changes, old: &Config, new: &Config) -> Changes {
    let is_replaced = |name: &String| {
        let (old, new) = (&old.streams[name].source, &new.streams[name].source);
        old.renditions() != new.renditions()
    };
    let (replaced, changed) =
        core::mem::take(&mut changes.streams_changed).into_iter().partition(is_replaced);
    changes.streams_changed = changed;
    let kept =
        |sink: &&SinkConfig| replaced.contains(&sink.stream) && !changes.sinks_added.contains(&sink.name);
    let sinks: Vec<_> = new.sinks.iter().filter(kept).map(|sink| sink.name.clone()).collect();
    changes.sinks_changed.retain(|name| !sinks.contains(name));
    changes.sinks_changed.extend(sinks);
    changes.streams_removed.extend_from_slice(&replaced);
    changes.streams_added.extend(replaced);
    changes
}

fn delta<T>(
    old: &BTreeMap<&str, &T>,
    new: &BTreeMap<&str, &T>,
    changed: impl Fn(&T, &T) -> Vec<&'static str>,
) -> Delta {
    let only_in = |these: &BTreeMap<&str, &T>, those: &BTreeMap<&str, &T>| {
        these.keys().filter(|name| !those.contains_key(*name)).map(ToString::to_string).collect()
    };
    let change = |(name, before): (&&str, &&T)| {
        let keys = changed(before, new.get(name)?);
        (!keys.is_empty()).then(|| ((*name).to_owned(), keys))
    };
    Delta {
        added: only_in(new, old),
        removed: only_in(old, new),
        changed: old.iter().filter_map(change).collect(),
    }
}

fn streams(config: &Config) -> BTreeMap<&str, &StreamConfig> {
    config.streams.iter().map(|(name, stream)| (name.as_str(), &**stream)).collect()
}

fn links(config: &Config) -> BTreeMap<&str, &LinkConfig> {
    config.links.iter().map(|(name, link)| (name.as_str(), link)).collect()
}

fn sinks(config: &Config) -> BTreeMap<&str, &SinkConfig> {
    config.sinks.iter().map(|sink| (sink.name.as_str(), sink)).collect()
}

fn changed_sink(old: &SinkConfig, new: &SinkConfig) -> Vec<&'static str> {
    let keys = [
        ("stream", old.stream != new.stream),
        ("branch", old.branch != new.branch),
        ("view", old.view != new.view),
        ("level", old.level != new.level),
        ("to", old.to != new.to),
        ("priority", old.priority != new.priority),
        ("latency_budget", old.latency_budget != new.latency_budget),
        ("pace", old.pace != new.pace),
        ("link", old.link != new.link),
    ];
    keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

impl Delta {
    fn lines(&self, kind: &str) -> impl Iterator<Item = String> {
        let removed = self.removed.iter().map(move |name| format!("{kind} '{name}' removed"));
        let added = self.added.iter().map(move |name| format!("{kind} '{name}' added"));
        let changed = self.changed.iter();
        let changed =
            changed.map(move |(name, keys)| format!("{kind} '{name}': {} changed", keys.join(", ")));
        removed.chain(added).chain(changed)
    }
}

impl Changes {
    /// What changed where only this stream did, and has the renditions that it had; it is not in a configuration
    /// that has none.
    pub fn of_stream(name: &str, old: Option<&StreamConfig>, new: Option<&StreamConfig>) -> Self {
        let only = |stream: Option<_>| stream.map(|stream| (name, stream)).into_iter().collect();
        let stream = delta(&only(old), &only(new), Section::changed);
        Changes {
            lines: stream.lines("stream").collect(),
            streams_added: stream.added,
            streams_removed: stream.removed,
            streams_changed: stream.changed.into_iter().map(|(name, _)| name).collect(),
            ..Changes::default()
        }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// A line for each change, for people: what changed, and whether it needs a restart.
    pub fn lines(&self) -> Vec<String> {
        self.lines.clone()
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lines.as_slice() {
            [] => f.write_str("nothing changed"),
            lines => f.write_str(&lines.join("\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocols;

    const OLD: &str = r#"
        [access]
        play = ["one"]
        [streams.a]
        [streams.b]
        ring = "1 MB"
        [streams.c]
        [[sinks]]
        stream = "a"
        to = "udp://10.0.0.1:5000"
        name = "wall"
        [[sinks]]
        stream = "a"
        to = "udp://10.0.0.2:5000"
    "#;

    fn config(text: &str) -> Config {
        Config::parse(text, "o.toml", &Protocols::default()).unwrap_or_else(|e| panic!("{e}"))
    }

    fn changes(from: &str, to: &str) -> Changes {
        let new = OLD.replace(from, to);
        assert!(from.is_empty() || new != OLD, "'{from}' stands in the old configuration");
        diff(&config(OLD), &config(&new))
    }

    #[test]
    fn nothing_changed_is_nothing() {
        let changes = changes("", "");
        assert!(changes.is_empty(), "{changes:?}");
        assert_eq!(changes.to_string(), "nothing changed");
    }

    #[test]
    fn a_stream_with_other_renditions_is_another_one_and_so_are_its_sinks() {
        let changes = changes("[streams.a]", "[streams.a]\nsource = [\"b\", \"c\"]");
        assert_eq!(
            (&changes.streams_removed, &changes.streams_added),
            (&vec!["a".into()], &vec!["a".into()])
        );
        assert!(changes.streams_changed.is_empty());
        assert_eq!(changes.sinks_changed, ["wall", "udp://10.0.0.2:5000"]);
        assert_eq!(changes.lines(), ["stream 'a': source changed"]);
    }

    #[test]
    fn the_order_of_the_file_and_what_is_written_out_do_not_matter() {
        let same = r#"
            [[sinks]]
            stream = "a"
            to = "udp://10.0.0.2:5000"
            [[sinks]]
            name = "wall"
            stream = "a"
            to = "udp://10.0.0.1:5000"
            [streams.c]
            ring = "8000 kB"
            [streams.b]
            ring = "1000 kB"
            [streams.a]
            [access]
            play = ["one"]
            [limits]
            workers = 0
        "#;
        assert!(diff(&config(OLD), &config(same)).is_empty());
    }

    #[test]
    fn only_the_stream_that_changed_is_named() {
        let changed = changes("ring = \"1 MB\"", "ring = \"2 MB\"\nsource = \"udp://239.9.9.9:5000\"");
        assert_eq!(changed.streams_changed, ["b"]);
        assert_eq!(changed.lines(), ["stream 'b': source, ring changed"], "and nothing else");
    }

    #[test]
    fn what_changed_of_one_stream_needs_no_look_at_the_others() {
        for (name, to) in [
            ("a", "[streams.c]"),
            ("c", ""),
            ("d", "[streams.c]\n[streams.d]"),
            ("c", "[streams.c]\nring = \"9 MB\"\nmax_receivers = 4"),
        ] {
            let (old, new) = (config(OLD), config(&OLD.replace("[streams.c]", to)));
            let of = |config: &Config| config.streams.get(name).cloned();
            let changes = Changes::of_stream(name, of(&old).as_deref(), of(&new).as_deref());
            assert_eq!(changes, diff(&old, &new));
        }
    }

    #[test]
    fn streams_come_and_go() {
        let renamed = changes("[streams.c]", "[streams.b0]\n[streams.d]");
        assert_eq!(renamed.streams_added, ["b0", "d"]);
        assert_eq!(renamed.streams_removed, ["c"]);
        assert_eq!(renamed.lines().len(), 3, "and nothing else");
    }

    #[test]
    fn sinks_are_told_apart_by_name() {
        let moved = changes("10.0.0.1:5000", "10.0.0.1:6000");
        assert_eq!(moved.sinks_changed, ["wall"]);
        assert_eq!(moved.lines(), ["sink 'wall': to changed"]);
        let other = changes("10.0.0.2:5000", "10.0.0.2:6000");
        assert_eq!(other.sinks_added, ["udp://10.0.0.2:6000"], "it had no name but its address");
        assert_eq!(other.sinks_removed, ["udp://10.0.0.2:5000"]);
        assert_eq!(other.lines(), ["sink 'udp://10.0.0.2:5000' removed", "sink 'udp://10.0.0.2:6000' added"]);
    }

    #[test]
    fn a_streams_priority_is_that_of_its_sinks() {
        let changed = changes("[streams.a]", "[streams.a]\npriority = \"low\"");
        assert_eq!(changed.sinks_changed, ["udp://10.0.0.2:5000", "wall"]);
        assert_eq!(changed.lines()[0], "stream 'a': priority changed");
        assert_eq!(changed.lines()[2], "sink 'wall': priority changed");
    }

    #[test]
    fn a_link_changes_for_itself() {
        let link = "[link.up]\nrate = \"8 Mbit/s\"";
        let slower = "[link.up]\nrate = \"4 Mbit/s\"\n[link.b]\nrate = \"feedback\"";
        let changes = diff(&config(link), &config(slower));
        assert_eq!((&changes.links_added, &changes.links_changed), (&vec!["b".into()], &vec!["up".into()]));
        assert_eq!(changes.lines(), ["link 'b' added", "link 'up': rate changed"]);
    }
}
