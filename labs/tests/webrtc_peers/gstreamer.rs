//! GStreamer's webrtcbin, driven by a program in Python: Debian 12 has no element that speaks WHIP.

use std::path::Path;

use anyhow::{Result, ensure};
use outflow_labs::net::Namespace;
use outflow_labs::process::{Program, Running};
use outflow_labs::relay::Relay;
use outflow_labs::scene::{PATIENCE, skipped};

use crate::pion::{Stage, count, ends, got};
use crate::{LIVE, configuration, whep, whip};

/// Debian's: another one has no modules of Debian's packages.
const PYTHON: &str = "/usr/bin/python3";

/// Why it cannot run here, if so.
fn lacking() -> Option<&'static str> {
    let there = |line: &Program| line.finish(PATIENCE).is_ok();
    let modules = "import gi; [gi.require_version(name, '1.0') for name in ('GstSdp', 'GstWebRTC')]";
    if !there(&Program::new(PYTHON).args(["-c", modules])) {
        return Some("python3-gi or gir1.2-gst-plugins-bad-1.0 is not installed");
    }
    let elements = ["webrtcbin", "nicesrc", "x264enc"].map(|name| format!("gst-inspect-1.0 {name}"));
    let has_all = elements.iter().all(|line| there(&Program::words(line)));
    (!has_all).then_some("GStreamer's plug-ins for webrtcbin are not installed")
}

/// A certificate, as it has to be (`docs/browsers.md`), and its key.
fn certificate(stage: &Stage) -> Result<String> {
    let [key, whole] = ["key.pem", "certificate.pem"].map(|name| stage.file(name).display().to_string());
    let kind = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=peer";
    let line = format!("openssl req -x509 {kind} -keyout {key} -out {whole}");
    Program::words(&line).finish(PATIENCE)?;
    std::fs::write(&whole, std::fs::read_to_string(&whole)? + &std::fs::read_to_string(&key)?)?;
    Ok(whole)
}

fn starts(within: &Namespace, arguments: [&str; 4]) -> Result<Running> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/webrtc_peers/gstreamer.py");
    Program::new(PYTHON).arg(program.display().to_string()).args(arguments).within(within).start()
}

#[test]
fn gstreamer_publishes_and_plays() -> Result<()> {
    let test = "GStreamer by WHIP and WHEP";
    if let Some(why) = lacking() {
        skipped(test, why);
        return Ok(());
    }
    let Some(stage) = Stage::new(test)? else { return Ok(()) };
    let mut relay = Relay::start(&stage.paths.relay, &configuration(LIVE))?;
    let certificate = certificate(&stage)?;
    let publisher = starts(&stage.paths.source, ["publish", &whip("live"), "320x240", &certificate])?;
    relay.wait_up("live")?;
    // Of another implementation, too.
    let others = got(stage.plays("", "live", &stage.file("of-gstreamer.h264"), 50)?)?;
    ensure!(others["lost"] == 0 && count(&others, "sound")? > 0, "{others}");
    let viewer = starts(&stage.paths.players, ["play", &whep("live"), "50", &certificate])?;
    let shown = got(viewer)?;
    ensure!(shown["size"] == "320x240" && count(&shown, "pictures")? >= 50, "{shown}");
    ensure!(count(&shown, "sound")? >= 50, "{shown}");
    ends(publisher, &relay, "live")?;
    relay.healthy()
}
