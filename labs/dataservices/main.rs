//! What does it cost to work on images? Each operation on frames of 1080p, on one core: frames a
//! second, what share of the memory's bandwidth that is (a plain copy in the same run is the bound),
//! and how much longer ffmpeg's filter takes for the same; for JPEG 2000, which is cut down without
//! decoding it, OpenJPEG's decoder and encoder.

mod codestreams;
mod ffmpeg;
mod operations;
mod programs;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use outflow_labs::figures::{Options, progress, quantile, rounded, run_anywhere};
use outflow_labs::process::keep_to_cpu;
use serde_json::{Map, Value, json};

use operations::{OPERATIONS, Operation, Work};

/// The core that works.
const CPU: usize = 1;

/// Seconds for a frame, round by round.
#[derive(Default)]
struct Times {
    ours: Vec<f64>,
    ffmpeg: Vec<f64>,
}

fn main() -> ExitCode {
    run_anywhere("dataservices", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let (rounds, time, frames) =
        if options.quick { (3, Duration::from_millis(150), 60) } else { (9, Duration::from_secs(1), 300) };
    keep_to_cpu(CPU)?;
    let mut copies = Vec::new();
    let mut times: BTreeMap<&str, Times> = BTreeMap::new();
    for round in 1..=rounds {
        copies.push(Work::copy().seconds_a_frame(time)?);
        for operation in &OPERATIONS {
            let of_it = times.entry(operation.name).or_default();
            of_it.ours.push(Work::new(operation).seconds_a_frame(time)?);
            of_it.ffmpeg.push(ffmpeg::seconds_a_frame(operation, frames, CPU)?);
        }
        progress(format!("round {round} of {rounds}"));
    }
    let copy = Work::copy().moved() / quantile(&copies, 0.5);
    progress(format!("a copy moves {:.1} GB/s", copy / 1e9));
    let figures = OPERATIONS.iter().map(|operation| of(operation, &times[operation.name], copy));
    let mut figures: Map<String, Value> = figures.collect();
    figures.extend(codestreams::figures(rounds, time, CPU, copy)?);
    figures.insert("copy_gb_s".to_owned(), json!(rounded(copy / 1e9)));
    Ok(Value::Object(figures))
}

fn of(operation: &Operation, times: &Times, copy: f64) -> (String, Value) {
    let (ours, ffmpeg) = (quantile(&times.ours, 0.5), quantile(&times.ffmpeg, 0.5));
    let share = Work::new(operation).moved() / ours / copy;
    let name = operation.name;
    progress(format!("{name:<14}{:>7.0} frames/s, ffmpeg {:>6.0}", 1.0 / ours, 1.0 / ffmpeg));
    let figures = json!({
        "fps_core": (1.0 / ours).round(),
        "bandwidth_share_pct": rounded(100.0 * share),
        "ffmpeg_ratio": rounded(ffmpeg / ours),
    });
    (name.to_owned(), figures)
}

/// What a frame takes, on average over so long.
fn seconds_a_frame(time: Duration, mut frame: impl FnMut() -> Result<()>) -> Result<f64> {
    let (began, mut frames) = (Instant::now(), 0_u32);
    while began.elapsed() < time {
        frame()?;
        frames += 1;
    }
    Ok(began.elapsed().as_secs_f64() / f64::from(frames.max(1)))
}
