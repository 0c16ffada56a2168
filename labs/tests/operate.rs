//! What an operator uses: `outflow demo`, `outflow watch`, the API, metrics, events, the page.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddrV6, TcpStream, UdpSocket};

use anyhow::{Context, Result, bail, ensure};
use outflow_labs::net::{PLAYER, PLAYER_V6, Paths, RELAY_IN, RELAY_OUT, RELAY_OUT_V6};
use outflow_labs::process::{Program, Running};
use outflow_labs::programs::{clip, ffmpeg_decodes, ffmpeg_sends};
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, binary, listen};
use outflow_labs::scene::{
    PATIENCE, ends_clean, ffmpeg_http, gst_rtsp_ts, http_url, plays, rtsp_url, scene, wait_for,
};
use outflow_multicast::Interface;
use outflow_routing::membership::Family;
use serde_json::{Value, json};

fn outflow(arguments: &str) -> Result<Program> {
    Ok(Program::new(binary()?.display().to_string()).args(arguments.split_whitespace()))
}

fn demo_relay(paths: &Paths) -> Result<Relay<'_>> {
    let relay = Relay::start(&paths.relay, &(listen() + "[streams.live]\nsource = \"demo://\"\n"))?;
    relay.wait_up("live")?;
    Ok(relay)
}

#[test]
fn the_demo_plays_at_the_addresses_that_it_prints() -> Result<()> {
    let Some(paths) = scene("outflow demo", &["ffmpeg"])? else { return Ok(()) };
    let mut demo = outflow("demo")?.within(&paths.relay).start()?;
    wait_for("it says that it is ready", || {
        ensure!(demo.alive(), "it ended: {}", demo.account());
        Ok(demo.stdout().contains("Status page"))
    })?;
    let printed = demo.stdout();
    let players: Vec<&str> = printed.split_whitespace().filter(|word| word.ends_with("/demo.ts")).collect();
    ensure!(!players.is_empty(), "no address to play from: {printed}");
    ffmpeg_decodes(&format!("-i {}", players[0]), 25).within(&paths.relay).finish(PATIENCE)?;
    demo.signal(nix::sys::signal::Signal::SIGINT)?;
    ensure!(demo.wait(PATIENCE)?.success(), "Ctrl-C is no failure: {}", demo.account());
    Ok(())
}

#[test]
fn watch_sees_whole_streams_whatever_way_they_come() -> Result<()> {
    let Some(paths) = scene("outflow watch", &["ffmpeg"])? else { return Ok(()) };
    let sinks = ["udp", "rtp"].map(|scheme| format!("{scheme}://{PLAYER}:{}", port_of(scheme)));
    let mut configuration = listen() + "[streams.live]\nsource = \"udp://0.0.0.0:5000\"\n";
    for to in &sinks {
        configuration += &format!("[[sinks]]\nstream = \"live\"\nto = \"{to}\"\n");
    }
    let mut relay = Relay::start(&paths.relay, &configuration)?;
    let to = format!("-f mpegts udp://{RELAY_IN}:5000?pkt_size=1316");
    let _publishing = ffmpeg_sends(&clip(), &to).within(&paths.source).start()?;
    relay.wait_up("live")?;
    let ways = [
        http_url("live"),
        rtsp_url("live"),
        format!("--transport udp {}", rtsp_url("live")),
        "udp://0.0.0.0:6000".into(),
        "rtp://0.0.0.0:6010".into(),
    ];
    let watching = ways.iter().map(|way| {
        let watch = outflow(&format!("watch --json --duration 3s {way}"))?;
        watch.within(&paths.players).start()
    });
    for (way, watch) in ways.iter().zip(watching.collect::<Result<Vec<_>>>()?) {
        is_whole(watch, 25).with_context(|| way.clone())?;
    }
    relay.healthy()
}

/// What `outflow watch` saw: more than these pictures, and nothing was missing.
fn is_whole(watch: Running, pictures: u64) -> Result<()> {
    let done = watch.succeed(PATIENCE)?;
    let summary = done.stdout.lines().last().unwrap_or_default();
    let summary: Value = serde_json::from_str(summary).with_context(|| format!("no JSON: {summary}"))?;
    for lost in ["lost", "malformed", "continuity_errors"] {
        ensure!(summary[lost] == 0, "{lost} in {summary}");
    }
    ensure!(summary["decodable_frames"].as_u64() > Some(pictures), "{summary}");
    Ok(())
}

/// Listens for HTTP and RTSP where a relay does that is told nothing.
const TOLD_NOTHING: &str =
    "[listen]\npoc = \"[::]:7000\"\n[poc]\nencryption = \"off\"\n[streams.live]\nsource = \"demo://\"\n";

#[test]
fn one_relay_serves_all_that_come_by_ipv4_and_by_ipv6() -> Result<()> {
    let Some(paths) = scene("IPv4 and IPv6 beside each other", &["curl"])? else { return Ok(()) };
    let paths = paths.with_ipv6()?;
    // Sockets take one family by themselves here.
    paths.relay.sysctl("net.ipv6.bindv6only", "1")?;
    let mut relay = Relay::start(&paths.relay, TOLD_NOTHING)?;
    relay.wait_up("live")?;
    let ends: [(IpAddr, IpAddr); 2] =
        [(RELAY_OUT.into(), PLAYER.into()), (RELAY_OUT_V6.into(), PLAYER_V6.into())];
    let mut watching = Vec::new();
    for host in ends.map(|(relay, _)| host(relay)) {
        let rtsp = format!("rtsp://{host}:{RTSP_PORT}/live");
        let udp = format!("--transport udp {rtsp}");
        let poc = format!("--insecure poc://{host}:7000/live");
        for way in [format!("http://{host}:{HTTP_PORT}/live.ts"), rtsp, udp, poc] {
            let watch = outflow(&format!("watch --json --duration 3s {way}"))?;
            watching.push((way, watch.within(&paths.players).start()?));
        }
    }
    let shown = relay.wait_receivers("live", watching.len())?;
    let receivers = shown["receivers"].as_array().context("receivers")?;
    let shown: BTreeSet<_> =
        receivers.iter().map(|one| (text(&one["kind"]), host_of(&text(&one["to"])))).collect();
    let kinds = ["http-ts", "rtsp-tcp", "rtsp-udp", "poc"];
    let expected = ends.iter().flat_map(|(_, player)| kinds.map(|kind| (kind.to_owned(), host(*player))));
    ensure!(shown == expected.collect(), "addresses of IPv4 are shown as such: {shown:#?}");
    for (relay, _) in ends {
        says_its_addresses(&paths, relay).with_context(|| host(relay))?;
    }
    for at in ["127.0.0.1", "[::1]"] {
        let curl = Program::words(&format!("curl -sS -f http://{at}:{HTTP_PORT}/api/v1/streams/live"));
        curl.within(&paths.relay).finish(PATIENCE).context(at)?;
    }
    for (way, watch) in watching {
        is_whole(watch, 25).context(way)?;
    }
    is_sent_media_on_the_link(&paths)?;
    relay.healthy()
}

/// A player reaches the relay at the address that its interface has on the link, and media reaches the player's.
fn is_sent_media_on_the_link(paths: &Paths) -> Result<()> {
    let relay = paths.relay.run(|| Interface::find(Family::V6, "out0"))?.address;
    let IpAddr::V6(address) = relay else { bail!("{relay} is of IPv4") };
    paths.players.run(|| -> Result<()> {
        let media = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 5000))?;
        media.set_read_timeout(Some(PATIENCE))?;
        let link = nix::net::if_::if_nametoindex("eth0")?;
        let mut tcp = TcpStream::connect(SocketAddrV6::new(address, RTSP_PORT, 0, link))?;
        let url = format!("rtsp://[{address}]:{RTSP_PORT}/live");
        let transport = "Transport: RTP/AVP;unicast;client_port=5000-5001";
        write!(tcp, "SETUP {url}/trackID=0 RTSP/1.0\r\nCSeq: 1\r\n{transport}\r\n\r\n")?;
        let mut bytes = [0; 1024];
        let length = tcp.read(&mut bytes)?;
        let answer = String::from_utf8_lossy(&bytes[..length]).into_owned();
        let session = answer.split("Session: ").nth(1).and_then(|rest| rest.split(';').next());
        let session = session.with_context(|| answer.clone())?;
        write!(tcp, "PLAY {url} RTSP/1.0\r\nCSeq: 2\r\nSession: {session}\r\n\r\n")?;
        let (_, from) = media.recv_from(&mut [0; 2048]).context("no media comes")?;
        ensure!(from.ip() == relay, "{from}");
        Ok(())
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// An address as it stands in those of streams.
fn host(address: IpAddr) -> String {
    if address.is_ipv4() { address.to_string() } else { format!("[{address}]") }
}

fn host_of(address: &str) -> String {
    address.rsplit_once(':').map(|(host, _)| host.to_owned()).unwrap_or_default()
}

/// What RTSP answers is of the family that the player has come by.
fn says_its_addresses(paths: &Paths, relay: IpAddr) -> Result<()> {
    let answers = paths.players.run(|| -> Result<String> {
        let url = format!("rtsp://{}:{RTSP_PORT}/live", host(relay));
        let mut tcp = TcpStream::connect((relay, RTSP_PORT))?;
        let transport = "Transport: RTP/AVP;unicast;client_port=5000-5001";
        write!(tcp, "DESCRIBE {url} RTSP/1.0\r\nCSeq: 1\r\n\r\n")?;
        write!(tcp, "SETUP {url}/trackID=0 RTSP/1.0\r\nCSeq: 2\r\n{transport}\r\n\r\n")?;
        tcp.shutdown(std::net::Shutdown::Write)?;
        let mut answers = String::new();
        tcp.read_to_string(&mut answers)?;
        Ok(answers)
    })?;
    let [family, any] = if relay.is_ipv4() { ["IP4", "0.0.0.0"] } else { ["IP6", "::"] };
    for said in [format!(" IN {family} {relay}"), format!("c=IN {family} {any}"), format!("source={relay}")] {
        ensure!(answers.contains(&said), "no {said} in {answers}");
    }
    ensure!(!answers.contains("::ffff"), "{answers}");
    Ok(())
}

fn port_of(scheme: &str) -> u16 {
    if scheme == "udp" { 6000 } else { 6010 }
}

#[test]
fn health_page_description_and_metrics_are_there() -> Result<()> {
    let Some(paths) = scene("health, page and metrics", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = demo_relay(&paths)?;
    let player = plays(&paths, &ffmpeg_http("live", 500))?;
    relay.wait_stream("live", "played", |state| state["receivers"][0]["packets"].as_u64() > Some(50))?;

    relay.get("/healthz")?;
    let page = relay.get("/")?;
    ensure!(page.contains("<html") && page.contains("Outflow"), "the status page is not one: {page}");
    let described = relay.json("/api/v1/openapi.json")?;
    for path in ["/api/v1/streams", "/api/v1/streams/{name}", "/api/v1/receivers", "/api/v1/reload"] {
        ensure!(described["paths"][path].is_object(), "{path} is not described");
    }
    let metrics = relay.get("/metrics")?;
    let sent = metrics.lines().find(|line| line.starts_with("outflow_receiver_sent_bytes_total{"));
    let sent = sent.context("no bytes a receiver among the metrics")?;
    ensure!(sent.contains("stream=\"live\"") && sent.contains("kind=\"http-ts\""), "{sent}");
    ensure!(!sent.ends_with(" 0"), "{sent}");
    drop(player);
    relay.healthy()
}

#[test]
fn receiver_reports_are_read_and_priorities_changed() -> Result<()> {
    let Some(paths) = scene("receiver reports", &["gst-launch-1.0"])? else { return Ok(()) };
    let mut relay = demo_relay(&paths)?;
    let player = plays(&paths, &gst_rtsp_ts("live", "udp", 9999))?;
    let state = relay.wait_stream("live", "reported on", |state| {
        let reports = state["receivers"][0]["reports"].as_array();
        reports.is_some_and(|reports| !reports.is_empty())
    })?;
    let id = &state["receivers"][0]["id"];
    relay.patch(&format!("/api/v1/receivers/{id}"), &json!({ "priority": "high" }))?;
    relay.wait_stream("live", "of high priority", |state| state["receivers"][0]["priority"] == "high")?;
    drop(player);
    relay.wait_receivers("live", 0)?;
    relay.healthy()
}

#[test]
fn events_tell_of_a_source_that_goes_and_comes() -> Result<()> {
    let Some(paths) = scene("events", &["ffmpeg", "curl"])? else { return Ok(()) };
    let configuration =
        listen() + "[streams.live]\nsource = \"udp://0.0.0.0:5000\"\nsource_timeout = \"1 s\"\n";
    let mut relay = Relay::start(&paths.relay, &configuration)?;
    let curl = format!("curl -sN http://127.0.0.1:{HTTP_PORT}/api/v1/events");
    let mut events = Program::words(&curl).within(&paths.relay).start()?;
    let to = format!("-f mpegts udp://{RELAY_IN}:5000?pkt_size=1316");
    for up in [true, false, true] {
        let publishing = up.then(|| ffmpeg_sends(&clip(), &to).within(&paths.source).start()).transpose()?;
        wait_for("the newest event tells it", || {
            ensure!(events.alive(), "curl ended: {}", events.account());
            let told = events.stdout();
            let newest = told.lines().rev().filter_map(|line| line.strip_prefix("data: "));
            let newest = newest.filter_map(|text| serde_json::from_str::<Value>(text).ok()).next();
            Ok(newest.is_some_and(|state| state["streams"][0]["source"]["up"] == up))
        })?;
        if publishing.is_some() {
            ends_clean(plays(&paths, &ffmpeg_http("live", 5))?)?;
        }
    }
    relay.healthy()
}
