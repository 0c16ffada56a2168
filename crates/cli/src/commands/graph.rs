//! `outflow graph`

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Args;
use outflow_config::BitRate;
use outflow_serve::fail;
use serde::Deserialize;

use super::api::Api;
use super::file::ConfigFile;

/// Draws a configuration: every packet's way, in the DOT language of Graphviz
///
/// What the configuration leaves unsaid is written out: sources, rings, branches and receivers of
/// every stream, and what each connection between them carries. With --live, a relay that runs with
/// it is asked what goes through each element, what that costs, and by which way the packets of its
/// receivers leave.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow graph outflow.toml > outflow.dot\n  \
                        outflow graph outflow.toml | dot -Tsvg -o outflow.svg\n  \
                        outflow graph outflow.toml --live http://localhost:8080")]
pub(crate) struct Graph {
    #[command(flatten)]
    file: ConfigFile,
    /// HTTP address of a relay that runs with this configuration
    #[arg(long, value_name = "URL")]
    live: Option<String>,
    /// A token of that relay with the right to control
    #[arg(long, env = "OUTFLOW_TOKEN", hide_env_values = true, requires = "live")]
    token: Option<String>,
}

/// What is needed of a stream as the API shows it.
#[derive(Debug, Deserialize)]
struct Stream {
    name: String,
    source: Source,
    elements: Vec<Element>,
}

/// What is needed of a source.
#[derive(Debug, Deserialize)]
struct Source {
    bps: u64,
}

/// What is needed of an element.
#[derive(Debug, Deserialize)]
struct Element {
    name: String,
    wanted: bool,
    in_bps: u64,
    out_bps: u64,
    packet_ns: u64,
    cpu_percent: f64,
    fault: Option<String>,
}

/// What is needed of a receiver as the API shows it.
#[derive(Debug, Deserialize)]
struct Receiver {
    stream: String,
    kind: String,
    name: Option<String>,
    path: String,
    path_because: Option<String>,
}

impl Graph {
    pub(crate) fn run(self) -> ExitCode {
        let config = match self.file.load() {
            Ok(config) => config,
            Err(mistakes) => return fail(mistakes),
        };
        let mut graph = outflow_config::Graph::new(&config);
        if let Some(url) = &self.live {
            let api = Api { url, token: self.token.as_deref() };
            let asked = api.ask("receivers").and_then(|receivers| {
                note_ways(&mut graph, &receivers);
                api.ask("streams").map(|streams: Vec<Stream>| note_rates(&mut graph, &streams))
            });
            if let Err(error) = asked {
                return fail(error);
            }
        }
        match std::io::stdout().write_all(graph.to_string().as_bytes()) {
            // The reader may have seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => fail(format!("the graph cannot be written: {error}")),
            Ok(()) => ExitCode::SUCCESS,
        }
    }
}

/// Writes down at each element of services what goes through it.
fn note_rates(graph: &mut outflow_config::Graph, streams: &[Stream]) {
    for stream in streams {
        for element in &stream.elements {
            let state = match (&element.fault, element.wanted) {
                (Some(fault), _) => fault.clone(),
                (None, false) => "rests: it is not wanted".to_owned(),
                (None, true) => format!(
                    "{} in, {} out\n{} ns a packet, {:.1} % of a core",
                    BitRate(element.in_bps),
                    BitRate(element.out_bps),
                    element.packet_ns,
                    element.cpu_percent
                ),
            };
            graph.note(&stream.name, &element.name, &state);
        }
        let rate = format!("{} in", BitRate(stream.source.bps));
        graph.note(&stream.name, "source", &rate);
    }
}

/// Writes down at each element that stands for receivers how many are reached by which way.
fn note_ways(graph: &mut outflow_config::Graph, receivers: &[Receiver]) {
    let mut counts: BTreeMap<(&str, &str, String), usize> = BTreeMap::new();
    for receiver in receivers {
        let element = match (receiver.kind.as_str(), &receiver.name) {
            (_, Some(name)) => name.as_str(),
            ("http-ts", None) => "HTTP players",
            _ => "RTSP players",
        };
        let way = match &receiver.path_because {
            Some(why) => format!("by {}: {why}", receiver.path),
            None => format!("by {}", receiver.path),
        };
        *counts.entry((&receiver.stream, element, way)).or_default() += 1;
    }
    for ((stream, element, way), count) in counts {
        let line = if count == 1 { way } else { format!("{count} {way}") };
        graph.note(stream, element, &line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_stand_at_the_elements_that_they_are_of() {
        let text = "[streams.a]\n[[sinks]]\nstream = \"a\"\nto = \"udp://10.0.0.1:5000\"\nname = \"wall\"\n";
        let config =
            outflow_config::Config::parse(text, "a.toml", &outflow_fronts::protocols()).expect("it is right");
        let mut graph = outflow_config::Graph::new(&config);
        let receiver = |kind: &str, name: Option<&str>, path: &str, why: Option<&str>| Receiver {
            stream: "a".into(),
            kind: kind.into(),
            name: name.map(Into::into),
            path: path.into(),
            path_because: why.map(Into::into),
        };
        let why = Some("members of its group on this machine get it, too");
        note_ways(
            &mut graph,
            &[
                receiver("udp", Some("wall"), "user", why),
                receiver("rtsp-udp", None, "tc", None),
                receiver("rtsp-udp", None, "tc", None),
                receiver("rtsp-udp", None, "user", why),
            ],
        );
        let text = graph.to_string();
        for line in ["by user: members of its group on this machine get it, too", "2 by tc"] {
            assert!(text.contains(line), "{text}");
        }
    }
}
