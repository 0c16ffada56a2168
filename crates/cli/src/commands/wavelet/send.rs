//! `outflow wavelet send`

use std::io::ErrorKind;
use std::net::{ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::ProgressBar;
use outflow_config::DatagramSink;
use outflow_engine::message::Destination;
use outflow_packet::gmc::Mark;
use outflow_packet::limits::MARKED_BYTES_MAX;
use outflow_wavelet::rtp::{CLOCK_RATE, Marker, PACKET_BYTES, Packetizer, description};
use outflow_wavelet::y4m::Rate;
use outflow_wavelet::{Codestream, pool};

use super::coding::{CodingArgs, cut, rate};
use super::files::{is_standard, progress};
use super::source::{Frame, Source};

/// Packets of a frame are spread over this share of the time until the next one.
const SPREAD: f64 = 0.8;

/// Sends a video by RTP in real time
///
/// Raw video is coded on the way. The session description goes into the configuration of a relay:
/// source = "rtp://0.0.0.0:5004", sdp = "clip.sdp".
#[derive(Debug, Args)]
pub(super) struct Send {
    /// What `encode` has written, or raw video (Y4M), or - for standard input
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// Where to: rtp://HOST:PORT, or rtp://GROUP:PORT?ttl=8&interface=eth0
    #[arg(value_name = "URL", value_parser = destination)]
    to: DatagramSink,
    #[command(flatten)]
    coding: CodingArgs,
    /// Frames a second, if other than the video tells
    #[arg(long, value_name = "RATE", value_parser = rate)]
    fps: Option<Rate>,
    /// Begin again at the end of the file
    #[arg(long = "loop")]
    again: bool,
    /// Write a session description
    #[arg(long, value_name = "FILE")]
    sdp: Option<PathBuf>,
    /// Send the layers of this level alone: 1 all of them, the number of layers the base
    #[arg(long, value_name = "LEVEL", default_value_t = 1)]
    level: usize,
    /// Bytes of a packet at most, RTP header included; to a group no more than 1452
    #[arg(long, value_name = "BYTES", default_value_t = PACKET_BYTES)]
    packet: usize,
}

fn destination(text: &str) -> Result<DatagramSink, String> {
    let place = text.strip_prefix("rtp://").ok_or("it does not begin with rtp://")?;
    let (host, query) = place.split_at(place.find(['?', '/']).unwrap_or(place.len()));
    let mut found = host.to_socket_addrs().map_err(|error| error.to_string())?;
    let to = found.next().ok_or("its address is not known")?;
    let read = DatagramSink::parse(&format!("rtp://{to}{query}")).ok_or("it is no address to send to")?;
    read.map_err(|error| error.to_string())
}

impl Send {
    pub(super) fn run(self) -> Result<(), String> {
        if self.again && is_standard(&self.from) {
            return Err("standard input cannot be read again: leave --loop out, or name a file".to_owned());
        }
        let source = Source::open(&self.from, self.again)?;
        let told = source.header();
        let rate = self.fps.or(told.as_ref().and_then(|header| header.rate)).unwrap_or(Rate::DEFAULT);
        if let Some(file) = &self.sdp {
            let text = description(Some(source.shape()?), self.to.to.ip(), &[self.to.to.port()]);
            std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let comment = told.map_or_else(String::new, |mut header| {
            header.rate = Some(rate);
            header.to_string()
        });
        let (coding, threads) = (self.coding.coding()?, self.coding.threads());
        let mut sender = Sender::new(self.socket()?, self.to.to.ip().is_multicast(), rate, self.packet);
        let code = |frame: Result<Frame, String>| {
            let mut frame = frame?.coded(&coding, &comment)?;
            cut(&mut frame, self.level)?;
            Ok(frame)
        };
        pool::in_order(threads, source, code, |frame: Result<_, String>| sender.send(&frame?))?;
        sender.bar.abandon();
        Ok(())
    }

    fn socket(&self) -> Result<UdpSocket, String> {
        let DatagramSink { to, ttl, interface, loops, .. } = self.to.clone();
        let destination = Destination { to, from: None, ttl, interface, loops };
        let socket = outflow_engine::open_push(&destination).map_err(|error| error.to_string())?;
        let ready = socket.set_nonblocking(false).and_then(|()| socket.connect(to));
        ready.map_err(|error| format!("cannot send to {to}: {error}"))?;
        Ok(socket)
    }
}

/// Sends frames when they are due.
struct Sender {
    socket: UdpSocket,
    packetizer: Packetizer,
    /// Of what goes to a group: routers may be between that leave out what no member behind them wants.
    marker: Option<Marker>,
    rate: Rate,
    /// When the first frame was due; later, where frames were late.
    began: Instant,
    frames: u64,
    /// Of the first frame (RFC 3550, section 5.1: drawn at random).
    timestamp: u32,
    late: u64,
    unheard: u64,
    bytes: u64,
    bar: ProgressBar,
}

impl Sender {
    fn new(socket: UdpSocket, is_group: bool, rate: Rate, packet_bytes: usize) -> Self {
        let marker = is_group.then(Marker::default);
        let packet_bytes = match marker {
            // Longer ones would have no place for their mark.
            Some(_) => packet_bytes.min(MARKED_BYTES_MAX).saturating_sub(Mark::BYTES),
            None => packet_bytes,
        };
        Sender {
            socket,
            packetizer: Packetizer::new(fastrand::u32(..), fastrand::u16(..), packet_bytes),
            marker,
            rate,
            began: Instant::now(),
            frames: 0,
            timestamp: fastrand::u32(..),
            late: 0,
            unheard: 0,
            bytes: 0,
            bar: progress(),
        }
    }

    fn due(&self, frame: u64) -> Instant {
        self.began + Duration::from_nanos(self.rate.ticks(frame, 1_000_000_000))
    }

    fn send(&mut self, frame: &Codestream) -> Result<(), String> {
        if self.frames == 0 {
            self.began = Instant::now();
        }
        let (now, mut due, next) = (Instant::now(), self.due(self.frames), self.due(self.frames + 1));
        let interval = next - due;
        if now > next {
            // What comes late is not caught up with in a hurry: all that follows is as much later.
            self.late += 1;
            self.began += now - due;
            due = now;
        }
        let timestamp = self.timestamp.wrapping_add(self.rate.ticks(self.frames, CLOCK_RATE) as u32);
        let mut packets = Vec::new();
        let marker = &mut self.marker;
        let made = self.packetizer.packets(frame, timestamp, |packet| {
            packets
                .push(marker.as_mut().map_or_else(|| packet.to_vec(), |marker| marker.mark(packet).into()));
        });
        made.map_err(|error| error.to_string())?;
        let step = interval.mul_f64(SPREAD / packets.len() as f64);
        for (packet, number) in packets.iter().zip(0..) {
            std::thread::sleep((due + step * number).saturating_duration_since(Instant::now()));
            self.datagram(packet)?;
        }
        self.frames += 1;
        self.bar.inc(1);
        self.bar.set_message(self.account());
        Ok(())
    }

    fn datagram(&mut self, packet: &[u8]) -> Result<(), String> {
        self.bytes += packet.len() as u64;
        match self.socket.send(packet) {
            Ok(_) => Ok(()),
            // No receiver listens yet, or any more: that may change.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.unheard += 1;
                Ok(())
            }
            Err(error) => Err(format!("cannot send: {error}")),
        }
    }

    fn account(&self) -> String {
        let mut text = format!("{:.2} MB", self.bytes as f64 / 1e6);
        if self.late > 0 {
            text += &format!(" · {} frames late: coding takes too long, or the input is slow", self.late);
        }
        if self.unheard > 0 {
            text += &format!(" · {} packets reached no listener", self.unheard);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_addresses_with_ports() {
        let read = |text: &str| destination(text).map(|sink| sink.to_string());
        assert_eq!(read("rtp://127.0.0.1:5004").as_deref(), Ok("rtp://127.0.0.1:5004"));
        assert_eq!(read("rtp://localhost:5004?ttl=3").map_err(|why| why.contains("group")), Err(true));
        assert_eq!(read("rtp://[::1]:5").as_deref(), Ok("rtp://[::1]:5"));
        let group = "rtp://239.1.1.1:5004?ttl=8&interface=eth0";
        assert_eq!(read(group).as_deref(), Ok(group));
        assert!(destination("udp://127.0.0.1:5004").unwrap_err().contains("rtp://"));
        assert!(destination("rtp://127.0.0.1").is_err());
    }
}
