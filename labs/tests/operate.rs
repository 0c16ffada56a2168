//! What an operator uses: `outflow demo`, `outflow watch`, the API, metrics, events, the page.

use anyhow::{Context, Result, ensure};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN};
use outflow_labs::process::Program;
use outflow_labs::programs::{clip, ffmpeg_decodes, ffmpeg_sends};
use outflow_labs::relay::{HTTP_PORT, Relay, binary, listen};
use outflow_labs::scene::{
    PATIENCE, ends_clean, ffmpeg_http, gst_rtsp_ts, http_url, plays, rtsp_url, scene, wait_for,
};
use serde_json::{Value, json};

fn outflow(arguments: &str) -> Result<Program> {
    Ok(Program::new(binary()?.display().to_string()).args(arguments.split_whitespace()))
}

fn demo_relay(paths: &Paths) -> Result<Relay<'_>> {
    let relay = Relay::start(&paths.relay, &(listen() + "[streams.live]\nsource = \"demo://\"\n"))?;
    relay.wait_up("live")?;
    Ok(relay)
}

#[test]
fn the_demo_plays_at_the_addresses_that_it_prints() -> Result<()> {
    let Some(paths) = scene("outflow demo", &["ffmpeg"])? else { return Ok(()) };
    let mut demo = outflow("demo")?.within(&paths.relay).start()?;
    wait_for("it says that it is ready", || {
        ensure!(demo.alive(), "it ended: {}", demo.account());
        Ok(demo.stdout().contains("Status page"))
    })?;
    let printed = demo.stdout();
    let players: Vec<&str> = printed.split_whitespace().filter(|word| word.ends_with("/demo.ts")).collect();
    ensure!(!players.is_empty(), "no address to play from: {printed}");
    ffmpeg_decodes(&format!("-i {}", players[0]), 25).within(&paths.relay).finish(PATIENCE)?;
    demo.signal(nix::sys::signal::Signal::SIGINT)?;
    ensure!(demo.wait(PATIENCE)?.success(), "Ctrl-C is no failure: {}", demo.account());
    Ok(())
}

#[test]
fn watch_sees_whole_streams_whatever_way_they_come() -> Result<()> {
    let Some(paths) = scene("outflow watch", &["ffmpeg"])? else { return Ok(()) };
    let sinks = ["udp", "rtp"].map(|scheme| format!("{scheme}://{PLAYER}:{}", port_of(scheme)));
    let mut configuration = listen() + "[streams.live]\nsource = \"udp://0.0.0.0:5000\"\n";
    for to in &sinks {
        configuration += &format!("[[sinks]]\nstream = \"live\"\nto = \"{to}\"\n");
    }
    let mut relay = Relay::start(&paths.relay, &configuration)?;
    let to = format!("-f mpegts udp://{RELAY_IN}:5000?pkt_size=1316");
    let _publishing = ffmpeg_sends(&clip(), &to).within(&paths.source).start()?;
    relay.wait_up("live")?;
    let ways = [
        http_url("live"),
        rtsp_url("live"),
        format!("--transport udp {}", rtsp_url("live")),
        "udp://0.0.0.0:6000".into(),
        "rtp://0.0.0.0:6010".into(),
    ];
    let watching = ways.iter().map(|way| {
        let watch = outflow(&format!("watch --json --duration 3s {way}"))?;
        watch.within(&paths.players).start()
    });
    for (way, watch) in ways.iter().zip(watching.collect::<Result<Vec<_>>>()?) {
        let done = watch.succeed(PATIENCE)?;
        let summary = done.stdout.lines().last().unwrap_or_default();
        let summary: Value = serde_json::from_str(summary).with_context(|| format!("no JSON: {summary}"))?;
        for lost in ["lost", "malformed", "continuity_errors"] {
            ensure!(summary[lost] == 0, "{way}: {lost} in {summary}");
        }
        ensure!(summary["decodable_frames"].as_u64() > Some(25), "{way}: {summary}");
    }
    relay.healthy()
}

fn port_of(scheme: &str) -> u16 {
    if scheme == "udp" { 6000 } else { 6010 }
}

#[test]
fn health_page_description_and_metrics_are_there() -> Result<()> {
    let Some(paths) = scene("health, page and metrics", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = demo_relay(&paths)?;
    let player = plays(&paths, &ffmpeg_http("live", 500))?;
    relay.wait_stream("live", "played", |state| state["receivers"][0]["packets"].as_u64() > Some(50))?;

    relay.get("/healthz")?;
    let page = relay.get("/")?;
    ensure!(page.contains("<html") && page.contains("Outflow"), "the status page is not one: {page}");
    let described = relay.json("/api/v1/openapi.json")?;
    for path in ["/api/v1/streams", "/api/v1/streams/{name}", "/api/v1/receivers", "/api/v1/reload"] {
        ensure!(described["paths"][path].is_object(), "{path} is not described");
    }
    let metrics = relay.get("/metrics")?;
    let sent = metrics.lines().find(|line| line.starts_with("outflow_receiver_sent_bytes_total{"));
    let sent = sent.context("no bytes a receiver among the metrics")?;
    ensure!(sent.contains("stream=\"live\"") && sent.contains("kind=\"http-ts\""), "{sent}");
    ensure!(!sent.ends_with(" 0"), "{sent}");
    drop(player);
    relay.healthy()
}

#[test]
fn receiver_reports_are_read_and_priorities_changed() -> Result<()> {
    let Some(paths) = scene("receiver reports", &["gst-launch-1.0"])? else { return Ok(()) };
    let mut relay = demo_relay(&paths)?;
    let player = plays(&paths, &gst_rtsp_ts("live", "udp", 9999))?;
    let state = relay.wait_stream("live", "reported on", |state| {
        let reports = state["receivers"][0]["reports"].as_array();
        reports.is_some_and(|reports| !reports.is_empty())
    })?;
    let id = &state["receivers"][0]["id"];
    relay.patch(&format!("/api/v1/receivers/{id}"), &json!({ "priority": "high" }))?;
    relay.wait_stream("live", "of high priority", |state| state["receivers"][0]["priority"] == "high")?;
    drop(player);
    relay.wait_receivers("live", 0)?;
    relay.healthy()
}

#[test]
fn events_tell_of_a_source_that_goes_and_comes() -> Result<()> {
    let Some(paths) = scene("events", &["ffmpeg", "curl"])? else { return Ok(()) };
    let configuration =
        listen() + "[streams.live]\nsource = \"udp://0.0.0.0:5000\"\nsource_timeout = \"1 s\"\n";
    let mut relay = Relay::start(&paths.relay, &configuration)?;
    let curl = format!("curl -sN http://127.0.0.1:{HTTP_PORT}/api/v1/events");
    let mut events = Program::words(&curl).within(&paths.relay).start()?;
    let to = format!("-f mpegts udp://{RELAY_IN}:5000?pkt_size=1316");
    for up in [true, false, true] {
        let publishing = up.then(|| ffmpeg_sends(&clip(), &to).within(&paths.source).start()).transpose()?;
        wait_for("the newest event tells it", || {
            ensure!(events.alive(), "curl ended: {}", events.account());
            let told = events.stdout();
            let newest = told.lines().rev().filter_map(|line| line.strip_prefix("data: "));
            let newest = newest.filter_map(|text| serde_json::from_str::<Value>(text).ok()).next();
            Ok(newest.is_some_and(|state| state["streams"][0]["source"]["up"] == up))
        })?;
        if publishing.is_some() {
            ends_clean(plays(&paths, &ffmpeg_http("live", 5))?)?;
        }
    }
    relay.healthy()
}
