//! `outflow wavelet`

mod decode;
mod encode;
mod play;
mod screen;
mod send;
mod source;

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use outflow_wavelet::y4m::{self, Rate};
use outflow_wavelet::{Codestream, Coding, coding, openjpeg};

use super::fail;

/// Codes video in 33 quality layers, sends it, and plays what arrives of it
///
/// Every frame is a JPEG 2000 codestream by itself. A receiver of level 1 gets all layers, one of level 33
/// the base alone; any number of layers from the base up is a picture. Raw video comes and goes as Y4M,
/// which ffmpeg and GStreamer read and write.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow wavelet encode clip.y4m clip.j2k\n  \
    outflow wavelet decode clip.j2k base.y4m --level 33 --reference clip.y4m\n  \
    outflow wavelet send clip.j2k rtp://127.0.0.1:5004 --loop --sdp clip.sdp\n  \
    outflow wavelet play clip.sdp seen.y4m\n  \
    outflow wavelet play rtsp://127.0.0.1:8554/clip - > seen.y4m\n\n\
    Anything that ffmpeg reads can be coded:\n  \
    ffmpeg -i clip.mp4 -pix_fmt yuv420p -f yuv4mpegpipe - | outflow wavelet encode - clip.j2k")]
pub(crate) struct Wavelet {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Encode(encode::Encode),
    Decode(decode::Decode),
    Send(send::Send),
    Play(play::Play),
}

impl Wavelet {
    pub(crate) fn run(self) -> ExitCode {
        let done = match self.what {
            What::Encode(encode) => encode.run(),
            What::Decode(decode) => decode.run(),
            What::Send(send) => send.run(),
            What::Play(play) => play.run(),
        };
        done.map_or_else(fail, |()| ExitCode::SUCCESS)
    }
}

/// How pictures are coded.
#[derive(Debug, Args)]
struct CodingArgs {
    /// Quality layers, 1 to 100
    #[arg(long, value_name = "COUNT", default_value_t = coding::LAYERS)]
    layers: usize,
    /// How many times smaller than raw video it is with all layers up to each, from the base up, with
    /// commas between; for example 400,50,6
    #[arg(long, value_name = "RATIOS", value_delimiter = ',', conflicts_with = "layers")]
    ratios: Vec<f32>,
    /// Frames that are worked on at the same time; as many as there are processors if left out
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
}

impl CodingArgs {
    fn coding(&self) -> Result<Coding, String> {
        let coding = match &self.ratios[..] {
            [] => Coding::of_layers(self.layers),
            ratios => Coding::of_ratios(ratios.to_vec()),
        };
        coding.map_err(|error| error.to_string())
    }

    fn threads(&self) -> usize {
        threads(self.threads)
    }
}

fn threads(wanted: Option<usize>) -> usize {
    wanted.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)).max(1)
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// A file's name for messages.
fn name(path: &Path) -> String {
    if is_standard(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Opens a file, or standard input.
fn input(path: &Path) -> Result<Box<dyn BufRead + std::marker::Send>, String> {
    if is_standard(path) {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Box::new(BufReader::new(file)))
}

/// Makes a file, or takes standard output.
fn output(path: &Path) -> Result<Box<dyn Write>, String> {
    if is_standard(path) {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    }
    let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Box::new(BufWriter::new(file)))
}

fn cannot_write(error: io::Error) -> String {
    format!("cannot write: {error}")
}

/// Leaves the layers of a level.
fn cut(codestream: &mut Codestream, level: usize) -> Result<(), String> {
    let coded = codestream.layers_coded();
    let layers = coding::layers_of_level(coded, level);
    codestream.truncate(layers.ok_or(format!("there is no level {level}: there are 1 to {coded}"))?);
    Ok(())
}

/// What stands in front of the pictures of a codestream: what stood in front of those that it was coded
/// from, if it tells, and this rate if it does not.
fn y4m_header(codestream: &Codestream, rate: Rate) -> Result<y4m::Header, String> {
    let shape = openjpeg::shape(codestream.header()).map_err(|error| error.to_string())?;
    let told = codestream.y4m().filter(|header| header.shape == shape);
    let mut header = told.unwrap_or_else(|| y4m::Header::new(shape, rate));
    header.rate.get_or_insert(rate);
    Ok(header)
}

/// Shows how far it has got, on standard error.
fn progress() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {pos} frames · {per_sec} · {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar
}

fn rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text).ok_or_else(|| "give frames a second, as in 25 or 30000/1001".to_owned())
}
