//! Pictures as they go into the coder and come out of it: planes of bytes.

use crate::limits::PIXELS_MAX;

/// How often chroma has a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// There is none: gray.
    Mono,
    /// Once in two columns and two rows.
    C420,
    /// Once in two columns.
    C422,
    /// For every pixel.
    C444,
}

impl Sampling {
    /// Columns and rows that share a sample of chroma; `None` for gray.
    pub const fn chroma_step(self) -> Option<(u8, u8)> {
        match self {
            Sampling::Mono => None,
            Sampling::C420 => Some((2, 2)),
            Sampling::C422 => Some((2, 1)),
            Sampling::C444 => Some((1, 1)),
        }
    }

    /// The sampling with this [`chroma_step`](Self::chroma_step).
    pub fn of_chroma_step(step: Option<(u8, u8)>) -> Option<Self> {
        let all = [Sampling::Mono, Sampling::C420, Sampling::C422, Sampling::C444];
        all.into_iter().find(|sampling| sampling.chroma_step() == step)
    }
}

/// What a picture is like: 8 bits a sample, planes of luma, Cb and Cr one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Columns of luma.
    pub width: u32,
    /// Rows of luma.
    pub height: u32,
    /// How often chroma has a sample.
    pub sampling: Sampling,
}

impl Shape {
    /// `None` if there are no pixels, or more than [`PIXELS_MAX`].
    pub fn new(width: u32, height: u32, sampling: Sampling) -> Option<Self> {
        let pixels = u64::from(width) * u64::from(height);
        (1..=PIXELS_MAX as u64).contains(&pixels).then_some(Shape { width, height, sampling })
    }

    /// Columns and rows that share a sample, plane by plane.
    pub fn steps(self) -> impl Iterator<Item = (u8, u8)> {
        let chroma = self.sampling.chroma_step().map(|step| [step, step]);
        core::iter::once((1, 1)).chain(chroma.into_iter().flatten())
    }

    /// Columns and rows of samples, plane by plane; those of chroma are rounded up.
    pub fn planes(self) -> impl Iterator<Item = (usize, usize)> {
        let along = |length: u32, step: u8| length.div_ceil(step.into()) as usize;
        self.steps().map(move |(across, down)| (along(self.width, across), along(self.height, down)))
    }

    /// Bytes of a picture.
    pub fn bytes(self) -> usize {
        self.planes().map(|(width, height)| width * height).sum()
    }
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    shape: Shape,
    samples: Vec<u8>,
}

impl Picture {
    /// `None` if there are not as many samples as the shape has.
    pub fn new(shape: Shape, samples: Vec<u8>) -> Option<Self> {
        (samples.len() == shape.bytes()).then_some(Picture { shape, samples })
    }

    /// What it is like.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// All samples, plane by plane, row by row.
    pub fn samples(&self) -> &[u8] {
        &self.samples
    }

    /// The samples of each plane.
    pub fn planes(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.samples[..];
        self.shape.planes().map(move |(width, height)| {
            let (plane, behind) = rest.split_at(width * height);
            rest = behind;
            plane
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chroma_of_odd_sizes_is_rounded_up() {
        let planes = |sampling| Shape::new(5, 3, sampling).expect("small").planes().collect::<Vec<_>>();
        assert_eq!(planes(Sampling::Mono), [(5, 3)]);
        assert_eq!(planes(Sampling::C420), [(5, 3), (3, 2), (3, 2)]);
        assert_eq!(planes(Sampling::C422), [(5, 3), (3, 3), (3, 3)]);
        assert_eq!(planes(Sampling::C444), [(5, 3), (5, 3), (5, 3)]);
    }

    #[test]
    fn samples_are_parted_into_planes_and_must_be_as_many() {
        let shape = Shape::new(2, 2, Sampling::C420).expect("small");
        let picture = Picture::new(shape, vec![1, 2, 3, 4, 5, 6]).expect("as many");
        assert_eq!(picture.planes().collect::<Vec<_>>(), [&[1, 2, 3, 4][..], &[5], &[6]]);
        assert_eq!(Picture::new(shape, vec![0; 7]), None);
    }

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(Shape::new(0, 9, Sampling::Mono), None);
        assert_eq!(Shape::new(u32::MAX, u32::MAX, Sampling::Mono), None);
        assert!(Shape::new(4096, 4096, Sampling::Mono).is_some());
    }
}
