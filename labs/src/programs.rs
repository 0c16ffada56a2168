//! The command lines of other people's programs, in one place: what the README recommends is what
//! the tests run.

use std::path::{Path, PathBuf};

use crate::process::Program;

/// The clip of the demo: 200 pictures of H.264 and 375 frames of AAC, 8 s.
pub fn clip() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/demo.ts")
}

/// Why a program cannot be run here, if it cannot.
pub fn missing(name: &str) -> Option<String> {
    outflow_skip::program(name).is_none().then(|| format!("{name} is not installed"))
}

/// ffmpeg, saying only what went wrong.
pub fn ffmpeg(arguments: &str) -> Program {
    Program::words(&format!("ffmpeg -hide_banner -nostdin -loglevel error {arguments}"))
}

/// An ffmpeg that publishes by WHIP, saying only what went wrong: `scripts/setup` brings one, Debian 12 has none.
pub fn newer_ffmpeg(arguments: &str) -> Option<Program> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/ffmpeg-9.0.2");
    file.is_file().then(|| ffmpeg(arguments).at(&file))
}

/// ffmpeg sending `file` in real time, over and over, without recoding anything.
pub fn ffmpeg_sends(file: &Path, output: &str) -> Program {
    ffmpeg(&format!("-re -stream_loop -1 -i {} -c copy {output}", file.display()))
}

/// ffmpeg decoding `pictures` pictures of a stream, and the sound that comes with them. Whatever
/// does not decode is written to its standard error. Times are not rounded to whole pictures: two of
/// a live source could fall together.
pub fn ffmpeg_decodes(input: &str, pictures: u32) -> Program {
    ffmpeg(&format!("{input} -fps_mode vfr -enc_time_base 1:90000 -frames:v {pictures} -f null -"))
}

/// ffprobe listing the first packets of a stream's picture: `K_` begins the line of a key frame.
pub fn ffprobe_packets(input: &str, count: u32) -> Program {
    Program::words(&format!(
        "ffprobe -hide_banner -loglevel error -select_streams v -show_entries packet=flags \
         -of csv=p=0 -read_intervals %+#{count} {input}"
    ))
}

/// GStreamer running a pipeline to its end.
pub fn gst(pipeline: &str) -> Program {
    Program::words(&format!("gst-launch-1.0 -q {pipeline}"))
        .env("GST_REGISTRY_FORK", "no")
        .env("GST_DEBUG_NO_COLOR", "1")
}

/// GStreamer decoding `pictures` pictures at the end of a pipeline. It is ended then, not asked to
/// end: `rtspsrc` 1.22 fails now and then when it is stopped, because it cancels its own PAUSE.
pub fn gst_decodes(pipeline: &str, pictures: u32) -> Program {
    Program::words(&format!("gst-launch-1.0 -v {pipeline} ! fakesink silent=false"))
        .until("= chain", pictures as usize)
}
