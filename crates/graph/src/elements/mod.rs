//! The elements that the core brings along, a file each. Each is one line in the
//! [`CATALOGUE`](crate::CATALOGUE).

pub mod convert;
pub mod crop;
pub mod decrypt;
pub mod duplicate;
pub mod encrypt;
pub mod external;
pub mod filter;
pub mod gray;
pub mod images;
pub mod merge;
pub mod pass;
pub mod ppm_bytes;
pub mod prioritise;
pub mod rate_limit;
pub mod redirect;
pub mod remark;
pub mod sample;
pub mod shrink;
pub mod to_opus;
pub mod to_rtp;
pub mod to_ts;
pub mod ts_bytes;
pub mod ts_level;
pub mod view;
pub mod wasm;

mod by_frame;
mod copies;
mod counted;
mod select;
mod srtp;
#[cfg(test)]
mod testing;
mod verdict;

pub(crate) use by_frame::Memory;
pub(crate) use rate_limit::reserve;
pub(crate) use verdict::Kept;
