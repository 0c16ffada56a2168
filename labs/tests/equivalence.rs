//! The kernel's fan-out and the relay's own system calls are two ways to carry out the same orders:
//! the same captures with the same joins and leaves give every sink the same packets, byte for byte, by IPv4
//! and by IPv6.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use outflow_labs::media::Pulses;
use outflow_labs::media::rtp::{self, Pictures};
use outflow_labs::net::{PLAYER, PLAYER_V6, Paths, RELAY_IN, SOURCE};
use outflow_labs::process::Program;
use outflow_labs::programs::clip;
use outflow_labs::relay::{Relay, listen};
use outflow_labs::scene::{scene, wait_for};
use serde_json::{Value, json};

const TS: u16 = 5000;
const RTP: u16 = 5004;
/// Datagrams of the transport stream and packets of RTP in each step of the script.
const STEP: usize = 150;
const STEPS: usize = 8;
/// How many are sent back to back, in turn: single packets, and runs that go as one.
const BURSTS: [usize; 6] = [1, 3, 10, 2, 1, 7];
/// Bytes that wait for a sink to be looked at: more than a step and a kept GOP.
const BUFFER: usize = 16 << 20;
const QUIET: Duration = Duration::from_millis(300);

/// A sink of the script: the step before which it joins, and the one before which it leaves.
struct Sink {
    name: &'static str,
    stream: &'static str,
    port: u16,
    joins: usize,
    leaves: usize,
}

const fn sink(name: &'static str, stream: &'static str, port: u16, joins: usize, leaves: usize) -> Sink {
    Sink { name, stream, port, joins, leaves }
}

#[rustfmt::skip]
const SINKS: [Sink; 12] = [
    sink("always-1", "ts", 6000, 0, STEPS), sink("always-2", "ts", 6010, 0, STEPS),
    sink("until-3",  "ts", 6020, 0, 3),     sink("until-6",  "ts", 6030, 0, 6),
    sink("from-2",   "ts", 6040, 2, STEPS), sink("2-to-5",   "ts", 6050, 2, 5),
    sink("from-6",   "ts", 6060, 6, STEPS), sink("r-always", "rtp", 6100, 0, STEPS),
    sink("r-to-4",   "rtp", 6110, 0, 4),    sink("r-from-1", "rtp", 6120, 1, STEPS),
    sink("r-1-to-7", "rtp", 6130, 1, 7),    sink("r-from-5", "rtp", 6140, 5, STEPS),
];

/// By which family sinks are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
    /// In turn.
    Mixed,
}

impl Family {
    fn address(self, sink: &Sink) -> SocketAddr {
        // Ports are numbered by tens.
        let v6 = self == Family::V6 || (self == Family::Mixed && sink.port / 10 % 2 == 1);
        let ip = if v6 { IpAddr::from(PLAYER_V6) } else { IpAddr::from(PLAYER) };
        SocketAddr::new(ip, sink.port)
    }
}

/// What came to a sink, in order.
type Packets = Vec<Vec<u8>>;

struct Play<'n> {
    family: Family,
    relay: Relay<'n>,
    source: UdpSocket,
    sockets: BTreeMap<&'static str, UdpSocket>,
    got: BTreeMap<&'static str, Packets>,
    capture: Vec<u8>,
    pictures: Pictures,
    /// Datagrams of the transport stream, and packets of RTP.
    sent: (usize, usize),
}

impl<'n> Play<'n> {
    fn begin(paths: &'n Paths, folder: &Path, (way, family): (&str, Family)) -> Result<Self> {
        let sdp = folder.join("rtp.sdp");
        std::fs::write(&sdp, rtp::description(RTP))?;
        let configuration = format!(
            "{}\n[fanout]\nudp = \"{way}\"\n[limits]\nworkers = 1\n\
             [streams.ts]\nsource = \"udp://0.0.0.0:{TS}\"\nsource_timeout = \"60 s\"\n\
             [streams.rtp]\nsource = \"rtp://0.0.0.0:{RTP}\"\nsdp = \"{}\"\nsource_timeout = \"60 s\"\n",
            listen(),
            sdp.display()
        );
        let sockets = SINKS.iter().map(|sink| Ok((sink.name, listening(paths, family.address(sink))?)));
        Ok(Play {
            family,
            relay: Relay::start(&paths.relay, &configuration)?,
            source: paths.source.run(|| UdpSocket::bind((SOURCE, 0)))?,
            sockets: sockets.collect::<Result<_>>()?,
            got: SINKS.iter().map(|sink| (sink.name, Packets::new())).collect(),
            capture: std::fs::read(clip())?,
            pictures: Pictures::new(Pulses { payload: 1200, packets: 3, per_second: 20.0 }),
            sent: (0, 0),
        })
    }

    /// The whole script. Returns what each sink got.
    fn run(mut self, way: &str) -> Result<BTreeMap<&'static str, Packets>> {
        for step in 0..STEPS {
            for sink in SINKS.iter().filter(|sink| sink.joins == step) {
                let scheme = if sink.stream == "ts" { "udp" } else { "rtp" };
                let to = self.family.address(sink);
                let wish = json!({ "to": format!("{scheme}://{to}"), "name": sink.name });
                self.relay.post(&format!("/api/v1/streams/{}/sinks", sink.stream), &wish)?;
            }
            for sink in SINKS.iter().filter(|sink| sink.leaves == step) {
                self.relay.delete(&format!("/api/v1/streams/{}/sinks/{}", sink.stream, sink.name))?;
            }
            self.settle()?;
            self.send_step()?;
            self.settle()?;
        }
        self.took(way)?;
        Ok(self.got)
    }

    fn send_step(&mut self) -> Result<()> {
        let mut datagrams = self.capture.chunks(1316).cycle().skip(self.sent.0).take(STEP);
        let mut left = STEP;
        for burst in BURSTS.iter().cycle() {
            for datagram in datagrams.by_ref().take(*burst) {
                self.source.send_to(datagram, SocketAddr::from((RELAY_IN, TS)))?;
            }
            let picture = self.pictures.next_picture(0);
            for packet in picture.chunks(1200) {
                self.source.send_to(packet, SocketAddr::from((RELAY_IN, RTP)))?;
                self.sent.1 += 1;
            }
            std::thread::sleep(Duration::from_millis(2));
            left = left.saturating_sub(*burst);
            if left == 0 {
                break;
            }
        }
        self.sent.0 += STEP;
        Ok(())
    }

    /// Waits until the relay has taken all and has nothing more to send, and takes what has come.
    fn settle(&mut self) -> Result<()> {
        for (stream, sent) in [("ts", self.sent.0), ("rtp", self.sent.1)] {
            let has_taken = |state: &Value| state["source"]["packets"].as_u64().unwrap_or(0) >= sent as u64;
            self.relay.wait_stream(stream, &format!("at packet {sent}"), has_taken)?;
        }
        loop {
            std::thread::sleep(QUIET);
            let mut came = 0;
            let mut bytes = [0; 2048];
            for (name, socket) in &self.sockets {
                while let Ok(length) = socket.recv(&mut bytes) {
                    self.got.entry(name).or_default().push(bytes[..length].to_vec());
                    came += 1;
                }
            }
            if came == 0 {
                return Ok(());
            }
        }
    }

    /// Makes sure that packets went the way that the test is about, and none was dropped.
    fn took(&self, way: &str) -> Result<()> {
        for stream in ["ts", "rtp"] {
            let goes = |state: &Value| {
                let receivers = state["receivers"].as_array().cloned().unwrap_or_default();
                !receivers.is_empty() && receivers.iter().all(|receiver| receiver["path"] == way)
            };
            self.relay.wait_stream(stream, &format!("all goes by {way}"), goes)?;
            let drops = self.relay.stream(stream)?["out_drops"].clone();
            ensure!(drops == json!({}), "{stream}: dropped on the way out: {drops}");
        }
        Ok(())
    }
}

fn listening(paths: &Paths, at: SocketAddr) -> Result<UdpSocket> {
    let socket = paths.players.run(|| UdpSocket::bind(at))?;
    setsockopt(&socket, sockopt::RcvBufForce, &BUFFER)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Plays the script by one way.
fn play(way: &str, family: Family) -> Result<Option<BTreeMap<&'static str, Packets>>> {
    let Some(paths) = scene("equivalence of the ways out", &[])? else { return Ok(None) };
    let paths = paths.with_ipv6()?;
    // The device takes XDP frames when its peer looks at what comes in batches.
    Program::new("ethtool").args(["-K", "eth0", "gro", "on"]).within(&paths.players).finish(QUIET * 10)?;
    let folder = tempfile::tempdir()?;
    let play = Play::begin(&paths, folder.path(), (way, family))?;
    wait_for("the relay is up", || Ok(play.relay.json("/api/v1/streams").is_ok()))?;
    play.run(way).with_context(|| format!("by way of {way}, {family:?}")).map(Some)
}

#[test]
fn every_way_gives_every_sink_the_same_bytes() -> Result<()> {
    let Some(expected) = play("user", Family::V4)? else { return Ok(()) };
    for (name, packets) in &expected {
        ensure!(packets.len() > 100, "{name} got only {} packets", packets.len());
    }
    let others = [
        ("tc", Family::V4),
        ("xdp", Family::V4),
        ("user", Family::V6),
        ("tc", Family::Mixed),
        ("xdp", Family::Mixed),
    ];
    for (way, family) in others {
        let Some(got) = play(way, family)? else { return Ok(()) };
        for (name, packets) in &expected {
            let (count, other) = (packets.len(), got[name].len());
            let same = packets.iter().zip(&got[name]).take_while(|(a, b)| a == b).count();
            ensure!(
                *packets == got[name],
                "{name}: {other} packets by {way}, {family:?}, {count} by system calls; the first {same} are the same"
            );
        }
    }
    Ok(())
}
