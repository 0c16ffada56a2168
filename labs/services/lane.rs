//! A way that images go: from the source's host, through one that works on them, to the receiver's.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use outflow_labs::media::wall_nanos;
use outflow_labs::net::{PLAYER, Paths, RELAY_IN};
use outflow_labs::receive::Stamped;
use outflow_labs::relay::PATIENCE;

use super::picture::Datagrams;

/// What has not come by then is lost.
const LOST_AFTER: Duration = Duration::from_millis(150);
/// Bytes that are on their way at once, where a core is to be saturated, and images at least and at
/// most.
const WINDOW_BYTES: usize = 192 << 10;
const WINDOW: (usize, usize) = (4, 48);

/// A way for one kind of image.
pub(crate) struct Lane {
    socket: UdpSocket,
    receiver: Stamped,
    image: Datagrams,
}

/// Images that went through one after the other as fast as they could.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flow {
    pub(crate) images: u64,
    pub(crate) lost: u64,
    pub(crate) time: Duration,
}

impl Lane {
    /// From the source to a port of the working host, from there to the same port of the players' host.
    pub(crate) fn open(paths: &Paths, port: u16, image: Datagrams) -> Result<Self> {
        let socket = paths.source.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        socket.connect((RELAY_IN, port))?;
        setsockopt(&socket, sockopt::SndBufForce, &(8 << 20))?;
        if image.count() > 1 {
            let segment = i32::try_from(image.segment)?;
            setsockopt(&socket, sockopt::UdpGsoSegment, &segment).context("no segmented sends of UDP")?;
        }
        let receiver = paths.players.run(|| UdpSocket::bind(Self::far_end(port)))?;
        if image.is_rtp() {
            // Packets that were sent together come together.
            setsockopt(&receiver, sockopt::UdpGroSegment, &true).context("no UDP_GRO")?;
        }
        Ok(Lane { socket, receiver: Stamped::new(receiver, LOST_AFTER)?, image })
    }

    /// Where the images of a port are to be sent.
    pub(crate) fn far_end(port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(PLAYER, port)
    }

    fn send(&mut self) -> Result<()> {
        let Lane { socket, image, .. } = self;
        match socket.send(image.next()) {
            Ok(_) => Ok(()),
            // There is no listener yet.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(()),
            Err(error) => Err(error).context("cannot send an image"),
        }
    }

    /// Waits until images come through.
    pub(crate) fn warm_up(&mut self, account: impl Fn() -> String) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut good = 0;
        while good < 10 {
            good += usize::from(self.delay_us()?.is_some());
            ensure!(Instant::now() < until, "images do not come through: {}", account());
        }
        Ok(())
    }

    /// Sends one image; microseconds from before it was sent until all of it was there. `None` if it
    /// got lost.
    pub(crate) fn delay_us(&mut self) -> Result<Option<f64>> {
        while self.receiver.read_now().is_some() {}
        let began = wall_nanos();
        self.send()?;
        let mut left = self.image.count();
        loop {
            let Some((bytes, at)) = self.receiver.read() else { return Ok(None) };
            left = left.saturating_sub(self.image.datagrams(bytes.len()));
            if left == 0 {
                return Ok(Some(at.saturating_sub(began) as f64 / 1e3));
            }
        }
    }

    /// Keeps the way full for so long.
    pub(crate) fn flow(&mut self, time: Duration) -> Result<Flow> {
        let (count, mut flow) = (self.image.count(), Flow::default());
        let window = (WINDOW_BYTES / self.image.bytes.len()).clamp(WINDOW.0, WINDOW.1);
        while self.receiver.read_now().is_some() {}
        let began = Instant::now();
        let (mut ahead, mut came) = (0, 0);
        while began.elapsed() < time {
            while ahead < window {
                self.send()?;
                ahead += 1;
            }
            let Some((bytes, _)) = self.receiver.read() else {
                // What is on its way no more.
                flow.lost += ahead as u64;
                (ahead, came) = (0, 0);
                continue;
            };
            came += self.image.datagrams(bytes.len());
            while let Some((bytes, _)) = self.receiver.read_now() {
                came += self.image.datagrams(bytes.len());
            }
            let images = (came / count).min(ahead);
            came -= images * count;
            ahead -= images;
            flow.images += images as u64;
        }
        flow.time = began.elapsed();
        Ok(flow)
    }
}
