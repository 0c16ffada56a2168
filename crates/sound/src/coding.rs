//! What comes in, and what is refused.

use outflow_media::codec::aac::AudioSpecificConfig;

/// What comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// AAC-LC, one raw data block a frame, without ADTS header (ISO/IEC 14496-3, section 4.4.2.1). Spectral band
    /// replication and parametric stereo on top of it are decoded if frames have them (HE-AAC).
    Aac(AudioSpecificConfig),
    /// The same with the ADTS header of each frame, which tells the configuration (ISO/IEC 14496-3, section 1.A.3.2).
    Adts,
    /// MPEG audio of layers I to III, one frame with its header (ISO/IEC 11172-3, ISO/IEC 13818-3). Sampling frequency
    /// and channels are told by each frame.
    MpegAudio,
}

/// Why sound cannot be coded again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// An AAC profile other than low complexity: its audio object type.
    #[error("AAC of object type {0}; only AAC-LC, with or without band replication, is decoded")]
    Profile(u8),
    /// A channel configuration of which it is not known how it is mixed to two channels.
    #[error("AAC of channel configuration {0}; up to 7.1 channels are mixed down")]
    Channels(u8),
    /// A sampling frequency that is none of ISO/IEC 14496-3, table 1.18.
    #[error("a sampling frequency of {0} Hz, which no table has")]
    Frequency(u32),
    /// More or fewer bits a second than Opus has.
    #[error("Opus of {0} bit/s; 6,000 to 510,000 are possible")]
    Bitrate(u32),
}
