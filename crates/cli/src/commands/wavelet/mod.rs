//! `outflow wavelet`

mod coding;
mod decode;
mod encode;
mod files;
mod play;
mod screen;
mod send;
mod source;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use outflow_serve::fail;

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
