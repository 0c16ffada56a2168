//! Chromium plays from far away, on a way that loses packets.

use anyhow::{Result, ensure};
use outflow_labs::browser::{Browser, CHROMIUM};
use outflow_labs::net::{RELAY_IN, RELAY_OUT};
use outflow_labs::path::THERE;
use outflow_labs::programs::ffmpeg;
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, listen};
use outflow_labs::scene::scene;
use serde_json::Value;

/// Plays, without the page; `offers` makes of its offer what is asked for.
const PLAYS: &str = "(async (offers) => {
    window.pc?.close();
    document.body.innerHTML = '<video autoplay muted></video>';
    window.pc = new RTCPeerConnection();
    pc.ontrack = ({ track }) => { document.querySelector('video').srcObject = new MediaStream([track]); };
    pc.addTransceiver('video', { direction: 'recvonly' });
    await pc.setLocalDescription();
    const headers = { 'Content-Type': 'application/sdp' };
    const body = offers(pc.localDescription.sdp);
    const answer = await fetch('/play/live', { method: 'POST', headers, body });
    if (answer.status !== 201) throw new Error(await answer.text());
    window.said = await answer.text();
    await pc.setRemoteDescription({ type: 'answer', sdp: window.said });
})";

/// A browser offers to take repair packets; or it does not, as far as the relay knows.
const OFFERS: [&str; 2] = ["(sdp) => sdp", "(sdp) => sdp.replace('flexfec-03', 'other')"];

/// What it has got of the picture.
const GOT: &str = "(async () => {
    const all = [...(await pc.getStats()).values()];
    const got = all.find((one) => one.type === 'inbound-rtp' && one.kind === 'video') ?? {};
    return { ...got, answered: /FEC-FR/.test(window.said) };
})()";

/// How many of something.
fn count(got: &Value, of: &str) -> u64 {
    got[of].as_u64().unwrap_or(0)
}

#[test]
fn a_browser_far_away_gets_repair_packets_where_packets_are_lost() -> Result<()> {
    let Some(paths) = scene("browser far away", &["ffmpeg", CHROMIUM])? else { return Ok(()) };
    let far = paths.to_players("20 Mbit/s, 200 ms", "200 ms")?;
    let text = format!("{}webrtc = \"0.0.0.0:8189\"\n[streams.live]\nsource = \"push\"\n", listen());
    let mut relay = Relay::start(&paths.relay, &text)?;
    let line = format!(
        "-re -f lavfi -i testsrc2=size=640x360:rate=25 -pix_fmt yuv420p -g 50 -c:v libx264 -preset ultrafast \
         -tune zerolatency -profile:v baseline -b:v 1500k -maxrate 1500k -bufsize 300k \
         -f rtsp -rtsp_transport tcp -pkt_size 1200 rtsp://{RELAY_IN}:{RTSP_PORT}/live"
    );
    let _sender = ffmpeg(&line).within(&paths.source).start()?;
    relay.wait_up("live")?;
    let mut repeated = Vec::new();
    for offers in OFFERS {
        far.change(THERE, "20 Mbit/s, 200 ms")?;
        let mut browser = Browser::start(&paths.players)?;
        browser.open(&format!("http://{RELAY_OUT}:{HTTP_PORT}/play/live"))?;
        let there = "location.pathname + ' ' + document.readyState";
        browser.wait_for("the page is there", there, |state| state == "/play/live complete")?;
        browser.evaluate(&format!("{PLAYS}({offers})"))?;
        let calm = browser.wait_for("pictures", GOT, |got| count(got, "framesDecoded") > 100)?;
        ensure!(count(&calm, "fecPacketsReceived") == 0, "nothing is lost: {calm:#}");
        far.change(THERE, "20 Mbit/s, 200 ms, loss 5 %")?;
        let got = browser.wait_for("it plays on", GOT, |got| count(got, "framesDecoded") > 700)?;
        let takes = offers == OFFERS[0];
        let repairs = count(&got, "fecPacketsReceived");
        ensure!(got["answered"] == takes && (repairs > 100) == takes && (repairs == 0) != takes, "{got:#}");
        repeated.push(count(&got, "retransmittedPacketsReceived"));
        if takes {
            ensure!(sent(&relay)? >= repairs, "{} sent: {got:#}", sent(&relay)?);
        }
    }
    // What has come back by them is not asked for again.
    ensure!(repeated[0] < repeated[1], "{repeated:?} were sent once more");
    relay.healthy()
}

/// How many repair packets the relay says that it has sent.
fn sent(relay: &Relay) -> Result<u64> {
    let metrics = relay.get("/metrics")?;
    let line = metrics.lines().find(|line| line.starts_with("outflow_webrtc_repair_packets_total"));
    Ok(line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0))
}
