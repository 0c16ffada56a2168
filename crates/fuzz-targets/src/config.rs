//! Configurations: they come from people, and through the API from programs.

use outflow_config::{Config, Graph, SinkUrl, SourceUrl, diff};

/// A configuration, and whatever is said about it.
pub(crate) fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let known = &outflow_fronts::protocols();
    match Config::parse(&text, "fuzz.toml", known) {
        Ok(config) => {
            assert!(diff(&config, &config).is_empty(), "nothing has changed");
            let changes = diff(&Config::default(), &config);
            assert_eq!(changes.streams_added.len(), config.streams.len());
            assert_eq!(changes.sinks_added.len(), config.sinks.len(), "sinks have names of their own");
            let graph = Graph::new(&config);
            let stream_of = |node: usize| graph.nodes[node].stream.as_str();
            assert!(graph.edges.iter().all(|edge| stream_of(edge.from) == stream_of(edge.to)));
            assert!(graph.to_string().ends_with("}\n"));
        }
        Err(errors) => {
            let lines = text.split('\n').count();
            assert!(errors.errors().iter().all(|error| (1..=lines).contains(&error.line)), "{errors}");
            assert!(!errors.errors().is_empty() && !errors.to_string().is_empty());
        }
    }
    let words = known.vocabulary();
    if let Ok(sink) = SinkUrl::parse(&text, words) {
        assert_eq!(SinkUrl::parse(&sink.to_string(), words), Ok(sink));
    }
    if let Ok(source) = SourceUrl::parse(&text, words) {
        let again = SourceUrl::parse(&source.to_string(), words);
        // What is shown of a camera's address is not all of it.
        let is_camera = source.pulled().is_some_and(|endpoint| endpoint.scheme == "rtsp");
        assert!(is_camera || again == Ok(source));
    }
}
