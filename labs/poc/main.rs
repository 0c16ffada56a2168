//! The partial-order transport next to UDP, TCP, SRT and RIST: the same MPEG-2 video (M = 4, N = 12, 15 slices a
//! picture, as in "Implementing a user level multimedia transport protocol in Java") over the same bad path at the
//! same time, with the same latency bound.
//!
//! And what it costs the relay to serve many receivers by it (`served.rs`).
//!
//! `stream.rs` says what is sent, `wire.rs` how it goes through a transport, `transport.rs` which programs carry it,
//! `path.rs` what the path does to it, `score.rs` and `pictures.rs` what counts as what, `draw.rs`
//! draws. Units are sent at the pace of the video: those of a picture are spread over its 40 ms.
//!
//! The partial-order transport is left out if `outflow` has no `poc send`.

mod draw;
mod path;
mod pictures;
mod run;
mod score;
mod served;
mod stream;
mod transport;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::Parser;
use outflow_labs::figures::{conclude, progress, rounded};
use outflow_labs::net::cannot_make_namespaces;
use outflow_labs::programs::missing;
use serde_json::{Map, Value, json};

use pictures::Decoded;
use run::{Conditions, run};
use score::{Fate, Score, TOLERANCE, WARM_UP, judge};
use stream::{GOP, Kind, Stream};
use transport::{Terms, Transport};

/// What the lab can do.
#[derive(Debug, Parser)]
struct Arguments {
    /// A few seconds at each loss rate
    #[arg(long)]
    quick: bool,
    /// Print the figures as one line of JSON (they always are; for the habit's sake)
    #[arg(long)]
    json: bool,
    /// Loss rates in %, both ways; half of it falls into bursts
    #[arg(long, value_delimiter = ',', default_values_t = [5.0, 10.0])]
    loss: Vec<f64>,
    /// Round trip of the path in ms: five hops of 10 ms each way
    #[arg(long, default_value_t = 100)]
    rtt: u64,
    /// Latency bound of all transports in ms, on top of the path's delay
    #[arg(long, default_value_t = 250)]
    latency: u64,
    /// The video's rate in kbit/s
    #[arg(long, default_value_t = 1500)]
    rate: u32,
    /// Seconds that count, at each loss rate; 60, or 4 with --quick
    #[arg(long)]
    seconds: Option<usize>,
    /// What is lost is up to this
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only what it costs the relay to serve receivers
    #[arg(long)]
    served: bool,
    /// Only these transports; all if not given
    #[arg(long, value_delimiter = ',')]
    only: Vec<Transport>,
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(ended) = transport::be_end(&words) {
        return match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error:#}");
                ExitCode::FAILURE
            }
        };
    }
    conclude("poc", lab(&Arguments::parse()))
}

fn lab(arguments: &Arguments) -> Result<Value> {
    if let Some(why) = cannot_make_namespaces().or_else(|| missing("ffmpeg")) {
        bail!("{why}: see scripts/setup");
    }
    if arguments.served {
        return Ok(json!({ "served": served::measure(arguments.quick)? }));
    }
    let outflow = outflow();
    let transports = possible(arguments, outflow.as_deref())?;
    let seconds = arguments.seconds.unwrap_or(if arguments.quick { 4 } else { 60 });
    let stream = Arc::new(Stream::make(WARM_UP + (25 * seconds).div_ceil(GOP) * GOP, arguments.rate)?);
    let folder = tempfile::tempdir()?;
    let everything = vec![true; stream.units().count()];
    let clean = Decoded::of(&stream, &everything, folder.path())?;
    let mut figures = Map::new();
    for loss in &arguments.loss {
        ensure!((0.0..=50.0).contains(loss), "{loss} % cannot be lost: 0 to 50 can");
        let terms = Terms {
            latency: Duration::from_millis(arguments.latency),
            outflow: outflow.as_deref(),
            folder: folder.path(),
        };
        let conditions = Conditions {
            stream: &stream,
            transports: &transports,
            terms,
            delay: Duration::from_millis(arguments.rtt) / 2,
            loss: loss / 100.0,
            seed: arguments.seed,
        };
        progress(format!("{loss} % are lost"));
        figures.insert(loss.to_string(), compare(&conditions, &clean, &loss.to_string())?);
    }
    figures.extend([
        ("served".to_owned(), served::measure(arguments.quick)?),
        ("seconds".to_owned(), seconds.into()),
        ("rtt_ms".to_owned(), arguments.rtt.into()),
        ("latency_ms".to_owned(), arguments.latency.into()),
        ("tolerance_ms".to_owned(), (TOLERANCE.as_millis() as u64).into()),
    ]);
    Ok(figures.into())
}

/// The `outflow` that is measured: what OUTFLOW_BIN names, or built now.
fn outflow() -> Option<PathBuf> {
    outflow_labs::relay::binary().inspect_err(|error| progress(format!("no outflow: {error:#}"))).ok()
}

/// Transports that were asked for and can be measured here.
fn possible(arguments: &Arguments, outflow: Option<&Path>) -> Result<Vec<Transport>> {
    let is_wanted = |transport: &Transport| arguments.only.is_empty() || arguments.only.contains(transport);
    let is_possible = |transport: &Transport| match transport.lacks(outflow) {
        None => true,
        Some(why) => {
            progress(format!("{} is left out: {why}", transport.name()));
            false
        }
    };
    let transports: Vec<_> = Transport::ALL.into_iter().filter(is_wanted).filter(is_possible).collect();
    ensure!(!transports.is_empty(), "there is nothing to measure");
    Ok(transports)
}

/// One run, judged and drawn.
fn compare(conditions: &Conditions, clean: &Decoded, loss: &str) -> Result<Value> {
    let outcome = run(conditions)?;
    let scores: Vec<Score> =
        outcome.arrivals.iter().map(|arrivals| judge(conditions, &outcome, arrivals)).collect();
    let (mut figures, mut seen) = (Map::new(), Vec::new());
    let folder = conditions.terms.folder;
    for score in &scores {
        let decoded = Decoded::of(conditions.stream, &score.is_on_time, folder)?;
        let psnr = decoded.psnr_db(clean, conditions.stream.pictures.len())?;
        let mut told = told(score, psnr.iter().sum::<f64>() / psnr.len().max(1) as f64);
        if let Some(statistics) = score.transport.told(folder) {
            told["statistics"] = statistics;
        }
        progress(format!("{}: {told}", score.transport.name()));
        figures.insert(score.transport.name().to_owned(), told);
        seen.push((score.transport, decoded, psnr));
    }
    draw::over_time(&scores, loss, 2.0 * conditions.delay.as_secs_f64())?;
    draw::distribution(&scores, loss)?;
    draw::by_kind(&scores, loss)?;
    draw::damaged(&seen, loss, folder)?;
    Ok(figures.into())
}

/// The figures of a transport.
fn told(score: &Score, psnr_db: f64) -> Value {
    let kind = |(kind, fate): (&Kind, &Fate)| {
        let Fate { sent, on_time, lost, recovered, late } = fate;
        let fate = json!({
            "sent": sent, "on_time": on_time, "lost": lost, "recovered": recovered, "late": late,
        });
        (kind.name().to_owned(), fate)
    };
    json!({
        "on_time_frames_pct": rounded(score.frames_pct),
        "headers_pct": rounded(score.on_time_pct(&[Kind::Header])),
        "i_slices_pct": rounded(score.on_time_pct(&[Kind::I])),
        "units_pct": rounded(score.on_time_pct(&Kind::ALL)),
        "blocking_times": score.blocking_times,
        "blocked_s": rounded(score.blocked_s),
        "psnr_db": rounded(psnr_db),
        "overhead_pct": rounded(score.overhead_pct),
        "cpu_ns_per_packet": score.cpu_ns_per_packet.round(),
        "p50_ms": rounded(score.p50_ms),
        "p99_ms": rounded(score.p99_ms),
        "path_loss_pct": rounded(score.path_loss_pct),
        "fed_late_ms": rounded(score.behind_ms),
        "by_kind": score.fates.iter().map(kind).collect::<Map<_, _>>(),
    })
}
