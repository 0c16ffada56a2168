//! The services of a scenario: made and put in place as the live driver does it.

use outflow_graph::{Element, Graph, Kind, Maker, Settings, Unfit};
use outflow_media::Time;
use outflow_relay::{BranchId, Stream};

use crate::scenario::{Scenario, ScenarioError};
use crate::source::Source;

/// Makes the elements that need more than the core has.
pub(crate) struct Driver;

impl Maker for Driver {
    fn make(&mut self, _: &str, kind: &'static Kind, settings: &Settings) -> Result<Box<dyn Element>, Unfit> {
        match kind.name {
            "wasm" => outflow_plugin::open(settings),
            "external" => {
                let what = "another program has a clock of its own, and would answer differently each time";
                Err(Unfit::new(what, "leave it out of the scenario, or put a plug-in in its place"))
            }
            other => Err(Unfit::new(format!("\"{other}\" does not run here"), "leave it out")),
        }
    }
}

/// Puts the services in place; the branch that receivers join.
pub(crate) fn put(stream: &mut Stream, scenario: &Scenario) -> Result<Option<BranchId>, ScenarioError> {
    if let Some(graph) = graph(scenario)? {
        stream.set_services(Time::ZERO, Some(Box::new(graph)));
    }
    let Some(name) = &scenario.receivers.branch else { return Ok(None) };
    let branch = stream.branch_named(name).map_err(|unfit| ScenarioError::Branch(name.clone(), unfit))?;
    Ok(Some(branch))
}

/// What the scenario says, bound to what its source gives; all of its branches carry something.
pub(crate) fn graph(scenario: &Scenario) -> Result<Option<Graph>, ScenarioError> {
    let plan = &scenario.relay.services;
    if plan.is_empty() {
        return Ok(None);
    }
    let made = Graph::new(plan, &mut Driver);
    let mut graph = made.map_err(|(element, unfit)| ScenarioError::Element(element, unfit))?;
    graph.bind(&Source::format());
    for (exit, name) in graph.exits().enumerate() {
        let format = graph.exit_format(exit);
        format.map_err(|unfit| ScenarioError::Branch(name.to_owned(), unfit.clone()))?;
    }
    Ok(Some(graph))
}

#[cfg(test)]
mod tests {
    use outflow_packet::{Packet, Parsed, Parser};

    use super::*;
    use crate::{Digest, run};

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/services.toml");
    const TEXT: &str = include_str!("../scenarios/services.toml");

    /// All that comes out to a branch of a graph by itself.
    fn alone(scenario: &Scenario, branch: &str) -> Digest {
        let mut graph = graph(scenario).expect("it fits").expect("there are some");
        let exit = graph.exits().position(|name| name == branch).expect("it is there");
        graph.set_wanted(exit, true);
        let (mut source, mut rng) = (Source::new(scenario.source.clone()), fastrand::Rng::with_seed(1));
        let mut parser = Parser::new(&Source::format());
        let mut content = Digest::default();
        while source.due().as_millis() < (scenario.duration * 1e3) as u64 {
            let arrived = source.due();
            for bytes in source.frame(&mut rng) {
                let tag = parser.tag(0, &bytes).expect("it is H.264");
                let packet = Packet { bytes, tag, arrived };
                graph.enter(Parsed { packet, rtp_header: [0; 12], preamble: None, found: None });
                // Each packet by itself, where the stream gathers them.
                graph.run(arrived, None, &mut |_, _| {}, &mut |to, Parsed { packet, rtp_header, .. }| {
                    assert_eq!(to, exit);
                    content.bytes(if rtp_header[0] == 0 { &[] } else { &rtp_header });
                    content.bytes(&packet.bytes);
                });
            }
        }
        content
    }

    #[test]
    fn the_same_packets_become_the_same_bytes_as_in_a_graph_by_itself() {
        let mut scenario = Scenario::parse(TEXT, FILE).expect("it is shipped");
        // So that chance has no part in what the source sends, and every receiver sees all of it.
        (scenario.source.size_spread, scenario.receivers.join_spread) = (0.0, 0.0);
        scenario.duration = 3.0;
        let mut seen = Vec::new();
        for branch in ["marked", "keys", "all", "ts"] {
            scenario.receivers.branch = Some(branch.to_owned());
            let content = run(&scenario).expect("it fits").content;
            assert_eq!(content, alone(&scenario, branch), "{branch}");
            seen.push(content);
        }
        scenario.receivers.branch = None;
        let original = run(&scenario).expect("it fits").content;
        assert_eq!(seen[2], original, "nothing is done to it");
        assert!(seen[0] != original && seen[1] != original && seen[3] != original);
    }
}
