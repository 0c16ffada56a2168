//! What became of a round: what arrived, how late, and what it looks like; and what the simulator said.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use outflow_labs::figures::quantile;
use outflow_media::Time;
use outflow_rtp::RtpHeader;
use outflow_sim::capture::{Capture, CapturedFlow, FlowKind};
use outflow_sim::network::{Counting, Network, account, play};

use crate::decode::{Unit, decode, each, ivf};
use crate::pcap::{Datagram, read};
use crate::scene::{BUFFER_PER_FLOW, HIGHER, RATE_BPS, Recording, Variant, description, port};
use crate::video::{FPS, HEADERS, STREAMS, Video};

/// Between the timestamps of two pictures.
const TICKS: u32 = 90_000 / FPS as u32;
/// So much of the beginning does not count: until all send, and buffers are full.
pub(crate) const WARM_UP_S: u64 = 4;
const COUNTS_FROM: Time = Time::from_millis(WARM_UP_S * 1000);

/// What is found of a round. Shares are from 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    pub(crate) seen: Seen,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) offered_bps: f64,
    /// What got through.
    pub(crate) carried_bps: f64,
    /// Of the videos' bytes, those that can be decoded; the mean of the videos.
    pub(crate) goodput: f64,
    /// The same of the data.
    pub(crate) data: f64,
    pub(crate) predicted: Predicted,
}

/// What the simulator says of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Predicted {
    pub(crate) goodput: f64,
    pub(crate) data: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// Pictures that were sent, and what was seen of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) sent: usize,
    /// ffmpeg decoded them without an error.
    pub(crate) ok: usize,
    /// They are as if nothing had been lost.
    pub(crate) exact: usize,
    pub(crate) sum_db: f64,
    /// The same if nothing had been lost.
    pub(crate) sum_clean_db: f64,
}

/// A packet that came to the relay.
struct Sent {
    at: u64,
    counts: bool,
    /// The same packet at the receiver.
    arrived: Option<Datagram>,
    timestamp: u32,
}

/// Judges a round. The folder is for what is needed meanwhile.
pub(crate) fn judge(
    recording: &Recording,
    videos: &[Video],
    variant: Variant,
    folder: &Path,
) -> Result<Found> {
    let text = description((0..STREAMS).map(port));
    let capture = Capture::open_with(&recording.came, Some(&text))?;
    ensure!(capture.skipped.is_empty(), "in the capture is something else: {:?}", capture.skipped);
    let sdp = folder.join("all.sdp");
    std::fs::write(&sdp, &text)?;
    let mut found = Found { predicted: predict(recording, &sdp, variant, &capture)?, ..Found::default() };
    let flows = pair(recording)?;
    let mut delays = Vec::new();
    let (mut bytes, mut last) = (0, Time::ZERO);
    for flow in &capture.flows {
        let sent = flows.get(&port_of(flow)?).context("it was captured")?;
        ensure!(sent.len() == flow.packets.len(), "the capture is read in two ways");
        let packets = flow.packets.iter().copied().zip(sent.iter().map(|sent| sent.arrived.is_some()));
        let of_media = packets.filter(|(packet, _)| flow.kind == FlowKind::Data || packet.tag.track == 0);
        let goodput = account(Counting::Frames, COUNTS_FROM, of_media).goodput();
        for packet in flow.packets.iter().filter(|packet| packet.at >= COUNTS_FROM) {
            bytes += packet.bytes;
            last = last.max(packet.at);
        }
        match flow.kind {
            FlowKind::Data => found.data = goodput,
            _ => {
                found.goodput += goodput / STREAMS as f64;
                delays.extend(sent.iter().filter(|sent| sent.counts).filter_map(Sent::delay_ms));
            }
        }
    }
    found.offered_bps = 8.0 * bytes as f64 / last.since(COUNTS_FROM).as_secs_f64();
    found.carried_bps = carried_bps(&flows);
    (found.p50_ms, found.p99_ms) = (quantile(&delays, 0.5), quantile(&delays, 0.99));
    let see_each = |stream: usize, video: &Video| {
        let sent = flows.get(&port(stream)).context("every video was sent")?;
        see(sent, video, &folder.join(format!("arrived{stream}.ivf")))
    };
    each(videos, see_each)?.iter().for_each(|seen| found.seen.add(seen));
    Ok(found)
}

/// What arrived while it counted, by what counts on a link.
fn carried_bps(flows: &BTreeMap<u16, Vec<Sent>>) -> f64 {
    let all = || flows.values().flatten();
    let from = all().filter(|sent| sent.counts).map(|sent| sent.at).min().unwrap_or(0);
    let until = all().map(|sent| sent.at).max().unwrap_or(0);
    let arrived = all().filter_map(|sent| sent.arrived.as_ref());
    let counted = arrived.filter(|arrived| (from..until).contains(&arrived.at));
    let bytes: usize = counted.map(|arrived| arrived.payload.len() + HEADERS).sum();
    8e9 * bytes as f64 / (until - from) as f64
}

/// The port that a flow came to.
fn port_of(flow: &CapturedFlow) -> Result<u16> {
    let port = flow.name.rsplit(':').next().context("a port")?;
    Ok(port.parse()?)
}

/// What was sent to each port of the relay, and what came of it.
fn pair(recording: &Recording) -> Result<BTreeMap<u16, Vec<Sent>>> {
    let mut arrived: BTreeMap<(u16, u32), Datagram> = BTreeMap::new();
    for datagram in read(&recording.arrived)? {
        let key = (datagram.port - HIGHER, number(&datagram)?);
        ensure!(arrived.insert(key, datagram).is_none(), "a packet came twice: {key:?}");
    }
    let came = read(&recording.came)?;
    let first = came.first().context("something came")?.at;
    let mut sent: BTreeMap<u16, Vec<Sent>> = BTreeMap::new();
    for datagram in came {
        let (at, port) = (datagram.at, datagram.port);
        let timestamp = match is_data(port) {
            true => 0,
            false => RtpHeader::new_checked(&datagram.payload)?.timestamp(),
        };
        let counts = at - first >= WARM_UP_S * 1_000_000_000;
        let arrived = arrived.remove(&(port, number(&datagram)?));
        sent.entry(port).or_default().push(Sent { at, counts, arrived, timestamp });
    }
    ensure!(arrived.is_empty(), "{} packets came that were not sent", arrived.len());
    Ok(sent)
}

fn is_data(to: u16) -> bool {
    to % HIGHER == port(STREAMS) % HIGHER
}

/// What tells a datagram from others to the same port: data is numbered, RTP has sequence numbers, which do not
/// return in a round.
fn number(datagram: &Datagram) -> Result<u32> {
    match is_data(datagram.port) {
        true => Ok(u32::from_be_bytes(*datagram.payload.first_chunk().context("it is numbered")?)),
        false => Ok(RtpHeader::new_checked(&datagram.payload)?.sequence().into()),
    }
}

impl Sent {
    fn delay_ms(&self) -> Option<f64> {
        // Clocks of one machine; a capture may be stamped a moment late.
        Some(self.arrived.as_ref()?.at.saturating_sub(self.at) as f64 / 1e6)
    }
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Seen) {
        self.sent += other.sent;
        self.ok += other.ok;
        self.exact += other.exact;
        self.sum_db += other.sum_db;
        self.sum_clean_db += other.sum_clean_db;
    }
}

/// What is seen of a video: what ffmpeg decodes of what came, and, where a picture is missing or broken, the last
/// one before it. Before the first picture there is nothing: 0 dB. The file is for what came.
fn see(sent: &[Sent], video: &Video, file: &Path) -> Result<Seen> {
    let first = sent.first().context("packets")?.timestamp;
    let (mut units, mut counts): (Vec<Unit>, BTreeMap<usize, bool>) = (Vec::new(), BTreeMap::new());
    for sent in sent {
        let number = (sent.timestamp.wrapping_sub(first) / TICKS) as usize;
        counts.entry(number).or_insert(sent.counts);
        let Some(arrived) = &sent.arrived else { continue };
        if units.last().is_none_or(|unit| unit.number != number) {
            units.push(Unit { number, data: Vec::new() });
        }
        let payload = RtpHeader::new_checked(&arrived.payload)?.payload();
        units.last_mut().iter_mut().for_each(|unit| unit.take(payload));
    }
    // The source may have been ended in the midst of the last ones, of which B pictures come before others.
    let whole = counts.len().saturating_sub(4);
    std::fs::write(file, ivf(&units, FPS as u32))?;
    let decoded = decode(file)?;
    let places: BTreeMap<usize, usize> =
        decoded.pictures.iter().enumerate().map(|(place, (number, _))| (*number, place)).collect();
    let (mut seen, mut shown) = (Seen::default(), None);
    for (number, counts) in counts.into_iter().take(whole) {
        let place = places.get(&number).copied();
        shown = place.or(shown);
        if !counts {
            continue;
        }
        let is_exact = place.is_some_and(|place| video.is_clean(number, &decoded.pictures[place].1));
        seen.sent += 1;
        seen.ok += usize::from(place.is_some());
        seen.exact += usize::from(is_exact);
        seen.sum_clean_db += video.clean_db(number);
        seen.sum_db += match shown {
            _ if is_exact => video.clean_db(number),
            Some(shown) => video.psnr_db(number, &decoded.luma, shown)?,
            None => 0.0,
        };
    }
    Ok(seen)
}

/// What the simulator says of what came to the relay, as `outflow sim --replay` does.
fn predict(recording: &Recording, sdp: &Path, variant: Variant, capture: &Capture) -> Result<Predicted> {
    let last = capture.flows.iter().filter_map(|flow| flow.packets.last()).map(|packet| packet.at.as_nanos());
    let lasts = last.max().unwrap_or(0) + 60_000_000_000;
    let traffic = ["media", "data"].map(|only| {
        format!(
            "[traffic.{only}]\nmodel = \"capture\"\nfile = \"{}\"\nsdp = \"{}\"\nonly = \"{only}\"\n\
             via = [\"uplink\"]\n",
            recording.came.display(),
            sdp.display()
        )
    });
    let text = format!(
        "seed = 1\nduration = \"{lasts} ns\"\nwarm_up = \"{WARM_UP_S} s\"\n\
         [links.uplink]\nrate = \"{RATE_BPS} bit/s\"\nbuffer_per_flow = \"{BUFFER_PER_FLOW} B\"\n\
         policy = \"{}\"\n{}",
        variant.policy().as_str(),
        traffic.concat()
    );
    let outcome = play(&Network::parse(&text)?)?;
    let of = |name: &str| outcome.traffic.get(name).context("it was sent");
    let (media, data) = (of("media")?, of("data")?);
    ensure!(media.flows.len() == STREAMS, "the simulator sees {} videos", media.flows.len());
    Ok(Predicted {
        goodput: media.goodput(),
        data: data.goodput(),
        p50_ms: media.delays.quantile_ms(0.5),
        p99_ms: media.delays.quantile_ms(0.99),
    })
}
