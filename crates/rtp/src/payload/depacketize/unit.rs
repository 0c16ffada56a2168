//! What is told: units, and how many were dropped.

use bytes::Bytes;

/// One access unit, or one frame of audio, as it comes by RTP: it has its times once the clocks of the tracks
/// are brought together, and is an [`AccessUnit`](outflow_media::AccessUnit) then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DepacketizedUnit {
    /// Its RTP timestamp.
    pub timestamp: u32,
    /// H.264 and H.265: NAL units with start codes (Annex B), without delimiters, and with
    /// parameter sets in front where decoding can start. MPEG video: the elementary stream. AAC:
    /// a raw frame. Opus: a packet. MPEG audio: one or more frames.
    pub data: Bytes,
    /// Decoding can start here. True for all audio.
    pub key: bool,
}

/// What was dropped, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Units of which a packet was lost.
    pub incomplete: u64,
    /// Units longer than [`UNIT_BYTES_MAX`](crate::limits::UNIT_BYTES_MAX).
    pub too_large: u64,
    /// Packets that came after their place was given up, and duplicates.
    pub late: u64,
    /// Packets that could not be read.
    pub malformed: u64,
}
