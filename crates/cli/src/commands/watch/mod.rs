//! `outflow watch`

mod levels;
mod power;

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use outflow_client::machine::Battery;
use outflow_client::measure::{Measure, Summary};
use outflow_client::{AdapterSummary, Lower, Options, Subscription, subscribe};
use outflow_media::Time;
use outflow_poc_socket::Security;
use outflow_serve::fail;
use serde::Serialize;
use tokio::signal::ctrl_c;
use tokio::time::{interval, sleep};

use super::progress;
use levels::{LevelArgs, Quality};
use power::{EnergySummary, Power};

/// How often the progress line changes.
const REFRESH: Duration = Duration::from_millis(250);
/// How long is watched for a JSON summary, if nothing else is said.
const DURATION_FOR_JSON: Duration = Duration::from_secs(10);

/// Receives a stream and shows rate, loss, jitter, key frames and what can be decoded
///
/// URL is one of rtsp://, rtsps://, http://, https:// (MPEG-TS), poc:// (the partial-order
/// transport, with --key-file or --insecure), udp:// (MPEG-TS) and rtp:// (MPEG-TS, or what --sdp describes). For udp:// and rtp:// it names the own address or a
/// multicast group, which takes ?source= and ?interface=. The exit status is 0 if frames came that
/// can be decoded, and the stream went on to the end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow watch rtsp://127.0.0.1:8554/demo\n  \
    outflow watch http://127.0.0.1:8080/demo.ts --json --duration 5s\n  \
    outflow watch 'udp://239.1.1.1:5000?interface=eth0'\n  \
    outflow watch rtp://0.0.0.0:5004 --sdp stage.sdp\n  \
    outflow watch poc://192.0.2.1:7000/stage --key-file poc.key\n  \
    outflow watch rtsp://127.0.0.1:8554/cam --transport udp --adapt --power")]
pub(crate) struct Watch {
    /// What to receive
    #[arg(value_name = "URL")]
    url: String,
    /// Print one JSON object on standard output at the end
    #[arg(long)]
    json: bool,
    /// How long to watch, for example 10s; until Ctrl-C if not given, with --json 10s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// What carries the media of RTSP
    #[arg(long, value_enum, default_value = "tcp")]
    transport: Transport,
    /// Token for playing, if the server wants one and the URL holds no password
    #[arg(long, env = "OUTFLOW_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Session description of an rtp:// stream
    #[arg(long, value_name = "FILE")]
    sdp: Option<PathBuf>,
    /// Certificates (PEM) to trust besides the system's: an authority's, or the server's own
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Keys of the partial-order transport, the same as at the other end (see `outflow poc key`)
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    key_file: Option<PathBuf>,
    /// Do without encryption of the partial-order transport: for networks of your own
    #[arg(long)]
    insecure: bool,
    /// How long there may be no packet, before the first and between any two
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    silence: Duration,
    #[command(flatten)]
    levels: LevelArgs,
    /// Tell what it costs in energy: from the battery, or as an estimate
    #[arg(long)]
    power: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// Within the RTSP connection
    Tcp,
    /// RTP over UDP
    Udp,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    url: &'a str,
    /// Why it ended before its time, if it did.
    ended: Option<&'a str>,
    /// The tracks that are not in what came, by HTTP.
    left_out: Option<&'a str>,
    #[serde(flatten)]
    summary: &'a Summary,
    /// With --adapt.
    adaptation: Option<AdapterSummary>,
    /// With --power.
    energy: Option<EnergySummary>,
}

/// What is followed besides the packets.
#[derive(Debug)]
struct Companions {
    quality: Option<Quality>,
    power: Option<Power>,
}

impl Companions {
    fn look(&mut self, now: Time) {
        if let Some(quality) = &mut self.quality {
            quality.look(now);
        }
        if let Some(power) = &mut self.power {
            power.look(now);
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    outflow_config::parse_duration(text).map_err(|error| error.to_string())
}

impl Watch {
    pub(crate) fn run(self) -> ExitCode {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return fail(format!("the system gives no event loop: {error}")),
        };
        runtime.block_on(self.watch())
    }

    async fn watch(self) -> ExitCode {
        let options = match self.options() {
            Ok(options) => options,
            Err(error) => return fail(error),
        };
        let connecting_at = options.clock.now();
        let started = tokio::select! {
            subscription = subscribe(&self.url, options) => subscription,
            _ = ctrl_c() => return fail("interrupted before the stream began"),
        };
        let mut subscription = match started {
            Ok(subscription) => subscription,
            Err(error) => return fail(error),
        };
        let quality = match self.levels.begin(&mut subscription) {
            Ok(quality) => quality,
            Err(error) => return fail(error),
        };
        let power = self.power.then(|| Power::new(Battery::find(&self.levels.power_supply)));
        let mut companions = Companions { quality, power };
        let left_out = subscription.left_out().map(str::to_owned);
        if let Some(tracks) = &left_out {
            eprintln!("left out, as MPEG-TS has no place for it: {tracks}");
        }
        let mut measure = Measure::new(subscription.format(), connecting_at);
        let ended = self.follow(&mut subscription, &mut measure, &mut companions).await;
        let summary = measure.summary(subscription.now());
        let refused = subscription.level_refused();
        subscription.close().await;
        let report = Report {
            url: &self.url,
            ended: ended.as_deref(),
            left_out: left_out.as_deref(),
            energy: companions.power.as_ref().map(|power| power.summary(&summary)),
            adaptation: companions.quality.map(|quality| quality.adapter.summary(connecting_at)),
            summary: &summary,
        };
        match refused {
            Some(status) => {
                fail(format!("the server refused the level: {status} (does the stream have this level?)"))
            }
            None => self.tell(&report),
        }
    }

    fn options(&self) -> Result<Options, String> {
        self.levels.check()?;
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error: io::Error| format!("{}: {error}", path.display()))
        };
        let sdp = self.sdp.as_deref().map(read).transpose()?;
        let plain = self.insecure.then_some(Ok(Security::Plain));
        let security = self.key_file.as_deref().map(super::poc::keys).or(plain).transpose()?;
        Ok(Options {
            poc: security.map(outflow_poc_socket::Options::new),
            transport: match self.transport {
                Transport::Tcp => Lower::Tcp,
                Transport::Udp => Lower::Udp,
            },
            token: self.token.clone(),
            sdp: sdp.map(|text| String::from_utf8_lossy(&text).into_owned()),
            certificates: self.ca.as_deref().map(read).transpose()?.unwrap_or_default(),
            silence: self.silence,
            ask_by: self.levels.ask_by(),
            ..Options::default()
        })
    }

    /// Receives until the time is over or the user interrupts; returns why it ended before that.
    async fn follow(
        &self,
        subscription: &mut Subscription,
        measure: &mut Measure,
        companions: &mut Companions,
    ) -> Option<String> {
        let progress = progress::line();
        let duration = self.duration.or(self.json.then_some(DURATION_FOR_JSON));
        let over = async {
            match duration {
                Some(duration) => sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        let (mut over, mut interrupted) = (pin!(over), pin!(ctrl_c()));
        let mut refresh = interval(REFRESH);
        let ended = loop {
            // What the machine has is known before anything of the stream is, so that nothing is decided without it.
            tokio::select! {
                biased;
                () = &mut over => break None,
                _ = &mut interrupted => break None,
                _ = refresh.tick() => {
                    companions.look(subscription.now());
                    progress.set_message(line(&measure.summary(subscription.now())));
                }
                received = subscription.recv() => match received {
                    Ok(received) => {
                        measure.received(&received);
                        if let Some(quality) = &mut companions.quality {
                            quality.received(&received);
                        }
                    }
                    Err(error) => break Some(error.to_string()),
                },
            }
            let now = subscription.now();
            let quality = companions.quality.as_mut();
            if let Some(change) = quality.and_then(|quality| quality.decide(now, subscription)) {
                progress.suspend(|| eprintln!("{change}"));
            }
        };
        progress.finish_and_clear();
        ended
    }

    fn tell(&self, report: &Report<'_>) -> ExitCode {
        let summary = report.summary;
        if self.json {
            match serde_json::to_string(report) {
                Ok(json) => println!("{json}"),
                Err(error) => return fail(format!("the summary cannot be written: {error}")),
            }
        } else {
            println!("{}", text(summary));
            report.adaptation.iter().for_each(|told| println!("{}", level_text(told)));
            report.energy.iter().for_each(|told| println!("{}", told.text()));
        }
        match (verdict(summary), report.ended) {
            (Some(why), Some(ended)) => fail(format!("{why}: {ended}")),
            (Some(why), None) => fail(why),
            (None, Some(ended)) => fail(format!("the stream ended early: {ended}")),
            (None, None) => ExitCode::SUCCESS,
        }
    }
}

/// What became of the level.
fn level_text(told: &AdapterSummary) -> String {
    let Some(level) = told.level else {
        return "no answer to what was asked for: the relay does not say its levels here".to_owned();
    };
    format!("level {level} of {} at the end, changed {} times", told.rates_bps.len(), told.changes)
}

/// What is shown while it goes on.
fn line(summary: &Summary) -> String {
    if summary.packets == 0 {
        return "waiting for the first packet".to_owned();
    }
    let key = summary.key_interval_ms.map_or("-".to_owned(), |ms| format!("{:.2} s", ms / 1000.0));
    format!(
        "{:.2} Mbit/s · lost {} ({:.3} %) · jitter {:.1} ms · key frame every {key} · {} of {} frames decodable",
        summary.rate_bps as f64 / 1e6,
        summary.lost,
        summary.loss * 100.0,
        summary.jitter_ms,
        summary.decodable_frames,
        summary.frames,
    )
}

/// What is shown at the end.
fn text(summary: &Summary) -> String {
    let after = |ms: Option<f64>| ms.map_or("never".to_owned(), |ms| format!("after {ms:.1} ms"));
    format!(
        "{} for {:.1} s, {} packets\n{}\nfirst packet {}, first key frame {}, first decodable frame {}\n\
         longest time without a packet {:.1} ms",
        summary.format,
        summary.duration_s,
        summary.packets,
        line(summary),
        after(summary.first_packet_ms),
        after(summary.first_key_ms),
        after(summary.first_decodable_ms),
        summary.longest_gap_ms,
    )
}

/// Why nothing could be decoded, if so.
fn verdict(summary: &Summary) -> Option<&'static str> {
    if summary.decodable_frames > 0 {
        None
    } else if summary.packets == 0 {
        Some("nothing came")
    } else if summary.key_frames == 0 {
        Some("packets came, but no key frame: watch for longer than the time between two of them")
    } else {
        Some("key frames came, but none of them whole: too much is lost")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outflow_media::{Format, Time};

    fn summary() -> Summary {
        Measure::new(&Format::Ts, Time::ZERO).summary(Time::ZERO)
    }

    #[test]
    fn the_verdict_names_what_is_missing() {
        let mut summary = summary();
        assert!(verdict(&summary).unwrap().contains("nothing"));
        summary.packets = 5;
        assert!(verdict(&summary).unwrap().contains("no key frame"));
        summary.key_frames = 1;
        assert!(verdict(&summary).unwrap().contains("lost"));
        summary.decodable_frames = 1;
        assert_eq!(verdict(&summary), None);
    }

    #[test]
    fn the_json_object_holds_the_summary_itself() {
        let report = Report {
            url: "udp://0.0.0.0:1",
            ended: Some("why"),
            summary: &summary(),
            adaptation: None,
            energy: None,
            left_out: None,
        };
        let json = serde_json::to_value(report).unwrap();
        assert_eq!((json["ended"].as_str(), json["packets"].as_u64()), (Some("why"), Some(0)));
    }

    #[test]
    fn the_line_tells_what_matters() {
        let mut summary = summary();
        assert!(line(&summary).contains("waiting"));
        (summary.packets, summary.rate_bps, summary.key_interval_ms) = (9, 4_020_000, Some(1000.0));
        assert!(line(&summary).starts_with("4.02 Mbit/s · lost 0 (0.000 %)"));
        assert!(line(&summary).contains("key frame every 1.00 s"));
    }
}
