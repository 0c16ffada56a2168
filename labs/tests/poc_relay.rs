//! Relays joined by the partial-order transport: one asks another, sends to another, is asked by players; with
//! keys, tokens and levels.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN, RELAY_OUT};
use outflow_labs::process::{Program, Running};
use outflow_labs::programs::{clip, ffmpeg, ffmpeg_decodes, ffmpeg_sends};
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, binary, listen};
use outflow_labs::scene::{PATIENCE, Sample, scene};
use serde_json::Value;

const PORT: u16 = 7000;

fn outflow(words: &str) -> Result<Program> {
    Ok(Program::words(&format!("{} {words}", binary()?.display())))
}

/// Where every relay here listens.
fn with_poc(key: Option<&Path>) -> String {
    let how = match key {
        Some(file) => format!("key_file = \"{}\"", file.display()),
        None => "encryption = \"off\"".to_owned(),
    };
    listen() + &format!("poc = \"0.0.0.0:{PORT}\"\n[poc]\n{how}\n")
}

/// For tests that expect all packets: what a busy machine holds up for longer than usual is of use, too.
const PATIENT: &str = "latency = \"2s\"\n";

/// Watches a stream for some seconds; what was seen.
/// What a player sees in six seconds. A second of pictures at most comes at once at the beginning, whatever level is
/// asked for then.
fn watched(paths: &Paths, words: &str) -> Result<Value> {
    let watch = outflow(&format!("watch --json --duration 6s {words}"))?;
    let done = watch.within(&paths.players).start()?.succeed(PATIENCE)?;
    let summary = done.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(summary).with_context(|| format!("no JSON: {summary}"))
}

fn is_whole(summary: &Value) -> Result<()> {
    for lost in ["lost", "malformed", "continuity_errors"] {
        ensure!(summary[lost] == 0, "{lost} in {summary}");
    }
    ensure!(summary["decodable_frames"].as_u64() > Some(25), "{summary}");
    Ok(())
}

#[test]
fn relays_pull_from_and_send_to_each_other_encrypted() -> Result<()> {
    let Some(paths) = scene("relays over the partial-order transport", &["ffmpeg"])? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let key = folder.path().join("poc.key");
    std::fs::write(&key, outflow("poc key")?.finish(PATIENCE)?.stdout)?;
    let near = with_poc(Some(&key))
        + PATIENT
        + "[streams.live]\nsource = \"push\"\n[streams.cam]\nsource = \"push\"\n"
        + &format!("[[sinks]]\nstream = \"cam\"\nto = \"poc://{PLAYER}:{PORT}/copy?latency=2100ms\"\n");
    let far = with_poc(Some(&key))
        + PATIENT
        + "[streams.copy]\nsource = \"push\"\n"
        + &format!("[streams.live]\nsource = \"poc://{RELAY_OUT}:{PORT}/live\"\n");
    let mut near = Relay::start(&paths.relay, &near)?;
    let mut far = Relay::start(&paths.players, &far)?;
    let send = |file: &Path, to: &str| ffmpeg_sends(file, to).within(&paths.source).start();
    let _live = send(&clip(), &format!("-f mpegts -method PUT http://{RELAY_IN}:{HTTP_PORT}/live.ts"))?;
    let to = format!("-f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/cam");
    let _cam = send(&Sample::H264Mp4.file()?, &to)?;
    for stream in ["live", "cam"] {
        near.wait_up(stream)?;
    }
    far.wait_up("live")?;
    far.wait_up("copy")?;
    // A transport stream stays one, RTP of tracks stays that.
    for play in [
        format!("-i http://127.0.0.1:{HTTP_PORT}/live.ts"),
        format!("-rtsp_transport tcp -i rtsp://127.0.0.1:{RTSP_PORT}/copy"),
    ] {
        ffmpeg_decodes(&play, 50).within(&paths.players).finish(PATIENCE)?;
    }
    let keys = format!("--key-file {}", key.display());
    for stream in ["live", "cam"] {
        is_whole(&watched(&paths, &format!("{keys} poc://{RELAY_OUT}:{PORT}/{stream}"))?)?;
    }
    let receivers = near.stream("cam")?["receivers"].clone();
    ensure!(receivers[0]["kind"] == "poc", "{receivers}");
    let stranger = outflow(&format!("watch --json --insecure poc://{RELAY_OUT}:{PORT}/cam"))?;
    let mut stranger = stranger.within(&paths.players).start()?;
    ensure!(!stranger.wait(PATIENCE)?.success(), "it was let in: {}", stranger.account());
    near.healthy()?;
    far.healthy()
}

#[test]
fn a_source_that_goes_and_comes_is_followed_by_its_receivers() -> Result<()> {
    let Some(paths) = scene("a source that comes back, relayed", &["ffmpeg"])? else { return Ok(()) };
    let near = with_poc(None) + "[streams.cam]\nsource = \"push\"\n";
    let far = with_poc(None) + &format!("[streams.cam]\nsource = \"poc://{RELAY_OUT}:{PORT}/cam\"\n");
    let mut near = Relay::start(&paths.relay, &near)?;
    let mut far = Relay::start(&paths.players, &far)?;
    for size in ["320x180", "160x90"] {
        let pictures =
            format!("-re -f lavfi -i testsrc2=size={size}:rate=25 -c:v libx264 -preset ultrafast -g 25");
        let to = format!("-f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/cam");
        let encoding = ffmpeg(&format!("{pictures} {to}")).within(&paths.source).start()?;
        far.wait_up("cam")?;
        let play = format!("-rtsp_transport tcp -i rtsp://127.0.0.1:{RTSP_PORT}/cam");
        ffmpeg_decodes(&play, 25).within(&paths.players).finish(PATIENCE)?;
        drop(encoding);
        far.wait_stream("cam", "away", |state| state["source"]["state"] != "live")?;
    }
    near.healthy()?;
    far.healthy()
}

#[test]
fn players_ask_for_levels_and_show_their_tokens() -> Result<()> {
    let Some(paths) = scene("levels over the partial-order transport", &["ffmpeg"])? else { return Ok(()) };
    let access = "[access]\nplay = [\"see\"]\npublish = [\"send\"]\n";
    let streams = "[streams.cam]\nsource = \"push\"\n[streams.ts]\nsource = \"push\"\n";
    let mut relay = Relay::start(&paths.relay, &(with_poc(None) + PATIENT + access + streams))?;
    let pictures = "-re -f lavfi -i testsrc2=size=320x240:rate=25 -g 25 -bf 3 -sc_threshold 0 -c:v libx264 \
                    -preset veryfast -x264-params b-pyramid=none:b-adapt=0:ref=1:weightp=0";
    let to = format!("-f rtsp -rtsp_transport tcp rtsp://any:send@{RELAY_IN}:{RTSP_PORT}/cam");
    let _encoding = ffmpeg(&format!("{pictures} {to}")).within(&paths.source).start()?;
    relay.wait_up("cam")?;
    let cam = format!("--insecure poc://{RELAY_OUT}:{PORT}/cam?token=see");
    let all = watched(&paths, &cam)?;
    is_whole(&all)?;
    let frames = |summary: &Value| summary["frames"].as_u64().unwrap_or_default();
    // One picture in four is needed by others. Asked for at first, and of the session as it plays.
    for less in [format!("{cam}&level=2"), format!("--level 2 {cam}")] {
        let less = watched(&paths, &less)?;
        ensure!(less["lost"] == 0 && frames(&less) * 2 < frames(&all), "{less} is not less than {all}");
    }
    let denied = outflow(&format!("watch --json --insecure poc://{RELAY_OUT}:{PORT}/cam"))?;
    let mut denied = denied.within(&paths.players).start()?;
    ensure!(!denied.wait(PATIENCE)?.success(), "it was let in: {}", denied.account());
    ensure!(denied.account().contains("a token is needed"), "{}", denied.account());

    // A program that knows the transport alone sends and receives MPEG-TS.
    let feed = ffmpeg_sends(&clip(), "-f mpegts udp://127.0.0.1:6000?pkt_size=1316");
    let send =
        format!("poc send --insecure --from udp://127.0.0.1:6000 poc://{RELAY_IN}:{PORT}/ts?token=send");
    let _sending = outflow(&send)?.within(&paths.source).start()?;
    let _feeding = feed.within(&paths.source).start()?;
    relay.wait_up("ts")?;
    let receive =
        format!("poc recv --insecure --to udp://127.0.0.1:6100 poc://{RELAY_OUT}:{PORT}/ts?token=see");
    let _receiving = outflow(&receive)?.within(&paths.players).start()?;
    let summary = watched(&paths, "udp://127.0.0.1:6100")?;
    is_whole(&summary).with_context(|| format!("{:?}", relay.stream("ts")))?;
    relay.healthy()
}

/// A receiver behind a path that carries less than the stream has the pictures that all others need.
#[test]
fn where_there_is_not_room_for_all_key_pictures_come() -> Result<()> {
    let Some(paths) = scene("a narrow way over the partial-order transport", &["ffmpeg"])? else {
        return Ok(());
    };
    let _narrow = paths.to_players("1200 kbit/s, buffer 15 kB", "0 ms")?;
    let mut relay = Relay::start(&paths.relay, &(with_poc(None) + "[streams.cam]\nsource = \"push\"\n"))?;
    let pictures = "-re -f lavfi -i testsrc2=size=320x240:rate=25,noise=alls=20:allf=t -g 25 -bf 3 \
                    -sc_threshold 0 -c:v libx264 -preset veryfast -b:v 1800k -maxrate 1800k -bufsize 900k \
                    -x264-params b-pyramid=none:b-adapt=0:ref=1:weightp=0";
    let to = format!("-f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/cam");
    let _encoding = ffmpeg(&format!("{pictures} {to}")).within(&paths.source).start()?;
    relay.wait_up("cam")?;
    let watch = |relay| outflow(&format!("watch --json --duration 10s --insecure poc://{relay}:{PORT}/cam"));
    let narrow = watch(RELAY_OUT)?.within(&paths.players).start()?;
    relay.wait_receivers("cam", 1)?;
    let wide = watch(RELAY_IN)?.within(&paths.source).start()?;
    let drops = relay.wait_stream("cam", "watched for a while", |state| {
        let receiver = &state["receivers"][0];
        receiver["age_ms"].as_u64() > Some(8_000)
    })?["receivers"][0]["drops"]
        .clone();
    let seen = |watch: Running| {
        let done = watch.succeed(PATIENCE)?;
        Ok::<Value, anyhow::Error>(serde_json::from_str(done.stdout.lines().last().unwrap_or_default())?)
    };
    let (narrow, wide) = (seen(narrow)?, seen(wide)?);
    ensure!(drops["less-valuable"].as_u64() > Some(20), "what is worth less was not left out: {drops}");
    let keys = |summary: &Value| summary["key_frames"].as_u64().unwrap_or_default();
    // They do not begin and end at the same time.
    ensure!(keys(&narrow) + 1 >= keys(&wide), "key pictures are missing: {narrow}, {wide}");
    ensure!(narrow["frames"].as_u64() < wide["frames"].as_u64(), "all came: {narrow}, {wide}");
    relay.healthy()
}
