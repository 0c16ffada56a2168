//! Packets between devices and what carries them, in real time.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a driver owns clock and devices")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use outflow_media::Time;
use outflow_sim::network::{Arrived, World};
use outflow_socket::Tap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::limits::{PACKET_BYTES_MAX, READ_AT_ONCE};

/// The longest that is waited at a time.
const WAITS_MAX: Duration = Duration::from_millis(100);

/// Bytes that packets are put into, one behind the other.
const BLOCK: usize = 256 * 1024;

/// What carries packets from device to device: a [`World`], or some of them and what chooses among them. It is told
/// the time, and has no clock.
pub trait Carry {
    /// A packet is sent at a port: one of IP, whole.
    fn handle(&mut self, now: Time, port: usize, packet: Bytes);

    /// When the next thing happens.
    fn next_at(&mut self) -> Option<Time>;

    /// It is `now`: all that was to happen until now happens.
    fn advance(&mut self, now: Time);

    /// Adds what has come to ports since the last time.
    fn arrived(&mut self, to: &mut Vec<Arrived>);

    /// A device has taken a packet, so much later than it should have, or has not.
    fn tell(&mut self, behind: Option<Duration>);
}

impl Carry for World {
    fn handle(&mut self, now: Time, port: usize, packet: Bytes) {
        World::handle(self, now, port, packet);
    }

    fn next_at(&mut self) -> Option<Time> {
        World::next_at(self)
    }

    fn advance(&mut self, now: Time) {
        World::advance(self, now);
    }

    fn arrived(&mut self, to: &mut Vec<Arrived>) {
        to.extend(World::arrived(self));
    }

    fn tell(&mut self, behind: Option<Duration>) {
        World::tell(self, behind);
    }
}

/// A device, and the port that it is.
#[derive(Debug)]
pub struct Device {
    /// Of what carries its packets.
    pub port: usize,
    /// The device.
    pub tap: Tap,
}

/// Devices, and what carries their packets. One thread drives it.
pub struct Drive<C> {
    /// What carries them.
    pub carries: C,
    devices: Vec<Device>,
    began: Instant,
    scratch: Vec<u8>,
    block: BytesMut,
    arrived: Vec<Arrived>,
}

/// From now on a wait of this thread ends when it is over, not up to 50 µs later.
pub fn punctual() {
    let _as_before = nix::sys::prctl::set_timerslack(1);
}

impl<C: Carry> Drive<C> {
    /// Time begins now.
    pub fn new(carries: C, devices: Vec<Device>) -> Self {
        Drive {
            carries,
            devices,
            began: Instant::now(),
            scratch: vec![0; PACKET_BYTES_MAX],
            block: BytesMut::new(),
            arrived: Vec::new(),
        }
    }

    /// When time began.
    pub const fn began(&self) -> Instant {
        self.began
    }

    /// Since then.
    pub fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Waits for a packet, for the time of one that travels, or until one of these others can be read: whether one can.
    /// It does not wait for long in any case.
    ///
    /// # Errors
    /// The system refuses to wait.
    pub fn wait<'fd>(&'fd mut self, others: impl Iterator<Item = BorrowedFd<'fd>>) -> io::Result<bool> {
        let now = self.now();
        let wait = self.carries.next_at().map_or(WAITS_MAX, |at| at.since(now).min(WAITS_MAX));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let devices = self.devices.iter().map(|device| device.tap.as_fd());
        let all = devices.chain(others);
        let mut all: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut all, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(all[self.devices.len()..].iter().any(|other| !other.revents().is_empty()))
    }

    /// Gives devices what is due, and takes what was sent by them.
    pub fn turn(&mut self) {
        self.pass();
        (0..self.devices.len()).for_each(|at| self.read(at));
        self.pass();
    }

    /// Takes what was sent by a device.
    fn read(&mut self, at: usize) {
        for _ in 0..READ_AT_ONCE {
            let Device { port, tap } = &self.devices[at];
            let port = *port;
            let Ok(read) = tap.read(&mut self.scratch) else { return };
            let Some(bytes) = read else { continue };
            if self.block.capacity() < bytes {
                self.block = BytesMut::with_capacity(BLOCK);
            }
            self.block.extend_from_slice(&self.scratch[..bytes]);
            let (now, packet) = (self.now(), self.block.split().freeze());
            self.carries.handle(now, port, packet);
        }
    }

    /// Gives devices what has come to them.
    fn pass(&mut self) {
        self.carries.advance(self.now());
        let mut arrived = core::mem::take(&mut self.arrived);
        self.carries.arrived(&mut arrived);
        for Arrived { port, at, packet } in arrived.drain(..) {
            let Some(device) = self.devices.iter().find(|device| device.port == port) else { continue };
            let written = device.tap.write(&packet);
            let behind = written.ok().map(|_| self.now().since(at));
            self.carries.tell(behind);
        }
        self.arrived = arrived;
    }
}
