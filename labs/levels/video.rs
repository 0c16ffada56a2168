//! The video: wavelet frames of 33 quality layers, whole or cut to a level each.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use outflow_labs::programs::{clip, missing};
use outflow_labs::wavelet::{coded, pictures};
use outflow_wavelet::coding::{LAYERS, layers_of_level};
use outflow_wavelet::{Codestream, Shape, rtp};

/// Levels are counted as layers are.
pub(crate) const LEVELS: usize = LAYERS;
/// Frames a second, as in the paper.
pub(crate) const FPS: u32 = 15;
/// Frames of the clip, over and over. A divisor of [`LEVELS`]: the cuts are spread over all of them evenly.
const FRAMES: usize = 11;
/// From one receiver's level to the next one's. Prime to [`LEVELS`], so that any `LEVELS` in a row have all
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
        let scaled = format!("-i {} -vf scale=352:288", clip().display());
        let pictures = pictures(&scaled, FRAMES)?;
        let shape = pictures.first().context("a clip without pictures")?.shape();
        let frames = coded(&pictures)?;
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
        rtp::description(Some(self.shape), Ipv4Addr::UNSPECIFIED.into(), &[port])
    }
}
