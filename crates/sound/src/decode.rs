//! Frames into samples, by libraries.

use nanomp3_core::MAX_SAMPLES_PER_FRAME;
use outflow_media::codec::aac::{AdtsHeader, AudioSpecificConfig};
use outflow_media::codec::mpeg_audio::FrameHeader;
use rusty_aac::config::StreamConfig;

use crate::coding::{Coding, Unsupported};
use crate::limits::{FRAME_BYTES_MAX, FRAME_SAMPLES_MAX};
use crate::mix;
use crate::resample::is_known;

/// Audio object type of AAC-LC (ISO/IEC 14496-3, table 1.17).
const LOW_COMPLEXITY: u8 = 2;

/// What a frame decodes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) frequency_hz: u32,
    /// 1 or 2.
    pub(crate) channels: usize,
    /// Of each channel.
    pub(crate) samples: usize,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// Its samples.
    Sound(Shape),
    /// It could not be decoded: silence of the same shape.
    Silence(Shape),
    /// It could not be decoded, and it is not known how long it is.
    Nothing,
}

/// A decoder, which keeps what later frames need of earlier ones.
pub(crate) enum Decoder {
    Aac(Box<Aac>),
    Adts(Adts),
    Mpeg(Box<Mpeg>),
}

/// AAC. The library allocates for what it decodes, once a frame.
pub(crate) struct Aac {
    config: StreamConfig,
    decoder: rusty_aac::decode::Decoder,
    /// What the last frame was.
    shape: Option<Shape>,
}

/// AAC of the configuration that the last frame has told.
#[derive(Default)]
pub(crate) struct Adts(Option<(AudioSpecificConfig, Box<Aac>)>);

/// MPEG audio of layers I to III, without allocations.
pub(crate) struct Mpeg {
    decoder: nanomp3_core::Decoder,
    decoded: [f32; MAX_SAMPLES_PER_FRAME],
}

impl Decoder {
    pub(crate) fn new(coding: Coding) -> Result<Self, Unsupported> {
        match coding {
            Coding::Aac(config) => Aac::new(config).map(|aac| Decoder::Aac(Box::new(aac))),
            Coding::Adts => Ok(Decoder::Adts(Adts::default())),
            Coding::MpegAudio => {
                let decoded = [0.0; MAX_SAMPLES_PER_FRAME];
                Ok(Decoder::Mpeg(Box::new(Mpeg { decoder: nanomp3_core::Decoder::new(), decoded })))
            }
        }
    }

    /// Forgets earlier frames.
    pub(crate) fn reset(&mut self) {
        match self {
            Decoder::Aac(aac) => aac.reset(),
            Decoder::Adts(Adts(Some((_, aac)))) => aac.reset(),
            Decoder::Adts(Adts(None)) => {}
            Decoder::Mpeg(mpeg) => mpeg.decoder = nanomp3_core::Decoder::new(),
        }
    }

    /// Decodes a frame to interleaved samples of one or two channels, each from -1 to 1.
    pub(crate) fn decode(&mut self, frame: &[u8], pcm: &mut Vec<f32>) -> Decoded {
        pcm.clear();
        let decoded = match self {
            Decoder::Aac(aac) => aac.decode(frame, pcm),
            Decoder::Adts(adts) => adts.decode(frame, pcm),
            Decoder::Mpeg(mpeg) => mpeg.decode(frame, pcm),
        };
        match decoded {
            Decoded::Sound(_) => pcm.iter_mut().for_each(|sample| *sample = bounded(*sample)),
            Decoded::Silence(shape) => {
                pcm.clear();
                pcm.resize(shape.samples * shape.channels, 0.0);
            }
            Decoded::Nothing => pcm.clear(),
        }
        decoded
    }
}

impl Aac {
    fn new(config: AudioSpecificConfig) -> Result<Self, Unsupported> {
        let AudioSpecificConfig { object_type, frequency_hz, channels, frame_samples } = config;
        if object_type != LOW_COMPLEXITY {
            return Err(Unsupported::Profile(object_type));
        }
        // In ADTS and in its configuration, 0 stands for channels that are told in band.
        if channels > 7 {
            return Err(Unsupported::Channels(channels));
        }
        if !is_known(frequency_hz) {
            return Err(Unsupported::Frequency(frequency_hz));
        }
        let mut config = StreamConfig::lc(object_type, frequency_hz, channels);
        config.frame_length = if frame_samples == 960 { 960 } else { 1024 };
        let decoder = rusty_aac::decode::Decoder::with_stream_config(config.clone());
        let decoder = decoder.map_err(|_| Unsupported::Profile(object_type))?;
        Ok(Aac { config, decoder, shape: None })
    }

    fn reset(&mut self) {
        if let Ok(decoder) = rusty_aac::decode::Decoder::with_stream_config(self.config.clone()) {
            self.decoder = decoder;
        }
    }

    fn decode(&mut self, frame: &[u8], pcm: &mut Vec<f32>) -> Decoded {
        let shape = self.try_decode(frame, pcm);
        self.shape = shape.or(self.shape);
        match (shape, self.shape) {
            (Some(shape), _) => Decoded::Sound(shape),
            (None, Some(last)) => Decoded::Silence(last),
            (None, None) => Decoded::Nothing,
        }
    }

    fn try_decode(&mut self, frame: &[u8], pcm: &mut Vec<f32>) -> Option<Shape> {
        if frame.len() > FRAME_BYTES_MAX {
            return None;
        }
        let decoded = self.decoder.decode(frame, None).ok()?;
        let channels = usize::from(decoded.channels);
        let samples = decoded.samples.len() / channels.max(1);
        if samples == 0 || samples > FRAME_SAMPLES_MAX || !is_known(decoded.sample_rate) {
            return None;
        }
        let shape = Shape { frequency_hz: decoded.sample_rate, channels: channels.min(2), samples };
        match channels {
            1 | 2 => pcm.extend_from_slice(&decoded.samples),
            _ => {
                let gains = mix::gains(channels)?;
                pcm.extend(decoded.samples.chunks_exact(channels).flat_map(|all| mix::mix(all, gains)));
            }
        }
        Some(shape)
    }
}

impl Adts {
    fn decode(&mut self, frame: &[u8], pcm: &mut Vec<f32>) -> Decoded {
        let Some(header) = AdtsHeader::parse(frame) else { return Decoded::Nothing };
        if self.0.as_ref().is_none_or(|(known, _)| *known != header.config) {
            self.0 = Aac::new(header.config).ok().map(|aac| (header.config, Box::new(aac)));
        }
        let Some((_, aac)) = &mut self.0 else { return Decoded::Nothing };
        // Several blocks in a frame are possible, and no encoder is known that writes them: the library would read one.
        let block = frame.get(header.header..header.length).filter(|_| header.blocks == 1);
        aac.decode(block.unwrap_or_default(), pcm)
    }
}

impl Mpeg {
    fn decode(&mut self, frame: &[u8], pcm: &mut Vec<f32>) -> Decoded {
        let Some(header) = FrameHeader::parse(frame) else { return Decoded::Nothing };
        let FrameHeader { frequency_hz, channels, samples, length, .. } = header;
        let (channels, Ok(samples)) = (usize::from(channels), usize::try_from(samples)) else {
            return Decoded::Nothing;
        };
        let shape = Shape { frequency_hz, channels, samples };
        let Some(frame) = frame.get(..length) else { return Decoded::Silence(shape) };
        let (_, decoded) = self.decoder.decode(frame, &mut self.decoded);
        match decoded.map(|info| (info.samples_produced, info.channels.num(), info.sample_rate)) {
            Ok(told) if told == (samples, header.channels, frequency_hz) => {
                pcm.extend_from_slice(&self.decoded[..samples * channels]);
                Decoded::Sound(shape)
            }
            _ => Decoded::Silence(shape),
        }
    }
}

/// Samples as filters and coders want them, whatever a frame decoded to.
fn bounded(sample: f32) -> f32 {
    if sample.is_nan() { 0.0 } else { sample.clamp(-1.0, 1.0) }
}
