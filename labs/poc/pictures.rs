//! What is seen: ffmpeg decodes the units that were on time, and the pictures are compared with those that it
//! decodes of all units.
//!
//! Slices that are missing are left out, and ffmpeg conceals them as it does by default. Of a picture without its
//! header, or with nothing but that, nothing is given to it, and nothing of B pictures that are shown before such a
//! picture: it would show others in their place. A picture that does not come out is the last one before it.
//! PSNR is of luma, the mean of all pictures that count, each 60 dB at most (they are the same then).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use outflow_labs::programs::ffmpeg;

use crate::score::WARM_UP;
use crate::stream::{Kind, SIZE, Stream, UNITS};
use crate::wire::HEADER;

/// Pictures that are alike would be infinitely near.
const PSNR_MAX: f64 = 60.0;
const PATIENCE: Duration = Duration::from_secs(300);
const LUMA: usize = SIZE.0 * SIZE.1;
const FRAME: usize = LUMA * 3 / 2;

/// Decoded pictures.
pub(crate) struct Decoded {
    /// Where each stands in the file, by its place among those that are shown.
    places: BTreeMap<usize, usize>,
    file: File,
}

impl Decoded {
    /// Decodes the units that were on time. Files are kept in the folder as long as they are needed.
    pub(crate) fn of(stream: &Stream, is_on_time: &[bool], folder: &Path) -> Result<Self> {
        let at = |ending: &str| folder.join(format!("decoded.{ending}"));
        let (ivf, raw, list) = (at("ivf"), at("yuv"), at("md5"));
        std::fs::write(&ivf, container(stream, is_on_time))?;
        for file in [&raw, &list] {
            std::fs::write(file, "")?;
        }
        let all = "-map 0:v -fps_mode passthrough -pix_fmt yuv420p";
        let (from, raw_to, list_to) = (ivf.display(), raw.display(), list.display());
        let line =
            format!("-threads 1 -i {from} {all} -f rawvideo -y {raw_to} {all} -f framemd5 -y {list_to}");
        // Where so little is left that ffmpeg gives up, what it has decoded counts.
        ffmpeg(&line).start()?.wait(PATIENCE)?;
        let mut places = BTreeMap::new();
        let text = std::fs::read_to_string(&list)?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        // Stream, dts, pts, duration, size, hash.
        for (place, line) in lines.enumerate() {
            let shown = line.split(',').nth(2).and_then(|field| field.trim().parse().ok());
            places.entry(shown.context("a time of a picture")?).or_insert(place);
        }
        let file = File::open(&raw)?;
        std::fs::remove_file(&raw)?;
        Ok(Decoded { places, file })
    }

    /// What is seen in the place of a picture: all planes, if there is anything at all.
    pub(crate) fn seen(&self, shown: usize) -> Result<Option<Vec<u8>>> {
        let Some((_, place)) = self.places.range(..=shown).next_back() else { return Ok(None) };
        let mut frame = vec![0; FRAME];
        self.file.read_exact_at(&mut frame, (place * FRAME) as u64)?;
        Ok(Some(frame))
    }

    /// PSNR of each picture that counts, in the order in which they are shown, against another decoding.
    pub(crate) fn psnr_db(&self, clean: &Decoded, pictures: usize) -> Result<Vec<f64>> {
        let one = |shown| {
            Ok(match (self.seen(shown)?, clean.seen(shown)?) {
                (Some(seen), Some(clean)) => psnr_db(&seen[..LUMA], &clean[..LUMA]),
                _ => 0.0,
            })
        };
        (WARM_UP..pictures).map(one).collect()
    }
}

fn psnr_db(a: &[u8], b: &[u8]) -> f64 {
    let squares: u64 = a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum();
    (10.0 * (255.0_f64.powi(2) * a.len() as f64 / squares as f64).log10()).min(PSNR_MAX)
}

/// Pictures in a file that ffmpeg reads, with their places as times (IVF, a header and the bytes of each).
fn container(stream: &Stream, is_on_time: &[bool]) -> Vec<u8> {
    let (mut frames, mut count, mut has_reference) = (Vec::new(), 0_u32, false);
    for (number, picture) in stream.pictures.iter().enumerate() {
        let there = &is_on_time[number * UNITS..][..UNITS];
        let is_there = there[0] && there[1..].contains(&true);
        if picture.kind != Kind::B {
            has_reference = is_there;
        }
        if !(is_there && has_reference) {
            continue;
        }
        let units = picture.units.iter().zip(there).filter(|(_, on_time)| **on_time);
        let bytes: Vec<u8> = units.flat_map(|(unit, _)| &unit[HEADER..]).copied().collect();
        frames.extend((bytes.len() as u32).to_le_bytes());
        frames.extend((picture.shown as u64).to_le_bytes());
        frames.extend(bytes);
        count += 1;
    }
    let mut file = b"DKIF\0\0\x20\0mpg2".to_vec();
    file.extend((SIZE.0 as u16).to_le_bytes());
    file.extend((SIZE.1 as u16).to_le_bytes());
    for field in [25, 1, count, 0] {
        file.extend(u32::to_le_bytes(field));
    }
    file.extend(frames);
    file
}

/// Pictures of several decodings, one row for each, as a PNG.
pub(crate) fn side_by_side(rows: &[&Decoded], shown: &[usize], folder: &Path, png: &Path) -> Result<()> {
    // In the order of what I420 has: a plane of luma, and two of half the width and height.
    let mut planes: Vec<Vec<u8>> = vec![Vec::new(); 3];
    let sizes = [(0, SIZE), (LUMA, (SIZE.0 / 2, SIZE.1 / 2)), (LUMA * 5 / 4, (SIZE.0 / 2, SIZE.1 / 2))];
    for row in rows {
        let grey = || vec![128; FRAME];
        let seen = shown.iter().map(|shown| Ok(row.seen(*shown)?.unwrap_or_else(grey)));
        let seen = seen.collect::<Result<Vec<_>>>()?;
        for (plane, (from, (width, height))) in planes.iter_mut().zip(sizes) {
            for line in 0..height {
                seen.iter().for_each(|frame| plane.extend(&frame[from + line * width..][..width]));
            }
        }
    }
    let raw = folder.join("rows.yuv");
    std::fs::write(&raw, planes.concat())?;
    let (width, height) = (SIZE.0 * shown.len(), SIZE.1 * rows.len());
    ffmpeg(&format!(
        "-f rawvideo -pix_fmt yuv420p -video_size {width}x{height} -i {} -frames:v 1 -update 1 -y {}",
        raw.display(),
        png.display()
    ))
    .finish(PATIENCE)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_one_in_all_samples_is_48_db() {
        assert!((psnr_db(&[1; 100], &[2; 100]) - 48.13).abs() < 0.01);
        assert_eq!(psnr_db(&[7; 100], &[7; 100]), PSNR_MAX);
    }
}
