//! One round: six videos and bulk data through the relay and a bottleneck behind it, captured on both sides.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use outflow_labs::net::{Namespace, PLAYER, Paths, RELAY_IN};
use outflow_labs::process::{Program, Running};
use outflow_labs::programs::ffmpeg;
use outflow_labs::relay::{PATIENCE, Relay, listen};
use outflow_labs::scene::wait_for;
use outflow_link::Policy;

use crate::video::{FPS, GOP, HEADERS, PACKET_BYTES, STREAMS, Video};

/// What the bottleneck carries, and what is offered to it.
pub(crate) const RATE_BPS: u64 = 5_000_000;
pub(crate) const OFFERED_BPS: u64 = RATE_BPS * 120 / 100;
/// What may wait for it at all: 200 ms. Each flow has its part in a buffer that it is alone in.
const BUFFER_BYTES: usize = RATE_BPS as usize / 8 / 5;
pub(crate) const BUFFER_PER_FLOW: usize = BUFFER_BYTES / (STREAMS + 1);
/// Datagrams of the bulk data.
const BULK_BYTES: usize = 1200;
/// What tbf counts besides: the header of Ethernet.
const ETHERNET: usize = 14;
/// What tbf may let go at once: a packet. More would be a burst that the other ways out do not have.
const BURST: usize = 1600;
/// Streams come to these ports of the relay, one behind the other, and then the data.
const PORT: u16 = 5000;
/// They go to ports that are higher by so much.
pub(crate) const HIGHER: u16 = 1000;

/// What is between the relay and its receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The kernel's token bucket: a queue of packets behind a relay that sends at once.
    Tbf,
    /// A link of the relay.
    Link(Policy),
}

impl Variant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Variant::Tbf => "tbf",
            Variant::Link(policy) => policy.as_str(),
        }
    }

    /// The policy that does the same; of the kernel's queue, that of one queue for all.
    pub(crate) fn policy(self) -> Policy {
        match self {
            Variant::Tbf => Policy::Shb,
            Variant::Link(policy) => policy,
        }
    }
}

/// Captures of a round: what came to the relay, and what to the receivers.
pub(crate) struct Recording {
    pub(crate) came: PathBuf,
    pub(crate) arrived: PathBuf,
}

/// The port of a stream at the relay; the last one is the data's.
pub(crate) fn port(stream: usize) -> u16 {
    PORT + 2 * stream as u16
}

/// A description of the videos that come to these ports. Parameter sets come with them.
pub(crate) fn description(ports: impl Iterator<Item = u16>) -> String {
    let session = format!("v=0\r\no=- 0 0 IN IP4 {RELAY_IN}\r\ns=-\r\nc=IN IP4 {RELAY_IN}\r\nt=0 0\r\n");
    let media = ports.map(|port| {
        format!("m=video {port} RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\n")
    });
    session + &media.collect::<String>()
}

fn configuration(variant: Variant, folder: &Path) -> Result<String> {
    let mut text = listen();
    if let Variant::Link(policy) = variant {
        text += &format!(
            "[defaults]\nlink = \"uplink\"\n[link.uplink]\nrate = \"{RATE_BPS} bit/s\"\n\
             buffer_per_flow = \"{BUFFER_PER_FLOW} B\"\npolicy = \"{}\"\n",
            policy.as_str()
        );
    }
    for stream in 0..STREAMS {
        let (from, file) = (port(stream), folder.join(format!("{stream}.sdp")));
        std::fs::write(&file, description([from].into_iter()))?;
        text += &format!(
            "[streams.video{stream}]\nsource = \"rtp://0.0.0.0:{from}\"\nsdp = \"{}\"\n\
             [[sinks]]\nstream = \"video{stream}\"\nto = \"rtp://{PLAYER}:{}\"\n",
            file.display(),
            from + HIGHER
        );
    }
    let data = port(STREAMS);
    Ok(text
        + &format!(
            "[streams.data]\nsource = \"udp://0.0.0.0:{data}?format=data\"\n\
             [[sinks]]\nstream = \"data\"\nto = \"udp://{PLAYER}:{}\"\n",
            data + HIGHER
        ))
}

/// Sends all for so long.
pub(crate) fn record(
    paths: &Paths,
    videos: &[Video],
    variant: Variant,
    (folder, lasts): (&Path, Duration),
) -> Result<Recording> {
    let _bucket = (variant == Variant::Tbf).then(|| Bucket::new(&paths.relay)).transpose()?;
    let text = configuration(variant, folder)?;
    let mut relay = Relay::start_as(&paths.relay, &text, Program::preferred)?;
    // Nothing is read, but the sockets exist: else the relay would be told that they do not.
    let receivers =
        (0..=STREAMS).map(|stream| paths.players.run(|| UdpSocket::bind((PLAYER, port(stream) + HIGHER))));
    let _receivers = receivers.collect::<Result<Vec<_>, _>>()?;
    let came = Capturing::start(&paths.relay, "in0", folder, 0)?;
    let arrived = Capturing::start(&paths.players, "eth0", folder, HIGHER)?;
    send(paths, videos, lasts)?;
    // What waits takes a fifth of a second.
    std::thread::sleep(Duration::from_secs(1));
    let recording = Recording { came: came.stop()?, arrived: arrived.stop()? };
    relay.healthy()?;
    Ok(recording)
}

/// Sends videos and data for so long.
fn send(paths: &Paths, videos: &[Video], lasts: Duration) -> Result<()> {
    let until = Instant::now() + lasts;
    let (socket, over) = (paths.source.run(|| UdpSocket::bind(("0.0.0.0", 0)))?, AtomicBool::new(false));
    socket.connect((RELAY_IN, port(STREAMS)))?;
    let bits: usize = videos.iter().map(|video| 8 * video.bytes).sum();
    let video_bps = bits as f64 / videos.first().map_or(1.0, Video::seconds);
    let gap = Duration::from_secs_f64(8.0 * (BULK_BYTES + HEADERS) as f64 / (OFFERED_BPS as f64 - video_bps));
    std::thread::scope(|scope| {
        scope.spawn(|| bulk(&socket, gap, &over));
        let mut cameras = Vec::new();
        let sent = videos.iter().enumerate().try_for_each(|(stream, video)| {
            cameras.push(camera(&paths.source, video, port(stream))?);
            // Their key frames do not all come at once.
            std::thread::sleep(Duration::from_secs_f64(GOP as f64 / FPS as f64 / STREAMS as f64));
            anyhow::Ok(())
        });
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        over.store(true, Ordering::Relaxed);
        for camera in &mut cameras {
            ensure!(camera.alive(), "a source has ended: {}", camera.account());
        }
        sent
    })
}

fn camera(source: &Namespace, video: &Video, port: u16) -> Result<Running> {
    let to = format!("-f rtp rtp://{RELAY_IN}:{port}?pkt_size={PACKET_BYTES}");
    ffmpeg(&format!("-re -i {} -c copy {to}", video.file.display())).within(source).preferred().start()
}

/// Sends numbered datagrams, at times that are no pattern, and the same ones in every round.
fn bulk(socket: &UdpSocket, gap: Duration, over: &AtomicBool) {
    let (began, mut due, mut state) = (Instant::now(), Duration::ZERO, 0x2545_f491_4f6c_dd1d_u64);
    let mut datagram = [0x55; BULK_BYTES];
    for number in 0_u32.. {
        std::thread::sleep((began + due).saturating_duration_since(Instant::now()));
        if over.load(Ordering::Relaxed) {
            return;
        }
        datagram[..4].copy_from_slice(&number.to_be_bytes());
        // What cannot be sent was not sent: the captures tell.
        let _ = socket.send(&datagram);
        // Marsaglia's xorshift; up to twice the gap.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        due += gap.mul_f64((state >> 11) as f64 / (1_u64 << 52) as f64);
    }
}

/// The kernel's token bucket in front of the receivers. It counts the header of Ethernet, so its rate and room are
/// larger by that of packets as large as most are.
struct Bucket<'p>(&'p Namespace);

impl<'p> Bucket<'p> {
    fn new(relay: &'p Namespace) -> Result<Self> {
        let counted = |amount: u64| {
            amount * (PACKET_BYTES + HEADERS + ETHERNET) as u64 / (PACKET_BYTES + HEADERS) as u64
        };
        let (rate, limit) = (counted(RATE_BPS), counted(BUFFER_BYTES as u64));
        let line = format!("tc qdisc replace dev out0 root tbf rate {rate}bit burst {BURST} limit {limit}");
        Program::words(&line).within(relay).finish(PATIENCE)?;
        Ok(Bucket(relay))
    }
}

impl Drop for Bucket<'_> {
    fn drop(&mut self) {
        let line = "tc qdisc delete dev out0 root";
        if let Err(error) = Program::words(line).within(self.0).finish(PATIENCE) {
            outflow_labs::figures::progress(format!("the bucket stays: {error:#}"));
        }
    }
}

/// tcpdump, at work.
struct Capturing {
    program: Running,
    file: PathBuf,
}

impl Capturing {
    /// Captures what comes to the streams' ports, which are higher by so much.
    fn start(namespace: &Namespace, device: &str, folder: &Path, higher: u16) -> Result<Self> {
        let file = folder.join(format!("{device}.pcap"));
        let ports = (0..=STREAMS).map(|stream| format!("dst port {}", port(stream) + higher));
        let filter = ports.collect::<Vec<_>>().join(" or ");
        let line = format!("tcpdump -n -i {device} -B 16384 -s 0 -Z root --time-stamp-precision=nano");
        let program = Program::words(&line).args(["-w".to_owned(), file.display().to_string()]);
        let program = program.arg(format!("udp and ({filter})")).within(namespace).start()?;
        wait_for("tcpdump listens", || Ok(program.stderr().contains("listening on")))?;
        Ok(Capturing { program, file })
    }

    fn stop(mut self) -> Result<PathBuf> {
        self.program.signal(Signal::SIGINT)?;
        self.program.wait(PATIENCE)?;
        let said = self.program.stderr();
        let line = said.lines().find(|line| line.ends_with("dropped by kernel")).context("tcpdump counts")?;
        ensure!(line.starts_with("0 "), "tcpdump could not keep up: {line}");
        Ok(self.file)
    }
}
