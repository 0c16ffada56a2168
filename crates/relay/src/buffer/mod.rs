//! Where packets wait: the session ring.

mod policy;
mod ring;

pub use policy::{Verdict, WhenFull};
pub use ring::{Entry, Ring, Seq};

use bytes::Bytes;
use outflow_media::rtp::HEADER;
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

impl Packet {
    /// The fixed part of its RTP header: `apart`, if it stands there, or its first bytes; `None` if it has
    /// none.
    pub fn rtp_header<'p>(&'p self, apart: &'p [u8; HEADER]) -> Option<&'p [u8; HEADER]> {
        if apart[0] != 0 {
            return Some(apart);
        }
        self.bytes.first_chunk().filter(|header| header[0] >> 6 == 2)
    }
}
