//! The decoders: dav1d and libvpx's `vpxdec`.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Coding, Plan, RATE};
use crate::process::Program;

const PATIENCE: Duration = Duration::from_secs(60);
/// What begins each temporal unit of AV1: a delimiter of no bytes, with its size.
pub(super) const DELIMITER: [u8; 2] = [0x12, 0x00];

/// A frame's number in the plan, and its bytes.
pub type Numbered<'a> = (usize, &'a [u8]);

/// What is wanted of a picture of several layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All of them. dav1d gives them by `--alllayers 1`, of operating point 0, to which they all belong. libvpx
    /// gives but the last of what it is given at once, so each is given as if it were a picture.
    Every,
    /// The highest that there is, as a player does it. libwebrtc has dav1d do so by operating point 31 without
    /// `all_layers`: there is none of that number, so all is decoded whatever its layer. (With operating point 0,
    /// dav1d knows of higher layers and waits for the next picture.) libvpx it gives the layers of a picture one
    /// behind the other.
    Highest,
}

impl Wanted {
    /// The frames that come out.
    fn of(self, plan: &Plan, frames: &[Numbered<'_>]) -> Vec<usize> {
        let last = |picture: &[Numbered<'_>]| picture.last().map(|(number, _)| *number);
        match self {
            Wanted::Every => frames.iter().map(|(number, _)| *number).collect(),
            Wanted::Highest => pictures(plan, frames).filter_map(last).collect(),
        }
    }
}

/// Decodes frames, and tells what came of those that are wanted: the same number for the same picture.
///
/// # Errors
/// The decoder complains, or gives other pictures.
pub fn decode(
    coding: Coding,
    plan: &Plan,
    frames: &[Numbered<'_>],
    wanted: Wanted,
) -> Result<Vec<(usize, u64)>> {
    let mut hashes = Vec::new();
    raw(coding, plan, frames, wanted, |number, picture| {
        let mut hasher = DefaultHasher::new();
        picture.hash(&mut hasher);
        hashes.push((number, hasher.finish()));
        Ok(())
    })?;
    Ok(hashes)
}

/// Decodes frames, and hands over those that are wanted, with their numbers, as I420.
///
/// # Errors
/// The decoder complains, or gives other pictures; or what they are handed to does.
pub fn raw(
    coding: Coding,
    plan: &Plan,
    frames: &[Numbered<'_>],
    wanted: Wanted,
    take: impl FnMut(usize, &[u8]) -> Result<()>,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (from, to) = (folder.path().join("in"), folder.path().join("out.yuv"));
    let (bytes, program) = match (coding.is_av1(), wanted) {
        (true, Wanted::Every) => (temporal_units(plan, frames), "dav1d -q --oppoint 0 --alllayers 1"),
        (true, Wanted::Highest) => (temporal_units(plan, frames), "dav1d -q --oppoint 31 --alllayers 0"),
        (false, Wanted::Every) => (ivf(plan, frames.chunks(1)), "vpxdec --rawvideo --i420"),
        (false, Wanted::Highest) => (ivf(plan, pictures(plan, frames)), "vpxdec --rawvideo --i420"),
    };
    std::fs::write(&from, bytes)?;
    let (input, output) = (from.display().to_string(), to.display().to_string());
    let program = Program::words(program).args(["-o", &output]);
    let program = if coding.is_av1() {
        program.args(["--demuxer", "section5", "-i", &input])
    } else {
        program.arg(input)
    };
    let done = program.finish(PATIENCE)?;
    ensure!(done.stderr.trim().is_empty(), "it complained: {}", done.stderr);
    split(plan, &wanted.of(plan, frames), &std::fs::read(&to)?, take)
}

/// Pictures of one size or another, one behind the other.
fn split(
    plan: &Plan,
    numbers: &[usize],
    mut raw: &[u8],
    mut take: impl FnMut(usize, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut had = 0;
    for number in numbers {
        let (width, height) = plan.shape.size_of(plan.frames[*number].spatial, plan.spatial);
        let Some((picture, rest)) = raw.split_at_checked(width * height * 3 / 2) else { break };
        take(*number, picture)?;
        (raw, had) = (rest, had + 1);
    }
    let over = raw.len();
    ensure!(had == numbers.len() && over == 0, "{had} pictures of {}, and {over} bytes over", numbers.len());
    Ok(())
}

/// The frames of each picture.
fn pictures<'a, 'f>(plan: &'a Plan, frames: &'a [Numbered<'f>]) -> impl Iterator<Item = &'a [Numbered<'f>]> {
    frames.chunk_by(|(a, _), (b, _)| plan.frames[*a].picture == plan.frames[*b].picture)
}

/// As the AV1 specification has them in its section 5.
fn temporal_units(plan: &Plan, frames: &[Numbered<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for picture in pictures(plan, frames) {
        bytes.extend(DELIMITER);
        picture.iter().for_each(|(_, frame)| bytes.extend(*frame));
    }
    bytes
}

fn ivf<'a>(plan: &Plan, units: impl Iterator<Item = &'a [Numbered<'a>]>) -> Vec<u8> {
    let units: Vec<Vec<u8>> =
        units.map(|unit| unit.iter().flat_map(|(_, frame)| frame.iter().copied()).collect()).collect();
    let mut bytes = b"DKIF\0\0\x20\0VP90".to_vec();
    let (width, height) = plan.shape.size;
    bytes.extend([width as u16, height as u16].iter().flat_map(|side| side.to_le_bytes()));
    bytes.extend([RATE, 1, units.len() as u32, 0].iter().flat_map(|number| number.to_le_bytes()));
    for (time, unit) in (0_u64..).zip(&units) {
        bytes.extend((unit.len() as u32).to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.extend(unit);
    }
    bytes
}
