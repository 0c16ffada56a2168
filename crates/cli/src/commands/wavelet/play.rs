//! `outflow wavelet play`

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use clap::Args;
use outflow_client::{Options, Received, Subscription, subscribe};
use outflow_media::{Codec, Format};
use outflow_rtp::sdp;
use outflow_wavelet::pool;
use outflow_wavelet::rtp::{Assembled, Assembler, Counts, description};
use outflow_wavelet::y4m::Rate;
use serde::Serialize;
use tokio::signal::ctrl_c;
use tokio::time::{interval, sleep};

use super::coding::{rate, threads};
use super::files::{is_standard, output};
use super::screen::{Screen, Seen, Tally};

/// Frames that wait to be decoded. What comes when this many wait is left out, and counted.
const QUEUE: usize = 64;

/// Receives a video, decodes what arrives of each frame, and writes it
///
/// A frame is decoded up to its first gap; where nothing can be, the last picture is repeated. What comes
/// is told every second. The exit status is 0 if there was something to see.
#[derive(Debug, Args)]
pub(super) struct Play {
    /// rtp://ADDRESS:PORT, a session description (FILE.sdp), or rtsp://RELAY/STREAM
    #[arg(value_name = "URL")]
    from: String,
    /// Raw video (Y4M) that is written, or - for standard output
    #[arg(value_name = "OUT.y4m")]
    to: Option<PathBuf>,
    /// Print one JSON object on standard output at the end
    #[arg(long)]
    json: bool,
    /// End after this many frames
    #[arg(long, value_name = "COUNT")]
    frames: Option<u64>,
    /// How long to play, for example 10s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// How long there may be no packet
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    silence: Duration,
    /// Frames a second, where the video does not tell
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "25")]
    fps: Rate,
    /// Token for playing, if the relay wants one
    #[arg(long, env = "OUTFLOW_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Frames that are worked on at the same time; as many as there are processors if left out
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
}

fn duration(text: &str) -> Result<Duration, String> {
    outflow_config::parse_duration(text).map_err(|error| error.to_string())
}

/// What came, and what became of it.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// Why it ended, if not because it was to.
    ended: Option<String>,
    frames: u64,
    lost: u64,
    gaps: u64,
    /// Layers of a frame that has some, on average.
    layers: f64,
    packets: u64,
    bytes: u64,
    late: u64,
    malformed: u64,
    recovered_headers: u64,
    /// Frames that were not decoded because those before took too long.
    skipped: u64,
    #[serde(flatten)]
    tally: Tally,
}

impl Play {
    pub(super) fn run(self) -> Result<(), String> {
        let standard = self.to.as_deref().is_some_and(is_standard);
        if self.json && standard {
            return Err("--json writes to standard output, too: name a file for the video".to_owned());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("the system gives no event loop: {error}"))?;
        let (url, options) = self.subscription()?;
        let subscription = runtime.block_on(subscribe(&url, options)).map_err(|error| error.to_string())?;
        let out = self.to.as_deref().map(output).transpose()?;
        let mut screen = Screen::new(out, self.fps);
        let (queue, frames) = sync_channel(QUEUE);
        let receiver = Receiver::new(queue, self.frames, self.duration);
        let (shown, mut report) = std::thread::scope(|scope| {
            let receiving = scope.spawn(|| runtime.block_on(receiver.receive(subscription)));
            let shown =
                pool::in_order(threads(self.threads), frames.into_iter(), Seen::of, |seen| screen.show(seen));
            (shown, receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        shown?;
        screen.finish()?;
        report.tally = screen.tally;
        self.tell(&report)
    }

    /// What is subscribed to. A bare address is taken to carry a wavelet video.
    fn subscription(&self) -> Result<(String, Options), String> {
        let options = Options { silence: self.silence, token: self.token.clone(), ..Options::default() };
        if self.from.starts_with("rtp://") {
            let any = description(None, Ipv4Addr::UNSPECIFIED.into(), &[]);
            return Ok((self.from.clone(), Options { sdp: Some(any), ..options }));
        }
        if self.from.contains("://") {
            return Ok((self.from.clone(), options));
        }
        let file = Path::new(&self.from);
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let described =
            sdp::parse(text.as_bytes()).map_err(|error| format!("{}: {error}", file.display()))?;
        let media = described.media.first().ok_or("it describes nothing")?;
        let group = media.address.filter(IpAddr::is_multicast);
        let url = match group.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)) {
            IpAddr::V4(address) => format!("rtp://{address}:{}", media.port),
            IpAddr::V6(address) => format!("rtp://[{address}]:{}", media.port),
        };
        Ok((url, Options { sdp: Some(text), ..options }))
    }

    fn tell(&self, report: &Report) -> Result<(), String> {
        if self.json {
            let json = serde_json::to_string(report);
            println!("{}", json.map_err(|error| format!("the report cannot be written: {error}"))?);
        } else {
            let Tally { shown, repeated, missing, undecodable } = report.tally;
            eprintln!(
                "{shown} pictures shown, {repeated} repeated: {} frames without a whole layer, {missing} of \
                 which nothing came, {undecodable} not decodable, {} skipped\n{:.1} layers a frame, {} gaps, \
                 {} packets, {} late, {} malformed, {} main headers recovered",
                report.lost,
                report.skipped,
                report.layers,
                report.gaps,
                report.packets,
                report.late,
                report.malformed,
                report.recovered_headers,
            );
        }
        match (&report.ended, report.tally.shown) {
            (Some(why), 0) => Err(why.clone()),
            (None, 0) => Err("nothing came that can be decoded".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Puts frames together, and hands them to the decoders.
struct Receiver {
    assembler: Assembler,
    queue: SyncSender<Assembled>,
    frames_max: Option<u64>,
    duration: Option<Duration>,
    layers: u64,
    bytes: u64,
    skipped: u64,
    /// No decoder takes frames any more.
    closed: bool,
}

impl Receiver {
    fn new(queue: SyncSender<Assembled>, frames_max: Option<u64>, duration: Option<Duration>) -> Self {
        Receiver {
            assembler: Assembler::default(),
            queue,
            frames_max,
            duration,
            layers: 0,
            bytes: 0,
            skipped: 0,
            closed: false,
        }
    }

    async fn receive(mut self, mut subscription: Subscription) -> Report {
        let Some(wanted) = wavelet_track(subscription.format()) else {
            let ended = Some("it has no JPEG 2000".to_owned());
            return Report { ended, ..Report::default() };
        };
        let duration = self.duration;
        let over = async move {
            match duration {
                Some(duration) => sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        let (mut over, mut interrupted) = (pin!(over), pin!(ctrl_c()));
        let mut second = interval(Duration::from_secs(1));
        let mut before = self.report(None);
        let ended = loop {
            tokio::select! {
                received = subscription.recv() => match received {
                    Ok(Received::Packet(packet)) if packet.track == wanted => {
                        self.take(|assembler, tell| assembler.handle(packet.bytes, tell));
                    }
                    Ok(_) => {}
                    Err(error) => break Some(error.to_string()),
                },
                _ = second.tick() => {
                    let now = self.report(None);
                    if now.packets > 0 {
                        tell_second(&before, &now);
                    }
                    before = now;
                }
                () = &mut over => break None,
                _ = &mut interrupted => break None,
            }
            let Counts { frames, lost, .. } = self.assembler.counts();
            if self.closed || self.frames_max.is_some_and(|most| frames + lost >= most) {
                break None;
            }
        };
        self.take(|assembler, tell| assembler.flush(tell));
        subscription.close().await;
        self.report(ended)
    }

    fn take(&mut self, work: impl FnOnce(&mut Assembler, &mut dyn FnMut(Assembled))) {
        let Receiver { assembler, queue, layers, bytes, skipped, closed, .. } = self;
        work(assembler, &mut |frame| {
            *layers += frame.codestream.as_ref().map_or(0, |codestream| codestream.layers() as u64);
            *bytes += frame.bytes;
            match queue.try_send(frame) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => *skipped += 1,
                // What is seen cannot be written any more.
                Err(TrySendError::Disconnected(_)) => *closed = true,
            }
        });
    }

    fn report(&self, ended: Option<String>) -> Report {
        let counts = self.assembler.counts();
        Report {
            ended,
            frames: counts.frames,
            lost: counts.lost,
            gaps: counts.gaps,
            layers: self.layers as f64 / counts.frames.max(1) as f64,
            packets: counts.packets,
            bytes: self.bytes,
            late: counts.late,
            malformed: counts.malformed,
            recovered_headers: counts.recovered,
            skipped: self.skipped,
            tally: Tally::default(),
        }
    }
}

/// What came within a second.
fn tell_second(before: &Report, now: &Report) {
    let frames = now.frames - before.frames;
    let layers = now.layers * now.frames as f64 - before.layers * before.frames as f64;
    eprintln!(
        "{frames} frames · {:.1} layers · {:.0} kbit/s · {} gaps · {} lost",
        layers / frames.max(1) as f64,
        (now.bytes - before.bytes) as f64 * 8.0 / 1e3,
        now.gaps - before.gaps,
        now.lost - before.lost,
    );
}

fn wavelet_track(format: &Format) -> Option<u8> {
    let Format::Rtp(tracks) = format else { return None };
    let found = tracks.iter().position(|track| track.codec == Codec::Jpeg2000)?;
    u8::try_from(found).ok()
}
