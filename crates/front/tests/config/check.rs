use outflow_config::ConfigErrors;

use crate::parse;

fn errors(text: &str) -> ConfigErrors {
    parse(text, "outflow.toml").expect_err(text)
}

/// The one mistake of `text` as "line:column what: help".
fn mistake(text: &str) -> String {
    let errors = errors(text);
    assert_eq!(errors.errors().len(), 1, "{errors}");
    let error = &errors.errors()[0];
    format!("{}:{} {}: {}", error.line, error.column, error.what, error.help)
}

fn good(text: &str) {
    if let Err(errors) = parse(text, "outflow.toml") {
        panic!("{errors}");
    }
}

#[test]
fn a_sink_needs_a_stream_that_is_configured() {
    let sink = "[[sinks]]\nstream = \"stag\"\nto = \"udp://10.0.0.1:5000\"\n";
    let found = mistake(&format!("[streams.stage]\n{sink}"));
    assert_eq!(found, "3:10 no stream is named 'stag': did you mean 'stage'? else add [streams.stag]");
    assert!(mistake(sink).ends_with("add [streams.stag]"));
    assert!(mistake(&format!("[streams.hall]\n{sink}")).ends_with("one of these: hall"));
}

#[test]
fn sinks_differ_in_address_and_name() {
    let sinks = |first: &str, second: &str| {
        format!(
            "[streams.a]\n[streams.b]\n[[sinks]]\nstream = \"a\"\n{first}\n[[sinks]]\nstream = \"b\"\n{second}\n"
        )
    };
    let found = mistake(&sinks("to = \"udp://239.1.1.1:6000\"", "to = \"udp://239.1.1.1:6000?ttl=3\""));
    assert!(found.starts_with("8:6 stream 'a' is sent to 239.1.1.1:6000 already"), "{found}");
    good(&sinks(
        "to = \"udp://239.1.1.1:6000?interface=eth0\"",
        "to = \"udp://239.1.1.1:6000?interface=eth1\"",
    ));
    let named = |to: &str| format!("name = \"wall\"\nto = \"udp://{to}:6000\"");
    let found = mistake(&sinks(&named("10.0.0.1"), &named("10.0.0.2")));
    assert!(found.starts_with("9:8 another sink is named 'wall'"), "{found}");
}

#[test]
fn a_stream_does_not_feed_itself() {
    let text = |to: &str| {
        format!(
            "[streams.a]\nsource = \"udp://239.1.1.1:5000\"\n[[sinks]]\nstream = \"a\"\nto = \"udp://{to}\"\n"
        )
    };
    assert!(
        mistake(&text("239.1.1.1:5000")).starts_with("5:6 stream 'a' would be sent to where it comes from")
    );
    good(&text("239.1.1.2:5000"));
    good(&text("239.1.1.1:5000?interface=eth1"));
}

#[test]
fn two_listeners_do_not_share_a_port() {
    let found = mistake("[listen]\nrtsp = \"0.0.0.0:8080\"\nhttp = \"127.0.0.1:8080\"\n");
    assert!(found.starts_with("3:8 http and rtsp both want TCP port 8080"), "{found}");
    assert!(mistake("[listen]\nrtsp = \"[::]:8080\"\n").contains("both want TCP port 8080"));
    good("[listen]\nrtsp = \"10.0.0.1:8080\"\nhttp = \"10.0.0.2:8080\"\n");
    good("[listen]\nrtsp = \"0.0.0.0:8080\"\nhttp = \"off\"\n");
}

#[test]
fn encrypted_listeners_need_a_certificate() {
    assert!(mistake("[listen]\nhttps = \"0.0.0.0:443\"\n").starts_with("2:9 https needs a certificate"));
    good("[listen]\nhttps = \"0.0.0.0:443\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"\n");
}

#[test]
fn sources_do_not_share_a_port() {
    let two = |a: &str, b: &str| format!("[streams.a]\nsource = \"{a}\"\n[streams.b]\nsource = \"{b}\"\n");
    let found = mistake(&two("rtp://0.0.0.0:5004", "udp://10.0.0.1:5005"));
    assert!(found.starts_with("4:10 stream 'a' receives at UDP port 5005 already"), "{found}");
    assert!(mistake(&two("udp://239.1.1.1:5000", "udp://239.1.1.1:5000")).contains("already"));
    assert!(mistake(&two("udp://0.0.0.0:5000", "udp://239.1.1.1:5000")).contains("already"));
    good(&two("udp://239.1.1.1:5000", "udp://239.1.1.2:5000"));
    good(&two("udp://239.1.1.1:5000?source=10.0.0.1", "udp://239.1.1.1:5000?source=10.0.0.2"));
    good(&two("udp://10.0.0.1:5000", "udp://10.0.0.2:5000"));
    good(&two("udp://0.0.0.0:5000", "udp://[fd00::1]:5000"));
    for v4 in ["udp://0.0.0.0:5000", "rtp://10.0.0.1:5000", "udp://239.1.1.1:5000"] {
        assert!(mistake(&two("udp://[::]:5000", v4)).contains("already"), "[::] is of IPv4, too");
        assert!(mistake(&two(v4, "udp://[::]:5000")).contains("already"), "[::] is of IPv4, too");
    }
}

#[test]
fn sources_keep_out_of_the_ports_of_sessions() {
    let found = mistake("[streams.a]\nsource = \"rtp://0.0.0.0:7999\"\n");
    assert!(found.starts_with("2:10 UDP port 7999 lies within listen.rtp_ports (8000-8999)"), "{found}");
    good("[listen]\nrtp_ports = \"9000-9100\"\n[streams.a]\nsource = \"rtp://0.0.0.0:8000\"\n");
}

#[test]
fn quantities_stay_within_their_limits() {
    let found = mistake("[defaults]\nring = \"1 kB\"\n[streams.a]\n[streams.b]\n");
    assert_eq!(found, "2:8 1 kB is too little: possible: 64 KiB to 4 GiB", "once, where it stands");
    assert!(mistake("[streams.a]\nring = \"1000 GB\"\n").contains("too much"));
    let found = mistake("[streams.a]\nring = \"60 GB\"\n");
    assert!(found.contains("too much") && found.contains("64 KiB to 4 GiB"), "{found}");
    assert!(
        mistake("[streams.a]\nhopeless_after = \"1 ms\"\n")
            .contains("1 ms is too little: possible: 1 s to 1 h")
    );
    assert!(mistake("[streams.a]\nsource_timeout = \"0 s\"\n").starts_with("2:18 "));
    assert!(mistake("[streams.a]\nmax_receivers = 0\n").starts_with("2:17 0 is too little"));
    assert!(mistake("[limits]\nworkers = 1000\n").starts_with("2:11 1000 is too much"));
    assert!(mistake("[limits]\nconnections = 0\n").contains("too little"));
    assert!(mistake("[listen]\nrtp_ports = \"8000-8001\"\n").contains("2 ports are too few"));
}

#[test]
fn rings_take_half_of_the_memory_at_most() {
    let two = |memory: &str| {
        format!("[limits]\nmemory = \"{memory}\"\n[streams.a]\n[streams.b]\nring = \"1 GB\"\n")
    };
    good(&two("2016 MB"));
    good(&two("auto"));
    let found = mistake(&two("2015 MB"));
    let what = "2:10 the rings of 2 streams take 1008 MB together, more than half of the memory (2015 MB)";
    assert!(found.starts_with(what), "{found}");
    assert!(mistake(&two("1 MB")).contains("1 MB is too little: possible: 16 MB to "));
    let renditions = "[streams.c]\nsource = [\"a\", \"b\"]\n";
    assert!(mistake(&(two("2016 MB") + renditions)).contains("take 1016 MB together"), "each has a ring");
}

#[test]
fn options_that_would_have_no_effect_are_refused() {
    assert!(mistake("[streams.a]\nsdp = \"a.sdp\"\n").starts_with("2:7 a source other than rtp://"));
    assert!(mistake("[streams.a]\ntransport = \"udp\"\n").starts_with("2:13 only rtsp://"));
    good("[defaults]\ntransport = \"udp\"\n[streams.a]\n");
}

#[test]
fn contradictions_are_reported_together() {
    let errors = errors(
        "[limits]\nworkers = 1000\n[listen]\nhttp = \"0.0.0.0:8554\"\n[[sinks]]\nstream = \"a\"\nto = \"udp://10.0.0.1:1\"\n",
    );
    assert_eq!(errors.errors().len(), 3, "{errors}");
}

#[test]
fn renditions_are_streams_with_sources() {
    let streams = "[streams.high]\n[streams.low]\n";
    good(&format!("{streams}[streams.cam]\nsource = [\"high\", \"low\"]\n"));
    for (source, said) in [
        (
            "[\"high\"]",
            "4:10 there is nothing to choose from 1 renditions: name 2 to 16 streams, the best first",
        ),
        ("[\"high\", \"lo\"]", "4:19 no stream is named 'lo': did you mean 'low'? else add [streams.lo]"),
        ("[\"high\", \"high\"]", "4:19 'high' stands here twice: leave one of them out"),
        (
            "[\"high\", \"cam\"]",
            "4:19 'cam' has no source of its own, but renditions: name those, or a stream",
        ),
        ("[\"high\", 3]", "4:19 a text is needed here, not a number"),
        ("3", "4:10 a source is needed here, not a number: write it like \"push\", or [\"high\", \"low\"]"),
    ] {
        let found = mistake(&format!("{streams}[streams.cam]\nsource = {source}\n"));
        assert!(found.starts_with(said), "{found}");
    }
    let services = "[streams.cam.elements.e]\nelement = \"pass\"\n[streams.cam.branches.b]\ninput = \"e\"\n";
    let text = format!("{streams}[streams.cam]\nsource = [\"high\", \"low\"]\n{services}");
    let all = errors(&text).to_string();
    assert!(all.contains("a stream that has renditions has no elements"), "{all}");
}

#[test]
fn groups_for_relays_below_are_groups_and_of_no_other() {
    let tree = |groups: &str, more: &str| {
        format!(
            "[listen]\npoc = \"0.0.0.0:7000\"\n[poc]\nencryption = \"off\"\n[tree]\nname = \"a\"\n\
             address = \"192.0.2.1:7000\"\ngroups = \"{groups}\"\n{more}"
        )
    };
    good(&tree("232.128.0.0/24", "ttl = 4\ntransport = \"multicast\"\n"));
    assert!(mistake(&tree("10.0.0.0/24", "")).contains("not all multicast groups"));
    assert!(mistake(&tree("224.0.0.0/24", "")).contains("not all multicast groups"));
    assert!(mistake(&tree("232.128.0.0/24", "ttl = 0\n")).contains("ttl"));
    let sink = "[streams.s]\n[[sinks]]\nstream = \"s\"\nto = \"udp://232.128.0.9:5000\"\n";
    assert!(mistake(&tree("232.128.0.0/24", sink)).contains("stream 's' is sent to 232.128.0.9 already"));
    let none = tree("232.128.0.0/24", "").replace("[listen]", "[listen]\nrtsp = \"off\"");
    assert!(mistake(&none).contains("by RTSP"));
}
