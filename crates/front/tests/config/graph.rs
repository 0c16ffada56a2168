use outflow_config::{Element, Graph};

use crate::parse;

fn graph(text: &str) -> Graph {
    Graph::new(&parse(text, "o.toml").unwrap_or_else(|e| panic!("{e}")))
}

/// Names along the connections from the source, depth first.
fn ways(graph: &Graph) -> Vec<String> {
    fn walk(graph: &Graph, at: usize, way: &str, found: &mut Vec<String>) {
        let way = format!("{way}{}", graph.nodes[at].name);
        let next: Vec<_> = graph.edges.iter().filter(|e| e.from == at).map(|e| e.to).collect();
        if next.is_empty() {
            found.push(way);
            return;
        }
        next.iter().for_each(|to| walk(graph, *to, &format!("{way} > "), found));
    }
    let mut found = Vec::new();
    let sources = graph.nodes.iter().enumerate().filter(|(_, n)| n.element == Element::Source);
    sources.for_each(|(at, _)| walk(graph, at, "", &mut found));
    found
}

#[test]
fn a_transport_stream_goes_out_as_it_is_and_in_rtp() {
    let graph = graph(
        "[streams.a]\nsource = \"udp://0.0.0.0:5000\"\n[[sinks]]\nstream = \"a\"\nto = \"udp://239.1.1.1:6000\"\nname = \"wall\"\n",
    );
    assert_eq!(
        ways(&graph),
        [
            "source > parse > ring > branch ts > HTTP players",
            "source > parse > ring > branch ts > wall",
            "source > parse > ring > branch rtp > RTSP players",
        ]
    );
}

#[test]
fn rtp_becomes_a_transport_stream_for_those_that_want_one() {
    let graph = graph(
        "[listen]\nrtsp = \"off\"\n[streams.a]\nsource = \"rtp://0.0.0.0:5004\"\nsdp = \"a.sdp\"\n[[sinks]]\nstream = \"a\"\nto = \"rtp://10.0.0.1:6000\"\n",
    );
    assert_eq!(
        ways(&graph),
        [
            "source > parse > ring > to MPEG-TS > branch ts > HTTP players",
            "source > parse > ring > branch rtp > sink",
        ]
    );
}

#[test]
fn streams_stand_apart_and_secrets_are_not_drawn() {
    let graph = graph("[streams.a]\n[streams.b]\nsource = \"rtsp://u:secret@camera/1\"\n");
    let stream = |index: usize| graph.nodes[index].stream.as_str();
    assert!(graph.edges.iter().all(|e| stream(e.from) == stream(e.to)));
    let dot = graph.to_string();
    assert_eq!(dot.matches("subgraph cluster_").count(), 2);
    assert!(dot.contains("rtsp://camera/1") && !dot.contains("secret"));
}

#[test]
fn every_node_and_edge_is_drawn_and_quotes_are_escaped() {
    let graph = graph(
        "[streams.a]\n[[sinks]]\nstream = \"a\"\nto = \"udp://10.0.0.1:6000\"\nname = 'the \"big\" \\ wall'\n",
    );
    let dot = graph.to_string();
    for index in 0..graph.nodes.len() {
        assert_eq!(dot.matches(&format!("    n{index} [label=")).count(), 1);
    }
    assert_eq!(dot.matches(" -> ").count(), graph.edges.len());
    assert!(dot.contains(r#"the \"big\" \\ wall"#), "{dot}");
}
