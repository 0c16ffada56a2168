//! Sends the video by RTP, and keeps what it has sent of each layer, and when.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Result;
use outflow_labs::media::wall_nanos;
use outflow_labs::net::{Paths, RELAY_IN};
use outflow_rtp::RtpHeader;
use outflow_rtp::payload::jpeg2000::Header;
use outflow_wavelet::Codestream;
use outflow_wavelet::rtp::{CLOCK_RATE, PACKET_BYTES, Packetizer};

use super::video::{FPS, LEVELS};

/// Of the packets.
pub(crate) const SSRC: u32 = 0x0F10_0F33;
/// The packets of a frame are spread over this share of the time until the next one, as `outflow wavelet
/// send` does it.
const SPREAD: f64 = 0.8;

/// Packets, and their bytes with RTP headers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Amount {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// What was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    layers: [Amount; LEVELS],
    pub(crate) frames: Vec<Frame>,
}

/// A frame on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// Its RTP timestamp.
    pub(crate) timestamp: u32,
    /// When the first packet of each layer was sent: nanoseconds since 1970. The main header goes with the
    /// base.
    pub(crate) layers: [u64; LEVELS],
}

impl Sent {
    /// What of it is for a receiver of this level.
    pub(crate) fn at(&self, level: usize) -> Amount {
        self.layers.iter().take(LEVELS + 1 - level).fold(Amount::default(), |sum, layer| Amount {
            packets: sum.packets + layer.packets,
            bytes: sum.bytes + layer.bytes,
        })
    }
}

/// The layer of a packet, 0 the base, and its timestamp.
pub(crate) fn layer(packet: &[u8]) -> Result<(usize, u32)> {
    let rtp = RtpHeader::new_checked(packet)?;
    let (header, _) = Header::parse(rtp.payload())?;
    // Priorities are layers, counted from 1; 0 is the main header (RFC 5372, section 3.3).
    Ok((usize::from(header.priority.saturating_sub(1)), rtp.timestamp()))
}

/// A source that sends only while [`Source::run`] runs: these frames, over and over.
pub(crate) struct Source {
    socket: UdpSocket,
    packetizer: Packetizer,
    video: Vec<Codestream>,
    sent: usize,
}

impl Source {
    pub(crate) fn new(paths: &Paths, port: u16, video: Vec<Codestream>) -> Result<Self> {
        let socket = paths.source.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        socket.connect((RELAY_IN, port))?;
        Ok(Self { socket, packetizer: Packetizer::new(SSRC, 0, PACKET_BYTES), video, sent: 0 })
    }

    /// Sends `frames` frames, each packet when it is due.
    pub(crate) fn run(&mut self, frames: usize) -> Result<Sent> {
        let interval = Duration::from_secs(1) / FPS;
        let (mut sent, mut due) =
            (Sent { layers: [Amount::default(); LEVELS], frames: Vec::new() }, Instant::now());
        for _ in 0..frames {
            let timestamp = (self.sent as u32).wrapping_mul(CLOCK_RATE / FPS);
            let codestream = &self.video[self.sent % self.video.len()];
            let mut packets = Vec::new();
            self.packetizer.packets(codestream, timestamp, |packet| packets.push(packet.to_vec()))?;
            let step = interval.mul_f64(SPREAD / packets.len() as f64);
            let mut frame = Frame { timestamp, layers: [0; LEVELS] };
            for (packet, number) in packets.iter().zip(0..) {
                std::thread::sleep((due + step * number).saturating_duration_since(Instant::now()));
                let (layer, _) = layer(packet)?;
                if frame.layers[layer] == 0 {
                    frame.layers[layer] = wall_nanos();
                }
                self.socket.send(packet)?;
                sent.layers[layer].packets += 1;
                sent.layers[layer].bytes += packet.len() as u64;
            }
            sent.frames.push(frame);
            self.sent += 1;
            due += interval;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        Ok(sent)
    }
}
