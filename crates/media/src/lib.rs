//! What packets mean.
//!
//! This crate reads the formats that carry live media and says, for every packet, what it is:
//! a [`Tag`] with the frame it belongs to, the kind of that frame, its layer, and which other
//! frames it needs. Everything else in Outflow reads that tag.
//!
//! There is no I/O here, no clock, and nothing allocates by a length that the network claims.

mod backoff;
mod bucket;
pub mod codec;
pub mod ecn;
pub mod format;
pub mod frames;
mod growth;
pub mod image;
pub mod importance;
pub mod jpeg2000;
pub mod limits;
mod network;
mod prefix;
pub mod tag;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod time;
mod unit;

pub use backoff::Backoff;
pub use bucket::{Rate, TokenBucket};
pub use format::{Codec, ExtensionKind, ExtensionMap, Format, Track};
pub use growth::Growth;
pub use importance::Importance;
pub use network::{Network, NoNetwork, group_mac};
pub use prefix::{NoPrefix, Prefix};
pub use tag::{Content, Kind, Needs, Tag};
pub use time::Time;
pub use unit::AccessUnit;

/// Bytes that could not be read as what they claim to be.
///
/// Parsing never panics: whatever is malformed becomes one of these, which its caller counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed {format} at byte {offset}: {reason}")]
pub struct Malformed {
    /// The wire format that was expected, as in "RTP" or "MPEG-TS".
    pub format: &'static str,
    /// Where in the given bytes the first wrong one stands.
    pub offset: usize,
    /// What is wrong with it, in words.
    pub reason: &'static str,
}
