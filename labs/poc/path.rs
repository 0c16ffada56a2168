//! The impaired path: two namespaces, a TUN device in each, and between them this program, which delays what goes
//! either way, loses some of it, and counts. All transports go through it alike and at the same time; it tells them
//! apart by their ports.
//!
//! A device of packets has no offloads: what comes out is what a wire would carry, whole and with checksums.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use fastrand::Rng;
use outflow_labs::net::Namespace;
use outflow_labs::process::be_preferred;

use crate::loss::Weather;
use crate::transport::Transport;

/// Where senders are.
pub(crate) const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Where receivers are.
pub(crate) const SINK: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const DEVICE: &str = "path0";
const MTU: usize = 1500;

/// From the source to the sink, or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    There,
    Back,
}

/// What has gone into the path of a flow, one way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Count {
    pub(crate) packets: u64,
    /// With the header of IP.
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    /// Those that were lost on the way there.
    pub(crate) lost_packets: Vec<(Instant, Vec<u8>)>,
}

/// Counts by flow and way.
pub(crate) type Counts = BTreeMap<(Transport, Way), Count>;

/// What is lost both ways, from a moment on.
#[derive(Debug)]
struct Storm {
    begins: Instant,
    there: Weather,
    back: Weather,
    seed: u64,
}

#[derive(Debug, Default)]
struct Shared {
    counts: Mutex<Counts>,
    storm: OnceLock<Storm>,
}

/// The path, gone when this is dropped.
pub(crate) struct Path {
    pub(crate) source: Namespace,
    pub(crate) sink: Namespace,
    shared: Arc<Shared>,
}

impl Path {
    /// A path that loses nothing yet and takes so long either way.
    pub(crate) fn new(delay: Duration) -> Result<Self> {
        let (source, sink) = (Namespace::new("source")?, Namespace::new("sink")?);
        let (at_source, at_sink) = (device(&source, (SOURCE, SINK))?, device(&sink, (SINK, SOURCE))?);
        let path = Self { source, sink, shared: Arc::default() };
        for (way, from, to) in [(Way::There, &at_source, &at_sink), (Way::Back, &at_sink, &at_source)] {
            let (from, to, shared) = (from.try_clone()?, to.try_clone()?, Arc::clone(&path.shared));
            let (entrance, exit) = channel();
            std::thread::spawn(move || take_in(from, way, delay, &shared, &entrance));
            std::thread::spawn(move || let_out(to, &exit));
        }
        Ok(path)
    }

    /// Begins to lose a share of all packets at a moment, for so long at most.
    pub(crate) fn storm(&self, share: f64, begins: Instant, lasts: Duration, seed: u64) {
        let weather = |seed| Weather::new(share, lasts, seed);
        let storm = Storm { begins, there: weather(seed), back: weather(seed ^ 0xb4c), seed };
        self.shared.storm.set(storm).expect("there is one storm a path");
    }

    /// What has been counted so far.
    pub(crate) fn counts(&self) -> Counts {
        self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Path {
    /// Threads that wait for packets of a device end with it.
    fn drop(&mut self) {
        for namespace in [&self.source, &self.sink] {
            let _gone_with_the_namespace = namespace.ip(&["link", "delete", DEVICE]);
        }
    }
}

/// Makes a device of packets in a namespace. It is gone when its file is closed.
fn device(namespace: &Namespace, (here, there): (Ipv4Addr, Ipv4Addr)) -> Result<File> {
    let file = namespace.run(open_device).context("cannot make a TUN device")?;
    // Nothing is to be lost but what we lose.
    for line in [
        format!("link set {DEVICE} mtu {MTU} txqueuelen 10000"),
        format!("address add {here} peer {there} dev {DEVICE}"),
        format!("link set {DEVICE} up"),
    ] {
        namespace.ip(&line.split_whitespace().collect::<Vec<_>>())?;
    }
    Ok(file)
}

#[allow(unsafe_code, reason = "a TUN device is made by an ioctl that no library here wraps")]
fn open_device() -> std::io::Result<File> {
    use nix::libc;

    let file = File::options().read(true).write(true).open("/dev/net/tun")?;
    // struct ifreq: 16 bytes of name, and a union of which the flags are the first two.
    #[repr(C)]
    struct Request {
        name: [u8; 16],
        flags: libc::c_short,
        rest: [u8; 22],
    }
    let mut request =
        Request { name: [0; 16], flags: (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short, rest: [0; 22] };
    request.name[..DEVICE.len()].copy_from_slice(DEVICE.as_bytes());
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, 40 bytes, which `request` is and outlives.
    let made = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if made < 0 { Err(std::io::Error::last_os_error()) } else { Ok(file) }
}

/// Takes packets out of a device; those that are not lost go on.
fn take_in(mut device: File, way: Way, delay: Duration, shared: &Shared, on: &Sender<(Instant, Vec<u8>)>) {
    be_preferred();
    let mut chances: BTreeMap<Transport, Rng> = BTreeMap::new();
    let mut packet = vec![0; 2 * MTU];
    while let Ok(bytes) = device.read(&mut packet) {
        let (now, packet) = (Instant::now(), packet[..bytes].to_vec());
        let Some(transport) = transport_of(&packet) else { continue };
        let storm = shared.storm.get().filter(|storm| storm.begins <= now);
        let is_lost = storm.is_some_and(|storm| {
            let chance = chances.entry(transport).or_insert_with(|| Rng::with_seed(storm.seed));
            let weather = if way == Way::There { &storm.there } else { &storm.back };
            weather.loses(now - storm.begins, chance)
        });
        let mut counts = shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry((transport, way)).or_default();
        count.packets += 1;
        count.bytes += bytes as u64;
        count.lost += u64::from(is_lost);
        if is_lost && way == Way::There {
            count.lost_packets.push((now, packet));
        } else if !is_lost && on.send((now + delay, packet)).is_err() {
            break;
        }
    }
}

/// Lets packets out at the other end when they are due.
fn let_out(mut device: File, from: &Receiver<(Instant, Vec<u8>)>) {
    be_preferred();
    while let Ok((due, packet)) = from.recv() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if device.write_all(&packet).is_err() {
            break;
        }
    }
}

/// Whose a packet is, by its ports.
fn transport_of(packet: &[u8]) -> Option<Transport> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    let is_v4 = packet[0] >> 4 == 4 && matches!(packet.get(9)?, 6 | 17);
    let port = |at: usize| Some(u16::from_be_bytes(*packet.get(header + at..)?.first_chunk()?));
    let ports = [port(0)?, port(2)?];
    Transport::ALL.into_iter().find(|transport| is_v4 && ports.contains(&transport.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_told_apart_by_their_ports_either_way() {
        let packet = |protocol: u8, from: u16, to: u16| {
            let mut packet = vec![0; 28];
            packet[0] = 0x45;
            packet[9] = protocol;
            packet[20..22].copy_from_slice(&from.to_be_bytes());
            packet[22..24].copy_from_slice(&to.to_be_bytes());
            packet
        };
        let (tcp, srt) = (Transport::Tcp.port(), Transport::Srt.port());
        assert_eq!(transport_of(&packet(6, 40_000, tcp)), Some(Transport::Tcp));
        assert_eq!(transport_of(&packet(17, srt, 40_000)), Some(Transport::Srt));
        assert_eq!(transport_of(&packet(17, 40_000, 40_001)), None);
        assert_eq!(transport_of(&packet(1, 0, tcp)), None);
        assert_eq!(transport_of(&[0x45]), None);
    }
}
