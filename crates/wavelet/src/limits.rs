//! Every limit of this crate, with what happens when it is reached.

/// Quality layers of a frame. OpenJPEG 2.5 has places for the rates of this many, and does not check; more
/// are refused before it is called.
pub const LAYERS_MAX: usize = 100;

/// Pixels of a picture: 4096 by 4096. Larger ones are refused before memory is taken for them.
pub const PIXELS_MAX: usize = 1 << 24;

/// Bytes of a line of YUV4MPEG2, of the header or of a frame; a longer one is refused.
pub const Y4M_LINE_BYTES_MAX: usize = 512;

/// Bytes of a codestream: offsets in RTP have 24 bits (RFC 5371, section 4.1). A longer one is refused.
pub const CODESTREAM_BYTES_MAX: usize = outflow_rtp::payload::jpeg2000::CODESTREAM_BYTES_MAX;

/// Frames that may be missing between two that came, for the time between their timestamps to be filled.
/// If it is longer, the source counts as restarted.
pub const MISSING_FRAMES_MAX: u32 = 600;

// Layers are told by priorities of one byte (RFC 5372, section 3.3), and by tags of seven bits.
const _: () = assert!(LAYERS_MAX < 128);
