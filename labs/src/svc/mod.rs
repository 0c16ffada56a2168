//! Video of spatial and temporal layers from real encoders: what refers to what is decided here
//! ([`Plan`]), libaom or libvpx encode it ([`encode`]), it is sent as RTP ([`packets`]), put together again
//! ([`frames`]) and decoded by dav1d or libvpx ([`decode`]).
//!
//! All layer frames are decoded, also those that are not shown where there is a higher one: each has to be
//! bit for bit what it is where nothing was left out, or else something that it refers to was not right.

mod av1;
mod decode;
mod encode;
mod endless;
mod packets;
mod plan;
mod vp9;

pub use decode::{Numbered, Wanted, decode, raw};
pub use encode::{Encoded, encode, encode_pictures, lacking};
pub use endless::Endless;
pub use packets::{Carried, FIRST_TIMESTAMP, TICKS_PER_PICTURE, description, frames, packets};
pub use plan::{LayerFrame, Plan, Reference, Shape};

/// Pictures a second.
pub const RATE: u32 = 30;

/// How layers are coded, and how packets tell of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// AV1 with the dependency descriptor.
    Av1,
    /// AV1 whose packets tell no more than what stands in the units themselves.
    Av1Bare,
    /// VP9 in the flexible mode: each frame names what it refers to.
    Vp9Flexible,
    /// VP9 of a group of pictures that repeats.
    Vp9Group,
}

impl Coding {
    /// Whether it is AV1, and else VP9.
    pub const fn is_av1(self) -> bool {
        matches!(self, Coding::Av1 | Coding::Av1Bare)
    }
}
