//! The video of the experiment: pictures with numbers, coded in levels, and how good each picture is at each level.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use outflow_labs::figures::progress;
use outflow_labs::moving::Moving;
use outflow_labs::programs::ffmpeg;
use outflow_labs::svc::{self, Coding, Encoded, Shape, Wanted, encode_pictures};
use tempfile::TempDir;

/// Width and height of the best level. Each further one is half as wide and high.
pub(crate) const SIZE: (usize, usize) = (960, 544);
/// Pictures a second.
pub(crate) const RATE: u32 = svc::RATE;
/// Pictures, over and over.
pub(crate) const PICTURES: u16 = 320;
/// Kilobits a second of each level, the best first.
pub(crate) const KBPS: [u32; 3] = [2500, 900, 300];
/// Pictures from one key frame to the next.
const KEYS_EVERY: u32 = RATE;
/// How long coding may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a viewer may be sent of each picture.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) width: u64,
    /// Bits a second without headers.
    pub(crate) bps: f64,
    /// Of each picture's luma, scaled up to the size of the best, against what was coded.
    pub(crate) psnr_db: Vec<f64>,
}

impl Level {
    pub(crate) fn mean_db(&self) -> f64 {
        self.psnr_db.iter().sum::<f64>() / self.psnr_db.len() as f64
    }
}

/// The pictures before they are coded, in a file of I420.
pub(crate) struct Original {
    folder: TempDir,
}

impl Original {
    pub(crate) fn new() -> Result<Self> {
        progress(format!("{PICTURES} pictures are drawn"));
        let original = Original { folder: tempfile::tempdir()? };
        Moving::new(SIZE).write(PICTURES, &original.raw())?;
        Ok(original)
    }

    fn raw(&self) -> PathBuf {
        self.file("original")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// As an input of ffmpeg.
    fn input(&self) -> String {
        raw_input(SIZE, &self.raw())
    }

    /// A level of which ffmpeg reads the pictures by `input`, and the bytes of all of them.
    fn level(&self, shrunk: usize, input: &str, bytes: usize) -> Result<Level> {
        let stats = self.file("psnr");
        let (width, height) = SIZE;
        let line = format!(
            "{input} {} -lavfi [0:v]settb=1/{RATE},setpts=N,scale={width}:{height}:flags=bicubic[coded];\
             [1:v]settb=1/{RATE},setpts=N[original];[coded][original]psnr=stats_file={} -f null -",
            self.input(),
            stats.display()
        );
        ffmpeg(&line).finish(PATIENCE)?;
        let psnr_db = read_psnr(&std::fs::read_to_string(&stats)?).context("ffmpeg says no PSNR")?;
        let count = psnr_db.len();
        ensure!(count == usize::from(PICTURES), "{count} pictures of {PICTURES} can be compared");
        let bps = bytes as f64 * 8.0 * f64::from(RATE) / f64::from(PICTURES);
        let level = Level { width: (width >> shrunk) as u64, bps, psnr_db };
        progress(format!("{} wide: {:.0} kbit/s, {:.2} dB", level.width, bps / 1000.0, level.mean_db()));
        Ok(level)
    }
}

fn raw_input((width, height): (usize, usize), file: &Path) -> String {
    format!("-f rawvideo -pix_fmt yuv420p -s {width}x{height} -r {RATE} -i {}", file.display())
}

/// The luma's PSNR of each picture, of what ffmpeg writes.
fn read_psnr(stats: &str) -> Option<Vec<f64>> {
    let word =
        |line: &str| line.split_whitespace().find_map(|word| word.strip_prefix("psnr_y:")?.parse().ok());
    stats.lines().map(word).collect()
}

/// The video in three sizes, H.264 without B pictures.
pub(crate) struct Simulcast {
    /// Where the files are.
    _original: Original,
    pub(crate) levels: Vec<Level>,
    /// As transport streams: parameter sets stand in front of each key frame.
    pub(crate) files: Vec<PathBuf>,
}

impl Simulcast {
    pub(crate) fn new(original: Original) -> Result<Self> {
        let (mut levels, mut files) = (Vec::new(), Vec::new());
        for (shrunk, kbps) in KBPS.into_iter().enumerate() {
            let file = original.file(&format!("{shrunk}.ts"));
            let bare = original.file(&format!("{shrunk}.h264"));
            let coding = format!(
                "-vf scale={}:{} -c:v libx264 -preset veryfast -profile:v baseline -g {KEYS_EVERY} \
                 -sc_threshold 0 -b:v {kbps}k -maxrate {kbps}k -bufsize {}k -muxdelay 0",
                SIZE.0 >> shrunk,
                SIZE.1 >> shrunk,
                kbps / 2,
            );
            ffmpeg(&format!("{} {coding} {}", original.input(), file.display())).finish(PATIENCE)?;
            ffmpeg(&format!("-i {} -c copy {}", file.display(), bare.display())).finish(PATIENCE)?;
            let bytes = std::fs::metadata(&bare)?.len() as usize;
            let level = original.level(shrunk, &format!("-i {}", file.display()), bytes)?;
            levels.push(level);
            files.push(file);
        }
        Ok(Simulcast { _original: original, levels, files })
    }
}

/// The video in AV1 of three spatial and three temporal layers.
pub(crate) struct Layers {
    pub(crate) levels: Vec<Level>,
    pub(crate) encoded: Encoded,
}

impl Layers {
    pub(crate) fn new(original: &Original) -> Result<Self> {
        if let Some(why) = svc::lacking(Coding::Av1) {
            bail!("{why}");
        }
        let [best, middle, low] = KBPS;
        let shape = Shape { size: SIZE, kbps: [low, middle - low, best - middle], packet_bytes: 1200 };
        let plan = svc::Plan::new(3, 3, PICTURES.into()).shaped(shape);
        let encoded = encode_pictures(Coding::Av1, plan, &original.raw())?;
        let mut layers = Layers { levels: Vec::new(), encoded };
        let files = layers.decoded(original)?;
        for (shrunk, file) in files.iter().enumerate() {
            let input = raw_input((SIZE.0 >> shrunk, SIZE.1 >> shrunk), file);
            let frames = layers.encoded.plan.frames.iter().zip(&layers.encoded.frames);
            let parts = frames.filter(|(frame, _)| usize::from(frame.spatial) + shrunk <= 2);
            let bytes = parts.map(|(_, bytes)| bytes.len()).sum();
            layers.levels.push(original.level(shrunk, &input, bytes)?);
        }
        Ok(layers)
    }

    /// What comes of each spatial layer, the best first.
    fn decoded(&self, original: &Original) -> Result<[PathBuf; 3]> {
        let Encoded { coding, plan, frames, .. } = &self.encoded;
        let names: [PathBuf; 3] = core::array::from_fn(|shrunk| original.file(&format!("layer{shrunk}.raw")));
        let mut files = Vec::new();
        for name in &names {
            files.push(std::io::BufWriter::new(std::fs::File::create(name)?));
        }
        let all: Vec<_> = frames.iter().map(Vec::as_slice).enumerate().collect();
        svc::raw(*coding, plan, &all, Wanted::Every, |number, picture| {
            let shrunk = usize::from(2 - plan.frames[number].spatial);
            Ok(files[shrunk].write_all(picture)?)
        })?;
        files.iter_mut().try_for_each(std::io::Write::flush)?;
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_psnr_of_luma_is_read() {
        let line = |y: &str| format!("n:1 mse_avg:0.5 mse_y:0.4 psnr_avg:50.1 psnr_y:{y} psnr_u:52.0 \n");
        assert_eq!(read_psnr(&(line("38.25") + &line("37.5"))), Some(vec![38.25, 37.5]));
        assert_eq!(read_psnr(&line("much")), None);
    }
}
