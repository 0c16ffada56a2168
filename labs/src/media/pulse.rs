//! Sends pictures of RTP packets at an exact pace, for exactly as long as it is asked to.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::socket::{setsockopt, sockopt};

use super::monotonic_nanos;
use super::rtp::{Pictures, Pulses};
use crate::net::Namespace;

/// A source that sends only while [`Pulse::run`] runs. A picture of several packets goes out as one
/// segmented send: it arrives as what a network card with GRO makes of packets back to back.
#[derive(Debug)]
pub struct Pulse {
    socket: UdpSocket,
    shape: Pulses,
    pictures: Pictures,
    /// Says when pictures are due, if not each as long after the one before.
    chance: Option<fastrand::Rng>,
}

impl Pulse {
    /// A source in the namespace.
    pub fn new(namespace: &Namespace, to: SocketAddr, shape: Pulses) -> Result<Self> {
        let socket = namespace.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        socket.connect(to)?;
        if shape.packets > 1 {
            setsockopt(&socket, sockopt::UdpGsoSegment, &i32::from(shape.payload))
                .context("the kernel does not segment UDP")?;
        }
        Ok(Self { socket, shape, pictures: Pictures::new(shape), chance: None })
    }

    /// Has pictures sent at times by chance (a Poisson process), so that they find what they come to as it is on
    /// average, and not always at the same moment of what others do as regularly.
    pub fn by_chance(mut self, seed: u64) -> Self {
        self.chance = Some(fastrand::Rng::with_seed(seed));
        self
    }

    /// Sends `per_second` pictures a second from now on; their timestamps go on as they did.
    pub fn hurry(&mut self, per_second: f64) {
        self.shape.per_second = per_second;
    }

    /// Sends for so long, each picture when it is due, and returns how many packets that were.
    pub fn run(&mut self, time: Duration) -> u64 {
        let (seconds, rate) = (time.as_secs_f64(), self.shape.per_second);
        let pictures = (seconds * rate).round().max(1.0) as u32;
        let chosen = self.chance.as_mut().map(|chance| moments(chance, pictures, seconds));
        let began = Instant::now();
        let mut sent = 0;
        for number in 0..pictures {
            let at = chosen.as_ref().map_or(f64::from(number) / rate, |chosen| chosen[number as usize]);
            let due = began + Duration::from_secs_f64(at);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            // No listener (ECONNREFUSED) is no reason to stop: the relay may come later.
            let picture = self.pictures.next_picture(monotonic_nanos());
            if self.socket.send(picture).is_ok() {
                sent += u64::from(self.shape.packets);
            }
        }
        sent
    }
}

/// `count` moments within `seconds` seconds, in order, each as likely as any other.
fn moments(chance: &mut fastrand::Rng, count: u32, seconds: f64) -> Vec<f64> {
    let mut moments: Vec<f64> = (0..count).map(|_| chance.f64() * seconds).collect();
    moments.sort_by(f64::total_cmp);
    moments
}
