//! Clients ask for levels, and adapt them: `outflow watch` against the relay.

use anyhow::{Context, Result, ensure};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN};
use outflow_labs::process::{Program, Running};
use outflow_labs::programs::ffmpeg;
use outflow_labs::relay::{RTSP_PORT, Relay, binary, listen};
use outflow_labs::scene::{PATIENCE, http_url, rtsp_url, scene, wait_for};
use serde_json::Value;

/// Where the receiver without a session gets its packets.
const PORT: u16 = 6410;

fn camera() -> Program {
    ffmpeg(&format!(
        "-re -f lavfi -i testsrc2=size=320x240:rate=25 -g 25 -bf 3 -sc_threshold 0 -c:v libx264 \
         -preset veryfast -x264-params b-pyramid=none:b-adapt=0:ref=1:weightp=0 -f rtsp \
         -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/cam"
    ))
}

fn configuration() -> String {
    listen()
        + &format!(
            "[streams.cam]\nsource = \"push\"\n\
             [[sinks]]\nstream = \"cam\"\nto = \"rtp://{PLAYER}:{PORT}\"\n"
        )
}

fn watch(paths: &Paths, words: &str) -> Result<Running> {
    let program = Program::new(binary()?.display().to_string()).arg("watch").args(words.split_whitespace());
    program.within(&paths.players).start()
}

fn json_of(watching: Running) -> Result<Value> {
    let done = watching.succeed(PATIENCE)?;
    serde_json::from_str(done.stdout.trim()).context("JSON")
}

/// The level of the receiver of this kind.
fn level(relay: &Relay<'_>, kind: &str) -> Result<Option<u64>> {
    let receivers = relay.json("/api/v1/receivers?stream=cam")?;
    let found = receivers.as_array().and_then(|all| all.iter().find(|one| one["kind"] == kind));
    Ok(found.and_then(|one| one["level"].as_u64()))
}

#[test]
fn a_player_asks_over_rtcp_and_over_rtsp() -> Result<()> {
    let Some(paths) = scene("watching at a level", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _camera = camera().within(&paths.source).start()?;
    relay.wait_stream("cam", "levels", |stream| {
        stream["levels"].as_array().is_some_and(|all| all.len() == 3)
    })?;
    for words in ["--transport udp", "--transport tcp", "--transport udp --ask rtsp"] {
        let line = format!("{} --level 3 --json --duration 8s {words}", rtsp_url("cam"));
        let watching = watch(&paths, &line)?;
        let kind = if words.contains("udp") { "rtsp-udp" } else { "rtsp-tcp" };
        wait_for("level 3", || Ok(level(&relay, kind)? == Some(3)))?;
        let told = json_of(watching)?;
        ensure!(told["lost"] == 0 && told["malformed"] == 0, "{words}: {told}");
        wait_for("it to leave", || Ok(level(&relay, kind)?.is_none()))?;
    }
    relay.healthy()
}

#[test]
fn a_player_asks_over_http_while_it_downloads() -> Result<()> {
    let Some(paths) = scene("watching at a level by HTTP", &["ffmpeg"])? else { return Ok(()) };
    let access = "[access]\nplay = [\"s3cret\"]\ncontrol = [\"c0ntrol\"]\n";
    let mut relay = Relay::start(&paths.relay, &(configuration() + access))?.with_token("c0ntrol");
    let to = |at: &str| format!("--token s3cret --json --duration 8s {at}");
    let _camera = camera().within(&paths.source).start()?;
    relay.wait_stream("cam", "levels", |stream| {
        stream["levels"].as_array().is_some_and(|all| all.len() == 3)
    })?;
    let watching = watch(&paths, &to(&format!("{} --level 2", http_url("cam"))))?;
    wait_for("level 2", || Ok(level(&relay, "http-ts")? == Some(2)))?;
    let told = json_of(watching)?;
    ensure!(told["lost"] == 0 && told["malformed"] == 0, "{told}");
    for (words, why) in [("--level 9", "refused the level: 422"), ("--adapt", "only RTP tells")] {
        let mut refused = watch(&paths, &to(&format!("{} {words}", http_url("cam"))))?;
        let status = refused.wait(PATIENCE)?;
        ensure!(!status.success() && refused.stderr().contains(why), "{words}: {}", refused.account());
    }
    relay.healthy()
}

#[test]
fn one_that_adapts_knows_what_levels_cost_and_heeds_the_battery() -> Result<()> {
    let Some(paths) = scene("adapting to a battery", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _camera = camera().within(&paths.source).start()?;
    relay.wait_stream("cam", "levels", |stream| {
        stream["levels"].as_array().is_some_and(|all| all.len() == 3)
    })?;
    let supplies = tempfile::tempdir()?;
    let battery = supplies.path().join("BAT0");
    std::fs::create_dir(&battery)?;
    let files = [
        ("type", "Battery"),
        ("status", "Discharging"),
        ("capacity", "5"),
        ("current_now", "1000000"),
        ("voltage_now", "5000000"),
    ];
    for (name, text) in files {
        std::fs::write(battery.join(name), text)?;
    }
    let folder = supplies.path().display();
    let url = rtsp_url("cam");
    let line = format!("{url} --transport udp --adapt --power --power-supply {folder} --json --duration 6s");
    let watching = watch(&paths, &line)?;
    wait_for("the base, for want of charge", || Ok(level(&relay, "rtsp-udp")? == Some(3)))?;
    let told = json_of(watching)?;
    let adaptation = &told["adaptation"];
    ensure!(adaptation["level"] == 3 && adaptation["decisions"][0]["reason"] == "charge", "{told}");
    ensure!(adaptation["changes"] == 1, "{told}");
    ensure!(adaptation["rates_bps"].as_array().is_some_and(|rates| rates.len() == 3), "{told}");
    ensure!(told["energy"]["source"] == "battery", "{told}");
    let watts = told["energy"]["watts"].as_f64().context("watts")?;
    ensure!((watts - 5.0).abs() < 0.01, "{told}");
    relay.healthy()
}

#[test]
fn a_relay_that_was_restarted_learns_the_level_again() -> Result<()> {
    let Some(paths) = scene("levels after a restart", &["ffmpeg"])? else { return Ok(()) };
    let relay = Relay::start(&paths.relay, &configuration())?;
    let camera_before = camera().within(&paths.source).start()?;
    relay.wait_up("cam")?;
    let description = tempfile::tempdir()?;
    let file = description.path().join("cam.sdp");
    std::fs::write(
        &file,
        format!(
            "v=0\r\no=- 0 0 IN IP4 {PLAYER}\r\ns=cam\r\nc=IN IP4 {PLAYER}\r\nt=0 0\r\n\
             m=video {PORT} RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
        ),
    )?;
    let line =
        format!("rtp://{PLAYER}:{PORT} --sdp {} --level 2 --duration 60s --silence 30s", file.display());
    let mut watching = watch(&paths, &line)?;
    wait_for("level 2", || Ok(level(&relay, "rtp")? == Some(2)))?;
    drop(relay);
    drop(camera_before);
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _camera = camera().within(&paths.source).start()?;
    wait_for("level 2 again", || Ok(level(&relay, "rtp")? == Some(2)))?;
    ensure!(watching.alive(), "{}", watching.account());
    relay.healthy()
}
