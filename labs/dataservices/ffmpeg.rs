//! The same by ffmpeg: its processor time for a run of frames, less that of a run of one.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use outflow_media::image::Pixels;

use super::operations::Operation;
use super::programs::processor_time;

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
    let (source, frames) = (format!("nullsrc=size=1920x1080:rate=1000,format={pixels}"), frames.to_string());
    let mut line = vec!["ffmpeg", "-nostdin", "-loglevel", "error", "-threads", "1", "-filter_threads", "1"];
    line.extend(["-f", "lavfi", "-i", &source, "-frames:v", &frames, "-vf", operation.filter]);
    line.extend(["-c:v", "rawvideo", "-threads", "1", "-f", "null", "-"]);
    processor_time(&line, Path::new("/"), cpu)
}
