//! JPEG 2000 without decoding, against OpenJPEG: decode, work, encode.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result};
use outflow_labs::figures::{progress, quantile, rounded};
use outflow_media::image::{Cpu, Pixels, Rect, Shape, convert, crop, ppm, shrink};
use outflow_media::jpeg2000::{Selection, select};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::programs::processor_time;

const SHAPE: Shape = Shape { pixels: Pixels::Rgb, width: 1920, height: 1080 };
const MIDDLE: Rect = Rect { left: 480, top: 270, width: 960, height: 540 };
/// Tiles of a quarter of the width and height, ten to one.
const CODING: &str = "-t 480,270 -n 5 -p RPCL -r 10";

/// What is wanted, and the image that is encoded for it otherwise.
struct Cut {
    name: &'static str,
    selection: Selection,
    image: &'static str,
}

const ALL: Selection = Selection { layers: None, halved: 0, gray: false, part: None };
const CUTS: [Cut; 3] = [
    Cut { name: "jpeg2000_gray", selection: Selection { gray: true, ..ALL }, image: "gray.pgm" },
    Cut { name: "jpeg2000_crop", selection: Selection { part: Some(MIDDLE), ..ALL }, image: "crop.ppm" },
    Cut { name: "jpeg2000_shrink", selection: Selection { halved: 1, ..ALL }, image: "shrink.ppm" },
];

/// The figures of each cut. `copy`: bytes a second that a plain copy moves.
pub(crate) fn figures(rounds: usize, time: Duration, cpu: usize, copy: f64) -> Result<Map<String, Value>> {
    let folder = tempfile::tempdir()?;
    write_images(&folder)?;
    let openjpeg = |program: &str, from: &str, to: &str, options: &str| {
        let mut line = vec![program, "-i", from, "-o", to];
        line.extend(options.split_whitespace());
        processor_time(&line, folder.path(), cpu)
    };
    openjpeg("opj_compress", "whole.ppm", "whole.j2k", CODING)?;
    let whole = std::fs::read(folder.path().join("whole.j2k")).context("OpenJPEG wrote nothing")?;
    let mut figures = Map::new();
    for cut in &CUTS {
        let (mut ours, mut theirs, mut left) = (Vec::new(), Vec::new(), 0);
        for _ in 0..rounds {
            let (seconds, bytes) = cut_time(&whole, &cut.selection, time)?;
            ours.push(seconds);
            left = bytes;
            let decoded = openjpeg("opj_decompress", "whole.j2k", "decoded.ppm", "")?;
            theirs.push((decoded + openjpeg("opj_compress", cut.image, "out.j2k", CODING)?).as_secs_f64());
        }
        let (ours, theirs) = (quantile(&ours, 0.5), quantile(&theirs, 0.5));
        progress(format!("{:<16}{:>7.0} frames/s, OpenJPEG {:>6.1}", cut.name, 1.0 / ours, 1.0 / theirs));
        let share = (whole.len() + left) as f64 / ours / copy;
        let of_it = json!({
            "fps_core": (1.0 / ours).round(),
            "bandwidth_share_pct": rounded(100.0 * share),
            "decode_encode_ratio": rounded(theirs / ours),
        });
        figures.insert(cut.name.to_owned(), of_it);
    }
    Ok(figures)
}

/// What a codestream takes to be cut, and the bytes that are left of it.
fn cut_time(whole: &[u8], selection: &Selection, time: Duration) -> Result<(f64, usize)> {
    let mut out = Vec::with_capacity(whole.len());
    let seconds = super::seconds_a_frame(time, || {
        out.clear();
        select(black_box(whole), selection, &mut out)?;
        Ok(())
    })?;
    Ok((seconds, out.len()))
}

/// The image, and what would be encoded of it after each operation: to work on the pixels themselves
/// is not counted.
fn write_images(folder: &TempDir) -> Result<()> {
    let write = |name: &str, shape: Shape, pixels: &[u8]| {
        let mut file = Vec::new();
        ppm::emit(shape, &mut file).context("no such format")?;
        file.extend_from_slice(pixels);
        std::fs::write(folder.path().join(name), file).context("cannot write an image")
    };
    let of = |at: usize| {
        let (x, y) = (at % SHAPE.width, at / SHAPE.width);
        [x / 8 + y % 31, y / 5 + x % 17, (x * y / 991) % 256].map(|value| value as u8)
    };
    let whole: Vec<u8> = (0..SHAPE.width * SHAPE.height).flat_map(of).collect();
    write("whole.ppm", SHAPE, &whole)?;
    let cpu = Cpu::detect();
    let mut gray = vec![0; SHAPE.width * SHAPE.height];
    convert(cpu, (Pixels::Rgb, &whole), (Pixels::Gray, &mut gray));
    write("gray.pgm", Shape { pixels: Pixels::Gray, ..SHAPE }, &gray)?;
    let (mut part, mut small) = (Vec::new(), Vec::new());
    crop(SHAPE, &whole, MIDDLE, &mut part);
    write("crop.ppm", Shape { width: MIDDLE.width, height: MIDDLE.height, ..SHAPE }, &part)?;
    let shape = shrink(cpu, SHAPE, &whole, 2, &mut small).context("it can be halved")?;
    write("shrink.ppm", shape, &small)
}
