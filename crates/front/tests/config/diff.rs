use crate::parse;

fn changes(from: &str, to: &str) -> outflow_config::Changes {
    let config = |text: &str| parse(text, "o.toml").unwrap_or_else(|e| panic!("{e}"));
    outflow_config::diff(&config(from), &config(to))
}

#[test]
fn what_needs_a_restart_is_named_apart() {
    let changed = changes(
        "[access]\nplay = [\"one\"]",
        "[access]\nplay = [\"two\"]\n[listen]\nrtsp = \"0.0.0.0:554\"\n[limits]\nworkers = 2\npin_workers = true\nreceivers = 7\nsplit = 9\n[log]\nformat = \"json\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"",
    );
    assert_eq!(changed.settings, ["access.play", "limits.receivers", "limits.split"]);
    assert_eq!(
        changed.restart,
        [
            "listen.rtsp",
            "listen.rtsps",
            "listen.https",
            "tls",
            "limits.workers",
            "limits.pin_workers",
            "log.format"
        ]
    );
    assert_eq!(changed.lines().len(), 10, "and nothing else");
    assert!(changed.to_string().contains("listen.rtsp changed: needs a restart"));
}
