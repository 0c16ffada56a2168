//! Limits of sound that is coded again, with what happens when they are reached.

use std::ops::RangeInclusive;

/// Bytes of a frame, the most that a header of ADTS can say. A larger one counts as one that cannot be decoded.
pub const FRAME_BYTES_MAX: usize = 8191;

/// Samples of a frame for each channel: those of AAC with spectral band replication. What decodes to more counts as
/// what cannot be decoded.
pub const FRAME_SAMPLES_MAX: usize = 2048;

/// Bits a second that Opus is asked for (RFC 6716, section 2.1.1). Others are refused.
pub const BITRATE_BPS: RangeInclusive<u32> = 6_000..=510_000;

/// Ticks of 90 kHz that a frame's time may be from where the samples before it end: sources round times, to whole
/// milliseconds at worst. Beyond, one sample a frame is added or left out, until it is less again.
pub const DRIFT_TICKS_MAX: i64 = 450;

/// Ticks of 90 kHz by which a frame's time is off at least if frames are missing in front of it, or too many: silence
/// is put in, or what is too late is left out.
pub const GAP_TICKS_MIN: i64 = 1_350;

/// Ticks of 90 kHz that are filled with silence, or left out, at most. Beyond, the sound begins again where the frame
/// says.
pub const LEAP_TICKS_MAX: i64 = 90_000;
