//! What relays: Outflow with a stream in levels, and others with its best level.

use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use outflow_labs::bench::{SOURCE_PORT, janus, pion};
use outflow_labs::net::RELAY_IN;
use outflow_labs::process::Running;
use outflow_labs::programs::{ffmpeg, missing};
use outflow_labs::relay::{RTSP_PORT, Relay, listen};
use outflow_labs::svc::{Endless, description};

use crate::scene::{Plan, Player, Scene, watch};
use crate::score::{Moments, Shown};
use crate::video::{Layers, Level, Original, RATE, Simulcast};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contender {
    /// Outflow, of a stream whose levels are three renditions.
    Simulcast,
    /// Outflow, of AV1 in layers.
    Layers,
    /// A relay over pion.
    Pion,
    /// Janus.
    Janus,
}

/// Streams that are the levels of `cam`.
const RENDITIONS: [&str; 3] = ["high", "middle", "low"];
/// The stream that the others have.
const LIVE: &str = "live";
const CAM: &str = "cam";

/// The video as it is sent.
pub(crate) struct Sources {
    simulcast: Simulcast,
    /// Or why there are none.
    layers: Result<Layers, String>,
}

impl Sources {
    pub(crate) fn new() -> Result<Self> {
        let original = Original::new()?;
        let layers = Layers::new(&original).map_err(|why| format!("{why:#}"));
        Ok(Sources { simulcast: Simulcast::new(original)?, layers })
    }

    fn layers(&self) -> Result<&Layers> {
        self.layers.as_ref().map_err(|why| anyhow!("{why}"))
    }
}

impl Contender {
    pub(crate) const ALL: [Contender; 4] =
        [Contender::Simulcast, Contender::Layers, Contender::Pion, Contender::Janus];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Contender::Simulcast => "simulcast",
            Contender::Layers => "av1_l3t3",
            Contender::Pion => "pion",
            Contender::Janus => "janus",
        }
    }

    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Contender::Simulcast | Contender::Layers)
    }

    /// The levels of what it is sent, the best first.
    pub(crate) fn levels(self, sources: &Sources) -> Result<&[Level]> {
        match self {
            Contender::Simulcast | Contender::Pion | Contender::Janus => Ok(&sources.simulcast.levels),
            Contender::Layers => Ok(&sources.layers()?.levels),
        }
    }

    /// What a viewer of it saw.
    pub(crate) fn watched(
        self,
        scene: &Scene,
        plan: Plan,
        sources: &Sources,
    ) -> Result<(Vec<Shown>, Moments)> {
        let best = self.levels(sources)?.first().context("a level")?.width;
        match self {
            Contender::Simulcast => {
                let mut relay = Relay::start(&scene.paths.relay, &renditions())?;
                let _sender = sends_renditions(scene, &sources.simulcast)?;
                relay.wait_stream(CAM, "all", |state| state["source"]["format"] == "3 of 3 renditions")?;
                let seen = watch(scene, plan, (CAM, best), Player::Page(&relay))?;
                relay.healthy()?;
                Ok(seen)
            }
            Contender::Layers => {
                let layers = sources.layers()?;
                let folder = tempfile::tempdir()?;
                let sdp = folder.path().join("cam.sdp");
                std::fs::write(&sdp, description(&layers.encoded, SOURCE_PORT))?;
                let source = format!("rtp://0.0.0.0:{SOURCE_PORT}\"\nsdp = \"{}", sdp.display());
                let mut relay = Relay::start(&scene.paths.relay, &with_stream(CAM, &source))?;
                let _sender = Sender::start(scene, layers)?;
                relay.wait_up(CAM)?;
                let seen = watch(scene, plan, (CAM, best), Player::Page(&relay))?;
                relay.healthy()?;
                Ok(seen)
            }
            Contender::Pion => {
                let _relay = pion()?.within(&scene.paths.relay).start()?;
                let _sender = sends_best(scene, &sources.simulcast)?;
                watch(scene, plan, (LIVE, best), Player::Whep)
            }
            Contender::Janus => {
                if let Some(why) = missing("janus") {
                    bail!("{why}");
                }
                let folder = tempfile::tempdir()?;
                let _relay = janus(folder.path())?.within(&scene.paths.relay).start()?;
                let _sender = sends_best(scene, &sources.simulcast)?;
                watch(scene, plan, (LIVE, best), Player::Janus)
            }
        }
    }
}

/// A configuration with this stream, of this source.
fn with_stream(name: &str, source: &str) -> String {
    format!("{}webrtc = \"0.0.0.0:8189\"\n[streams.{name}]\nsource = \"{source}\"\n", listen())
}

fn renditions() -> String {
    let more = RENDITIONS[1..].iter().map(|name| format!("[streams.{name}]\nsource = \"push\"\n"));
    let names = RENDITIONS.map(|name| format!("\"{name}\"")).join(", ");
    let cam = format!("[streams.{CAM}]\nsource = [{names}]\n");
    with_stream(RENDITIONS[0], "push") + &more.collect::<String>() + &cam
}

/// All of them, in step.
fn sends_renditions(scene: &Scene, simulcast: &Simulcast) -> Result<Running> {
    let input = |file: &PathBuf| format!("-re -stream_loop -1 -i {} ", file.display());
    let output = |(at, name): (usize, &str)| {
        let to = format!("rtsp://{RELAY_IN}:{RTSP_PORT}/{name}");
        format!("-map {at} -c copy -f rtsp -rtsp_transport tcp -pkt_size 1200 {to} ")
    };
    let inputs: String = simulcast.files.iter().map(input).collect();
    let outputs: String = RENDITIONS.into_iter().enumerate().map(output).collect();
    ffmpeg(&(inputs + &outputs)).within(&scene.paths.source).start()
}

fn sends_best(scene: &Scene, simulcast: &Simulcast) -> Result<Running> {
    let best = simulcast.files.first().context("a level")?.display();
    let to = format!("rtp://{RELAY_IN}:{SOURCE_PORT}?pkt_size=1200");
    ffmpeg(&format!("-re -stream_loop -1 -i {best} -c copy -f rtp {to}")).within(&scene.paths.source).start()
}

/// Sends layers, each picture when it is due, until it is dropped.
struct Sender {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    fn start(scene: &Scene, layers: &Layers) -> Result<Self> {
        let socket = scene.paths.source.run(|| UdpSocket::bind("0.0.0.0:0"))?;
        socket.connect((RELAY_IN, SOURCE_PORT))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (mut pictures, stopped) = (Endless::new(&layers.encoded), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            for number in 0.. {
                let due = began + Duration::from_secs(1) / RATE * number;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                // Perhaps there is no listener yet.
                pictures.next_picture().iter().for_each(|packet| drop(socket.send(packet)));
            }
        });
        Ok(Sender { stop, thread: Some(thread) })
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}
