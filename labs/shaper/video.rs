//! Six videos: coded once, so that every round sends the same bytes, and what is known of their pictures.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outflow_labs::process::Program;
use outflow_labs::programs::ffmpeg;
use outflow_wavelet::psnr::Mse;
use outflow_wavelet::{Picture, Sampling, Shape};

use crate::decode::{decode, each};

/// Pictures a second.
pub(crate) const FPS: usize = 25;
/// Pictures from a key frame to the next.
pub(crate) const GOP: usize = 50;
/// Headers of IP and UDP.
pub(crate) const HEADERS: usize = 28;
/// The largest RTP packet that ffmpeg is to send.
pub(crate) const PACKET_BYTES: usize = 1200;
/// What a fragment of a NAL unit has before it: RTP, FU indicator and header (RFC 6184, section 5.8).
const FRAGMENT_HEADERS: usize = 12 + 2;
const SIZE: (u32, u32) = (480, 272);
/// Pictures that are alike would be infinitely near.
const PSNR_MAX: f64 = 60.0;
/// How long coding may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// What there is to be seen: each moves in its own way.
const SCENES: [&str; 6] = [
    "testsrc2=size=SIZE:rate=25",
    "mandelbrot=size=SIZE:rate=25",
    "testsrc2=size=SIZE:rate=25,rotate=angle=t/4",
    "mandelbrot=size=SIZE:rate=25:start_scale=0.3,vflip",
    "testsrc2=size=SIZE:rate=25,scroll=horizontal=0.01:vertical=0.005",
    "mandelbrot=size=SIZE:rate=25:start_scale=0.05,hue=h=120",
];
pub(crate) const STREAMS: usize = SCENES.len();

/// B pictures between all others, a key frame every two seconds, as a live encoder is told what a line carries.
const CODING: &str = "-c:v libx264 -preset veryfast -threads 1 -g 50 -keyint_min 50 -bf 2 \
                      -b:v 560k -maxrate 700k -bufsize 300k";

/// A video.
pub(crate) struct Video {
    /// A transport stream.
    pub(crate) file: PathBuf,
    /// Bytes of all its packets, as they count on a link.
    pub(crate) bytes: usize,
    /// Of each picture, as it is decoded where nothing was lost.
    clean: Vec<Clean>,
    /// The luma of the pictures before they were coded.
    original: File,
}

struct Clean {
    hash: String,
    psnr_db: f64,
}

/// Codes all of them.
pub(crate) fn make(folder: &Path, pictures: usize) -> Result<Vec<Video>> {
    let made = SCENES.iter().enumerate().map(|(number, scene)| {
        let (ts, luma) = files(folder, number);
        let scene = scene.replace("SIZE", &format!("{}x{}", SIZE.0, SIZE.1));
        let count = format!("-map 0:v -frames:v {pictures}");
        ffmpeg(&format!(
            "-f lavfi -i {scene},format=yuv420p {count} {CODING} -f mpegts {} {count} \
             -vf extractplanes=y -f rawvideo {}",
            ts.display(),
            luma.display()
        ))
        .start()
    });
    for running in made.collect::<Result<Vec<_>>>()? {
        running.succeed(PATIENCE)?;
    }
    each(&SCENES, |number, _| Video::known(folder, number, pictures))
}

fn files(folder: &Path, number: usize) -> (PathBuf, PathBuf) {
    (folder.join(format!("{number}.ts")), folder.join(format!("{number}.y")))
}

impl Video {
    fn known(folder: &Path, number: usize, pictures: usize) -> Result<Self> {
        let (file, luma) = files(folder, number);
        let mut video =
            Video { bytes: bytes_on_link(&file)?, file, clean: Vec::new(), original: File::open(luma)? };
        let decoded = decode(&video.file)?;
        ensure!(decoded.pictures.len() == pictures, "{} pictures are decoded", decoded.pictures.len());
        for (place, (_, hash)) in decoded.pictures.iter().enumerate() {
            let psnr_db = video.psnr_db(place, &decoded.luma, place)?;
            video.clean.push(Clean { hash: hash.clone(), psnr_db });
        }
        Ok(video)
    }

    /// How long it is.
    pub(crate) fn seconds(&self) -> f64 {
        self.clean.len() as f64 / FPS as f64
    }

    /// Whether a picture is the one that is decoded where nothing was lost.
    pub(crate) fn is_clean(&self, number: usize, hash: &str) -> bool {
        self.clean.get(number).is_some_and(|clean| clean.hash == hash)
    }

    /// What it is at best.
    pub(crate) fn clean_db(&self, number: usize) -> f64 {
        self.clean.get(number).map_or(0.0, |clean| clean.psnr_db)
    }

    /// How near the picture at a place of a file of luma is to the original.
    pub(crate) fn psnr_db(&self, number: usize, shown: &File, place: usize) -> Result<f64> {
        let mse = Mse::between(&picture(&self.original, number)?, &picture(shown, place)?);
        Ok(mse.context("of one size")?.psnr_db().min(PSNR_MAX))
    }
}

fn picture(file: &File, place: usize) -> Result<Picture> {
    let shape = Shape::new(SIZE.0, SIZE.1, Sampling::Mono).context("a shape")?;
    let mut samples = vec![0; shape.bytes()];
    file.read_exact_at(&mut samples, (place * shape.bytes()) as u64)?;
    Picture::new(shape, samples).context("a picture")
}

/// What the packets of a file come to, if each picture is cut into as few as can be.
fn bytes_on_link(file: &Path) -> Result<usize> {
    let listed = Program::words("ffprobe -v error -show_entries packet=size -of csv=p=0")
        .arg(file.display().to_string())
        .finish(PATIENCE)?;
    let of_picture = |bytes: usize| {
        let packets = bytes.div_ceil(PACKET_BYTES - FRAGMENT_HEADERS);
        bytes + packets * (FRAGMENT_HEADERS + HEADERS)
    };
    let first = |line: &str| line.split(',').next().and_then(|field| field.parse::<usize>().ok());
    Ok(listed.stdout.lines().filter_map(first).map(of_picture).sum())
}
