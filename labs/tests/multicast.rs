//! Hosts join groups by ordinary socket options, and are sent streams by `outflow run` with `[multicast]`: where
//! they want them, at the level that they want, and once.

#[path = "multicast/demand.rs"]
mod demand;
#[path = "multicast/fan_out.rs"]
mod fan_out;
#[path = "multicast/levels.rs"]
mod levels;
#[path = "multicast/mld.rs"]
mod mld;
#[path = "multicast/routers.rs"]
mod routers;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use outflow_labs::membership::LevelProgram;
use outflow_labs::net::{Namespace, PLAYER, Paths, RELAY_IN, SOURCE, link};
use outflow_labs::process::{Program, Running};
use outflow_labs::programs::{clip, ffmpeg, ffmpeg_decodes, ffmpeg_sends, gst_decodes};
use outflow_labs::relay::{Relay, listen};
use outflow_labs::scene::{PATIENCE, all_play_clean, scene, wait_for};
use outflow_media::Time;
use outflow_multicast::Interface;
use outflow_multicast::sys::Routing;
use outflow_routing::Level;
use outflow_routing::membership::{Family, Host, HostSettings, Interest};
use serde_json::Value;
use tempfile::TempDir;

/// The relay's second interface with hosts, and a host there.
const OTHER_OUT: Ipv4Addr = Ipv4Addr::new(10, 66, 3, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 66, 3, 2);
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);
const PORT: u16 = 5200;

/// ```text
/// source           relay             players
///   eth0 ─────── in0   out0 ─────── eth0
///                      out1 ─────── eth0   other
/// ```
struct Scene {
    paths: Paths,
    other: Namespace,
    folder: TempDir,
}

impl Scene {
    fn new(test: &str, needs: &[&str]) -> Result<Option<Self>> {
        let needs = [needs, &["cc"]].concat();
        let Some(paths) = scene(test, &needs)? else { return Ok(None) };
        let other = Namespace::new("other")?;
        link(&other, ("eth0", OTHER), &paths.relay, ("out1", OTHER_OUT))?;
        other.ip(&["route", "add", "224.0.0.0/4", "dev", "eth0"])?;
        let scene = Scene { paths, other, folder: tempfile::tempdir()? };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/member.c");
        let member = scene.member().display().to_string();
        Program::words("cc -O1 -Wall -Werror -o").args([&member, source]).finish(PATIENCE)?;
        Ok(Some(scene))
    }

    fn member(&self) -> PathBuf {
        self.folder.path().join("member")
    }

    /// A host that joins the group, on the first interface or the other one.
    fn joins(&self, is_other: bool, source: Option<Ipv4Addr>) -> Result<Member> {
        let (namespace, own) = if is_other { (&self.other, OTHER) } else { (&self.paths.players, PLAYER) };
        self.joins_at(namespace, own, source)
    }

    fn joins_at(&self, namespace: &Namespace, own: Ipv4Addr, source: Option<Ipv4Addr>) -> Result<Member> {
        let words = [GROUP.to_string(), PORT.to_string(), own.to_string()];
        let words = words.into_iter().chain(source.map(|source| source.to_string()));
        let program = Program::new(self.member().display().to_string()).args(words);
        Ok(Member(program.within(namespace).start()?))
    }

    fn relay(&self, streams: &str) -> Result<Relay<'_>> {
        Relay::start(&self.paths.relay, &configuration(&["out0", "out1"], streams))
    }

    /// Numbered datagrams from the source's machine, until dropped.
    fn sends(&self, to: IpAddr) -> Result<Numbers> {
        let socket = self.paths.source.run(|| UdpSocket::bind((SOURCE, 0)))?;
        socket.set_multicast_ttl_v4(8)?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let numbers = (0_u32..).take_while(|_| !is_over.load(Ordering::Relaxed));
            numbers.for_each(|number| {
                // The interface may be gone for a while.
                let _lost = socket.send_to(&number.to_be_bytes(), (to, PORT));
                std::thread::sleep(Duration::from_millis(5));
            });
        });
        Ok(Numbers { stop, thread: Some(thread) })
    }
}

/// Asks hosts often, so that no test has to wait for what they report.
fn configuration(interfaces: &[&str], streams: &str) -> String {
    with_multicast(&format!("interfaces = {interfaces:?}\nupstream = \"in0\""), streams)
}

fn with_multicast(interfaces: &str, streams: &str) -> String {
    listen()
        + &format!(
            "[multicast]\n{interfaces}\nquery_interval = \"4 s\"\nquery_response = \"1 s\"\n\
             last_member_interval = \"300 ms\"\n{streams}"
        )
}

struct Numbers {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Numbers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _panicked = self.thread.take().map(JoinHandle::join);
    }
}

/// The C program.
struct Member(Running);

impl Member {
    fn numbers(&self) -> Vec<u32> {
        self.0.stdout().lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Waits until `count` more have come.
    fn gets(&self, count: usize) -> Result<()> {
        let before = self.numbers().len();
        let come = || Ok(self.numbers().len() >= before + count);
        wait_for("datagrams come", come).with_context(|| self.0.account())
    }

    /// None came twice, and none is missing from the first to the last.
    fn is_whole(&self) -> Result<()> {
        let numbers = self.numbers();
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { bail!("nothing came") };
        let all: BTreeSet<_> = numbers.iter().collect();
        ensure!(all.len() == numbers.len(), "{} of {} came twice", numbers.len() - all.len(), numbers.len());
        ensure!(all.len() == (last - first + 1) as usize, "{} of {first} to {last}", all.len());
        Ok(())
    }

    fn leaves(&self) -> Result<()> {
        self.0.signal(Signal::SIGUSR1)?;
        wait_for("it has left", || Ok(self.0.stdout().contains("left")))
    }
}

const DATA: &str =
    "[streams.data]\nsource = \"udp://0.0.0.0:5200?format=data\"\ngroup = \"udp://239.1.1.1:5200\"\n";

/// What is said of the group on an interface.
fn group(relay: &Relay<'_>, interface: &str) -> Result<Option<Value>> {
    let state = relay.json("/api/v1/multicast")?;
    let interfaces = state["interfaces"].as_array().context("interfaces")?;
    let of = interfaces.iter().find(|one| one["name"] == interface).context("the interface")?;
    let groups = of["groups"].as_array().context("groups")?;
    Ok(groups.iter().find(|one| one["group"] == GROUP.to_string()).cloned())
}

/// Waits until the group is brought to an interface so, or, without, is not wanted there.
fn wait_served(relay: &Relay<'_>, interface: &str, by: Option<&str>) -> Result<()> {
    let mut last = None;
    let what = format!("{GROUP} on {interface} is served by {by:?}");
    let waited = wait_for(&what, || {
        last = group(relay, interface)?;
        Ok(last.as_ref().and_then(|group| group["served_by"].as_str()) == by
            && by.is_some() == last.is_some())
    });
    waited.with_context(|| format!("{last:?}"))
}

#[test]
fn players_join_a_group_and_leave_it() -> Result<()> {
    let Some(scene) = Scene::new("players_join_a_group_and_leave_it", &["ffmpeg", "gst-launch-1.0"])? else {
        return Ok(());
    };
    let streams = "[streams.demo]\nsource = \"demo://\"\ngroup = \"udp://239.1.1.1:5200\"\n[streams.film]\n\
                   source = \"demo://\"\ngroup = \"rtp://239.1.1.2:5300\"\n";
    let mut relay = scene.relay(streams)?;
    relay.wait_up("demo")?;
    let udp = ffmpeg_decodes(&format!("-i udp://{GROUP}:{PORT}?localaddr={PLAYER}"), 100);
    let demux = "tsdemux ! h264parse ! avdec_h264";
    let gst_udp = format!("udpsrc address={GROUP} port={PORT} multicast-iface=eth0 ! {demux}");
    let caps = "application/x-rtp,media=video,clock-rate=90000,encoding-name=MP2T";
    let gst_rtp = format!(
        "udpsrc address=239.1.1.2 port=5300 multicast-iface=eth0 caps={caps} ! rtpjitterbuffer ! rtpmp2tdepay ! {demux}"
    );
    all_play_clean(&scene.paths, &[udp, gst_decodes(&gst_rtp, 100)])?;
    all_play_clean(&scene.paths, &[gst_decodes(&gst_udp, 100)])?;
    for stream in ["demo", "film"] {
        relay.wait_receivers(stream, 0)?;
    }
    let joins = relay.json("/api/v1/multicast")?["interfaces"][0]["joins"].as_u64();
    ensure!(joins >= Some(2), "{joins:?}");
    relay.healthy()
}

#[test]
fn one_that_joins_is_sent_all_once_where_it_is_and_nothing_after_it_left() -> Result<()> {
    let Some(scene) = Scene::new("who_joins_is_sent_all_once", &[])? else { return Ok(()) };
    let mut relay = scene.relay(DATA)?;
    let _sending = scene.sends(RELAY_IN.into())?;
    let first = scene.joins(false, None)?;
    first.gets(100)?;
    let state = relay.wait_receivers("data", 1)?;
    ensure!(state["receivers"][0]["name"] == "igmp:out0:239.1.1.1:5200", "{state:#}");
    let second = scene.joins(true, Some(OTHER_OUT))?;
    second.gets(100)?;
    wait_served(&relay, "out0", Some("relay"))?;
    wait_served(&relay, "out1", Some("relay"))?;
    first.leaves()?;
    relay.wait_receivers("data", 1)?;
    wait_served(&relay, "out0", None)?;
    let counted = device_packets(&scene.paths.players)?;
    second.gets(200)?;
    ensure!(device_packets(&scene.paths.players)? - counted < 50, "it still comes");
    second.leaves()?;
    relay.wait_receivers("data", 0)?;
    first.is_whole().context("the first")?;
    second.is_whole().context("the second")?;
    let metrics = relay.get("/metrics")?;
    let joins = "outflow_multicast_joins_total{interface=\"out0\",protocol=\"igmp\"} 1";
    for line in [joins, "outflow_multicast_querier{interface="] {
        ensure!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    relay.healthy()
}

#[test]
fn one_that_wants_another_source_is_not_sent_what_it_would_not_take() -> Result<()> {
    let Some(scene) = Scene::new("who_wants_another_source", &[])? else { return Ok(()) };
    let mut relay = scene.relay(DATA)?;
    let _sending = scene.sends(RELAY_IN.into())?;
    let _other = scene.joins(false, Some(STRANGE))?;
    wait_for("it is known", || Ok(group(&relay, "out0")?.is_some()))?;
    let here = scene.joins(true, Some(OTHER_OUT))?;
    here.gets(50)?;
    let of = group(&relay, "out0")?.context("it is wanted")?;
    ensure!(of["served_by"].is_null() && of["mode"] == "include" && of["stream"] == "data", "{of:#}");
    let _all = scene.joins(false, None)?;
    relay.wait_receivers("data", 2)?;
    relay.healthy()
}

const STRANGE: Ipv4Addr = Ipv4Addr::new(10, 66, 9, 9);

/// Packets that came to a host.
fn device_packets(host: &Namespace) -> Result<u64> {
    let text = host.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).context("the device")?;
    Ok(line.split_whitespace().nth(1).context("a number")?.parse()?)
}

/// Reports the group with a level, as a host of ours does.
fn say_level(host: &Namespace, level: u8) -> Result<()> {
    let level = Level::new(level).context("not zero")?;
    host.run(|| {
        let interface = Interface::find(Family::V4, "eth0")?;
        let kernel = Routing::open(Family::V4, None)?;
        let mut members = Host::new(Time::ZERO, HostSettings::new(interface.link(), 1));
        members
            .set(Time::ZERO, GROUP.into(), Interest::all(level))
            .map_err(|_| anyhow::anyhow!("refused"))?;
        let mut packet = Vec::new();
        while let Some(to) = members.poll_transmit(&mut packet) {
            kernel.send(&packet, to, interface.index)?;
        }
        Ok(())
    })
}

#[test]
fn a_host_that_wants_less_gets_less_on_its_interface_alone() -> Result<()> {
    let Some(scene) = Scene::new("a_host_that_wants_less", &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    let mut relay = scene.relay("[streams.cam]\ngroup = \"udp://239.1.1.1:5200\"\n")?;
    let _coding = codes("cam", &scene)?;
    relay.wait_up("cam")?;
    let program = LevelProgram::start(&scene.other, Family::V4)?;
    program.says(GROUP, Some(3))?;
    wait_served(&relay, "out1", Some("relay"))?;
    // The players' own reports know no levels, and do not unsay what was said from their address.
    let low = kinds(&scene.other, OTHER, 4)?;
    let best = kinds(&scene.paths.players, PLAYER, 50)?;
    ensure!(low.chars().all(|kind| kind == 'I'), "{low}");
    ensure!(best.matches('B').count() > 25, "{best}");
    // The player was on the same host, whose kernel has left.
    wait_served(&relay, "out1", Some("relay"))?;
    relay.wait_receivers("cam", 1)?;
    let of = group(&relay, "out1")?.context("it is wanted")?;
    ensure!(of["level"] == 3, "{of:#}");
    let id = relay.stream("cam")?["receivers"][0]["id"].clone();
    program.says(GROUP, Some(2))?;
    let other = relay.wait_stream("cam", "at level 2", |state| {
        state["receivers"].as_array().is_some_and(|all| all.iter().any(|one| one["level"] == 2))
    })?;
    let ids = other["receivers"].as_array().context("receivers")?.iter().map(|one| &one["id"]);
    ensure!(ids.clone().any(|one| *one == id), "it was changed without a new beginning: {id} in {other:#}");
    let without = kinds(&scene.other, OTHER, 14)?;
    ensure!(without.contains('P') && !without.contains('B'), "{without}");
    relay.healthy()
}

/// Publishes pictures of all kinds, three levels of them.
fn codes(stream: &str, scene: &Scene) -> Result<Running> {
    let pictures = "-re -f lavfi -i testsrc2=size=320x240:rate=25 -g 12 -bf 3 -sc_threshold 0";
    let coder = "-c:v libx264 -preset veryfast -x264-params b-pyramid=none:b-adapt=0:ref=1:weightp=0";
    // Its packets are as long as they may be: there is no room for what they say of themselves.
    let to = format!("-f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:8554/{stream}");
    ffmpeg(&format!("{pictures} {coder} {to}")).within(&scene.paths.source).start()
}

/// The kinds of the pictures that a player gets that joins the group. Where that is sent already it comes in
/// between two key frames, and complains of what it cannot decode before the next one.
fn kinds(host: &Namespace, own: Ipv4Addr, pictures: u32) -> Result<String> {
    let line = format!(
        "ffprobe -hide_banner -loglevel error -fpsprobesize 0 -analyzeduration 2M -select_streams v \
         -show_entries frame=pict_type -of csv=p=0 -read_intervals %+#{pictures} \
         udp://{GROUP}:{PORT}?localaddr={own}"
    );
    let found = Program::words(&line).within(host).finish(PATIENCE)?;
    Ok(found.stdout.chars().filter(char::is_ascii_uppercase).collect())
}

#[test]
fn what_comes_in_as_a_group_is_forwarded_by_the_kernel_once() -> Result<()> {
    let streams = [
        ("", "kernel"),
        (
            "[streams.data]\nsource = \"udp://239.1.1.1:5200?interface=in0&format=data\"\n\
             group = \"udp://239.1.1.1:5200\"\n",
            "kernel",
        ),
    ];
    let Some(scene) = Scene::new("what_comes_in_as_a_group", &[])? else { return Ok(()) };
    for (stream, by) in streams {
        let mut relay = scene.relay(stream)?;
        let _sending = scene.sends(GROUP.into())?;
        let hosts = [scene.joins(false, None)?, scene.joins(true, None)?];
        hosts.iter().try_for_each(|host| host.gets(200))?;
        wait_served(&relay, "out0", Some(by))?;
        wait_served(&relay, "out1", Some(by))?;
        hosts.iter().try_for_each(Member::is_whole).with_context(|| format!("by {by}"))?;
        hosts[0].leaves()?;
        wait_served(&relay, "out0", None)?;
        hosts[1].gets(100)?;
        hosts[1].is_whole()?;
        relay.healthy()?;
    }
    Ok(())
}

#[test]
fn beyond_32_interfaces_what_comes_in_as_a_group_is_forwarded_by_the_relay_once() -> Result<()> {
    let Some(scene) = Scene::new("beyond_32_interfaces", &[])? else { return Ok(()) };
    let idle = (0..31_u8).map(|number| format!("idle{number}")).collect::<Vec<_>>();
    for (number, name) in idle.iter().enumerate() {
        let relay = &scene.paths.relay;
        relay.ip(&["link", "add", name, "type", "bridge"])?;
        relay.ip(&["address", "add", &format!("10.77.{number}.1/24"), "dev", name])?;
        relay.ip(&["link", "set", name, "up"])?;
    }
    let interfaces = idle.iter().map(String::as_str).chain(["out0", "out1"]).collect::<Vec<_>>();
    let mut relay = Relay::start(&scene.paths.relay, &configuration(&interfaces, ""))?;
    let _sending = scene.sends(GROUP.into())?;
    let hosts = [scene.joins(false, None)?, scene.joins(true, None)?];
    hosts.iter().try_for_each(|host| host.gets(200))?;
    wait_served(&relay, "out0", Some("user"))?;
    wait_served(&relay, "out1", Some("user"))?;
    hosts.iter().try_for_each(Member::is_whole)?;
    hosts[0].leaves()?;
    wait_served(&relay, "out0", None)?;
    hosts[1].gets(100)?;
    hosts[1].is_whole()?;
    relay.healthy()
}

#[test]
fn the_relay_sends_what_comes_in_as_a_group_where_less_is_wanted() -> Result<()> {
    let Some(scene) = Scene::new("the_relay_sends_where_less_is_wanted", &["ffmpeg", "ffprobe"])? else {
        return Ok(());
    };
    let stream =
        "[streams.cam]\nsource = \"udp://239.1.1.1:5200?interface=in0\"\ngroup = \"udp://239.1.1.1:5200\"\n";
    let mut relay = scene.relay(stream)?;
    let to = format!("-f mpegts udp://{GROUP}:{PORT}?pkt_size=1316&ttl=8&localaddr={SOURCE}");
    let _sending = ffmpeg_sends(&clip(), &to).within(&scene.paths.source).start()?;
    relay.wait_up("cam")?;
    let program = LevelProgram::start(&scene.other, Family::V4)?;
    program.says(GROUP, Some(3))?;
    wait_served(&relay, "out1", Some("relay"))?;
    let low = kinds(&scene.other, OTHER, 3)?;
    ensure!(low.chars().all(|kind| kind == 'I'), "{low}");
    let player = ffmpeg_decodes(&format!("-i udp://{GROUP}:{PORT}?localaddr={PLAYER}"), 100);
    let playing = player.within(&scene.paths.players).start()?;
    wait_served(&relay, "out0", Some("kernel"))?;
    playing.succeed(PATIENCE)?;
    // The player was on the same host, whose kernel has left.
    wait_served(&relay, "out1", Some("relay"))?;
    relay.wait_receivers("cam", 1)?;
    relay.healthy()
}

#[test]
fn an_interface_that_goes_is_taken_again_when_it_is_back() -> Result<()> {
    let Some(scene) = Scene::new("an_interface_that_goes_is_taken_again", &[])? else { return Ok(()) };
    let mut relay = scene.relay(DATA)?;
    let _sending = scene.sends(RELAY_IN.into())?;
    let problem = |name: &'static str| -> Result<bool> {
        let state = relay.json("/api/v1/multicast")?;
        let all = state["interfaces"].as_array().context("interfaces")?;
        Ok(all.iter().any(|one| one["name"] == name && one["problem"].is_string()))
    };
    scene.joins(true, None)?.gets(50)?;
    scene.paths.relay.ip(&["link", "set", "out1", "down"])?;
    wait_for("it is missed", || problem("out1"))?;
    scene.paths.relay.ip(&["link", "set", "out1", "up"])?;
    wait_for("it is taken again", || Ok(!problem("out1")?))?;
    scene.joins(true, None)?.gets(50)?;
    scene.paths.relay.ip(&["link", "delete", "out1"])?;
    wait_for("it is missed", || problem("out1"))?;
    scene.joins(false, None)?.gets(50)?;
    link(&scene.other, ("eth0", OTHER), &scene.paths.relay, ("out1", OTHER_OUT))?;
    wait_for("it is taken again", || Ok(!problem("out1")?))?;
    let host = scene.joins(true, None)?;
    host.gets(50)?;
    host.is_whole()?;
    relay.healthy()
}

#[test]
fn a_reload_takes_interfaces_and_groups() -> Result<()> {
    let Some(scene) = Scene::new("a_reload_takes_interfaces_and_groups", &[])? else { return Ok(()) };
    let off = "[streams.data]\nsource = \"udp://0.0.0.0:5200?format=data\"\n";
    let mut relay = Relay::start(&scene.paths.relay, &(listen() + off))?;
    let _sending = scene.sends(RELAY_IN.into())?;
    ensure!(relay.json("/api/v1/multicast")?["on"] == false);
    let host = scene.joins(true, None)?;
    relay.reload(&configuration(&["out1"], DATA))?;
    host.gets(50)?;
    host.is_whole()?;
    relay.reload(&configuration(&["out0"], DATA))?;
    relay.wait_receivers("data", 0)?;
    scene.joins(false, None)?.gets(50)?;
    relay.reload(&configuration(&["out0"], off))?;
    relay.wait_receivers("data", 0)?;
    relay.healthy()
}

#[test]
fn another_daemon_is_named() -> Result<()> {
    let Some(scene) = Scene::new("another_daemon_is_named", &[])? else { return Ok(()) };
    let other = scene.paths.relay.run(|| Routing::open(Family::V4, None))?;
    let error = scene.relay("").err().context("it runs")?;
    let error = format!("{error:#}");
    ensure!(
        error.contains("another program routes multicast of IPv4 here") && error.contains("stop it"),
        "{error}"
    );
    drop(other);
    let unprivileged = "setpriv --bounding-set -net_raw,-net_admin --inh-caps -all --";
    let started = Relay::start_as(&scene.other, &configuration(&["eth0"], ""), |program| {
        Program::words(&format!("{unprivileged} {}", program.shown())).within(&scene.other)
    });
    let error = format!("{:#}", started.err().context("it runs")?);
    ensure!(error.contains("CAP_NET_ADMIN and CAP_NET_RAW"), "{error}");
    Ok(())
}
