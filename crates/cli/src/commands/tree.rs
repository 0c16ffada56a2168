//! `outflow tree`

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Args;
use outflow_config::BitRate;
use outflow_serve::fail;
use serde::Deserialize;

use super::api::Api;

/// Shows the live tree of relays: which relay takes which stream from which, at which level and rate
///
/// Any relay of the tree can be asked; it asks the others. A stream's source stands first, and below
/// each relay those that take the stream from it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow tree\n  outflow tree http://edge:8080 --stream stage\n  \
                        outflow tree http://edge:8080 --dot | dot -Tsvg -o tree.svg")]
pub(crate) struct Tree {
    /// HTTP address of a relay of the tree
    #[arg(value_name = "URL", default_value = "http://localhost:8080")]
    url: String,
    /// A token of that relay with the right to control
    #[arg(long, env = "OUTFLOW_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Only this stream
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// Draw it in the DOT language of Graphviz
    #[arg(long)]
    dot: bool,
}

/// A relay as the API shows it.
#[derive(Debug, Clone, Deserialize)]
struct Relay {
    name: String,
    relay: String,
    address: String,
    streams: Vec<Stream>,
    unreachable: Option<String>,
}

/// A stream at a relay.
#[derive(Debug, Clone, Deserialize)]
struct Stream {
    stream: String,
    is_source: bool,
    parent: Option<Peer>,
    level: Option<u8>,
    by: Option<String>,
    bps: u64,
    receivers: u64,
    children: Vec<Peer>,
}

#[derive(Debug, Clone, Deserialize)]
struct Peer {
    relay: String,
}

impl Tree {
    pub(crate) fn run(self) -> ExitCode {
        let api = Api { url: &self.url, token: self.token.as_deref() };
        let relays: Vec<Relay> = match api.ask("tree") {
            Ok(relays) => relays,
            Err(error) => return fail(error),
        };
        if relays.is_empty() {
            return fail(format!("the relay at {} is none of a tree: give it a [tree]", self.url));
        }
        let forest = Forest::new(&relays, self.stream.as_deref());
        let text = if self.dot { forest.dot() } else { forest.text() };
        match std::io::stdout().write_all(text.as_bytes()) {
            // The reader may have seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => fail(format!("the tree cannot be written: {error}")),
            Ok(()) => ExitCode::SUCCESS,
        }
    }
}

/// The trees of all streams.
struct Forest<'a> {
    relays: BTreeMap<&'a str, &'a Relay>,
    /// By stream: the relays that have it.
    streams: BTreeMap<&'a str, BTreeMap<&'a str, &'a Stream>>,
}

impl<'a> Forest<'a> {
    fn new(relays: &'a [Relay], only: Option<&str>) -> Self {
        let mut streams: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for relay in relays {
            let shown = relay.streams.iter().filter(|stream| only.is_none_or(|name| name == stream.stream));
            for stream in shown {
                streams.entry(stream.stream.as_str()).or_default().insert(relay.relay.as_str(), stream);
            }
        }
        Forest { relays: relays.iter().map(|relay| (relay.relay.as_str(), relay)).collect(), streams }
    }

    fn name(&self, relay: &'a str) -> &'a str {
        self.relays.get(relay).map_or(relay, |known| &known.name)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, at) in &self.streams {
            let _ = writeln!(text, "{name}");
            let mut shown = BTreeSet::new();
            let is_root = |stream: &Stream| {
                stream.parent.as_ref().is_none_or(|parent| !at.contains_key(parent.relay.as_str()))
            };
            for relay in at.iter().filter(|(_, stream)| is_root(stream)).map(|(relay, _)| relay) {
                self.branch(&mut text, at, relay, 1, &mut shown);
            }
        }
        for relay in self.relays.values() {
            if let Some(why) = &relay.unreachable {
                let _ = writeln!(text, "{} at {} is not shown: {why}", relay.name, relay.address);
            } else if self.streams.values().all(|at| !at.contains_key(relay.relay.as_str())) {
                let _ = writeln!(text, "{} has none of it", relay.name);
            }
        }
        text
    }

    fn branch(
        &self,
        text: &mut String,
        at: &BTreeMap<&'a str, &'a Stream>,
        relay: &'a str,
        depth: usize,
        shown: &mut BTreeSet<&'a str>,
    ) {
        let Some(stream) = at.get(relay).filter(|_| shown.insert(relay)) else { return };
        let _ = writeln!(text, "{}{}: {}", "  ".repeat(depth), self.name(relay), about(stream));
        let below = |(_, stream): &(&&'a str, &&'a Stream)| {
            stream.parent.as_ref().is_some_and(|parent| parent.relay == relay)
        };
        for child in at.iter().filter(below).map(|(child, _)| child) {
            self.branch(text, at, child, depth + 1, shown);
        }
    }

    fn dot(&self) -> String {
        let mut text = "digraph tree {\n  node [shape=box];\n".to_owned();
        for relay in self.relays.values() {
            let name = quoted(&relay.name);
            let style = if relay.unreachable.is_some() { " [style=dashed]" } else { "" };
            let _ = writeln!(text, "  {name}{style};");
        }
        for (name, at) in &self.streams {
            for (relay, stream) in at {
                let to = quoted(self.name(relay));
                if stream.is_source {
                    let source = quoted(&format!("{name}\\n{}", BitRate(stream.bps)));
                    let _ = writeln!(text, "  {source} [shape=ellipse];\n  {source} -> {to};");
                }
                let Some(parent) = &stream.parent else { continue };
                let from = quoted(self.relays.get(parent.relay.as_str()).map_or(&parent.relay, |r| &r.name));
                let label = quoted(&format!("{name}\\n{}", about(stream)));
                let _ = writeln!(text, "  {from} -> {to} [label={label}];");
            }
        }
        text.push_str("}\n");
        text
    }
}

/// What comes, and which receivers take it.
fn about(stream: &Stream) -> String {
    let mut parts = Vec::new();
    if stream.is_source {
        parts.push("source".to_owned());
    } else if stream.parent.is_none() {
        parts.push("without a parent".to_owned());
    }
    if let Some(level) = stream.level.filter(|_| !stream.is_source) {
        parts.push(format!("level {level}"));
    }
    let by = stream.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    parts.push(format!("{}{by}", BitRate(stream.bps)));
    let relays = stream.children.len() as u64;
    let receivers = stream.receivers.saturating_sub(relays);
    match receivers {
        0 => {}
        1 => parts.push("1 receiver".to_owned()),
        more => parts.push(format!("{more} receivers")),
    }
    parts.join(", ")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relays() -> Vec<Relay> {
        let text = r#"[
            {"name": "origin", "relay": "01", "address": "10.0.0.1:7000", "unreachable": null, "streams": [
                {"stream": "cam", "is_source": true, "parent": null, "level": null, "bps": 4000000,
                 "receivers": 1, "children": [{"relay": "02"}]}]},
            {"name": "region", "relay": "02", "address": "10.0.0.2:7000", "unreachable": null, "streams": [
                {"stream": "cam", "is_source": false, "parent": {"relay": "01"}, "level": 2, "bps": 1000000,
                 "by": "poc", "receivers": 3, "children": [{"relay": "03"}]}]},
            {"name": "03", "relay": "03", "address": "10.0.0.3:7000", "streams": [],
             "unreachable": "it does not answer"}]"#;
        serde_json::from_str(text).expect("it is what the API shows")
    }

    #[test]
    fn a_tree_is_text_with_levels_and_rates() {
        let relays = relays();
        let text = Forest::new(&relays, None).text();
        let expected = "cam\n  origin: source, 4 Mbit/s\n    region: level 2, 1 Mbit/s by poc, 2 receivers\n\
                        03 at 10.0.0.3:7000 is not shown: it does not answer\n";
        assert_eq!(text, expected);
        assert!(!Forest::new(&relays, Some("other")).text().contains("cam"));
    }

    #[test]
    fn a_tree_is_drawn() {
        let dot = Forest::new(&relays(), None).dot();
        let edge = r#""origin" -> "region" [label="cam\nlevel 2, 1 Mbit/s by poc, 2 receivers"];"#;
        for line in [edge, r#""03" [style=dashed];"#, r#"-> "origin";"#] {
            assert!(dot.contains(line), "{line} in {dot}");
        }
    }
}
