//! Configurations: they come from people, and through the API from programs.

use outflow_config::{Config, Graph, SinkUrl, SourceUrl, diff};

/// A configuration, and whatever is said about it.
pub(crate) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Config::parse(text, "fuzz.toml") {
        Ok(config) => {
            assert!(diff(&config, &config).is_empty(), "nothing has changed");
            let changes = diff(&Config::default(), &config);
            assert_eq!(changes.streams_added.len(), config.streams.len());
            assert_eq!(changes.sinks_added.len(), config.sinks.len(), "sinks have names of their own");
            assert!(Graph::new(&config).to_string().ends_with("}\n"));
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
    if let Ok(sink) = text.parse::<SinkUrl>() {
        assert_eq!(sink.to_string().parse(), Ok(sink));
    }
    if let Ok(source) = text.parse::<SourceUrl>() {
        let again = source.to_string().parse::<SourceUrl>();
        assert!(matches!(source, SourceUrl::Rtsp(_)) || again == Ok(source));
    }
}
