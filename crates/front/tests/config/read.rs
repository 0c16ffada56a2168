use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use outflow_config::*;

use crate::parse;

fn good(text: &str) -> Config {
    parse(text, "etc/outflow.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// Each mistake as "line:column what: help".
fn mistakes(text: &str) -> Vec<String> {
    let errors = parse(text, "outflow.toml").expect_err(text);
    errors.errors().iter().map(|e| format!("{}:{} {}: {}", e.line, e.column, e.what, e.help)).collect()
}

#[test]
fn an_empty_configuration_is_the_defaults() {
    let config = good("");
    assert_eq!(config.listen.at("rtsp"), Some((std::net::Ipv6Addr::UNSPECIFIED, 8554).into()));
    assert_eq!(
        (config.listen.at("rtsps"), config.listen.at("https")),
        (None, None),
        "nothing to encrypt with"
    );
    assert_eq!(config.limits, Limits::default());
    assert!(config.streams.is_empty() && config.sinks.is_empty());
}

#[test]
fn streams_take_what_the_defaults_say_unless_they_say_otherwise() {
    let config = good(
        r#"
        [defaults]
        ring = "1 MB"
        priority = "low"
        [streams.a]
        [streams.b]
        source = "udp://239.1.1.1:5000"
        ring = "2 MB"
        hopeless_after = "2 min"
        "#,
    );
    let (a, b) = (&config.streams["a"], &config.streams["b"]);
    assert_eq!((a.ring, a.priority), (ByteSize(1_000_000), Priority::Low));
    assert_eq!(a.source, SourceUrl::Push);
    assert_eq!((b.ring, b.priority), (ByteSize(2_000_000), Priority::Low));
    assert_eq!(b.hopeless_after, Duration::from_secs(120));
}

#[test]
fn paths_are_relative_to_the_file() {
    let config = good(
        r#"
        tls = { certificate = "cert.pem", key = "/etc/ssl/key.pem" }
        [streams."live/stage"]
        source = "rtp://0.0.0.0:5004"
        sdp = "stage.sdp"
        "#,
    );
    let tls = config.tls.expect("configured");
    assert_eq!(tls.certificate, PathBuf::from("etc/cert.pem"));
    assert_eq!(tls.key, PathBuf::from("/etc/ssl/key.pem"));
    assert_eq!(config.streams["live/stage"].sdp, Some(PathBuf::from("etc/stage.sdp")));
    assert!(config.listen.at("https").is_some(), "there is a certificate now");
}

#[test]
fn sinks_have_the_priority_of_their_stream_and_the_name_of_their_address() {
    let config = good(
        r#"
        [streams.a]
        priority = "high"
        [[sinks]]
        stream = "a"
        to = "udp://239.2.2.2:6000?ttl=4"
        [[sinks]]
        stream = "a"
        to = "rtp://10.0.0.7:7000"
        name = "wall"
        priority = "low"
        "#,
    );
    let names: Vec<_> = config.sinks.iter().map(|s| (s.name.as_str(), s.priority)).collect();
    assert_eq!(names, [("udp://239.2.2.2:6000?ttl=4", Priority::High), ("wall", Priority::Low)]);
}

#[test]
fn all_mistakes_of_the_tables_are_reported_at_once_in_order() {
    let text = "[listen]\nrtps = \"0.0.0.0:8554\"\n[streams.a]\nring = 8\nsource = \"x\"\n\
                [[sinks]]\nstream = \"a\"\n[Log]\n";
    let found = mistakes(text);
    assert_eq!(found.len(), 5, "{found:#?}");
    assert_eq!(found[0], "2:1 unknown key 'rtps' in [listen]: did you mean 'rtsp'?");
    assert_eq!(found[1], "4:8 a size is needed here, not a number: write it like \"8 MB\"");
    assert!(found[2].starts_with("5:10 'x' is no source: "));
    assert!(found[3].starts_with("6:1 this sink has no 'to': "));
    assert_eq!(found[4], "8:2 unknown key 'Log': did you mean 'log'?");
}

#[test]
fn a_key_in_the_wrong_table_is_sent_home() {
    let found = mistakes("[limits]\nrtp_ports = \"8000-8999\"\n");
    assert_eq!(found, ["2:1 unknown key 'rtp_ports' in [limits]: 'rtp_ports' belongs in [listen]"]);
    let found = mistakes("[defaults]\nsource = \"push\"\n");
    assert!(found[0].starts_with("2:1 'source' cannot be the same for all streams"), "{found:?}");
}

#[test]
fn words_are_suggested() {
    let found = mistakes("[streams.a]\npriority = \"hihg\"\n");
    assert_eq!(
        found,
        [
            "2:12 \"hihg\" is not one of the possible words: did you mean \"high\"? possible: \"high\", \"normal\", \"low\""
        ]
    );
}

#[test]
fn tables_must_be_tables() {
    assert!(mistakes("streams = 1")[0].contains("[streams.stage]"));
    assert!(mistakes("[streams]\na = 1")[0].contains("[streams.a]"));
    assert!(mistakes("[sinks]\nstream = \"a\"")[0].contains("[[sinks]]"));
    assert!(mistakes("sinks = [1]")[0].contains("[[sinks]]"));
    assert!(mistakes("listen = \"0.0.0.0\"")[0].contains("[listen]"));
    assert!(mistakes("[tls]\nkey = \"k\"")[0].starts_with("1:2 [tls] has no certificate"));
}

#[test]
fn names_are_checked_where_they_stand() {
    assert!(mistakes("[streams.\"a b\"]")[0].starts_with("1:10 'a b' is no name for a stream"));
}

#[test]
fn syntax_errors_say_where_and_what_to_do() {
    let text = parse("[streams.a]\nring = 8 MB\n", "o.toml").expect_err("no TOML").to_string();
    assert!(text.starts_with("o.toml:2:"), "{text}");
    assert!(text.contains("2 | ring = 8 MB") && text.contains("need quotes"), "{text}");
    assert!(!mistakes("[listen]\n[listen]\n").is_empty());
    assert!(mistakes("a = 1\na = 2")[0].starts_with("2:1 "));
}

#[test]
fn enormous_texts_are_refused_before_they_are_read() {
    let text = "#".repeat((64 << 20) + 1);
    assert!(mistakes(&text)[0].contains("more than"));
}

#[test]
fn control_characters_in_a_configuration_do_not_reach_the_terminal() {
    let errors = parse("\"\\u001b[31m\" = 1", "o.toml").expect_err("unknown key");
    assert!(!errors.to_string().contains('\u{1b}'));
}

/// Text that looks enough like a configuration to reach every part of the reader.
fn nearly_a_configuration() -> impl Strategy<Value = String> {
    let key = prop::sample::select(
        outflow_fronts::protocols()
            .sections()
            .into_iter()
            .flat_map(|s| s.keys)
            .chain(["streams", "defaults", "x"])
            .collect::<Vec<_>>(),
    );
    let value = prop_oneof![
        "[\"'a-z0-9:/.&?=@ \\[\\]-]{0,20}",
        "\"(udp|rtp|rtsp|demo|)://[a-z0-9:/.&?=@%\\[\\]-]{0,30}\"",
        "\"[0-9.]{1,8} ?(MB|kB|s|ms|min|)\"",
        "-?[0-9]{1,25}",
        Just("[{}]".to_owned()),
        Just("{ a.b = 1 }".to_owned()),
    ];
    let line = (key, value).prop_map(|(key, value)| format!("{key} = {value}\n"));
    let header = prop::sample::select(vec![
        "[listen]\n",
        "[access]\n",
        "[tls]\n",
        "[limits]\n",
        "[defaults]\n",
        "[streams.a]\n",
        "[streams.\"a/b\"]\n",
        "[[sinks]]\n",
        "[log]\n",
        "[[streams]]\n",
        "[streams.a.b]\n",
    ]);
    let part = prop_oneof![1 => header.prop_map(str::to_owned), 3 => line];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text: String) {
        let _ = parse(&text, "a.toml").map_err(|errors| errors.to_string());
    }

    #[test]
    fn nearly_good_text_never_panics_and_every_error_stands_in_the_file(text in nearly_a_configuration()) {
        if let Err(errors) = parse(&text, "a.toml") {
            prop_assert!(!errors.to_string().is_empty());
            let lines = text.split('\n').count();
            for error in errors.errors() {
                prop_assert!(error.line >= 1 && error.line <= lines, "{error}");
                prop_assert!(!error.help.is_empty());
            }
        }
    }
}
