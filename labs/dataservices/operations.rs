//! The operations, and one frame after the other through them.

use std::hint::black_box;
use std::time::Duration;

use anyhow::Result;
use outflow_media::image::{Cpu, Pixels, Rect, Shape, convert, crop, gray, shrink};

const WIDTH: usize = 1920;
const HEIGHT: usize = 1080;
/// Frames that are worked on in turn: more than the caches hold, as when they come from a network.
const FRAMES: usize = 16;
const MIDDLE: Rect = Rect { left: WIDTH / 4, top: HEIGHT / 4, width: WIDTH / 2, height: HEIGHT / 2 };

/// One operation, and the filter of ffmpeg that does the same.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) pixels: Pixels,
    act: Act,
    pub(crate) filter: &'static str,
}

#[derive(Clone, Copy)]
enum Act {
    Copy,
    Gray,
    Crop,
    Shrink,
    Convert(Pixels),
}

pub(crate) static OPERATIONS: [Operation; 8] = [
    operation("gray_rgb", Pixels::Rgb, Act::Gray, GRAY),
    operation("gray_uyvy", Pixels::Uyvy, Act::Gray, "format=yuv422p,lutyuv=u=128:v=128,format=uyvy422"),
    operation("crop_rgb", Pixels::Rgb, Act::Crop, "crop=iw/2:ih/2"),
    operation("shrink_rgb", Pixels::Rgb, Act::Shrink, "scale=iw/2:ih/2:flags=area"),
    operation("shrink_uyvy", Pixels::Uyvy, Act::Shrink, "scale=iw/2:ih/2:flags=area"),
    operation("rgb_to_gray", Pixels::Rgb, Act::Convert(Pixels::Gray), "format=gray"),
    operation("rgb_to_uyvy", Pixels::Rgb, Act::Convert(Pixels::Uyvy), "format=uyvy422"),
    operation("uyvy_to_rgb", Pixels::Uyvy, Act::Convert(Pixels::Rgb), "format=rgb24"),
];

const fn operation(name: &'static str, pixels: Pixels, act: Act, filter: &'static str) -> Operation {
    Operation { name, pixels, act, filter }
}

/// Luma of BT.601 in all three channels.
const GRAY: &str = "colorchannelmixer=.299:.587:.114:0:.299:.587:.114:0:.299:.587:.114";

const COPY: Operation = operation("copy", Pixels::Rgb, Act::Copy, "null");

/// Frames on which an operation is done.
pub(crate) struct Work {
    cpu: Cpu,
    shape: Shape,
    act: Act,
    frames: Vec<Vec<u8>>,
    next: usize,
    out: Vec<u8>,
}

impl Work {
    pub(crate) fn new(operation: &Operation) -> Self {
        let shape = Shape { pixels: operation.pixels, width: WIDTH, height: HEIGHT };
        let frame = |number: usize| (0..shape.bytes()).map(|at| (at / 7 + number) as u8).collect();
        let frames = (0..FRAMES).map(frame).collect();
        let (cpu, out) = (Cpu::detect(), Vec::with_capacity(2 * shape.bytes()));
        Work { cpu, shape, act: operation.act, frames, next: 0, out }
    }

    /// A plain copy, which is the bound.
    pub(crate) fn copy() -> Self {
        Self::new(&COPY)
    }

    /// Bytes that a frame has read and written.
    pub(crate) fn moved(&self) -> f64 {
        let Shape { width, height, .. } = self.shape;
        let whole = self.shape.bytes();
        let (read, written) = match self.act {
            Act::Copy | Act::Gray => (whole, whole),
            Act::Crop => (whole / 4, whole / 4),
            Act::Shrink => (whole, whole / 4),
            Act::Convert(to) => (whole, Shape { pixels: to, width, height }.bytes()),
        };
        (read + written) as f64
    }

    /// What a frame takes, on average over so long.
    pub(crate) fn seconds_a_frame(&mut self, time: Duration) -> Result<f64> {
        super::seconds_a_frame(time, || {
            self.frame();
            black_box(self.result());
            Ok(())
        })
    }

    /// Works on the next frame.
    fn frame(&mut self) {
        let Work { cpu, shape, act, frames, next, out } = self;
        *next = (*next + 1) % frames.len();
        let frame = &mut frames[*next];
        out.clear();
        match act {
            Act::Copy => out.extend_from_slice(frame),
            Act::Gray => gray(*cpu, shape.pixels, frame),
            Act::Crop => crop(*shape, frame, MIDDLE, out),
            Act::Shrink => drop(shrink(*cpu, *shape, frame, 2, out)),
            Act::Convert(to) => {
                out.resize(to.row_bytes(shape.width) * shape.height, 0);
                convert(*cpu, (shape.pixels, frame), (*to, out));
            }
        }
    }

    /// What came out last.
    fn result(&self) -> &[u8] {
        match self.act {
            Act::Gray => &self.frames[self.next],
            _ => &self.out,
        }
    }
}
