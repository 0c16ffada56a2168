//! The same by ffmpeg: its processor time for a run of frames, less that of a run of none.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use outflow_media::image::Pixels;

use super::operations::Operation;

/// Seconds of processor time a frame. The source makes frames without filling them, and the results
/// are put together as raw video: what is left is the filter.
pub(crate) fn seconds_a_frame(operation: &Operation, frames: u32, cpu: usize) -> Result<f64> {
    let many = run(operation, frames + 1, cpu)?;
    let one = run(operation, 1, cpu)?;
    Ok(many.saturating_sub(one).as_secs_f64() / f64::from(frames))
}

fn run(operation: &Operation, frames: u32, cpu: usize) -> Result<Duration> {
    let pixels = match operation.pixels {
        Pixels::Rgb => "rgb24",
        Pixels::Gray => "gray",
        Pixels::Uyvy => "uyvy422",
    };
    let source = format!("nullsrc=size=1920x1080:rate=1000,format={pixels}");
    let before = children()?;
    let mut ffmpeg = Command::new("taskset");
    ffmpeg.args(["-c", &cpu.to_string(), "ffmpeg", "-nostdin", "-loglevel", "error", "-threads", "1"]);
    ffmpeg.args(["-filter_threads", "1", "-f", "lavfi", "-i", &source, "-frames:v", &frames.to_string()]);
    ffmpeg.args(["-vf", operation.filter, "-c:v", "rawvideo", "-threads", "1", "-f", "null", "-"]);
    let status = ffmpeg.stdin(Stdio::null()).status().context("cannot run ffmpeg: scripts/setup test")?;
    ensure!(status.success(), "ffmpeg cannot do {}", operation.filter);
    Ok(children()?.saturating_sub(before))
}

/// Processor time of the programs that this one has waited for.
fn children() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(u64::try_from(micros)?))
}
