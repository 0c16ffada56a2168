//! Wavelet video to measure with.

use anyhow::{Result, ensure};
use outflow_wavelet::{Codestream, Coding, Picture, openjpeg, pool, y4m};

use crate::programs::ffmpeg;
use crate::relay::PATIENCE;

/// Pictures as ffmpeg makes them of `input`: its arguments up to the output, filters included.
///
/// # Errors
/// ffmpeg fails, or makes fewer.
pub fn pictures(input: &str, count: usize) -> Result<Vec<Picture>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("pictures.y4m");
    ffmpeg(&format!("{input} -an -frames:v {count} -pix_fmt yuv420p {}", file.display())).finish(PATIENCE)?;
    let reader = y4m::Reader::new(std::io::BufReader::new(std::fs::File::open(&file)?))?;
    let pictures = reader.collect::<Result<Vec<_>, _>>()?;
    ensure!(pictures.len() == count, "{} pictures instead of {count}", pictures.len());
    Ok(pictures)
}

/// The pictures in 33 layers each.
///
/// # Errors
/// OpenJPEG fails.
pub fn coded(pictures: &[Picture]) -> Result<Vec<Codestream>> {
    let threads = std::thread::available_parallelism()?.get();
    let coding = Coding::default();
    let code = |picture: &Picture| -> Result<Codestream> {
        Ok(Codestream::new(openjpeg::encode(picture, &coding, "")?)?)
    };
    let mut all = Vec::with_capacity(pictures.len());
    pool::in_order(threads, pictures.iter(), code, |coded: Result<Codestream>| -> Result<()> {
        all.push(coded?);
        Ok(())
    })?;
    Ok(all)
}
