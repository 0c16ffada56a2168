//! How video is coded and played: arguments that several of these commands have, and what they stand for.

use std::thread::available_parallelism;

use clap::Args;
use outflow_wavelet::y4m::{self, Rate};
use outflow_wavelet::{Codestream, Coding, coding, openjpeg};

/// How pictures are coded.
#[derive(Debug, Args)]
pub(super) struct CodingArgs {
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
    pub(super) fn coding(&self) -> Result<Coding, String> {
        let coding = match &self.ratios[..] {
            [] => Coding::of_layers(self.layers),
            ratios => Coding::of_ratios(ratios.to_vec()),
        };
        coding.map_err(|error| error.to_string())
    }

    pub(super) fn threads(&self) -> usize {
        threads(self.threads)
    }
}

pub(super) fn threads(wanted: Option<usize>) -> usize {
    wanted.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)).max(1)
}

pub(super) fn rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text).ok_or_else(|| "give frames a second, as in 25 or 30000/1001".to_owned())
}

/// Leaves the layers of a level.
pub(super) fn cut(codestream: &mut Codestream, level: usize) -> Result<(), String> {
    let coded = codestream.layers_coded();
    let layers = coding::layers_of_level(coded, level);
    codestream.truncate(layers.ok_or(format!("there is no level {level}: there are 1 to {coded}"))?);
    Ok(())
}

/// What stands in front of the pictures of a codestream: what stood in front of those that it was coded
/// from, if it tells, and this rate if it does not.
pub(super) fn y4m_header(codestream: &Codestream, rate: Rate) -> Result<y4m::Header, String> {
    let shape = openjpeg::shape(codestream.header()).map_err(|error| error.to_string())?;
    let told = codestream.y4m().filter(|header| header.shape == shape);
    let mut header = told.unwrap_or_else(|| y4m::Header::new(shape, rate));
    header.rate.get_or_insert(rate);
    Ok(header)
}
