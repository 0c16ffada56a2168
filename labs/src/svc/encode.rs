//! The encoders: small programs in C over libaom and libvpx, compiled where they are needed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::decode::DELIMITER;
use super::{Coding, Plan, RATE, Wanted, decode};
use crate::process::Program;
use crate::programs::{ffmpeg, missing};

/// How long encoding may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Frames as they came from the encoder.
#[derive(Debug)]
pub struct Encoded {
    /// How they are coded and sent.
    pub coding: Coding,
    /// Which frames there are.
    pub plan: Plan,
    /// The bytes of each frame, without temporal delimiters.
    pub frames: Vec<Vec<u8>>,
    /// What each frame is when all are decoded.
    pub pictures: Vec<u64>,
}

fn library(coding: Coding) -> (&'static str, &'static str, &'static str) {
    match coding.is_av1() {
        true => ("av1", "-laom", "aom/aomcx.h"),
        false => ("vp9", "-lvpx", "vpx/vp8cx.h"),
    }
}

/// Why there cannot be such frames here, if so.
pub fn lacking(coding: Coding) -> Option<String> {
    let (_, _, header) = library(coding);
    let decoder = if coding.is_av1() { "dav1d" } else { "vpxdec" };
    let without_header = || {
        let mut cc = Command::new("cc");
        cc.args(["-E", "-include", header, "-x", "c", "/dev/null", "-o", "/dev/null"]);
        let is_there = cc.output().is_ok_and(|output| output.status.success());
        (!is_there).then(|| format!("{header} is not installed"))
    };
    ["ffmpeg", "cc", decoder].iter().find_map(|name| missing(name)).or_else(without_header)
}

/// Encodes a test picture that moves.
///
/// # Errors
/// A program is missing or fails.
pub fn encode(coding: Coding, plan: Plan) -> Result<Encoded> {
    let folder = tempfile::tempdir()?;
    let (width, height) = plan.shape.size;
    let pictures = plan.frames.last().map_or(0, |frame| frame.picture + 1);
    let file = folder.path().join("pictures");
    let raw = format!("-frames:v {pictures} -pix_fmt yuv420p -f rawvideo {}", file.display());
    ffmpeg(&format!("-f lavfi -i testsrc2=size={width}x{height}:rate={RATE} {raw}")).finish(PATIENCE)?;
    encode_pictures(coding, plan, &file)
}

/// Encodes pictures of I420, which stand in this file one behind the other.
///
/// # Errors
/// A program is missing or fails.
pub fn encode_pictures(coding: Coding, plan: Plan, pictures: &Path) -> Result<Encoded> {
    let folder = tempfile::tempdir()?;
    let program = compiled(coding, folder.path())?;
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("plan"), plan.text())?;
    let (width, height) = plan.shape.size;
    let numbers = [width, height, plan.spatial.into(), plan.temporal.into()].map(|number| number.to_string());
    Program::new(program.display().to_string())
        .args(numbers)
        .args([file("plan"), pictures.display().to_string(), file("out")])
        .args(plan.shape.kbps.map(|kbps| kbps.to_string()))
        .finish(PATIENCE)?;
    let frames = split(&std::fs::read(file("out"))?).context("the encoder's output is cut off")?;
    ensure!(frames.len() == plan.frames.len(), "{} frames of {}", frames.len(), plan.frames.len());
    let all: Vec<_> = frames.iter().map(Vec::as_slice).enumerate().collect();
    let decoded = decode(coding, &plan, &all, Wanted::Every)?;
    let pictures = decoded.into_iter().map(|(_, picture)| picture).collect();
    Ok(Encoded { coding, plan, frames, pictures })
}

fn compiled(coding: Coding, folder: &Path) -> Result<PathBuf> {
    let (name, link, _) = library(coding);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("svc").join(name).with_extension("c");
    let program = folder.join(name);
    Program::words("cc -O2 -Wall -Wextra -Werror -o")
        .args([&program, &source].map(|path| path.display().to_string()))
        .arg(link)
        .finish(PATIENCE)?;
    Ok(program)
}

/// Frames behind their lengths. RTP has no temporal delimiters.
fn split(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (frame, behind) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        frames.push(frame.strip_prefix(&DELIMITER).unwrap_or(frame).to_vec());
        bytes = behind;
    }
    bytes.is_empty().then_some(frames)
}
