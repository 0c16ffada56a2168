//! Publishing, playing and controlling are separate rights.

use anyhow::{Result, ensure};
use outflow_labs::net::{PLAYER, RELAY_IN, RELAY_OUT};
use outflow_labs::process::Program;
use outflow_labs::programs::{clip, ffmpeg_decodes, ffmpeg_sends};
use outflow_labs::receive::{How, Receiver, Target};
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, listen};
use outflow_labs::scene::{PATIENCE, Sample, all_play_clean, scene};
use serde_json::json;

fn configuration() -> String {
    let access = "[access]\npublish = [\"in\"]\nplay = [\"out\"]\ncontrol = [\"ctl\"]\n";
    format!("{}{access}[streams.live]\nsource = \"push\"\n", listen())
}

#[test]
fn publishers_and_players_need_their_tokens() -> Result<()> {
    let Some(paths) = scene("tokens", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?.with_token("ctl");

    for (user, wrong) in [("", ""), ("me:out@", "the right to play is none to publish")] {
        let to = format!("-f rtsp -rtsp_transport tcp rtsp://{user}{RELAY_IN}:{RTSP_PORT}/live");
        let mut refused = ffmpeg_sends(&Sample::H264Mp4.file()?, &to).within(&paths.source).start()?;
        ensure!(!refused.wait(PATIENCE)?.success(), "published without a token: {wrong}");
    }
    let put = format!("-f mpegts -method PUT http://{RELAY_IN}:{HTTP_PORT}/live.ts");
    let mut refused = ffmpeg_sends(&clip(), &put).within(&paths.source).start()?;
    ensure!(!refused.wait(PATIENCE)?.success(), "put without a token");
    ensure!(relay.stream("live")?["source"]["up"] == false, "somebody got in");

    let to = format!("-f rtsp -rtsp_transport tcp rtsp://me:in@{RELAY_IN}:{RTSP_PORT}/live");
    let _publishing = ffmpeg_sends(&Sample::H264Mp4.file()?, &to).within(&paths.source).start()?;
    relay.wait_up("live")?;
    for query in ["", "?token=in", "?token=ctl", "?token=ou", "?token=outx"] {
        let target = Target { query: query.into(), ..Target::new("live") };
        for how in [How::RtspTcp, How::Http] {
            let refused = paths.players.run(|| Receiver::open(how, &target));
            let why = refused.err().map(|error| format!("{error:#}")).unwrap_or_default();
            ensure!(why.contains("401") || why.contains("403"), "{how:?} with {query:?}: {why:?}");
        }
    }
    let players = [
        format!("-rtsp_transport tcp -i rtsp://me:out@{RELAY_OUT}:{RTSP_PORT}/live"),
        format!("-rtsp_transport udp -i rtsp://{RELAY_OUT}:{RTSP_PORT}/live?token=out"),
        format!("-i http://{RELAY_OUT}:{HTTP_PORT}/live.ts?token=out"),
        format!("-i http://me:out@{RELAY_OUT}:{HTTP_PORT}/live.ts"),
    ];
    all_play_clean(&paths, &players.map(|input| ffmpeg_decodes(&input, 25)))?;
    relay.healthy()
}

#[test]
fn control_needs_its_token() -> Result<()> {
    let Some(paths) = scene("control token", &[])? else { return Ok(()) };
    let sink = json!({ "to": format!("udp://{PLAYER}:7000") });
    for token in [None, Some("in"), Some("out")] {
        let mut relay = Relay::start(&paths.relay, &configuration())?;
        if let Some(token) = token {
            relay = relay.with_token(token);
        }
        for refused in [
            relay.get("/api/v1/streams"),
            relay.post("/api/v1/streams/live/sinks", &sink),
            relay.post("/api/v1/reload", &json!({})),
        ] {
            let why = refused.err().map(|error| format!("{error:#}")).unwrap_or_default();
            ensure!(why.contains("401") || why.contains("403"), "with {token:?}: {why:?}");
        }
        ensure!(relay.get("/healthz").is_ok(), "health is no secret");
    }
    let relay = Relay::start(&paths.relay, &configuration())?.with_token("ctl");
    relay.get("/api/v1/streams")?;
    relay.post("/api/v1/streams/live/sinks", &sink)?;
    relay.wait_receivers("live", 1)?;
    Ok(())
}

#[test]
fn rtsp_and_http_are_encrypted_with_a_certificate() -> Result<()> {
    let Some(paths) = scene("TLS", &["ffmpeg", "openssl"])? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let (certificate, key) = (certificate.display(), key.display());
    Program::words(&format!(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=relay \
         -keyout {key} -out {certificate}"
    ))
    .finish(PATIENCE)?;
    let tls = format!("[tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n");
    let ports = format!("{}rtsps = \"0.0.0.0:8322\"\nhttps = \"0.0.0.0:8443\"\n", listen());
    let mut relay = Relay::start(&paths.relay, &format!("{ports}{tls}[streams.live]\nsource = \"push\"\n"))?;
    let to = format!("-f rtsp rtsps://{RELAY_IN}:8322/live");
    let _publishing = ffmpeg_sends(&Sample::H264Mp4.file()?, &to).within(&paths.source).start()?;
    relay.wait_up("live")?;
    let players = [
        ffmpeg_decodes(&format!("-i rtsps://{RELAY_OUT}:8322/live"), 25),
        ffmpeg_decodes(&format!("-i https://{RELAY_OUT}:8443/live.ts"), 25),
    ];
    all_play_clean(&paths, &players)?;
    relay.healthy()
}
