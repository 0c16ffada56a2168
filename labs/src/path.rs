//! Paths that are narrow, slow or lossy, between two namespaces: a device of packets in each, and between them what
//! `outflow emulate` runs, on a thread of this process.
//!
//! The devices have no offloads: what comes out is what a wire would carry, whole and with checksums.

use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use outflow_emulate::drive::{Carry, Device, Drive, punctual};
use outflow_emulate::{between, link};
use outflow_media::Time;
use outflow_sim::network::World;
use outflow_socket::Tap;

use crate::net::{Namespace, PLAYER, Paths, RELAY_OUT};
use crate::process::be_preferred;

/// The link from the first place to the second one, and the one back.
pub const THERE: &str = "there";
/// The link back.
pub const BACK: &str = "back";

/// Packets that wait in a device until they are read: nothing is to be lost but what the path loses.
const QUEUE: &str = "10000";

/// A device that packets go into and come out of.
#[derive(Debug, Clone, Copy)]
pub struct Place<'n> {
    /// Where it is.
    pub namespace: &'n Namespace,
    /// What it is called.
    pub device: &'n str,
    /// Its address, in a network of 24 bits.
    pub address: Ipv4Addr,
}

/// Done by the path's thread with what carries its packets.
type Wish<C> = Box<dyn FnOnce(&mut C) + Send>;

/// A path, gone when this is dropped. What carries its packets belongs to its thread, which does with it what is
/// wished.
#[derive(Debug)]
pub struct Path<C> {
    began: Instant,
    wishes: Sender<Wish<C>>,
    /// Wakes the thread, and ends it when it is closed.
    bell: Option<UnixStream>,
    thread: Option<JoinHandle<Result<()>>>,
}

/// A world of two places: the link there, and the one back, in the words of `outflow emulate`.
///
/// # Errors
/// What is wrong with them.
pub fn world(there: &str, back: &str, seed: u64) -> Result<World> {
    let network = between(["first", "second"], link(there)?, link(back)?, seed);
    Ok(World::new(&network, &[], 0)?)
}

impl<C: Carry + 'static> Path<C> {
    /// A path between two places, which are the ports 0 and 1 of what carries its packets.
    ///
    /// # Errors
    /// It cannot be made, or the system refuses a device.
    pub fn new(places: [Place<'_>; 2], make: impl FnOnce() -> Result<C> + Send + 'static) -> Result<Self> {
        let mut devices = Vec::new();
        for (port, place) in places.iter().enumerate() {
            devices.push(Device { port, tap: device(place)? });
        }
        let (wishes, wished) = channel();
        let (bell, rings) = UnixStream::pair()?;
        let (begins, begun) = channel();
        let thread = std::thread::spawn(move || {
            be_preferred();
            punctual();
            let mut drive = Drive::new(make()?, devices);
            begins.send(drive.began())?;
            run(&mut drive, &wished, rings)
        });
        let mut path = Path { began: Instant::now(), wishes, bell: Some(bell), thread: Some(thread) };
        match begun.recv() {
            Ok(began) => path.began = began,
            Err(_) => path.end()?,
        }
        Ok(path)
    }

    /// The time of the path at some moment.
    pub fn time_of(&self, at: Instant) -> Time {
        Time::ZERO + at.saturating_duration_since(self.began)
    }

    /// When that is.
    pub fn moment_of(&self, time: Time) -> Instant {
        self.began + time.since(Time::ZERO)
    }

    /// Does something with what carries the packets.
    ///
    /// # Errors
    /// The path has ended.
    pub fn with<T: Send + 'static>(&self, work: impl FnOnce(&mut C) -> T + Send + 'static) -> Result<T> {
        let (gives, given) = channel();
        let ended = "the path has ended";
        self.wishes.send(Box::new(move |carries| drop(gives.send(work(carries))))).ok().context(ended)?;
        self.bell.as_ref().context(ended)?.write_all(&[0]).context(ended)?;
        given.recv().context(ended)
    }
}

impl Path<World> {
    /// A link of the path is another one from now on, in the words of `outflow emulate`.
    ///
    /// # Errors
    /// It cannot become that.
    pub fn change(&self, name: &'static str, words: &str) -> Result<()> {
        let model = link(words)?;
        Ok(self.with(move |world| world.change(Time::ZERO, name, &model))??)
    }
}

impl<C> Path<C> {
    fn end(&mut self) -> Result<()> {
        drop(self.bell.take());
        let ended = self.thread.take().map(JoinHandle::join);
        ended.unwrap_or(Ok(Ok(()))).unwrap_or_else(|_| bail!("its thread has panicked"))
    }
}

impl<C> Drop for Path<C> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            crate::figures::progress(format!("the path: {error:#}"));
        }
    }
}

/// Carries packets until the bell is closed.
fn run<C: Carry>(drive: &mut Drive<C>, wished: &Receiver<Wish<C>>, mut rings: UnixStream) -> Result<()> {
    rings.set_nonblocking(true)?;
    let mut rung = [0; 64];
    loop {
        if drive.wait([rings.as_fd()].into_iter())? && rings.read(&mut rung).is_ok_and(|bytes| bytes == 0) {
            return Ok(());
        }
        drive.turn();
        wished.try_iter().for_each(|wish| wish(&mut drive.carries));
    }
}

/// Makes a device, which is gone when its file is closed.
fn device(place: &Place<'_>) -> Result<Tap> {
    let Place { namespace, device, address } = place;
    // What IPv6 says of its own would take chances, and a buffer.
    namespace.sysctl("net.ipv6.conf.default.disable_ipv6", "1")?;
    let tap = namespace.run(|| Tap::open(device)).context("cannot make a TAP device")?;
    namespace.sysctl(&format!("net.ipv4.conf.{device}.rp_filter"), "0")?;
    namespace.ip(&["address", "add", &format!("{address}/24"), "dev", device])?;
    namespace.ip(&["link", "set", device, "txqueuelen", QUEUE, "up"])?;
    Ok(tap)
}

impl Paths {
    /// Puts a path in the place of the link between the relay and the players, by IPv4: what goes to them goes by the
    /// link `there`, what comes from them by `back`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn to_players(&self, there: &str, back: &str) -> Result<Path<World>> {
        self.relay.ip(&["link", "delete", "out0"])?;
        let relay = Place { namespace: &self.relay, device: "out0", address: RELAY_OUT };
        let players = Place { namespace: &self.players, device: "eth0", address: PLAYER };
        let (there, back) = (there.to_owned(), back.to_owned());
        let path = Path::new([relay, players], move || world(&there, &back, 1))?;
        for Place { namespace, device, .. } in [relay, players] {
            namespace.ip(&["route", "add", "224.0.0.0/4", "dev", device])?;
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::net::cannot_make_namespaces;

    const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 2)];

    #[test]
    fn packets_go_both_ways_and_a_link_can_change() -> Result<()> {
        if let Some(why) = cannot_make_namespaces() {
            outflow_skip::skipped("paths of labs", &why);
            return Ok(());
        }
        let spaces = [Namespace::new("first")?, Namespace::new("second")?];
        let place = |at: usize| Place { namespace: &spaces[at], device: "path0", address: ADDRESSES[at] };
        let path = Path::new([place(0), place(1)], || world("1 ms", "2 ms", 1))?;
        let socket = |at: usize| spaces[at].run(|| UdpSocket::bind((ADDRESSES[at], 5000)));
        let sockets = [socket(0)?, socket(1)?];
        sockets.iter().try_for_each(|socket| socket.set_read_timeout(Some(Duration::from_secs(10))))?;
        let mut bytes = [0; 16];
        sockets[0].send_to(b"there", (ADDRESSES[1], 5000))?;
        assert_eq!(sockets[1].recv(&mut bytes)?, 5);
        sockets[1].send_to(b"back", (ADDRESSES[0], 5000))?;
        assert_eq!(sockets[0].recv(&mut bytes)?, 4);
        path.with(|world| world.keep_lost(10))?;
        path.change(THERE, "1 ms, loss 100 %")?;
        assert!(path.change(THERE, "2 ms").is_err(), "it keeps its delay");
        sockets[0].send_to(b"lost", (ADDRESSES[1], 5000))?;
        let lost = || path.with(|world| world.lost().map(|lost| lost.packet.len()).next());
        crate::scene::wait_for("the packet is lost", || Ok(lost()? == Some(32)))?;
        Ok(())
    }

    #[test]
    fn a_path_that_cannot_be_made_says_why() -> Result<()> {
        assert!(world("5 ms, loss much", "5 ms", 1).is_err_and(|error| error.to_string().contains("much")));
        Ok(())
    }
}
