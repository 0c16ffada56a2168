//! What was said of a stream before its packets.

use outflow_media::Format;
use outflow_rtp::sdp;

/// What the packets are, and what they can be chosen from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) format: Format,
    pub(crate) levels: Option<u8>,
}

impl Described {
    pub(crate) fn of(description: &sdp::Description) -> Self {
        Described { format: description.format(), levels: description.levels }
    }
}

impl From<Format> for Described {
    fn from(format: Format) -> Self {
        Described { format, levels: None }
    }
}
