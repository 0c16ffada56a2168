//! AAC: its configuration (ISO/IEC 14496-3 section 1.6.2.1) and the ADTS header that stands in
//! for it in a transport stream (section 1.A.3.2).

use super::bits::BitReader;
use crate::Malformed;

/// Sampling frequencies by index (table 1.18).
const FREQUENCIES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];

/// Bytes of an ADTS header without checksum.
pub const ADTS_HEADER: usize = 7;

/// The largest frame an ADTS header can announce, header included.
pub const ADTS_MAX_FRAME: usize = 0x1fff;

/// What a decoder must know of an AAC stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioSpecificConfig {
    /// Audio object type of the core coder: 2 is AAC-LC. What spectral band replication adds on
    /// top (types 5 and 29) is left out, as in ADTS.
    pub object_type: u8,
    /// Samples a second of the core coder.
    pub frequency_hz: u32,
    /// Channel configuration (table 1.19): 1 mono, 2 stereo, 7 is 7.1; 0 is told in band.
    pub channels: u8,
    /// Samples a frame: 1024 or 960.
    pub frame_samples: u32,
}

impl AudioSpecificConfig {
    /// Reads the configuration as it stands in `config=` of an SDP (RFC 3640 section 4.1).
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let bad = |reason| Malformed { format: "AudioSpecificConfig", offset: 0, reason };
        Self::read(&mut BitReader::new(data))
            .ok_or_else(|| bad("too short, or with a reserved sampling frequency"))
    }

    fn read(bits: &mut BitReader<'_>) -> Option<Self> {
        let mut object_type = Self::object_type(bits)?;
        let frequency_hz = Self::frequency(bits)?;
        let channels = u8::try_from(bits.bits(4)?).ok()?;
        if matches!(object_type, 5 | 29) {
            Self::frequency(bits)?;
            object_type = Self::object_type(bits)?;
        }
        let short = bits.bit().unwrap_or(false);
        let frame_samples = if short { 960 } else { 1024 };
        Some(AudioSpecificConfig { object_type, frequency_hz, channels, frame_samples })
    }

    fn object_type(bits: &mut BitReader<'_>) -> Option<u8> {
        let value = match bits.bits(5)? {
            31 => 32 + bits.bits(6)?,
            value => value,
        };
        u8::try_from(value).ok()
    }

    fn frequency(bits: &mut BitReader<'_>) -> Option<u32> {
        let hz = match bits.bits(4)? {
            15 => bits.bits(24)?,
            index => *FREQUENCIES.get(usize::try_from(index).ok()?)?,
        };
        (hz > 0).then_some(hz)
    }

    /// The ADTS header of a frame of `payload` bytes; `None` if the frame is too large, or the
    /// stream is of a kind that ADTS cannot carry.
    pub fn adts_header(&self, payload: usize) -> Option<[u8; ADTS_HEADER]> {
        let length = payload.checked_add(ADTS_HEADER).filter(|l| *l <= ADTS_MAX_FRAME)?;
        let length = u16::try_from(length).ok()?;
        let profile = self.object_type.checked_sub(1).filter(|p| *p < 4)?;
        let index = u8::try_from(FREQUENCIES.iter().position(|f| *f == self.frequency_hz)?).ok()?;
        let channels = self.channels & 7;
        let [high, low] = length.to_be_bytes();
        Some([
            0xff,
            // MPEG-4, layer 0, no checksum.
            0xf1,
            profile << 6 | index << 2 | channels >> 2,
            channels << 6 | high >> 3,
            high << 5 | low >> 3,
            // The buffer fullness says "variable rate": all ones.
            low << 5 | 0x1f,
            0xfc,
        ])
    }
}

/// What an ADTS header says (ISO/IEC 14496-3, section 1.A.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdtsHeader {
    /// What a decoder must know.
    pub config: AudioSpecificConfig,
    /// Bytes of the header, with its checksum if it has one.
    pub header: usize,
    /// Bytes of the frame, header included.
    pub length: usize,
    /// Raw data blocks of the frame: 1 to 4.
    pub blocks: u32,
}

impl AdtsHeader {
    /// Reads the seven bytes that a frame starts with; `None` if no frame starts here.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let &[0xff, second, third, fourth, fifth, sixth, seventh, ..] = data else { return None };
        // All of the sync word, and layer 0.
        if second & 0xf6 != 0xf0 {
            return None;
        }
        let header = if second & 1 == 1 { ADTS_HEADER } else { ADTS_HEADER + 2 };
        let frequency_hz = *FREQUENCIES.get(usize::from(third >> 2 & 0xf))?;
        let channels = (third & 1) << 2 | fourth >> 6;
        let length = usize::from(fourth & 3) << 11 | usize::from(fifth) << 3 | usize::from(sixth >> 5);
        let config = AudioSpecificConfig {
            object_type: (third >> 6) + 1,
            frequency_hz,
            channels,
            frame_samples: 1024,
        };
        let blocks = u32::from(seventh & 3) + 1;
        (length > header).then_some(AdtsHeader { config, header, length, blocks })
    }

    /// Samples of the frame, of each channel and of the core coder.
    pub fn samples(&self) -> u32 {
        self.blocks * self.config.frame_samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_configuration_is_read() {
        // 48 kHz stereo AAC-LC as ffmpeg writes it.
        let lc = AudioSpecificConfig::parse(&[0x11, 0x90]).unwrap();
        assert_eq!(
            lc,
            AudioSpecificConfig { object_type: 2, frequency_hz: 48_000, channels: 2, frame_samples: 1024 }
        );
        assert_eq!(AudioSpecificConfig::parse(&[0x12, 0x08]).unwrap().frequency_hz, 44_100);
    }

    #[test]
    fn band_replication_leaves_the_core_coder() {
        // Type 5, 24 kHz, stereo, extension 48 kHz, type 2.
        let he = AudioSpecificConfig::parse(&[0x2b, 0x11, 0x88, 0x00]).unwrap();
        assert_eq!((he.object_type, he.frequency_hz, he.channels), (2, 24_000, 2));
    }

    #[test]
    fn an_explicit_frequency_is_read() {
        // 00010 1111, 24 bits of 48000, 0010.
        let config = AudioSpecificConfig::parse(&[0x17, 0x80, 0x5d, 0xc0, 0x10]).unwrap();
        assert_eq!((config.frequency_hz, config.channels), (48_000, 2));
    }

    #[test]
    fn garbage_is_refused() {
        for data in [&[][..], &[0x11], &[0x16, 0x90], &[0x17, 0x80, 0, 0, 0, 0]] {
            assert!(AudioSpecificConfig::parse(data).is_err(), "{data:x?}");
        }
    }

    #[test]
    fn an_adts_header_is_read_as_it_was_written() {
        for (config, payload) in [([0x11, 0x90], 371), ([0x12, 0x08], 1), ([0x2b, 0x11], 8184)] {
            let config = AudioSpecificConfig::parse(&[&config[..], &[0x88, 0]].concat()).unwrap();
            let written = config.adts_header(payload).unwrap();
            let length = payload + ADTS_HEADER;
            let expected = AdtsHeader { config, header: ADTS_HEADER, length, blocks: 1 };
            assert_eq!(AdtsHeader::parse(&written), Some(expected));
            // With a checksum, and of a layer that it does not have.
            assert_eq!(
                AdtsHeader::parse(&[&[0xff, 0xf0], &written[2..]].concat()).map(|h| h.header),
                (payload > 2).then_some(9)
            );
            assert_eq!(AdtsHeader::parse(&[&[0xff, 0xf3], &written[2..]].concat()), None);
            assert_eq!(AdtsHeader::parse(&written[..6]), None);
        }
    }

    #[test]
    fn the_adts_header_announces_the_frame() {
        let lc = AudioSpecificConfig::parse(&[0x11, 0x90]).unwrap();
        let header = lc.adts_header(371).unwrap();
        assert_eq!(header[..4], [0xff, 0xf1, 0x4c, 0x80]);
        assert_eq!(AdtsHeader::parse(&header).map(|header| header.length), Some(378));
        assert_eq!(lc.adts_header(8185), None);
        assert_eq!(lc.adts_header(usize::MAX), None);
        let odd = AudioSpecificConfig { frequency_hz: 47_999, ..lc };
        assert_eq!(odd.adts_header(10), None);
    }
}
