//! Where packets wait: the session ring.

mod policy;
mod ring;

pub use policy::{Verdict, WhenFull};
pub use ring::{Entry, Ring, Seq};

use bytes::Bytes;
use outflow_media::{Tag, Time};

/// One packet on its way: refcounted, immutable bytes and what they mean.
#[derive(Debug, Clone)]
pub struct Packet {
    /// The bytes as the branch's receivers get them, see [`outflow_media::Format`].
    pub bytes: Bytes,
    /// What they mean.
    pub tag: Tag,
    /// When they came in.
    pub arrived: Time,
}
