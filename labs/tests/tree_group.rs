//! Relays on one network take a stream of their parent by multicast: it goes there once, at the best level that any
//! of them wants, to a late one without a gap, and by unicast where multicast does not get through.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use outflow_labs::media::rtp::{self, Pictures};
use outflow_labs::media::{Marker, Pulses};
use outflow_labs::net::{Namespace, cannot_make_namespaces};
use outflow_labs::process::{Program, Running};
use outflow_labs::programs::{clip, ffmpeg, ffmpeg_decodes, ffmpeg_sends, missing};
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, Upgrade, binary, listen};
use outflow_labs::scene::{PATIENCE, skipped, wait_for};
use serde_json::Value;

const PORT: u16 = 7000;
const SOURCE_PORT: u16 = 5004;
const SINK_PORT: u16 = 6000;
const PARENT: Ipv4Addr = Ipv4Addr::new(10, 67, 1, 1);
const GROUPS: &str = "232.67.1.0/24";

/// ```text
/// parent ───┐
/// child 0 ──┼── a bridge, that floods multicast
/// child 1 ──┤
/// child 2 ──┘
/// ```
struct Lan {
    parent: Namespace,
    children: Vec<Namespace>,
    _bridge: Namespace,
}

impl Lan {
    fn new(test: &str) -> Result<Option<Self>> {
        let lacking = ["ffmpeg", "nft"].iter().find_map(|name| missing(name)).or_else(cannot_make_namespaces);
        if let Some(why) = lacking {
            skipped(test, &why);
            return Ok(None);
        }
        outflow_labs::relay::show_logs();
        let bridge = Namespace::new("bridge")?;
        bridge.ip(&["link", "add", "lan", "type", "bridge", "mcast_snooping", "0"])?;
        bridge.ip(&["link", "set", "lan", "up"])?;
        let on_bridge = |role: &str, last: u8| -> Result<Namespace> {
            let namespace = Namespace::new(role)?;
            let port = format!("p{last}");
            let peer = ["peer", "name", &port, "netns", bridge.name()];
            namespace.ip(&[&["link", "add", "eth0", "type", "veth"], &peer[..]].concat())?;
            bridge.ip(&["link", "set", &port, "master", "lan", "up"])?;
            namespace.ip(&["address", "add", &format!("10.67.1.{last}/24"), "dev", "eth0"])?;
            namespace.ip(&["address", "add", &format!("fd67::{last}/64"), "dev", "eth0", "nodad"])?;
            namespace.ip(&["link", "set", "eth0", "up"])?;
            namespace.ip(&["route", "add", "224.0.0.0/4", "dev", "eth0"])?;
            Ok(namespace)
        };
        let parent = on_bridge("parent", 1)?;
        let children = (2..5).map(|last| on_bridge("child", last)).collect::<Result<_>>()?;
        Ok(Some(Lan { parent, children, _bridge: bridge }))
    }

    fn start_parent(&self, streams: &str) -> Result<Relay<'_>> {
        Relay::start(&self.parent, &of_tree("parent", 1, &format!("groups = \"{GROUPS}\"\n{streams}")))
    }

    fn start_child(&self, number: u8) -> Result<Relay<'_>> {
        let more = format!("parents = [\"{PARENT}:{PORT}\"]\ntransport = \"multicast\"\n");
        let namespace = self.child(number);
        Relay::start(namespace, &of_tree(&format!("child-{number}"), number + 2, &more))
    }

    fn child(&self, number: u8) -> &Namespace {
        &self.children[usize::from(number)]
    }

    /// A player that watches at a child.
    fn watches(&self, number: u8) -> Result<Running> {
        let url = format!("-i http://127.0.0.1:{HTTP_PORT}/live.ts");
        ffmpeg_decodes(&url, 100_000).within(self.child(number)).start()
    }

    /// Bytes that have left the parent's machine.
    fn sent(&self) -> Result<u64> {
        let shown: Value = serde_json::from_str(&self.parent.ip(&["-s", "-j", "link", "show", "eth0"])?)?;
        shown[0]["stats64"]["tx"]["bytes"].as_u64().context("what was sent")
    }

    /// No group gets in at a child, or all do again.
    fn block(&self, number: u8, is_on: bool) -> Result<()> {
        let rules = match is_on {
            true => format!(
                "add table ip t; add chain ip t c {{ type filter hook input priority 0; }}; \
                 add rule ip t c ip daddr {GROUPS} drop"
            ),
            false => "delete table ip t".to_owned(),
        };
        Program::new("nft").args([&rules]).within(self.child(number)).finish(PATIENCE)?;
        Ok(())
    }
}

fn of_tree(name: &str, last: u8, more: &str) -> String {
    listen()
        + &format!("poc = \"0.0.0.0:{PORT}\"\n[poc]\nencryption = \"off\"\n[tree]\nname = \"{name}\"\n")
        + &format!("address = \"10.67.1.{last}:{PORT}\"\nhold = \"500 ms\"\n{more}")
}

/// What a relay shows of the stream that comes to it.
fn shown(relay: &Relay<'_>, name: &str) -> Result<Value> {
    let all = relay.json("/api/v1/tree")?;
    let own = all.as_array().context("relays")?.iter().find(|one| one["name"] == name);
    Ok(own.map(|own| own["streams"][0].clone()).unwrap_or_default())
}

fn wait_by(relay: &Relay<'_>, name: &str, by: &str) -> Result<()> {
    wait_for(&format!("{name} takes it by {by}"), || Ok(shown(relay, name)?["by"] == by))
}

fn packets(relay: &Relay<'_>) -> Result<u64> {
    Ok(relay.stream("live")?["source"]["packets"].as_u64().unwrap_or(0))
}

/// Waits until as many packets more have come.
fn wait_packets(relay: &Relay<'_>, more: u64) -> Result<()> {
    let before = packets(relay)?;
    wait_for("packets to come", || Ok(packets(relay)? >= before + more))
}

/// The receivers of it at the parent: the group, and others.
fn receivers(parent: &Relay<'_>, stream: &str) -> Result<(Vec<Value>, usize)> {
    let state = parent.stream(stream)?;
    let all = state["receivers"].as_array().context("receivers")?.clone();
    let is_group =
        |one: &Value| one["name"].as_str().is_some_and(|name| name.starts_with("tree:eth0:232.67.1."));
    let (groups, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_group);
    Ok((groups, others.len()))
}

fn publishes(lan: &Lan) -> Result<Running> {
    let to = format!("-f mpegts -method PUT http://127.0.0.1:{HTTP_PORT}/live.ts");
    ffmpeg_sends(&clip(), &to).within(&lan.parent).start()
}

/// Sends a stream of packets that are numbered.
struct Source {
    is_over: Arc<AtomicBool>,
    sending: Option<JoinHandle<()>>,
}

impl Source {
    fn start(namespace: &Namespace) -> Result<Self> {
        let socket = namespace.run(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)))?;
        socket.connect((Ipv4Addr::LOCALHOST, SOURCE_PORT))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let mut pictures = Pictures::new(Pulses { payload: 1000, packets: 3, per_second: 100.0 });
        let sending = std::thread::spawn(move || {
            // A minute at most.
            for _ in 0..6000 {
                if asked.load(Ordering::Relaxed) {
                    break;
                }
                for packet in pictures.next_picture(0).chunks(1000) {
                    socket.send(packet).expect("loopback takes it");
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Ok(Source { is_over, sending: Some(sending) })
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.sending.take().into_iter().for_each(|sending| _ = sending.join());
    }
}

/// Receives such a stream.
struct Sink {
    socket: UdpSocket,
    last: Option<u32>,
}

impl Sink {
    fn new(namespace: &Namespace) -> Result<Self> {
        let socket = namespace.run(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, SINK_PORT)))?;
        setsockopt(&socket, sockopt::RcvBufForce, &(64 << 20))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Sink { socket, last: None })
    }

    /// Packets that have come, and of two seconds from now on, each of which is the one behind the one before.
    fn goes_on(&mut self, after: &str) -> Result<()> {
        let mut bytes = [0; 2048];
        self.socket.set_nonblocking(true)?;
        while let Ok(length) = self.socket.recv(&mut bytes) {
            self.takes(&bytes[..length], after)?;
        }
        self.socket.set_nonblocking(false)?;
        for _ in 0..600 {
            let length = self.socket.recv(&mut bytes).with_context(|| format!("no packets after {after}"))?;
            self.takes(&bytes[..length], after)?;
        }
        Ok(())
    }

    fn takes(&mut self, packet: &[u8], after: &str) -> Result<()> {
        let number = Marker::parse(packet).context("a packet of the source's")?.datagram;
        let expected = self.last.map_or(number, |last| last + 1);
        ensure!(number == expected, "after {after}: packet {number}, and {expected} was to come");
        self.last = Some(number);
        Ok(())
    }
}

#[test]
fn one_copy_serves_all_relays_of_a_network() -> Result<()> {
    let Some(lan) = Lan::new("a parent and three children by multicast")? else { return Ok(()) };
    let mut parent = lan.start_parent("[streams.live]\nsource = \"push\"\n")?;
    let mut relays = (0..3).map(|number| lan.start_child(number)).collect::<Result<Vec<_>>>()?;
    let _publishing = publishes(&lan)?;
    parent.wait_up("live")?;
    let _players = [lan.watches(0)?, lan.watches(1)?];
    for (relay, name) in relays.iter().zip(["child-0", "child-1"]) {
        wait_by(relay, name, "multicast")?;
    }
    // One comes late: what it got by unicast goes on by the group without a gap.
    let _late = lan.watches(2)?;
    wait_by(&relays[2], "child-2", "multicast")?;
    wait_packets(&relays[2], 100)?;
    for relay in &relays {
        ensure!(relay.stream("live")?["source"]["lost"] == 0, "packets were lost at a child");
    }
    wait_for("only the group to be sent to", || {
        let (groups, others) = receivers(&parent, "live")?;
        Ok(groups.len() == 1 && others == 0)
    })?;
    let (sent, before) = (lan.sent()?, parent.stream("live")?["source"]["bytes"].as_u64().context("bytes")?);
    wait_packets(&parent, 1000)?;
    let (sent, came) =
        (lan.sent()? - sent, parent.stream("live")?["source"]["bytes"].as_u64().context("bytes")? - before);
    ensure!(sent < came * 3 / 2 && sent > came / 2, "{sent} bytes went out of a stream of {came}");
    // Ordinary players may ask for the group, too.
    let url = format!("-rtsp_transport udp_multicast -i rtsp://{PARENT}:{RTSP_PORT}/live");
    ffmpeg_decodes(&url, 30).within(lan.child(0)).finish(PATIENCE)?;
    // One dies; the others do not notice.
    drop(relays.remove(0));
    relays.iter().try_for_each(|relay| wait_packets(relay, 100))?;
    ensure!(receivers(&parent, "live")?.0.len() == 1, "the group is there");
    for relay in &relays {
        ensure!(relay.stream("live")?["source"]["lost"] == 0, "packets were lost at a child");
    }
    relays.iter_mut().try_for_each(Relay::healthy)?;
    drop(relays);
    wait_for("none to be sent to", || Ok(parent.stream("live")?["receivers"] == Value::Array(Vec::new())))?;
    parent.healthy()
}

#[test]
fn the_group_has_the_best_level_that_is_wanted() -> Result<()> {
    let Some(lan) = Lan::new("levels by multicast")? else { return Ok(()) };
    let mut parent = lan.start_parent("[streams.live]\nsource = \"push\"\n")?;
    let mut relays = (0..2).map(|number| lan.start_child(number)).collect::<Result<Vec<_>>>()?;
    let pictures = "-re -f lavfi -i testsrc2=size=320x240:rate=25 -g 25 -bf 3 -sc_threshold 0 -c:v libx264 \
                    -preset veryfast -x264-params b-pyramid=none:b-adapt=0:ref=1:weightp=0";
    let to = format!("-f rtsp -rtsp_transport tcp rtsp://127.0.0.1:{RTSP_PORT}/live");
    let _encoding = ffmpeg(&format!("{pictures} {to}")).within(&lan.parent).start()?;
    parent.wait_up("live")?;
    let watch = |number: u8, level: u8| {
        let url = format!("poc://127.0.0.1:{PORT}/live?level={level}");
        let line = format!("{} watch --duration 600s --insecure {url}", binary()?.display());
        Program::words(&line).within(lan.child(number)).start()
    };
    let level = || -> Result<Value> {
        Ok(receivers(&parent, "live")?.0.first().map(|one| one["level"].clone()).unwrap_or_default())
    };
    let _low = watch(0, 2)?;
    wait_by(&relays[0], "child-0", "multicast")?;
    wait_for("the level of the only child", || Ok(level()? == 2))?;
    let high = watch(1, 1)?;
    wait_by(&relays[1], "child-1", "multicast")?;
    wait_for("the better level", || Ok(level()? == 1))?;
    relays.iter().try_for_each(|relay| wait_packets(relay, 50))?;
    drop(high);
    wait_for("the level of the one that is left", || Ok(level()? == 2))?;
    wait_packets(&relays[0], 50)?;
    relays.iter_mut().try_for_each(Relay::healthy)?;
    parent.healthy()
}

#[test]
fn relays_that_are_reached_by_ipv6_take_groups_of_ipv6() -> Result<()> {
    let Some(lan) = Lan::new("groups of IPv6")? else { return Ok(()) };
    let by_ipv6 = |name, last: u8, more: &str| {
        let [before, after] = [format!("10.67.1.{last}:"), format!("[fd67::{last}]:")];
        of_tree(name, last, more).replace("0.0.0.0", "[::]").replace(&before, &after)
    };
    let groups =
        format!("groups = [\"{GROUPS}\", \"ff35::8000:0/120\"]\n[streams.live]\nsource = \"push\"\n");
    let mut parent = Relay::start(&lan.parent, &by_ipv6("parent", 1, &groups))?;
    let more = format!("parents = [\"[fd67::1]:{PORT}\"]\ntransport = \"multicast\"\n");
    let mut child = Relay::start(lan.child(0), &by_ipv6("child-0", 2, &more))?;
    let _publishing = publishes(&lan)?;
    parent.wait_up("live")?;
    let _player = lan.watches(0)?;
    wait_by(&child, "child-0", "multicast")?;
    wait_packets(&child, 100)?;
    ensure!(child.stream("live")?["source"]["lost"] == 0, "packets were lost at the child");
    wait_for("only the group to be sent to", || {
        let state = parent.stream("live")?;
        let all = state["receivers"].as_array().context("receivers")?;
        let name = all.first().and_then(|one| one["name"].as_str()).unwrap_or_default();
        Ok(all.len() == 1 && name.starts_with("tree:eth0:[ff35::80"))
    })?;
    child.healthy()?;
    parent.healthy()
}

#[test]
fn no_packet_is_missing_where_a_relay_that_is_in_the_group_or_sends_to_it_goes_on_elsewhere() -> Result<()> {
    let Some(lan) = Lan::new("upgrades of relays by multicast")? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let sdp = folder.path().join("live.sdp");
    std::fs::write(&sdp, rtp::description(SOURCE_PORT))?;
    let source = format!("rtp://127.0.0.1:{SOURCE_PORT}\"\nsdp = \"{}", sdp.display());
    let mut parent = lan.start_parent(&format!("[streams.live]\nsource = \"{source}\"\n"))?;
    let more = format!(
        "parents = [\"{PARENT}:{PORT}\"]\ntransport = \"multicast\"\n[streams.live]\nsource = \"tree\"\n\
         [[sinks]]\nstream = \"live\"\nto = \"rtp://127.0.0.1:{SINK_PORT}\"\n"
    );
    let mut sink = Sink::new(lan.child(0))?;
    let mut child = Relay::start(lan.child(0), &of_tree("child-0", 2, &more))?;
    let _source = Source::start(&lan.parent)?;
    wait_by(&child, "child-0", "multicast")?;
    sink.goes_on("it came by multicast")?;
    for upgrade in ["an upgrade", "another one"] {
        ensure!(matches!(child.upgrade()?, Upgrade::Done { .. }), "{upgrade} does not work");
        sink.goes_on(upgrade)?;
    }
    // What goes on without being taken again does so for 10 s at most.
    let taken_again = || Ok(shown(&child, "child-0")?["parent"]["name"] == "parent");
    wait_for("it to be taken again", taken_again)?;
    wait_by(&child, "child-0", "multicast")?;
    sink.goes_on("it was taken again")?;
    for upgrade in ["an upgrade of the parent", "another one"] {
        let group = receivers(&parent, "live")?.0;
        ensure!(matches!(parent.upgrade()?, Upgrade::Done { .. }), "{upgrade} does not work");
        // The new process shows its receivers half a second later. This one goes on until the child has connected to
        // that, and takes the stream again.
        wait_for("the same receiver goes on", || {
            let now = receivers(&parent, "live")?.0;
            Ok(now.len() == 1 && now[0]["id"] == group[0]["id"])
        })?;
        sink.goes_on(upgrade)?;
        wait_for("it to be taken again", taken_again)?;
        wait_by(&child, "child-0", "multicast")?;
        // Behind this, the receiver that was made then is shown.
        sink.goes_on("it was taken of the new process")?;
    }
    child.healthy()?;
    parent.healthy()
}

#[test]
fn unicast_stands_in_where_multicast_does_not_get_through() -> Result<()> {
    let Some(lan) = Lan::new("multicast that is blocked")? else { return Ok(()) };
    let mut parent = lan.start_parent("[streams.live]\nsource = \"push\"\n")?;
    let mut child = lan.start_child(0)?;
    let _publishing = publishes(&lan)?;
    parent.wait_up("live")?;
    lan.block(0, true)?;
    let _player = lan.watches(0)?;
    let fallbacks = || -> Result<u64> { Ok(shown(&child, "child-0")?["fallbacks"].as_u64().unwrap_or(0)) };
    wait_for("the group to be given up", || Ok(fallbacks()? > 0))?;
    ensure!(shown(&child, "child-0")?["by"] == "unicast", "it comes by unicast");
    wait_packets(&child, 100)?;
    lan.block(0, false)?;
    wait_by(&child, "child-0", "multicast")?;
    wait_packets(&child, 100)?;
    // It stops in the middle.
    lan.block(0, true)?;
    wait_by(&child, "child-0", "unicast")?;
    wait_packets(&child, 100)?;
    ensure!(fallbacks()? > 1, "it is counted");
    child.healthy()?;
    parent.healthy()
}
