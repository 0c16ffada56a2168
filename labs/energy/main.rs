//! What does a level save in energy? The paper's Table III (GMS, section IV.B) is of a pocket PC that is not
//! available, so its shape is repeated: wavelet video of 33 layers at 3 pictures a second is packetized
//! and decoded at each of its levels; the bytes and the CPU time that this takes here go into a model with a term
//! for network, display and processing, whose factors are fitted to the table. Told are the terms, and how far
//! the model is from each number of the table at most: `model_error_pct`. `shipped_error_pct` is the same for the
//! factors that `outflow watch --power` estimates with.

use std::process::ExitCode;

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};
use outflow_adapt::energy::{Energy, Model, Row, TABLE_III, TABLE_RATE, TABLE_SECONDS, Work};
use outflow_labs::figures::{Options, progress, rounded, run_anywhere};
use outflow_labs::programs::{clip, missing};
use outflow_labs::wavelet::{coded, pictures};
use outflow_wavelet::coding::layers_of_level;
use outflow_wavelet::rtp::{PACKET_BYTES, Packetizer};
use outflow_wavelet::{Codestream, openjpeg};
use serde_json::{Map, Value, json};

/// IPv4 and UDP.
const HEADERS: usize = 28;

fn main() -> ExitCode {
    run_anywhere("energy", lab)
}

fn lab(options: &Options) -> Result<Value> {
    if let Some(why) = missing("ffmpeg") {
        anyhow::bail!("{why}");
    }
    let (count, repeat) = if options.quick { (6, 2) } else { (30, 5) };
    progress("pictures of the clip are coded");
    let from = format!("-i {} -vf fps=5,scale=352:288", clip().display());
    let frames = coded(&pictures(&from, count)?)?;
    let levels = TABLE_III.iter().filter_map(|row| row.level);
    let work = levels.map(|level| work_of(&frames, level.into(), repeat)).collect::<Result<Vec<_>>>()?;
    let model = Model::fit(&work);
    let mut figures = table(&model, &work);
    figures.insert("model_error_pct".into(), json!(rounded(error_pct(&model, &work))));
    figures.insert("shipped_error_pct".into(), json!(rounded(error_pct(&Model::TABLE_III, &work))));
    progress(format!("fitted: {model:?}"));
    Ok(figures.into())
}

/// What the time of the table takes at a level.
fn work_of(frames: &[Codestream], level: usize, repeat: usize) -> Result<Work> {
    let mut packetizer = Packetizer::new(1, 1, PACKET_BYTES);
    let (mut bytes, mut cpu_seconds) = (0, f64::INFINITY);
    let mut cut = frames.to_vec();
    for frame in &mut cut {
        frame.truncate(layers_of_level(frame.layers(), level).context("there is no such level")?);
        packetizer.packets(frame, 0, |packet| bytes += packet.len() + HEADERS)?;
    }
    let streams: Vec<_> = cut.iter().map(Codestream::to_bytes).collect();
    for _ in 0..repeat {
        let began = cpu_time()?;
        for stream in &streams {
            openjpeg::decode(stream)?;
        }
        // The least of several: what others do to the caches is not the work's.
        cpu_seconds = cpu_seconds.min(cpu_time()? - began);
    }
    let pictures = TABLE_SECONDS * TABLE_RATE;
    let scale = pictures / frames.len() as f64;
    let work = Work {
        seconds: TABLE_SECONDS,
        bytes: bytes as f64 * scale,
        cpu_seconds: cpu_seconds * scale,
        pictures,
    };
    progress(format!("level {level}: {:.0} bytes, {:.2} s of CPU time", work.bytes, work.cpu_seconds));
    Ok(work)
}

fn cpu_time() -> Result<f64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}

/// The rows of the table and what the model says of them; the last is idle.
fn rows<'a>(model: &'a Model, work: &'a [Work]) -> impl Iterator<Item = (&'static Row, Energy)> + 'a {
    let idle = Work { seconds: TABLE_SECONDS, ..Work::default() };
    let works = work.iter().copied().chain([idle]);
    TABLE_III.iter().zip(works).map(|(row, work)| (row, model.energy(&work)))
}

/// The largest relative error of a term or a total.
fn error_pct(model: &Model, work: &[Work]) -> f64 {
    let of_row = |(row, told): (&Row, Energy)| {
        let terms = |energy: &Energy| [energy.network, energy.display, energy.processing, energy.total()];
        let pairs = terms(&row.energy).into_iter().zip(terms(&told));
        pairs.map(|(table, model)| (model / table - 1.0).abs() * 100.0).fold(0.0, f64::max)
    };
    rows(model, work).map(of_row).fold(0.0, f64::max)
}

fn table(model: &Model, work: &[Work]) -> Map<String, Value> {
    let name = |row: &Row| row.level.map_or("idle".to_owned(), |level| format!("level_{level}"));
    let told = |energy: &Energy| {
        json!({
            "network_j": rounded(energy.network),
            "display_j": rounded(energy.display),
            "processing_j": rounded(energy.processing),
            "total_j": rounded(energy.total()),
        })
    };
    rows(model, work).map(|(row, energy)| (name(row), told(&energy))).collect()
}
