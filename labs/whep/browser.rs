//! What a browser shows: how soon the first picture stands there, and how old pictures are.
//!
//! ffmpeg encodes a moving test picture and sends it by RTP to a tap in this process, which hands each packet on to the
//! relay and puts down when the last packet of each picture went. Chromium says when it showed which picture, by its
//! timestamp of RTP. So what a picture's age lacks is what stands before the sending: the camera and the encoder.

use std::collections::BTreeMap;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use outflow_labs::bench::{Bench, RELAY_CPU, SOURCE_PORT};
use outflow_labs::browser::{Browser, CHROMIUM};
use outflow_labs::figures::{progress, quantile};
use outflow_labs::media::{rtp, wall_nanos};
use outflow_labs::net::{RELAY_IN, RELAY_OUT, SOURCE};
use outflow_labs::process::Running;
use outflow_labs::programs::{ffmpeg, missing};
use outflow_labs::relay::{HTTP_PORT, Relay, listen};
use serde_json::Value;

/// Where the tap listens, at the source's address.
const TAP_PORT: u16 = 5100;
/// Bytes of a header of RTP (RFC 3550, section 5.1).
const HEADER: usize = 12;
/// How often a viewer comes.
const JOINS: usize = 20;
/// Pictures whose age is wanted.
const PICTURES: u64 = 300;

/// In milliseconds.
pub(crate) struct Shown {
    /// From making a connection to the first picture, 95 of 100 times.
    pub(crate) join_p95: f64,
    /// From the sending of a picture to when it is shown, the median.
    pub(crate) glass_p50: f64,
}

/// Plays the stream of this page once more, and says how long it took until the first picture was shown.
const JOINS_ONCE: &str = "(async () => {
    const began = performance.now();
    const pc = new RTCPeerConnection();
    pc.addTransceiver('video', { direction: 'recvonly' });
    const video = Object.assign(document.createElement('video'), { muted: true, autoplay: true });
    document.body.append(video);
    pc.ontrack = (event) => { video.srcObject = new MediaStream([event.track]); };
    await pc.setLocalDescription();
    const headers = { 'Content-Type': 'application/sdp' };
    const answer = await fetch(location.pathname, { method: 'POST', headers, body: pc.localDescription.sdp });
    if (answer.status !== 201) throw new Error(await answer.text());
    await pc.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
    const shown = await new Promise((done) => video.requestVideoFrameCallback((_, about) => done(about)));
    await fetch(answer.headers.get('Location'), { method: 'DELETE' });
    pc.close();
    video.remove();
    return shown.presentationTime - began;
})()";

/// Puts down which pictures of this page's video are shown, and when, in milliseconds since 1970.
const WATCHES: &str = "(() => {
    const video = document.querySelector('video');
    window.shown = [];
    const note = (_, about) => {
        shown.push([about.rtpTimestamp, performance.timeOrigin + about.presentationTime]);
        video.requestVideoFrameCallback(note);
    };
    video.requestVideoFrameCallback(note);
    return true;
})()";

/// Plays a stream in a browser.
///
/// # Errors
/// A program that it takes is not there, or it does not play.
pub(crate) fn measure(bench: &Bench) -> Result<Shown> {
    for program in ["ffmpeg", CHROMIUM] {
        if let Some(why) = missing(program) {
            bail!("{why}");
        }
    }
    let paths = bench.paths();
    let folder = tempfile::tempdir()?;
    let sdp = folder.path().join("stream.sdp");
    std::fs::write(&sdp, rtp::bare_description(SOURCE_PORT))?;
    let text = format!(
        "{}webrtc = \"0.0.0.0:8189\"\n[streams.live]\nsource = \"rtp://0.0.0.0:{SOURCE_PORT}\"\nsdp = \"{}\"\n",
        listen(),
        sdp.display()
    );
    let mut relay = Relay::start_on(&paths.relay, &text, Some(RELAY_CPU))?;
    let tap = Tap::new(bench)?;
    relay.wait_up("live")?;
    let mut browser = Browser::start(&paths.players)?;
    browser.open(&format!("http://{RELAY_OUT}:{HTTP_PORT}/play/live"))?;
    let seen = "document.querySelector('video')?.getVideoPlaybackQuality().totalVideoFrames ?? 0";
    browser.wait_for("pictures", seen, |seen| seen.as_u64() > Some(30))?;
    let mut joins = Vec::with_capacity(JOINS);
    for _ in 0..JOINS {
        joins.push(browser.evaluate(JOINS_ONCE)?.as_f64().context("no time")?);
    }
    browser.evaluate(WATCHES)?;
    browser.wait_for("pictures", "shown.length", |count| count.as_u64() >= Some(PICTURES))?;
    let ages = tap.ages(&browser.evaluate("shown")?);
    ensure!(
        ages.len() as u64 > PICTURES / 2,
        "the browser shows pictures that were not sent: {}",
        ages.len()
    );
    relay.healthy()?;
    let shown = Shown { join_p95: quantile(&joins, 0.95), glass_p50: quantile(&ages, 0.5) };
    let [join, age] = [quantile(&joins, 0.5), quantile(&ages, 0.95)];
    progress(format!(
        "a browser: joins in {join:.1} ms half of the time, in {:.1} 95 of 100",
        shown.join_p95
    ));
    progress(format!("pictures are {:.1} ms old half of the time, {age:.1} 95 of 100", shown.glass_p50));
    Ok(shown)
}

/// When the last packet of each picture went to the relay, by its timestamp: nanoseconds since 1970.
type Sent = Arc<Mutex<BTreeMap<u32, u64>>>;

/// Hands on what an encoder sends.
struct Tap {
    sent: Sent,
    stop: Arc<AtomicBool>,
    _encoder: Running,
}

impl Tap {
    fn new(bench: &Bench) -> Result<Self> {
        let (sent, stop) = (Sent::default(), Arc::new(AtomicBool::new(false)));
        let source = &bench.paths().source;
        let at = SocketAddrV4::new(SOURCE, TAP_PORT);
        let socket = source.run(|| UdpSocket::bind(at))?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let (notes, stopped) = (Arc::clone(&sent), Arc::clone(&stop));
        std::thread::spawn(move || hand_on(&socket, &notes, &stopped));
        let encoder = ffmpeg(&format!(
            "-re -f lavfi -i testsrc2=size=640x360:rate=30 -pix_fmt yuv420p -c:v libx264 -preset ultrafast \
             -tune zerolatency -profile:v baseline -g 30 -b:v 2500k -maxrate 2500k -bufsize 500k \
             -f rtp rtp://{at}?pkt_size=1200"
        ));
        Ok(Self { sent, stop, _encoder: encoder.within(source).start()? })
    }

    /// How old pictures were when they were shown, in milliseconds.
    fn ages(&self, shown: &Value) -> Vec<f64> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let age = |one: &Value| {
            let timestamp = u32::try_from(one[0].as_u64()?).ok()?;
            Some(one[1].as_f64()? - *sent.get(&timestamp)? as f64 / 1e6)
        };
        shown.as_array().into_iter().flatten().filter_map(age).collect()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn hand_on(socket: &UdpSocket, sent: &Sent, stop: &AtomicBool) {
    let mut packet = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let Ok(length) = socket.recv(&mut packet) else { continue };
        // The relay may not be there yet.
        let _lost = socket.send_to(&packet[..length], (RELAY_IN, SOURCE_PORT));
        if length > HEADER && packet[1] & 0x80 != 0 {
            let timestamp = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
            sent.lock().unwrap_or_else(PoisonError::into_inner).insert(timestamp, wall_nanos());
        }
    }
}
