//! Chromium publishes scalable video, and plays each of its levels.

use anyhow::{Context as _, Result};
use outflow_labs::browser::{Browser, CHROMIUM};
use outflow_labs::relay::Relay;
use outflow_labs::scene::scene;
use serde_json::Value;

use crate::{configuration, page};

/// Publishes what is drawn on a canvas, by this codec and in these layers.
const PUBLISHES: &str = "(async (codec, scalabilityMode) => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 640, height: 480 });
    const context = canvas.getContext('2d');
    let drawn = 0;
    setInterval(() => {
        context.fillStyle = `hsl(${3 * drawn++}, 80%, 50%)`;
        context.fillRect(0, 0, 640, 480);
        context.fillStyle = 'white';
        context.fillRect(5 * drawn % 640, 100, 80, 200);
    }, 40);
    window.pc = new RTCPeerConnection();
    const [track] = canvas.captureStream(25).getTracks();
    const sendEncodings = [{ scalabilityMode, maxBitrate: 1_500_000 }];
    const transceiver = pc.addTransceiver(track, { direction: 'sendonly', sendEncodings });
    const { codecs } = RTCRtpSender.getCapabilities('video');
    transceiver.setCodecPreferences(codecs.filter((one) => [codec, 'video/rtx'].includes(one.mimeType)));
    await pc.setLocalDescription();
    const headers = { 'Content-Type': 'application/sdp' };
    const answer = await fetch('/publish/live', { method: 'POST', headers, body: pc.localDescription.sdp });
    if (answer.status !== 201) throw new Error(await answer.text());
    await pc.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
})";

/// What is sent, and in which layers.
const SENT: &str = "(async () => {
    const all = [...(await pc.getStats()).values()].filter((one) => one.type === 'outbound-rtp');
    return all.map(({ scalabilityMode, frameWidth }) => ({ scalabilityMode, frameWidth }));
})()";

/// How large the picture is that is shown, and how many were.
const SHOWN: &str = "(() => {
    const video = document.querySelector('video');
    const { totalVideoFrames: pictures } = video?.getVideoPlaybackQuality() ?? {};
    return { width: video?.videoWidth, pictures, state: document.body?.dataset.state };
})()";

fn asks(level: u64) -> String {
    format!("document.querySelector('#level').value = {level}; document.querySelector('#level').onchange()")
}

/// Levels of two spatial and three temporal layers: Chromium has a third size of larger pictures alone.
fn levels_of(codec: &str, mode: &str) -> Result<()> {
    let Some(paths) = scene(&format!("layers of {codec}"), &[CHROMIUM])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let mut publisher = Browser::start(&paths.players)?;
    publisher.open(&page())?;
    let state = "location.pathname + ' ' + document.readyState";
    publisher.wait_for("the page is there", state, |state| state == "/play/live complete")?;
    publisher.evaluate(&format!("{PUBLISHES}('{codec}', '{mode}')"))?;
    publisher.wait_for("all layers", SENT, |sent| {
        sent[0]["scalabilityMode"] == mode && sent[0]["frameWidth"] == 640
    })?;
    relay.wait_up("live")?;
    let mut viewer = Browser::start(&paths.players)?;
    let more = |viewer: &mut Browser, level: u64, width: u64| -> Result<()> {
        let from = viewer.wait_for("its size", SHOWN, |shown| shown["width"] == width);
        let from = from.with_context(|| format!("{:#}", relay.stream("live").unwrap_or_default()))?;
        let is_on = |shown: &Value| {
            let more = shown["pictures"].as_u64() >= from["pictures"].as_u64().map(|count| count + 25);
            more && shown["width"] == width && shown["state"] == "playing"
        };
        viewer.wait_for(&format!("level {level} plays on"), SHOWN, is_on).map(drop)
    };
    // One that begins with it ...
    for (level, width) in [(4, 320), (2, 320), (1, 640)] {
        viewer.open(&format!("{}?level={level}", page()))?;
        more(&mut viewer, level, width)?;
    }
    // ... and one that changes to it.
    for (level, width) in [(3, 320), (1, 640), (4, 320), (2, 320), (1, 640)] {
        viewer.evaluate(&asks(level))?;
        more(&mut viewer, level, width)?;
    }
    relay.healthy()
}

#[test]
fn a_browser_plays_each_level_of_av1_in_layers() -> Result<()> {
    levels_of("video/AV1", "L2T3")
}

#[test]
fn a_browser_plays_each_level_of_vp9_in_layers() -> Result<()> {
    levels_of("video/VP9", "L2T3_KEY")
}
