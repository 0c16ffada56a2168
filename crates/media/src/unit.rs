//! Access units, in which all formats that carry codecs can be said.

use bytes::Bytes;

/// A picture, or a frame of sound, with its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessUnit {
    /// Index of its track among those of its stream.
    pub track: usize,
    /// When it is presented, in ticks of 90 kHz of a timeline that all tracks share. It does not wrap; formats
    /// in which it does, as the 33 bits of a transport stream, take its lower bits.
    pub pts: i64,
    /// When it is decoded, on the same timeline: not after `pts`, and growing within its track.
    pub dts: i64,
    /// Decoding can start here. True for all sound.
    pub key: bool,
    /// For H.264 and H.265 the byte stream of annex B, with start codes; delimiters and parameter sets may be
    /// missing. For MPEG video and audio the elementary stream. For AAC one frame without ADTS header, for Opus
    /// one packet.
    pub data: Bytes,
}
