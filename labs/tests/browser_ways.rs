//! Chromium over ways that lose packets or are long, in a network that becomes another one, and with the layers that its
//! way carries.

#[path = "browser_ways/far.rs"]
mod far;
#[path = "browser_ways/layers.rs"]
mod layers;

use anyhow::{Result, ensure};
use outflow_labs::browser::{Browser, CHROMIUM};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN, RELAY_OUT};
use outflow_labs::path::THERE;
use outflow_labs::process::Running;
use outflow_labs::programs::ffmpeg;
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, listen};
use outflow_labs::scene::scene;
use serde_json::Value;

fn configuration() -> String {
    format!("{}webrtc = \"0.0.0.0:8189\"\n[streams.live]\nsource = \"push\"\n", listen())
}

/// A test picture of 800 kbit/s with a key frame every four seconds, and a tone.
fn publishes(paths: &Paths) -> Result<Running> {
    let line = format!(
        "-re -f lavfi -i testsrc2=size=320x240:rate=25 -f lavfi -i sine=frequency=440:sample_rate=48000 \
         -pix_fmt yuv420p -g 100 -c:v libx264 -preset ultrafast -tune zerolatency -profile:v baseline \
         -b:v 800k -c:a libopus -ac 2 -b:a 64k -f rtsp -rtsp_transport tcp -pkt_size 1200 \
         rtsp://{RELAY_IN}:{RTSP_PORT}/live"
    );
    ffmpeg(&line).within(&paths.source).start()
}

fn page() -> String {
    format!("http://{RELAY_OUT}:{HTTP_PORT}/play/live")
}

/// What has come, and by which session.
const SEEN: &str = "(async () => {
    if (document.readyState !== 'complete' || !location.host) return {};
    const { session } = await import(`${location.origin}/assets/webrtc.js`);
    const all = session ? [...(await session.pc.getStats()).values()] : [];
    const of = (kind) => all.find((one) => one.type === 'inbound-rtp' && one.kind === kind) ?? {};
    const [picture, sound] = [of('video'), of('audio')];
    return {
        state: document.body?.dataset.state,
        stream: document.querySelector('video')?.srcObject?.id,
        pictures: picture.framesDecoded ?? 0,
        asked: picture.nackCount ?? 0,
        again: picture.retransmittedPacketsReceived ?? 0,
        lost: picture.packetsLost ?? 0,
        heard: (sound.totalSamplesReceived ?? 0) - (sound.concealedSamples ?? 0),
    };
})()";

fn count(seen: &Value, key: &str) -> u64 {
    seen[key].as_u64().unwrap_or(0)
}

#[test]
fn a_browser_plays_on_where_packets_are_lost_one_by_one_and_in_bursts() -> Result<()> {
    let Some(paths) = scene("browser, losses", &["ffmpeg", CHROMIUM])? else { return Ok(()) };
    let path = paths.to_players("10 ms", "10 ms")?;
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _sender = publishes(&paths)?;
    relay.wait_up("live")?;
    let mut browser = Browser::start(&paths.players)?;
    browser.open(&page())?;
    let calm = browser.wait_for("it plays", SEEN, |seen| count(seen, "pictures") >= 50)?;
    let mut before = calm.clone();
    for losses in ["loss 5 %", "loss 3 % bursts 30 ms"] {
        path.change(THERE, &format!("10 ms, {losses}"))?;
        let after = browser.wait_for("it plays on", SEEN, |seen| {
            let pictures = count(seen, "pictures") >= count(&before, "pictures") + 250;
            pictures && count(seen, "again") > count(&before, "again") + 5
        })?;
        ensure!(count(&after, "asked") > count(&before, "asked"), "{before} {after}");
        ensure!(count(&after, "heard") > count(&before, "heard") + 48_000 * 5, "{before} {after}");
        before = after;
    }
    ensure!(before["stream"] == calm["stream"] && before["state"] == "playing", "{calm} {before}");
    let state = relay.wait_receivers("live", 1)?;
    ensure!(state["receivers"][0]["carries_bps"].as_u64() > Some(0), "{state:#}");
    relay.healthy()
}

#[test]
fn a_browser_plays_on_when_its_network_becomes_another_one() -> Result<()> {
    let Some(paths) = scene("browser, another network", &["ffmpeg", CHROMIUM])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _sender = publishes(&paths)?;
    relay.wait_up("live")?;
    let mut browser = Browser::start(&paths.players)?;
    browser.open(&page())?;
    let before = browser.wait_for("it plays", SEEN, |seen| count(seen, "pictures") >= 50)?;
    let joined = relay.wait_receivers("live", 1)?["receivers"][0]["id"].clone();
    paths.players.ip(&["address", "delete", &format!("{PLAYER}/24"), "dev", "eth0"])?;
    paths.players.ip(&["address", "add", "10.66.2.77/24", "dev", "eth0"])?;
    let pictures = browser.evaluate(SEEN)?;
    let after = browser.wait_for("it plays on", SEEN, |seen| {
        count(seen, "pictures") >= count(&pictures, "pictures") + 100
    })?;
    ensure!(after["stream"] == before["stream"] && after["state"] == "playing", "{before} {after}");
    let state = relay.wait_receivers("live", 1)?;
    ensure!(state["receivers"][0]["id"] == joined, "another session: {state:#}");
    relay.healthy()
}
