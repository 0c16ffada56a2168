//! Samples into packets of Opus (RFC 6716), by libopus.

use bytes::{Bytes, BytesMut};
use opusic_c::{Application, Bitrate, Channels, Encoder, SampleRate};

/// Samples of a packet: 20 ms.
pub(crate) const PACKET_SAMPLES: usize = 960;

/// Bytes of a packet of one frame, header included (RFC 6716, section 3.2.1).
const PACKET_BYTES_MAX: usize = 1276;

/// Bytes that are allocated at once for packets.
const BLOCK_BYTES: usize = 16 * 1024;

/// Codes the samples of one run.
pub(crate) struct Coder {
    encoder: Encoder,
    channels: usize,
    delay: usize,
    /// Less than a packet of samples between two calls.
    held: Vec<f32>,
    block: BytesMut,
}

impl Coder {
    /// For one or two channels; `None` if libopus refuses.
    pub(crate) fn new(channels: usize, bitrate_bps: u32) -> Option<Self> {
        let told = if channels == 1 { Channels::Mono } else { Channels::Stereo };
        let mut encoder = Encoder::new(told, SampleRate::Hz48000, Application::Audio).ok()?;
        encoder.set_bitrate(Bitrate::Value(bitrate_bps)).ok()?;
        let delay = usize::try_from(encoder.get_look_ahead().ok()?).ok()?;
        Some(Coder { encoder, channels, delay, held: Vec::new(), block: BytesMut::new() })
    }

    /// Forgets earlier samples.
    pub(crate) fn reset(&mut self) -> bool {
        self.held.clear();
        self.encoder.reset().is_ok()
    }

    /// Samples by which what is decoded from a packet is behind what went into it.
    pub(crate) const fn delay(&self) -> usize {
        self.delay
    }

    /// Takes interleaved samples, and gives the packets that they complete; `None` for one that libopus refuses.
    pub(crate) fn push(&mut self, samples: &[f32], out: &mut impl FnMut(Option<Bytes>)) {
        self.held.extend_from_slice(samples);
        let packet = PACKET_SAMPLES * self.channels;
        let whole = self.held.len() / packet * packet;
        for from in (0..whole).step_by(packet) {
            let coded = Self::encode(&mut self.encoder, &self.held[from..from + packet], &mut self.block);
            out(coded);
        }
        self.held.drain(..whole);
    }

    fn encode(encoder: &mut Encoder, samples: &[f32], block: &mut BytesMut) -> Option<Bytes> {
        if block.capacity() < PACKET_BYTES_MAX {
            block.reserve(BLOCK_BYTES);
        }
        block.resize(PACKET_BYTES_MAX, 0);
        let length = encoder.encode_float_to_slice(samples, block).unwrap_or(0);
        block.truncate(length);
        Some(block.split().freeze()).filter(|packet| !packet.is_empty())
    }
}
