//! `outflow wavelet decode`

use std::io::BufRead;
use std::path::{Path, PathBuf};

use clap::Args;
use outflow_wavelet::psnr::Mse;
use outflow_wavelet::y4m::{self, Rate};
use outflow_wavelet::{Picture, codestream, openjpeg, pool};
use serde::Serialize;

use super::coding::{cut, rate, threads, y4m_header};
use super::files::{cannot_write, input, is_standard, name, output, progress};

/// Decodes codestreams to raw video, at any level
///
/// With a reference it says how near the pictures are to it: the peak signal-to-noise ratio of each frame,
/// and of all (of the mean error, as ffmpeg's filter psnr has it).
#[derive(Debug, Args)]
pub(super) struct Decode {
    /// Codestreams one behind the other, or - for standard input
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// Raw video (Y4M) that is written, or - for standard output
    #[arg(value_name = "OUT.y4m")]
    to: PathBuf,
    /// Decode the layers of this level alone: 1 all of them, the number of layers the base
    #[arg(long, value_name = "LEVEL", default_value_t = 1)]
    level: usize,
    /// Raw video to compare with, frame by frame
    #[arg(long, value_name = "IN.y4m")]
    reference: Option<PathBuf>,
    /// Print one JSON object on standard output at the end
    #[arg(long)]
    json: bool,
    /// Frames a second, where the file does not tell
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "25")]
    fps: Rate,
    /// Frames that are worked on at the same time; as many as there are processors if left out
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
}

/// What `--json` prints. Where nothing differs, a ratio is infinite: `null`.
#[derive(Debug, Default, Serialize)]
struct Report {
    level: usize,
    frames: usize,
    /// Of the layers that were decoded.
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    psnr: Option<Ratios>,
}

#[derive(Debug, Serialize)]
struct Ratios {
    db: f64,
    planes_db: Vec<f64>,
    frames_db: Vec<f64>,
}

impl Ratios {
    fn new(all: &[Mse]) -> Option<Self> {
        let mean = Mse::mean(all)?;
        Some(Ratios {
            db: mean.psnr_db(),
            planes_db: mean.psnr_planes_db().collect(),
            frames_db: all.iter().map(Mse::psnr_db).collect(),
        })
    }
}

/// Raw video to compare with.
struct Reference {
    name: String,
    video: y4m::Reader<Box<dyn BufRead + Send>>,
    errors: Vec<Mse>,
}

impl Reference {
    fn open(path: &Path) -> Result<Self, String> {
        let name = name(path);
        let video = y4m::Reader::new(input(path)?).map_err(|error| format!("{name}: {error}"))?;
        Ok(Reference { name, video, errors: Vec::new() })
    }

    fn compare(&mut self, picture: &Picture) -> Result<Mse, String> {
        let wrong = |what: String| format!("{}: {what}", self.name);
        let original = self.video.picture().map_err(|error| wrong(error.to_string()))?;
        let original = original.ok_or_else(|| wrong("it has less frames than were decoded".to_owned()))?;
        let mse = Mse::between(&original, picture);
        let mse = mse.ok_or_else(|| wrong("its pictures differ in size or sampling".to_owned()))?;
        self.errors.push(mse);
        Ok(mse)
    }
}

impl Decode {
    pub(super) fn run(self) -> Result<(), String> {
        if self.json && is_standard(&self.to) {
            return Err("--json writes to standard output, too: name a file for the video".to_owned());
        }
        let from = name(&self.from);
        let frames = codestream::Reader::new(input(&self.from)?);
        let mut reference = self.reference.as_deref().map(Reference::open).transpose()?;
        let mut out = output(&self.to)?;
        let (bar, mut header) = (progress(), None);
        let mut report = Report { level: self.level, ..Report::default() };
        let decode = |frame: Result<outflow_wavelet::Codestream, y4m::ReadError>| {
            let mut frame = frame.map_err(|error| format!("{from}: {error}"))?;
            cut(&mut frame, self.level)?;
            let picture = openjpeg::decode(&frame.to_bytes()).map_err(|error| format!("{from}: {error}"))?;
            Ok((frame, picture))
        };
        pool::in_order(threads(self.threads), frames, decode, |decoded: Result<_, String>| {
            let (frame, picture) = decoded?;
            if header.is_none() {
                let line = header.insert(y4m_header(&frame, self.fps)?);
                writeln!(out, "{line}").map_err(cannot_write)?;
            }
            if header.as_ref().is_some_and(|header| header.shape != picture.shape()) {
                return Err(format!("{from}: frame {} differs in size or sampling", report.frames));
            }
            y4m::write_picture(&mut out, &picture).map_err(cannot_write)?;
            let mse = reference.as_mut().map(|reference| reference.compare(&picture)).transpose()?;
            if let Some(mse) = mse.filter(|_| !self.json) {
                eprintln!("frame {}: {:.2} dB", report.frames, mse.psnr_db());
            }
            (report.frames, report.bytes) = (report.frames + 1, report.bytes + frame.length(usize::MAX));
            bar.inc(1);
            Ok(())
        })?;
        out.flush().map_err(cannot_write)?;
        bar.abandon();
        report.psnr = reference.and_then(|reference| Ratios::new(&reference.errors));
        self.tell(&report)
    }

    fn tell(&self, report: &Report) -> Result<(), String> {
        if self.json {
            let json = serde_json::to_string(report);
            println!("{}", json.map_err(|error| format!("the report cannot be written: {error}"))?);
        } else if let Some(psnr) = &report.psnr {
            eprintln!("{} frames at level {}: {:.2} dB", report.frames, report.level, psnr.db);
        }
        Ok(())
    }
}
