//! Encrypted media: a sender's SRTP is opened, and sealed with another key, for players that know it.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN, RELAY_OUT};
use outflow_labs::process::Program;
use outflow_labs::programs::{clip, ffmpeg_decodes, ffmpeg_sends};
use outflow_labs::relay::{HTTP_PORT, Relay, listen};
use outflow_labs::scene::{all_play_clean, ends_clean, ffmpeg_rtsp, plays, scene, wait_bound};

const SUITE: &str = "AES_CM_128_HMAC_SHA1_80";
const SENDERS: &str = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";
const RELAYS: &str = "PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR";
const PICTURES: u32 = 40;
const SOURCE_PORT: u16 = 5010;
const SEALED_PORT: u16 = 6000;
const AS_SENT_PORT: u16 = 6002;

/// H.264 to this port, encrypted with this key (RFC 4568).
fn description(port: u16, key: &str) -> String {
    format!(
        "v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns=-\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\nm=video {port} RTP/SAVP 96\r\n\
         a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\na=crypto:1 {SUITE} inline:{key}\r\n"
    )
}

fn configuration(sdp: &Path) -> String {
    listen()
        + &format!(
            r#"
[streams.secret]
source = "rtp://0.0.0.0:{SOURCE_PORT}"
sdp = "{}"
[streams.secret.elements.open]
element = "decrypt"
key = "{SENDERS}"
[streams.secret.elements.seal]
element = "encrypt"
key = "{RELAYS}"
input = "open"
[streams.secret.branches.clear]
input = "open"
[streams.secret.branches.sealed]
input = "seal"
[[sinks]]
stream = "secret"
to = "rtp://{PLAYER}:{SEALED_PORT}"
branch = "sealed"
[[sinks]]
stream = "secret"
to = "rtp://{PLAYER}:{AS_SENT_PORT}"
"#,
            sdp.display()
        )
}

fn sender() -> Program {
    let srtp = format!("-f rtp -srtp_out_suite {SUITE} -srtp_out_params {SENDERS}");
    ffmpeg_sends(&clip(), &format!("-an {srtp} srtp://{RELAY_IN}:{SOURCE_PORT}"))
}

/// ffmpeg, waiting for what is encrypted with this key.
fn player(folder: &Path, port: u16, key: &str) -> Result<Program> {
    let file = folder.join(format!("{port}.sdp"));
    std::fs::write(&file, description(port, key))?;
    // It joins anywhere, and complains of what it cannot decode before the first key frame.
    let input = format!("-protocol_whitelist file,udp,rtp,srtp -i {}", file.display());
    Ok(ffmpeg_decodes(&input, PICTURES))
}

fn start<'a>(paths: &'a Paths, folder: &Path) -> Result<Relay<'a>> {
    let sdp = folder.join("source.sdp");
    std::fs::write(&sdp, description(SOURCE_PORT, SENDERS))?;
    Relay::start(&paths.relay, &configuration(&sdp))
}

#[test]
fn what_comes_encrypted_is_opened_and_sealed_again() -> Result<()> {
    let Some(paths) = scene("SRTP", &["ffmpeg"])? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let mut relay = start(&paths, folder.path())?;
    let players = [
        player(folder.path(), SEALED_PORT, RELAYS)?,
        // As the sender has encrypted it: the relay needs no key for that.
        player(folder.path(), AS_SENT_PORT, SENDERS)?,
    ];
    let mut waiting = players.iter().map(|player| plays(&paths, player)).collect::<Result<Vec<_>>>()?;
    wait_bound(&mut waiting[0], SEALED_PORT)?;
    wait_bound(&mut waiting[1], AS_SENT_PORT)?;
    let _sending = sender().within(&paths.source).start()?;
    relay.wait_up("secret")?;
    waiting.into_iter().try_for_each(ends_clean)?;
    let by_http = format!("-i http://{RELAY_OUT}:{HTTP_PORT}/secret.ts?branch=clear");
    let clear = [
        ffmpeg_rtsp("secret?branch=clear", "tcp", PICTURES),
        ffmpeg_rtsp("secret?branch=clear", "udp", PICTURES),
        ffmpeg_decodes(&by_http, PICTURES),
    ];
    all_play_clean(&paths, &clear)?;
    let state = relay.stream("secret")?;
    let elements = state["elements"].as_array().context("elements")?;
    ensure!(elements.iter().all(|element| element["faults"] == 0), "{state:#}");
    let shown = format!("{state}{}", relay.get("/api/v1/streams")?);
    ensure!(!shown.contains(SENDERS) && !shown.contains(RELAYS), "keys are not shown");
    relay.healthy()
}
