//! Two streams that say in each packet what it is: wavelet video of 33 levels, and AV1 of three spatial and three
//! temporal layers.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use outflow_labs::programs::{clip, missing};
use outflow_labs::svc::{self, Coding, Encoded, Plan};
use outflow_labs::wavelet::{coded, pictures};
use outflow_media::{Format, Time, Track};
use outflow_packet::gmc::{Mark, Marks};
use outflow_packet::{Packet, Parsed, Parser};
use outflow_routing::membership::Family;
use outflow_rtp::RtpHeader;
use outflow_wavelet::rtp::{CLOCK_RATE, PACKET_BYTES, Packetizer, track};

use super::tree::{PORT, Tree, sender};

/// Streams.
pub(crate) const STREAMS: usize = 2;
pub(crate) const WAVELET: usize = 0;
pub(crate) const AV1: usize = 1;
/// Their groups.
pub(crate) const fn groups(family: Family) -> [IpAddr; STREAMS] {
    match family {
        Family::V4 => [IpAddr::V4(Ipv4Addr::new(239, 7, 0, 1)), IpAddr::V4(Ipv4Addr::new(239, 7, 0, 2))],
        Family::V6 => [
            IpAddr::V6(Ipv6Addr::new(0xff1e, 0, 0, 0, 0, 0, 7, 1)),
            IpAddr::V6(Ipv6Addr::new(0xff1e, 0, 0, 0, 0, 0, 7, 2)),
        ],
    }
}

/// Levels of each.
pub(crate) const LEVELS: [u8; STREAMS] = [33, 5];
/// Frames of wavelet video a second, and how many there are before they come again.
const WAVELET_FPS: u32 = 15;
const WAVELET_FRAMES: usize = 15;
/// A frame's packets are spread over this share of the time until the next one.
const SPREAD: f64 = 0.6;

/// What a packet is known by on every link, whatever its number there: its timestamp and payload.
pub(crate) fn identity(packet: &[u8]) -> Result<u64> {
    let read = RtpHeader::new_checked(packet)?;
    let mut hasher = DefaultHasher::new();
    (read.timestamp(), read.payload()).hash(&mut hasher);
    Ok(hasher.finish())
}

/// A packet that was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) stream: usize,
    pub(crate) identity: u64,
    pub(crate) layer: u8,
    pub(crate) bytes: usize,
    /// When the first packet of its frame was sent.
    pub(crate) frame_at: Instant,
    pub(crate) timestamp: u32,
}

/// The packets of each frame of a stream, and the time from one to the next.
struct Stream {
    frames: Vec<Vec<Vec<u8>>>,
    interval: Duration,
}

/// Both streams, for a number of seconds, and the second one as it was coded.
pub(crate) struct Video {
    streams: [Stream; STREAMS],
    pub(crate) av1: Encoded,
}

/// Writes marks into all packets.
fn marked(frames: Vec<Vec<Vec<u8>>>, track: Track) -> Result<Vec<Vec<Vec<u8>>>> {
    let format = Format::Rtp(vec![track]);
    let (mut parser, mut marks) = (Parser::new(&format), Marks::new(&format));
    let mut mark = |packet: Vec<u8>| {
        let tag = parser.tag(0, &packet).map_err(|why| anyhow::anyhow!("{why:?}"))?;
        let packet = Packet { bytes: packet.into(), tag, arrived: Time::ZERO };
        let marked = marks.mark(Parsed { packet, rtp_header: [0; 12], preamble: None, found: None });
        let packet = marked.map(|one| one.packet.bytes.to_vec()).next().context("one")?;
        Mark::read(&packet).context("a packet has no mark")?;
        Ok(packet)
    };
    frames.into_iter().map(|frame| frame.into_iter().map(&mut mark).collect()).collect()
}

impl Video {
    pub(crate) fn new(seconds: u32) -> Result<Self> {
        if let Some(why) = missing("ffmpeg").or_else(|| svc::lacking(Coding::Av1)) {
            bail!(why);
        }
        let scaled = format!("-i {} -vf scale=352:288", clip().display());
        let frames = coded(&pictures(&scaled, WAVELET_FRAMES)?)?;
        // Shorter by the mark, as `outflow wavelet send` makes them: longer ones would be fragments by IPv6.
        let mut packetizer = Packetizer::new(0x0f10_0f33, 0, PACKET_BYTES - Mark::BYTES);
        let mut wavelet = Vec::new();
        for (number, frame) in frames.iter().cycle().take((seconds * WAVELET_FPS) as usize).enumerate() {
            let mut packets = Vec::new();
            let timestamp = number as u32 * (CLOCK_RATE / WAVELET_FPS);
            packetizer.packets(frame, timestamp, |packet| packets.push(packet.to_vec()))?;
            wavelet.push(packets);
        }
        let av1 = svc::encode(Coding::Av1, Plan::new(3, 3, (seconds * svc::RATE) as usize))?;
        let described = outflow_rtp::sdp::parse(svc::description(&av1, PORT).as_bytes())?.format();
        let Format::Rtp(mut tracks) = described else { bail!("no tracks") };
        let streams = [
            Stream { frames: marked(wavelet, track(None))?, interval: Duration::from_secs(1) / WAVELET_FPS },
            Stream {
                frames: marked(svc::packets(&av1), tracks.remove(0))?,
                interval: Duration::from_secs(1) / svc::RATE,
            },
        ];
        Ok(Video { streams, av1 })
    }

    /// The packets of both in the order in which they are due, and when.
    fn schedule(&self) -> Vec<(Duration, usize, Vec<u8>)> {
        let mut all = Vec::new();
        for (stream, Stream { frames, interval }) in self.streams.iter().enumerate() {
            for (frame, number) in frames.iter().zip(0_u32..) {
                let step = interval.mul_f64(SPREAD / frame.len() as f64);
                let due = |at: u32| *interval * number + step * at;
                all.extend(frame.iter().zip(0..).map(|(packet, at)| (due(at), stream, packet.clone())));
            }
        }
        all.sort_by_key(|(due, ..)| *due);
        all
    }
}

/// A source that sends until it is stopped, or has sent all.
pub(crate) struct Source {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Sent>>>,
}

impl Source {
    pub(crate) fn start(tree: &Tree, video: &Video) -> Result<Self> {
        let own = tree.source_address();
        let socket = tree.source.run(|| sender(own, "eth0"))?;
        let (stop, schedule) = (Arc::new(AtomicBool::new(false)), video.schedule());
        let (stopped, groups) = (Arc::clone(&stop), groups(tree.family));
        let thread = std::thread::spawn(move || send((&socket, groups), &schedule, &stopped));
        Ok(Source { stop, thread })
    }

    /// What was sent.
    pub(crate) fn stop(self) -> Result<Vec<Sent>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the source panicked"))?
    }
}

fn send(
    (socket, groups): (&UdpSocket, [IpAddr; STREAMS]),
    schedule: &[(Duration, usize, Vec<u8>)],
    stopped: &AtomicBool,
) -> Result<Vec<Sent>> {
    let (start, mut sent) = (Instant::now(), Vec::with_capacity(schedule.len()));
    let mut frames = [None::<(u32, Instant)>; STREAMS];
    for (due, stream, packet) in schedule {
        std::thread::sleep((start + *due).saturating_duration_since(Instant::now()));
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let (timestamp, at) = (RtpHeader::new_checked(packet)?.timestamp(), Instant::now());
        let (of, frame_at) =
            *frames[*stream].filter(|(of, _)| *of == timestamp).get_or_insert((timestamp, at));
        frames[*stream] = Some((of, frame_at));
        socket.send_to(packet, (groups[*stream], PORT))?;
        let (layer, bytes) = (Mark::read(packet).context("a mark")?.layer, packet.len());
        let identity = identity(packet)?;
        sent.push(Sent { at, stream: *stream, identity, layer, bytes, frame_at, timestamp });
    }
    Ok(sent)
}
