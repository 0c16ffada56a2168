//! How a track is carried: its entry in the PMT, and what goes with its access units.

use bytes::{BufMut, BytesMut};
use outflow_media::codec::aac::AudioSpecificConfig;
use outflow_media::format::{Codec, Track};
use outflow_media::{AccessUnit, Malformed};

use super::parameters::Parameters;
use crate::opus::emit_header;
use crate::pes::{AUDIO_ID, PRIVATE_ID, VIDEO_ID};
use crate::units::Syntax;

/// A track in the transport stream.
#[derive(Debug)]
pub(super) struct Stream {
    pid: u16,
    /// The counter that its next packet gets.
    continuity: u8,
    encapsulation: Encapsulation,
}

/// What is done with the access units of a codec.
#[derive(Debug)]
enum Encapsulation {
    /// H.264, H.265.
    Nal(Parameters),
    MpegVideo,
    /// Frames get ADTS headers.
    Aac(AudioSpecificConfig),
    MpegAudio {
        /// The lower sampling frequencies of ISO/IEC 13818-3, which have a stream type of their
        /// own. Known once the first frame came.
        low_frequencies: bool,
    },
    Opus {
        channels: u8,
    },
}

impl Stream {
    /// How `track` is carried, on the next of `pids`; `None` if it is not.
    pub(super) fn new(track: &Track, pids: &mut impl Iterator<Item = u16>) -> Option<Self> {
        let encapsulation = match &track.codec {
            Codec::H264 { sps, pps } => {
                Encapsulation::Nal(Parameters::new(Syntax::H264, [sps, pps].into_iter().flatten()))
            }
            Codec::H265 { vps, sps, pps } => {
                Encapsulation::Nal(Parameters::new(Syntax::H265, [vps, sps, pps].into_iter().flatten()))
            }
            Codec::MpegVideo => Encapsulation::MpegVideo,
            Codec::Aac { config, .. } => {
                let config = AudioSpecificConfig::parse(config).ok()?;
                // Only what ADTS can say is carried.
                config.adts_header(0)?;
                Encapsulation::Aac(config)
            }
            Codec::MpegAudio => Encapsulation::MpegAudio { low_frequencies: false },
            Codec::Opus => Encapsulation::Opus { channels: track.channels.clamp(1, 2) },
            Codec::Mp2t
            | Codec::RawVideo(_)
            | Codec::Jpeg2000
            | Codec::Av1
            | Codec::Vp9
            | Codec::Vp8
            | Codec::Srtp { .. }
            | Codec::Other { .. } => return None,
        };
        Some(Stream { pid: pids.next()?, continuity: 0, encapsulation })
    }

    pub(super) const fn pid(&self) -> u16 {
        self.pid
    }

    pub(super) const fn is_video(&self) -> bool {
        matches!(self.encapsulation, Encapsulation::Nal(_) | Encapsulation::MpegVideo)
    }

    /// The counter that its next packet gets.
    pub(super) const fn continuity(&self) -> u8 {
        self.continuity
    }

    /// Its next packet gets this counter.
    pub(super) const fn set_continuity(&mut self, continuity: u8) {
        self.continuity = continuity & 0x0f;
    }

    /// Counts one packet.
    pub(super) fn next_continuity(&mut self) -> u8 {
        let continuity = self.continuity;
        self.continuity = (continuity + 1) & 0x0f;
        continuity
    }

    /// The counter of the packet before: that of one without payload.
    pub(super) const fn last_continuity(&self) -> u8 {
        self.continuity.wrapping_sub(1) & 0x0f
    }

    /// `stream_id` of its PES packets.
    pub(super) const fn stream_id(&self) -> u8 {
        match self.encapsulation {
            Encapsulation::Nal(_) | Encapsulation::MpegVideo => VIDEO_ID,
            Encapsulation::Aac(_) | Encapsulation::MpegAudio { .. } => AUDIO_ID,
            Encapsulation::Opus { .. } => PRIVATE_ID,
        }
    }

    /// `stream_type` in the PMT (table 2-34).
    pub(super) const fn stream_type(&self) -> u8 {
        match &self.encapsulation {
            Encapsulation::Nal(parameters) => match parameters.syntax() {
                Syntax::H265 => 0x24,
                _ => 0x1b,
            },
            Encapsulation::MpegVideo => 0x02,
            Encapsulation::Aac(_) => 0x0f,
            Encapsulation::MpegAudio { low_frequencies: false } => 0x03,
            Encapsulation::MpegAudio { low_frequencies: true } => 0x04,
            Encapsulation::Opus { .. } => 0x06,
        }
    }

    /// Its entry in the PMT.
    pub(super) fn describe(&self) -> (u8, u16, Vec<u8>) {
        let descriptors = match self.encapsulation {
            // Registration and extension descriptors as of ETSI TS 103 491 and ffmpeg: the channel
            // configuration 1 is mono, 2 is stereo.
            Encapsulation::Opus { channels } => {
                vec![0x05, 4, b'O', b'p', b'u', b's', 0x7f, 2, 0x80, channels]
            }
            _ => Vec::new(),
        };
        (self.stream_type(), self.pid, descriptors)
    }

    /// Writes what goes into the PES packet beside the unit's own bytes, and says behind how many
    /// of those it belongs.
    pub(super) fn prepare(&mut self, unit: &AccessUnit, inserted: &mut BytesMut) -> Result<usize, Malformed> {
        let bad = |reason| Malformed { format: "access unit", offset: 0, reason };
        if unit.data.is_empty() {
            return Err(bad("it is empty"));
        }
        match &mut self.encapsulation {
            Encapsulation::Nal(parameters) => return parameters.prepare(unit.key, &unit.data, inserted),
            Encapsulation::MpegVideo => {}
            Encapsulation::Aac(config) => {
                let header = config.adts_header(unit.data.len());
                inserted.put_slice(&header.ok_or(bad("an AAC frame is larger than ADTS can say"))?);
            }
            Encapsulation::MpegAudio { low_frequencies } => match *unit.data {
                // Sync word, then the bit that says MPEG-1.
                [0xff, second, ..] if second >= 0xe0 => *low_frequencies = second & 0x08 == 0,
                _ => return Err(bad("no frame of MPEG audio")),
            },
            Encapsulation::Opus { .. } => emit_header(unit.data.len(), inserted),
        }
        Ok(0)
    }
}
