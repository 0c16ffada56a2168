//! The video: wavelet frames of 33 quality layers, whole or cut to a level each.

use std::fs::File;
use std::io::BufReader;
use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result, ensure};
use outflow_labs::programs::{clip, ffmpeg, missing};
use outflow_labs::relay::PATIENCE;
use outflow_media::Format;
use outflow_media::sdp::{self, Session};
use outflow_wavelet::coding::{LAYERS, layers_of_level};
use outflow_wavelet::openjpeg::encode;
use outflow_wavelet::rtp::track;
use outflow_wavelet::{Codestream, Coding, Shape, y4m};

/// Levels are counted as layers are.
pub(crate) const LEVELS: usize = LAYERS;
/// Frames a second, as in the paper.
pub(crate) const FPS: u32 = 15;
/// Frames of the clip, over and over. A divisor of [`LEVELS`]: the cuts are spread over all of them evenly.
const FRAMES: usize = 11;
/// From one receiver's level to the next one's. Prime to [`LEVELS`], so that any so many in a row have all
/// levels, and far apart.
const STEP: usize = 13;

/// The level of receiver number `number`, or of the `number`th frame that is cut.
pub(crate) fn level(number: usize) -> usize {
    1 + number * STEP % LEVELS
}

/// Frames of the clip, coded.
pub(crate) struct Video {
    shape: Shape,
    frames: Vec<Codestream>,
}

impl Video {
    /// The first frames of the demo clip, scaled as the paper has them.
    pub(crate) fn of_clip() -> Result<Self> {
        if let Some(why) = missing("ffmpeg") {
            anyhow::bail!(why);
        }
        let folder = tempfile::tempdir()?;
        let raw = folder.path().join("clip.y4m");
        let scaled = format!("-an -vf scale=352:288 -frames:v {FRAMES} -pix_fmt yuv420p {}", raw.display());
        ffmpeg(&format!("-i {} {scaled}", clip().display())).finish(PATIENCE)?;
        let reader = y4m::Reader::new(BufReader::new(File::open(raw)?))?;
        let shape = reader.header().shape;
        let coding = Coding::default();
        let code = |picture| Ok(Codestream::new(encode(&picture?, &coding, "")?)?);
        let frames = reader.map(code).collect::<Result<Vec<_>>>()?;
        ensure!(frames.len() == FRAMES, "the clip is too short: {} frames", frames.len());
        Ok(Self { shape, frames })
    }

    /// Its frames with all layers.
    pub(crate) fn whole(&self) -> Vec<Codestream> {
        self.frames.clone()
    }

    /// As many frames as there are levels, each cut to another one.
    pub(crate) fn cut(&self) -> Result<Vec<Codestream>> {
        let cut = |(number, frame): (usize, &Codestream)| {
            let mut frame = frame.clone();
            frame.truncate(layers_of_level(LAYERS, level(number)).context("there is no such level")?);
            Ok(frame)
        };
        self.frames.iter().cycle().take(LEVELS).enumerate().map(cut).collect()
    }

    /// Its description, as it comes to this port.
    pub(crate) fn description(&self, port: u16) -> String {
        let session = Session {
            name: "levels",
            id: 0,
            version: 0,
            origin: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            destination: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            ttl: None,
            ports: &[port],
            controls: false,
        };
        sdp::emit(&Format::Rtp(vec![track(Some(self.shape))]), &session)
    }
}
