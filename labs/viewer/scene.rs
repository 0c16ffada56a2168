//! One run: a source, what relays, a link that becomes narrow, and Chromium.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use outflow_labs::bench::JANUS_PORT;
use outflow_labs::browser::Browser;
use outflow_labs::code::watches;
use outflow_labs::figures::progress;
use outflow_labs::net::{Paths, RELAY_OUT};
use outflow_labs::path::{Path, THERE};
use outflow_labs::relay::{HTTP_PORT, Relay};
use outflow_sim::network::World;
use serde_json::Value;

use crate::score::{Moments, Shown};

/// 5 Mbit/s and 500 kbit/s. The buffers hold 200 ms.
const WIDE: &str = "20 ms, 5 Mbit/s, buffer 125000 B";
const NARROW: &str = "20 ms, 500 kbit/s, buffer 12500 B";
const BACK: &str = "20 ms";
/// What the narrow link carries, in bits a second.
pub(crate) const NARROW_BPS: f64 = 5e5;
/// The best level is shown for so long before it begins.
const LEAD: Duration = Duration::from_secs(3);
/// How often the relay is asked how the viewer does.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// How long the link is wide, narrow and wide again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) before: Duration,
    pub(crate) narrow: Duration,
    pub(crate) after: Duration,
}

/// Where source, relay and viewer are.
pub(crate) struct Scene {
    /// The link goes before the places that it joins.
    path: Path<World>,
    pub(crate) paths: Paths,
}

impl Scene {
    pub(crate) fn new() -> Result<Self> {
        let paths = Paths::new()?;
        Ok(Scene { path: paths.to_players(WIDE, BACK)?, paths })
    }
}

/// What a page needs that does not play by itself: a connection, of which the picture is shown.
const SHOWS: &str = "const pc = window.pc = new RTCPeerConnection();
    const video = Object.assign(document.createElement('video'), { muted: true, autoplay: true });
    document.body.append(video);
    pc.ontrack = (event) => { video.srcObject = new MediaStream([event.track]); };
";

/// How a viewer plays.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Player<'r> {
    /// By the page of this relay, which is asked how its viewer does.
    Page(&'r Relay<'r>),
    /// By WHEP.
    Whep,
    /// By the streaming plugin of Janus, which offers.
    Janus,
}

impl Player<'_> {
    /// Where a page is from which it plays.
    fn at(self, stream: &str) -> (u16, String) {
        match self {
            Player::Page(_) | Player::Whep => (HTTP_PORT, format!("/play/{stream}")),
            Player::Janus => (JANUS_PORT, "/janus/info".to_owned()),
        }
    }

    /// What the relay says of its viewer, for an error.
    fn told(self, stream: &str) -> String {
        match self {
            Player::Page(relay) => format!("{:?}", relay.get(&format!("/api/v1/receivers?stream={stream}"))),
            Player::Whep | Player::Janus => "it does not play".to_owned(),
        }
    }

    /// What has to be done there.
    fn plays(self) -> Option<&'static str> {
        match self {
            Player::Page(_) => None,
            Player::Whep => Some(BY_WHEP),
            Player::Janus => Some(BY_JANUS),
        }
    }
}

const BY_WHEP: &str = "
    pc.addTransceiver('video', { direction: 'recvonly' });
    await pc.setLocalDescription();
    await new Promise((done) => {
        const look = () => { if (pc.iceGatheringState === 'complete') done(); };
        pc.onicegatheringstatechange = look;
        look();
    });
    const headers = { 'Content-Type': 'application/sdp' };
    const answer = await fetch(location.pathname, { method: 'POST', headers, body: pc.localDescription.sdp });
    if (answer.status !== 201) throw new Error(await answer.text());
    await pc.setRemoteDescription({ type: 'answer', sdp: await answer.text() });";

const BY_JANUS: &str = "
    const ask = async (path, options) => (await fetch(`/janus${path}`, options)).json();
    const say = (path, what) =>
        ask(path, { method: 'POST', body: JSON.stringify({ ...what, transaction: 'lab' }) });
    const session = `/${(await say('', { janus: 'create' })).data.id}`;
    const attach = { janus: 'attach', plugin: 'janus.plugin.streaming' };
    const handle = `${session}/${(await say(session, attach)).data.id}`;
    await say(handle, { janus: 'message', body: { request: 'watch', id: 1 } });
    let jsep;
    while (!jsep) jsep = [await ask(`${session}?maxev=1`)].flat()[0].jsep;
    await pc.setRemoteDescription(jsep);
    await pc.setLocalDescription();
    const { type, sdp } = pc.localDescription;
    await say(handle, { janus: 'message', body: { request: 'start' }, jsep: { type, sdp } });";

/// How wide the picture is.
const WIDTH: &str = "document.querySelector('video')?.videoWidth ?? 0";

fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0
}

/// A viewer of `stream`, of which pictures of this width are the best; what it saw.
pub(crate) fn watch(
    scene: &Scene,
    plan: Plan,
    (stream, best): (&str, u64),
    player: Player<'_>,
) -> Result<(Vec<Shown>, Moments)> {
    let Scene { path, paths } = scene;
    path.change(THERE, WIDE)?;
    let mut browser = Browser::start(&paths.players)?;
    let (port, page) = player.at(stream);
    browser.open(&format!("http://{RELAY_OUT}:{port}{page}"))?;
    if let Some(plays) = player.plays() {
        // Before, there is an empty one, which is as complete.
        let state = "location.pathname + ' ' + document.readyState";
        browser.wait_for("the page is there", state, |state| state == &format!("{page} complete"))?;
        browser.evaluate(&format!("(async () => {{ {SHOWS}{plays} return true; }})()"))?;
    }
    let shows = browser.wait_for("the best level", WIDTH, |width| width.as_u64() == Some(best));
    shows.with_context(|| player.told(stream))?;
    browser.evaluate(&watches())?;
    std::thread::sleep(LEAD);
    let relay = match player {
        Player::Page(relay) => Some(relay),
        Player::Whep | Player::Janus => None,
    };
    let mut asks = Asks { relay, stream, began: Instant::now(), last: None };
    let began_ms = now_ms();
    asks.wait(plan.before);
    path.change(THERE, NARROW)?;
    let narrow_ms = now_ms();
    progress(format!("{:6.2} s: 500 kbit/s", (narrow_ms - began_ms) / 1000.0));
    asks.wait(plan.narrow);
    path.change(THERE, WIDE)?;
    let wide_ms = now_ms();
    progress(format!("{:6.2} s: 5 Mbit/s", (wide_ms - began_ms) / 1000.0));
    asks.wait(plan.after);
    let ended_ms = now_ms();
    // One more is shown, or what stands there has no end.
    std::thread::sleep(Duration::from_millis(500));
    let shown = browser.evaluate("shown")?;
    let shown = shown.as_array().into_iter().flatten().map(read).collect::<Option<Vec<_>>>();
    Ok((
        shown.context("the browser says something else")?,
        Moments { began_ms, narrow_ms, wide_ms, ended_ms },
    ))
}

fn read(one: &Value) -> Option<Shown> {
    let number = one[1].as_u64().and_then(|number| u16::try_from(number).ok());
    Some(Shown { at_ms: one[0].as_f64()?, number, width: one[2].as_u64()?, count: one[3].as_u64()? })
}

/// Waits, and tells meanwhile what the relay says of its viewer.
struct Asks<'r> {
    relay: Option<&'r Relay<'r>>,
    stream: &'r str,
    began: Instant,
    last: Option<Value>,
}

impl Asks<'_> {
    fn wait(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            std::thread::sleep(left.min(ASK_EVERY));
            let Some(relay) = self.relay else { continue };
            // It is told of, and nothing depends on it.
            let Ok(state) = relay.json(&format!("/api/v1/receivers?stream={}", self.stream)) else {
                continue;
            };
            let level = state[0]["level"].clone();
            if self.last.as_ref() != Some(&level) {
                let at = self.began.elapsed().as_secs_f64();
                progress(format!("{at:6.2} s: level {level}: {}", state[0]));
                self.last = Some(level);
            }
        }
    }
}
