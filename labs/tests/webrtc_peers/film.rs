//! Films of which each picture is known by what it decodes to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use outflow_labs::process::Program;
use outflow_labs::programs::ffmpeg;
use outflow_labs::scene::PATIENCE;

/// Pictures a second.
pub(crate) const RATE: usize = 25;

/// How a film is coded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coding {
    pub(crate) size: (u32, u32),
    /// In pictures, from one key frame to the next.
    pub(crate) key_frames: usize,
    /// In pictures.
    pub(crate) length: usize,
    pub(crate) is_h264: bool,
}

impl Coding {
    fn arguments(self) -> String {
        let key_frames = format!("-g {0} -keyint_min {0}", self.key_frames);
        match self.is_h264 {
            // One slice a picture, as the peer reads it.
            true => format!(
                "-c:v libx264 -preset ultrafast -tune zerolatency -profile:v baseline {key_frames} \
                 -sc_threshold 0 -x264-params sliced-threads=0:slices=1 -b:v 400k -f h264"
            ),
            false => format!("-c:v libvpx -deadline realtime -cpu-used 8 {key_frames} -b:v 300k -f ivf"),
        }
    }
}

/// A film in a file.
#[derive(Debug)]
pub(crate) struct Film {
    pub(crate) coding: Coding,
    pub(crate) file: PathBuf,
    /// Where which picture stands.
    places: BTreeMap<String, usize>,
}

impl Film {
    /// Makes one, of a test picture.
    pub(crate) fn make(folder: &Path, coding: Coding) -> Result<Film> {
        let (width, height) = coding.size;
        let kind = if coding.is_h264 { "h264" } else { "ivf" };
        let file = folder.join(format!("film-{width}.{kind}"));
        let source = format!("-f lavfi -i testsrc2=size={width}x{height}:rate={RATE}");
        let made = format!("-frames:v {} -pix_fmt yuv420p {}", coding.length, coding.arguments());
        ffmpeg(&format!("{source} {made} -y {}", file.display())).finish(PATIENCE)?;
        let places: BTreeMap<_, _> = pictures(&file)?.into_iter().zip(0..).collect();
        ensure!(places.len() == coding.length, "{} pictures of {coding:?} differ", places.len());
        Ok(Film { coding, file, places })
    }

    /// The numbers of the pictures that a file has, in its order.
    ///
    /// # Errors
    /// It has other ones, or others than a peer shows that gets the film over and over, all of it: from a key frame on, each
    /// is the next one, or a key frame that the publisher was asked for.
    pub(crate) fn found_in(&self, file: &Path) -> Result<Vec<usize>> {
        let (width, height) = self.coding.size;
        let size = size(file)?;
        ensure!(size == format!("{width}x{height}"), "{size} instead of {width}x{height}");
        let found = pictures(file)?.into_iter().enumerate().map(|(at, digest)| {
            self.places.get(&digest).copied().with_context(|| format!("picture {at} is none of the film"))
        });
        let found = found.collect::<Result<Vec<usize>>>()?;
        let is_key = |place: usize| place.is_multiple_of(self.coding.key_frames);
        ensure!(found.first().is_some_and(|first| is_key(*first)), "no key frame first: {found:?}");
        for pair in found.windows(2) {
            let is_next = pair[1] == (pair[0] + 1) % self.coding.length;
            ensure!(is_next || is_key(pair[1]), "{} behind {}: {found:?}", pair[1], pair[0]);
        }
        Ok(found)
    }
}

/// Sound, a packet of 20 ms in each page of Ogg.
pub(crate) fn sound(folder: &Path) -> Result<PathBuf> {
    let file = folder.join("sound.ogg");
    let coding = "-c:a libopus -ac 2 -b:a 64k -frame_duration 20 -page_duration 20000";
    let source = "-f lavfi -i sine=frequency=440:sample_rate=48000 -t 4";
    ffmpeg(&format!("{source} {coding} -y {}", file.display())).finish(PATIENCE)?;
    Ok(file)
}

/// What each picture of a file decodes to.
fn pictures(file: &Path) -> Result<Vec<String>> {
    let line = format!("-i {} -map 0:v -fps_mode passthrough -f framehash -hash md5 -", file.display());
    let decoded = ffmpeg(&line).finish(PATIENCE)?;
    ensure!(decoded.stderr.trim().is_empty(), "{}: {}", file.display(), decoded.stderr);
    let lines = decoded.stdout.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let digest = line.rsplit(',').next().context("a line has no digest")?;
            Ok(digest.trim().to_owned())
        })
        .collect()
}

/// That of the first picture, as `640x360`: what heads IVF may say otherwise.
fn size(file: &Path) -> Result<String> {
    let line = "ffprobe -loglevel error -select_streams v -read_intervals %+#1 \
        -show_entries frame=width,height -of csv=p=0:s=x";
    let probed = Program::words(line).arg(file.display().to_string()).finish(PATIENCE)?;
    // Behind what has side data stands one more.
    Ok(probed.stdout.trim().trim_end_matches('x').to_owned())
}
