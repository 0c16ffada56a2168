//! One run: a source, the relay, a link that becomes narrow, and a client that adapts or does not.

use std::net::UdpSocket;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use outflow_adapt::{Adaptation, Policy};
use outflow_client::{Adapter, Change, Clock, Lower, Options, Received, subscribe};
use outflow_labs::net::{Paths, RELAY_IN, RELAY_OUT};
use outflow_labs::path::{Path, THERE};
use outflow_labs::relay::{RTSP_PORT, Relay, listen};
use outflow_media::Time;
use outflow_sim::network::World;
use outflow_wavelet::Codestream;
use outflow_wavelet::rtp::{Assembled, Assembler, description};

use crate::video::{LEAD, RATE, TICKS, Video};

const PORT: u16 = 5004;
/// Packets of a frame are spread over this share of the time until the next one, as `wavelet send` does.
const SPREAD: f64 = 0.8;
/// 100 Mbit/s, and the limit of the paper. A buffer that holds a second at that.
const WIDE: &str = "100 Mbit/s, buffer 256 kB";
const NARROW: &str = "100 kbit/s, buffer 12500 B";
/// What the limit is in bytes a second.
pub(crate) const NARROW_RATE: f64 = 12_500.0;

/// When what happens: in frames, since the first that counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) narrow_from: usize,
    pub(crate) narrow_until: usize,
    pub(crate) end: usize,
}

/// A frame at the client.
pub(crate) struct Shown {
    /// Counted from the first that counts.
    pub(crate) number: usize,
    pub(crate) at: Time,
    pub(crate) codestream: Codestream,
}

/// What came of it. Times are of the client's clock.
pub(crate) struct Run {
    pub(crate) shown: Vec<Shown>,
    pub(crate) changes: Vec<Change>,
    pub(crate) narrow_at: Time,
    pub(crate) wide_at: Time,
    /// When the first frame that counts was sent.
    pub(crate) began: Time,
}

/// How the client behaves: the level that it asks for first, and by what it changes it.
pub(crate) struct Client {
    pub(crate) level: u8,
    pub(crate) policy: Option<Box<dyn Policy>>,
}

/// What source and client tell each other of time.
#[derive(Default)]
struct Moments {
    began: Option<Time>,
    narrow: Option<Time>,
    wide: Option<Time>,
    over: bool,
}

/// Source, relay and client, with the link to the client.
pub(crate) struct Scene {
    /// The link goes before the places that it joins.
    path: Path<World>,
    paths: Paths,
}

impl Scene {
    pub(crate) fn new() -> Result<Self> {
        let paths = Paths::new()?;
        Ok(Self { path: paths.to_players(WIDE, "0 ms")?, paths })
    }
}

pub(crate) fn run(scene: &Scene, video: &Video, plan: Plan, client: Client) -> Result<Run> {
    let Scene { path, paths } = scene;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("video.sdp");
    let shape_of = video.pictures.first().map(outflow_wavelet::Picture::shape);
    std::fs::write(&file, description(shape_of, RELAY_IN.into(), &[PORT]))?;
    let source =
        format!("[streams.video]\nsource = \"rtp://0.0.0.0:{PORT}\"\nsdp = \"{}\"\n", file.display());
    path.change(THERE, WIDE)?;
    let relay = Relay::start(&paths.relay, &(listen() + &source))?;
    let (clock, moments) = (Clock::start(), Mutex::new(Moments::default()));
    let received = std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(scene, video, plan, clock, &moments));
        let received =
            relay.wait_up("video").and_then(|_| paths.players.run(|| receive(client, clock, &moments)));
        sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        received
    });
    drop(relay);
    let (shown, adapter) = received?;
    let moments = moments.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let missing = "the source did not get so far";
    Ok(Run {
        shown,
        changes: adapter.changes().to_vec(),
        narrow_at: moments.narrow.context(missing)?,
        wide_at: moments.wide.context(missing)?,
        began: moments.began.context(missing)?,
    })
}

/// Sends all frames in real time, and changes the link in between.
fn send(scene: &Scene, video: &Video, plan: Plan, clock: Clock, moments: &Mutex<Moments>) -> Result<()> {
    let Scene { path, paths } = scene;
    let socket = paths.source.run(|| UdpSocket::bind("0.0.0.0:0"))?;
    socket.connect((RELAY_IN, PORT))?;
    let note = |set: &dyn Fn(&mut Moments)| {
        set(&mut moments.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    };
    let interval = Duration::from_secs(1) / RATE as u32;
    let began = Instant::now();
    for (number, packets) in video.packets.iter().enumerate() {
        let due = began + interval * number as u32;
        if number == LEAD {
            note(&|moments| moments.began = Some(clock.now()));
        } else if number == LEAD + plan.narrow_from {
            path.change(THERE, NARROW)?;
            note(&|moments| moments.narrow = Some(clock.now()));
        } else if number == LEAD + plan.narrow_until {
            path.change(THERE, WIDE)?;
            note(&|moments| moments.wide = Some(clock.now()));
        }
        let step = interval.mul_f64(SPREAD / packets.len() as f64);
        for (place, packet) in packets.iter().enumerate() {
            std::thread::sleep((due + step * place as u32).saturating_duration_since(Instant::now()));
            // Perhaps there is no listener yet.
            let _ = socket.send(packet);
        }
    }
    std::thread::sleep(Duration::from_secs(1));
    note(&|moments| moments.over = true);
    Ok(())
}

/// Receives until the source is done, and adapts.
fn receive(client: Client, clock: Clock, moments: &Mutex<Moments>) -> Result<(Vec<Shown>, Adapter)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let url = format!("rtsp://{RELAY_OUT}:{RTSP_PORT}/video");
        let options = Options { transport: Lower::Udp, clock, ..Options::default() };
        let mut subscription = subscribe(&url, options).await?;
        let adapts = client.policy.is_some();
        let policy = client.policy.unwrap_or_else(|| Box::new(outflow_adapt::Gradient::default()));
        let adaptation = Adaptation::new(policy, client.level);
        let mut adapter = Adapter::new(subscription.format(), adaptation);
        subscription.ask_level(client.level)?;
        let (mut assembler, mut shown) = (Assembler::default(), Vec::new());
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        while !moments.lock().is_ok_and(|moments| moments.over) {
            tokio::select! {
                received = subscription.recv() => {
                    let received = received?;
                    adapter.received(&received);
                    if let Received::Packet(packet) = received {
                        let at = packet.arrived;
                        assembler.handle(packet.bytes, |frame| shown.extend(show(frame, at)));
                    }
                }
                _ = tick.tick() => {}
            }
            if adapts && let Some(level) = adapter.decide(subscription.now()) {
                subscription.ask_level(level)?;
            }
        }
        assembler.flush(|frame| shown.extend(show(frame, subscription.now())));
        subscription.close().await;
        Ok((shown, adapter))
    })
}

/// A frame that can be shown.
fn show(frame: Assembled, at: Time) -> Option<Shown> {
    let number = (frame.timestamp / TICKS) as usize;
    Some(Shown { number: number.checked_sub(LEAD)?, at, codestream: frame.codestream? })
}
