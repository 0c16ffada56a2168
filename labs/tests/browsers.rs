//! Chromium plays streams of a relay, and publishes some.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outflow_labs::browser::{Browser, CHROMIUM};
use outflow_labs::code::{NUMBERS, check_order, watches};
use outflow_labs::moving::Looped;
use outflow_labs::net::{Paths, RELAY_IN, RELAY_OUT};
use outflow_labs::process::{Program, Running};
use outflow_labs::programs::ffmpeg;
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, Upgrade, listen};
use outflow_labs::scene::{PATIENCE, scene, wait_for};
use serde_json::Value;

/// Where browsers send their datagrams.
const WEBRTC_PORT: u16 = 8189;

/// A stream that is published.
const LIVE: &str = "[streams.live]\nsource = \"push\"\n";

fn configuration() -> String {
    format!("{}webrtc = \"0.0.0.0:{WEBRTC_PORT}\"\n{LIVE}", listen())
}

/// Pictures of this input of ffmpeg with a key frame a second and no B pictures, and a tone, by RTSP or as a transport
/// stream.
fn publishes(paths: &Paths, pictures: &str, (coding, sound): (&str, &str), by: By) -> Result<Running> {
    let to = match by {
        By::Rtsp => format!("-f rtsp -rtsp_transport tcp -pkt_size 1200 rtsp://{RELAY_IN}:{RTSP_PORT}/live"),
        By::Ts => format!("-f mpegts -method PUT http://{RELAY_IN}:{HTTP_PORT}/live.ts"),
    };
    let line = format!(
        "-re {pictures} -f lavfi -i sine=frequency=440:sample_rate=48000 \
         -pix_fmt yuv420p -g 25 {coding} -c:a {sound} -ac 2 -b:a 64k {to}"
    );
    ffmpeg(&line).within(&paths.source).start()
}

#[derive(Debug, Clone, Copy)]
enum By {
    Rtsp,
    Ts,
}

const H264: &str = "-c:v libx264 -preset ultrafast -tune zerolatency -profile:v baseline";
const OPUS: &str = "libopus";
/// A test picture.
const TEST: &str = "-f lavfi -i testsrc2=size=320x240:rate=25";

fn origin() -> String {
    format!("http://{RELAY_OUT}:{HTTP_PORT}")
}

fn page() -> String {
    format!("{}/play/live", origin())
}

/// Pictures that were decoded, whether sound comes, and how bright the picture is on average.
const SEEN: &str = "(() => {
    const video = document.querySelector('video');
    if (!video) return {};
    const canvas = Object.assign(document.createElement('canvas'), { width: 32, height: 24 });
    const context = canvas.getContext('2d');
    context.drawImage(video, 0, 0, 32, 24);
    const pixels = context.getImageData(0, 0, 32, 24).data.filter((_, index) => index % 4 < 3);
    return {
        pictures: video.getVideoPlaybackQuality().totalVideoFrames,
        sound: video.srcObject?.getAudioTracks().some((track) => !track.muted) ?? false,
        bright: pixels.reduce((sum, one) => sum + one, 0) / pixels.length,
        width: video.videoWidth,
        state: document.body.dataset.state,
    };
})()";

fn plays(seen: &Value, pictures: u64) -> bool {
    seen["pictures"].as_u64() >= Some(pictures) && seen["sound"] == true && seen["width"] == 320
}

#[test]
fn a_browser_plays_a_stream_by_the_page() -> Result<()> {
    let Some(paths) = scene("browser", &["ffmpeg", CHROMIUM])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let vp8 = "-c:v libvpx -deadline realtime -cpu-used 8 -b:v 500k";
    let pictures = Looped::new((320, 240), 250)?;
    for (coding, sound, by) in [
        (H264, OPUS, By::Rtsp),
        (vp8, OPUS, By::Rtsp),
        (H264, OPUS, By::Ts),
        (H264, "aac", By::Rtsp),
        (H264, "aac", By::Ts),
        (H264, "mp2", By::Ts),
    ] {
        let sender = publishes(&paths, &pictures.input(25), (coding, sound), by)?;
        relay.wait_up("live")?;
        let mut browser = Browser::start(&paths.players)?;
        browser.open(&page())?;
        browser.wait_for("the page's video", "!!document.querySelector('video')", |there| there == true)?;
        browser.evaluate(&watches())?;
        let seen = browser.wait_for("pictures and sound", SEEN, |seen| plays(seen, 50))?;
        let bright = seen["bright"].as_f64().unwrap_or(0.0);
        ensure!(
            (40.0..220.0).contains(&bright) && seen["state"] == "playing",
            "{coding} {sound} {by:?}: {seen}"
        );
        let shown = browser.evaluate(NUMBERS)?;
        check_order(&shown, pictures.count).with_context(|| format!("{coding} {sound} {by:?}: {shown}"))?;
        let state = relay.wait_receivers("live", 1)?;
        ensure!(state["receivers"][0]["kind"] == "webrtc", "{state:#}");
        // It says that it leaves.
        browser.evaluate("dispatchEvent(new Event('pagehide'))")?;
        relay.wait_receivers("live", 0)?;
        drop(sender);
        relay.wait_stream("live", "down", |state| state["source"]["up"] == false)?;
    }
    relay.healthy()
}

/// Publishes what is drawn on a canvas.
const PUBLISHES: &str = "(async () => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 240 });
    const context = canvas.getContext('2d');
    let drawn = 0;
    setInterval(() => {
        context.fillStyle = `hsl(${3 * drawn++}, 80%, 50%)`;
        context.fillRect(0, 0, 320, 240);
    }, 40);
    window.pc = new RTCPeerConnection();
    const [track] = canvas.captureStream(25).getTracks();
    pc.addTransceiver(track, { direction: 'sendonly' });
    await pc.setLocalDescription();
    const headers = { 'Content-Type': 'application/sdp' };
    const answer = await fetch('/publish/live', { method: 'POST', headers, body: pc.localDescription.sdp });
    if (answer.status !== 201) throw new Error(await answer.text());
    await pc.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
})()";

#[test]
fn a_browser_publishes_and_another_one_plays_that() -> Result<()> {
    let Some(paths) = scene("browser publishes", &[CHROMIUM])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let mut publisher = Browser::start(&paths.players)?;
    publisher.open(&page())?;
    // Before, there is an empty one, which is as complete.
    let state = "location.pathname + ' ' + document.readyState";
    publisher.wait_for("the page is there", state, |state| state == "/play/live complete")?;
    publisher.evaluate(PUBLISHES)?;
    relay.wait_up("live")?;
    let mut viewer = Browser::start(&paths.players)?;
    viewer.open(&page())?;
    // All since the key frame are decoded at once: many, before the first is shown.
    let is_shown = |seen: &Value| seen["width"] == 320 && seen["bright"].as_f64() > Some(20.0);
    let plays = |seen: &Value| seen["pictures"].as_u64() >= Some(50) && is_shown(seen);
    viewer.wait_for("pictures", SEEN, plays)?;
    publisher.evaluate("pc.close()")?;
    relay.wait_stream("live", "down", |state| state["source"]["up"] == false)?;
    relay.healthy()
}

/// What the page that publishes shows.
const SHOWN: &str = "({
    state: document.body?.dataset.state,
    says: document.querySelector('#state')?.textContent,
    figures: Object.fromEntries([...document.querySelectorAll('#figures div')].map((it) => [
        it.querySelector('dt').textContent, it.querySelector('dd').textContent,
    ])),
})";

/// A browser with a camera at the page that publishes this stream, with the smallest picture.
fn at_publishing_page(paths: &Paths, stream: &str) -> Result<Browser> {
    let mut browser = Browser::start_with_camera(&paths.players, &origin())?;
    browser.open(&format!("{}/publish/{stream}", origin()))?;
    browser.wait_for("the page is ready", SHOWN, |shown| shown["state"] == "off")?;
    browser.evaluate("document.querySelector('#size').value = '640x360'")?;
    Ok(browser)
}

/// What publishing takes.
const TOKEN: &str = "[access]\npublish = [\"secret\"]\n";

/// Publishes, and ends that.
const PRESSES: &str = "document.querySelector('#go').click()";

fn is(state: &str) -> impl Fn(&Value) -> bool {
    move |shown| shown["state"] == state
}

#[test]
fn a_browser_publishes_its_camera_by_the_page_until_its_user_ends_that() -> Result<()> {
    let Some(paths) = scene("browser publishes by the page", &[CHROMIUM])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let mut publisher = at_publishing_page(&paths, "live")?;
    publisher.evaluate(PRESSES)?;
    relay.wait_up("live")?;
    let mut viewer = Browser::start(&paths.players)?;
    viewer.open(&page())?;
    let plays = |seen: &Value| {
        let is_shown = seen["width"].as_u64() > Some(0) && seen["bright"].as_f64() > Some(20.0);
        seen["pictures"].as_u64() >= Some(50) && seen["sound"] == true && is_shown
    };
    let seen = viewer.wait_for("pictures and sound", SEEN, plays)?;
    let shown = publisher.wait_for("it shows how it goes", SHOWN, |shown| {
        let is_counted = |key: &str| shown["figures"][key].as_str().is_some_and(|text| !"–0".contains(text));
        shown["state"] == "publishing" && is_counted("Pictures a second") && is_counted("Round trip")
    })?;
    // Everything that plays takes this one (the page says why).
    ensure!(shown["figures"]["Picture"].as_str().is_some_and(|text| text.ends_with("H264")), "{shown}");
    let pictures = seen["pictures"].as_u64();
    // The camera is opened again; the viewer stays.
    publisher.evaluate("document.querySelector('#from-camera').dispatchEvent(new Event('change'))")?;
    viewer.wait_for("more pictures", SEEN, |seen| seen["pictures"].as_u64() > pictures.map(|n| n + 50))?;
    publisher.evaluate(PRESSES)?;
    relay.wait_stream("live", "down", |state| state["source"]["up"] == false)?;
    publisher.wait_for("it is over", SHOWN, is("ended"))?;
    let closed = publisher.evaluate("document.querySelector('video').srcObject === null")?;
    ensure!(closed == true, "the camera is open");
    relay.healthy()
}

/// Sizes of what is received, and how many pictures were decoded.
const LEVELS: &str = "(() => {
    const video = document.querySelector('video');
    const pictures = video?.getVideoPlaybackQuality().totalVideoFrames ?? 0;
    return { width: video?.videoWidth ?? 0, pictures, state: document.body?.dataset.state };
})()";

#[test]
fn a_browser_publishes_in_several_sizes_which_are_levels() -> Result<()> {
    let Some(paths) = scene("browser publishes in sizes", &[CHROMIUM])? else { return Ok(()) };
    let streams = "[streams.high]\n[streams.low]\n[streams.live]\nsource = [\"high\", \"low\"]\n";
    let mut relay = Relay::start(&paths.relay, &configuration().replace(LIVE, streams))?;
    let mut publisher = at_publishing_page(&paths, "live")?;
    publisher.evaluate(PRESSES)?;
    relay.wait_stream("live", "all", |state| state["source"]["format"] == "2 of 2 renditions")?;
    let mut viewer = Browser::start(&paths.players)?;
    for (level, width) in [(2, 320), (1, 640)] {
        viewer.open(&format!("{}?level={level}", page()))?;
        viewer.wait_for("its size", LEVELS, |seen| {
            seen["width"] == width && seen["pictures"].as_u64() >= Some(25) && seen["state"] == "playing"
        })?;
    }
    // A change is asked of the publisher, which has key frames when it is asked for them alone.
    viewer.evaluate(
        "document.querySelector('#level').value = 2; document.querySelector('#level').onchange()",
    )?;
    viewer.wait_for("the smallest", LEVELS, |seen| seen["width"] == 320)?;
    let shown = publisher.wait_for("sizes", SHOWN, |shown| shown["figures"]["Sizes"] == "2")?;
    ensure!(shown["state"] == "publishing", "{shown}");
    publisher.evaluate(PRESSES)?;
    relay.wait_stream("live", "down", |state| state["source"]["up"] == false)?;
    relay.healthy()
}

#[test]
fn the_page_that_publishes_comes_back_with_the_relay_and_ends_when_it_is_left() -> Result<()> {
    let Some(paths) = scene("browser publishes again", &[CHROMIUM])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &format!("{}{TOKEN}", configuration()))?;
    let mut publisher = at_publishing_page(&paths, "live?token=secret")?;
    publisher.evaluate(PRESSES)?;
    relay.wait_up("live")?;
    relay.process().signal(nix::sys::signal::Signal::SIGKILL)?;
    relay.process().wait(PATIENCE)?;
    publisher.wait_for("it has lost the relay", SHOWN, is("waiting"))?;
    relay.restart()?;
    relay.wait_up("live")?;
    publisher.wait_for("it publishes again", SHOWN, is("publishing"))?;
    publisher.evaluate("location = 'about:blank'")?;
    relay.wait_stream("live", "down", |state| state["source"]["up"] == false)?;
    relay.healthy()
}

#[test]
fn the_page_that_publishes_says_why_it_cannot() -> Result<()> {
    let Some(paths) = scene("browser cannot publish", &[CHROMIUM])? else { return Ok(()) };
    let configuration = format!("{}[streams.clip]\nsource = \"demo://\"\n{TOKEN}", configuration());
    let mut relay = Relay::start(&paths.relay, &configuration)?;
    for (stream, says) in [("live", "401"), ("none?token=secret", "404"), ("clip?token=secret", "409")] {
        let mut browser = at_publishing_page(&paths, stream)?;
        browser.evaluate(PRESSES)?;
        let shown = browser.wait_for("a refusal", SHOWN, is("refused"))?;
        ensure!(shown["says"].as_str().is_some_and(|text| text.contains(says)), "{stream}: {shown}");
    }
    // One that does not come by HTTPS, as browsers see it.
    let mut browser = Browser::start(&paths.players)?;
    browser.open(&format!("{}/publish/live", origin()))?;
    let shown = browser.wait_for("what to do", SHOWN, is("impossible"))?;
    let here = format!("http://localhost:{HTTP_PORT}/publish/live");
    ensure!(shown["says"].as_str().is_some_and(|text| text.contains(&here)), "{shown}");
    relay.healthy()
}

/// An encoder of a rendition, of this width and rate. Sound stands in front; browsers have it as Opus.
fn rendition(paths: &Paths, width: u32, rate: &str) -> Result<Running> {
    let to = format!("-f rtsp -rtsp_transport tcp -pkt_size 1200 rtsp://{RELAY_IN}:{RTSP_PORT}/w{width}");
    let line = format!(
        "-re -f lavfi -i testsrc2=size=640x480:rate=25 -f lavfi -i sine=frequency=440:sample_rate=48000 \
         -map 1:a -c:a aac -b:a 64k -map 0:v -vf scale={width}:-2 -pix_fmt yuv420p -g 25 {H264} \
         -b:v {rate} -maxrate {rate} -bufsize {rate} {to}"
    );
    ffmpeg(&line).within(&paths.source).start()
}

#[test]
fn a_browser_has_the_level_that_its_link_carries() -> Result<()> {
    let Some(paths) = scene("browser behind a link", &["ffmpeg", CHROMIUM, "tc"])? else { return Ok(()) };
    let streams = "[streams.w640]\nsource = \"push\"\n[streams.w160]\nsource = \"push\"\n\
         [streams.live]\nsource = [\"w640\", \"w160\"]\n";
    let text = configuration().replace(LIVE, streams);
    let mut relay = Relay::start(&paths.relay, &text)?;
    let _senders = [rendition(&paths, 640, "2M")?, rendition(&paths, 160, "150k")?];
    relay.wait_stream("live", "both", |state| state["source"]["format"] == "2 of 2 renditions")?;
    let mut browser = Browser::start(&paths.players)?;
    browser.open(&page())?;
    let shows = |width: u64| move |seen: &Value| seen["width"] == width;
    browser.wait_for("the better one", SEEN, shows(640))?;
    let link = |change: &str| -> Result<()> {
        let tc = Program::words(&format!("tc qdisc {change}")).within(&paths.relay);
        tc.finish(PATIENCE).map(drop)
    };
    for _ in 0..2 {
        // Video of 2 Mbit/s does not fit.
        link("add dev out0 root tbf rate 700kbit burst 16kb latency 300ms")?;
        browser.wait_for("the one that fits", SEEN, shows(160))?;
        let before = browser.evaluate(SEEN)?["pictures"].as_u64();
        browser.wait_for("it plays on", SEEN, |seen| {
            let more = seen["pictures"].as_u64() > before.map(|pictures| pictures + 100);
            more && seen["width"] == 160 && seen["sound"] == true
        })?;
        link("del dev out0 root")?;
        browser.wait_for("the better one again", SEEN, shows(640))?;
    }
    let state = relay.wait_receivers("live", 1)?;
    ensure!(state["receivers"][0]["level_asked"] == 1, "{state:#}");
    relay.healthy()
}

/// UDP by its number: `ip` knows its name only where there is `/etc/protocols`.
const UDP: &str = "17";

/// From now on, players' network lets no UDP out.
fn without_udp(paths: &Paths) -> Result<()> {
    paths.players.ip(&["rule", "add", "ipproto", UDP, "prohibit"]).map(drop)
}

/// Plays without the page.
const PLAYS: &str = "(async () => {
    window.pc = new RTCPeerConnection();
    pc.addTransceiver('video', { direction: 'recvonly' });
    await pc.setLocalDescription();
    const headers = { 'Content-Type': 'application/sdp' };
    const answer = await fetch('/play/live', { method: 'POST', headers, body: pc.localDescription.sdp });
    if (answer.status !== 201) throw new Error(await answer.text());
    await pc.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
})()";

/// Pictures that were decoded, and the ends of the pair of candidates that is used.
const USED: &str = "(async () => {
    const all = [...(await pc.getStats()).values()];
    const get = (id) => all.find((one) => one.id === id) ?? {};
    const pair = get(all.find((one) => one.type === 'transport')?.selectedCandidatePairId);
    const end = ({ protocol, tcpType, port }) => ({ protocol, tcpType, port });
    return {
        pictures: all.find((one) => one.type === 'inbound-rtp' && one.kind === 'video')?.framesDecoded ?? 0,
        local: end(get(pair.localCandidateId)),
        remote: end(get(pair.remoteCandidateId)),
    };
})()";

#[test]
fn a_browser_without_udp_plays_and_publishes_by_tcp() -> Result<()> {
    let Some(paths) = scene("browser without UDP", &["ffmpeg", CHROMIUM])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let sender = publishes(&paths, TEST, (H264, OPUS), By::Rtsp)?;
    relay.wait_up("live")?;
    let mut browser = Browser::start(&paths.players)?;
    for protocol in ["udp", "tcp"] {
        if protocol == "tcp" {
            without_udp(&paths)?;
        }
        browser.open(&page())?;
        browser.wait_for("pictures and sound", SEEN, |seen| plays(seen, 50))?;
        browser.evaluate(PLAYS)?;
        let used = browser.wait_for("pictures", USED, |used| used["pictures"].as_u64() >= Some(25))?;
        ensure!([&used["local"], &used["remote"]].iter().all(|end| end["protocol"] == protocol), "{used}");
        ensure!(used["remote"]["port"] == WEBRTC_PORT, "{used}");
    }
    drop(sender);
    relay.wait_stream("live", "down", |state| state["source"]["up"] == false)?;
    browser.evaluate(PUBLISHES)?;
    relay.wait_up("live")?;
    let used = browser.evaluate(USED)?;
    ensure!(used["local"]["protocol"] == "tcp", "{used}");
    relay.healthy()
}

#[test]
fn a_browser_by_tcp_plays_on_over_upgrades_and_the_process_that_it_came_to_lives_as_long() -> Result<()> {
    let Some(paths) = scene("browser by TCP, upgrade", &["ffmpeg", CHROMIUM])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _sender = publishes(&paths, TEST, (H264, OPUS), By::Rtsp)?;
    relay.wait_up("live")?;
    without_udp(&paths)?;
    let first = relay.processes()?;
    let mut browser = Browser::start(&paths.players)?;
    browser.open(&page())?;
    browser.wait_for("pictures and sound", SEEN, |seen| plays(seen, 50))?;
    let before = browser.evaluate(STAYED)?;
    for _ in 0..2 {
        let upgrade = relay.upgrade()?;
        ensure!(matches!(upgrade, Upgrade::Done { .. }), "{upgrade:?}");
        let pictures = browser.evaluate(STAYED)?["pictures"].as_u64();
        // For longer than what a browser and the relay have to say to each other may be missing.
        let after = browser.wait_for("it plays on", STAYED, |seen| {
            seen["pictures"].as_u64() > pictures.map(|pictures| pictures + 400)
        })?;
        ensure!(after["stream"] == before["stream"] && after["state"] == "playing", "{before} {after}");
    }
    relay.wait_receivers("live", 1)?;
    // The one between had nothing of it.
    let is_first_and = |others: usize| {
        let all = relay.processes()?;
        Ok(all.starts_with(&first) == (others == 1) && all.len() == 1 + others)
    };
    wait_for("the process before has ended", || is_first_and(1))?;
    browser.evaluate("dispatchEvent(new Event('pagehide'))")?;
    wait_for("the first process has ended", || is_first_and(0))?;
    relay.wait_receivers("live", 0)?;
    relay.healthy()
}

#[test]
fn a_browser_comes_back_when_the_stream_does() -> Result<()> {
    let Some(paths) = scene("browser comes back", &["ffmpeg", CHROMIUM])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let mut browser = Browser::start(&paths.players)?;
    browser.open(&page())?;
    let state = "document.body?.dataset.state";
    browser.wait_for("it waits for a publisher", state, |state| state == "waiting")?;
    let sender = publishes(&paths, TEST, (H264, OPUS), By::Rtsp)?;
    browser.wait_for("it plays", SEEN, |seen| plays(seen, 25))?;
    let pictures =
        |browser: &mut Browser| Ok::<_, anyhow::Error>(browser.evaluate(SEEN)?["pictures"].as_u64());
    drop(sender);
    std::thread::sleep(Duration::from_secs(1));
    let before = pictures(&mut browser)?;
    // The publisher that follows is the same stream to its viewers.
    let _sender = publishes(&paths, TEST, (H264, OPUS), By::Rtsp)?;
    browser
        .wait_for("it plays on", SEEN, |seen| seen["pictures"].as_u64() > before.map(|count| count + 25))?;
    relay.wait_receivers("live", 1)?;
    relay.process().signal(nix::sys::signal::Signal::SIGKILL)?;
    relay.process().wait(PATIENCE)?;
    browser.wait_for("it has lost the relay", state, |state| state == "waiting")?;
    relay.restart()?;
    relay.wait_receivers("live", 0)?;
    let _again = publishes(&paths, TEST, (H264, OPUS), By::Rtsp)?;
    browser.wait_for("it plays again", state, |state| state == "playing")?;
    Ok(())
}

/// What a viewer has got, and whether it is still the one session.
const STAYED: &str = "(async () => {
    const video = document.querySelector('video');
    const { totalVideoFrames: pictures } = video.getVideoPlaybackQuality();
    return { pictures, stream: video.srcObject?.id, state: document.body.dataset.state };
})()";

#[test]
fn a_browser_plays_on_over_an_upgrade_and_a_page_that_publishes_comes_back() -> Result<()> {
    let Some(paths) = scene("browser and upgrade", &["ffmpeg", CHROMIUM])? else { return Ok(()) };
    let streams = "[streams.page]\nsource = \"push\"\n";
    let mut relay = Relay::start(&paths.relay, &format!("{}{streams}", configuration()))?;
    let _sender = publishes(&paths, TEST, (H264, OPUS), By::Rtsp)?;
    relay.wait_up("live")?;
    let mut viewer = Browser::start(&paths.players)?;
    viewer.open(&page())?;
    let before =
        viewer.wait_for("it plays", SEEN, |seen| plays(seen, 50)).and_then(|_| viewer.evaluate(STAYED))?;
    let mut publisher = at_publishing_page(&paths, "page")?;
    publisher.evaluate(PRESSES)?;
    relay.wait_up("page")?;
    for _ in 0..2 {
        let upgrade = relay.upgrade()?;
        ensure!(matches!(upgrade, Upgrade::Done { .. }), "{upgrade:?}");
        let pictures = viewer.evaluate(STAYED)?["pictures"].as_u64();
        let after = viewer.wait_for("it plays on", STAYED, |seen| {
            seen["pictures"].as_u64() > pictures.map(|pictures| pictures + 75)
        })?;
        ensure!(after["stream"] == before["stream"] && after["state"] == "playing", "{before} {after}");
        relay.wait_up("page")?;
    }
    relay.wait_receivers("live", 1)?;
    publisher.wait_for("it publishes again", SHOWN, is("publishing"))?;
    // It leaves by the name that its session had before.
    viewer.evaluate("dispatchEvent(new Event('pagehide'))")?;
    relay.wait_receivers("live", 0)?;
    relay.healthy()
}
