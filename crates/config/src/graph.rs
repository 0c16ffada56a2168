//! The configuration written out: elements and how they are connected.
//!
//! What a short configuration leaves unsaid is made explicit here: every packet's way from where
//! it is received to the sinks that get it, with what each connection carries.

mod dot;
mod services;

use crate::{
    Brings, Config, Contract, Datagrams, LinkName, SinkConfig, SinkProtocol, SourceUrl, StreamConfig,
};

/// What an element does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// Takes packets from outside.
    Source,
    /// Tells what packets mean.
    Parse,
    /// Keeps packets until all receivers had them, within its bytes.
    Ring,
    /// Makes other packets of them.
    Service,
    /// One distinct output: its packets are the same for all of its receivers.
    Branch,
    /// Receivers that come and ask, behind a listener.
    Players,
    /// A receiver that is sent to without asking.
    Sink,
}

/// One element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The stream it belongs to.
    pub stream: String,
    /// What it does.
    pub element: Element,
    /// Its name, as in "ring".
    pub name: String,
    /// What is set, as in "8 MB, slowest-sink".
    pub detail: String,
}

/// One connection, between indices of [`Graph::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Where packets come from.
    pub from: usize,
    /// Where they go.
    pub to: usize,
    /// What they are.
    pub contract: Contract,
}

/// Elements and connections of all streams.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    /// The elements, those of a stream together.
    pub nodes: Vec<Node>,
    /// The connections.
    pub edges: Vec<Edge>,
}

impl Graph {
    /// Writes `config` out.
    pub fn new(config: &Config) -> Self {
        let mut graph = Graph::default();
        for (name, stream) in &config.streams {
            graph.stream(config, name, stream);
        }
        for (name, stream) in &config.streams {
            graph.renditions(name, stream.source.renditions());
        }
        graph
    }

    /// Adds a line to the details of an element of a stream: what is known of it besides its
    /// configuration. A sink without a name has its address as one.
    pub fn note(&mut self, stream: &str, name: &str, line: &str) {
        let is_named = |node: &Node| node.name == name || node.detail.lines().next() == Some(name);
        for node in self.nodes.iter_mut().filter(|node| node.stream == stream && is_named(node)) {
            node.detail.push('\n');
            node.detail.push_str(line);
        }
    }

    /// What is in the rings of the renditions of a stream goes into it.
    fn renditions(&mut self, name: &str, renditions: &[String]) {
        let place = |stream: &str, element| {
            self.nodes.iter().position(|node| node.stream == stream && node.element == element)
        };
        let Some(to) = place(name, Element::Source) else { return };
        let rings = renditions.iter().filter_map(|rendition| place(rendition, Element::Ring));
        let edges: Vec<_> = rings.map(|from| Edge { from, to, contract: Contract::Either }).collect();
        self.edges.extend(edges);
    }

    fn stream(&mut self, config: &Config, name: &str, stream: &StreamConfig) {
        let carried = carried(stream);
        let mut add = |element, title: &str, detail: String| {
            let (stream, name) = (name.to_owned(), title.to_owned());
            self.nodes.push(Node { stream, element, name, detail });
            self.nodes.len() - 1
        };
        let away = format!("away after {}", crate::units::Written(stream.source_timeout));
        let source = add(Element::Source, "source", format!("{}\n{away}", stream.source));
        let parse = add(Element::Parse, "parse", described(carried).to_owned());
        let ring = add(Element::Ring, "ring", format!("{}, {}", stream.ring, stream.when_full));
        let (own_ts, own_rtp) = match carried {
            Contract::Ts | Contract::Images | Contract::Data => (true, false),
            Contract::Rtp | Contract::Either => (false, true),
        };
        let mut edges = vec![(source, parse, carried), (parse, ring, carried)];
        let ts_from = if own_ts {
            ring
        } else {
            let remux = add(Element::Service, "to MPEG-TS", "while somebody wants it".to_owned());
            edges.push((ring, remux, carried));
            remux
        };
        let ts = add(Element::Branch, "branch ts", "MPEG-TS".to_owned());
        let rtp_detail = if own_rtp { "RTP, a track a port pair" } else { "RTP, MP2T" };
        let rtp = add(Element::Branch, "branch rtp", rtp_detail.to_owned());
        edges.push((ts_from, ts, Contract::Ts));
        edges.push((ring, rtp, carried));
        for (title, contract, at) in players(config) {
            let branch = if contract == Contract::Ts { ts } else { rtp };
            let detail = format!("{}\nup to {}", at.join(", "), stream.max_receivers);
            edges.push((branch, add(Element::Players, title, detail), contract));
        }
        let branches = services::draw(stream, (parse, carried), &mut add, &mut edges);
        for sink in config.sinks.iter().filter(|sink| sink.stream == name) {
            let declared = sink.branch.as_ref().and_then(|branch| branches.get(branch)).copied();
            let (branch, contract) = match sink.to.datagrams().map(|sink| sink.protocol) {
                Some(SinkProtocol::Udp) => (ts, Contract::Ts),
                Some(SinkProtocol::Rtp) | None => (rtp, Contract::Rtp),
            };
            let address = sink.to.to_string();
            let (title, detail) =
                if sink.name == address { ("sink", address) } else { (sink.name.as_str(), address) };
            let detail = format!("{detail}\npriority {}{}", sink.priority, timing(sink));
            edges.push((declared.unwrap_or(branch), add(Element::Sink, title, detail), contract));
        }
        self.edges.extend(edges.into_iter().map(|(from, to, contract)| Edge { from, to, contract }));
    }
}

/// What players come in, what they get, and where.
fn players(config: &Config) -> Vec<(&'static str, Contract, Vec<String>)> {
    let mut found: Vec<(_, _, Vec<_>)> = Vec::new();
    for (listener, at) in config.listen.listeners() {
        let (Some(at), (title, contract)) = (at, listener.players) else { continue };
        match found.iter_mut().find(|(known, ..)| *known == title) {
            Some((.., places)) => places.push(at.to_string()),
            None => found.push((title, contract, vec![at.to_string()])),
        }
    }
    found
}

/// When a sink's packets go, as far as that is not at once.
fn timing(sink: &SinkConfig) -> String {
    let mut text = String::new();
    if !sink.latency_budget.is_zero() {
        text.push_str(&format!("\ngathered for {}", crate::units::Written(sink.latency_budget)));
    }
    if let Some(pace) = sink.pace {
        text.push_str(&format!("\npaced at {pace}"));
    }
    if let Some(LinkName(link)) = &sink.link {
        text.push_str(&format!("\nbehind link {link}"));
    }
    text
}

/// What a stream's source brings.
fn carried(stream: &StreamConfig) -> Contract {
    match &stream.source {
        SourceUrl::Udp(source) if source.datagrams == Datagrams::Ppm => Contract::Images,
        SourceUrl::Udp(source) if source.datagrams == Datagrams::Data => Contract::Data,
        SourceUrl::Udp(_) => Contract::Ts,
        SourceUrl::Rtp(_) if stream.sdp.is_none() => Contract::Ts,
        SourceUrl::Rtp(_) => Contract::Rtp,
        pulled if pulled.brings() == Brings::Ts => Contract::Ts,
        _ => Contract::Either,
    }
}

fn described(contract: Contract) -> &'static str {
    match contract {
        Contract::Ts => "MPEG-TS → frames and keys",
        Contract::Images => "PPM images",
        Contract::Data => "opaque datagrams",
        Contract::Rtp => "RTP → frames and keys",
        Contract::Either => "MPEG-TS or RTP → frames and keys",
    }
}
