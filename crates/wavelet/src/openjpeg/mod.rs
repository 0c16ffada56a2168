//! Pictures to codestreams and back, by OpenJPEG.

mod ffi;
#[cfg(test)]
mod tests;

use std::ffi::CString;

use outflow_media::jpeg2000::Header;

use crate::coding::Coding;
use crate::picture::{Picture, Sampling, Shape};
use ffi::{Component, Settings};

/// Resolutions of a picture that is large enough for them.
const RESOLUTIONS_MAX: u32 = 6;

/// Why a picture was not coded or decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// It is no codestream.
    #[error(transparent)]
    Malformed(#[from] outflow_media::Malformed),
    /// It is a codestream of something else than what is coded here.
    #[error("cannot be decoded here: {0}")]
    Unfit(&'static str),
    /// OpenJPEG could not.
    #[error("OpenJPEG: {0}")]
    OpenJpeg(String),
}

/// Codes a picture: lossy (the 9-7 transform), in one tile, layer by layer (LRCP), a tile-part for each
/// layer. `comment` stands in its main header; it ends at its first NUL, if there is one.
///
/// # Errors
/// OpenJPEG cannot do it.
pub fn encode(picture: &Picture, coding: &Coding, comment: &str) -> Result<Vec<u8>, CodecError> {
    let shape = picture.shape();
    let planes = shape.steps().zip(shape.planes()).zip(picture.planes());
    let components: Vec<_> = planes
        .map(|(((across, down), (width, height)), samples)| Component {
            step: (across.into(), down.into()),
            width,
            height,
            samples,
        })
        .collect();
    // OpenJPEG takes all components to be as large as the first one when it counts raw bytes.
    let counted = shape.width as f32 * shape.height as f32 * components.len() as f32;
    let factor = counted / shape.bytes() as f32;
    let ratios: Vec<f32> = coding.ratios().iter().map(|ratio| ratio * factor).collect();
    let comment = comment.split('\0').next().unwrap_or_default();
    let settings = Settings {
        ratios: &ratios,
        resolutions: resolutions(shape),
        comment: &CString::new(comment).unwrap_or_default(),
        is_gray: shape.sampling == Sampling::Mono,
    };
    ffi::compress((shape.width, shape.height), &components, &settings).map_err(CodecError::OpenJpeg)
}

/// As many as halve the smallest plane to no less than a sample.
fn resolutions(shape: Shape) -> i32 {
    let smallest = shape.planes().map(|(width, height)| width.min(height)).min().unwrap_or(1);
    (smallest.ilog2() + 1).min(RESOLUTIONS_MAX) as i32
}

/// Decodes a codestream strictly: if anything of it is missing, that is an error.
///
/// # Errors
/// It is no codestream, OpenJPEG finds a mistake in it, or it is not what can come from [`encode`]: one
/// tile, one or three components of 8 bits, chroma as Y4M has it.
pub fn decode(codestream: &[u8]) -> Result<Picture, CodecError> {
    let shape = shape(&Header::parse(codestream)?)?;
    let components = ffi::decompress(codestream).map_err(CodecError::OpenJpeg)?;
    let samples: Vec<u8> = components.into_iter().flat_map(|component| component.samples).collect();
    Picture::new(shape, samples).ok_or(CodecError::Unfit("its components are not as large as it says"))
}

/// What the pictures of a codestream are like. It is looked at before OpenJPEG takes memory for it.
///
/// # Errors
/// They are not such as can be decoded here.
pub fn shape(header: &Header) -> Result<Shape, CodecError> {
    let ((left, top), (width, height)) = header.image();
    if (left, top) != (0, 0) || !header.is_one_tile() {
        return Err(CodecError::Unfit("it is not one tile, or does not begin at 0"));
    }
    if header.components.iter().any(|component| component.depth() != (8, false)) {
        return Err(CodecError::Unfit("its samples are not of 8 bits without sign"));
    }
    let steps: Vec<_> = header.components.iter().map(|component| component.step()).collect();
    let chroma = match steps[..] {
        [(1, 1)] => Some(None),
        [(1, 1), cb, cr] if cb == cr => Some(Some(cb)),
        _ => None,
    };
    let sampling = chroma.and_then(Sampling::of_chroma_step);
    let sampling = sampling.ok_or(CodecError::Unfit("it is none of mono, 4:2:0, 4:2:2 and 4:4:4"))?;
    Shape::new(width, height, sampling).ok_or(CodecError::Unfit("it has more pixels than can be worked on"))
}
