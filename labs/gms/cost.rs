//! Core time of a router a packet that it forwards.

use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outflow_labs::bench::{OTHER_CPU, RELAY_CPU};
use outflow_labs::core_time::CoreTime;
use outflow_labs::figures::{progress, quantile, rounded};
use outflow_labs::net::{PLAYER, PLAYER_V6, Paths, SOURCE, SOURCE_V6};
use outflow_labs::process::{be_preferred, keep_to_cpu};
use outflow_labs::relay::{Relay, listen};
use outflow_labs::scene::wait_for;
use outflow_multicast::Interface;
use outflow_packet::gmc::Mark;
use outflow_routing::membership::Family;
use outflow_rtp::PlainHeader;
use serde_json::json;

use super::source::groups;
use super::tree::{PORT, join, sender};

/// Bytes of the media in a packet.
const PAYLOAD: usize = 1200;
/// Packets of a round. They come in bursts, as frames of video do, well below what a core sustains.
const PACKETS: u32 = 40_000;
const BURST: u32 = 32;
const APART: Duration = Duration::from_micros(1600);
/// For packets that are still on their way.
const DRAIN: Duration = Duration::from_millis(200);
const IDLE: Duration = Duration::from_millis(900);

/// What forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Kernel,
    Filter,
    /// The filter, of a plain source of JPEG 2000 that is described.
    Priority,
    User,
}

const ALL: [(By, &str); 4] = [
    (By::Kernel, "kernel_ns"),
    (By::Filter, "kernel_filter_ns"),
    (By::Priority, "kernel_priority_ns"),
    (By::User, "user_ns"),
];

/// A source, a router and a host.
struct Scene<'p> {
    paths: &'p Paths,
    router: Relay<'p>,
    from: UdpSocket,
    group: IpAddr,
    _member: UdpSocket,
    by: By,
    sequence: u16,
}

/// A session description of the source.
fn described(group: IpAddr) -> String {
    let (family, ttl) = if group.is_ipv4() { ("IP4", "/8") } else { ("IP6", "") };
    let video = format!("m=video {PORT} RTP/AVP 96\na=rtpmap:96 jpeg2000/90000\na=fmtp:96 pt=layer\n");
    format!("v=0\ns=plain\nc=IN {family} {group}{ttl}\n{video}")
}

/// Nanoseconds by each, by its name.
pub(crate) fn measure(family: Family, rounds: usize) -> Result<Vec<(&'static str, f64)>> {
    keep_to_cpu(OTHER_CPU)?;
    be_preferred();
    let paths = ALL.iter().map(|_| Paths::new()?.with_ipv6()).collect::<Result<Vec<_>>>()?;
    let core = CoreTime::watch(RELAY_CPU)?;
    let open = |(paths, (by, _)): (_, &(By, _))| Scene::open(paths, family, *by);
    let mut scenes = paths.iter().zip(&ALL).map(open).collect::<Result<Vec<_>>>()?;
    let mut costs = [const { Vec::new() }; ALL.len()];
    for round in 1..=rounds {
        for ((scene, costs), (_, name)) in scenes.iter_mut().zip(&mut costs).zip(&ALL) {
            let cost = scene.round(&core)?;
            progress(format!("round {round} of {rounds}, {name}: {cost:.0}"));
            costs.push(cost);
        }
    }
    Ok(ALL.iter().zip(costs).map(|((_, name), costs)| (*name, rounded(quantile(&costs, 0.5)))).collect())
}

impl<'p> Scene<'p> {
    fn open(paths: &'p Paths, family: Family, by: By) -> Result<Self> {
        paths.relay_receives_on(RELAY_CPU)?;
        paths.players_receive_on(OTHER_CPU)?;
        let [group, _] = groups(family);
        let description = tempfile::NamedTempFile::new()?;
        std::fs::write(&description, described(group))?;
        let more = match by {
            By::User => "filter = \"user\"\n".to_owned(),
            By::Priority => format!("described = [\"{}\"]\n", description.path().display()),
            By::Kernel | By::Filter => String::new(),
        };
        let settings = format!("[multicast]\ninterfaces = [\"in0\", \"out0\"]\n{more}");
        let router = Relay::start_on(&paths.relay, &format!("{}{settings}", listen()), Some(RELAY_CPU))?;
        let (own, source) = match family {
            Family::V4 => (IpAddr::from(PLAYER), IpAddr::from(SOURCE)),
            Family::V6 => (PLAYER_V6.into(), SOURCE_V6.into()),
        };
        let member = paths.players.run(|| join(group, own, "eth0"))?;
        let from = paths.source.run(|| sender(source, "eth0"))?;
        let mut scene = Scene { paths, router, from, group, _member: member, by, sequence: 0 };
        wait_for("the router forwards", || {
            scene.send(0)?;
            Ok(scene.flow()?["by_kernel"] == json!(["out0"]))
        })?;
        if by != By::Kernel {
            // What it is known by: of IPv6 its link-local address.
            let host = paths.players.run(|| Interface::find(family, "eth0"))?.address;
            let wish = json!({ "host": host.to_string(), "group": group.to_string(), "level": 2 });
            scene.router.put("/api/v1/multicast/levels", &wish)?;
            let wanted = if by == By::User { "user" } else { "kernel" };
            wait_for("the router leaves out", || Ok(scene.flow()?["thinned_by"] == wanted))?;
            // Less from the next picture on; then one is left out, and all numbers behind it are other ones.
            scene.send(0)?;
            scene.send(2)?;
        }
        Ok(scene)
    }

    fn flow(&self) -> Result<serde_json::Value> {
        Ok(self.router.json("/api/v1/multicast")?["flows"][0].clone())
    }

    fn send(&mut self, layer: u8) -> Result<()> {
        let (sequence, timestamp) = (self.sequence, u32::from(self.sequence) * 90);
        let header = PlainHeader { marker: true, payload_type: 96, sequence, timestamp, ssrc: 1 }.emit();
        let (opens, opens_all) = (layer == 0, layer == 0);
        let mark =
            Mark { layer, layers: 3, grown: 0, first: true, opens, adds: false, opens_all, ends: None };
        let packet = match self.by {
            // Behind the main header of a frame (RFC 5371, section 4.1).
            By::Priority => [&header[..], &[0, layer + 1, 0, 0, 0, 0, 0, 99], &[7; PAYLOAD]].concat(),
            _ => mark.write(&header, &[7; PAYLOAD]).context("it has a place")?,
        };
        self.from.send_to(&packet, (self.group, PORT))?;
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }

    /// Packets that have come to the host.
    fn came(&self) -> Result<u64> {
        let text = self.paths.players.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
        let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).context("eth0")?;
        Ok(line.split_whitespace().nth(1).context("packets")?.parse()?)
    }

    /// Nanoseconds a packet.
    fn round(&mut self, core: &CoreTime) -> Result<f64> {
        core.measure(&self.router.processes()?)?;
        let idle = core.idle(IDLE)?;
        let (before, reading, start) = (self.came()?, core.read()?, Instant::now());
        for number in 0..PACKETS {
            self.send(0)?;
            let due = APART * (number / BURST);
            while number.is_multiple_of(BURST) && start.elapsed() < due {
                std::hint::spin_loop();
            }
        }
        std::thread::sleep(DRAIN);
        let used = core.since(&reading)?;
        let came = self.came()? - before;
        let lost = u64::from(PACKETS).saturating_sub(came);
        ensure!(lost * 1000 < u64::from(PACKETS), "{lost} of {PACKETS} packets are lost");
        let own = (used.load() - idle.load()) * used.wall.as_secs_f64();
        Ok(own * 1e9 / came as f64)
    }
}
