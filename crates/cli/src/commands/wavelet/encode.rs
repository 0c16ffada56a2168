//! `outflow wavelet encode`

use std::path::PathBuf;

use clap::Args;
use outflow_wavelet::{Codestream, openjpeg, pool, y4m};

use super::coding::{CodingArgs, cut};
use super::files::{cannot_write, input, name, output, progress};

/// Codes raw video: one codestream a frame, one behind the other
///
/// ffmpeg reads such a file with `-f j2k_pipe`. Each codestream holds the header of the Y4M in its comment,
/// so nothing gets lost: frame rate, pixel aspect, where chroma is sited.
#[derive(Debug, Args)]
pub(super) struct Encode {
    /// Raw video (Y4M; 8 bits; mono, 4:2:0, 4:2:2 or 4:4:4), or - for standard input
    #[arg(value_name = "IN.y4m")]
    from: PathBuf,
    /// What is written, or - for standard output
    #[arg(value_name = "OUT.j2k")]
    to: PathBuf,
    #[command(flatten)]
    coding: CodingArgs,
    /// Write the layers of this level alone: 1 all of them, the number of layers the base
    #[arg(long, value_name = "LEVEL", default_value_t = 1)]
    level: usize,
}

impl Encode {
    pub(super) fn run(self) -> Result<(), String> {
        let from = name(&self.from);
        let (coding, threads) = (self.coding.coding()?, self.coding.threads());
        let video = y4m::Reader::new(input(&self.from)?).map_err(|error| format!("{from}: {error}"))?;
        let mut out = output(&self.to)?;
        let (comment, bar) = (video.header().to_string(), progress());
        let (mut raw, mut written) = (0, 0);
        let code = |picture: Result<outflow_wavelet::Picture, y4m::ReadError>| {
            let picture = picture.map_err(|error| format!("{from}: {error}"))?;
            let coded = openjpeg::encode(&picture, &coding, &comment).map_err(|error| error.to_string())?;
            let mut coded = Codestream::new(coded).map_err(|error| error.to_string())?;
            cut(&mut coded, self.level)?;
            Ok((picture.samples().len(), coded.to_bytes()))
        };
        pool::in_order(threads, video, code, |coded: Result<_, String>| -> Result<(), String> {
            let (samples, bytes) = coded?;
            out.write_all(&bytes).map_err(cannot_write)?;
            (raw, written) = (raw + samples, written + bytes.len());
            bar.inc(1);
            bar.set_message(format!(
                "{:.2} MB, 1/{:.1} of raw",
                written as f64 / 1e6,
                raw as f64 / written as f64
            ));
            Ok(())
        })?;
        out.flush().map_err(cannot_write)?;
        bar.abandon();
        Ok(())
    }
}
